// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/dispatch.h"

G_BEGIN_DECLS

/* A string tensor under construction: the strings are copied as they come. */
typedef struct {
  MusterResult result;
  GStringChunk *chunk; /* (owned) */
} MusterStrings;

gboolean muster_strings_begin (MusterStrings *self, int n_dims, const gint64 *dims, GError **error);
gboolean muster_strings_begin_like (MusterStrings *self, const MusterTensor *like, GError **error);
void muster_strings_put (MusterStrings *self, gint64 i, const char *data, gsize size);
void muster_strings_end (MusterStrings *self, MusterKernel *k, int i);
void muster_strings_clear (MusterStrings *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterStrings, muster_strings_clear)

/* A string as text, valid UTF-8, (transfer full): for errors. */
char *muster_string_text (MusterString string);

/* All of a text, without the blanks around it, is one number of a real dtype. */
gboolean muster_parse_number (const char *text, MusterDType dtype, void *to);

/* A text attribute of the node, "" where it isn't there (transfer full). */
char *muster_kernel_attr_text (MusterKernel *k, const char *name);

/* A tensor's values as TensorFlow prints them, at most limit of them (negative: all); ends: with
 * brackets, at most limit from each end of a dimension. */
void muster_print_values (GString *text, const MusterTensor *x, gint64 limit, gboolean ends);

G_END_DECLS
