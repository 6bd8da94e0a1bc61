// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/text.h"

G_BEGIN_DECLS

/* A string as text, valid UTF-8, cut where it is long (transfer full): for errors. */
char *muster_string_text (MusterString string);

/* All of a text, without the blanks around it, is one number of a real dtype. */
gboolean muster_parse_number (const char *text, MusterDType dtype, void *to);

/* A text attribute of the node, "" where it isn't there (transfer full). */
char *muster_kernel_attr_text (MusterKernel *k, const char *name);

/* A tensor's values as TensorFlow prints them, at most limit of them (negative: all); ends: with
 * brackets, at most limit from each end of a dimension. */
void muster_print_values (MusterText *text, const MusterTensor *x, gint64 limit, gboolean ends);

G_END_DECLS
