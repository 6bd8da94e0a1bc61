// SPDX-License-Identifier: Apache-2.0
/* Reads tensors of a checkpoint. A read is planned first: each wanted tensor, or slice, is found
 * in the index and split into the stored pieces that it consists of, then all spans are loaded in
 * parallel (bundle_data.c). The last part checks every byte of a checkpoint. */
#include "checkpoint/format/bundle_reader_private.h"

#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/format/bundle_data_private.h"
#include "checkpoint/format/bundle_pieces_private.h"
#include "checkpoint/format/bundle_strings_private.h"
#include "checkpoint/format/v1_table_private.h"
#include "checkpoint/stores/default_storage.h"

#include <string.h>

struct _MusterBundleReader {
  gint ref_count;           /* atomic */
  char *prefix;             /* (owned) */
  MusterBundleIndex *index; /* (owned) */
  MusterBundleData *data;   /* (owned) */
};

/* One requested tensor. */
typedef struct {
  const MusterIndexEntry *whole;
  MusterExtent *wanted; /* (owned) the box of it, resolved */
  GArray *pieces;       /* (owned) (nullable) the pieces that it is joined from */
  MusterTensor *tensor; /* (owned) (nullable) the result */
  gboolean is_stored;   /* it is one stored entry, unchanged */
} Request;

/* A stored entry that is read into separate memory, as a result or to be copied from. */
typedef struct {
  const MusterIndexEntry *entry;
  MusterTensor *tensor; /* (owned) for strings only after their bytes were read */
  guint8 *bytes;        /* (owned) of strings */
} Source;

typedef struct {
  MusterBundleReader *reader;
  Request *requests; /* (owned) */
  gsize n;
  GHashTable *sources;  /* (owned) (element-type MusterIndexEntry Source) */
  GArray *spans;        /* (owned) (element-type MusterDataSpan) what is to be read */
  MusterDataFile *file; /* (owned) (nullable) the last one that was examined */
  gint32 shard;
  GHashTable *begun; /* (nullable) (element-type MusterIndexEntry MusterDataSpan) entries of which
                        some bytes are read at a time */
} Plan;

MusterBundleReader *
muster_bundle_reader_open (MusterStorage *storage, const char *prefix, GError **error)
{
  muster_require (error, NULL, prefix);
  storage = storage != NULL ? storage : muster_default_storage ();
  g_autoptr (GBytes) v1 = NULL;
  MusterBundleIndex *index = muster_any_index_load (storage, prefix, &v1, error);
  if (index == NULL)
    return NULL;
  MusterBundleReader *self = g_new0 (MusterBundleReader, 1);
  self->ref_count = 1;
  self->prefix = g_strdup (prefix);
  self->index = index;
  self->data = v1 != NULL ? muster_bundle_data_new_in_memory (storage, prefix, v1)
                          : muster_bundle_data_new (storage, prefix, index->n_shards);
  return self;
}

MusterBundleReader *
muster_bundle_reader_ref (MusterBundleReader *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
muster_bundle_reader_unref (MusterBundleReader *self)
{
  if (self == NULL || !g_atomic_int_dec_and_test (&self->ref_count))
    return;
  muster_bundle_data_free (self->data);
  muster_bundle_index_free (self->index);
  g_free (self->prefix);
  g_free (self);
}

const char *
muster_bundle_reader_prefix (MusterBundleReader *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->prefix;
}

gint32
muster_bundle_reader_n_shards (MusterBundleReader *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->index->n_shards;
}

gsize
muster_bundle_reader_n_entries (MusterBundleReader *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->index->entries->len - self->index->n_parts;
}

const MusterBundleEntry *
muster_bundle_reader_entry (MusterBundleReader *self, gsize index)
{
  g_return_val_if_fail (self != NULL && index < muster_bundle_reader_n_entries (self), NULL);
  return &g_array_index (self->index->entries, MusterIndexEntry, self->index->n_parts + index)
              .entry;
}

const MusterBundleEntry **
muster_bundle_reader_entries (MusterBundleReader *self, gsize *n)
{
  g_return_val_if_fail (self != NULL && n != NULL, NULL);
  const guint n_parts = self->index->n_parts, n_whole = self->index->entries->len - n_parts;
  const MusterBundleEntry **entries = g_new (const MusterBundleEntry *, MAX (n_whole, 1));
  for (guint i = 0; i < n_whole; i++)
    entries[i] = &g_array_index (self->index->entries, MusterIndexEntry, n_parts + i).entry;
  *n = n_whole;
  return entries;
}

const MusterBundleEntry *
muster_bundle_reader_find (MusterBundleReader *self, const char *name)
{
  g_return_val_if_fail (self != NULL && name != NULL, NULL);
  const MusterIndexEntry *found = muster_bundle_index_find (self->index, name, strlen (name));
  return found != NULL ? &found->entry : NULL;
}

gsize
muster_bundle_reader_n_slices (MusterBundleReader *self, const char *name)
{
  g_return_val_if_fail (self != NULL && name != NULL, 0);
  const MusterIndexEntry *whole = muster_bundle_index_find (self->index, name, strlen (name));
  return whole != NULL ? whole->n_slices : 0;
}

static const MusterIndexEntry *
find_slice (MusterBundleReader *self, const MusterIndexEntry *whole, gsize i)
{
  const int n_dims = whole->entry.n_dims;
  g_autoptr (GByteArray) key = g_byte_array_new ();
  muster_slice_append_key (key, whole->entry.name, n_dims, whole->slices + i * (gsize)n_dims);
  return muster_bundle_index_find (self->index, key->data, key->len);
}

char *
muster_bundle_reader_slice (MusterBundleReader *self, const char *name, gsize i, gint32 *shard)
{
  g_return_val_if_fail (self != NULL && name != NULL && shard != NULL, NULL);
  const MusterIndexEntry *whole = muster_bundle_index_find (self->index, name, strlen (name));
  g_return_val_if_fail (whole != NULL && i < whole->n_slices, NULL);
  const MusterIndexEntry *part = find_slice (self, whole, i);
  *shard = part != NULL ? part->entry.shard : -1;
  return muster_slice_to_string (whole->entry.n_dims,
                                 whole->slices + i * (gsize)whole->entry.n_dims);
}

gboolean
muster_bundle_reader_is_same (MusterBundleReader *self, const char *name, MusterBundleReader *other,
                              const char *other_name)
{
  g_return_val_if_fail (self != NULL && name != NULL && other != NULL && other_name != NULL, FALSE);
  const MusterIndexEntry *a = muster_bundle_index_find (self->index, name, strlen (name));
  const MusterIndexEntry *b =
      muster_bundle_index_find (other->index, other_name, strlen (other_name));
  if (a == NULL || b == NULL || a->n_slices != b->n_slices)
    return FALSE;
  if (!a->entry.is_sliced)
    return a->entry.size == b->entry.size && a->entry.crc32c == b->entry.crc32c;
  const gsize size = a->n_slices * (gsize)a->entry.n_dims * sizeof *a->slices;
  gboolean is_same = size == 0 || memcmp (a->slices, b->slices, size) == 0;
  for (gsize i = 0; i < a->n_slices && is_same; i++) {
    const MusterIndexEntry *x = find_slice (self, a, i), *y = find_slice (other, b, i);
    is_same = x != NULL && y != NULL && x->entry.size == y->entry.size &&
              x->entry.crc32c == y->entry.crc32c;
  }
  return is_same;
}

static gboolean
is_readable (const MusterIndexEntry *entry, GError **error)
{
  if (muster_dtype_is_supported (entry->entry.dtype))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "The tensor '%s' has the unsupported type %s (%d)",
                      (const char *)entry->key + muster_index_entry_is_part (entry),
                      muster_dtype_name (entry->entry.dtype), (int)entry->entry.dtype);
}

static const MusterBundleEntry *
find_whole (MusterBundleReader *self, const char *name, GError **error)
{
  const MusterBundleEntry *whole = muster_bundle_reader_find (self, name);
  if (whole == NULL)
    muster_fail (error, MUSTER_ERROR_NOT_FOUND, "The tensor '%s' is not found in checkpoint '%s'",
                 name, self->prefix);
  return whole;
}

static gboolean
resolve_spec (const MusterIndexEntry *whole, const char *text, MusterExtent *wanted, GError **error)
{
  MusterSliceSpec spec;
  const MusterBundleEntry *e = &whole->entry;
  if (!muster_slice_spec_parse (&spec, text, error))
    return FALSE;
  if (spec.n_dims == e->n_dims &&
      (!spec.has_shape || memcmp (spec.dims, e->dims, (gsize)e->n_dims * sizeof (gint64)) == 0) &&
      muster_slice_resolve (e->n_dims, e->dims, spec.extents, wanted))
    return TRUE;
  g_autofree char *shape = muster_shape_to_string (e->n_dims, e->dims);
  return muster_fail (
      error, MUSTER_ERROR_INVALID_ARGUMENT,
      "The slice '%s' doesn't fit the tensor '%s', which is stored with the shape %s", text,
      e->name, shape);
}

static void
clear_request (Request *request)
{
  g_free (request->wanted);
  g_clear_pointer (&request->pieces, g_array_unref);
  muster_tensor_unref (request->tensor);
}

static void
free_source (gpointer data)
{
  Source *source = data;
  muster_tensor_unref (source->tensor);
  g_free (source->bytes);
  g_free (source);
}

static void
plan_init (Plan *self, MusterBundleReader *reader, gsize n)
{
  *self = (Plan){.reader = reader,
                 .requests = g_new0 (Request, n),
                 .n = n,
                 .sources = g_hash_table_new_full (NULL, NULL, NULL, free_source),
                 .spans = g_array_new (FALSE, FALSE, sizeof (MusterDataSpan))};
}

static void
plan_clear (Plan *self)
{
  for (gsize i = 0; i < self->n; i++)
    clear_request (&self->requests[i]);
  g_free (self->requests);
  g_hash_table_unref (self->sources);
  g_array_unref (self->spans);
  muster_data_file_unref (self->file);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Plan, plan_clear)

static gboolean
has_memory (gconstpointer memory, const MusterIndexEntry *entry, GError **error)
{
  if (memory != NULL)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "not enough memory for the %" G_GINT64_FORMAT " bytes of the tensor '%s'",
                      entry->entry.size,
                      (const char *)entry->key + muster_index_entry_is_part (entry));
}

/* The file is usually that of the entry before. */
static gboolean
check_place (Plan *self, const MusterIndexEntry *entry, GError **error)
{
  MusterBundleData *data = self->reader->data;
  if (self->file == NULL || self->shard != entry->entry.shard) {
    g_clear_pointer (&self->file, muster_data_file_unref);
    self->shard = entry->entry.shard;
    self->file = muster_bundle_data_open (data, self->shard, error);
  }
  return self->file != NULL && muster_data_file_check_place (self->file, data, entry, error);
}

/* Reads numbers in stored form directly into their tensor. */
static gboolean
add_stored (Plan *self, Request *request, GError **error)
{
  const MusterBundleEntry *e = &request->whole->entry;
  if (!check_place (self, request->whole, error))
    return FALSE;
  request->tensor = muster_tensor_try_new (e->dtype, e->n_dims, e->dims, error);
  if (request->tensor == NULL)
    return FALSE;
  const MusterDataSpan span =
      muster_data_span (request->whole, muster_tensor_data_mutable (request->tensor));
  g_array_append_val (self->spans, span);
  return TRUE;
}

/* Reads a whole entry once, even if several requests need it. */
static gboolean
add_source (Plan *self, const MusterIndexEntry *entry, GError **error)
{
  const MusterBundleEntry *e = &entry->entry;
  if (g_hash_table_contains (self->sources, entry))
    return TRUE;
  if (!check_place (self, entry, error))
    return FALSE;
  Source *source = g_new0 (Source, 1);
  source->entry = entry;
  g_hash_table_insert (self->sources, (gpointer)entry, source);
  guint8 *into;
  if (e->dtype == MUSTER_STRING) {
    into = source->bytes = g_try_malloc ((gsize)MAX (e->size, 1));
    if (!has_memory (into, entry, error))
      return FALSE;
  } else {
    source->tensor = muster_tensor_try_new (e->dtype, e->n_dims, e->dims, error);
    if (source->tensor == NULL)
      return FALSE;
    into = muster_tensor_data_mutable (source->tensor);
  }
  const MusterDataSpan span = muster_data_span (entry, into);
  g_array_append_val (self->spans, span);
  return TRUE;
}

/* Leaves of a span those bytes, whose checksum is checked with the entry's last ones. */
static void
limit_span (const Plan *self, MusterDataSpan *span, guint64 from, guint64 size)
{
  MusterDataSpan *whole = g_hash_table_lookup (self->begun, span->entry);
  if (whole == NULL) {
    whole = g_memdup2 (span, sizeof *span);
    whole->left = (gsize)span->size;
    g_hash_table_insert (self->begun, (gpointer)span->entry, whole);
  }
  span->whole = whole;
  span->offset += from;
  span->size = size;
}

/* Returns TRUE if what is wanted of a piece is read alone. */
static gboolean
is_read_alone (const Plan *self, const MusterPiece *piece, int n_dims, gint64 *from)
{
  *from = 0;
  return memcmp (piece->place, piece->common, (gsize)n_dims * sizeof (MusterExtent)) == 0 ||
         (self->begun != NULL && muster_slice_is_run (n_dims, piece->common, piece->place, from));
}

/* Reads a piece directly into the result if it is contiguous there. */
static gboolean
add_piece (Plan *self, Request *request, MusterPiece *piece, GError **error)
{
  const int n_dims = request->whole->entry.n_dims;
  const gsize size = muster_dtype_size (request->whole->entry.dtype);
  gint64 offset, from;
  if (request->tensor == NULL || !is_read_alone (self, piece, n_dims, &from) ||
      !muster_slice_is_run (n_dims, piece->common, request->wanted, &offset))
    return add_source (self, piece->entry, error);
  guint8 *into = muster_tensor_data_mutable (request->tensor);
  MusterDataSpan span = muster_data_span (piece->entry, into + (gsize)offset * size);
  if (self->begun != NULL)
    limit_span (self, &span, (guint64)from * size,
                (guint64)muster_slice_volume (n_dims, piece->common) * size);
  g_array_append_val (self->spans, span);
  piece->entry = NULL; /* nothing is left to copy */
  return TRUE;
}

static gboolean
add_pieces (Plan *self, Request *request, GError **error)
{
  const MusterBundleEntry *e = &request->whole->entry;
  if (e->dtype != MUSTER_STRING) {
    gint64 dims[MUSTER_MAX_DIMS];
    for (int d = 0; d < e->n_dims; d++)
      dims[d] = request->wanted[d].length;
    request->tensor = muster_tensor_try_new (e->dtype, e->n_dims, dims, error);
    if (request->tensor == NULL)
      return FALSE;
  }
  for (guint i = 0; i < request->pieces->len; i++)
    if (!add_piece (self, request, &g_array_index (request->pieces, MusterPiece, i), error))
      return FALSE;
  return TRUE;
}

/* Finds where a tensor, or the part of it that slice names, lies, and allocates memory for it.
 * */
static gboolean
add_request (Plan *self, Request *request, const MusterIndexEntry *whole, const char *slice,
             GError **error)
{
  MusterBundleReader *reader = self->reader;
  MusterExtent wanted[MUSTER_MAX_DIMS];
  request->whole = whole;
  muster_index_entry_box (whole, wanted);
  if (slice != NULL && *slice != '\0' && !resolve_spec (whole, slice, wanted, error))
    return FALSE;
  if (!is_readable (whole, error))
    return FALSE;
  const int n_dims = whole->entry.n_dims;
  if (!whole->entry.is_sliced && muster_slice_is_whole (n_dims, whole->entry.dims, wanted)) {
    request->is_stored = TRUE;
    return whole->entry.dtype == MUSTER_STRING ? add_source (self, whole, error)
                                               : add_stored (self, request, error);
  }
  const gsize size = (gsize)n_dims * sizeof (MusterExtent);
  request->wanted = g_memdup2 (wanted, size);
  request->pieces = muster_bundle_find_pieces (reader->index, reader->data, whole, wanted, error);
  if (request->pieces == NULL)
    return FALSE;
  if (request->pieces->len == 1) {
    const MusterPiece *only = &g_array_index (request->pieces, MusterPiece, 0);
    if (memcmp (only->place, wanted, size) == 0) {
      request->is_stored = TRUE;
      request->whole = only->entry;
      return add_source (self, only->entry, error);
    }
  }
  return add_pieces (self, request, error);
}

static gboolean
decode_strings (Plan *self, GError **error)
{
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, self->sources);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    Source *source = value;
    if (source->bytes == NULL)
      continue;
    const MusterBundleEntry *e = &source->entry->entry;
    const gint64 n = muster_shape_n_elements (e->n_dims, e->dims);
    g_autofree MusterString *strings = g_try_new (MusterString, (gsize)MAX (n, 1));
    if (!has_memory (strings, source->entry, error))
      return FALSE;
    if (!(n == 0 && e->size == 0) &&
        !muster_strings_decode (source->bytes, (gsize)e->size, n, e->crc32c, strings))
      return muster_bundle_data_damaged (self->reader->data, source->entry,
                                         "is damaged: its checksum doesn't match", error);
    source->tensor = muster_tensor_new_strings (e->n_dims, e->dims, strings);
    g_clear_pointer (&source->bytes, g_free);
  }
  return TRUE;
}

/* Joins the pieces of a tensor of strings by copying the pointers to their texts. */
static MusterTensor *
join_strings (const Plan *self, const Request *request)
{
  const int n_dims = request->whole->entry.n_dims;
  gint64 dims[MUSTER_MAX_DIMS];
  for (int d = 0; d < n_dims; d++)
    dims[d] = request->wanted[d].length;
  const gint64 n = muster_shape_n_elements (n_dims, dims);
  g_autofree MusterString *strings = g_new0 (MusterString, (gsize)MAX (n, 1));
  for (guint i = 0; i < request->pieces->len; i++) {
    const MusterPiece *piece = &g_array_index (request->pieces, MusterPiece, i);
    const Source *source = g_hash_table_lookup (self->sources, piece->entry);
    const gint64 n_source = muster_tensor_n_elements (source->tensor);
    g_autofree MusterString *texts = g_new (MusterString, (gsize)n_source);
    for (gint64 k = 0; k < n_source; k++)
      texts[k] = muster_tensor_string (source->tensor, k);
    muster_slice_copy (n_dims, piece->common, piece->place, texts, request->wanted, strings,
                       sizeof *strings);
  }
  return muster_tensor_new_strings (n_dims, dims, strings);
}

static MusterTensor *
join_numbers (const Plan *self, Request *request)
{
  for (guint i = 0; i < request->pieces->len; i++) {
    const MusterPiece *piece = &g_array_index (request->pieces, MusterPiece, i);
    if (piece->entry == NULL)
      continue;
    const Source *source = g_hash_table_lookup (self->sources, piece->entry);
    muster_slice_copy (request->whole->entry.n_dims, piece->common, piece->place,
                       muster_tensor_data (source->tensor), request->wanted,
                       muster_tensor_data_mutable (request->tensor),
                       muster_dtype_size (request->whole->entry.dtype));
  }
  return g_steal_pointer (&request->tensor);
}

/* Makes the result after all reads. It can't fail. */
static MusterTensor *
answer (const Plan *self, Request *request)
{
  if (request->is_stored && request->tensor != NULL)
    return g_steal_pointer (&request->tensor);
  if (request->is_stored) {
    const Source *source = g_hash_table_lookup (self->sources, request->whole);
    return muster_tensor_ref (source->tensor);
  }
  return request->whole->entry.dtype == MUSTER_STRING ? join_strings (self, request)
                                                      : join_numbers (self, request);
}

gboolean
muster_bundle_reader_read_many (MusterBundleReader *self, const char *const *names,
                                const char *const *slices, gsize n, MusterTensor **tensors,
                                GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);
  muster_require_array (error, FALSE, names, n);
  muster_require_array (error, FALSE, tensors, n);
  g_autofree const MusterBundleEntry **entries = g_new (const MusterBundleEntry *, n);
  for (gsize i = 0; i < n; i++)
    if ((entries[i] = find_whole (self, names[i], error)) == NULL)
      return FALSE;
  return muster_bundle_reader_read_entries (self, entries, slices, n, tensors, cancellable, error);
}

static gboolean
read_entries (MusterBundleReader *self, GHashTable *begun, const MusterBundleEntry *const *entries,
              const char *const *slices, gsize n, MusterTensor **tensors, GCancellable *cancellable,
              GError **error)
{
  const MusterDataLoad how = {.cancellable = cancellable};
  g_auto (Plan) plan = {0};
  plan_init (&plan, self, n);
  plan.begun = begun;
  for (gsize i = 0; i < n; i++)
    /* All entries are parts of the index's. */
    if (!add_request (&plan, &plan.requests[i], (const MusterIndexEntry *)entries[i],
                      slices != NULL ? slices[i] : NULL, error))
      return FALSE;
  if (!muster_bundle_data_load (self->data, (MusterDataSpan *)plan.spans->data, plan.spans->len,
                                &how, error) ||
      !decode_strings (&plan, error))
    return FALSE;
  for (gsize i = 0; i < n; i++)
    tensors[i] = answer (&plan, &plan.requests[i]);
  return TRUE;
}

gboolean
muster_bundle_reader_read_entries (MusterBundleReader *self,
                                   const MusterBundleEntry *const *entries,
                                   const char *const *slices, gsize n, MusterTensor **tensors,
                                   GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);
  muster_require_array (error, FALSE, entries, n);
  muster_require_array (error, FALSE, tensors, n);
  return read_entries (self, NULL, entries, slices, n, tensors, cancellable, error);
}

GHashTable *
muster_bundle_parts_new (void)
{
  return g_hash_table_new_full (NULL, NULL, NULL, g_free);
}

MusterTensor *
muster_bundle_reader_read_part (MusterBundleReader *self, GHashTable *parts,
                                const MusterBundleEntry *entry, const char *slice,
                                GCancellable *cancellable, GError **error)
{
  MusterTensor *part = NULL;
  return read_entries (self, parts, &entry, &slice, 1, &part, cancellable, error) ? part : NULL;
}

MusterTensor *
muster_bundle_reader_read_slice (MusterBundleReader *self, const char *name, const char *slice,
                                 GError **error)
{
  muster_require (error, NULL, self, name);
  MusterTensor *tensor = NULL;
  return muster_bundle_reader_read_many (self, &name, &slice, 1, &tensor, NULL, error) ? tensor
                                                                                       : NULL;
}

MusterTensor *
muster_bundle_reader_read (MusterBundleReader *self, const char *name, GError **error)
{
  muster_require (error, NULL, self, name);
  return muster_bundle_reader_read_slice (self, name, NULL, error);
}

/* Checks every bit of a checkpoint's files. Each byte belongs to a tensor, which has a checksum,
 * or to a gap, which must be zero: programs that align tensors pad with zeros, also after the last
 * one. The index was checked when it was opened. */

static gboolean
check_index (MusterBundleReader *self, GError **error)
{
  if (self->index->flaw == NULL)
    return TRUE;
  g_autofree char *path = muster_bundle_index_path (self->prefix);
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "The checkpoint index '%s' is damaged: %s",
                      path, self->index->flaw);
}

/* Checks that all slices of a sliced tensor, which are separate entries, exist. */
static gboolean
check_slices (MusterBundleReader *self, const MusterIndexEntry *entry, GError **error)
{
  MusterExtent wanted[MUSTER_MAX_DIMS];
  muster_index_entry_box (entry, wanted);
  g_autoptr (GArray) pieces =
      muster_bundle_find_pieces (self->index, self->data, entry, wanted, error);
  return pieces != NULL;
}

static GArray *
entries_as_spans (MusterBundleReader *self, GError **error)
{
  const GArray *entries = self->index->entries;
  g_autoptr (GArray) spans =
      g_array_sized_new (FALSE, FALSE, sizeof (MusterDataSpan), entries->len);
  for (guint i = 0; i < entries->len; i++) {
    const MusterIndexEntry *entry = &g_array_index (entries, MusterIndexEntry, i);
    if (entry->entry.is_sliced) {
      if (!check_slices (self, entry, error))
        return NULL;
      continue;
    }
    if (!muster_bundle_data_check_place (self->data, entry, error))
      return NULL;
    const MusterDataSpan span = muster_data_span (entry, NULL);
    g_array_append_val (spans, span);
  }
  g_array_sort (spans, muster_data_span_compare);
  return g_steal_pointer (&spans);
}

/* Adds the gap between one span and the next, or the end of the file. */
static gboolean
add_gap (MusterBundleReader *self, GArray *gaps, gint32 shard, guint64 start,
         const MusterDataSpan *next, GError **error)
{
  guint64 end;
  if (next != NULL && next->shard == shard) {
    end = next->offset;
  } else {
    g_autoptr (MusterDataFile) file = muster_bundle_data_open (self->data, shard, error);
    if (file == NULL)
      return FALSE;
    end = file->size;
  }
  if (end > start) {
    const MusterDataSpan gap = {.shard = shard, .offset = start, .size = end - start};
    g_array_append_val (gaps, gap);
  }
  return TRUE;
}

/* A data file without entries isn't read, since nothing in it matters. */
static gboolean
add_gaps (MusterBundleReader *self, GArray *spans, GError **error)
{
  g_autoptr (GArray) gaps = g_array_new (FALSE, FALSE, sizeof (MusterDataSpan));
  const MusterDataSpan *before = NULL;
  guint64 end = 0;
  for (guint i = 0; i < spans->len; i++) {
    const MusterDataSpan *span = &g_array_index (spans, MusterDataSpan, i);
    const MusterDataSpan *next =
        i + 1 < spans->len ? &g_array_index (spans, MusterDataSpan, i + 1) : NULL;
    if (before == NULL || before->shard != span->shard) {
      end = 0;
      if (!add_gap (self, gaps, span->shard, 0, span, error))
        return FALSE;
    }
    if (span->size > 0 && span->offset < end)
      return muster_bundle_data_damaged (self->data, span->entry, "overlaps another tensor", error);
    end = MAX (end, span->offset + span->size);
    if (!add_gap (self, gaps, span->shard, end, next, error))
      return FALSE;
    before = span;
  }
  g_array_append_vals (spans, gaps->data, gaps->len);
  return TRUE;
}

gboolean
muster_bundle_reader_verify (MusterBundleReader *self, MusterBundleProgress progress,
                             gpointer user_data, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);
  const MusterDataLoad how = {
      .progress = progress, .user_data = user_data, .cancellable = cancellable};
  if (!check_index (self, error))
    return FALSE;
  g_autoptr (GArray) spans = entries_as_spans (self, error);
  return spans != NULL && add_gaps (self, spans, error) &&
         muster_bundle_data_load (self->data, (MusterDataSpan *)spans->data, spans->len, &how,
                                  error);
}
