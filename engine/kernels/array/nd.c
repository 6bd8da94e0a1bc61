// SPDX-License-Identifier: Apache-2.0
/* Ops on slices given by coordinates: GatherNd, ScatterNd into a new tensor, a copy or a variable;
 * and DynamicPartition. */
#include "engine/kernels/array/array_op_tables.h"
#include "engine/kernels/array/gather.h"
#include "engine/kernels/math/arithmetic.h"

#include <string.h>

/* indices has n rows of depth coordinates; each selects a slice of run elements. */
typedef struct {
  MusterTensor *indices;
  int depth;
  gint64 n, run;
  gboolean ignores; /* indices outside: nothing is read or written there */
} Slices;

static gboolean
refuse_index (const Slices *s, gint64 row, int n_dims, const gint64 *dims, const char *verb,
              GError **error)
{
  g_autofree char *shape = muster_shape_to_string (n_dims, dims);
  g_autoptr (GString) place = g_string_new (NULL), index = g_string_new (NULL);
  gint64 rest = row;

  for (int d = muster_tensor_n_dims (s->indices) - 2; d >= 0; d--) {
    gint64 size = muster_tensor_dims (s->indices)[d];
    g_autofree char *number =
        g_strdup_printf ("%" G_GINT64_FORMAT "%s", rest % size, place->len > 0 ? "," : "");
    g_string_prepend (place, number);
    rest /= size;
  }
  for (int d = 0; d < s->depth; d++)
    g_string_append_printf (index, "%s%" G_GINT64_FORMAT, d > 0 ? ", " : "",
                            muster_int_at (s->indices, row * s->depth + d));
  return muster_invalid (error, "indices[%s] = [%s] does not index into %s %s", place->str,
                         index->str, verb, shape);
}

/* The first element of slice `row`; -1 outside. */
static gint64
place_of (const Slices *s, gint64 row, const gint64 *dims)
{
  gint64 at = 0;
  for (int d = 0; d < s->depth; d++) {
    gint64 index = muster_int_at (s->indices, row * s->depth + d);
    if (index < 0 || index >= dims[d])
      return -1;
    at = at * dims[d] + index;
  }
  return at * s->run;
}

static gboolean
check_places (const Slices *s, int n_dims, const gint64 *dims, const char *verb, GError **error)
{
  for (gint64 i = 0; !s->ignores && i < s->n; i++)
    if (place_of (s, i, dims) < 0)
      return refuse_index (s, i, n_dims, dims, verb, error);
  return TRUE;
}

static gboolean
read_policy (MusterKernel *k, gboolean *ignores, GError **error)
{
  g_autofree char *policy = muster_node_string (muster_kernel_node (k), "bad_indices_policy");

  *ignores = g_strcmp0 (policy, "IGNORE") == 0;
  return *ignores || policy == NULL || policy[0] == '\0' || strcmp (policy, "DEFAULT") == 0 ||
         strcmp (policy, "ERROR") == 0 ||
         muster_invalid (error, "Unknown bad indices handling attribute: %s", policy);
}

static gboolean
slices_init (Slices *s, MusterKernel *k, MusterTensor *indices, int n_dims, const gint64 *dims,
             GError **error)
{
  int n = muster_tensor_n_dims (indices);
  if (!read_policy (k, &s->ignores, error))
    return FALSE;
  if (n < 1)
    return muster_invalid (error, "indices must be at least a vector");
  if (muster_tensor_dims (indices)[n - 1] > n_dims)
    return muster_invalid (
        error,
        "index innermost dimension length must be <= params rank; saw: %" G_GINT64_FORMAT " vs. %d",
        muster_tensor_dims (indices)[n - 1], n_dims);
  s->indices = indices;
  s->depth = (int)muster_tensor_dims (indices)[n - 1];
  s->n = muster_dims_product (muster_tensor_dims (indices), 0, n - 1);
  s->run = muster_dims_product (dims, s->depth, n_dims);
  return TRUE;
}

static gboolean
gather (MusterKernel *k, MusterTensor *params, MusterTensor *indices, GError **error)
{
  int n = muster_tensor_n_dims (params), n_out = muster_tensor_n_dims (indices) - 1;
  const gint64 *dims = muster_tensor_dims (params);
  gint64 out[2 * MUSTER_MAX_DIMS];
  MusterElements from = muster_elements (params);
  g_auto (MusterResult) result = {0};
  Slices s;
  if (n < 1)
    return muster_invalid (error, "params must be at least a vector");
  if (!slices_init (&s, k, indices, n, dims, error))
    return FALSE;
  if (s.n > 0 && muster_tensor_n_elements (params) == 0)
    return muster_invalid (error, "Requested more than 0 entries, but params is empty.");
  for (int d = 0; d < n_out; d++)
    out[d] = muster_tensor_dims (indices)[d];
  for (int d = s.depth; d < n; d++)
    out[n_out++] = dims[d];
  if (!muster_result_begin (&result, k, muster_tensor_dtype (params), n_out, out, error))
    return FALSE;
  if (result.n > 0) {
    if (!check_places (&s, n, dims, "param shape", error))
      return FALSE;
    for (gint64 i = 0; i < s.n; i++) {
      const gint64 place = place_of (&s, i, dims);
      if (place >= 0)
        memcpy (result.data + (gsize)(i * s.run) * result.size,
                from.data + (gsize)place * result.size, (gsize)s.run * result.size);
    }
  }
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_gather_nd (MusterKernel *k, GError **error)
{
  return gather (k, muster_kernel_input (k, 0), muster_kernel_input (k, 1), error);
}

static gboolean
compute_resource_gather_nd (MusterKernel *k, GError **error)
{
  MusterVariable *variable = muster_kernel_variable (k, 0);
  g_autoptr (MusterTensor) value = muster_variable_read (variable);
  if (value == NULL) {
    muster_variable_set_not_found (variable, error);
    return FALSE;
  }
  return muster_check_variable_dtype (variable, muster_kernel_output_dtype (k, 0), error) &&
         gather (k, value, muster_kernel_input (k, 1), error);
}

/* updates: a slice for each row of indices, or one element for all if the op allows that. */
static gboolean
check_updates (const Slices *s, MusterTensor *updates, int n_dims, const gint64 *dims,
               GError **error)
{
  int n_index = muster_tensor_n_dims (s->indices) - 1;
  gboolean fits = (n_index > 0 || muster_tensor_n_elements (updates) == 0) &&
                  muster_tensor_n_dims (updates) == n_index + n_dims - s->depth;
  for (int d = 0; fits && d < n_index; d++)
    fits = muster_tensor_dims (updates)[d] == muster_tensor_dims (s->indices)[d];
  for (int d = s->depth; fits && d < n_dims; d++)
    fits = muster_tensor_dims (updates)[n_index + d - s->depth] == dims[d];
  if (!fits) {
    g_autofree char *a = muster_shape_text (s->indices), *b = muster_shape_text (updates);
    g_autofree char *c = muster_shape_to_string (n_dims, dims);
    return muster_invalid (error,
                           "Dimensions [0,%d) of indices[shape=%s] must match dimensions [0,%d) of "
                           "updates[shape=%s], and its others those of the shape %s",
                           n_index, a, n_index, b, c);
  }
  return TRUE;
}

/* A loop of numbers would make numbers of bools. */
static const MusterLoop2 *
loops_of_bools (const MusterLoop2 *loops)
{
  return loops == muster_add_loops   ? muster_or_loops
         : loops == muster_sub_loops ? muster_xor_loops
                                     : loops;
}

/* loops NULL: the slice is assigned. */
static gboolean
scatter (const Slices *s, MusterTensor *updates, const MusterLoop2 *loops, int n_dims,
         const gint64 *dims, guint8 *to, GError **error)
{
  MusterElements from = muster_elements (updates);
  MusterDType dtype = muster_tensor_dtype (updates);
  if (dtype == MUSTER_BOOL)
    loops = loops_of_bools (loops);
  if (!check_updates (s, updates, n_dims, dims, error))
    return FALSE;
  if (s->run == 0 || s->n == 0)
    return TRUE;
  if (!check_places (s, n_dims, dims, "shape", error))
    return FALSE;
  for (gint64 i = 0; i < s->n; i++) {
    const gint64 place = place_of (s, i, dims);
    guint8 *at = to + (gsize)MAX (place, 0) * from.size;
    const guint8 *update = from.data + (gsize)(i * s->run) * from.size;
    if (place < 0)
      continue;
    if (loops == NULL)
      memcpy (at, update, (gsize)s->run * from.size);
    else
      muster_run_loop2 (loops, dtype, dtype, s->run, at, 1, update, 1, at);
  }
  return TRUE;
}

static gboolean
check_arithmetic (MusterTensor *updates, const MusterLoop2 *loops, GError **error)
{
  MusterDType dtype = muster_tensor_dtype (updates);
  return loops == NULL || muster_check_loop2 (loops, dtype, error);
}

/* Where the i-th string goes; NULL: nowhere. */
static MusterString *
string_at (const Slices *s, MusterString *to, gint64 i, const gint64 *dims)
{
  const gint64 place = place_of (s, i / s->run, dims);
  return place >= 0 ? &to[place + i % s->run] : NULL;
}

/* Strings of one place are joined, in their order: each place is given its part of one buffer,
 * whose size is what they have together. */
static gboolean
join_strings (MusterKernel *k, const Slices *s, MusterTensor *updates, int n_dims,
              const gint64 *dims, MusterString *to, char **joined, GError **error)
{
  const MusterString *from = muster_tensor_strings (updates);
  const gint64 n = s->n * s->run, n_to = muster_dims_product (dims, 0, n_dims);
  gsize total = 0, at = 0;
  MusterString *place;
  if (!check_updates (s, updates, n_dims, dims, error) ||
      (n > 0 && !check_places (s, n_dims, dims, "shape", error)))
    return FALSE;
  for (gint64 i = 0; i < n; i++)
    if ((place = string_at (s, to, i, dims)) != NULL) {
      place->size += from[i].size;
      total += from[i].size;
    }
  *joined = muster_kernel_alloc (k, (gint64)total, 1, error);
  if (*joined == NULL)
    return FALSE;
  for (gint64 i = 0; i < n_to; i++) {
    to[i].data = *joined + at;
    at += to[i].size;
    to[i].size = 0;
  }
  for (gint64 i = 0; i < n; i++)
    if ((place = string_at (s, to, i, dims)) != NULL && from[i].size > 0) {
      memcpy ((char *)place->data + place->size, from[i].data, from[i].size);
      place->size += from[i].size;
    }
  return TRUE;
}

static gboolean
compute_scatter_nd (MusterKernel *k, GError **error)
{
  g_autofree char *joined = NULL;
  MusterTensor *indices = muster_kernel_input (k, 0), *updates = muster_kernel_input (k, 1);
  gint64 dims[MUSTER_MAX_DIMS];
  int n;
  g_auto (MusterResult) result = {0};
  Slices s;

  if (muster_tensor_n_dims (muster_kernel_input (k, 2)) != 1)
    return muster_invalid (error, "Shape must be a vector");
  n = muster_kernel_input_ints (k, 2, dims, MUSTER_MAX_DIMS, error);
  if (n < 0 || !slices_init (&s, k, indices, n, dims, error) ||
      !check_updates (&s, updates, n, dims, error) ||
      !muster_result_begin (&result, k, muster_tensor_dtype (updates), n, dims, error))
    return FALSE;
  if (result.n == 0 && muster_tensor_n_elements (updates) > 0)
    return muster_invalid (error, "Indices and updates specified for empty output");
  if (muster_tensor_dtype (updates) == MUSTER_STRING
          ? !join_strings (k, &s, updates, n, dims, result.strings, &joined, error)
          : !scatter (&s, updates, muster_add_loops, n, dims, result.data, error))
    return FALSE;
  return muster_result_end (&result, k, 0, error);
}

/* Scatters into a copy of the first input. */
static gboolean
scatter_copy (MusterKernel *k, const MusterLoop2 *loops, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *updates = muster_kernel_input (k, 2);
  int n = muster_tensor_n_dims (x);
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  Slices s;
  if (n < 1)
    return muster_invalid (error, "Output must be at least 1-D, got shape: []");
  if (!check_arithmetic (updates, loops, error) ||
      !slices_init (&s, k, muster_kernel_input (k, 1), n, muster_tensor_dims (x), error) ||
      !muster_result_begin (&result, k, muster_tensor_dtype (x), n, muster_tensor_dims (x), error))
    return FALSE;
  if (result.n == 0 && muster_tensor_n_elements (updates) > 0)
    return muster_invalid (error, "Indices and updates specified for empty output");
  if (result.n > 0)
    memcpy (result.data, from.data, (gsize)result.n * result.size);
  if (!scatter (&s, updates, loops, n, muster_tensor_dims (x), result.data, error))
    return FALSE;
  return muster_result_end (&result, k, 0, error);
}

static gboolean
scatter_strings (MusterTensor *value, guint8 *strings, gpointer user_data, GError **error)
{
  MusterKernel *k = user_data;
  const int n = muster_tensor_n_dims (value);
  Slices s;
  return slices_init (&s, k, muster_kernel_input (k, 1), n, muster_tensor_dims (value), error) &&
         scatter (&s, muster_kernel_input (k, 2), NULL, n, muster_tensor_dims (value), strings,
                  error);
}

static gboolean
scatter_variable (MusterKernel *k, const MusterLoop2 *loops, GError **error)
{
  MusterVariable *variable = muster_kernel_variable (k, 0);
  MusterTensor *updates = muster_kernel_input (k, 2), *value;
  gboolean done;
  void *data;
  Slices s;
  if (!muster_check_variable_dtype (variable, muster_tensor_dtype (updates), error) ||
      !check_arithmetic (updates, loops, error))
    return FALSE;
  if (muster_tensor_dtype (updates) == MUSTER_STRING) {
    done = muster_change_strings (k, variable, scatter_strings, k, error);
    if (done && muster_kernel_n_outputs (k) > 0)
      muster_kernel_forward_ref (k, 0, 0);
    return done;
  }
  data = muster_variable_begin_update (variable);
  if (data == NULL) {
    muster_variable_set_not_updated (variable, error);
    return FALSE;
  }
  value = muster_variable_peek (variable);
  done = slices_init (&s, k, muster_kernel_input (k, 1), muster_tensor_n_dims (value),
                      muster_tensor_dims (value), error) &&
         scatter (&s, updates, loops, muster_tensor_n_dims (value), muster_tensor_dims (value),
                  data, error);
  muster_variable_end_update (variable);
  if (done && muster_kernel_n_outputs (k) > 0)
    muster_kernel_forward_ref (k, 0, 0);
  return done;
}

#define SCATTER_COPY(name, loops)                                                                  \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    return scatter_copy (k, loops, error);                                                         \
  }
SCATTER_COPY (compute_copy_add, muster_add_loops)
SCATTER_COPY (compute_copy_sub, muster_sub_loops)
SCATTER_COPY (compute_copy_min, muster_min_loops)
SCATTER_COPY (compute_copy_max, muster_max_loops)
SCATTER_COPY (compute_copy_update, NULL)

#define SCATTER_VARIABLE(name, loops)                                                              \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    return scatter_variable (k, loops, error);                                                     \
  }
SCATTER_VARIABLE (compute_variable_add, muster_add_loops)
SCATTER_VARIABLE (compute_variable_sub, muster_sub_loops)
SCATTER_VARIABLE (compute_variable_min, muster_min_loops)
SCATTER_VARIABLE (compute_variable_max, muster_max_loops)
SCATTER_VARIABLE (compute_variable_update, NULL)

/* Counts the rows of each partition. */
static gboolean
count_partitions (MusterTensor *partitions, gint64 *counts, int n, GError **error)
{
  for (gint64 i = 0; i < muster_tensor_n_elements (partitions); i++) {
    gint64 to = muster_int_at (partitions, i);
    if (to < 0 || to >= n)
      return muster_invalid (
          error, "partitions[%" G_GINT64_FORMAT "] = %" G_GINT64_FORMAT " is not in [0, %d)", i, to,
          n);
    counts[to]++;
  }
  return TRUE;
}

/* Appends rows of run elements to their partitions. */
static gboolean
partition_rows (MusterKernel *k, MusterResult *results, const gint64 *counts, GError **error)
{
  MusterTensor *data = muster_kernel_input (k, 0), *partitions = muster_kernel_input (k, 1);
  int n = muster_tensor_n_dims (data), skip = muster_tensor_n_dims (partitions);
  int n_out = muster_kernel_n_outputs (k);
  MusterElements from = muster_elements (data);
  g_autofree gsize *filled = muster_kernel_alloc0 (k, n_out + 1, sizeof *filled, error);
  gint64 dims[MUSTER_MAX_DIMS + 1];
  gsize size = from.size;

  if (filled == NULL)
    return FALSE;
  for (int d = skip; d < n; d++) {
    dims[d - skip + 1] = muster_tensor_dims (data)[d];
    size *= (gsize)dims[d - skip + 1];
  }
  for (int p = 0; p < n_out; p++) {
    dims[0] = counts[p];
    if (!muster_result_begin (&results[p], k, muster_tensor_dtype (data), n - skip + 1, dims,
                              error))
      return FALSE;
  }
  for (gint64 i = 0; size > 0 && i < muster_tensor_n_elements (partitions); i++) {
    gint64 p = muster_int_at (partitions, i);
    memcpy (results[p].data + filled[p], from.data + (gsize)i * size, size);
    filled[p] += size;
  }
  for (int p = 0; p < n_out; p++)
    if (!muster_result_end (&results[p], k, p, error))
      return FALSE;
  return TRUE;
}

static gboolean
compute_dynamic_partition (MusterKernel *k, GError **error)
{
  MusterTensor *data = muster_kernel_input (k, 0), *partitions = muster_kernel_input (k, 1);
  int skip = muster_tensor_n_dims (partitions), n_out = muster_kernel_n_outputs (k);
  g_autofree gint64 *counts = muster_kernel_alloc0 (k, n_out + 1, sizeof *counts, error);
  g_autofree MusterResult *results =
      counts == NULL ? NULL : muster_kernel_alloc0 (k, n_out + 1, sizeof *results, error);
  gboolean fits = skip <= muster_tensor_n_dims (data);

  if (results == NULL)
    return FALSE;
  for (int d = 0; fits && d < skip; d++)
    fits = muster_tensor_dims (data)[d] == muster_tensor_dims (partitions)[d];
  if (!fits) {
    g_autofree char *a = muster_shape_text (data), *b = muster_shape_text (partitions);
    return muster_invalid (error,
                           "data.shape must start with partitions.shape, got data.shape = %s, "
                           "partitions.shape = %s",
                           a, b);
  }
  if (!count_partitions (partitions, counts, n_out, error))
    return FALSE;
  fits = partition_rows (k, results, counts, error);
  for (int p = 0; p < n_out; p++)
    muster_result_clear (&results[p]);
  return fits;
}

#define S      MUSTER_OP_STATEFUL
#define R      MUSTER_OP_READER
#define INDEX  "Tindices:int32|int64"
#define PLACES INDEX " bad_indices_policy"
#define COPY   "tensor:T, indices:Tindices, updates:T -> output:T"
#define IN_REF "ref:&T, indices:Tindices, updates:T -> output_ref:&T"
#define IN_VAR "ref:resource, indices:Tindices, updates:T ->"
#define IN_BOTH(name, ref_T, T, kernel)                                                            \
  {"ScatterNd" name, IN_REF, ref_T PLACES, kernel, S},                                             \
  {                                                                                                \
    "ResourceScatterNd" name, IN_VAR, T PLACES, kernel, S                                          \
  }

const MusterOp muster_nd_ops[] = {
    {"GatherNd", "params:Tparams, indices:Tindices -> output:Tparams",
     "Tparams:any|resource Tindices:int32|int64|int16 bad_indices_policy", compute_gather_nd,
     MUSTER_OP_HANDLES},
    {"ResourceGatherNd", "resource:resource, indices:Tindices -> output:dtype", "dtype:any " INDEX,
     compute_resource_gather_nd, R},
    {"ScatterNd", "indices:Tindices, updates:T, shape:Tindices -> output:T", "T:any " PLACES,
     compute_scatter_nd, 0},
    {"ScatterNdNonAliasingAdd", "input:T, indices:Tindices, updates:T -> output:T",
     "T:number|bool " PLACES, compute_copy_add, 0},
    {"TensorScatterUpdate", COPY, "T:any " PLACES, compute_copy_update, 0},
    {"TensorScatterAdd", COPY, "T:number " PLACES, compute_copy_add, 0},
    {"TensorScatterSub", COPY, "T:number " PLACES, compute_copy_sub, 0},
    {"TensorScatterMin", COPY, "T:number " PLACES, compute_copy_min, 0},
    {"TensorScatterMax", COPY, "T:number " PLACES, compute_copy_max, 0},
    IN_BOTH ("Update", "T:any ", "T:any ", compute_variable_update),
    IN_BOTH ("Add", "T:number ", "T:number|bool ", compute_variable_add),
    IN_BOTH ("Sub", "T:number ", "T:number|bool ", compute_variable_sub),
    IN_BOTH ("Min", "T:number ", "T:number ", compute_variable_min),
    IN_BOTH ("Max", "T:number ", "T:number ", compute_variable_max),
    {"DynamicPartition", "data:T, partitions:int32 -> outputs:num_partitions*T", "T:any|resource",
     compute_dynamic_partition, MUSTER_OP_HANDLES},
    {NULL, NULL, NULL, NULL, 0},
};
