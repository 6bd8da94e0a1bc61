// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* The groups of the side file's text. Each ends with its own sum, `sum=`, by which those that
 * damage elsewhere in the file left whole are found. */

/* Adds the sums to a key file's text. */
char *muster_record_sum_groups (const char *body);

/* The whole groups of any text. */
char *muster_record_whole_groups (const char *text, gsize size);

G_END_DECLS
