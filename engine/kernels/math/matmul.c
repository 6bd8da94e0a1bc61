// SPDX-License-Identifier: Apache-2.0
/* Matrix products: OpenBLAS for float and double, loops in C for the rest. OpenBLAS is loaded at
 * the first product that is large enough, so that a server that only waits or saves checkpoints
 * doesn't pay for its relocations and threads. If it isn't installed, the loops are used. Only two
 * of its functions are needed, with C types, so they are declared here. Why not oneDNN:
 * docs/decisions/0025. */
#include "engine/kernels/math/matmul.h"
#include "engine/kernels/math/math_op_tables.h"

#include "base/log_private.h"
#include "engine/kernels/math/complex.h"
#include "engine/run/parallel.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

/* Loops over elements are faster with -O3 than with the default -O2. */
#pragma GCC optimize("O3")

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void (*Sgemm) (int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                       const float *a, int lda, const float *b, int ldb, float beta, float *c,
                       int ldc);
typedef void (*Dgemm) (int order, int trans_a, int trans_b, int m, int n, int k, double alpha,
                       const double *a, int lda, const double *b, int ldb, double beta, double *c,
                       int ldc);

typedef struct {
  Sgemm sgemm;
  Dgemm dgemm;
} Blas;

/* Products with fewer multiplications aren't worth a library call. */
#define BLAS_FROM 512

/* OpenBLAS keeps a buffer of this size, and a little, for each call that runs at the same time. If
 * there is no memory for another one, it tries without end. */
#define BLAS_BUFFER_BYTES (((gsize)128 << 20) + ((gsize)1 << 20))

static gint n_running;      /* atomic: calls that run */
static gint n_buffers;      /* atomic: it has at least so many */
static GMutex buffers_lock; /* held by a call for which it may get another one */
static gint is_reported;    /* atomic: that it has too few */

static gboolean
has_space_for (guint n)
{
  void *space = mmap (NULL, n * BLAS_BUFFER_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space != MAP_FAILED)
    munmap (space, n * BLAS_BUFFER_BYTES);
  else if (g_atomic_int_compare_and_exchange (&is_reported, 0, 1))
    muster_log (G_LOG_LEVEL_WARNING, "openblas", "MESSAGE",
                "there is too little address space for OpenBLAS (see `ulimit -v`); matrix products "
                "are computed without it, more slowly");
  return space != MAP_FAILED;
}

/* The threads that it starts when it is loaded, each of which gets a buffer. */
static guint
n_blas_threads (void)
{
  static const char *const names[] = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS",
                                      "OMP_NUM_THREADS"};
  guint64 n = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    const char *text = g_getenv (names[i]);
    if (text != NULL && g_ascii_string_to_unsigned (text, 10, 1, G_MAXINT16, &n, NULL))
      return (guint)n;
  }
  return g_get_num_processors ();
}

static gpointer
load_blas (gpointer unused G_GNUC_UNUSED)
{
  static Blas blas;
  void *library = has_space_for (n_blas_threads () + 1)
                      ? dlopen ("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL)
                      : NULL;
  void (*set_threads) (int);

  if (library == NULL)
    return &blas;
  /* Steps run on many threads already; more threads in the library would compete with them. */
  set_threads = (void (*) (int))dlsym (library, "openblas_set_num_threads");
  if (set_threads != NULL)
    set_threads (1);
  blas.sgemm = (Sgemm)dlsym (library, "cblas_sgemm");
  blas.dgemm = (Dgemm)dlsym (library, "cblas_dgemm");
  return &blas;
}

static const Blas *
get_blas (void)
{
  static GOnce once = G_ONCE_INIT;
  return g_once (&once, load_blas, NULL);
}

/* A rectangle of a product's result. */
typedef struct {
  gint64 row, n_rows, column, n_columns;
} Part;

typedef void (*MultiplyLoop) (const MusterProduct *p, const Part *part, const void *a,
                              const void *b, void *c);

/* Computes c row by row, and reads b's rows in order unless it is transposed. */
#define MULTIPLY(suffix, T, A)                                                                     \
  static void multiply_##suffix (const MusterProduct *p, const Part *part, const void *pa,         \
                                 const void *pb, void *pc)                                         \
  {                                                                                                \
    const T *a = pa, *b = pb;                                                                      \
    gint64 a_row = p->transposes_a ? 1 : p->depth, a_column = p->transposes_a ? p->m : 1;          \
    gint64 first = part->column, end = part->column + part->n_columns;                             \
    for (gint64 i = part->row; i < part->row + part->n_rows; i++) {                                \
      T *c = (T *)pc + i * p->n;                                                                   \
      for (gint64 j = first; j < end; j++)                                                         \
        c[j] = 0;                                                                                  \
      for (gint64 l = 0; l < p->depth; l++) {                                                      \
        const T x = a[i * a_row + l * a_column];                                                   \
        if (p->transposes_b)                                                                       \
          for (gint64 j = first; j < end; j++)                                                     \
            c[j] = (T)((A)c[j] + (A)x * (A)b[j * p->depth + l]);                                   \
        else                                                                                       \
          for (gint64 j = first; j < end; j++)                                                     \
            c[j] = (T)((A)c[j] + (A)x * (A)b[l * p->n + j]);                                       \
      }                                                                                            \
    }                                                                                              \
  }
MULTIPLY (f32, float, float)
MULTIPLY (f64, double, double)
MULTIPLY (i32, gint32, guint32)
MULTIPLY (i64, gint64, guint64)
MULTIPLY (u64, guint64, guint64)
MULTIPLY (c64, float complex, float complex)
MULTIPLY (c128, double complex, double complex)

/* A call of OpenBLAS. */
typedef struct {
  gint n;             /* calls that run with it */
  gboolean is_locked; /* it may get another buffer for this one */
} BlasCall;

/* FALSE if it has no buffer for another call, and would get none. */
static gboolean
begin_call (BlasCall *self)
{
  self->n = g_atomic_int_add (&n_running, 1) + 1;
  self->is_locked = self->n > g_atomic_int_get (&n_buffers);
  if (!self->is_locked)
    return TRUE;
  g_atomic_int_add (&n_running, -1);
  g_mutex_lock (&buffers_lock);
  if (!has_space_for (1)) {
    g_mutex_unlock (&buffers_lock);
    return FALSE;
  }
  self->n = g_atomic_int_add (&n_running, 1) + 1;
  return TRUE;
}

static void
end_call (const BlasCall *self)
{
  g_atomic_int_add (&n_running, -1);
  if (!self->is_locked)
    return;
  if (self->n > g_atomic_int_get (&n_buffers))
    g_atomic_int_set (&n_buffers, self->n);
  g_mutex_unlock (&buffers_lock);
}

static gboolean
multiply_with_blas (const MusterProduct *p, const Part *part, MusterDType dtype, const void *a,
                    const void *b, void *c)
{
  int ta = p->transposes_a ? TRANS : NO_TRANS, tb = p->transposes_b ? TRANS : NO_TRANS;
  int m = (int)part->n_rows, n = (int)part->n_columns, depth = (int)p->depth;
  int lda = (int)(p->transposes_a ? p->m : p->depth),
      ldb = (int)(p->transposes_b ? p->depth : p->n);
  gint64 a_at = part->row * (p->transposes_a ? 1 : p->depth);
  gint64 b_at = part->column * (p->transposes_b ? p->depth : 1);
  gint64 c_at = part->row * p->n + part->column;
  const Blas *blas;
  if (p->m > G_MAXINT32 || p->n > G_MAXINT32 || p->depth > G_MAXINT32 ||
      (double)p->m * (double)p->n * (double)p->depth < BLAS_FROM)
    return FALSE;
  blas = get_blas ();
  const gboolean is_float = dtype == MUSTER_FLOAT && blas->sgemm != NULL;
  BlasCall call;
  if ((!is_float && (dtype != MUSTER_DOUBLE || blas->dgemm == NULL)) || !begin_call (&call))
    return FALSE;
  if (is_float)
    blas->sgemm (ROW_MAJOR, ta, tb, m, n, depth, 1, (const float *)a + a_at, lda,
                 (const float *)b + b_at, ldb, 0, (float *)c + c_at, (int)p->n);
  else
    blas->dgemm (ROW_MAJOR, ta, tb, m, n, depth, 1, (const double *)a + a_at, lda,
                 (const double *)b + b_at, ldb, 0, (double *)c + c_at, (int)p->n);
  end_call (&call);
  return TRUE;
}

static void
multiply_part (const MusterProduct *p, const Part *part, MusterDType dtype, const void *a,
               const void *b, void *c)
{
  static const MultiplyLoop loops[] = MUSTER_NUMBER_TABLE (multiply);
  if (!multiply_with_blas (p, part, dtype, a, b, c))
    loops[muster_loop_index (dtype)](p, part, a, b, c);
}

/* --- on all processors --- */

/* Products with fewer multiplications take less time than waking a thread. */
#define PARALLEL_FROM ((double)(1 << 23))
/* Each part reads one of the matrices whole, so parts have at least so many rows or columns, and
 * there are at most so many. */
#define PART_MIN   256
#define MOST_PARTS 8
#define PART_ALIGN 64

/* A product by parts of the result's longer side. OpenBLAS may round differently for a part than
 * for the whole, so the parts depend on the shape alone. */
typedef struct {
  const MusterProduct *product;
  MusterDType dtype;
  const void *a, *b;
  void *c;
} Parts;

static gint64
part_size (gint64 side)
{
  const gint64 size = MAX ((side + MOST_PARTS - 1) / MOST_PARTS, PART_MIN);
  return (size + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
}

static void
multiply_piece (gint64 begin, gint64 end, gpointer data)
{
  const Parts *self = data;
  const MusterProduct *p = self->product;
  const gboolean by_rows = p->m >= p->n;
  const Part part = {.row = by_rows ? begin : 0,
                     .n_rows = by_rows ? end - begin : p->m,
                     .column = by_rows ? 0 : begin,
                     .n_columns = by_rows ? p->n : end - begin};
  multiply_part (p, &part, self->dtype, self->a, self->b, self->c);
}

void
muster_multiply (const MusterProduct *p, MusterDType dtype, const void *a, const void *b, void *c)
{
  Parts parts = {p, dtype, a, b, c};
  const gint64 side = MAX (p->m, p->n);
  if (p->m == 0 || p->n == 0)
    return;
  if (p->depth == 0)
    memset (c, 0, (gsize)(p->m * p->n) * muster_dtype_size (dtype));
  else if ((double)p->m * (double)p->n * (double)p->depth < PARALLEL_FROM)
    multiply_part (p, &(Part){0, p->m, 0, p->n}, dtype, a, b, c);
  else
    muster_parallel_for (side, part_size (side), multiply_piece, &parts);
}

/* Reads the last two dimensions; returns FALSE if they don't match. */
static gboolean
plan_product (MusterProduct *p, const gint64 *a, const gint64 *b)
{
  gint64 b_depth = p->transposes_b ? b[1] : b[0];
  p->m = p->transposes_a ? a[1] : a[0];
  p->depth = p->transposes_a ? a[0] : a[1];
  p->n = p->transposes_b ? b[0] : b[1];
  return p->depth == b_depth;
}

static gboolean
check_matrices (MusterTensor *a, MusterTensor *b, GError **error)
{
  if (muster_tensor_n_dims (a) != muster_tensor_n_dims (b)) {
    g_autofree char *a_shape = muster_shape_text (a), *b_shape = muster_shape_text (b);
    return muster_invalid (error, "In[0] and In[1] has different ndims: %s vs. %s", a_shape,
                           b_shape);
  }
  if (muster_tensor_n_dims (a) != 2)
    return muster_invalid (error, "In[0] ndims must be >= 2: %d", muster_tensor_n_dims (a));
  return TRUE;
}

static gboolean
mismatch (MusterTensor *a, MusterTensor *b, GError **error)
{
  g_autofree char *a_shape = muster_shape_text (a), *b_shape = muster_shape_text (b);
  return muster_invalid (error, "Matrix size-incompatible: In[0]: %s, In[1]: %s", a_shape, b_shape);
}

static gboolean
compute_matmul (MusterKernel *k, GError **error)
{
  MusterTensor *a = muster_kernel_input (k, 0), *b = muster_kernel_input (k, 1), *c;
  g_autoptr (MusterTensor) wide_a = NULL, wide_b = NULL;
  MusterProduct p = {.transposes_a = muster_kernel_attr_bool (k, "transpose_a", FALSE),
                     .transposes_b = muster_kernel_attr_bool (k, "transpose_b", FALSE)};
  if (!check_matrices (a, b, error))
    return FALSE;
  if (!plan_product (&p, muster_tensor_dims (a), muster_tensor_dims (b)))
    return mismatch (a, b, error);
  wide_a = muster_number_input (k, 0, error);
  wide_b = wide_a == NULL ? NULL : muster_number_input (k, 1, error);
  c = wide_b == NULL ? NULL : muster_number_output (k, 0, 2, (gint64[]){p.m, p.n}, error);
  if (c == NULL)
    return FALSE;
  muster_multiply (&p, muster_tensor_dtype (wide_a), muster_tensor_data (wide_a),
                   muster_tensor_data (wide_b), muster_tensor_data_mutable (c));
  return muster_wide_end (k, 0, c, error);
}

/* Plans a batch of products: the dimensions before the last two, with broadcasting. */
static gboolean
plan_batch (MusterTensor *a, MusterTensor *b, const MusterProduct *p, int *n_dims, gint64 *dims)
{
  int a_rank = muster_tensor_n_dims (a), b_rank = muster_tensor_n_dims (b);
  int n = MAX (a_rank, b_rank);
  for (int i = 0; i < n - 2; i++) {
    int ai = i - (n - a_rank), bi = i - (n - b_rank);
    gint64 x = ai < 0 ? 1 : muster_tensor_dims (a)[ai], y = bi < 0 ? 1 : muster_tensor_dims (b)[bi];
    if (x != y && x != 1 && y != 1)
      return FALSE;
    dims[i] = x == 1 ? y : x;
  }
  dims[n - 2] = p->m;
  dims[n - 1] = p->n;
  *n_dims = n;
  return TRUE;
}

/* The matrix of x (n_dims in all) for matrix i of the result. */
static gint64
matrix_of (MusterTensor *x, gint64 i, int n_dims, const gint64 *dims)
{
  gint64 index = 0, step = 1;
  for (int d = n_dims - 3; d >= 0; d--) {
    int own = d - (n_dims - muster_tensor_n_dims (x));
    gint64 size = own < 0 ? 1 : muster_tensor_dims (x)[own];
    index += size == 1 ? 0 : i % dims[d] * step;
    step *= size;
    i /= dims[d];
  }
  return index;
}

/* The products of a batch. */
typedef struct {
  const MusterProduct *product;
  MusterTensor *a, *b, *c;
} Batch;

static void
multiply_some (gint64 begin, gint64 end, gpointer data)
{
  const Batch *self = data;
  const MusterProduct *p = self->product;
  MusterTensor *c = self->c;
  gint64 size = (gint64)muster_dtype_size (muster_tensor_dtype (c));
  int n_dims = muster_tensor_n_dims (c);
  const gint64 *dims = muster_tensor_dims (c);
  guint8 *results = muster_tensor_data_mutable (c);
  for (gint64 i = begin; i < end; i++)
    muster_multiply (p, muster_tensor_dtype (c),
                     (const guint8 *)muster_tensor_data (self->a) +
                         matrix_of (self->a, i, n_dims, dims) * p->m * p->depth * size,
                     (const guint8 *)muster_tensor_data (self->b) +
                         matrix_of (self->b, i, n_dims, dims) * p->n * p->depth * size,
                     results + i * p->m * p->n * size);
}

/* A piece of a batch that is worth waking a thread for, or one that has cores of its own. */
static void
multiply_each (const MusterProduct *p, MusterTensor *a, MusterTensor *b, MusterTensor *c)
{
  Batch batch = {p, a, b, c};
  const double each = (double)p->m * (double)p->n * (double)MAX (p->depth, 1);
  const gint64 n = each == 0 ? 0 : muster_tensor_n_elements (c) / (p->m * p->n);
  const double n_together = MAX (PARALLEL_FROM / MAX (each, 1), 1);
  muster_parallel_for (n, n_together < (double)n ? (gint64)n_together : MAX (n, 1), multiply_some,
                       &batch);
}

/* The conjugate of an input used as its adjoint; the product then transposes it. */
static MusterTensor *
adjoint_input (MusterKernel *k, int i, gboolean is_adjoint, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, i), *y;
  MusterDType dtype = muster_tensor_dtype (x);
  if (!is_adjoint || !muster_dtype_is_complex (dtype))
    return muster_number_input (k, i, error);
  y = muster_kernel_temporary (k, dtype, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (y != NULL)
    muster_conjugate (dtype, muster_tensor_n_elements (x), muster_tensor_data (x),
                      muster_tensor_data_mutable (y));
  return y;
}

static gboolean
compute_batch_matmul (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *y = muster_kernel_input (k, 1), *c;
  int x_rank = muster_tensor_n_dims (x), y_rank = muster_tensor_n_dims (y), n_dims = 0;
  g_autoptr (MusterTensor) a = NULL, b = NULL;
  MusterProduct p = {.transposes_a = muster_kernel_attr_bool (k, "adj_x", FALSE),
                     .transposes_b = muster_kernel_attr_bool (k, "adj_y", FALSE)};
  gint64 dims[MUSTER_MAX_DIMS];
  if (x_rank < 2 || y_rank < 2)
    return muster_invalid (error, "In[%d] ndims must be >= 2: %d", x_rank < 2 ? 0 : 1,
                           x_rank < 2 ? x_rank : y_rank);
  if (!plan_product (&p, muster_tensor_dims (x) + x_rank - 2, muster_tensor_dims (y) + y_rank - 2))
    return mismatch (x, y, error);
  if (!plan_batch (x, y, &p, &n_dims, dims))
    return muster_invalid (error, "In[0] and In[1] must have compatible batch dimensions");
  a = adjoint_input (k, 0, p.transposes_a, error);
  b = a == NULL ? NULL : adjoint_input (k, 1, p.transposes_b, error);
  c = b == NULL ? NULL : muster_number_output (k, 0, n_dims, dims, error);
  if (c == NULL)
    return FALSE;
  multiply_each (&p, a, b, c);
  return muster_wide_end (k, 0, c, error);
}

/* The first version doesn't broadcast. */
static gboolean
compute_batch_matmul_v1 (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *y = muster_kernel_input (k, 1);
  const int n = muster_tensor_n_dims (x);
  if (n != muster_tensor_n_dims (y) || memcmp (muster_tensor_dims (x), muster_tensor_dims (y),
                                               (gsize)MAX (n - 2, 0) * sizeof (gint64)) != 0) {
    g_autofree char *a = muster_shape_text (x), *b = muster_shape_text (y);
    return muster_invalid (error, "In[0] and In[1] must have the same batch dimensions: %s vs. %s",
                           a, b);
  }
  return compute_batch_matmul (k, error);
}

const MusterOp muster_matmul_ops[] = {
    {"MatMul", "a:T, b:T -> product:T", "T:number transpose_a transpose_b", compute_matmul, 0},
    {"BatchMatMul", "x:T, y:T -> output:T", "T:number adj_x adj_y", compute_batch_matmul_v1, 0},
    {"BatchMatMulV2", "x:T, y:T -> output:T", "T:number adj_x adj_y", compute_batch_matmul, 0},
    {NULL, NULL, NULL, NULL, 0},
};
