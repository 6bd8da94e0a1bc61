// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/text.h"

G_BEGIN_DECLS

/* A string tensor under construction. Strings are copied; each element is set at most once, and
 * unset ones are empty. Text appended to `text` belongs to the element that is closed next. */
typedef struct {
  MusterResult result;
  MusterText text;
  gsize closed; /* bytes of the text that belong to closed elements */
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

/* A string as valid UTF-8, truncated if long (transfer full), for errors. */
char *muster_string_text (MusterString string);

/* A text attribute of the node, "" if absent (transfer full). */
char *muster_kernel_attr_text (MusterKernel *k, const char *name);

G_END_DECLS
