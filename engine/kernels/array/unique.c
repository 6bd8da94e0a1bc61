// SPDX-License-Identifier: Apache-2.0
/* Unique and related ops, and ListDiff. */
#include "engine/kernels/array/array_op_tables.h"
#include "engine/kernels/common/broadcast.h"

#include <string.h>

/* The slices compared: those of a tensor along one axis, each of outer × inner elements. */
typedef struct {
  MusterDType dtype;
  const guint8 *data;
  gint64 n; /* slices */
  gint64 outer, inner;
  gsize size;
} Slices;

/* A hash table of slices: open addressing, at most half full. */
typedef struct {
  gint64 *places; /* (owned) index + 1, 0: free */
  guint64 mask;
} Table;

static gboolean
table_init (Table *self, MusterKernel *k, gint64 n, GError **error)
{
  guint64 size = 16;
  while (size < (guint64)n * 2)
    size *= 2;
  self->mask = size - 1;
  self->places = muster_kernel_alloc0 (k, (gint64)size, sizeof (gint64), error);
  return self->places != NULL;
}

static void
table_clear (Table *self)
{
  g_clear_pointer (&self->places, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Table, table_clear)

static guint64
mix (guint64 hash, guint64 word)
{
  hash = (hash ^ word) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

/* -0.0 is 0.0. */
static gboolean
is_zero (MusterDType dtype, const guint8 *at)
{
  switch (dtype) {
  case MUSTER_FLOAT:
    return *(const float *)at == 0;
  case MUSTER_DOUBLE:
    return *(const double *)at == 0;
  case MUSTER_HALF:
  case MUSTER_BFLOAT16:
    return (*(const guint16 *)at & 0x7fff) == 0;
  default:
    return FALSE;
  }
}

static guint64
hash_element (const Slices *s, guint64 hash, const guint8 *at)
{
  guint64 word = 0;
  if (s->dtype == MUSTER_STRING) {
    MusterString string = *(const MusterString *)at;
    for (gsize i = 0; i < string.size; i += sizeof word) {
      word = 0;
      memcpy (&word, string.data + i, MIN (sizeof word, string.size - i));
      hash = mix (hash, word);
    }
    return mix (hash, string.size);
  }
  if (is_zero (s->dtype, at))
    return mix (hash, 0);
  for (gsize i = 0; i < s->size; i += sizeof word) {
    memcpy (&word, at + i, MIN (sizeof word, s->size - i));
    hash = mix (hash, word);
  }
  return hash;
}

/* NaN isn't equal to anything. */
static gboolean
same_element (const Slices *s, const guint8 *a, const guint8 *b)
{
  if (s->dtype == MUSTER_STRING) {
    MusterString x = *(const MusterString *)a, y = *(const MusterString *)b;
    return x.size == y.size && (x.size == 0 || memcmp (x.data, y.data, x.size) == 0);
  }
  switch (s->dtype) {
  case MUSTER_FLOAT:
    return *(const float *)a == *(const float *)b;
  case MUSTER_DOUBLE:
    return *(const double *)a == *(const double *)b;
  case MUSTER_HALF:
    return muster_half_to_float (*(const guint16 *)a) == muster_half_to_float (*(const guint16 *)b);
  case MUSTER_BFLOAT16:
    return muster_bfloat16_to_float (*(const guint16 *)a) ==
           muster_bfloat16_to_float (*(const guint16 *)b);
  default:
    return memcmp (a, b, s->size) == 0;
  }
}

static const guint8 *
element (const Slices *s, gint64 slice, gint64 outer, gint64 inner)
{
  return s->data + (gsize)((outer * s->n + slice) * s->inner + inner) * s->size;
}

static guint64
hash_slice (const Slices *s, gint64 slice)
{
  guint64 hash = 0;
  for (gint64 o = 0; o < s->outer; o++)
    for (gint64 i = 0; i < s->inner; i++)
      hash = hash_element (s, hash, element (s, slice, o, i));
  return hash ^ hash >> 32;
}

static gboolean
same_slice (const Slices *a, gint64 x, const Slices *b, gint64 y)
{
  for (gint64 o = 0; o < a->outer; o++)
    for (gint64 i = 0; i < a->inner; i++)
      if (!same_element (a, element (a, x, o, i), element (b, y, o, i)))
        return FALSE;
  return TRUE;
}

/* Finds the table's entry for the slice of s that equals this slice of other; a free entry if there
 * is none. */
static gint64 *
table_find (const Table *self, const Slices *s, const Slices *other, gint64 slice)
{
  guint64 at = hash_slice (other, slice) & self->mask;
  while (self->places[at] != 0 && !same_slice (s, self->places[at] - 1, other, slice))
    at = (at + 1) & self->mask;
  return &self->places[at];
}

/* Numbers the distinct values in order of appearance: first[i] is the first slice with value i,
 * id[j] is the value of slice j. */
static gboolean
find_unique (MusterKernel *k, const Slices *s, gint64 *first, gint64 *id, gint64 *n_unique,
             GError **error)
{
  g_auto (Table) table = {0};
  *n_unique = 0;
  if (!table_init (&table, k, s->n, error))
    return FALSE;
  for (gint64 i = 0; i < s->n; i++) {
    gint64 *place = table_find (&table, s, s, i);
    if (*place == 0) {
      *place = i + 1;
      id[i] = *n_unique;
      first[(*n_unique)++] = i;
    } else {
      id[i] = id[*place - 1];
    }
  }
  return TRUE;
}

/* Sets the outputs: the distinct values, the number of each slice's value and, if the op has that
 * output, the counts. */
static gboolean
set_unique (MusterKernel *k, const Slices *s, int axis, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *index, *counts = NULL;
  g_autofree gint64 *first = muster_kernel_alloc (k, s->n, sizeof (gint64), error);
  g_autofree gint64 *id =
      first == NULL ? NULL : muster_kernel_alloc (k, s->n, sizeof (gint64), error);
  gint64 dims[MUSTER_MAX_DIMS], n;
  g_auto (MusterResult) result = {0};

  if (id == NULL || !find_unique (k, s, first, id, &n, error))
    return FALSE;
  memcpy (dims, muster_tensor_dims (x), (gsize)muster_tensor_n_dims (x) * sizeof *dims);
  dims[axis] = n;
  index = muster_kernel_output (k, 1, 1, &s->n, error);
  if (index == NULL ||
      !muster_result_begin (&result, k, s->dtype, muster_tensor_n_dims (x), dims, error))
    return FALSE;
  if (muster_kernel_n_outputs (k) > 2) {
    counts = muster_kernel_output (k, 2, 1, &n, error);
    if (counts == NULL)
      return FALSE;
    memset (muster_tensor_data_mutable (counts), 0, muster_tensor_n_bytes (counts));
  }
  for (gint64 i = 0; i < s->n; i++) {
    muster_put_int (index, i, id[i]);
    if (counts != NULL)
      muster_put_int (counts, id[i], muster_int_at (counts, id[i]) + 1);
  }
  for (gint64 o = 0; o < s->outer; o++)
    for (gint64 i = 0; i < n; i++)
      memcpy (result.data + (gsize)((o * n + i) * s->inner) * s->size, element (s, first[i], o, 0),
              (gsize)s->inner * s->size);
  return muster_result_end (&result, k, 0, error);
}

static Slices
slices_of (MusterTensor *x, const MusterElements *elements, int axis)
{
  const gint64 *dims = muster_tensor_dims (x);
  return (Slices){.dtype = muster_tensor_dtype (x),
                  .data = elements->data,
                  .n = dims[axis],
                  .outer = muster_dims_product (dims, 0, axis),
                  .inner = muster_dims_product (dims, axis + 1, muster_tensor_n_dims (x)),
                  .size = elements->size};
}

static gboolean
compute_unique (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  MusterElements elements = muster_elements (x);
  Slices slices;
  if (muster_tensor_n_dims (x) != 1)
    return muster_invalid (error, "unique expects a 1D vector.");
  slices = slices_of (x, &elements, 0);
  return set_unique (k, &slices, 0, error);
}

static gboolean
compute_unique_v2 (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *axes = muster_kernel_input (k, 1);
  MusterElements elements = muster_elements (x);
  Slices slices;
  int axis = 0;
  if (!muster_check_vector (k, 1, "axis", error))
    return FALSE;
  if (muster_tensor_n_elements (axes) > 1)
    return muster_invalid (error, "axis does not support input tensors larger than 1 elements");
  if (muster_tensor_n_elements (axes) == 0 && muster_tensor_n_dims (x) != 1)
    return muster_invalid (error, "unique expects a 1D vector.");
  if (muster_tensor_n_elements (axes) == 1 &&
      !muster_check_axis (muster_int_at (axes, 0), muster_tensor_n_dims (x), &axis, error))
    return FALSE;
  slices = slices_of (x, &elements, axis);
  return set_unique (k, &slices, axis, error);
}

/* The elements of x that y doesn't contain, in x's order. */
static gboolean
compute_list_diff (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *y = muster_kernel_input (k, 1), *index;
  MusterElements from = muster_elements (x), other = muster_elements (y);
  g_autofree gint64 *kept = NULL;
  g_auto (MusterResult) result = {0};
  g_auto (Table) table = {0};
  Slices a, b;
  gint64 n = 0;

  if (muster_tensor_n_dims (x) != 1)
    return muster_invalid (error, "x should be a 1D vector.");
  if (muster_tensor_n_dims (y) != 1)
    return muster_invalid (error, "y should be a 1D vector.");
  a = slices_of (x, &from, 0);
  b = slices_of (y, &other, 0);
  if (!table_init (&table, k, b.n, error))
    return FALSE;
  kept = muster_kernel_alloc (k, a.n, sizeof (gint64), error);
  if (kept == NULL)
    return FALSE;
  for (gint64 i = 0; i < b.n; i++)
    *table_find (&table, &b, &b, i) = i + 1;
  for (gint64 i = 0; i < a.n; i++)
    if (*table_find (&table, &b, &a, i) == 0)
      kept[n++] = i;
  index = muster_kernel_output (k, 1, 1, &n, error);
  if (index == NULL || !muster_result_begin (&result, k, a.dtype, 1, &n, error))
    return FALSE;
  for (gint64 i = 0; i < n; i++) {
    const gint64 at = kept[i];
    muster_put_int (index, i, at);
    memcpy (result.data + (gsize)i * a.size, a.data + (gsize)at * a.size, a.size);
  }
  return muster_result_end (&result, k, 0, error);
}

#define IDX "T:any out_idx:int32|int64"

const MusterOp muster_unique_ops[] = {
    {"Unique", "x:T -> y:T, idx:out_idx", IDX, compute_unique, 0},
    {"UniqueV2", "x:T, axis:Taxis -> y:T, idx:out_idx", IDX " Taxis:int64|int32", compute_unique_v2,
     0},
    {"UniqueWithCounts", "x:T -> y:T, idx:out_idx, count:out_idx", IDX, compute_unique, 0},
    {"UniqueWithCountsV2", "x:T, axis:Taxis -> y:T, idx:out_idx, count:out_idx",
     IDX " Taxis:int64|int32", compute_unique_v2, 0},
    {"ListDiff", "x:T, y:T -> out:T, idx:out_idx", IDX, compute_list_diff, 0},
    {NULL, NULL, NULL, NULL, 0},
};
