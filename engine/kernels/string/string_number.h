// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/dtype.h"

G_BEGIN_DECLS

/* Parses a text, without surrounding spaces, as one number of a real dtype. FALSE if it isn't one.
 */
gboolean muster_parse_number (const char *text, MusterDType dtype, void *to);

G_END_DECLS
