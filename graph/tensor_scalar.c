// SPDX-License-Identifier: Apache-2.0
#include "base/require_private.h"
#include "graph/tensor.h"
#include "graph/tensor_private.h"

#include <string.h>

/* The value of a tensor that has only one. */

static gboolean
refuse_tensor (const MusterTensor *self, const char *wanted, GError **error)
{
  g_autofree char *shape =
      muster_shape_to_string (muster_tensor_n_dims (self), muster_tensor_dims (self));
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "a tensor of type '%s' and shape %s is not a single %s",
                      muster_dtype_name (muster_tensor_dtype (self)), shape, wanted);
}

#define READ(TYPE, type)                                                                           \
  case TYPE:                                                                                       \
    *value = *(const type *)data;                                                                  \
    return TRUE

static gboolean
read_integer (MusterDType dtype, const void *data, gint64 *value)
{
  switch (dtype) {
    READ (MUSTER_INT8, gint8);
    READ (MUSTER_INT16, gint16);
    READ (MUSTER_INT32, gint32);
    READ (MUSTER_INT64, gint64);
    READ (MUSTER_UINT8, guint8);
    READ (MUSTER_UINT16, guint16);
    READ (MUSTER_UINT32, guint32);
  case MUSTER_UINT64:
    *value = (gint64) * (const guint64 *)data;
    return *value >= 0;
  case MUSTER_BOOL:
    *value = *(const guint8 *)data != 0;
    return TRUE;
  default:
    return FALSE;
  }
}

static gboolean
read_real (MusterDType dtype, const void *data, double *value)
{
  gint64 integer;
  switch (dtype) {
    READ (MUSTER_FLOAT, float);
    READ (MUSTER_DOUBLE, double);
  case MUSTER_UINT64:
    *value = (double)*(const guint64 *)data;
    return TRUE;
  case MUSTER_HALF:
    *value = (double)muster_half_to_float (*(const guint16 *)data);
    return TRUE;
  case MUSTER_BFLOAT16:
    *value = (double)muster_bfloat16_to_float (*(const guint16 *)data);
    return TRUE;
  default:
    if (!read_integer (dtype, data, &integer))
      return FALSE;
    *value = (double)integer;
    return TRUE;
  }
}

gboolean
muster_tensor_get_int64 (const MusterTensor *self, gint64 *value, GError **error)
{
  muster_require (error, FALSE, self, value);
  gint64 read;
  if (muster_tensor_n_elements (self) != 1 ||
      !read_integer (muster_tensor_dtype (self), muster_tensor_data (self), &read))
    return refuse_tensor (self, "integer that fits an int64", error);
  *value = read;
  return TRUE;
}

gboolean
muster_tensor_get_double (const MusterTensor *self, double *value, GError **error)
{
  muster_require (error, FALSE, self, value);
  double read;
  if (muster_tensor_n_elements (self) != 1 ||
      !read_real (muster_tensor_dtype (self), muster_tensor_data (self), &read))
    return refuse_tensor (self, "real number", error);
  *value = read;
  return TRUE;
}

gboolean
muster_tensor_get_string (const MusterTensor *self, char **value, GError **error)
{
  muster_require (error, FALSE, self, value);
  if (muster_tensor_dtype (self) != MUSTER_STRING || muster_tensor_n_elements (self) != 1)
    return refuse_tensor (self, "string", error);
  const MusterString string = muster_tensor_string (self, 0);
  if (string.size > 0 && memchr (string.data, '\0', string.size) != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the string contains a NUL");
  *value = g_strndup (string.data, string.size);
  return TRUE;
}

/* --- strings one by one --- */

MusterTensor *
muster_tensor_new_byte_strings (int n_dims, const gint64 *dims, GPtrArray *strings, GError **error)
{
  muster_require (error, NULL, strings);
  muster_require_array (error, NULL, dims, n_dims);
  const gint64 n = muster_shape_n_elements (n_dims, dims);
  if (n != (gint64)strings->len) {
    g_autofree char *shape = muster_shape_to_string (n_dims, dims);
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%u strings don't fit the shape %s",
                 strings->len, shape);
    return NULL;
  }
  g_autofree MusterString *table = g_new (MusterString, MAX (n, 1));
  for (gint64 i = 0; i < n; i++)
    table[i].data = g_bytes_get_data (strings->pdata[i], &table[i].size);
  return muster_tensor_try_new_strings (NULL, n_dims, dims, table, error);
}

GBytes *
muster_tensor_string_bytes (const MusterTensor *self, gint64 i, GError **error)
{
  muster_require (error, NULL, self);
  if (muster_tensor_dtype (self) != MUSTER_STRING || i < 0 ||
      i >= muster_tensor_n_elements (self)) {
    g_autofree char *wanted =
        g_strdup_printf ("list of strings with an element %" G_GINT64_FORMAT, i);
    refuse_tensor (self, wanted, error);
    return NULL;
  }
  const MusterString string = muster_tensor_string (self, i);
  return g_bytes_new (string.data, string.size);
}
