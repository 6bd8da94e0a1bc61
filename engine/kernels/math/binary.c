// SPDX-License-Identifier: Apache-2.0
/* Arithmetic and comparison of two tensors. */
#include "engine/kernels/common/strings.h"
#include "engine/kernels/math/arithmetic.h"
#include "engine/kernels/math/complex.h"
#include "engine/kernels/math/math_op_tables.h"

#include <string.h>
#include <tgmath.h>

/* Loops over elements are faster with -O3 than with the default -O2. */
#pragma GCC optimize("O3")

/* Integers wrap, as TensorFlow's do; signed overflow would be undefined in C. */
#define WRAP(a, op, b) ((type)((guint64)(a)op (guint64) (b)))

static gint64
signed_quotient (gint64 a, gint64 b)
{
  return b == -1 ? (gint64)(0 - (guint64)a) : a / b;
}

static gint64
signed_remainder (gint64 a, gint64 b)
{
  return b == -1 ? 0 : a % b;
}

/* Rounds towards minus infinity. */
static gint64
signed_floor_div (gint64 a, gint64 b)
{
  gint64 q = signed_quotient (a, b);
  return signed_remainder (a, b) != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static gint64
signed_floor_mod (gint64 a, gint64 b)
{
  gint64 r = signed_remainder (a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* b is not negative. */
static guint64
wrapped_power (guint64 a, guint64 b)
{
  guint64 result = 1;
  for (; b > 0; b >>= 1, a *= a)
    if (b & 1)
      result *= a;
  return result;
}

static double
real_floor_mod (double a, double b)
{
  double r = fmod (a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

#define SAME_F(name, EXPR)                                                                         \
  MUSTER_LOOP2 (name, f32, float, float, EXPR) MUSTER_LOOP2 (name, f64, double, double, EXPR)
#define SAME_I(name, SIGNED, UNSIGNED)                                                             \
  MUSTER_LOOP2 (name, i32, gint32, gint32, (type)(SIGNED))                                         \
  MUSTER_LOOP2 (name, i64, gint64, gint64, SIGNED)                                                 \
  MUSTER_LOOP2 (name, u64, guint64, guint64, UNSIGNED)
#define ARITHMETIC(name, F, SIGNED, UNSIGNED)                                                      \
  SAME_F (name, F)                                                                                 \
  SAME_I (name, SIGNED, UNSIGNED)                                                                  \
  static const MusterLoop2 name##_loops[] = MUSTER_WIDE_TABLE (name);
#define FLOATING(name, F)                                                                          \
  SAME_F (name, F) static const MusterLoop2 name##_loops[] = MUSTER_FLOAT_TABLE (name);

#define SAME_C(name, EXPR)                                                                         \
  MUSTER_LOOP2 (name, c64, float complex, float complex, EXPR)                                     \
  MUSTER_LOOP2 (name, c128, double complex, double complex, EXPR)
#define NUMBER(name, F, SIGNED, UNSIGNED, COMPLEX_EXPR)                                            \
  SAME_F (name, F)                                                                                 \
  SAME_I (name, SIGNED, UNSIGNED)                                                                  \
  SAME_C (name, COMPLEX_EXPR)                                                                      \
  static const MusterLoop2 name##_loops[] = MUSTER_NUMBER_TABLE (name);
#define ANALYTIC(name, F, COMPLEX_EXPR)                                                            \
  SAME_F (name, F)                                                                                 \
  SAME_C (name, COMPLEX_EXPR)                                                                      \
  static const MusterLoop2 name##_loops[] = MUSTER_ANALYTIC_TABLE (name);

NUMBER (add, a + b, WRAP (a, +, b), a + b, a + b)
NUMBER (sub, a - b, WRAP (a, -, b), a - b, a - b)
NUMBER (mul, a *b, WRAP (a, *, b), a *b, a *b)
NUMBER (quotient, a / b, signed_quotient (a, b), a / b, a / b)
ARITHMETIC (remains, fmod (a, b), signed_remainder (a, b), a % b)
ARITHMETIC (floor_div, floor (a / b), signed_floor_div (a, b), a / b)
ARITHMETIC (floor_mod, (type)real_floor_mod (a, b), signed_floor_mod (a, b), a % b)
ARITHMETIC (truncate_div, trunc (a / b), signed_quotient (a, b), a / b)
/* NaN where either is NaN. */
ARITHMETIC (minimum, b < a || b != b ? b : a, b < a ? b : a, b < a ? b : a)
ARITHMETIC (maximum, a < b || b != b ? b : a, a < b ? b : a, a < b ? b : a)
/* a where they can't be compared. */
ARITHMETIC (lesser, b < a ? b : a, b < a ? b : a, b < a ? b : a)
ARITHMETIC (greater_one, a < b ? b : a, a < b ? b : a, a < b ? b : a)
NUMBER (power, pow (a, b), (gint64)wrapped_power ((guint64)a, (guint64)b), wrapped_power (a, b),
        pow (a, b))
NUMBER (squared_difference, (a - b) * (a - b),
        (type)(((guint64)a - (guint64)b) * ((guint64)a - (guint64)b)), (a - b) * (a - b),
        (a - b) * conj (a - b))
ANALYTIC (div_no_nan, b == 0 ? 0 : a / b, b == 0 ? 0 : a / b)
FLOATING (atan_two, atan2 (a, b))
ANALYTIC (xlogy, a == 0 ? 0 : a * log (b), a == 0 ? 0 : a * log (b))
ANALYTIC (xdivy, a == 0 ? 0 : a / b, a == 0 ? 0 : a / b)
ANALYTIC (xlog1py, a == 0 ? 0 : a * log1p (b), a == 0 ? 0 : a * (type)muster_complex_log1p (b))
ANALYTIC (mul_no_nan, b == 0 ? 0 : a * b, b == 0 ? 0 : a * b)
FLOATING (next_after, nextafter (a, b))

#define COMPARISON(name, EXPR)                                                                     \
  COMPARISON_LOOPS (name, EXPR)                                                                    \
  static const MusterLoop2 name##_loops[] = MUSTER_WIDE_TABLE (name);
#define EQUALITY(name, EXPR)                                                                       \
  COMPARISON_LOOPS (name, EXPR)                                                                    \
  MUSTER_LOOP2 (name, c64, float complex, guint8, EXPR)                                            \
  MUSTER_LOOP2 (name, c128, double complex, guint8, EXPR)                                          \
  static const MusterLoop2 name##_loops[] = MUSTER_NUMBER_TABLE (name);
#define COMPARISON_LOOPS(name, EXPR)                                                               \
  MUSTER_LOOP2 (name, f32, float, guint8, EXPR)                                                    \
  MUSTER_LOOP2 (name, f64, double, guint8, EXPR)                                                   \
  MUSTER_LOOP2 (name, i32, gint32, guint8, EXPR)                                                   \
  MUSTER_LOOP2 (name, i64, gint64, guint8, EXPR)                                                   \
  MUSTER_LOOP2 (name, u64, guint64, guint8, EXPR)

EQUALITY (equal, a == b)
EQUALITY (not_equal, a != b)
COMPARISON (less, a < b)
COMPARISON (less_equal, a <= b)
COMPARISON (greater, a > b)
COMPARISON (greater_equal, a >= b)
COMPARISON (logical_and, a != 0 && b != 0)
COMPARISON (logical_or, a != 0 || b != 0)

/* Gradients of unary functions, from the function's value y (a) and the gradient dy (b), or the
 * other way round. For complex values some of TensorFlow's kernels conjugate, and others leave that
 * to the graph. */
ANALYTIC (tanh_grad, b *((type)1 - a * a), b *((type)1 - a * a))
ANALYTIC (sigmoid_grad, b *a *((type)1 - a), b *a *((type)1 - a))
ANALYTIC (sqrt_grad, b *(type)0.5 / a, b *(type)0.5 / conj (a))
ANALYTIC (rsqrt_grad, b *(type)-0.5 * (a * a * a), b *(type)-0.5 * conj (a * a * a))
ANALYTIC (reciprocal_grad, -b *a *a, -b *conj (a) * conj (a))
ARITHMETIC (relu_grad, a *(type)(b > 0), b > 0 ? a : 0, b > 0 ? a : 0)
ARITHMETIC (relu6_grad, a *(type)(b > 0 && b < 6), b > 0 && b < 6 ? a : 0, b > 0 && b < 6 ? a : 0)
FLOATING (leaky_relu_grad, b > 0 ? a : a * (type)0.2f)
FLOATING (elu_grad, b < 0 ? (b + 1) * a : a)
/* From the function's value; for a negative x, the constant is the scale times alpha. */
FLOATING (selu_grad, b < 0 ? a * (b + (type)1.7580993408473768599402175208123)
                           : a * (type)1.0507009873554804934193349852946)
FLOATING (softplus_grad, a / (exp (-b) + 1))
FLOATING (softsign_grad, a / ((1 + fabs (b)) * (1 + fabs (b))))

const MusterLoop2 muster_add_loops[] = MUSTER_NUMBER_TABLE (add);
const MusterLoop2 muster_sub_loops[] = MUSTER_NUMBER_TABLE (sub);
const MusterLoop2 muster_mul_loops[] = MUSTER_NUMBER_TABLE (mul);
const MusterLoop2 muster_div_loops[] = MUSTER_NUMBER_TABLE (quotient);
const MusterLoop2 muster_minimum_loops[] = MUSTER_WIDE_TABLE (minimum);
const MusterLoop2 muster_maximum_loops[] = MUSTER_WIDE_TABLE (maximum);
const MusterLoop2 muster_min_loops[] = MUSTER_WIDE_TABLE (lesser);
const MusterLoop2 muster_max_loops[] = MUSTER_WIDE_TABLE (greater_one);
const MusterLoop2 muster_or_loops[] = MUSTER_WIDE_TABLE (logical_or);
const MusterLoop2 muster_xor_loops[] = MUSTER_WIDE_TABLE (not_equal);
const MusterLoop2 muster_less_loops[] = MUSTER_WIDE_TABLE (less);

#define BINARY(name, loops)                                                                        \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    return muster_compute2 (k, loops, error);                                                      \
  }
#define BINARY_SAME(name, loops)                                                                   \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    return muster_compute2_same (k, loops, error);                                                 \
  }
#define BINARY_FLAT(name, loops)                                                                   \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    return muster_compute2_flat (k, loops, error);                                                 \
  }

BINARY (compute_add_numbers, add_loops)
BINARY (compute_sub, sub_loops)
BINARY (compute_mul, mul_loops)
BINARY (compute_minimum, minimum_loops)
BINARY (compute_maximum, maximum_loops)
BINARY (compute_squared_difference, squared_difference_loops)
BINARY (compute_div_no_nan, div_no_nan_loops)
BINARY (compute_atan_two, atan_two_loops)
BINARY (compute_xlogy, xlogy_loops)
BINARY (compute_xdivy, xdivy_loops)
BINARY (compute_xlog1py, xlog1py_loops)
BINARY (compute_mul_no_nan, mul_no_nan_loops)
BINARY (compute_next_after, next_after_loops)
BINARY (compute_less, less_loops)
BINARY (compute_less_equal, less_equal_loops)
BINARY (compute_greater, greater_loops)
BINARY (compute_greater_equal, greater_equal_loops)
BINARY (compute_logical_and, logical_and_loops)
BINARY (compute_logical_or, logical_or_loops)
BINARY_FLAT (compute_tanh_grad, tanh_grad_loops)
BINARY_FLAT (compute_sigmoid_grad, sigmoid_grad_loops)
BINARY_FLAT (compute_sqrt_grad, sqrt_grad_loops)
BINARY_FLAT (compute_rsqrt_grad, rsqrt_grad_loops)
BINARY_FLAT (compute_reciprocal_grad, reciprocal_grad_loops)
BINARY_SAME (compute_relu_grad, relu_grad_loops)
BINARY_SAME (compute_relu6_grad, relu6_grad_loops)
BINARY_SAME (compute_elu_grad, elu_grad_loops)
BINARY_SAME (compute_softplus_grad, softplus_grad_loops)
BINARY_SAME (compute_softsign_grad, softsign_grad_loops)
BINARY_SAME (compute_selu_grad, selu_grad_loops)

/* Add joins strings; AddV2 doesn't take them. */
static gboolean
compute_add (MusterKernel *k, GError **error)
{
  MusterTensor *operands[] = {muster_kernel_input (k, 0), muster_kernel_input (k, 1)};
  g_auto (MusterStrings) out = {0};
  MusterPlace place = {0};
  MusterBroadcast b;
  if (muster_tensor_dtype (operands[0]) != MUSTER_STRING)
    return compute_add_numbers (k, error);
  if (!muster_broadcast_init (&b, operands, 2, error) ||
      !muster_strings_begin (&out, k, b.n_dims, b.dims, error))
    return FALSE;
  for (gint64 n = 0; n < b.n && !out.text.failed; n++) {
    for (int i = 0; i < 2; i++)
      muster_text_append_string (&out.text, muster_tensor_string (operands[i], place.from[i]));
    muster_strings_close (&out, n);
    muster_broadcast_next (&b, 2, 0, &place);
  }
  return muster_strings_end (&out, k, 0, error);
}

static gboolean
is_integer (MusterDType dtype)
{
  MusterWide wide = muster_wide (dtype);
  return wide == MUSTER_I32 || wide == MUSTER_I64 || wide == MUSTER_U64;
}

gboolean
muster_has_zero_divisor (MusterTensor *divisor)
{
  static const double complex zero = 0;
  const MusterDType dtype = muster_tensor_dtype (divisor);
  const gint64 n = muster_tensor_n_elements (divisor);
  guint8 are_zero[256];

  for (gint64 i = 0; i < n; i += (gint64)sizeof are_zero) {
    const gint64 some = MIN (n - i, (gint64)sizeof are_zero);
    muster_run_loop2 (equal_loops, dtype, MUSTER_BOOL, some,
                      (const guint8 *)muster_tensor_data (divisor) +
                          (gsize)i * muster_dtype_size (dtype),
                      1, &zero, 0, are_zero);
    if (memchr (are_zero, 1, (gsize)some) != NULL)
      return TRUE;
  }
  return FALSE;
}

/* Integer division by zero anywhere fails the step, unless nothing is divided; TensorFlow doesn't
 * expect it of the truncating ops. */
static gboolean
divide (MusterKernel *k, const MusterLoop2 *loops, GError **error)
{
  const gboolean truncates = g_str_has_prefix (muster_kernel_node (k)->kind->op, "Truncate");
  if (is_integer (muster_tensor_dtype (muster_kernel_input (k, 1))) &&
      muster_tensor_n_elements (muster_kernel_input (k, 0)) > 0 &&
      muster_has_zero_divisor (muster_kernel_input (k, 1)))
    return muster_fail (
        error, truncates ? MUSTER_ERROR_INTERNAL : MUSTER_ERROR_INVALID_ARGUMENT, "%s",
        truncates
            ? "Unexpected error in binary operator (only integer div and mod should have errors)"
            : "Integer division by zero");
  return muster_compute2 (k, loops, error);
}

static gboolean
compute_quotient (MusterKernel *k, GError **error)
{
  return divide (k, quotient_loops, error);
}

static gboolean
compute_truncate_div (MusterKernel *k, GError **error)
{
  return divide (k, truncate_div_loops, error);
}

static gboolean
compute_remains (MusterKernel *k, GError **error)
{
  return divide (k, remains_loops, error);
}

static gboolean
compute_floor_div (MusterKernel *k, GError **error)
{
  return divide (k, floor_div_loops, error);
}

static gboolean
compute_floor_mod (MusterKernel *k, GError **error)
{
  return divide (k, floor_mod_loops, error);
}

static gboolean
compute_power (MusterKernel *k, GError **error)
{
  g_autoptr (MusterTensor) exponents = NULL;
  MusterDType dtype = muster_tensor_dtype (muster_kernel_input (k, 1));
  if (is_integer (dtype) && muster_wide (dtype) != MUSTER_U64) {
    exponents = muster_wide_input (k, 1, error);
    if (exponents == NULL)
      return FALSE;
    const gboolean is_empty = muster_tensor_n_elements (muster_kernel_input (k, 0)) == 0;
    for (gint64 i = 0; !is_empty && i < muster_tensor_n_elements (exponents); i++)
      if (muster_int_at (exponents, i) < 0)
        return muster_invalid (error, "Integers to negative integer powers are not allowed");
  }
  return muster_compute2 (k, power_loops, error);
}

static gboolean
compute_leaky_relu_grad (MusterKernel *k, GError **error)
{
  float alpha = muster_kernel_attr_float (k, "alpha", 0.2f);
  MusterTensor *dy = muster_kernel_input (k, 0), *x = muster_kernel_input (k, 1);
  g_autoptr (MusterTensor) a = NULL, b = NULL;
  MusterTensor *out;
  if (alpha == 0.2f || !muster_same_shape (dy, x))
    return muster_compute2_same (k, leaky_relu_grad_loops, error);
  a = muster_wide_input (k, 0, error);
  b = a == NULL ? NULL : muster_wide_input (k, 1, error);
  out = b == NULL
            ? NULL
            : muster_wide_output (k, 0, muster_tensor_n_dims (a), muster_tensor_dims (a), error);
  if (out == NULL)
    return FALSE;
  muster_leaky_relu (b, a, alpha, out);
  return muster_wide_end (k, 0, out, error);
}

static gboolean
strings_equal (const MusterTensor *x, gint64 i, const MusterTensor *y, gint64 j)
{
  MusterString a = muster_tensor_string (x, i), b = muster_tensor_string (y, j);
  return a.size == b.size && (a.size == 0 || memcmp (a.data, b.data, a.size) == 0);
}

/* Strings are compared for equality only, element by element or with one string. */
static gboolean
compare_strings (MusterKernel *k, gboolean wanted, GError **error)
{
  MusterTensor *operands[] = {muster_kernel_input (k, 0), muster_kernel_input (k, 1)};
  MusterPlace place = {0};
  MusterBroadcast b;
  MusterTensor *out;
  guint8 *to;
  if (!muster_broadcast_init (&b, operands, 2, error))
    return FALSE;
  out = muster_kernel_output (k, 0, b.n_dims, b.dims, error);
  if (out == NULL)
    return FALSE;
  to = muster_tensor_data_mutable (out);
  for (gint64 n = 0; n < b.n; n++) {
    to[n] = strings_equal (operands[0], place.from[0], operands[1], place.from[1]) == wanted;
    muster_broadcast_next (&b, 2, 0, &place);
  }
  return TRUE;
}

/* Without incompatible_shape_error, tensors of incompatible shapes are unequal. */
static gboolean
compare (MusterKernel *k, const MusterLoop2 *loops, gboolean wanted, GError **error)
{
  MusterTensor *operands[] = {muster_kernel_input (k, 0), muster_kernel_input (k, 1)};
  MusterBroadcast b;
  MusterTensor *out;
  if (!muster_kernel_attr_bool (k, "incompatible_shape_error", TRUE) &&
      !muster_broadcast_init (&b, operands, 2, NULL)) {
    out = muster_kernel_output (k, 0, 0, NULL, error);
    if (out == NULL)
      return FALSE;
    *(guint8 *)muster_tensor_data_mutable (out) = !wanted;
    return TRUE;
  }
  if (muster_tensor_dtype (operands[0]) == MUSTER_STRING)
    return compare_strings (k, wanted, error);
  return muster_compute2 (k, loops, error);
}

static gboolean
compute_equal (MusterKernel *k, GError **error)
{
  return compare (k, equal_loops, TRUE, error);
}

static gboolean
compute_not_equal (MusterKernel *k, GError **error)
{
  return compare (k, not_equal_loops, FALSE, error);
}

static gboolean
compute_add_n (MusterKernel *k, GError **error)
{
  MusterTensor *first = muster_kernel_input (k, 0), *out;
  MusterDType dtype = muster_tensor_dtype (first);
  gint64 n = muster_tensor_n_elements (first);
  const void *sum = muster_tensor_data (first);
  for (int i = 1; i < muster_kernel_n_inputs (k); i++)
    if (!muster_same_shape (first, muster_kernel_input (k, i))) {
      g_autofree char *a = muster_shape_text (first);
      g_autofree char *b = muster_shape_text (muster_kernel_input (k, i));
      return muster_invalid (
          error,
          "Inputs to operation AddN must have the same size and shape.  Input 0: %s != "
          "input %d: %s",
          a, i, b);
    }
  if (muster_kernel_n_inputs (k) == 1) {
    muster_kernel_set_output (k, 0, muster_tensor_ref (first));
    return TRUE;
  }
  if (!muster_check_loop2 (muster_add_loops, dtype, error))
    return FALSE;
  out = muster_kernel_output_like (k, 0, first, error);
  if (out == NULL)
    return FALSE;
  for (int i = 1; i < muster_kernel_n_inputs (k); i++) {
    muster_run_loop2 (muster_add_loops, dtype, dtype, n, sum, 1,
                      muster_tensor_data (muster_kernel_input (k, i)), 1,
                      muster_tensor_data_mutable (out));
    sum = muster_tensor_data (out);
  }
  return TRUE;
}

/* Clips to at least the second input and at most the third, each of the first's shape or with one
 * element. */
static gboolean
compute_clip (MusterKernel *k, GError **error)
{
  static const MusterLoop2 *const loops[] = {NULL, greater_one_loops, lesser_loops};
  MusterTensor *x = muster_kernel_input (k, 0), *out;
  MusterDType dtype = muster_tensor_dtype (x);
  gint64 n = muster_tensor_n_elements (x);
  const void *from = muster_tensor_data (x);
  for (int i = 1; i < 3; i++)
    if (!muster_same_shape (x, muster_kernel_input (k, i)) &&
        muster_tensor_n_dims (muster_kernel_input (k, i)) != 0) {
      g_autofree char *a = muster_shape_text (x);
      g_autofree char *b = muster_shape_text (muster_kernel_input (k, i));
      return muster_invalid (error,
                             "clip_value_min and clip_value_max must be either of the same shape "
                             "as input, or a scalar. input shape: %s, %s shape: %s",
                             a, i == 1 ? "clip_value_min" : "clip_value_max", b);
    }
  out = muster_kernel_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (out == NULL)
    return FALSE;
  for (int i = 2; i > 0; i--) { /* the lower bound wins over the upper one */
    MusterTensor *bound = muster_kernel_input (k, i);
    muster_run_loop2 (loops[i], dtype, dtype, n, from, 1, muster_tensor_data (bound),
                      muster_tensor_n_dims (bound) != 0 || n == 1,
                      muster_tensor_data_mutable (out));
    from = muster_tensor_data (out);
  }
  return TRUE;
}

#define F          MUSTER_OP_FORWARD
#define XY         "x:T, y:T -> z:T"
#define CMP        "x:T, y:T -> z:bool"
#define ANALYTIC_T "T:float|double|half|bfloat16|complex64|complex128"
#define NUMBER_OR_STRING                                                                           \
  "T:float|double|int32|uint8|int16|int8|string|complex64|int64|bfloat16|uint16|complex128|half|"  \
  "uint32|uint64"
#define GRAD    "y:T, dy:T -> z:T"
#define NN_GRAD "gradients:T, features:T -> backprops:T"

const MusterOp muster_binary_ops[] = {
    {"Add", XY, NUMBER_OR_STRING, compute_add, F},
    {"AddV2", XY, "T:number", compute_add_numbers, F},
    {"AccumulateNV2", "inputs:N*T -> sum:T", "T:number shape", compute_add_n, 0},
    {"AddN", "inputs:N*T -> sum:T", "T:number", compute_add_n, 0},
    {"Sub", XY, "T:number", compute_sub, F},
    {"Mul", XY, "T:number", compute_mul, F},
    {"Div", XY, "T:number", compute_quotient, F},
    {"RealDiv", XY, "T:number", compute_quotient, F},
    {"TruncateDiv", XY, "T:real", compute_truncate_div, F},
    {"DivNoNan", XY, ANALYTIC_T, compute_div_no_nan, F},
    {"FloorDiv", XY, "T:real", compute_floor_div, F},
    {"FloorMod", XY, "T:real", compute_floor_mod, F},
    {"Mod", XY, "T:real", compute_remains, F},
    {"TruncateMod", XY, "T:real", compute_remains, F},
    {"Minimum", XY, "T:real", compute_minimum, F},
    {"Maximum", XY, "T:real", compute_maximum, F},
    {"Pow", XY, "T:number", compute_power, F},
    {"SquaredDifference", XY, "T:number", compute_squared_difference, F},
    {"Atan2", XY, "T:float", compute_atan_two, F},
    {"Xlogy", XY, ANALYTIC_T, compute_xlogy, F},
    {"Xdivy", XY, ANALYTIC_T, compute_xdivy, F},
    {"ClipByValue", "t:T, clip_value_min:T, clip_value_max:T -> output:T", "T:real", compute_clip,
     0},
    {"Xlog1py", XY, ANALYTIC_T, compute_xlog1py, F},
    {"MulNoNan", XY, ANALYTIC_T, compute_mul_no_nan, F},
    {"NextAfter", "x1:T, x2:T -> output:T", "T:float|double", compute_next_after, F},
    {"Equal", CMP, "T:any incompatible_shape_error", compute_equal, 0},
    {"NotEqual", CMP, "T:any incompatible_shape_error", compute_not_equal, 0},
    {"Less", CMP, "T:real", compute_less, 0},
    {"LessEqual", CMP, "T:real", compute_less_equal, 0},
    {"Greater", CMP, "T:real", compute_greater, 0},
    {"GreaterEqual", CMP, "T:real", compute_greater_equal, 0},
    {"LogicalAnd", "x:bool, y:bool -> z:bool", "", compute_logical_and, F},
    {"LogicalOr", "x:bool, y:bool -> z:bool", "", compute_logical_or, F},
    {"TanhGrad", GRAD, ANALYTIC_T, compute_tanh_grad, F},
    {"SigmoidGrad", GRAD, ANALYTIC_T, compute_sigmoid_grad, F},
    {"SqrtGrad", GRAD, ANALYTIC_T, compute_sqrt_grad, F},
    {"RsqrtGrad", GRAD, ANALYTIC_T, compute_rsqrt_grad, F},
    {"ReciprocalGrad", GRAD, ANALYTIC_T, compute_reciprocal_grad, F},
    {"InvGrad", GRAD, ANALYTIC_T, compute_reciprocal_grad, F},
    {"ReluGrad", NN_GRAD, "T:real", compute_relu_grad, F},
    {"Relu6Grad", NN_GRAD, "T:real", compute_relu6_grad, F},
    {"LeakyReluGrad", NN_GRAD, "T:float alpha", compute_leaky_relu_grad, 0},
    {"EluGrad", "gradients:T, outputs:T -> backprops:T", "T:float", compute_elu_grad, F},
    {"SeluGrad", "gradients:T, outputs:T -> backprops:T", "T:float", compute_selu_grad, F},
    {"SoftplusGrad", NN_GRAD, "T:float", compute_softplus_grad, F},
    {"SoftsignGrad", NN_GRAD, "T:float", compute_softsign_grad, F},
    {NULL, NULL, NULL, NULL, 0},
};
