// SPDX-License-Identifier: Apache-2.0
/* Sparse tensors kept by number between steps: a queue of batches holds their numbers, as it can't
 * hold the tensors. Adding returns numbers; taking removes what it finds, also if it then fails. */
#include "base/memory_account_private.h"
#include "engine/kernels/sparse/sparse.h"
#include "engine/kernels/sparse/sparse_op_tables.h"

#include <string.h>

typedef struct {
  gint64 number;
  MusterTensor *indices, *values, *shape; /* (owned) */
} Held;

/* What one costs beside its tensors, in the table too. */
#define HELD_SIZE 128

typedef struct {
  GMutex lock;
  gint64 next;      /* guarded by lock */
  GHashTable *held; /* (owned) of Held by number; guarded by lock */
  char *name;       /* (owned) */
} SparseMap;

static void
held_free (gpointer data)
{
  Held *self = data;
  muster_tensor_unref (self->indices);
  muster_tensor_unref (self->values);
  muster_tensor_unref (self->shape);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, HELD_SIZE);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Held, held_free)

static Held *
held_new (MusterKernel *k, MusterTensor *indices, MusterTensor *values, MusterTensor *shape,
          GError **error)
{
  if (!muster_budget_take_owned (muster_kernel_budget (k), HELD_SIZE, error) ||
      !muster_memory_take (MUSTER_MEMORY_RESOURCES, HELD_SIZE, error))
    return NULL;
  Held *self = g_new (Held, 1);
  *self = (Held){.indices = muster_tensor_keep (indices),
                 .values = muster_tensor_keep (values),
                 .shape = muster_tensor_keep (shape)};
  return self;
}

static gpointer
make_map (const char *name, gpointer k G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  SparseMap *self = g_new0 (SparseMap, 1);
  g_mutex_init (&self->lock);
  self->held = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, held_free);
  self->name = g_strdup (name);
  return self;
}

static void
map_free (gpointer data)
{
  SparseMap *self = data;
  g_hash_table_unref (self->held);
  g_mutex_clear (&self->lock);
  g_free (self->name);
  g_free (self);
}

static const MusterResourceType map_type = {
    .kind = "tensorflow::SparseTensorsMap", .named_by_node = TRUE, .free = map_free};

static gint64
add_held (SparseMap *self, Held *held /* (transfer full) */)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  held->number = self->next++;
  g_hash_table_replace (self->held, &held->number, held);
  return held->number;
}

static gboolean
compute_add (MusterKernel *k, GError **error)
{
  MusterSparse s;
  MusterTensor *out;
  if (!muster_sparse_read (k, 0, 1, 2, &s, error) || !muster_sparse_check_size (&s, error) ||
      (out = muster_kernel_output (k, 0, 0, NULL, error)) == NULL)
    return FALSE;
  g_autoptr (MusterResource) map = muster_kernel_named_resource (k, &map_type, make_map, error);
  Held *held =
      map == NULL ? NULL : held_new (k, s.indices, s.values, muster_kernel_input (k, 2), error);
  if (held == NULL)
    return FALSE;
  *(gint64 *)muster_tensor_data_mutable (out) = add_held (muster_resource_data (map), held);
  return TRUE;
}

/* The rows of a batch, until all of them are added. */
typedef struct {
  const MusterSparse *from;
  MusterTensor *shape; /* (owned) (nullable) of a row */
  Held *empty;         /* (owned) (nullable) the row without a value */
  Held **rows;         /* (owned) of each row; NULL: empty */
  gint64 n_rows;
} Batch;

static void
batch_clear (Batch *self)
{
  for (gint64 i = 0; self->rows != NULL && i < self->n_rows; i++)
    g_clear_pointer (&self->rows[i], held_free);
  g_clear_pointer (&self->rows, g_free);
  g_clear_pointer (&self->empty, held_free);
  g_clear_pointer (&self->shape, muster_tensor_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Batch, batch_clear)

/* A row of n values from number first on. */
static Held *
make_row (MusterKernel *k, const Batch *batch, gint64 first, gint64 n, GError **error)
{
  const MusterSparse *from = batch->from;
  const int n_dims = from->n_dims;
  const gint64 *index = muster_tensor_data (from->indices);
  const MusterElements elements = muster_elements (from->values);
  g_auto (MusterResult) values = {0};
  g_autoptr (MusterTensor) taken = NULL, indices = muster_kernel_temporary (
                                             k, MUSTER_INT64, 2, (gint64[]){n, n_dims - 1}, error);
  if (indices == NULL ||
      !muster_result_begin (&values, k, muster_tensor_dtype (from->values), 1, &n, error))
    return NULL;
  gint64 *to = muster_tensor_data_mutable (indices);
  for (gint64 i = 0; i < n; i++)
    for (int d = 1; d < n_dims; d++)
      *to++ = index[(first + i) * n_dims + d];
  if (n > 0)
    memcpy (values.data, elements.data + (gsize)first * elements.size, (gsize)n * elements.size);
  taken = muster_result_end_tensor (&values, k, error);
  return taken == NULL ? NULL : held_new (k, indices, taken, batch->shape, error);
}

static gboolean
make_rows (MusterKernel *k, Batch *batch, GError **error)
{
  const gint64 *index = muster_tensor_data (batch->from->indices), n = batch->from->n;
  const int n_dims = batch->from->n_dims;
  for (gint64 i = 0, end; i < n; i = end) {
    const gint64 row = index[i * n_dims];
    for (end = i + 1; end < n && index[end * n_dims] == row;)
      end++;
    if ((batch->rows[row] = make_row (k, batch, i, end - i, error)) == NULL)
      return FALSE;
  }
  return (batch->empty = make_row (k, batch, 0, 0, error)) != NULL;
}

/* Fills the gaps last, with what can still fail, so that all are added or none. */
static gboolean
fill_rows (MusterKernel *k, Batch *batch, gint8 *is_gap, GError **error)
{
  for (gint64 i = 0; i < batch->n_rows; i++) {
    const Held *empty = batch->empty;
    is_gap[i] = batch->rows[i] == NULL;
    if (is_gap[i] &&
        (batch->rows[i] = held_new (k, empty->indices, empty->values, empty->shape, error)) == NULL)
      return FALSE;
  }
  return TRUE;
}

/* Numbers the rows with values first, as TensorFlow does. */
static gboolean
add_rows (MusterKernel *k, SparseMap *map, Batch *batch, gint64 *numbers, GError **error)
{
  g_autofree gint8 *is_gap = muster_kernel_alloc (k, batch->n_rows, 1, error);

  if (is_gap == NULL || !fill_rows (k, batch, is_gap, error))
    return FALSE;
  for (int pass = 0; pass < 2; pass++)
    for (gint64 i = 0; i < batch->n_rows; i++)
      if (is_gap[i] == pass)
        numbers[i] = add_held (map, g_steal_pointer (&batch->rows[i]));
  return TRUE;
}

static gboolean
begin_batch (MusterKernel *k, const MusterSparse *s, Batch *batch, GError **error)
{
  const gint64 n_dims = s->n_dims - 1;
  batch->from = s;
  batch->n_rows = s->dims[0];
  batch->rows = muster_kernel_alloc0 (k, batch->n_rows, sizeof (Held *), error);
  if (batch->rows == NULL)
    return FALSE;
  batch->shape = muster_kernel_temporary (k, MUSTER_INT64, 1, &n_dims, error);
  if (batch->shape == NULL)
    return FALSE;
  memcpy (muster_tensor_data_mutable (batch->shape), s->dims + 1, (gsize)n_dims * sizeof (gint64));
  return TRUE;
}

static gboolean
compute_add_many (MusterKernel *k, GError **error)
{
  MusterSparse s;
  MusterTensor *out;
  g_auto (Batch) batch = {0};
  if (!muster_sparse_read (k, 0, 1, 2, &s, error))
    return FALSE;
  if (s.n_dims < 2)
    return muster_invalid (error, "Rank of input SparseTensor should be > 1, but saw rank: %d",
                           s.n_dims);
  if (!muster_sparse_check_size (&s, error) ||
      (out = muster_kernel_output (k, 0, 1, &s.dims[0], error)) == NULL ||
      !muster_sparse_check_sorted (&s, error) || !begin_batch (k, &s, &batch, error) ||
      !make_rows (k, &batch, error))
    return FALSE;
  g_autoptr (MusterResource) map = muster_kernel_named_resource (k, &map_type, make_map, error);
  return map != NULL &&
         add_rows (k, muster_resource_data (map), &batch, muster_tensor_data_mutable (out), error);
}

/* What was taken, as one sparse tensor. */
typedef struct {
  Held **held; /* (owned) */
  gint64 n, n_values;
  gint64 rank;
  gint64 dims[MUSTER_MAX_DIMS + 1];
} Taken;

static void
taken_clear (Taken *self)
{
  for (gint64 i = 0; i < self->n; i++)
    held_free (self->held[i]);
  g_clear_pointer (&self->held, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Taken, taken_clear)

static gboolean
take_held (SparseMap *self, const gint64 *numbers, gint64 n, Taken *taken, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  for (gint64 i = 0; i < n; i++) {
    gpointer held;
    if (!g_hash_table_steal_extended (self->held, &numbers[i], NULL, &held))
      return muster_invalid (error, "Unable to find SparseTensor: %" G_GINT64_FORMAT " in map: %s",
                             numbers[i], self->name);
    taken->held[taken->n++] = held;
  }
  return TRUE;
}

static gboolean
check_taken (Taken *taken, MusterDType dtype, GError **error)
{
  taken->rank = muster_tensor_n_elements (taken->held[0]->shape);
  taken->dims[0] = taken->n;
  for (gint64 i = 0; i < taken->n; i++) {
    const Held *held = taken->held[i];
    const gint64 rank = muster_tensor_n_elements (held->shape);
    const gint64 *dims = muster_tensor_data (held->shape);
    if (muster_tensor_dtype (held->values) != dtype)
      return muster_invalid (error,
                             "Requested SparseTensor of type %s but SparseTensor[%" G_GINT64_FORMAT
                             "].values.dtype() == %s",
                             muster_dtype_name (dtype), i,
                             muster_dtype_name (muster_tensor_dtype (held->values)));
    if (rank != taken->rank)
      return muster_invalid (error,
                             "Inconsistent rank across SparseTensors: rank prior to "
                             "SparseTensor[%" G_GINT64_FORMAT "] was: %" G_GINT64_FORMAT
                             " but rank of SparseTensor[%" G_GINT64_FORMAT
                             "] is: %" G_GINT64_FORMAT,
                             i, taken->rank + 1, i, rank + 1);
    for (gint64 d = 0; d < rank; d++)
      taken->dims[d + 1] = MAX (taken->dims[d + 1], dims[d]);
    taken->n_values += muster_tensor_n_elements (held->values);
  }
  return TRUE;
}

static gboolean
set_taken (MusterKernel *k, const Taken *taken, GError **error)
{
  const gint64 rank = taken->rank + 1;
  MusterTensor *indices = muster_kernel_output (k, 0, 2, (gint64[]){taken->n_values, rank}, error);
  MusterTensor *shape = indices == NULL ? NULL : muster_kernel_output (k, 2, 1, &rank, error);
  g_auto (MusterResult) values = {0};
  if (shape == NULL || !muster_result_begin (&values, k, muster_kernel_output_dtype (k, 1), 1,
                                             &taken->n_values, error))
    return FALSE;
  memcpy (muster_tensor_data_mutable (shape), taken->dims, (gsize)rank * sizeof (gint64));
  gint64 *to = muster_tensor_data_mutable (indices);
  guint8 *to_value = values.data;
  for (gint64 i = 0; i < taken->n; i++) {
    const MusterElements from = muster_elements (taken->held[i]->values);
    const gint64 *index = muster_tensor_data (taken->held[i]->indices);
    const gsize n = (gsize)muster_tensor_n_elements (taken->held[i]->values);
    for (gsize row = 0; row < n; row++) {
      *to++ = i;
      for (gint64 d = 1; d < rank; d++)
        *to++ = *index++;
    }
    if (n > 0)
      memcpy (to_value, from.data, n * from.size);
    to_value += n * from.size;
  }
  return muster_result_end (&values, k, 1, error);
}

static gboolean
compute_take_many (MusterKernel *k, GError **error)
{
  MusterTensor *numbers = muster_kernel_input (k, 0);
  const gint64 n = muster_tensor_n_elements (numbers);
  g_auto (Taken) taken = {0};
  if (muster_tensor_n_dims (numbers) != 1) {
    g_autofree char *shape = muster_shape_text (numbers);
    return muster_invalid (error, "sparse_handles should be a vector but received shape %s", shape);
  }
  if (n == 0)
    return muster_invalid (
        error, "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
  g_autoptr (MusterResource) map = muster_kernel_named_resource (k, &map_type, make_map, error);
  if (map == NULL || (taken.held = muster_kernel_alloc0 (k, n, sizeof (Held *), error)) == NULL)
    return FALSE;
  return take_held (muster_resource_data (map), muster_tensor_data (numbers), n, &taken, error) &&
         check_taken (&taken, muster_kernel_output_dtype (k, 1), error) &&
         set_taken (k, &taken, error);
}

#define F            (MUSTER_OP_STATEFUL | MUSTER_OP_RESOURCE)
#define SPARSE(name) "sparse_indices:int64, sparse_values:T, sparse_shape:int64 -> " name ":int64"

const MusterOp muster_sparse_map_ops[] = {
    {"AddSparseToTensorsMap", SPARSE ("sparse_handle"), "T:any container shared_name", compute_add,
     F},
    {"AddManySparseToTensorsMap", SPARSE ("sparse_handles"), "T:any container shared_name",
     compute_add_many, F},
    {"TakeManySparseFromTensorsMap",
     "sparse_handles:int64 -> sparse_indices:int64, sparse_values:dtype, sparse_shape:int64",
     "dtype:any container shared_name", compute_take_many, F},
    {NULL, NULL, NULL, NULL, 0},
};
