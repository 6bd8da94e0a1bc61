// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/text.h"

G_BEGIN_DECLS

/* A string tensor under construction: the strings are copied as they come, each element at most
 * once; those that aren't put are empty. What is appended to text belongs to the element that is
 * closed next. */
typedef struct {
  MusterResult result;
  MusterText text;
  gsize closed; /* how much of the text has its element */
} MusterStrings;

gboolean muster_strings_begin (MusterStrings *self, MusterKernel *k, int n_dims, const gint64 *dims,
                               GError **error);
gboolean muster_strings_begin_like (MusterStrings *self, MusterKernel *k, const MusterTensor *like,
                                    GError **error);
void muster_strings_close (MusterStrings *self, gint64 i);
void muster_strings_put (MusterStrings *self, gint64 i, const char *data, gsize size);
gboolean muster_strings_end (MusterStrings *self, MusterKernel *k, int i, GError **error);
void muster_strings_clear (MusterStrings *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterStrings, muster_strings_clear)

/* A string as text, valid UTF-8, cut where it is long (transfer full): for errors. */
char *muster_string_text (MusterString string);

/* A text attribute of the node, "" where it isn't there (transfer full). */
char *muster_kernel_attr_text (MusterKernel *k, const char *name);

G_END_DECLS
