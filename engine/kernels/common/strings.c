// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/common/strings.h"

#include <string.h>

/* The maximum number of bytes of a string in an error. */
#define MAX_QUOTED 4096

gboolean
muster_strings_begin (MusterStrings *self, MusterKernel *k, int n_dims, const gint64 *dims,
                      GError **error)
{
  self->text = (MusterText)MUSTER_TEXT_INIT (k);
  return muster_result_begin (&self->result, k, MUSTER_STRING, n_dims, dims, error);
}

gboolean
muster_strings_begin_like (MusterStrings *self, MusterKernel *k, const MusterTensor *like,
                           GError **error)
{
  return muster_strings_begin (self, k, muster_tensor_n_dims (like), muster_tensor_dims (like),
                               error);
}

/* Until muster_strings_end (), data is an offset into the text, because the text may be
 * reallocated. */
void
muster_strings_close (MusterStrings *self, gint64 i)
{
  self->result.strings[i] =
      (MusterString){GSIZE_TO_POINTER (self->closed), self->text.size - self->closed};
  self->closed = self->text.size;
}

void
muster_strings_put (MusterStrings *self, gint64 i, const char *data, gsize size)
{
  muster_text_append (&self->text, data, size);
  muster_strings_close (self, i);
}

gboolean
muster_strings_end (MusterStrings *self, MusterKernel *k, int i, GError **error)
{
  MusterString *strings = self->result.strings;
  if (!muster_text_check (&self->text, error))
    return FALSE;
  for (gint64 j = 0; j < self->result.n; j++)
    strings[j].data =
        strings[j].size > 0 ? self->text.data + GPOINTER_TO_SIZE (strings[j].data) : NULL;
  return muster_result_end (&self->result, k, i, error);
}

void
muster_strings_clear (MusterStrings *self)
{
  muster_result_clear (&self->result);
  muster_text_clear (&self->text);
}

char *
muster_string_text (MusterString string)
{
  return g_utf8_make_valid (string.data != NULL ? string.data : "",
                            (gssize)MIN (string.size, MAX_QUOTED));
}

char *
muster_kernel_attr_text (MusterKernel *k, const char *name)
{
  char *text = muster_node_string (muster_kernel_node (k), name);
  return text != NULL ? text : g_strdup ("");
}
