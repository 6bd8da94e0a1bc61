// SPDX-License-Identifier: Apache-2.0
/* Integers as bits. */
#include "engine/kernels/common/broadcast.h"
#include "engine/kernels/math/math_op_tables.h"

#define INTEGER(name, SIGNED, UNSIGNED)                                                            \
  MUSTER_LOOP2 (name, i32, gint32, gint32, (type)(SIGNED))                                         \
  MUSTER_LOOP2 (name, i64, gint64, gint64, (type)(SIGNED))                                         \
  MUSTER_LOOP2 (name, u64, guint64, guint64, UNSIGNED)                                             \
  static const MusterLoop2 name##_loops[MUSTER_N_LOOPS] = {NULL, NULL, name##_i32, name##_i64,     \
                                                           name##_u64};                            \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    return muster_compute2 (k, name##_loops, error);                                               \
  }

INTEGER (compute_both, (a) & (b), (a) & (b))
INTEGER (compute_either, a | b, a | b)
INTEGER (compute_differ, a ^ b, a ^ b)

/* Clamped as in TensorFlow, to between 0 and the number of bits minus one. */
static guint64
shift_of (MusterDType dtype, gint64 by)
{
  const gint64 bits = (gint64)muster_dtype_size (dtype) * 8;
  return (guint64)CLAMP (by, 0, bits - 1);
}

static gboolean
shift (MusterKernel *k, gboolean left, GError **error)
{
  MusterTensor *operands[] = {muster_kernel_input (k, 0), muster_kernel_input (k, 1)}, *out;
  MusterDType dtype = muster_tensor_dtype (operands[0]);
  gsize size = muster_dtype_size (dtype);
  MusterPlace place = {0};
  MusterBroadcast b;
  if (!muster_broadcast_init (&b, operands, 2, error) ||
      (out = muster_kernel_output (k, 0, b.n_dims, b.dims, error)) == NULL)
    return FALSE;
  for (gint64 n = 0; n < b.n; n++) {
    guint64 x = 0, y = 0;
    const guint8 *px =
        (const guint8 *)muster_tensor_data (operands[0]) + (gsize)place.from[0] * size;
    const guint8 *py =
        (const guint8 *)muster_tensor_data (operands[1]) + (gsize)place.from[1] * size;
    /* int32 is its own wide type; here all are 64 bits */
    if (dtype == MUSTER_INT32) {
      x = (guint64)(gint64) * (const gint32 *)px;
      y = (guint64)(gint64) * (const gint32 *)py;
    } else {
      muster_widen (dtype, px, 1, &x);
      muster_widen (dtype, py, 1, &y);
    }
    y = shift_of (dtype, dtype == MUSTER_UINT64 ? (gint64)MIN (y, 64) : (gint64)y);
    x = left ? x << y : dtype == MUSTER_UINT64 ? x >> y : (guint64)((gint64)x >> y);
    if (dtype == MUSTER_INT32)
      ((gint32 *)muster_tensor_data_mutable (out))[n] = (gint32)x;
    else
      muster_narrow (dtype, &x, 1, (guint8 *)muster_tensor_data_mutable (out) + (gsize)n * size);
    muster_broadcast_next (&b, 2, 0, &place);
  }
  return TRUE;
}

static gboolean
compute_left (MusterKernel *k, GError **error)
{
  return shift (k, TRUE, error);
}

static gboolean
compute_right (MusterKernel *k, GError **error)
{
  return shift (k, FALSE, error);
}

static gboolean
compute_invert (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  MusterTensor *out = muster_kernel_output_like (k, 0, x, error);
  if (out == NULL)
    return FALSE;
  for (gsize i = 0; i < muster_tensor_n_bytes (x); i++)
    ((guint8 *)muster_tensor_data_mutable (out))[i] =
        (guint8) ~((const guint8 *)muster_tensor_data (x))[i];
  return TRUE;
}

static gboolean
compute_population_count (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gsize size = muster_dtype_size (muster_tensor_dtype (x));
  const guint8 *data = muster_tensor_data (x);
  MusterTensor *out =
      muster_kernel_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);

  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    int n = 0;
    for (gsize j = 0; j < size; j++)
      n += __builtin_popcount (data[(gsize)i * size + j]);
    ((guint8 *)muster_tensor_data_mutable (out))[i] = (guint8)n;
  }
  return TRUE;
}

#define XY "x:T, y:T -> z:T"

const MusterOp muster_bits_ops[] = {
    {"BitwiseAnd", XY, "T:integer", compute_both, MUSTER_OP_FORWARD},
    {"BitwiseOr", XY, "T:integer", compute_either, MUSTER_OP_FORWARD},
    {"BitwiseXor", XY, "T:integer", compute_differ, MUSTER_OP_FORWARD},
    {"LeftShift", XY, "T:integer", compute_left, 0},
    {"RightShift", XY, "T:integer", compute_right, 0},
    {"Invert", "x:T -> y:T", "T:integer", compute_invert, MUSTER_OP_FORWARD},
    {"PopulationCount", "x:T -> y:uint8", "T:integer", compute_population_count, 0},
    {NULL, NULL, NULL, NULL, 0},
};
