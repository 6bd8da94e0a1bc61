// SPDX-License-Identifier: Apache-2.0
#include "base/require_private.h"
#include "graph/tensor.h"
#include "graph/tensor_private.h"

#include <string.h>

/* String tensors for bindings: the texts one behind the other, and where each ends. */

static gboolean
split_texts (GBytes *texts, const gint64 *ends, gsize n_ends, MusterString *strings, GError **error)
{
  gsize size;
  const char *text = g_bytes_get_data (texts, &size);
  gint64 start = 0;
  for (gsize i = 0; i < n_ends; i++) {
    if (ends[i] < start || (guint64)ends[i] > size)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "string %" G_GSIZE_FORMAT " ends at %" G_GINT64_FORMAT
                          ": ends must not decrease, nor exceed the %" G_GSIZE_FORMAT
                          " bytes of the texts",
                          i, ends[i], size);
    strings[i] = (MusterString){text + start, (gsize)(ends[i] - start)};
    start = ends[i];
  }
  return TRUE;
}

MusterTensor *
muster_tensor_new_packed_strings (int n_dims, const gint64 *dims, GBytes *texts, const gint64 *ends,
                                  gsize n_ends, GError **error)
{
  muster_require (error, NULL, texts);
  muster_require_array (error, NULL, dims, n_dims);
  muster_require_array (error, NULL, ends, n_ends);
  const gint64 n = n_dims > MUSTER_MAX_DIMS ? -1 : muster_shape_n_elements (n_dims, dims);
  if (n < 0 || (gsize)n != n_ends) {
    g_autofree char *shape = muster_shape_to_string (CLAMP (n_dims, 0, 16), dims);
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "a string tensor of shape %s can't have %" G_GSIZE_FORMAT " elements", shape,
                 n_ends);
    return NULL;
  }
  g_autofree MusterString *strings = g_new0 (MusterString, n_ends + 1);
  if (!split_texts (texts, ends, n_ends, strings, error))
    return NULL;
  return muster_tensor_try_new_strings (NULL, n_dims, dims, strings, error);
}

GBytes *
muster_tensor_pack_strings (const MusterTensor *self, gint64 **ends, gsize *n_ends)
{
  g_return_val_if_fail (self != NULL && ends != NULL && n_ends != NULL, NULL);
  g_return_val_if_fail (muster_tensor_dtype (self) == MUSTER_STRING, NULL);
  const gsize n = (gsize)muster_tensor_n_elements (self);
  const MusterString *strings = muster_tensor_strings (self);
  GByteArray *texts = g_byte_array_new ();
  *ends = g_new (gint64, n + 1);
  *n_ends = n;
  for (gsize i = 0; i < n; i++) {
    if (strings[i].size > 0)
      g_byte_array_append (texts, (const guint8 *)strings[i].data, (guint)strings[i].size);
    (*ends)[i] = texts->len;
  }
  return g_byte_array_free_to_bytes (texts);
}
