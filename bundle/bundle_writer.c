// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_writer.h"

#include "base/error.h"
#include "bundle/bundle_publish_private.h"
#include "bundle/bundle_strings.h"
#include "bundle/crc32c.h"
#include "bundle/slice.h"
#include "bundle/storage_private.h"

#include <string.h>

/* A tensor from this size on starts at a multiple of 64 bytes, so that a reader can map it. Readers
 * go by offsets, and the gap is zeros. */
#define ALIGN_FROM  4096
#define ALIGNMENT   64
#define BUFFER_SIZE (1024 * 1024)

struct _MusterBundleWriter {
  MusterStorage *storage;   /* (owned) */
  char *prefix;             /* (owned) */
  char *data_path;          /* (owned) the temporary name */
  MusterStorageFile *file;  /* (owned) (nullable) the data; NULL once it is closed */
  GByteArray *buffer;       /* (owned) what isn't written yet */
  gint64 offset;            /* of the next byte in the data file */
  MusterBundleIndex *index; /* (owned) */
  GHashTable *by_key; /* (owned) (element-type GBytes uint): index's entries, counted from 1 */
  gboolean is_broken; /* a write has failed: there is nothing to publish */
  gboolean is_published;
};

MusterBundleWriter *
muster_bundle_writer_new (MusterStorage *storage, const char *prefix, GError **error)
{
  g_return_val_if_fail (prefix != NULL, NULL);
  storage = storage != NULL ? storage : muster_local_storage ();
  g_autofree char *data = muster_bundle_data_path (prefix, 0, 1);
  g_autofree char *temporary = muster_storage_temporary_name (data);
  MusterStorageFile *file = muster_storage_create (storage, temporary, error);
  if (file == NULL) {
    g_prefix_error (error, "Writing the checkpoint '%s': ", prefix);
    return NULL;
  }
  MusterBundleWriter *self = g_new0 (MusterBundleWriter, 1);
  self->storage = g_object_ref (storage);
  self->prefix = g_strdup (prefix);
  self->data_path = g_steal_pointer (&temporary);
  self->file = file;
  self->buffer = g_byte_array_new ();
  self->index = muster_bundle_index_new ();
  self->by_key =
      g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
  return self;
}

void
muster_bundle_writer_free (MusterBundleWriter *self)
{
  if (self == NULL)
    return;
  if (self->file != NULL)
    (void)muster_storage_close (self->storage, self->file, NULL); /* it is thrown away */
  if (!self->is_published)
    muster_storage_remove_quietly (self->storage, self->data_path);
  g_hash_table_unref (self->by_key);
  muster_bundle_index_free (self->index);
  g_byte_array_unref (self->buffer);
  g_free (self->data_path);
  g_free (self->prefix);
  g_object_unref (self->storage);
  g_free (self);
}

static gboolean
write_through (MusterBundleWriter *self, const void *data, gsize size, GError **error)
{
  if (muster_storage_append (self->storage, self->file, data, size, error))
    return TRUE;
  self->is_broken = TRUE;
  g_prefix_error (error, "Writing the checkpoint '%s': ", self->prefix);
  return FALSE;
}

static gboolean
flush (MusterBundleWriter *self, GError **error)
{
  if (!write_through (self, self->buffer->data, self->buffer->len, error))
    return FALSE;
  g_byte_array_set_size (self->buffer, 0);
  return TRUE;
}

/* Appends to the data file, small pieces through the buffer. */
static gboolean
put (MusterBundleWriter *self, const void *data, gsize size, GError **error)
{
  if (self->buffer->len + size > BUFFER_SIZE && !flush (self, error))
    return FALSE;
  if (size > BUFFER_SIZE) {
    if (!write_through (self, data, size, error))
      return FALSE;
  } else if (size > 0) {
    g_byte_array_append (self->buffer, data, (guint)size);
  }
  self->offset += (gint64)size;
  return TRUE;
}

static gboolean
put_strings (MusterBundleWriter *self, MusterTensor *tensor, MusterBundleEntry *entry,
             GError **error)
{
  g_autoptr (GByteArray) head = g_byte_array_new ();
  entry->crc32c = muster_crc32c_mask (muster_strings_encode (tensor, head));
  entry->offset = self->offset;
  if (!put (self, head->data, head->len, error))
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++) {
    const MusterString text = muster_tensor_string (tensor, i);
    if (!put (self, text.data, text.size, error))
      return FALSE;
  }
  entry->size = self->offset - entry->offset;
  return TRUE;
}

static gboolean
put_numbers (MusterBundleWriter *self, MusterTensor *tensor, MusterBundleEntry *entry,
             GError **error)
{
  static const guint8 zeros[ALIGNMENT];
  const void *data = muster_tensor_data (tensor);
  const gsize size = muster_tensor_n_bytes (tensor);
  if (size >= ALIGN_FROM && self->offset % ALIGNMENT != 0 &&
      !put (self, zeros, (gsize)(ALIGNMENT - self->offset % ALIGNMENT), error))
    return FALSE;
  entry->crc32c = muster_crc32c_mask (muster_crc32c_extend (0, data, size));
  entry->offset = self->offset;
  entry->size = (gint64)size;
  return put (self, data, size, error);
}

static MusterIndexEntry *
lookup (MusterBundleWriter *self, const void *key, gsize key_size)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static (key, key_size);
  const guint at = GPOINTER_TO_UINT (g_hash_table_lookup (self->by_key, bytes));
  return at > 0 ? &g_array_index (self->index->entries, MusterIndexEntry, at - 1) : NULL;
}

static MusterIndexEntry *
record (MusterBundleWriter *self, const void *key, gsize key_size, const MusterBundleEntry *entry)
{
  const MusterIndexEntry wanted = {.entry = *entry, .key = key, .key_size = key_size};
  MusterIndexEntry *added = muster_bundle_index_add (self->index, &wanted);
  g_hash_table_insert (self->by_key, g_bytes_new_static (added->key, added->key_size),
                       GUINT_TO_POINTER (self->index->entries->len));
  return added;
}

static gboolean
already_there (const char *name, const char *what, GError **error)
{
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_ALREADY_EXISTS,
               "The tensor '%s' was already added to the checkpoint%s", name, what);
  return FALSE;
}

static gboolean
invalid (const char *name, const char *why, GError **error)
{
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "The tensor '%s' can't be added to a checkpoint: %s", name, why);
  return FALSE;
}

/* Writes a tensor's elements and records where they lie. */
static gboolean
add_bytes (MusterBundleWriter *self, const void *key, gsize key_size, MusterTensor *tensor,
           GError **error)
{
  MusterBundleEntry entry = {.dtype = muster_tensor_dtype (tensor),
                             .n_dims = muster_tensor_n_dims (tensor),
                             .dims = muster_tensor_dims (tensor)};
  if (self->is_broken || self->file == NULL) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                 "The checkpoint '%s' is finished, or writing it has failed: nothing can be added",
                 self->prefix);
    return FALSE;
  }
  const gboolean is_put = entry.dtype == MUSTER_STRING ? put_strings (self, tensor, &entry, error)
                                                       : put_numbers (self, tensor, &entry, error);
  if (is_put)
    record (self, key, key_size, &entry);
  return is_put;
}

gboolean
muster_bundle_writer_add (MusterBundleWriter *self, const char *name, MusterTensor *tensor,
                          GError **error)
{
  g_return_val_if_fail (name != NULL && tensor != NULL, FALSE);
  if (*name == '\0' || !g_utf8_validate (name, -1, NULL))
    return invalid (name, "a name is a text, and not empty", error);
  if (lookup (self, name, strlen (name)) != NULL)
    return already_there (name, "", error);
  return add_bytes (self, name, strlen (name), tensor, error);
}

/* The part must be as large as its slice says, and the slice lie inside the shape. */
static gboolean
check_part (const MusterSliceSpec *spec, const char *name, MusterTensor *tensor,
            MusterExtent *place, GError **error)
{
  if (!spec->has_shape)
    return invalid (name, "its slice comes without the whole tensor's shape", error);
  if (muster_shape_n_elements (spec->n_dims, spec->dims) < 0 ||
      !muster_slice_resolve (spec->n_dims, spec->dims, spec->extents, place))
    return invalid (name, "its slice lies outside the whole tensor's shape", error);
  gboolean fits = muster_tensor_n_dims (tensor) == spec->n_dims;
  for (int d = 0; fits && d < spec->n_dims; d++)
    fits = muster_tensor_dims (tensor)[d] == place[d].length;
  return fits || invalid (name, "its shape isn't that of its slice", error);
}

/* The parts of one tensor agree on type and shape, and none lies over another. */
static gboolean
check_whole (const MusterIndexEntry *whole, const MusterSliceSpec *spec, const MusterExtent *place,
             const char *name, MusterDType dtype, GError **error)
{
  const int n_dims = spec->n_dims;
  MusterExtent other[MUSTER_MAX_DIMS], common[MUSTER_MAX_DIMS];
  if (!whole->entry.is_sliced)
    return already_there (name, " as a whole", error);
  if (whole->entry.dtype != dtype || whole->entry.n_dims != n_dims ||
      memcmp (whole->entry.dims, spec->dims, (gsize)n_dims * sizeof (gint64)) != 0)
    return invalid (name, "its slices differ in type, or in the whole tensor's shape", error);
  for (gsize i = 0; i < whole->n_slices; i++)
    if (muster_slice_resolve (n_dims, spec->dims, whole->slices + i * (gsize)n_dims, other) &&
        muster_slice_intersect (n_dims, other, place, common))
      return already_there (name, " with a slice that overlaps this one", error);
  return TRUE;
}

gboolean
muster_bundle_writer_add_slice (MusterBundleWriter *self, const char *name, const char *slice,
                                MusterTensor *tensor, GError **error)
{
  MusterSliceSpec spec;
  MusterExtent place[MUSTER_MAX_DIMS];
  const MusterDType dtype = muster_tensor_dtype (tensor);
  if (!muster_slice_spec_parse (&spec, slice, error) ||
      !check_part (&spec, name, tensor, place, error))
    return FALSE;
  MusterIndexEntry *whole = lookup (self, name, strlen (name));
  if (whole != NULL && !check_whole (whole, &spec, place, name, dtype, error))
    return FALSE;
  if (muster_slice_is_whole (spec.n_dims, spec.dims, place))
    return muster_bundle_writer_add (self, name, tensor, error);
  if (*name == '\0' || !g_utf8_validate (name, -1, NULL))
    return invalid (name, "a name is a text, and not empty", error);

  g_autoptr (GByteArray) key = g_byte_array_new ();
  muster_slice_append_key (key, name, spec.n_dims, spec.extents);
  if (!add_bytes (self, key->data, key->len, tensor, error))
    return FALSE;
  const MusterBundleEntry entry = {
      .dtype = dtype, .n_dims = spec.n_dims, .dims = spec.dims, .is_sliced = TRUE};
  /* Looked up again: adding the part may have moved it. */
  whole = lookup (self, name, strlen (name));
  if (whole == NULL)
    whole = record (self, name, strlen (name), &entry);
  muster_bundle_index_add_slice (self->index, whole, spec.extents);
  return TRUE;
}

/* The data complete and durable under its temporary name. */
static gboolean
finish_data (MusterBundleWriter *self, GError **error)
{
  return flush (self, error) && muster_storage_sync (self->storage, self->file, error) &&
         muster_storage_close (self->storage, g_steal_pointer (&self->file), error);
}

gboolean
muster_bundle_writer_finish (MusterBundleWriter *self, GError **error)
{
  if (self->is_broken || self->file == NULL) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                 "The checkpoint '%s' is finished already, or writing it has failed", self->prefix);
    return FALSE;
  }
  const char *const data[] = {self->data_path, NULL};
  if (finish_data (self, error) &&
      muster_bundle_publish_files (self->storage, self->index, data, self->prefix,
                                   &self->is_published, error))
    return TRUE;
  self->is_broken = TRUE;
  g_prefix_error (error, "Publishing the checkpoint '%s': ", self->prefix);
  return FALSE;
}
