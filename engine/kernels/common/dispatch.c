// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/common/dispatch.h"
#include "graph/tensor_private.h"

#include <stdarg.h>
#include <string.h>

MusterWide
muster_wide (MusterDType dtype)
{
  switch (dtype) {
  case MUSTER_FLOAT:
  case MUSTER_HALF:
  case MUSTER_BFLOAT16:
    return MUSTER_F32;
  case MUSTER_DOUBLE:
    return MUSTER_F64;
  case MUSTER_INT32:
    return MUSTER_I32;
  case MUSTER_BOOL:
  case MUSTER_INT8:
  case MUSTER_UINT8:
  case MUSTER_INT16:
  case MUSTER_UINT16:
  case MUSTER_UINT32:
  case MUSTER_INT64:
    return MUSTER_I64;
  case MUSTER_UINT64:
    return MUSTER_U64;
  default:
    return MUSTER_N_WIDE;
  }
}

gboolean
muster_dtype_is_complex (MusterDType dtype)
{
  return dtype == MUSTER_COMPLEX64 || dtype == MUSTER_COMPLEX128;
}

MusterDType
muster_complex_part (MusterDType dtype)
{
  return dtype == MUSTER_COMPLEX64 ? MUSTER_FLOAT : MUSTER_DOUBLE;
}

MusterWide
muster_loop_index (MusterDType dtype)
{
  if (dtype == MUSTER_COMPLEX64)
    return MUSTER_C64;
  return dtype == MUSTER_COMPLEX128 ? MUSTER_C128 : muster_wide (dtype);
}

static MusterDType
wide_dtype (MusterWide wide)
{
  static const MusterDType dtypes[] = {MUSTER_FLOAT, MUSTER_DOUBLE, MUSTER_INT32,
                                       MUSTER_INT64, MUSTER_UINT64, MUSTER_INVALID};
  return dtypes[wide];
}

gboolean
muster_dtype_is_wide (MusterDType dtype)
{
  return dtype != MUSTER_INVALID && wide_dtype (muster_wide (dtype)) == dtype;
}

#define WIDEN(dtype_, from_type, to_type, convert)                                                 \
  case dtype_:                                                                                     \
    for (gint64 i = 0; i < n; i++)                                                                 \
      ((to_type *)to)[i] = convert (((const from_type *)from)[i]);                                 \
    return;
#define SAME(x) (x)

void
muster_widen (MusterDType dtype, const void *from, gint64 n, void *to)
{
  switch (dtype) {
    WIDEN (MUSTER_HALF, guint16, float, muster_half_to_float)
    WIDEN (MUSTER_BFLOAT16, guint16, float, muster_bfloat16_to_float)
    WIDEN (MUSTER_BOOL, guint8, gint64, !!)
    WIDEN (MUSTER_INT8, gint8, gint64, SAME)
    WIDEN (MUSTER_UINT8, guint8, gint64, SAME)
    WIDEN (MUSTER_INT16, gint16, gint64, SAME)
    WIDEN (MUSTER_UINT16, guint16, gint64, SAME)
    WIDEN (MUSTER_UINT32, guint32, gint64, SAME)
  default:
    if (n > 0)
      memcpy (to, from, (gsize)n * muster_dtype_size (dtype));
  }
}

void
muster_narrow (MusterDType dtype, const void *from, gint64 n, void *to)
{
  switch (dtype) {
    WIDEN (MUSTER_HALF, float, guint16, muster_half_from_float)
    WIDEN (MUSTER_BFLOAT16, float, guint16, muster_bfloat16_from_float)
    WIDEN (MUSTER_BOOL, gint64, guint8, !!)
    WIDEN (MUSTER_INT8, gint64, gint8, (gint8))
    WIDEN (MUSTER_UINT8, gint64, guint8, (guint8))
    WIDEN (MUSTER_INT16, gint64, gint16, (gint16))
    WIDEN (MUSTER_UINT16, gint64, guint16, (guint16))
    WIDEN (MUSTER_UINT32, gint64, guint32, (guint32))
  default:
    if (n > 0)
      memcpy (to, from, (gsize)n * muster_dtype_size (dtype));
  }
}

MusterTensor *
muster_wide_input (MusterKernel *k, int i, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, i);
  MusterDType dtype = muster_tensor_dtype (x);
  MusterWide wide = muster_wide (dtype);
  MusterTensor *y;
  if (wide == MUSTER_N_WIDE) {
    muster_invalid (error, "Arithmetic isn't supported for dtype %s", muster_dtype_name (dtype));
    return NULL;
  }
  if (muster_dtype_is_wide (dtype))
    return muster_tensor_ref (x);

  y = muster_kernel_temporary (k, wide_dtype (wide), muster_tensor_n_dims (x),
                               muster_tensor_dims (x), error);
  if (y != NULL)
    muster_widen (dtype, muster_tensor_data (x), muster_tensor_n_elements (x),
                  muster_tensor_data_mutable (y));
  return y;
}

MusterTensor *
muster_wide_output (MusterKernel *k, int i, int n_dims, const gint64 *dims, GError **error)
{
  MusterDType dtype = muster_kernel_output_dtype (k, i);
  MusterWide wide = muster_wide (dtype);
  if (wide == MUSTER_N_WIDE) {
    muster_invalid (error, "Arithmetic isn't supported for dtype %s", muster_dtype_name (dtype));
    return NULL;
  }
  return muster_kernel_temporary (k, wide_dtype (wide), n_dims, dims, error);
}

gboolean
muster_wide_end (MusterKernel *k, int i, MusterTensor *wide, GError **error)
{
  MusterDType dtype = muster_kernel_output_dtype (k, i);
  g_autoptr (MusterTensor) x = wide;
  MusterTensor *y;
  if (dtype == muster_tensor_dtype (x)) {
    muster_kernel_set_output (k, i, g_steal_pointer (&x));
    return TRUE;
  }
  y = muster_kernel_output (k, i, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (y == NULL)
    return FALSE;
  muster_narrow (dtype, muster_tensor_data (x), muster_tensor_n_elements (x),
                 muster_tensor_data_mutable (y));
  return TRUE;
}

MusterTensor *
muster_number_input (MusterKernel *k, int i, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, i);
  if (muster_dtype_is_complex (muster_tensor_dtype (x)))
    return muster_tensor_ref (x);
  return muster_wide_input (k, i, error);
}

MusterTensor *
muster_number_output (MusterKernel *k, int i, int n_dims, const gint64 *dims, GError **error)
{
  MusterDType dtype = muster_kernel_output_dtype (k, i);
  if (muster_dtype_is_complex (dtype))
    return muster_kernel_temporary (k, dtype, n_dims, dims, error);
  return muster_wide_output (k, i, n_dims, dims, error);
}

MusterElements
muster_elements (const MusterTensor *tensor)
{
  const MusterDType dtype = muster_tensor_dtype (tensor);
  if (dtype == MUSTER_STRING)
    return (MusterElements){(const guint8 *)muster_tensor_strings (tensor), sizeof (MusterString)};
  return (MusterElements){muster_tensor_data (tensor), muster_dtype_size (dtype)};
}

gboolean
muster_result_begin (MusterResult *self, MusterKernel *k, MusterDType dtype, int n_dims,
                     const gint64 *dims, GError **error)
{
  if (!muster_result_begin_unset (self, k, dtype, n_dims, dims, error))
    return FALSE;
  if (self->tensor != NULL && self->n > 0)
    memset (self->data, 0, (gsize)self->n * self->size);
  return TRUE;
}

gboolean
muster_result_begin_unset (MusterResult *self, MusterKernel *k, MusterDType dtype, int n_dims,
                           const gint64 *dims, GError **error)
{
  memset (self, 0, sizeof *self);
  if (n_dims > MUSTER_MAX_DIMS)
    return muster_invalid (error, "A tensor of %d dimensions is more than %d", n_dims,
                           MUSTER_MAX_DIMS);
  self->dtype = dtype;
  self->n_dims = n_dims;
  if (n_dims > 0)
    memcpy (self->dims, dims, n_dims * sizeof *dims);
  self->n = muster_shape_n_elements (n_dims, dims);

  if (dtype == MUSTER_STRING) {
    self->size = sizeof (MusterString);
    if (self->n < 0)
      return muster_invalid (error, "The shape has a negative size or too many elements");
    self->strings = muster_kernel_alloc0 (k, self->n, self->size, error);
    self->data = (guint8 *)self->strings;
    return self->strings != NULL;
  }
  self->size = muster_dtype_size (dtype);
  self->tensor = muster_kernel_temporary (k, dtype, n_dims, dims, error);
  if (self->tensor == NULL)
    return FALSE;
  self->data = muster_tensor_data_mutable (self->tensor);
  return TRUE;
}

MusterTensor *
muster_result_end_tensor (MusterResult *self, MusterKernel *k, GError **error)
{
  MusterTensor *tensor = g_steal_pointer (&self->tensor);
  if (tensor == NULL)
    tensor = muster_tensor_try_new_strings (muster_kernel_budget (k), self->n_dims, self->dims,
                                            self->strings, error);
  muster_result_clear (self);
  return tensor;
}

gboolean
muster_result_end (MusterResult *self, MusterKernel *k, int i, GError **error)
{
  MusterTensor *tensor = muster_result_end_tensor (self, k, error);
  if (tensor == NULL)
    return FALSE;
  muster_kernel_set_output (k, i, tensor);
  return TRUE;
}

void
muster_result_clear (MusterResult *self)
{
  g_clear_pointer (&self->tensor, muster_tensor_unref);
  g_clear_pointer (&self->strings, g_free);
}

gboolean
muster_invalid (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  if (error != NULL)
    *error = g_error_new_valist (MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, format, args);
  va_end (args);
  return FALSE;
}

char *
muster_shape_text (const MusterTensor *tensor)
{
  return muster_shape_to_string (muster_tensor_n_dims (tensor), muster_tensor_dims (tensor));
}

void
muster_make_bools (MusterTensor *tensor)
{
  guint8 *data = muster_tensor_data_mutable (tensor);
  if (muster_tensor_dtype (tensor) == MUSTER_BOOL)
    for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++)
      data[i] = data[i] != 0;
}

gboolean
muster_same_shape (const MusterTensor *a, const MusterTensor *b)
{
  int n = muster_tensor_n_dims (a);
  return n == muster_tensor_n_dims (b) &&
         (n == 0 ||
          memcmp (muster_tensor_dims (a), muster_tensor_dims (b), n * sizeof (gint64)) == 0);
}

gboolean
muster_change_strings (MusterKernel *k, MusterVariable *variable,
                       gboolean (*change) (MusterTensor *value, guint8 *strings, gpointer user_data,
                                           GError **error),
                       gpointer user_data, GError **error)
{
  for (;;) {
    g_autoptr (MusterTensor) old = muster_variable_read (variable), changed = NULL;
    g_auto (MusterResult) result = {0};
    if (old == NULL) {
      muster_variable_set_not_updated (variable, error);
      return FALSE;
    }
    if (!muster_result_begin (&result, k, MUSTER_STRING, muster_tensor_n_dims (old),
                              muster_tensor_dims (old), error))
      return FALSE;
    if (result.n > 0)
      memcpy (result.data, muster_elements (old).data, (gsize)result.n * result.size);
    if (!change (old, result.data, user_data, error) ||
        (changed = muster_result_end_tensor (&result, k, error)) == NULL)
      return FALSE;
    if (muster_variable_replace (variable, old, changed))
      return TRUE;
  }
}

static gboolean
check_rank (MusterKernel *k, int i, int n_dims, const char *name, const char *kind, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, i);
  if (muster_tensor_n_dims (x) == n_dims)
    return TRUE;
  g_autofree char *shape = muster_shape_text (x);
  return muster_invalid (error, "%s must be a %s, got shape %s", name, kind, shape);
}

gboolean
muster_check_scalar (MusterKernel *k, int i, const char *name, GError **error)
{
  return check_rank (k, i, 0, name, "scalar", error);
}

gboolean
muster_check_one (MusterKernel *k, int i, const char *name, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, i);
  return (muster_tensor_n_elements (x) == 1 && muster_tensor_n_dims (x) == 1) ||
         muster_check_scalar (k, i, name, error);
}

gboolean
muster_check_vector (MusterKernel *k, int i, const char *name, GError **error)
{
  return check_rank (k, i, 1, name, "vector", error);
}

gboolean
muster_check_axis (gint64 axis, int n_dims, int *result, GError **error)
{
  if (axis < -(gint64)n_dims || axis >= n_dims)
    return muster_invalid (
        error, "Invalid dimension (%" G_GINT64_FORMAT "): expected to be in the range [%d, %d)",
        axis, -n_dims, n_dims);
  *result = (int)(axis < 0 ? axis + n_dims : axis);
  return TRUE;
}

gint64
muster_int_at (const MusterTensor *tensor, gint64 i)
{
  const MusterInts ints = muster_ints (tensor);
  return muster_ints_at (&ints, i);
}

MusterInts
muster_ints (const MusterTensor *tensor)
{
  const void *data = muster_tensor_data (tensor);
  switch (muster_tensor_dtype (tensor)) {
  case MUSTER_INT64:
    return (MusterInts){.wide = data};
  case MUSTER_INT32:
    return (MusterInts){.narrow = data};
  case MUSTER_INT16:
    return (MusterInts){.shorts = data};
  case MUSTER_INT8:
    return (MusterInts){.bytes = data};
  default:
    return (MusterInts){.unsigned_bytes = data};
  }
}

void
muster_put_int (MusterTensor *tensor, gint64 i, gint64 value)
{
  void *data = muster_tensor_data_mutable (tensor);
  if (muster_tensor_dtype (tensor) == MUSTER_INT64)
    ((gint64 *)data)[i] = value;
  else if (muster_tensor_dtype (tensor) == MUSTER_INT32)
    ((gint32 *)data)[i] = (gint32)value;
  else
    ((gint16 *)data)[i] = (gint16)value;
}

double
muster_double_at (const MusterTensor *wide, gint64 i)
{
  const void *data = muster_tensor_data (wide);
  switch (muster_tensor_dtype (wide)) {
  case MUSTER_FLOAT:
    return ((const float *)data)[i];
  case MUSTER_DOUBLE:
    return ((const double *)data)[i];
  case MUSTER_UINT64:
    return (double)((const guint64 *)data)[i];
  default:
    return (double)muster_int_at (wide, i);
  }
}

gboolean
muster_check_variable_dtype (MusterVariable *variable, MusterDType dtype, GError **error)
{
  if (muster_variable_dtype (variable) == dtype)
    return TRUE;
  return muster_invalid (
      error, "Trying to access variable '%s' with wrong dtype. Expected %s got %s",
      muster_variable_name (variable), muster_dtype_name (muster_variable_dtype (variable)),
      muster_dtype_name (dtype));
}

gint64
muster_dims_product (const gint64 *dims, int from, int to)
{
  gint64 n = 1;
  for (int i = from; i < to; i++)
    n = (gint64)((guint64)n * (guint64)dims[i]); /* may overflow for an empty tensor */
  return n;
}

gboolean
muster_kernel_may_sort (MusterKernel *k, gint64 n, gsize size, GError **error)
{
  return muster_budget_take_items (muster_kernel_budget (k), (gsize)n, size, error);
}
