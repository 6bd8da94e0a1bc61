// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/dtype.h"

G_BEGIN_DECLS

/* All of a text, without the blanks around it, is one number of a real dtype. */
gboolean muster_parse_number (const char *text, MusterDType dtype, void *to);

G_END_DECLS
