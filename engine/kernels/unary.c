// SPDX-License-Identifier: Apache-2.0
/* Functions of one tensor, and casts. */
#include "engine/kernels/broadcast.h"

#include <string.h>
#include <tgmath.h>

/* Loops over elements: worth more than the room's -O2. */
#pragma GCC optimize("O3")

#define FLOATING_LOOPS(name, EXPR)                                                                 \
  MUSTER_LOOP1 (name, f32, float, float, EXPR) MUSTER_LOOP1 (name, f64, double, double, EXPR)
#define FLOATING(name, EXPR)                                                                       \
  FLOATING_LOOPS (name, EXPR)                                                                      \
  static gboolean compute_##name (MusterKernel *k, GError **error)                                 \
  {                                                                                                \
    static const MusterLoop1 loops[] = MUSTER_FLOAT_TABLE (name);                                  \
    return muster_compute1 (k, loops, error);                                                      \
  }
#define NUMBER(name, F, SIGNED, UNSIGNED)                                                          \
  FLOATING_LOOPS (name, F)                                                                         \
  MUSTER_LOOP1 (name, i32, gint32, gint32, (type)(SIGNED))                                         \
  MUSTER_LOOP1 (name, i64, gint64, gint64, (type)(SIGNED))                                         \
  MUSTER_LOOP1 (name, u64, guint64, guint64, UNSIGNED)                                             \
  static gboolean compute_##name (MusterKernel *k, GError **error)                                 \
  {                                                                                                \
    static const MusterLoop1 loops[] = MUSTER_WIDE_TABLE (name);                                   \
    return muster_compute1 (k, loops, error);                                                      \
  }
#define QUESTION(name, F)                                                                          \
  MUSTER_LOOP1 (name, f32, float, guint8, F)                                                       \
  MUSTER_LOOP1 (name, f64, double, guint8, F)                                                      \
  static gboolean compute_##name (MusterKernel *k, GError **error)                                 \
  {                                                                                                \
    static const MusterLoop1 loops[] = MUSTER_FLOAT_TABLE (name);                                  \
    return muster_compute1 (k, loops, error);                                                      \
  }

NUMBER (neg, -a, 0 - (guint64)a, 0 - a)
NUMBER (absolute, fabs (a), a < 0 ? 0 - (guint64)a : (guint64)a, a)
NUMBER (sign, a > 0 ? 1 : a < 0 ? -1 : a, a > 0 ? 1 : a < 0 ? -1 : 0, a > 0)
NUMBER (square, a *a, (guint64)a *(guint64)a, a *a)
NUMBER (relu, a > 0 ? a : (a == a ? 0 : a), a > 0 ? a : 0, a)
NUMBER (relu6, a<0 ? 0 : a> 6 ? 6 : a, a<0 ? 0 : a> 6 ? 6 : a, MIN (a, 6))
FLOATING (root, sqrt (a))
FLOATING (rsqrt, 1 / sqrt (a))
FLOATING (reciprocal, 1 / a)
FLOATING (exponential, exp (a))
FLOATING (expm1_, expm1 (a))
FLOATING (logarithm, log (a))
FLOATING (log1p_, log1p (a))
FLOATING (tanh_, tanh (a))
FLOATING (sigmoid, 1 / (1 + exp (-a)))
FLOATING (sine, sin (a))
FLOATING (cosine, cos (a))
FLOATING (tangent, tan (a))
FLOATING (arc_sine, asin (a))
FLOATING (arc_cosine, acos (a))
FLOATING (arc_tangent, atan (a))
FLOATING (sinh_, sinh (a))
FLOATING (cosh_, cosh (a))
FLOATING (asinh_, asinh (a))
FLOATING (acosh_, acosh (a))
FLOATING (atanh_, atanh (a))
FLOATING (erf_, erf (a))
FLOATING (erfc_, erfc (a))
FLOATING (lgamma_, lgamma (a))
FLOATING (floor_, floor (a))
FLOATING (ceil_, ceil (a))
FLOATING (rint_, rint (a))
FLOATING (elu, a < 0 ? expm1 (a) : a)
FLOATING (selu, (type)1.0507009873554804934193349852946 *
                    (a < 0 ? (type)1.6732632423543772848170429916717 * expm1 (a) : a))
FLOATING (softplus, a > 20 ? a : log1p (exp (a)))
FLOATING (softsign, a / (1 + fabs (a)))
FLOATING (leaky_relu, a > 0 ? a : a * (type)0.2f)
QUESTION (is_nan, isnan (a))
QUESTION (is_inf, isinf (a) != 0)
QUESTION (is_finite, isfinite (a))
NUMBER (round_, rint (a), a, a)

static gboolean
compute_logical_not (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *y = muster_kernel_output_like (k, 0, x, error);

  if (y == NULL)
    return FALSE;
  const guint8 *from = muster_tensor_data (x);
  guint8 *to = muster_tensor_data_mutable (y);

  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++)
    to[i] = !from[i];
  return TRUE;
}

/* Any slope but the usual one. */
static gboolean
compute_leaky (MusterKernel *k, GError **error)
{
  float alpha = muster_kernel_attr_float (k, "alpha", 0.2f);
  g_autoptr (MusterTensor) x = NULL;
  MusterTensor *y;

  if (alpha == 0.2f)
    return compute_leaky_relu (k, error);
  x = muster_wide_input (k, 0, error);
  y = x == NULL
          ? NULL
          : muster_wide_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (y == NULL)
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    if (muster_tensor_dtype (x) == MUSTER_DOUBLE) {
      double a = ((const double *)muster_tensor_data (x))[i];
      ((double *)muster_tensor_data_mutable (y))[i] = a > 0 ? a : a * alpha;
    } else {
      float a = ((const float *)muster_tensor_data (x))[i];
      ((float *)muster_tensor_data_mutable (y))[i] = a > 0 ? a : a * alpha;
    }
  }
  return muster_wide_end (k, 0, y, error);
}

/* Casts go from wide type to wide type; what is narrower is widened before and cut after, which
 * wraps as a cast does. */
static gint64
to_int64 (double value)
{
  if (value >= -9223372036854775808.0 && value < 9223372036854775808.0)
    return (gint64)value;
  return G_MININT64; /* what the processor gives for a number that doesn't fit, and for NaN */
}

static gint32
to_int32 (double value)
{
  return value > -2147483649.0 && value < 2147483648.0 ? (gint32)value : G_MININT32;
}

static guint64
to_uint64 (double value)
{
  if (value >= 9223372036854775808.0 && value < 18446744073709551616.0)
    return (guint64)(value - 9223372036854775808.0) + ((guint64)1 << 63);
  return (guint64)to_int64 (value);
}

#define SAME(x) (x)
#define CAST(from, From, to, To, convert)                                                          \
  static void cast_##from##_##to (gint64 n, const void *x, void *out)                              \
  {                                                                                                \
    MUSTER_IVDEP                                                                                   \
    for (gint64 i = 0; i < n; i++)                                                                 \
      ((To *)out)[i] = (To)convert (((const From *)x)[i]);                                         \
  }
#define CASTS(from, From, to_i32, to_i64, to_u64)                                                  \
  CAST (from, From, f32, float, SAME)                                                              \
  CAST (from, From, f64, double, SAME)                                                             \
  CAST (from, From, i32, gint32, to_i32)                                                           \
  CAST (from, From, i64, gint64, to_i64)                                                           \
  CAST (from, From, u64, guint64, to_u64)

CASTS (f32, float, to_int32, to_int64, to_uint64)
CASTS (f64, double, to_int32, to_int64, to_uint64)
CASTS (i32, gint32, SAME, SAME, SAME)
CASTS (i64, gint64, SAME, SAME, SAME)
CASTS (u64, guint64, SAME, SAME, SAME)

static const MusterLoop1 casts[MUSTER_N_WIDE][MUSTER_N_WIDE] = {
    MUSTER_WIDE_TABLE (cast_f32), MUSTER_WIDE_TABLE (cast_f64), MUSTER_WIDE_TABLE (cast_i32),
    MUSTER_WIDE_TABLE (cast_i64), MUSTER_WIDE_TABLE (cast_u64),
};

#define TRUTH(suffix, T) MUSTER_LOOP1 (truth, suffix, T, gint64, a != 0)
MUSTER_WIDE_TYPES (TRUTH)
static const MusterLoop1 truths[] = MUSTER_WIDE_TABLE (truth);

#define CAST_BLOCK 256

static void
cast_elements (MusterDType from, const guint8 *x, MusterDType to, guint8 *out, gint64 n)
{
  MusterWide wide_from = muster_wide (from), wide_to = muster_wide (to);
  MusterLoop1 loop = to == MUSTER_BOOL ? truths[wide_from] : casts[wide_from][wide_to];
  gint64 a[CAST_BLOCK], b[CAST_BLOCK];

  for (gint64 done = 0; done < n; done += CAST_BLOCK) {
    gint64 m = MIN (CAST_BLOCK, n - done);
    muster_widen (from, x + done * muster_dtype_size (from), m, a);
    loop (m, a, b);
    muster_narrow (to, b, m, out + done * muster_dtype_size (to));
  }
}

static gboolean
compute_cast (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *y;
  MusterDType from = muster_tensor_dtype (x), to = muster_kernel_output_dtype (k, 0);

  if (from == to) {
    muster_kernel_set_output (k, 0, muster_tensor_ref (x));
    return TRUE;
  }
  if (muster_wide (from) == MUSTER_N_WIDE || muster_wide (to) == MUSTER_N_WIDE) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED, "Cast %s to %s is not supported",
                 muster_dtype_name (from), muster_dtype_name (to));
    return FALSE;
  }
  y = muster_kernel_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (y == NULL)
    return FALSE;
  if (muster_dtype_is_wide (from) && muster_dtype_is_wide (to))
    casts[muster_wide (from)][muster_wide (to)](
        muster_tensor_n_elements (x), muster_tensor_data (x), muster_tensor_data_mutable (y));
  else
    cast_elements (from, muster_tensor_data (x), to, muster_tensor_data_mutable (y),
                   muster_tensor_n_elements (x));
  return TRUE;
}

#define F        MUSTER_OP_FORWARD
#define XY       "x:T -> y:T"
#define FEATURES "features:T -> activations:T"
#define ASKS     "x:T -> y:bool"

const MusterOp muster_unary_ops[] = {
    {"Neg", XY, "T:number", compute_neg, F},
    {"Abs", XY, "T:number", compute_absolute, F},
    {"Sign", XY, "T:number", compute_sign, F},
    {"Square", XY, "T:number", compute_square, F},
    {"Sqrt", XY, "T:float", compute_root, F},
    {"Rsqrt", XY, "T:float", compute_rsqrt, F},
    {"Reciprocal", XY, "T:float", compute_reciprocal, F},
    {"Inv", XY, "T:float", compute_reciprocal, F},
    {"Exp", XY, "T:float", compute_exponential, F},
    {"Expm1", XY, "T:float", compute_expm1_, F},
    {"Log", XY, "T:float", compute_logarithm, F},
    {"Log1p", XY, "T:float", compute_log1p_, F},
    {"Tanh", XY, "T:float", compute_tanh_, F},
    {"Sigmoid", XY, "T:float", compute_sigmoid, F},
    {"Sin", XY, "T:float", compute_sine, F},
    {"Cos", XY, "T:float", compute_cosine, F},
    {"Tan", XY, "T:float", compute_tangent, F},
    {"Asin", XY, "T:float", compute_arc_sine, F},
    {"Acos", XY, "T:float", compute_arc_cosine, F},
    {"Atan", XY, "T:float", compute_arc_tangent, F},
    {"Sinh", XY, "T:float", compute_sinh_, F},
    {"Cosh", XY, "T:float", compute_cosh_, F},
    {"Asinh", XY, "T:float", compute_asinh_, F},
    {"Acosh", XY, "T:float", compute_acosh_, F},
    {"Atanh", XY, "T:float", compute_atanh_, F},
    {"Erf", XY, "T:float", compute_erf_, F},
    {"Erfc", XY, "T:float", compute_erfc_, F},
    {"Lgamma", XY, "T:float", compute_lgamma_, F},
    {"Floor", XY, "T:float", compute_floor_, F},
    {"Ceil", XY, "T:float", compute_ceil_, F},
    {"Rint", XY, "T:float", compute_rint_, F},
    {"Round", XY, "T:number", compute_round_, F},
    {"IsNan", ASKS, "T:float", compute_is_nan, 0},
    {"IsInf", ASKS, "T:float", compute_is_inf, 0},
    {"IsFinite", ASKS, "T:float", compute_is_finite, 0},
    {"LogicalNot", "x:bool -> y:bool", "", compute_logical_not, F},
    {"Relu", FEATURES, "T:real", compute_relu, F},
    {"Relu6", FEATURES, "T:real", compute_relu6, F},
    {"LeakyRelu", FEATURES, "T:float", compute_leaky, F},
    {"Elu", FEATURES, "T:float", compute_elu, F},
    {"Selu", FEATURES, "T:float", compute_selu, F},
    {"Softplus", FEATURES, "T:float", compute_softplus, F},
    {"Softsign", FEATURES, "T:float", compute_softsign, F},
    {"Cast", "x:SrcT -> y:DstT", "SrcT:any DstT:any", compute_cast, 0},
    {NULL, NULL, NULL, NULL, 0},
};
