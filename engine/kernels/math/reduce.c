// SPDX-License-Identifier: Apache-2.0
/* Reductions over axes, and positions of extremes. */
#include "engine/kernels/common/broadcast.h"
#include "engine/kernels/math/math_op_tables.h"
#include "engine/run/parallel.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* Loops over elements are faster with -O3 than with the default -O2. */
#pragma GCC optimize("O3")

/* A reduction over some axes. Each element of the input belongs to one element of the output. */
typedef struct {
  int n_dims; /* of the output */
  gint64 dims[MUSTER_MAX_DIMS];
  gint64 n_out, n_reduced;
  MusterBroadcast loops; /* of the input, if that isn't empty; operand OUT's step is 0 in a reduced
                            loop */
} Reduction;
enum { OUT, IN, N_OPERANDS };

/* Folds n elements into *acc, or n elements into n results. */
typedef void (*FoldRun) (gint64 n, const void *x, void *acc);
typedef struct {
  FoldRun inner[MUSTER_N_LOOPS], outer[MUSTER_N_LOOPS], fill[MUSTER_N_LOOPS];
} Folds;

/* Sums are computed in A, wider than T, to keep the last digits in long runs. */
#define FOLD(name, suffix, T, A, FIRST, EXPR)                                                      \
  static void name##_inner_##suffix (gint64 n, const void *px, void *acc)                          \
  {                                                                                                \
    const T *x = px;                                                                               \
    A a = *(T *)acc;                                                                               \
    for (gint64 i = 0; i < n; i++) {                                                               \
      const T b = x[i];                                                                            \
      a = EXPR;                                                                                    \
    }                                                                                              \
    *(T *)acc = (T)a;                                                                              \
  }                                                                                                \
  static void name##_outer_##suffix (gint64 n, const void *px, void *acc)                          \
  {                                                                                                \
    const T *x = px;                                                                               \
    T *out = acc;                                                                                  \
    MUSTER_IVDEP                                                                                   \
    for (gint64 i = 0; i < n; i++) {                                                               \
      const T a = out[i], b = x[i];                                                                \
      out[i] = (T)(EXPR);                                                                          \
    }                                                                                              \
  }                                                                                                \
  static void name##_fill_##suffix (gint64 n, const void *px G_GNUC_UNUSED, void *acc)             \
  {                                                                                                \
    for (gint64 i = 0; i < n; i++)                                                                 \
      ((T *)acc)[i] = FIRST;                                                                       \
  }

#define FOLDS(name, F_FIRST, I32_FIRST, I64_FIRST, U64_FIRST, F, I)                                \
  FOLDS_IN (name, F_FIRST, I32_FIRST, I64_FIRST, U64_FIRST, F, I, MUSTER_WIDE_TABLE)
#define COMPLEX_FOLDS(name, FIRST, F, I, C)                                                        \
  FOLD (name, c64, float complex, double complex, FIRST, C)                                        \
  FOLD (name, c128, double complex, double complex, FIRST, C)                                      \
  FOLDS_IN (name, FIRST, FIRST, FIRST, FIRST, F, I, MUSTER_NUMBER_TABLE)
#define FOLDS_IN(name, F_FIRST, I32_FIRST, I64_FIRST, U64_FIRST, F, I, TABLE)                      \
  FOLD (name, f32, float, double, F_FIRST, F)                                                      \
  FOLD (name, f64, double, double, F_FIRST, F)                                                     \
  FOLD (name, i32, gint32, gint32, I32_FIRST, (gint32)(I))                                         \
  FOLD (name, i64, gint64, gint64, I64_FIRST, (gint64)(I))                                         \
  FOLD (name, u64, guint64, guint64, U64_FIRST, I)                                                 \
  static const Folds name##_folds = {TABLE (name##_inner), TABLE (name##_outer),                   \
                                     TABLE (name##_fill)};

COMPLEX_FOLDS (sum, 0, a + b, (guint64)a + (guint64)b, a + b)
COMPLEX_FOLDS (squares, 0, a + b * b, (guint64)a + (guint64)b * (guint64)b, a + b * conj (b))
COMPLEX_FOLDS (product, 1, a *b, (guint64)a *(guint64)b, a *b)
FOLDS (largest, -INFINITY, G_MININT32, G_MININT64, 0, a < b || b != b ? b : a, a < b ? b : a)
FOLDS (smallest, INFINITY, G_MAXINT32, G_MAXINT64, G_MAXUINT64, b < a || b != b ? b : a,
       b < a ? b : a)
FOLDS (every, 1, 1, 1, 1, a != 0 && b != 0, a != 0 && b != 0)
FOLDS (some, 0, 0, 0, 0, a != 0 || b != 0, a != 0 || b != 0)

static gboolean
mark_axes (MusterKernel *k, gboolean *reduced, GError **error)
{
  MusterTensor *axes = muster_kernel_input (k, 1);
  int n_dims = muster_tensor_n_dims (muster_kernel_input (k, 0)), axis = 0;
  for (gint64 i = 0; i < muster_tensor_n_elements (axes); i++) {
    gint64 wanted = muster_int_at (axes, i);
    if (wanted < -n_dims || wanted >= n_dims)
      return muster_invalid (
          error, "Invalid reduction dimension (%" G_GINT64_FORMAT " for input with %d dimension(s)",
          wanted, n_dims);
    if (!muster_check_axis (wanted, n_dims, &axis, error))
      return FALSE;
    if (reduced[axis])
      return muster_invalid (
          error, "Invalid reduction arguments: Axes contains duplicate dimension: %d", axis);
    reduced[axis] = TRUE;
  }
  return TRUE;
}

static void
plan_loops (MusterBroadcast *loops, MusterTensor *x, const gboolean *reduced)
{
  const gint64 *dims = muster_tensor_dims (x);
  gint64 steps[N_OPERANDS] = {1, 1};
  loops->n_loops = 0;
  for (int i = muster_tensor_n_dims (x) - 1; i >= 0; i--) {
    if (dims[i] != 1)
      muster_broadcast_add_loop (loops, N_OPERANDS, dims[i],
                                 (gint64[]){reduced[i] ? 0 : steps[OUT], steps[IN]});
    steps[OUT] *= reduced[i] ? 1 : dims[i];
    steps[IN] *= dims[i];
  }
  if (loops->n_loops == 0)
    muster_broadcast_add_loop (loops, N_OPERANDS, 1, steps);
}

static gboolean
plan (MusterKernel *k, Reduction *r, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gboolean keeps = muster_kernel_attr_bool (k, "keep_dims", FALSE);
  const gint64 *dims = muster_tensor_dims (x);
  gboolean reduced[MUSTER_MAX_DIMS] = {FALSE};
  if (!mark_axes (k, reduced, error))
    return FALSE;
  r->n_dims = 0;
  r->n_reduced = 1;
  for (int i = 0; i < muster_tensor_n_dims (x); i++) {
    if (reduced[i])
      r->n_reduced = (gint64)((guint64)r->n_reduced * (guint64)dims[i]);
    if (!reduced[i] || keeps)
      r->dims[r->n_dims++] = reduced[i] ? 1 : dims[i];
  }
  r->n_out = muster_shape_n_elements (r->n_dims, r->dims);
  if (muster_tensor_n_elements (x) > 0)
    plan_loops (&r->loops, x, reduced);
  return TRUE;
}

typedef struct {
  const MusterBroadcast *loops;
  FoldRun inner, outer;
  gint64 size; /* bytes of an element */
  const guint8 *x;
  guint8 *out;
  int split; /* the loop of which each thread has a part: no two write to the same element */
} Fold;

/* Reads the input once, in order, but for the iterations of the split loop outside the piece. */
static void
fold_piece (gint64 begin, gint64 end, gpointer data)
{
  const Fold *self = data;
  MusterBroadcast loops = {.n_loops = self->loops->n_loops};
  for (int i = 0; i < loops.n_loops; i++) {
    loops.sizes[i] = i == self->split ? end - begin : self->loops->sizes[i];
    for (int j = 0; j < N_OPERANDS; j++)
      loops.steps[j][i] = self->loops->steps[j][i];
  }
  const gint64 first[] = {begin * self->loops->steps[OUT][self->split],
                          begin * self->loops->steps[IN][self->split]};
  const FoldRun run = loops.steps[OUT][0] == 0 ? self->inner : self->outer;
  MusterPlace place = {0};

  do
    run (loops.sizes[0], self->x + (first[IN] + place.from[IN]) * self->size,
         self->out + (first[OUT] + place.from[OUT]) * self->size);
  while (muster_broadcast_next (&loops, N_OPERANDS, 1, &place));
}

static void
fold (const MusterBroadcast *loops, const Folds *folds, MusterTensor *x, MusterTensor *out)
{
  const MusterWide wide = muster_loop_index (muster_tensor_dtype (x));
  const gint64 n = muster_tensor_n_elements (x);
  Fold self = {.loops = loops,
               .inner = folds->inner[wide],
               .outer = folds->outer[wide],
               .size = (gint64)muster_dtype_size (muster_tensor_dtype (x)),
               .x = muster_tensor_data (x),
               .out = muster_tensor_data_mutable (out)};
  for (int i = 1; i < loops->n_loops; i++)
    if (loops->steps[OUT][i] != 0 &&
        (loops->steps[OUT][self.split] == 0 || loops->sizes[i] > loops->sizes[self.split]))
      self.split = i;
  if (loops->steps[OUT][self.split] == 0) /* one result */
    fold_piece (0, loops->sizes[0], &self);
  else
    muster_parallel_for (loops->sizes[self.split],
                         muster_parallel_piece (n / loops->sizes[self.split]), fold_piece, &self);
}

/* Clamps the first values of nothing's reduction to what a narrow integer holds. */
static void
clamp (MusterDType dtype, gint64 n, gint64 *values)
{
  const int bits = 8 * (int)muster_dtype_size (dtype);
  const gboolean is_signed = dtype == MUSTER_INT8 || dtype == MUSTER_INT16;
  const gint64 least = is_signed ? -(G_GINT64_CONSTANT (1) << (bits - 1)) : 0;
  for (gint64 i = 0; i < n; i++)
    values[i] = CLAMP (values[i], least, least + (G_GINT64_CONSTANT (1) << bits) - 1);
}

static MusterTensor *
reduce_wide (MusterKernel *k, const Folds *folds, Reduction *r, GError **error)
{
  g_autoptr (MusterTensor) x = NULL;
  MusterDType dtype = muster_tensor_dtype (muster_kernel_input (k, 0));
  MusterTensor *out;
  if (!plan (k, r, error))
    return NULL;
  if (folds->fill[muster_loop_index (dtype)] == NULL) {
    muster_invalid (error, "Arithmetic isn't supported for dtype %s", muster_dtype_name (dtype));
    return NULL;
  }
  x = muster_number_input (k, 0, error);
  out = x == NULL ? NULL : muster_number_output (k, 0, r->n_dims, r->dims, error);
  if (out == NULL)
    return NULL;
  folds->fill[muster_loop_index (muster_tensor_dtype (x))](r->n_out, NULL,
                                                           muster_tensor_data_mutable (out));
  if (muster_tensor_n_elements (x) > 0)
    fold (&r->loops, folds, x, out);
  else if (dtype != MUSTER_INT64 && muster_wide (dtype) == MUSTER_I64)
    clamp (dtype, r->n_out, muster_tensor_data_mutable (out));
  return out;
}

static gboolean
reduce (MusterKernel *k, const Folds *folds, GError **error)
{
  Reduction r;
  MusterTensor *out = reduce_wide (k, folds, &r, error);
  return out != NULL && muster_wide_end (k, 0, out, error);
}

#define DIVIDE(suffix, T)                                                                          \
  static void divide_##suffix (gint64 n, void *x, gint64 divisor)                                  \
  {                                                                                                \
    for (gint64 i = 0; i < n; i++)                                                                 \
      ((T *)x)[i] /= (T)divisor;                                                                   \
  }
MUSTER_WIDE_TYPES (DIVIDE)
MUSTER_COMPLEX_TYPES (DIVIDE)

static gboolean
compute_mean (MusterKernel *k, GError **error)
{
  static void (*const divides[]) (gint64, void *, gint64) = MUSTER_NUMBER_TABLE (divide);
  Reduction r;
  MusterTensor *out = reduce_wide (k, &sum_folds, &r, error);
  MusterWide wide;

  if (out == NULL)
    return FALSE;
  wide = muster_loop_index (muster_tensor_dtype (out));
  if (r.n_reduced > 0 || wide == MUSTER_F32 || wide == MUSTER_F64)
    divides[wide](r.n_out, muster_tensor_data_mutable (out), r.n_reduced);
  return muster_wide_end (k, 0, out, error);
}

#define ROOT(suffix, T)                                                                            \
  static void root_##suffix (gint64 n, void *x)                                                    \
  {                                                                                                \
    for (gint64 i = 0; i < n; i++)                                                                 \
      ((T *)x)[i] = (T)sqrt ((double)((T *)x)[i]);                                                 \
  }
MUSTER_WIDE_TYPES (ROOT)
/* A sum of squares has no imaginary part. */
#define COMPLEX_ROOT(suffix, T)                                                                    \
  static void root_##suffix (gint64 n, void *x)                                                    \
  {                                                                                                \
    for (gint64 i = 0; i < n; i++)                                                                 \
      ((T *)x)[i] = (T)sqrt (creal (((T *)x)[i]));                                                 \
  }
MUSTER_COMPLEX_TYPES (COMPLEX_ROOT)

/* Makes of n sums in a wider type what they are in their own. */
static void
wrap (MusterDType dtype, gint64 n, gint64 *sums)
{
  guint64 narrow;
  for (gint64 i = 0; i < n && muster_wide (dtype) == MUSTER_I64; i++) {
    muster_narrow (dtype, &sums[i], 1, &narrow);
    muster_widen (dtype, &narrow, 1, &sums[i]);
  }
}

static gboolean
compute_norm (MusterKernel *k, GError **error)
{
  static void (*const roots[]) (gint64, void *) = MUSTER_NUMBER_TABLE (root);
  Reduction r;
  MusterTensor *out = reduce_wide (k, &squares_folds, &r, error);

  if (out == NULL)
    return FALSE;
  wrap (muster_kernel_output_dtype (k, 0), r.n_out, muster_tensor_data_mutable (out));
  roots[muster_loop_index (muster_tensor_dtype (out))](r.n_out, muster_tensor_data_mutable (out));
  return muster_wide_end (k, 0, out, error);
}

#define REDUCE(name, folds)                                                                        \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    return reduce (k, &folds, error);                                                              \
  }
REDUCE (compute_sum, sum_folds)
REDUCE (compute_product, product_folds)
REDUCE (compute_largest, largest_folds)
REDUCE (compute_smallest, smallest_folds)
REDUCE (compute_every, every_folds)
REDUCE (compute_some, some_folds)

/* The position of the first extreme of each run of n elements, step apart; NaN is none. */
typedef gint64 (*Position) (gint64 n, gint64 step, const void *x);

#define POSITION(name, suffix, T, FIRST, IS_BETTER)                                                \
  static gint64 name##_##suffix (gint64 n, gint64 step, const void *px)                            \
  {                                                                                                \
    const T *x = px;                                                                               \
    T b = FIRST;                                                                                   \
    gint64 best = 0;                                                                               \
    for (gint64 i = 0; i < n; i++) {                                                               \
      const T a = x[i * step];                                                                     \
      if (IS_BETTER) {                                                                             \
        best = i;                                                                                  \
        b = a;                                                                                     \
      }                                                                                            \
    }                                                                                              \
    return best;                                                                                   \
  }
#define POSITIONS(suffix, T, LOWEST, HIGHEST)                                                      \
  POSITION (arg_max, suffix, T, LOWEST, a > b)                                                     \
  POSITION (arg_min, suffix, T, HIGHEST, a < b)
POSITIONS (f32, float, -G_MAXFLOAT, G_MAXFLOAT)
POSITIONS (f64, double, -G_MAXDOUBLE, G_MAXDOUBLE)
POSITIONS (i32, gint32, G_MININT32, G_MAXINT32)
POSITIONS (i64, gint64, G_MININT64, G_MAXINT64)
POSITIONS (u64, guint64, 0, G_MAXUINT64)

static void
put_position (MusterTensor *out, gint64 i, gint64 value)
{
  switch (muster_tensor_dtype (out)) {
  case MUSTER_INT16:
  case MUSTER_UINT16:
    ((guint16 *)muster_tensor_data_mutable (out))[i] = (guint16)value;
    break;
  default:
    muster_put_int (out, i, value);
  }
}

static gboolean
positions (MusterKernel *k, const Position *table, const char *op, GError **error)
{
  g_autoptr (MusterTensor) x = muster_wide_input (k, 0, error);
  gint64 dims[MUSTER_MAX_DIMS], n, inner, size;
  const guint8 *data;
  MusterTensor *out;
  int axis = 0, n_out = 0;
  if (x == NULL || !muster_check_scalar (k, 1, "dim", error) ||
      !muster_check_axis ((gint32)muster_kernel_input_int (k, 1), muster_tensor_n_dims (x), &axis,
                          error)) /* TensorFlow, too, takes 32 bits of an int64 */
    return FALSE;
  n = muster_tensor_dims (x)[axis];
  if (n == 0)
    return muster_invalid (error, "Reduction axis %d is empty in shape of %s", axis, op);
  for (int i = 0; i < muster_tensor_n_dims (x); i++)
    if (i != axis)
      dims[n_out++] = muster_tensor_dims (x)[i];
  out = muster_kernel_output (k, 0, n_out, dims, error);
  if (out == NULL)
    return FALSE;
  inner = muster_dims_product (muster_tensor_dims (x), axis + 1, muster_tensor_n_dims (x));
  size = (gint64)muster_dtype_size (muster_tensor_dtype (x));
  data = muster_tensor_data (x);
  for (gint64 i = 0; i < muster_tensor_n_elements (out); i++)
    put_position (out, i,
                  table[muster_wide (muster_tensor_dtype (x))](
                      n, inner, data + ((i / inner) * n * inner + i % inner) * size));
  return TRUE;
}

static gboolean
compute_arg_max (MusterKernel *k, GError **error)
{
  static const Position table[] = MUSTER_WIDE_TABLE (arg_max);
  return positions (k, table, "ArgMax", error);
}

static gboolean
compute_arg_min (MusterKernel *k, GError **error)
{
  static const Position table[] = MUSTER_WIDE_TABLE (arg_min);
  return positions (k, table, "ArgMin", error);
}

#define REDUCES "input:T, reduction_indices:Tidx -> output:T"
#define AXES    "Tidx:int32|int64 keep_dims"
#define NUMBERS "T:number " AXES
#define BOOLS   "input:bool, reduction_indices:Tidx -> output:bool"
#define ARG     "input:T, dimension:Tidx -> output:output_type"
#define ARG_T   "T:any Tidx:int32|int64 output_type:int64|int32|int16|uint16"

const MusterOp muster_reduce_ops[] = {
    {"Sum", REDUCES, NUMBERS, compute_sum, 0},
    {"Mean", REDUCES, NUMBERS, compute_mean, 0},
    {"EuclideanNorm", REDUCES, NUMBERS, compute_norm, 0},
    {"Prod", REDUCES, NUMBERS, compute_product, 0},
    {"Max", REDUCES, NUMBERS, compute_largest, 0},
    {"Min", REDUCES, NUMBERS, compute_smallest, 0},
    {"All", BOOLS, AXES, compute_every, 0},
    {"Any", BOOLS, AXES, compute_some, 0},
    {"ArgMax", ARG, ARG_T, compute_arg_max, 0},
    {"ArgMin", ARG, ARG_T, compute_arg_min, 0},
    {NULL, NULL, NULL, NULL, 0},
};
