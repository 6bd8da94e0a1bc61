// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What an event file holds, a line an event: "0 version", "3 scalar TAG", "3 log 1", "0 graph",
 * "3 meta", "3 run TAG". It is read up to where it is cut short or damaged, as TensorBoard does. */
char *events_read (const char *path);

G_END_DECLS
