// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_reader.h"

#include "base/error.h"
#include "bundle/bundle_index.h"
#include "bundle/bundle_strings.h"
#include "bundle/crc32c.h"
#include "bundle/slice.h"
#include "bundle/storage_private.h"

#include <string.h>

/* A tensor in more slices than this isn't put together: that they don't overlap is checked pair by
 * pair. */
#define MAX_SLICES 16384

struct _MusterBundleReader {
  gint ref_count;           /* atomic */
  MusterStorage *storage;   /* (owned) */
  char *prefix;             /* (owned) */
  MusterBundleIndex *index; /* (owned) */
  GMutex lock;
  GHashTable *shards; /* (owned) (element-type int GBytes); guarded by lock */
};

/* A stored tensor, or stored slice, that a read takes something from. */
typedef struct {
  const MusterIndexEntry *entry;
  MusterExtent *place;  /* (owned) where it lies in the whole tensor, resolved */
  MusterExtent *common; /* (owned) what is wanted of it */
} Piece;

MusterBundleReader *
muster_bundle_reader_open (MusterStorage *storage, const char *prefix, GError **error)
{
  g_return_val_if_fail (prefix != NULL, NULL);
  storage = storage != NULL ? storage : muster_local_storage ();
  MusterBundleIndex *index = muster_bundle_index_load (storage, prefix, error);
  if (index == NULL)
    return NULL;
  MusterBundleReader *self = g_new0 (MusterBundleReader, 1);
  self->ref_count = 1;
  self->storage = g_object_ref (storage);
  self->prefix = g_strdup (prefix);
  self->index = index;
  self->shards = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify)g_bytes_unref);
  g_mutex_init (&self->lock);
  return self;
}

MusterBundleReader *
muster_bundle_reader_ref (MusterBundleReader *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
muster_bundle_reader_unref (MusterBundleReader *self)
{
  if (self == NULL || !g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_hash_table_unref (self->shards);
  muster_bundle_index_free (self->index);
  g_mutex_clear (&self->lock);
  g_object_unref (self->storage);
  g_free (self->prefix);
  g_free (self);
}

const char *
muster_bundle_reader_prefix (MusterBundleReader *self)
{
  return self->prefix;
}

gint32
muster_bundle_reader_n_shards (MusterBundleReader *self)
{
  return self->index->n_shards;
}

gsize
muster_bundle_reader_n_entries (MusterBundleReader *self)
{
  return self->index->entries->len - self->index->n_parts;
}

const MusterBundleEntry *
muster_bundle_reader_entry (MusterBundleReader *self, gsize index)
{
  g_return_val_if_fail (index < muster_bundle_reader_n_entries (self), NULL);
  return &g_array_index (self->index->entries, MusterIndexEntry, self->index->n_parts + index)
              .entry;
}

const MusterBundleEntry *
muster_bundle_reader_find (MusterBundleReader *self, const char *name)
{
  const MusterIndexEntry *found = muster_bundle_index_find (self->index, name, strlen (name));
  return found != NULL ? &found->entry : NULL;
}

/* DATA_LOSS of a tensor in a data file. name stands after the NUL of a slice's key. */
static gboolean
damaged (MusterBundleReader *self, const MusterIndexEntry *entry, const char *why, GError **error)
{
  g_autofree char *path =
      entry->entry.is_sliced
          ? g_strdup (self->prefix)
          : muster_bundle_data_path (self->prefix, entry->entry.shard, self->index->n_shards);
  const gboolean is_part = muster_index_entry_is_part (entry);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, "%s '%s' in '%s' %s",
               is_part ? "A slice of the tensor" : "The tensor", (const char *)entry->key + is_part,
               path, why);
  return FALSE;
}

/* A data file, opened once; borrowed. */
static GBytes *
open_shard (MusterBundleReader *self, gint32 shard, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  GBytes *bytes = g_hash_table_lookup (self->shards, GINT_TO_POINTER (shard));
  if (bytes != NULL)
    return bytes;
  g_autofree char *path = muster_bundle_data_path (self->prefix, shard, self->index->n_shards);
  g_autoptr (GError) why = NULL;
  bytes = muster_storage_read (self->storage, path, &why);
  if (bytes != NULL)
    g_hash_table_insert (self->shards, GINT_TO_POINTER (shard), bytes);
  else if (muster_storage_is_absent (why))
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS,
                 "The checkpoint '%s' has an index, but its data file '%s' is gone", self->prefix,
                 path);
  else
    g_propagate_error (error, g_steal_pointer (&why));
  return bytes;
}

/* An entry's bytes in its data file, not checked yet; no memory is taken for them. */
static GBytes *
stored_bytes (MusterBundleReader *self, const MusterIndexEntry *entry, GError **error)
{
  const MusterBundleEntry *e = &entry->entry;
  GBytes *shard = open_shard (self, e->shard, error);
  if (shard == NULL)
    return NULL;
  const gsize size = g_bytes_get_size (shard);
  if ((guint64)e->offset > size || (guint64)e->size > size - (guint64)e->offset) {
    damaged (self, entry, "lies behind the file's end: the file was cut off", error);
    return NULL;
  }
  /* Each string has a length of a byte or more, and the lengths have their checksum. */
  const gint64 n_elements = muster_shape_n_elements (e->n_dims, e->dims);
  if (e->dtype == MUSTER_STRING && n_elements > 0 && n_elements > e->size - 4) {
    damaged (self, entry, "has more strings than bytes", error);
    return NULL;
  }
  return g_bytes_new_from_bytes (shard, (gsize)e->offset, (gsize)e->size);
}

static gboolean
is_readable (const MusterIndexEntry *entry, GError **error)
{
  if (muster_dtype_is_supported (entry->entry.dtype))
    return TRUE;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED,
               "The tensor '%s' is of type %s (%d), which muster doesn't read",
               (const char *)entry->key + muster_index_entry_is_part (entry),
               muster_dtype_name (entry->entry.dtype), (int)entry->entry.dtype);
  return FALSE;
}

static MusterTensor *
read_strings (MusterBundleReader *self, const MusterIndexEntry *entry, GBytes *bytes,
              GError **error)
{
  const MusterBundleEntry *e = &entry->entry;
  const gint64 n_elements = muster_shape_n_elements (e->n_dims, e->dims);
  gsize size;
  const guint8 *data = g_bytes_get_data (bytes, &size);
  g_autofree MusterString *strings = g_new (MusterString, (gsize)MAX (n_elements, 1));
  if (!(n_elements == 0 && size == 0) &&
      !muster_strings_decode (data, size, n_elements, e->crc32c, strings)) {
    damaged (self, entry, "is damaged: its checksum is wrong", error);
    return NULL;
  }
  return muster_tensor_new_strings (e->n_dims, e->dims, strings);
}

/* Reads what lies at one entry, and checks it. */
static MusterTensor *
read_entry (MusterBundleReader *self, const MusterIndexEntry *entry, GError **error)
{
  const MusterBundleEntry *e = &entry->entry;
  if (!is_readable (entry, error))
    return NULL;
  g_autoptr (GBytes) bytes = stored_bytes (self, entry, error);
  if (bytes == NULL)
    return NULL;
  if (e->dtype == MUSTER_STRING)
    return read_strings (self, entry, bytes, error);
  gsize size;
  const void *data = g_bytes_get_data (bytes, &size);
  if (muster_crc32c_mask (muster_crc32c_extend (0, data, size)) != e->crc32c) {
    damaged (self, entry, "is damaged: its checksum is wrong", error);
    return NULL;
  }
  return muster_tensor_new_from_bytes (e->dtype, e->n_dims, e->dims, bytes, error);
}

static void
clear_piece (gpointer data)
{
  Piece *piece = data;
  g_free (piece->place);
  g_free (piece->common);
}

/* The entry of a stored slice, whose shape must be the slice's. */
static const MusterIndexEntry *
find_part (MusterBundleReader *self, const MusterIndexEntry *whole, const MusterExtent *slice,
           const MusterExtent *place, GError **error)
{
  const int n_dims = whole->entry.n_dims;
  g_autoptr (GByteArray) key = g_byte_array_new ();
  muster_slice_append_key (key, whole->entry.name, n_dims, slice);
  const MusterIndexEntry *part = muster_bundle_index_find (self->index, key->data, key->len);
  gboolean fits = part != NULL && part->entry.dtype == whole->entry.dtype &&
                  part->entry.n_dims == n_dims && !part->entry.is_sliced;
  for (int d = 0; fits && d < n_dims; d++)
    fits = part->entry.dims[d] == place[d].length;
  if (fits)
    return part;
  g_autofree char *text = muster_slice_to_string (n_dims, slice);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS,
               "The tensor '%s' of the checkpoint '%s' lists a slice %s that isn't there, or isn't "
               "as large",
               whole->entry.name, self->prefix, text);
  return NULL;
}

/* Adds a piece where the slice has something that is wanted. */
static gboolean
add_piece (MusterBundleReader *self, GArray *pieces, const MusterIndexEntry *whole,
           const MusterExtent *slice, const MusterExtent *wanted, GError **error)
{
  const int n_dims = whole->entry.n_dims;
  MusterExtent place[MUSTER_MAX_DIMS], common[MUSTER_MAX_DIMS];
  const gsize size = (gsize)n_dims * sizeof (MusterExtent);
  if (!muster_slice_resolve (n_dims, whole->entry.dims, slice, place))
    return damaged (self, whole, "lists a slice outside its shape", error);
  if (!muster_slice_intersect (n_dims, place, wanted, common))
    return TRUE;
  const MusterIndexEntry *entry =
      whole->entry.is_sliced ? find_part (self, whole, slice, place, error) : whole;
  if (entry == NULL)
    return FALSE;
  g_autoptr (GBytes) bytes = stored_bytes (self, entry, error); /* are they there at all? */
  if (bytes == NULL)
    return FALSE;
  const Piece piece = {
      .entry = entry, .place = g_memdup2 (place, size), .common = g_memdup2 (common, size)};
  g_array_append_val (pieces, piece);
  return TRUE;
}

/* Pieces that don't overlap and have the wanted volume together are all of it. */
static gboolean
check_cover (MusterBundleReader *self, const MusterIndexEntry *whole, const GArray *pieces,
             const MusterExtent *wanted, GError **error)
{
  const int n_dims = whole->entry.n_dims;
  MusterExtent overlap[MUSTER_MAX_DIMS];
  gint64 covered = 0;
  for (guint i = 0; i < pieces->len; i++) {
    const Piece *piece = &g_array_index (pieces, Piece, i);
    for (guint j = 0; j < i; j++)
      if (muster_slice_intersect (n_dims, piece->common, g_array_index (pieces, Piece, j).common,
                                  overlap))
        return damaged (self, whole, "has slices that overlap", error);
    covered += muster_slice_volume (n_dims, piece->common);
  }
  if (covered == muster_slice_volume (n_dims, wanted))
    return TRUE;
  return damaged (self, whole, "is not complete: slices of it are missing", error);
}

/* Finds the stored slices that hold what is wanted of a tensor. */
static GArray *
find_pieces (MusterBundleReader *self, const MusterIndexEntry *whole, const MusterExtent *wanted,
             GError **error)
{
  static const MusterExtent all[MUSTER_MAX_DIMS] = {
      [0 ... MUSTER_MAX_DIMS - 1] = {.start = 0, .length = MUSTER_ALL}};
  g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (Piece));
  g_array_set_clear_func (pieces, clear_piece);
  if (whole->n_slices > MAX_SLICES) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "The tensor '%s' is stored in %" G_GSIZE_FORMAT " slices; muster reads at most %d",
                 whole->entry.name, whole->n_slices, MAX_SLICES);
    return NULL;
  }
  if (!whole->entry.is_sliced && !add_piece (self, pieces, whole, all, wanted, error))
    return NULL;
  for (gsize i = 0; i < whole->n_slices; i++)
    if (!add_piece (self, pieces, whole, whole->slices + i * (gsize)whole->entry.n_dims, wanted,
                    error))
      return NULL;
  return check_cover (self, whole, pieces, wanted, error) ? g_steal_pointer (&pieces) : NULL;
}

/* Copies what is wanted of each piece into an array of elements; for strings those are MusterString
 * that point into the tensors read, which sources keeps. */
static gboolean
fill (MusterBundleReader *self, const MusterIndexEntry *whole, const GArray *pieces,
      const MusterExtent *wanted, void *data, GPtrArray *sources, GError **error)
{
  const gboolean is_string = whole->entry.dtype == MUSTER_STRING;
  const gsize element_size =
      is_string ? sizeof (MusterString) : muster_dtype_size (whole->entry.dtype);
  for (guint i = 0; i < pieces->len; i++) {
    const Piece *piece = &g_array_index (pieces, Piece, i);
    g_autoptr (MusterTensor) source = read_entry (self, piece->entry, error);
    if (source == NULL)
      return FALSE;
    g_autofree MusterString *strings = NULL;
    if (is_string) {
      const gint64 n = muster_tensor_n_elements (source);
      strings = g_new (MusterString, (gsize)n);
      for (gint64 k = 0; k < n; k++)
        strings[k] = muster_tensor_string (source, k);
    }
    muster_slice_copy (whole->entry.n_dims, piece->common, piece->place,
                       is_string ? strings : muster_tensor_data (source), wanted, data,
                       element_size);
    if (is_string)
      g_ptr_array_add (sources, g_steal_pointer (&source));
  }
  return TRUE;
}

static MusterTensor *
assemble (MusterBundleReader *self, const MusterIndexEntry *whole, const GArray *pieces,
          const MusterExtent *wanted, GError **error)
{
  const int n_dims = whole->entry.n_dims;
  g_autoptr (GPtrArray) sources =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
  gint64 dims[MUSTER_MAX_DIMS];
  for (int d = 0; d < n_dims; d++)
    dims[d] = wanted[d].length;
  if (whole->entry.dtype == MUSTER_STRING) {
    const gint64 n = muster_shape_n_elements (n_dims, dims);
    g_autofree MusterString *strings = g_new0 (MusterString, (gsize)MAX (n, 1));
    return fill (self, whole, pieces, wanted, strings, sources, error)
               ? muster_tensor_new_strings (n_dims, dims, strings)
               : NULL;
  }
  g_autoptr (MusterTensor) tensor = muster_tensor_try_new (whole->entry.dtype, n_dims, dims, error);
  if (tensor == NULL ||
      !fill (self, whole, pieces, wanted, muster_tensor_data_mutable (tensor), sources, error))
    return NULL;
  return g_steal_pointer (&tensor);
}

/* wanted is resolved. */
static MusterTensor *
read_box (MusterBundleReader *self, const MusterIndexEntry *whole, const MusterExtent *wanted,
          GError **error)
{
  const gsize size = (gsize)whole->entry.n_dims * sizeof (MusterExtent);
  if (!is_readable (whole, error))
    return NULL;
  if (!whole->entry.is_sliced &&
      muster_slice_is_whole (whole->entry.n_dims, whole->entry.dims, wanted))
    return read_entry (self, whole, error);
  g_autoptr (GArray) pieces = find_pieces (self, whole, wanted, error);
  if (pieces == NULL)
    return NULL;
  if (pieces->len == 1) {
    const Piece *only = &g_array_index (pieces, Piece, 0);
    if (memcmp (only->place, wanted, size) == 0)
      return read_entry (self, only->entry, error);
  }
  return assemble (self, whole, pieces, wanted, error);
}

static const MusterIndexEntry *
find_whole (MusterBundleReader *self, const char *name, GError **error)
{
  const MusterIndexEntry *whole = muster_bundle_index_find (self->index, name, strlen (name));
  if (whole == NULL)
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND,
                 "The tensor '%s' is not found in checkpoint '%s'", name, self->prefix);
  return whole;
}

static void
whole_box (const MusterIndexEntry *whole, MusterExtent *box)
{
  for (int d = 0; d < whole->entry.n_dims; d++)
    box[d] = (MusterExtent){.start = 0, .length = whole->entry.dims[d]};
}

MusterTensor *
muster_bundle_reader_read (MusterBundleReader *self, const char *name, GError **error)
{
  MusterExtent wanted[MUSTER_MAX_DIMS];
  const MusterIndexEntry *whole = find_whole (self, name, error);
  if (whole == NULL)
    return NULL;
  whole_box (whole, wanted);
  return read_box (self, whole, wanted, error);
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
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "The slice '%s' doesn't fit the tensor '%s', which is stored with the shape %s",
               text, e->name, shape);
  return FALSE;
}

MusterTensor *
muster_bundle_reader_read_slice (MusterBundleReader *self, const char *name, const char *slice,
                                 GError **error)
{
  MusterExtent wanted[MUSTER_MAX_DIMS];
  if (slice == NULL || *slice == '\0')
    return muster_bundle_reader_read (self, name, error);
  const MusterIndexEntry *whole = find_whole (self, name, error);
  if (whole == NULL || !resolve_spec (whole, slice, wanted, error))
    return NULL;
  return read_box (self, whole, wanted, error);
}

gboolean
muster_bundle_reader_read_many (MusterBundleReader *self, const char *const *names,
                                const char *const *slices, gsize n, MusterTensor **tensors,
                                GCancellable *cancellable, GError **error)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
  for (gsize i = 0; i < n; i++) {
    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return FALSE;
    MusterTensor *tensor =
        muster_bundle_reader_read_slice (self, names[i], slices != NULL ? slices[i] : NULL, error);
    if (tensor == NULL)
      return FALSE;
    g_ptr_array_add (all, tensor);
  }
  for (gsize i = 0; i < n; i++)
    tensors[i] = muster_tensor_ref (all->pdata[i]);
  return TRUE;
}

/* The slices of a sliced tensor are entries of their own: here it is asked whether they are all. */
static gboolean
verify_entry (MusterBundleReader *self, const MusterIndexEntry *entry, GError **error)
{
  MusterExtent wanted[MUSTER_MAX_DIMS];
  if (!entry->entry.is_sliced) {
    g_autoptr (MusterTensor) tensor = read_entry (self, entry, error);
    return tensor != NULL;
  }
  whole_box (entry, wanted);
  g_autoptr (GArray) pieces = find_pieces (self, entry, wanted, error);
  return pieces != NULL;
}

gboolean
muster_bundle_reader_verify (MusterBundleReader *self, MusterBundleProgress progress,
                             gpointer user_data, GCancellable *cancellable, GError **error)
{
  const GArray *entries = self->index->entries;
  guint64 total = 0, done = 0;
  for (guint i = 0; i < entries->len; i++)
    total += (guint64)g_array_index (entries, MusterIndexEntry, i).entry.size;
  for (guint i = 0; i < entries->len; i++) {
    const MusterIndexEntry *entry = &g_array_index (entries, MusterIndexEntry, i);
    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return FALSE;
    if (!verify_entry (self, entry, error))
      return FALSE;
    done += (guint64)entry->entry.size;
    if (progress != NULL)
      progress (done, total, user_data);
  }
  return TRUE;
}
