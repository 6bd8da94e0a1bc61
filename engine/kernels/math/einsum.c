// SPDX-License-Identifier: Apache-2.0
/* Einstein summation: "ab,bc->ac". Each input is permuted to a matrix, or a batch of matrices;
 * these are multiplied, and the product is permuted to the requested order. */
#include "engine/kernels/common/broadcast.h"
#include "engine/kernels/common/strings.h"
#include "engine/kernels/math/complex.h"
#include "engine/kernels/math/math_op_tables.h"
#include "engine/kernels/math/matmul.h"

#include <string.h>

/* Labels are the letters, then the dimensions of "...", starting with the last one. */
#define ELLIPSIS  (2 * 26)
#define MAX_LABEL (ELLIPSIS + MUSTER_MAX_DIMS)

/* The labels of an input's or the output's dimensions, in order. */
typedef struct {
  int n;
  int labels[MUSTER_MAX_DIMS];
  gboolean has[MAX_LABEL];
  gint64 steps[MAX_LABEL]; /* a repeated label takes the diagonal */
} Term;

typedef struct {
  int n_inputs;
  Term inputs[2], out;
  gint64 sizes[MAX_LABEL];
  int n_ellipsis; /* maximum number of its dimensions */
} Einsum;

static gboolean
refuse_equation (const char *equation, const char *why, GError **error)
{
  g_autofree char *valid = g_utf8_make_valid (equation, -1);
  return muster_invalid (error, "Invalid einsum equation '%s': %s", valid, why);
}

static gboolean
add_label (Term *term, int label)
{
  if (term->n == MUSTER_MAX_DIMS)
    return FALSE;
  term->labels[term->n++] = label;
  return TRUE;
}

/* n_ellipsis: the number of dimensions of "..." in this input. */
static const char *
read_term (const char *text, int n_ellipsis, Term *term)
{
  gboolean seen = FALSE;
  for (; *text != '\0'; text++) {
    if (g_ascii_isalpha (*text)) {
      const int label = g_ascii_islower (*text) ? *text - 'a' : *text - 'A' + 26;
      if (!add_label (term, label))
        return "too many labels";
      continue;
    }
    if (*text == ' ')
      continue;
    if (!g_str_has_prefix (text, "..."))
      return "labels must be letters";
    if (seen)
      return "more than one ellipsis in a term";
    seen = TRUE;
    text += 2;
    for (int i = n_ellipsis - 1; i >= 0; i--)
      if (!add_label (term, ELLIPSIS + i))
        return "too many labels";
  }
  return NULL;
}

static int
count_letters (const char *text)
{
  int n = 0;
  for (; *text != '\0'; text++)
    n += g_ascii_isalpha (*text) != 0;
  return n;
}

/* Records the sizes of an input's labels; a size of 1 in "..." is broadcast. */
static gboolean
note_sizes (Einsum *e, const Term *term, MusterTensor *x, GError **error)
{
  for (int d = 0; d < term->n; d++) {
    gint64 *size = &e->sizes[term->labels[d]];
    const gint64 own = muster_tensor_dims (x)[d];
    const gboolean is_stretched = term->labels[d] >= ELLIPSIS;
    if (*size < 0 || (is_stretched && *size == 1)) {
      *size = own;
    } else if (*size != own && !(is_stretched && own == 1)) {
      g_autofree char *shape = muster_shape_text (x);
      return muster_invalid (
          error,
          "Expected dimension %" G_GINT64_FORMAT
          " at axis %d of the input shaped %s but got dimension %" G_GINT64_FORMAT,
          *size, d, shape, own);
    }
  }
  return TRUE;
}

static gboolean
read_input (Einsum *e, const char *equation, const char *text, int i, MusterTensor *x,
            GError **error)
{
  const int n_dims = muster_tensor_n_dims (x), n_letters = count_letters (text);
  const gboolean has_ellipsis = strstr (text, "...") != NULL;
  const int n_ellipsis = has_ellipsis ? n_dims - n_letters : 0;
  const char *mistake = read_term (text, MAX (n_ellipsis, 0), &e->inputs[i]);
  if (mistake != NULL)
    return refuse_equation (equation, mistake, error);
  if (n_ellipsis < 0 || e->inputs[i].n != n_dims) {
    g_autofree char *shape = muster_shape_text (x);
    return muster_invalid (error,
                           "Expected input %d to have rank %s%d but got: %d (shape %s, equation "
                           "'%s')",
                           i, has_ellipsis ? "at least " : "", n_letters, n_dims, shape, equation);
  }
  e->n_ellipsis = MAX (e->n_ellipsis, n_ellipsis);
  return note_sizes (e, &e->inputs[i], x, error);
}

static gboolean
read_equation (MusterKernel *k, Einsum *e, GError **error)
{
  g_autofree char *equation = muster_kernel_attr_text (k, "equation");
  g_auto (GStrv) sides = g_strsplit (equation, "->", 3);
  g_auto (GStrv) inputs = NULL;
  const char *mistake;

  if (g_strv_length (sides) != 2)
    return refuse_equation (equation, "exactly one '->' is required", error);
  inputs = g_strsplit (sides[0], ",", e->n_inputs + 1);
  if (g_strv_length (inputs) != (guint)e->n_inputs &&
      !(e->n_inputs == 1 && g_strv_length (inputs) == 0))
    return refuse_equation (equation, "its number of inputs isn't the node's", error);
  for (int i = 0; i < MAX_LABEL; i++)
    e->sizes[i] = -1;
  for (int i = 0; i < e->n_inputs; i++)
    if (!read_input (e, equation, inputs[i] != NULL ? inputs[i] : "", i, muster_kernel_input (k, i),
                     error))
      return FALSE;
  mistake = read_term (sides[1], e->n_ellipsis, &e->out);
  if (mistake != NULL)
    return refuse_equation (equation, mistake, error);
  for (int d = 0; d < e->out.n; d++)
    if (e->sizes[e->out.labels[d]] < 0)
      return refuse_equation (equation, "the output has a label that no input has", error);
  return TRUE;
}

/* Computes the strides by label. */
static void
note_steps (const Einsum *e, Term *term, const gint64 *dims)
{
  gint64 steps[MUSTER_MAX_DIMS];
  muster_dense_steps (term->n, dims, steps);
  for (int d = 0; d < term->n; d++) {
    const int label = term->labels[d];
    if (dims[d] == 1 && e->sizes[label] != 1)
      continue; /* broadcast: stride 0 */
    term->has[label] = TRUE;
    term->steps[label] += steps[d];
  }
}

/* A sequence of labels, the dimensions of a dense array. */
typedef struct {
  int n;
  int labels[MAX_LABEL];
} Order;

/* Appends the labels of `with` that are (TRUE) or aren't (FALSE) in the other input and in the
 * output. Returns the product of their sizes. */
static gint64
append_labels (const Einsum *e, Order *order, const Term *with, const Term *other,
               gboolean in_other, gboolean in_out)
{
  gint64 n = 1;
  for (int label = 0; label < MAX_LABEL; label++)
    if (with->has[label] && (other != NULL && other->has[label]) == in_other &&
        e->out.has[label] == in_out) {
      order->labels[order->n++] = label;
      n = (gint64)((guint64)n * (guint64)e->sizes[label]);
    }
  return n;
}

/* Returns the labels' sizes; -1 if a tensor can't have so many. */
static int
sizes_of (const Einsum *e, const Order *order, gint64 *dims, GError **error)
{
  if (order->n > MUSTER_MAX_DIMS) {
    muster_invalid (error, "An einsum over %d labels has more than %d", order->n, MUSTER_MAX_DIMS);
    return -1;
  }
  for (int i = 0; i < order->n; i++)
    dims[i] = e->sizes[order->labels[i]];
  return order->n;
}

/* A dense copy of x with its dimensions in that order. */
static MusterTensor *
pack (MusterKernel *k, const Einsum *e, const Term *term, const Order *order, MusterTensor *x,
      GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS], to[MUSTER_MAX_DIMS], from[MUSTER_MAX_DIMS];
  const int n = sizes_of (e, order, dims, error);
  MusterTensor *packed =
      n < 0 ? NULL : muster_kernel_temporary (k, muster_tensor_dtype (x), n, dims, error);

  if (packed == NULL)
    return NULL;
  muster_dense_steps (n, dims, to);
  for (int i = 0; i < n; i++)
    from[i] = term->steps[order->labels[i]];
  if (muster_tensor_n_elements (packed) > 0)
    muster_copy_block (muster_dtype_size (muster_tensor_dtype (x)), n, dims,
                       muster_tensor_data_mutable (packed), to, muster_tensor_data (x), from);
  return packed;
}

typedef void (*SumRows) (gint64 n, gint64 each, const void *x, void *out);

#define SUM_ROWS(suffix, T)                                                                        \
  static void sum_rows_##suffix (gint64 n, gint64 each, const void *px, void *pout)                \
  {                                                                                                \
    const T *x = px;                                                                               \
    for (gint64 i = 0; i < n; i++, x += each) {                                                    \
      T sum = 0;                                                                                   \
      for (gint64 j = 0; j < each; j++)                                                            \
        sum = (T)(sum + x[j]);                                                                     \
      ((T *)pout)[i] = sum;                                                                        \
    }                                                                                              \
  }
SUM_ROWS (f32, float)
SUM_ROWS (f64, double)
/* integers wrap */
SUM_ROWS (i32, guint32)
SUM_ROWS (i64, guint64)
SUM_ROWS (u64, guint64)
SUM_ROWS (c64, float complex)
SUM_ROWS (c128, double complex)

/* Sums over the last dimensions, which have `each` elements; x: (transfer full). */
static MusterTensor *
sum_last (MusterKernel *k, MusterTensor *x, gint64 n, gint64 each, GError **error)
{
  static const SumRows loops[] = MUSTER_NUMBER_TABLE (sum_rows);
  g_autoptr (MusterTensor) from = x;
  MusterTensor *out;
  if (from == NULL || each == 1)
    return g_steal_pointer (&from);
  out = muster_kernel_temporary (k, muster_tensor_dtype (x), 1, &n, error);
  if (out != NULL && n > 0)
    loops[muster_loop_index (muster_tensor_dtype (x))](n, each, muster_tensor_data (x),
                                                       muster_tensor_data_mutable (out));
  return out;
}

/* Sets the output from result, which is dense, with its dimensions in that order. */
static gboolean
set_ordered (MusterKernel *k, Einsum *e, const Order *order, MusterTensor *result, GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS], from[MUSTER_MAX_DIMS], to[MUSTER_MAX_DIMS];
  gint64 sizes[MUSTER_MAX_DIMS], steps[MUSTER_MAX_DIMS];
  const int n = sizes_of (e, order, sizes, error);
  MusterTensor *out;
  if (n < 0)
    return FALSE;
  for (int d = 0; d < e->out.n; d++)
    dims[d] = e->sizes[e->out.labels[d]];
  out = muster_number_output (k, 0, e->out.n, dims, error);
  if (out == NULL)
    return FALSE;
  if (muster_tensor_n_bytes (out) > 0) {
    memset (e->out.steps, 0, sizeof e->out.steps);
    muster_dense_steps (e->out.n, dims, steps);
    for (int d = 0; d < e->out.n; d++)
      e->out.steps[e->out.labels[d]] += steps[d];
    muster_dense_steps (n, sizes, from);
    for (int i = 0; i < n; i++)
      to[i] = e->out.steps[order->labels[i]];
    memset (muster_tensor_data_mutable (out), 0, muster_tensor_n_bytes (out));
    muster_copy_block (muster_dtype_size (muster_tensor_dtype (out)), n, sizes,
                       muster_tensor_data_mutable (out), to, muster_tensor_data (result), from);
  }
  return muster_wide_end (k, 0, out, error);
}

static gboolean
sum_one (MusterKernel *k, Einsum *e, MusterTensor *x, GError **error)
{
  g_autofree Order *all = g_new0 (Order, 1), *kept = g_new0 (Order, 1);
  const gint64 n = append_labels (e, all, &e->inputs[0], NULL, FALSE, TRUE);
  const gint64 each = append_labels (e, all, &e->inputs[0], NULL, FALSE, FALSE);
  g_autoptr (MusterTensor) result =
      sum_last (k, pack (k, e, &e->inputs[0], all, x, error), n, each, error);

  append_labels (e, kept, &e->inputs[0], NULL, FALSE, TRUE);
  return result != NULL && set_ordered (k, e, kept, result, error);
}

/* The batch, free and contracted labels of two inputs. */
typedef struct {
  Order a, b, out;
  gint64 n, rows, columns, depth;
} Plan;

static gboolean
multiply_two (MusterKernel *k, Einsum *e, MusterTensor *x, MusterTensor *y, GError **error)
{
  const Term *a = &e->inputs[0], *b = &e->inputs[1];
  const gsize size = muster_dtype_size (muster_tensor_dtype (x));
  g_autofree Plan *p = g_new0 (Plan, 1);
  g_autoptr (MusterTensor) left = NULL, right = NULL, result = NULL;
  gint64 each;

  p->n = append_labels (e, &p->a, a, b, TRUE, TRUE);
  p->rows = append_labels (e, &p->a, a, b, FALSE, TRUE);
  p->depth = append_labels (e, &p->a, a, b, TRUE, FALSE);
  each = append_labels (e, &p->a, a, b, FALSE, FALSE);
  left = sum_last (k, pack (k, e, a, &p->a, x, error), p->n * p->rows * p->depth, each, error);
  append_labels (e, &p->b, b, a, TRUE, TRUE);
  append_labels (e, &p->b, b, a, TRUE, FALSE);
  p->columns = append_labels (e, &p->b, b, a, FALSE, TRUE);
  each = append_labels (e, &p->b, b, a, FALSE, FALSE);
  right = left == NULL ? NULL
                       : sum_last (k, pack (k, e, b, &p->b, y, error), p->n * p->depth * p->columns,
                                   each, error);
  result = right == NULL ? NULL
                         : muster_kernel_temporary (k, muster_tensor_dtype (x), 3,
                                                    (gint64[]){p->n, p->rows, p->columns}, error);
  if (result == NULL)
    return FALSE;
  const MusterProduct product = {.m = p->rows, .n = p->columns, .depth = p->depth};
  for (gint64 i = 0; i < p->n && muster_tensor_n_bytes (result) > 0; i++)
    muster_multiply (
        &product, muster_tensor_dtype (x),
        (const guint8 *)muster_tensor_data (left) + (gsize)(i * p->rows * p->depth) * size,
        (const guint8 *)muster_tensor_data (right) + (gsize)(i * p->depth * p->columns) * size,
        (guint8 *)muster_tensor_data_mutable (result) + (gsize)(i * p->rows * p->columns) * size);
  append_labels (e, &p->out, a, b, TRUE, TRUE);
  append_labels (e, &p->out, a, b, FALSE, TRUE);
  append_labels (e, &p->out, b, a, FALSE, TRUE);
  return set_ordered (k, e, &p->out, result, error);
}

static gboolean
compute_einsum (MusterKernel *k, GError **error)
{
  g_autofree Einsum *e = g_new0 (Einsum, 1);
  g_autoptr (MusterTensor) x = NULL, y = NULL;

  e->n_inputs = muster_kernel_n_inputs (k);
  if (e->n_inputs < 1 || e->n_inputs > 2)
    return muster_invalid (error, "Einsum takes one or two inputs, not %d", e->n_inputs);
  if (!read_equation (k, e, error))
    return FALSE;
  for (int i = 0; i < e->n_inputs; i++)
    note_steps (e, &e->inputs[i], muster_tensor_dims (muster_kernel_input (k, i)));
  for (int d = 0; d < e->out.n; d++)
    e->out.has[e->out.labels[d]] = TRUE;
  if ((x = muster_number_input (k, 0, error)) == NULL)
    return FALSE;
  if (e->n_inputs == 1)
    return sum_one (k, e, x, error);
  return (y = muster_number_input (k, 1, error)) != NULL && multiply_two (k, e, x, y, error);
}

const MusterOp muster_einsum_ops[] = {
    {"Einsum", "inputs:N*T -> output:T", "T:number equation", compute_einsum, 0},
    {NULL, NULL, NULL, NULL, 0},
};
