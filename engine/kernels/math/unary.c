// SPDX-License-Identifier: Apache-2.0
/* Functions of one tensor, and casts. */
#include "engine/kernels/math/arithmetic.h"
#include "engine/kernels/math/complex.h"
#include "engine/kernels/math/math_op_tables.h"

#include <string.h>
#include <tgmath.h>

/* Loops over elements are faster with -O3 than with the default -O2. */
#pragma GCC optimize("O3")

#define FLOATING_LOOPS(name, EXPR)                                                                 \
  MUSTER_LOOP1 (name, f32, float, float, EXPR) MUSTER_LOOP1 (name, f64, double, double, EXPR)
#define FLOATING(name, EXPR)                                                                       \
  FLOATING_LOOPS (name, EXPR)                                                                      \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    static const MusterLoop1 loops[] = MUSTER_FLOAT_TABLE (name);                                  \
    return muster_compute1 (k, loops, error);                                                      \
  }
#define COMPLEX_LOOPS(name, EXPR)                                                                  \
  MUSTER_LOOP1 (name, c64, float complex, float complex, EXPR)                                     \
  MUSTER_LOOP1 (name, c128, double complex, double complex, EXPR)
/* Also for complex numbers, with a separate formula. */
#define ANALYTIC_BY(name, EXPR, COMPLEX_EXPR)                                                      \
  FLOATING_LOOPS (name, EXPR)                                                                      \
  COMPLEX_LOOPS (name, COMPLEX_EXPR)                                                               \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    static const MusterLoop1 loops[] = MUSTER_ANALYTIC_TABLE (name);                               \
    return muster_compute1 (k, loops, error);                                                      \
  }
#define ANALYTIC(name, EXPR)              ANALYTIC_BY (name, EXPR, EXPR)
#define NUMBER(name, F, SIGNED, UNSIGNED) NUMBER_IN (name, F, SIGNED, UNSIGNED, MUSTER_WIDE_TABLE)
#define NUMBER_IN(name, F, SIGNED, UNSIGNED, TABLE)                                                \
  FLOATING_LOOPS (name, F)                                                                         \
  MUSTER_LOOP1 (name, i32, gint32, gint32, (type)(SIGNED))                                         \
  MUSTER_LOOP1 (name, i64, gint64, gint64, (type)(SIGNED))                                         \
  MUSTER_LOOP1 (name, u64, guint64, guint64, UNSIGNED)                                             \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    static const MusterLoop1 loops[] = TABLE (name);                                               \
    return muster_compute1 (k, loops, error);                                                      \
  }
#define QUESTION(name, F)                                                                          \
  MUSTER_LOOP1 (name, f32, float, guint8, F)                                                       \
  MUSTER_LOOP1 (name, f64, double, guint8, F)                                                      \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    static const MusterLoop1 loops[] = MUSTER_FLOAT_TABLE (name);                                  \
    return muster_compute1 (k, loops, error);                                                      \
  }

#define COMPLEX_NUMBER(name, F, SIGNED, UNSIGNED, COMPLEX_EXPR)                                    \
  COMPLEX_LOOPS (name, COMPLEX_EXPR)                                                               \
  NUMBER_IN (name, F, SIGNED, UNSIGNED, MUSTER_NUMBER_TABLE)

double complex
muster_complex_log1p (double complex a)
{
  double x = creal (a), y = cimag (a);
  if (fabs (x) > 0.5 || fabs (y) > 0.5)
    return clog (1 + a);
  return CMPLX (0.5 * log1p (x * (2 + x) + y * y), atan2 (y, 1 + x));
}

/* C lacks this function too. */
static double complex
complex_expm1 (double complex a)
{
  double x = creal (a), y = cimag (a), half_sine = sin (y / 2);
  return CMPLX (expm1 (x) * cos (y) - 2 * half_sine * half_sine, exp (x) * sin (y));
}

/* The derivative of lgamma: a series for large numbers; smaller ones are shifted up by the
 * recurrence. */
static double
digamma (double x)
{
  static const double terms[] = {1 / 12.,  -1 / 120.,     1 / 252., -1 / 240.,
                                 1 / 132., -691 / 32760., 1 / 12.};
  double sum = 0, power = 1;
  if (x <= 0)
    return x == floor (x) ? NAN : digamma (1 - x) - G_PI / tan (G_PI * (x - floor (x)));
  for (; x < 10; x++)
    sum -= 1 / x;
  for (gsize i = 0; i < G_N_ELEMENTS (terms); i++) {
    power /= x * x;
    sum -= terms[i] * power;
  }
  return log (x) - 0.5 / x + sum;
}

/* zero: the result for a zero; a NaN stays NaN. */
#define SIGN(a, zero) ((a) > 0 ? 1 : (a) < 0 ? -1 : (zero))
/* Clamps to between 0 and 6; a NaN stays NaN. */
#define RELU6(a) ((a) < 0 ? 0 : (a) > 6 ? 6 : (a))

/* Each defines a kernel of that name, and its loops. */
COMPLEX_NUMBER (compute_neg, -a, 0 - (guint64)a, 0 - a, -a)
NUMBER (compute_absolute, fabs (a), a < 0 ? 0 - (guint64)a : (guint64)a, a)
COMPLEX_NUMBER (compute_sign, SIGN (a, a), SIGN (a, 0), a > 0, a == 0 ? 0 : a / cabs (a))
COMPLEX_NUMBER (compute_square, (a) * (a), (guint64)(a) * (guint64)(a), (a) * (a), (a) * (a))
NUMBER (compute_relu, a > 0 ? a : (a == a ? 0 : a), a > 0 ? a : 0, a)
NUMBER (compute_relu6, RELU6 (a), RELU6 (a), MIN (a, 6))
ANALYTIC (compute_root, sqrt (a))
ANALYTIC (compute_rsqrt, 1 / sqrt (a))
ANALYTIC (compute_reciprocal, 1 / a)
ANALYTIC (compute_exponential, exp (a))
ANALYTIC_BY (compute_expm1, expm1 (a), complex_expm1 (a))
ANALYTIC (compute_logarithm, log (a))
ANALYTIC_BY (compute_log1p, log1p (a), muster_complex_log1p (a))
ANALYTIC (compute_tanh, tanh (a))
ANALYTIC (compute_sigmoid, 1 / (1 + exp (-a)))
ANALYTIC (compute_sine, sin (a))
ANALYTIC (compute_cosine, cos (a))
ANALYTIC (compute_tangent, tan (a))
ANALYTIC (compute_arc_sine, asin (a))
ANALYTIC (compute_arc_cosine, acos (a))
ANALYTIC (compute_arc_tangent, atan (a))
ANALYTIC (compute_sinh, sinh (a))
ANALYTIC (compute_cosh, cosh (a))
ANALYTIC (compute_asinh, asinh (a))
ANALYTIC (compute_acosh, acosh (a))
ANALYTIC (compute_atanh, atanh (a))
FLOATING (compute_erf, erf (a))
FLOATING (compute_erfc, erfc (a))
FLOATING (compute_lgamma, lgamma (a))
FLOATING (compute_digamma, digamma (a))
FLOATING (compute_floor, floor (a))
FLOATING (compute_ceil, ceil (a))
FLOATING (compute_rint, rint (a))
FLOATING (compute_elu, a < 0 ? expm1 (a) : a)
FLOATING (compute_selu, (type)1.0507009873554804934193349852946 *
                            (a < 0 ? (type)1.6732632423543772848170429916717 * expm1 (a) : a))
FLOATING (compute_softplus, a > 20 ? a : log1p (exp (a)))
FLOATING (compute_softsign, a / (1 + fabs (a)))
FLOATING (compute_leaky_relu, a > 0 ? a : a * (type)0.2f)
QUESTION (compute_is_nan, isnan (a))
QUESTION (compute_is_inf, isinf (a) != 0)
QUESTION (compute_is_finite, isfinite (a))
NUMBER (compute_round, rint (a), a, a)

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

#define LEAKY_RELU(suffix, T)                                                                      \
  static void leaky_relu_slope_##suffix (gint64 n, const void *px, const void *pvalues,            \
                                         float alpha, void *pout)                                  \
  {                                                                                                \
    const T *x = px, *values = pvalues;                                                            \
    T *out = pout;                                                                                 \
    for (gint64 i = 0; i < n; i++)                                                                 \
      out[i] = x[i] > 0 ? values[i] : values[i] * alpha;                                           \
  }
MUSTER_FLOAT_TYPES (LEAKY_RELU)

void
muster_leaky_relu (MusterTensor *x, MusterTensor *values, float alpha, MusterTensor *out)
{
  (muster_tensor_dtype (x) == MUSTER_DOUBLE ? leaky_relu_slope_f64 : leaky_relu_slope_f32) (
      muster_tensor_n_elements (x), muster_tensor_data (x), muster_tensor_data (values), alpha,
      muster_tensor_data_mutable (out));
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
  muster_leaky_relu (x, x, alpha, y);
  return muster_wide_end (k, 0, y, error);
}

/* Casts go from wide type to wide type; narrower types are widened before and truncated after,
 * which wraps as a C cast does. */
static gint64
to_int64 (double value)
{
  if (value >= -9223372036854775808.0 && value < 9223372036854775808.0)
    return (gint64)value;
  return G_MININT64; /* the processor's result for numbers out of range and NaN */
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

static const MusterLoop1 casts[][MUSTER_N_LOOPS] = {
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

/* A complex number is cast by its real part; a real one gets the imaginary part 0. */
static void
cast_complex (MusterDType from, const guint8 *x, MusterDType to, guint8 *out, gint64 n)
{
  const gboolean is_from = muster_dtype_is_complex (from), is_to = muster_dtype_is_complex (to);
  const MusterDType x_part = is_from ? muster_complex_part (from) : from;
  const MusterDType out_part = is_to ? muster_complex_part (to) : to;
  const gsize x_size = muster_dtype_size (x_part), out_size = muster_dtype_size (out_part);
  const int n_parts = is_from && is_to ? 2 : 1;
  for (gint64 i = 0; i < n; i++) {
    for (int part = 0; part < n_parts; part++)
      cast_elements (x_part, x + (gsize)part * x_size, out_part, out + (gsize)part * out_size, 1);
    if (is_to && !is_from)
      memset (out + out_size, 0, out_size);
    x += muster_dtype_size (from);
    out += muster_dtype_size (to);
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
  if (muster_loop_index (from) == MUSTER_N_WIDE || muster_loop_index (to) == MUSTER_N_WIDE) {
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED, "Cast %s to %s is not supported",
                        muster_dtype_name (from), muster_dtype_name (to));
  }
  y = muster_kernel_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (y == NULL)
    return FALSE;
  if (muster_dtype_is_wide (from) && muster_dtype_is_wide (to))
    casts[muster_wide (from)][muster_wide (to)](
        muster_tensor_n_elements (x), muster_tensor_data (x), muster_tensor_data_mutable (y));
  else if (muster_dtype_is_complex (from) || muster_dtype_is_complex (to))
    cast_complex (from, muster_tensor_data (x), to, muster_tensor_data_mutable (y),
                  muster_tensor_n_elements (x));
  else
    cast_elements (from, muster_tensor_data (x), to, muster_tensor_data_mutable (y),
                   muster_tensor_n_elements (x));
  return TRUE;
}

#define F          MUSTER_OP_FORWARD
#define XY         "x:T -> y:T"
#define FEATURES   "features:T -> activations:T"
#define ASKS       "x:T -> y:bool"
#define ANALYTIC_T "T:float|double|half|bfloat16|complex64|complex128"

const MusterOp muster_unary_ops[] = {
    {"Neg", XY, "T:number", compute_neg, F},
    {"Abs", XY, "T:real", compute_absolute, F},
    {"Sign", XY, "T:number", compute_sign, F},
    {"Square", XY, "T:number", compute_square, F},
    {"Sqrt", XY, ANALYTIC_T, compute_root, F},
    {"Rsqrt", XY, ANALYTIC_T, compute_rsqrt, F},
    {"Reciprocal", XY, ANALYTIC_T, compute_reciprocal, F},
    {"Inv", XY, ANALYTIC_T, compute_reciprocal, F},
    {"Exp", XY, ANALYTIC_T, compute_exponential, F},
    {"Expm1", XY, ANALYTIC_T, compute_expm1, F},
    {"Log", XY, ANALYTIC_T, compute_logarithm, F},
    {"Log1p", XY, ANALYTIC_T, compute_log1p, F},
    {"Tanh", XY, ANALYTIC_T, compute_tanh, F},
    {"Sigmoid", XY, ANALYTIC_T, compute_sigmoid, F},
    {"Sin", XY, ANALYTIC_T, compute_sine, F},
    {"Cos", XY, ANALYTIC_T, compute_cosine, F},
    {"Tan", XY, ANALYTIC_T, compute_tangent, F},
    {"Asin", XY, ANALYTIC_T, compute_arc_sine, F},
    {"Acos", XY, ANALYTIC_T, compute_arc_cosine, F},
    {"Atan", XY, ANALYTIC_T, compute_arc_tangent, F},
    {"Sinh", XY, ANALYTIC_T, compute_sinh, F},
    {"Cosh", XY, ANALYTIC_T, compute_cosh, F},
    {"Asinh", XY, ANALYTIC_T, compute_asinh, F},
    {"Acosh", XY, ANALYTIC_T, compute_acosh, F},
    {"Atanh", XY, ANALYTIC_T, compute_atanh, F},
    {"Erf", XY, "T:float", compute_erf, F},
    {"Erfc", XY, "T:float", compute_erfc, F},
    {"Lgamma", XY, "T:float", compute_lgamma, F},
    {"Digamma", XY, "T:float", compute_digamma, F},
    {"Floor", XY, "T:float", compute_floor, F},
    {"Ceil", XY, "T:float", compute_ceil, F},
    {"Rint", XY, "T:float", compute_rint, F},
    {"Round", XY, "T:real", compute_round, F},
    {"IsNan", ASKS, "T:float", compute_is_nan, 0},
    {"IsInf", ASKS, "T:float", compute_is_inf, 0},
    {"IsFinite", ASKS, "T:float", compute_is_finite, 0},
    {"LogicalNot", "x:bool -> y:bool", "", compute_logical_not, F},
    {"Relu", FEATURES, "T:real", compute_relu, F},
    {"Relu6", FEATURES, "T:real", compute_relu6, F},
    {"LeakyRelu", FEATURES, "T:float alpha", compute_leaky, F},
    {"Elu", FEATURES, "T:float", compute_elu, F},
    {"Selu", FEATURES, "T:float", compute_selu, F},
    {"Softplus", FEATURES, "T:float", compute_softplus, F},
    {"Softsign", FEATURES, "T:float", compute_softsign, F},
    {"Cast", "x:SrcT -> y:DstT", "SrcT:any DstT:any Truncate=false", compute_cast, 0},
    {NULL, NULL, NULL, NULL, 0},
};
