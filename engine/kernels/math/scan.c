// SPDX-License-Identifier: Apache-2.0
/* Running sums and products along an axis. */
#include "engine/kernels/common/dispatch.h"
#include "engine/kernels/math/math_op_tables.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* Loops over elements are faster with -O3 than with the default -O2. */
#pragma GCC optimize("O3")

/* One pass over outer × n × inner elements; first is the value of an empty scan. */
typedef struct {
  gint64 outer, n, inner;
  gboolean exclusive, reverse;
} Scan;

typedef void (*ScanFunc) (const Scan *s, const void *px, void *pout);

#define SCAN(name, suffix, T, FIRST, EXPR)                                                         \
  static void name##_##suffix (const Scan *s, const void *px, void *pout)                          \
  {                                                                                                \
    typedef T type G_GNUC_UNUSED;                                                                  \
    const T *x = px;                                                                               \
    T *out = pout;                                                                                 \
    for (gint64 o = 0; o < s->outer; o++)                                                          \
      for (gint64 j = 0; j < s->n; j++) {                                                          \
        const gint64 row = s->reverse ? s->n - 1 - j : j, before = j == 0       ? row              \
                                                                   : s->reverse ? row + 1          \
                                                                                : row - 1;         \
        const T *in = x + (o * s->n + (s->exclusive ? before : row)) * s->inner;                   \
        const T *last = out + (o * s->n + before) * s->inner;                                      \
        T *to = out + (o * s->n + row) * s->inner;                                                 \
        for (gint64 i = 0; i < s->inner; i++) {                                                    \
          const T a = j > 0 ? last[i] : (T)(FIRST);                                                \
          if (s->exclusive && j == 0) {                                                            \
            to[i] = a;                                                                             \
          } else {                                                                                 \
            const T b = in[i];                                                                     \
            to[i] = EXPR;                                                                          \
          }                                                                                        \
        }                                                                                          \
      }                                                                                            \
  }

/* Integers wrap. */
#define SCANS(name, FIRST, OP)                                                                     \
  SCAN (name, f32, float, FIRST, a OP b)                                                           \
  SCAN (name, f64, double, FIRST, a OP b)                                                          \
  SCAN (name, i32, gint32, FIRST, (type)((guint32)a OP (guint32) b))                               \
  SCAN (name, i64, gint64, FIRST, (type)((guint64)a OP (guint64) b))                               \
  SCAN (name, u64, guint64, FIRST, a OP b)                                                         \
  SCAN (name, c64, float complex, FIRST, a OP b)                                                   \
  SCAN (name, c128, double complex, FIRST, a OP b)                                                 \
  static const ScanFunc name##_scans[] = MUSTER_NUMBER_TABLE (name);
SCANS (sum, 0, +)
SCANS (product, 1, *)

/* As in TensorFlow, NaN counts as much as what is before it. */
static double
log_sum (double a, double b)
{
  const double larger = a < b ? b : a, smaller = b < a ? b : a;
  return isinf (larger) && larger < 0 ? larger : larger + log1p (exp (smaller - larger));
}

SCAN (log_sums, f32, float, -INFINITY, (float)log_sum (a, b))
SCAN (log_sums, f64, double, -INFINITY, log_sum (a, b))
static const ScanFunc log_sums_scans[] = MUSTER_FLOAT_TABLE (log_sums);

static gboolean
scan (MusterKernel *k, const ScanFunc *scans, GError **error)
{
  MusterTensor *given = muster_kernel_input (k, 0), *axes = muster_kernel_input (k, 1), *out;
  int n = muster_tensor_n_dims (given), axis = 0;
  g_autoptr (MusterTensor) x = NULL;
  const gint64 *dims = muster_tensor_dims (given);
  if (muster_tensor_n_dims (axes) != 0) {
    g_autofree char *shape = muster_shape_text (axes);
    return muster_invalid (error, "ScanOp: axis must be a scalar, not %s", shape);
  }
  if (muster_int_at (axes, 0) < -n || muster_int_at (axes, 0) >= n)
    return muster_invalid (error,
                           "ScanOp: Expected scan axis in the range [%d, %d), but got "
                           "%" G_GINT64_FORMAT,
                           -n, n, muster_int_at (axes, 0));
  if (!muster_check_axis (muster_int_at (axes, 0), n, &axis, error) ||
      (x = muster_number_input (k, 0, error)) == NULL ||
      (out = muster_number_output (k, 0, n, dims, error)) == NULL)
    return FALSE;
  const Scan s = {.outer = muster_dims_product (dims, 0, axis),
                  .n = dims[axis],
                  .inner = muster_dims_product (dims, axis + 1, n),
                  .exclusive = muster_kernel_attr_bool (k, "exclusive", FALSE),
                  .reverse = muster_kernel_attr_bool (k, "reverse", FALSE)};
  if (muster_tensor_n_elements (x) > 0)
    scans[muster_loop_index (muster_tensor_dtype (x))](&s, muster_tensor_data (x),
                                                       muster_tensor_data_mutable (out));
  return muster_wide_end (k, 0, out, error);
}

static gboolean
compute_sum (MusterKernel *k, GError **error)
{
  return scan (k, sum_scans, error);
}

static gboolean
compute_product (MusterKernel *k, GError **error)
{
  return scan (k, product_scans, error);
}

static gboolean
compute_log_sum (MusterKernel *k, GError **error)
{
  return scan (k, log_sums_scans, error);
}

#define X_AXIS "x:T, axis:Tidx -> out:T"

const MusterOp muster_scan_ops[] = {
    {"Cumsum", X_AXIS, "T:number Tidx:int32|int64 exclusive reverse", compute_sum, 0},
    {"Cumprod", X_AXIS, "T:number Tidx:int32|int64 exclusive reverse", compute_product, 0},
    {"CumulativeLogsumexp", X_AXIS, "T:float Tidx:int32|int64 exclusive reverse", compute_log_sum,
     0},
    {NULL, NULL, NULL, NULL, 0},
};
