// SPDX-License-Identifier: Apache-2.0
/* Warm start: a matrix of a checkpoint for another vocabulary. GenerateVocabRemapping finds the old
 * line of each new word; LoadAndRemapMatrix reads the rows that it names. */
#include "checkpoint/format/bundle_reader.h"
#include "engine/kernels/common/text.h"
#include "engine/kernels/state/state_op_tables.h"
#include "engine/resources/lookup_text.h"

#include <string.h>

/* A file's name, or NULL with an error. */
static char *
vocabulary_name (MusterKernel *k, int i, const char *name, GError **error)
{
  MusterTensor *tensor = muster_kernel_input (k, i);
  if (muster_tensor_n_dims (tensor) != 0) {
    g_autofree char *shape = muster_shape_text (tensor);
    muster_invalid (error, "%s should be a single string, but got %s", name, shape);
    return NULL;
  }
  if (muster_tensor_string (tensor, 0).size == 0) {
    muster_invalid (error, "%s cannot be empty.", name);
    return NULL;
  }
  return muster_kernel_copy_name (k, muster_tensor_string (tensor, 0), error);
}

/* A table from lines to their numbers or the other way round. */
static MusterLookupTable *
read_vocabulary (MusterKernel *k, const char *filename, gint64 n_lines, gboolean by_line,
                 GError **error)
{
  const MusterLookupKind kind = {.key_dtype = by_line ? MUSTER_STRING : MUSTER_INT64,
                                 .value_dtype = by_line ? MUSTER_INT64 : MUSTER_STRING,
                                 .container = "",
                                 .name = filename};
  const MusterLookupText text = {
      .filename = filename,
      .vocab_size = n_lines,
      .delimiter = '\t',
      .key_index = by_line ? MUSTER_LOOKUP_WHOLE_LINE : MUSTER_LOOKUP_LINE_NUMBER,
      .value_index = by_line ? MUSTER_LOOKUP_LINE_NUMBER : MUSTER_LOOKUP_WHOLE_LINE};
  g_autoptr (MusterLookupTable) table = muster_lookup_table_new (&kind);
  return muster_kernel_check_path (k, filename, error) &&
                 muster_lookup_table_fill_from_text (table, &text, muster_kernel_storage (k),
                                                     muster_kernel_cancellable (k),
                                                     muster_kernel_budget (k), error)
             ? g_steal_pointer (&table)
             : NULL;
}

/* Output 0: the old line of each of n new words from line first on, or -1. */
static MusterTensor *
find_words (MusterKernel *k, MusterLookupTable *words, MusterLookupTable *lines, gint64 first,
            gint64 n, GError **error)
{
  g_autoptr (MusterTensor) numbers = muster_kernel_temporary (k, MUSTER_INT64, 1, &n, error);
  g_autoptr (MusterTensor) no_word = muster_tensor_new_string ("");
  g_autoptr (MusterTensor) no_line = muster_tensor_new_int64 (-1), found = NULL;
  gint64 *number = numbers != NULL ? muster_tensor_data_mutable (numbers) : NULL;
  for (gint64 i = 0; number != NULL && i < n; i++)
    number[i] = first + i;
  if (number != NULL)
    found = muster_lookup_table_find (words, numbers, no_word, muster_kernel_budget (k), error);
  return found == NULL
             ? NULL
             : muster_lookup_table_find (lines, found, no_line, muster_kernel_budget (k), error);
}

static gboolean
compute_vocabulary (MusterKernel *k, GError **error)
{
  const gint64 first = muster_kernel_attr_int (k, "new_vocab_offset", 0);
  const gint64 n = muster_kernel_attr_int (k, "num_new_vocab", 0);
  g_autofree char *fresh = vocabulary_name (k, 0, "new_vocab_file", error), *old = NULL;
  g_autoptr (MusterLookupTable) words = NULL, lines = NULL;
  gint32 n_present = 0;

  if (fresh == NULL || (words = read_vocabulary (k, fresh, -1, FALSE, error)) == NULL)
    return FALSE;
  if (first < 0 || n < 0 || n > muster_lookup_table_size (words) - MIN (first, G_MAXINT32))
    return muster_invalid (error, "lookup table size must be larger than last new vocab entry's "
                                  "line");
  if ((old = vocabulary_name (k, 1, "old_vocab_file", error)) == NULL ||
      (lines = read_vocabulary (k, old, muster_kernel_attr_int (k, "old_vocab_size", -1), TRUE,
                                error)) == NULL)
    return FALSE;
  MusterTensor *found = find_words (k, words, lines, first, n, error);
  if (found == NULL)
    return FALSE;
  for (gint64 i = 0; i < n; i++)
    n_present += ((const gint64 *)muster_tensor_data (found))[i] >= 0;
  muster_kernel_set_output (k, 0, found);
  muster_kernel_set_output (k, 1, muster_tensor_new_int32 (n_present));
  return TRUE;
}

/* Where rows or columns of the old matrix go, sorted by the old number. */
typedef struct {
  gint64 old, fresh;
} Move;

typedef struct {
  Move *moves; /* (owned) */
  gint64 n;
} Moves;

static void
moves_clear (Moves *self)
{
  g_clear_pointer (&self->moves, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Moves, moves_clear)

static int
compare_moves (const void *a, const void *b)
{
  const Move *x = a, *y = b;
  return x->old != y->old ? (x->old < y->old ? -1 : 1)
                          : (x->fresh > y->fresh) - (x->fresh < y->fresh);
}

static gboolean
read_moves (MusterKernel *k, int i, Moves *moves, GError **error)
{
  MusterTensor *remapping = muster_kernel_input (k, i);
  const gint64 *old = muster_tensor_data (remapping), n = muster_tensor_n_elements (remapping);
  moves->moves = muster_kernel_alloc (k, n, sizeof (Move), error);
  if (moves->moves == NULL || !muster_kernel_may_sort (k, n, sizeof (Move), error))
    return FALSE;
  for (gint64 at = 0; at < n; at++)
    if (old[at] >= 0)
      moves->moves[moves->n++] = (Move){old[at], at};
  qsort (moves->moves, (gsize)moves->n, sizeof (Move), compare_moves);
  for (gint64 at = 1; at < moves->n; at++)
    if (moves->moves[at].old == moves->moves[at - 1].old)
      return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                          "Old ID %" G_GINT64_FORMAT " is mapped to both new ID %" G_GINT64_FORMAT
                          " and %" G_GINT64_FORMAT ", which is not supported.",
                          moves->moves[at].old, moves->moves[at - 1].fresh, moves->moves[at].fresh);
  return TRUE;
}

/* The matrix under way. */
typedef struct {
  MusterBundleReader *reader; /* (owned) */
  char *name;                 /* (owned) of the old matrix */
  gint64 n_old_rows, n_old_columns;
  gboolean is_sliced; /* in the checkpoint; else any part of it is read with the whole */
  Moves rows, columns;
  gboolean moves_columns;
  gint64 n_columns;
  float *to;
} Matrix;

static void
matrix_clear (Matrix *self)
{
  muster_bundle_reader_unref (self->reader);
  g_free (self->name);
  moves_clear (&self->rows);
  moves_clear (&self->columns);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Matrix, matrix_clear)

static gboolean
check_remapping (MusterKernel *k, int i, const char *name, const char *count, gint64 wanted,
                 GError **error)
{
  MusterTensor *remapping = muster_kernel_input (k, i);
  if (muster_tensor_n_dims (remapping) != 1) {
    g_autofree char *shape = muster_shape_text (remapping);
    return muster_invalid (error, "The `%s` tensor must be 1-D, got a tensor of shape %s", name,
                           shape);
  }
  if (muster_tensor_n_elements (remapping) == wanted)
    return TRUE;
  return muster_invalid (
      error, "Size of %s is %" G_GINT64_FORMAT " instead of being equal to %s=%" G_GINT64_FORMAT,
      name, muster_tensor_n_elements (remapping), count, wanted);
}

static gboolean
read_remappings (MusterKernel *k, Matrix *m, GError **error)
{
  MusterTensor *columns = muster_kernel_input (k, 3);
  m->n_columns = muster_kernel_attr_int (k, "num_cols", 0);
  m->moves_columns = muster_tensor_n_dims (columns) != 1 || muster_tensor_n_elements (columns) > 0;
  return check_remapping (k, 2, "row_remapping", "num_rows",
                          muster_kernel_attr_int (k, "num_rows", 0), error) &&
         read_moves (k, 2, &m->rows, error) &&
         (!m->moves_columns ||
          check_remapping (k, 3, "col_remapping", "num_cols", m->n_columns, error)) &&
         read_moves (k, 3, &m->columns, error);
}

static gboolean
check_matrix (Matrix *m, GError **error)
{
  const MusterBundleEntry *entry = muster_bundle_reader_find (m->reader, m->name);
  if (entry == NULL)
    return muster_fail (error, MUSTER_ERROR_NOT_FOUND, "Key %s not found in checkpoint", m->name);
  if (entry->dtype != MUSTER_FLOAT)
    return muster_invalid (error, "Tensor %s has invalid type %s instead of expected type float",
                           m->name, muster_dtype_name (entry->dtype));
  g_autofree char *shape = muster_shape_to_string (entry->n_dims, entry->dims);
  if (entry->n_dims != 2)
    return muster_invalid (
        error, "Tensor %s has shape %s of invalid rank %d instead of expected shape of rank 2.",
        m->name, shape, entry->n_dims);
  m->n_old_rows = entry->dims[0];
  m->n_old_columns = entry->dims[1];
  m->is_sliced = entry->is_sliced;
  if (m->moves_columns || m->n_columns == m->n_old_columns)
    return TRUE;
  return muster_invalid (error,
                         "Tensor %s has shape %s, where the size of its 2nd dimension is "
                         "%" G_GINT64_FORMAT
                         " instead of being equal to num_cols=%" G_GINT64_FORMAT,
                         m->name, shape, m->n_old_columns, m->n_columns);
}

static gboolean
open_matrix (MusterKernel *k, Matrix *m, GError **error)
{
  static const char *const names[] = {"ckpt_path", "old_tensor_name"};
  g_autoptr (MusterStorage) storage = muster_storage_bound (
      muster_kernel_storage (k), MUSTER_WAIT_FOREVER, NULL, muster_kernel_cancellable (k));
  g_autofree char *prefix = NULL;

  for (int i = 0; i < 2; i++)
    if (muster_tensor_n_elements (muster_kernel_input (k, i)) != 1)
      return muster_invalid (error, "The `%s` tensor must have exactly one element", names[i]);
  prefix = muster_kernel_copy_name (k, muster_tensor_string (muster_kernel_input (k, 0), 0), error);
  if (prefix == NULL || !muster_kernel_check_path (k, prefix, error) ||
      (m->name = muster_kernel_copy_name (k, muster_tensor_string (muster_kernel_input (k, 1), 0),
                                          error)) == NULL)
    return FALSE;
  m->reader = muster_bundle_reader_open (storage, prefix, error);
  return m->reader != NULL && check_matrix (m, error);
}

static void
copy_row (const Matrix *m, const float *from, float *to)
{
  if (!m->moves_columns)
    memcpy (to, from, (gsize)m->n_columns * sizeof *to);
  for (gint64 i = 0; i < m->columns.n && m->columns.moves[i].old < m->n_old_columns; i++)
    to[m->columns.moves[i].fresh] = from[m->columns.moves[i].old];
}

/* Reads rows first to end, of which moves *at and the next ones take some. */
static gboolean
copy_rows (MusterKernel *k, const Matrix *m, gint64 first, gint64 end, gint64 *at, GError **error)
{
  g_autofree char *slice =
      g_strdup_printf ("%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ":-", first, end - first);
  MusterBudget budget = *muster_kernel_budget (k); /* for this part alone */

  if (g_cancellable_set_error_if_cancelled (muster_kernel_cancellable (k), error) ||
      !muster_budget_take_owned_items (&budget, (gsize)(m->is_sliced ? end - first : m->n_old_rows),
                                       (gsize)m->n_old_columns * sizeof (float), error))
    return FALSE;
  g_autoptr (MusterTensor) rows =
      muster_bundle_reader_read_slice (m->reader, m->name, slice, error);
  if (rows == NULL)
    return FALSE;
  const float *from = muster_tensor_data (rows);
  for (; *at < m->rows.n && m->rows.moves[*at].old < end; ++*at)
    copy_row (m, from + (m->rows.moves[*at].old - first) * m->n_old_columns,
              m->to + m->rows.moves[*at].fresh * m->n_columns);
  return TRUE;
}

static gboolean
copy_matrix (MusterKernel *k, const Matrix *m, GError **error)
{
  const gint64 most = m->is_sliced ? muster_kernel_attr_int (k, "max_rows_in_memory", -1) : -1;
  const gint64 last = m->rows.n > 0 ? m->rows.moves[m->rows.n - 1].old : -1;
  if (last >= m->n_old_rows)
    return muster_fail (error, MUSTER_ERROR_INTERNAL,
                        "Tensor %s has no row %" G_GINT64_FORMAT ": its rows are %" G_GINT64_FORMAT,
                        m->name, last, m->n_old_rows);
  for (gint64 at = 0; at < m->rows.n;) {
    const gint64 first = m->rows.moves[at].old, left = last - first + 1;
    if (!copy_rows (k, m, first, first + (most <= 0 ? left : MIN (most, left)), &at, error))
      return FALSE;
  }
  return TRUE;
}

/* Fills what no old row and column gave, in order, with all of the initialising values. */
static gboolean
fill_missing (MusterKernel *k, const Matrix *m, GError **error)
{
  MusterTensor *values = muster_kernel_input (k, 4);
  const gint64 *rows = muster_tensor_data (muster_kernel_input (k, 2));
  const gint64 *columns = muster_tensor_data (muster_kernel_input (k, 3));
  const gint64 n_rows = muster_tensor_n_elements (muster_kernel_input (k, 2));
  const gint64 n = muster_tensor_n_elements (values);
  const float *value = muster_tensor_data (values);
  gint64 at = 0;
  for (gint64 i = 0; i < n_rows; i++)
    for (gint64 j = 0; j < m->n_columns; j++) {
      if (rows[i] >= 0 && (!m->moves_columns || columns[j] >= 0))
        continue;
      if (at == n)
        return muster_invalid (error,
                               "initializing_values contained %" G_GINT64_FORMAT
                               " elements, but more missing values remain.",
                               n);
      m->to[i * m->n_columns + j] = value[at++];
    }
  return at == n || muster_invalid (error,
                                    "initializing_values contained %" G_GINT64_FORMAT
                                    " elements, but only %" G_GINT64_FORMAT
                                    " elements were used to fill in missing values.",
                                    n, at);
}

static gboolean
compute_matrix (MusterKernel *k, GError **error)
{
  g_auto (Matrix) m = {0};
  g_auto (MusterResult) result = {0};
  if (!read_remappings (k, &m, error) || !open_matrix (k, &m, error))
    return FALSE;
  const gint64 dims[] = {muster_tensor_n_elements (muster_kernel_input (k, 2)), m.n_columns};
  if (!muster_result_begin (&result, k, MUSTER_FLOAT, 2, dims, error))
    return FALSE;
  m.to = (float *)(gpointer)result.data;
  return copy_matrix (k, &m, error) && fill_missing (k, &m, error) &&
         muster_result_end (&result, k, 0, error);
}

const MusterOp muster_warm_start_ops[] = {
    {"GenerateVocabRemapping",
     "new_vocab_file:string, old_vocab_file:string -> remapping:int64, num_present:int32",
     "new_vocab_offset num_new_vocab old_vocab_size", compute_vocabulary, MUSTER_OP_READER},
    {"LoadAndRemapMatrix",
     "ckpt_path:string, old_tensor_name:string, row_remapping:int64, col_remapping:int64, "
     "initializing_values:float -> output_matrix:float",
     "num_rows num_cols max_rows_in_memory", compute_matrix, MUSTER_OP_READER},
    {NULL, NULL, NULL, NULL, 0},
};
