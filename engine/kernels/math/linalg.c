// SPDX-License-Identifier: Apache-2.0
/* Linear algebra on stacks of matrices. All is computed in double, or complex double. */
#include "engine/kernels/math/complex.h"
#include "engine/kernels/math/math_op_tables.h"

#include <math.h>
#include <string.h>

/* Loops over elements are faster with -O3 than with the default -O2. */
#pragma GCC optimize("O3")

#define T          double
#define NAME(name) name##_real
#define CONJ(x)    (x)
#define REAL(x)    (x)
#define IMAG(x)    0.0
#define SIZE(x)    fabs (x)
#define SIGN(x)    ((x) > 0 ? 1 : (x) < 0 ? -1 : (x)) /* zero and NaN are their own */
#include "engine/kernels/math/linalg_loops.h"
#undef T
#undef NAME
#undef CONJ
#undef REAL
#undef IMAG
#undef SIZE
#undef SIGN

#define T          double complex
#define NAME(name) name##_complex
#define CONJ(x)    conj (x)
#define REAL(x)    creal (x)
#define IMAG(x)    cimag (x)
#define SIZE(x)    cabs (x)
#define SIGN(x)    ((x) == 0 ? 0 : (x) / cabs (x))
#include "engine/kernels/math/linalg_loops.h"

/* An input as double or complex double, (transfer full). */
static MusterTensor *
precise_input (MusterKernel *k, int i, GError **error)
{
  g_autoptr (MusterTensor) x = muster_number_input (k, i, error);
  const MusterDType dtype = x != NULL ? muster_tensor_dtype (x) : MUSTER_INVALID;
  const gboolean is_complex = muster_dtype_is_complex (dtype);
  MusterTensor *out;
  gint64 n;
  if (x == NULL || dtype == MUSTER_DOUBLE || dtype == MUSTER_COMPLEX128)
    return g_steal_pointer (&x);
  out = muster_kernel_temporary (k, is_complex ? MUSTER_COMPLEX128 : MUSTER_DOUBLE,
                                 muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  n = out == NULL ? 0 : muster_tensor_n_elements (x) * (is_complex ? 2 : 1);
  for (gint64 j = 0; j < n; j++)
    ((double *)muster_tensor_data_mutable (out))[j] =
        (double)((const float *)muster_tensor_data (x))[j];
  return out;
}

/* Allocates output i, and sets it; x: (transfer full). */
static MusterTensor *
precise_output (MusterKernel *k, int i, int n_dims, const gint64 *dims, GError **error)
{
  return muster_kernel_temporary (k,
                                  muster_dtype_is_complex (muster_kernel_output_dtype (k, i))
                                      ? MUSTER_COMPLEX128
                                      : MUSTER_DOUBLE,
                                  n_dims, dims, error);
}

static gboolean
precise_end (MusterKernel *k, int i, MusterTensor *x, GError **error)
{
  g_autoptr (MusterTensor) from = x;
  MusterTensor *out;
  gint64 n;
  if (muster_kernel_output_dtype (k, i) == muster_tensor_dtype (x)) {
    muster_kernel_set_output (k, i, g_steal_pointer (&from));
    return TRUE;
  }
  out = muster_number_output (k, i, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (out == NULL)
    return FALSE;
  n = muster_tensor_n_elements (x) * (muster_tensor_dtype (x) == MUSTER_COMPLEX128 ? 2 : 1);
  for (gint64 j = 0; j < n; j++)
    ((float *)muster_tensor_data_mutable (out))[j] =
        (float)((const double *)muster_tensor_data (x))[j];
  return muster_wide_end (k, i, out, error);
}

/* A batch of matrices being computed. */
typedef struct {
  gboolean is_complex;
  gsize size;                           /* of an element */
  int n_dims;                           /* before the last two */
  gint64 count, m, n;                   /* matrices of m × n */
  gint64 dims[MUSTER_MAX_DIMS];         /* of input 0 */
  MusterTensor *a, *b, *outs[2], *work; /* (owned) (nullable) */
  gint64 *rows;                         /* (owned) (nullable) */
} Stack;

static void
stack_clear (Stack *self)
{
  g_clear_pointer (&self->a, muster_tensor_unref);
  g_clear_pointer (&self->b, muster_tensor_unref);
  g_clear_pointer (&self->outs[0], muster_tensor_unref);
  g_clear_pointer (&self->outs[1], muster_tensor_unref);
  g_clear_pointer (&self->work, muster_tensor_unref);
  g_clear_pointer (&self->rows, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Stack, stack_clear)

static gboolean
read_stack (MusterKernel *k, gboolean is_square, Stack *s, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  const int n_dims = muster_tensor_n_dims (x);
  if (n_dims < 2)
    return muster_invalid (error, "Input tensor 0 must have rank >= 2, got %d", n_dims);
  memcpy (s->dims, muster_tensor_dims (x), (gsize)n_dims * sizeof *s->dims);
  s->n_dims = n_dims - 2;
  s->m = s->dims[n_dims - 2];
  s->n = s->dims[n_dims - 1];
  if (is_square && s->m != s->n)
    return muster_invalid (
        error, "Input matrix must be square, got %" G_GINT64_FORMAT " x %" G_GINT64_FORMAT, s->m,
        s->n);
  s->count = muster_dims_product (s->dims, 0, s->n_dims);
  s->is_complex = muster_dtype_is_complex (muster_tensor_dtype (x));
  s->size = s->is_complex ? sizeof (double complex) : sizeof (double);
  s->a = precise_input (k, 0, error);
  return s->a != NULL;
}

/* Allocates n × m elements, `more` elements and a permutation of the rows; nothing if there are no
 * matrices. */
static gboolean
allocate_work (MusterKernel *k, Stack *s, gint64 n, gint64 m, gint64 more, GError **error)
{
  const gboolean is_needed = s->count > 0;
  const gint64 n_elements = is_needed ? n * m + more : 0;
  const gint64 n_rows = is_needed ? MIN (s->m, s->n) : 0;
  s->rows = muster_kernel_alloc (k, n_rows, sizeof (gint64), error);
  if (s->rows == NULL)
    return FALSE;
  s->work = muster_kernel_temporary (k, s->is_complex ? MUSTER_COMPLEX128 : MUSTER_DOUBLE, 1,
                                     &n_elements, error);
  return s->work != NULL;
}

static gboolean
take_output (MusterKernel *k, Stack *s, int i, int n_dims, const gint64 *dims, GError **error)
{
  s->outs[i] = precise_output (k, i, n_dims, dims, error);
  return s->outs[i] != NULL;
}

static gboolean
set_output (MusterKernel *k, Stack *s, int i, GError **error)
{
  return precise_end (k, i, g_steal_pointer (&s->outs[i]), error);
}

/* The start of matrix i, of size elements; NULL for NULL. */
static const void *
input_matrix (const Stack *s, const MusterTensor *x, gint64 i, gint64 size)
{
  return x == NULL ? NULL : (const guint8 *)muster_tensor_data (x) + (gsize)(i * size) * s->size;
}

static void *
matrix (const Stack *s, MusterTensor *x, gint64 i, gint64 size)
{
  return (guint8 *)muster_tensor_data_mutable (x) + (gsize)(i * size) * s->size;
}

/* Solves for input 1, which has m columns for each matrix, or for the unit matrix. Without columns,
 * any matrix will do. */
static gboolean
solve_all (MusterKernel *k, Stack *s, gint64 m, const char *singular, GError **error)
{
  const gboolean adjoint = muster_kernel_attr_bool (k, "adjoint", FALSE);
  if (!allocate_work (k, s, s->n, s->n, 0, error))
    return FALSE;
  for (gint64 i = 0; i < s->count && s->n > 0 && m > 0; i++) {
    const void *a = input_matrix (s, s->a, i, s->n * s->n);
    const void *b = input_matrix (s, s->b, i, s->n * m);
    void *x = matrix (s, s->outs[0], i, s->n * m), *room = muster_tensor_data_mutable (s->work);
    if (!(s->is_complex ? solve_complex (a, s->n, adjoint, b, m, x, room, s->rows)
                        : solve_real (a, s->n, adjoint, b, m, x, room, s->rows)))
      return muster_invalid (error, "%s", singular);
  }
  return set_output (k, s, 0, error);
}

static gboolean
compute_inverse (MusterKernel *k, GError **error)
{
  g_auto (Stack) s = {0};
  return read_stack (k, TRUE, &s, error) && take_output (k, &s, 0, s.n_dims + 2, s.dims, error) &&
         solve_all (k, &s, s.n, "Input is not invertible.", error);
}

static gboolean
compute_solve (MusterKernel *k, GError **error)
{
  g_auto (Stack) s = {0};
  MusterTensor *b = muster_kernel_input (k, 1);
  if (!read_stack (k, TRUE, &s, error))
    return FALSE;
  if (muster_tensor_n_dims (b) != s.n_dims + 2 ||
      memcmp (muster_tensor_dims (b), s.dims, (gsize)(s.n_dims + 1) * sizeof *s.dims) != 0) {
    g_autofree char *x = muster_shape_text (muster_kernel_input (k, 0)), *y = muster_shape_text (b);
    return muster_invalid (error, "Input matrix and rhs are incompatible: %s and %s", x, y);
  }
  s.b = precise_input (k, 1, error);
  return s.b != NULL && take_output (k, &s, 0, s.n_dims + 2, muster_tensor_dims (b), error) &&
         solve_all (k, &s, muster_tensor_dims (b)[s.n_dims + 1], "Input matrix is not invertible.",
                    error);
}

/* The matrix of x for matrix i of a result of n_dims + 2 dimensions, with broadcasting. */
static gint64
matrix_of (MusterTensor *x, gint64 i, int n_dims, const gint64 *dims)
{
  gint64 index = 0, step = 1;
  for (int d = n_dims - 1; d >= 0; d--) {
    const int own = d - (n_dims + 2 - muster_tensor_n_dims (x));
    const gint64 size = own < 0 ? 1 : muster_tensor_dims (x)[own];
    index += size == 1 ? 0 : i % dims[d] * step;
    step *= size;
    i /= dims[d];
  }
  return index;
}

/* Broadcasts the batch dimensions; returns their number, or -1 if they are incompatible. */
static int
stretch (MusterTensor *a, MusterTensor *b, gint64 *dims)
{
  const int x = muster_tensor_n_dims (a) - 2, y = muster_tensor_n_dims (b) - 2, n = MAX (x, y);
  for (int d = 0; d < n; d++) {
    const gint64 p = d < n - x ? 1 : muster_tensor_dims (a)[d - (n - x)];
    const gint64 q = d < n - y ? 1 : muster_tensor_dims (b)[d - (n - y)];
    if (p != q && p != 1 && q != 1)
      return -1;
    dims[d] = p == 1 ? q : p;
  }
  return n;
}

static void
solve_triangle (const Stack *s, const void *a, gboolean lower, gboolean adjoint, const void *b,
                gint64 m, void *x)
{
  void *work = muster_tensor_data_mutable (s->work);
  if (adjoint && s->is_complex)
    adjoin_complex (a, s->n, work);
  else if (adjoint)
    adjoin_real (a, s->n, work);
  memcpy (x, b, (gsize)(s->n * m) * s->size);
  if (s->is_complex)
    substitute_complex (adjoint ? work : a, s->n, lower != adjoint, FALSE, x, m);
  else
    substitute_real (adjoint ? work : a, s->n, lower != adjoint, FALSE, x, m);
}

static gboolean
compute_triangular_solve (MusterKernel *k, GError **error)
{
  const gboolean lower = muster_kernel_attr_bool (k, "lower", TRUE);
  const gboolean adjoint = muster_kernel_attr_bool (k, "adjoint", FALSE);
  g_auto (Stack) s = {0};
  MusterTensor *b = muster_kernel_input (k, 1);
  gint64 dims[MUSTER_MAX_DIMS], m, count;
  int n_dims;
  if (!read_stack (k, TRUE, &s, error))
    return FALSE;
  if (muster_tensor_n_dims (b) < 2 || muster_tensor_dims (b)[muster_tensor_n_dims (b) - 2] != s.n ||
      (n_dims = stretch (muster_kernel_input (k, 0), b, dims)) < 0) {
    g_autofree char *x = muster_shape_text (muster_kernel_input (k, 0)), *y = muster_shape_text (b);
    return muster_invalid (error, "In[0] and In[1] have incompatible shapes: %s and %s", x, y);
  }
  m = muster_tensor_dims (b)[muster_tensor_n_dims (b) - 1];
  dims[n_dims] = s.n;
  dims[n_dims + 1] = m;
  s.b = precise_input (k, 1, error);
  if (s.b == NULL || !take_output (k, &s, 0, n_dims + 2, dims, error) ||
      !allocate_work (k, &s, s.n, s.n, 0, error))
    return FALSE;
  count = s.n == 0 || m == 0 ? 0 : muster_tensor_n_elements (s.outs[0]) / (s.n * m);
  for (gint64 i = 0; i < count; i++)
    solve_triangle (&s, input_matrix (&s, s.a, matrix_of (s.a, i, n_dims, dims), s.n * s.n), lower,
                    adjoint, input_matrix (&s, s.b, matrix_of (s.b, i, n_dims, dims), s.n * m), m,
                    matrix (&s, s.outs[0], i, s.n * m));
  return set_output (k, &s, 0, error);
}

static gboolean
compute_cholesky (MusterKernel *k, GError **error)
{
  g_auto (Stack) s = {0};
  if (!read_stack (k, TRUE, &s, error) || !take_output (k, &s, 0, s.n_dims + 2, s.dims, error))
    return FALSE;
  for (gint64 i = 0; i < s.count && s.n > 0; i++) {
    const void *a = input_matrix (&s, s.a, i, s.n * s.n);
    void *l = matrix (&s, s.outs[0], i, s.n * s.n);
    if (s.is_complex)
      cholesky_complex (a, s.n, l);
    else
      cholesky_real (a, s.n, l);
  }
  return set_output (k, &s, 0, error);
}

/* Outputs: the determinants, or their signs and the logarithms of their sizes. */
static gboolean
determine_all (MusterKernel *k, gboolean is_log, GError **error)
{
  g_auto (Stack) s = {0};
  double complex numbers[3] = {0};

  if (!read_stack (k, TRUE, &s, error) || !take_output (k, &s, 0, s.n_dims, s.dims, error) ||
      (is_log && !take_output (k, &s, 1, s.n_dims, s.dims, error)) ||
      !allocate_work (k, &s, s.n, s.n, 0, error))
    return FALSE;
  for (gint64 i = 0; i < s.count; i++) {
    static const double none = 1;
    void *work = s.n > 0 ? muster_tensor_data_mutable (s.work) : numbers;
    const void *a = s.n > 0 ? input_matrix (&s, s.a, i, s.n * s.n) : (const void *)&none;
    double real[3] = {0};
    if (s.is_complex)
      determine_complex (a, s.n, work, s.rows, &numbers[0], &numbers[1], &numbers[2]);
    else
      determine_real (a, s.n, work, s.rows, &real[0], &real[1], &real[2]);
    for (int out = 0; out < (is_log ? 2 : 1); out++)
      memcpy (matrix (&s, s.outs[out], i, 1),
              s.is_complex ? (void *)&numbers[out + is_log] : (void *)&real[out + is_log], s.size);
  }
  return set_output (k, &s, 0, error) && (!is_log || set_output (k, &s, 1, error));
}

static gboolean
compute_determinant (MusterKernel *k, GError **error)
{
  return determine_all (k, FALSE, error);
}

static gboolean
compute_log_determinant (MusterKernel *k, GError **error)
{
  return determine_all (k, TRUE, error);
}

static void
split_qr (const Stack *s, gint64 i, gint64 q_columns, gint64 r_rows)
{
  const gint64 least = MIN (s->m, s->n);
  void *a = matrix (s, s->a, i, s->m * s->n), *v = muster_tensor_data_mutable (s->work);
  void *tau = matrix (s, s->work, 1, least * s->m);
  void *work = matrix (s, s->work, 1, least * s->m + least);
  void *q = matrix (s, s->outs[0], i, s->m * q_columns);
  if (s->is_complex) {
    reflect_complex (a, s->m, s->n, v, tau, work);
    make_q_complex (v, tau, s->m, least, q, q_columns, work);
  } else {
    reflect_real (a, s->m, s->n, v, tau, work);
    make_q_real (v, tau, s->m, least, q, q_columns, work);
  }
  memcpy (matrix (s, s->outs[1], i, r_rows * s->n), a, (gsize)(r_rows * s->n) * s->size);
}

static gboolean
compute_qr (MusterKernel *k, GError **error)
{
  const gboolean is_full = muster_kernel_attr_bool (k, "full_matrices", FALSE);
  g_auto (Stack) s = {0};
  gint64 dims[MUSTER_MAX_DIMS], least, side;
  MusterTensor *copy;
  if (!read_stack (k, FALSE, &s, error))
    return FALSE;
  least = MIN (s.m, s.n);
  side = is_full ? s.m : least;
  memcpy (dims, s.dims, (gsize)s.n_dims * sizeof *dims);
  dims[s.n_dims] = s.m;
  dims[s.n_dims + 1] = side;
  if (!take_output (k, &s, 0, s.n_dims + 2, dims, error))
    return FALSE;
  dims[s.n_dims] = side;
  dims[s.n_dims + 1] = s.n;
  copy = muster_kernel_temporary (k, muster_tensor_dtype (s.a), s.n_dims + 2, s.dims, error);
  if (copy == NULL)
    return FALSE;
  if (muster_tensor_n_bytes (copy) > 0)
    memcpy (muster_tensor_data_mutable (copy), muster_tensor_data (s.a),
            muster_tensor_n_bytes (copy));
  muster_tensor_unref (s.a);
  s.a = copy;
  if (!take_output (k, &s, 1, s.n_dims + 2, dims, error) ||
      !allocate_work (k, &s, least, s.m, least + MAX (s.n, side), error))
    return FALSE;
  for (gint64 i = 0; i < s.count && s.m > 0; i++)
    split_qr (&s, i, side, side);
  return set_output (k, &s, 0, error) && set_output (k, &s, 1, error);
}

#define TYPES "T:float|double|half|complex64|complex128"

const MusterOp muster_linalg_ops[] = {
    {"MatrixInverse", "input:T -> output:T", TYPES " adjoint", compute_inverse, 0},
    {"MatrixSolve", "matrix:T, rhs:T -> output:T", TYPES " adjoint", compute_solve, 0},
    {"MatrixTriangularSolve", "matrix:T, rhs:T -> output:T", TYPES " lower adjoint",
     compute_triangular_solve, 0},
    {"Cholesky", "input:T -> output:T", TYPES, compute_cholesky, 0},
    {"MatrixDeterminant", "input:T -> output:T", TYPES, compute_determinant, 0},
    {"LogMatrixDeterminant", "input:T -> sign:T, log_abs_determinant:T", TYPES,
     compute_log_determinant, 0},
    {"Qr", "input:T -> q:T, r:T", TYPES " full_matrices", compute_qr, 0},
    {NULL, NULL, NULL, NULL, 0},
};
