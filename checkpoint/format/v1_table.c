// SPDX-License-Identifier: Apache-2.0
/* Loads a checkpoint of the old format (V1), whose tables hold the values themselves. Each file
 * begins with a list of tensors and their slices; then each slice's values follow. They are loaded
 * into memory as if they lay in a data file, so that the reader needs no second way. */
#include "checkpoint/format/v1_table_private.h"

#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/protowire_private.h"
#include "checkpoint/format/bundle_strings_private.h"
#include "checkpoint/store/storage_private.h"
#include "graph/tensor_proto_private.h"

#include <string.h>

/* A tensor as the lists of all files have it. */
typedef struct {
  char *name; /* (owned) */
  MusterDType dtype;
  int n_dims;
  gint64 dims[MUSTER_MAX_DIMS];
  GArray *slices; /* (owned) (element-type MusterExtent) n_dims each, unresolved */
  gint64 n_slices, n_read;
  gboolean is_whole; /* its only slice is all of it */
} Listed;

typedef struct {
  GHashTable *tensors; /* (owned) (element-type utf8 Listed) */
  GHashTable *keys;    /* (owned) (element-type GBytes) of the slices that have been read */
  MusterBundleIndex *index;
  GByteArray *data;
  gboolean has_list; /* for the current file */
} Loader;

static void
listed_free (gpointer data)
{
  Listed *self = data;
  g_free (self->name);
  g_array_unref (self->slices);
  g_free (self);
}

static gboolean
damaged (GError **error, const char *name, const char *why)
{
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "the entry of '%s' %s", name, why);
}

/* --- the list of tensors --- */

static gboolean
read_extent (MusterProtoReader reader, MusterExtent *extent)
{
  enum { START = 1, LENGTH = 2 };
  MusterProtoField field;
  *extent = (MusterExtent){.length = MUSTER_ALL};
  while (muster_proto_read_field (&reader, &field))
    if (field.number == START)
      extent->start = (gint64)field.value;
    else if (field.number == LENGTH)
      extent->length = (gint64)field.value;
  return muster_proto_at_end (&reader);
}

/* Reads a TensorSliceProto, which has as many extents as the tensor has dimensions. */
static gboolean
read_slice (MusterProtoReader reader, int n_dims, MusterExtent *slice)
{
  enum { EXTENT = 1 };
  MusterProtoField field;
  int n = 0;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == EXTENT &&
        (field.type != MUSTER_WIRE_BYTES || n == n_dims ||
         !read_extent (muster_proto_reader (field.data, field.size), &slice[n++])))
      return FALSE;
  return muster_proto_at_end (&reader) && n == n_dims;
}

static gboolean
read_shape (MusterProtoReader reader, Listed *listed)
{
  enum { DIM = 2, SIZE = 1 };
  MusterProtoField field, inner;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number != DIM)
      continue;
    if (field.type != MUSTER_WIRE_BYTES || listed->n_dims == MUSTER_MAX_DIMS)
      return FALSE;
    MusterProtoReader dim = muster_proto_reader (field.data, field.size);
    gint64 *size = &listed->dims[listed->n_dims++];
    while (muster_proto_read_field (&dim, &inner))
      if (inner.number == SIZE)
        *size = (gint64)inner.value;
    if (!muster_proto_at_end (&dim))
      return FALSE;
  }
  return muster_proto_at_end (&reader) &&
         muster_shape_n_elements (listed->n_dims, listed->dims) >= 0;
}

enum { META_NAME = 1, META_SHAPE = 2, META_TYPE = 3, META_SLICE = 4 };

static gboolean
read_slices (MusterProtoReader reader, Listed *listed)
{
  MusterProtoField field;
  MusterExtent slice[MUSTER_MAX_DIMS], box[MUSTER_MAX_DIMS];
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number != META_SLICE)
      continue;
    if (field.type != MUSTER_WIRE_BYTES ||
        !read_slice (muster_proto_reader (field.data, field.size), listed->n_dims, slice) ||
        !muster_slice_resolve (listed->n_dims, listed->dims, slice, box))
      return FALSE;
    if (listed->n_dims > 0)
      g_array_append_vals (listed->slices, slice, (guint)listed->n_dims);
    listed->n_slices++;
  }
  return muster_proto_at_end (&reader);
}

/* Returns TRUE if two files' lists describe the same tensor. Only the slices may differ. */
static gboolean
is_same_tensor (const Listed *a, const Listed *b)
{
  return a->dtype == b->dtype && a->n_dims == b->n_dims &&
         memcmp (a->dims, b->dims, (gsize)a->n_dims * sizeof *a->dims) == 0;
}

static gboolean
read_listed (Listed *listed, MusterProtoReader reader)
{
  const MusterProtoReader again = reader;
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field)) {
    const MusterProtoReader inner = field.type == MUSTER_WIRE_BYTES
                                        ? muster_proto_reader (field.data, field.size)
                                        : muster_proto_reader ("", 0);
    if (field.number == META_NAME && listed->name == NULL && field.type == MUSTER_WIRE_BYTES &&
        g_utf8_validate_len ((const char *)field.data, (gssize)field.size, NULL))
      listed->name = g_strndup ((const char *)field.data, field.size);
    else if (field.number == META_TYPE)
      listed->dtype = (MusterDType)(gint32)field.value;
    else if (field.number == META_SHAPE && !read_shape (inner, listed))
      return FALSE;
  }
  return muster_proto_at_end (&reader) && listed->name != NULL && *listed->name != '\0' &&
         read_slices (again, listed) && listed->n_slices > 0;
}

static gboolean
add_listed (Loader *self, MusterProtoReader reader, GError **error)
{
  Listed *listed = g_new0 (Listed, 1);
  listed->slices = g_array_new (FALSE, FALSE, sizeof (MusterExtent));
  const gboolean is_read = read_listed (listed, reader);
  Listed *known = is_read ? g_hash_table_lookup (self->tensors, listed->name) : NULL;
  if (is_read && known == NULL)
    return g_hash_table_insert (self->tensors, listed->name, listed);
  const gboolean fits = is_read && is_same_tensor (listed, known);
  if (fits) {
    g_array_append_vals (known->slices, listed->slices->data, listed->slices->len);
    known->n_slices += listed->n_slices;
  }
  const gboolean is_done =
      fits || damaged (error, listed->name != NULL ? listed->name : "", "in the list is invalid");
  listed_free (listed);
  return is_done;
}

static gboolean
read_list (Loader *self, MusterProtoReader reader, GError **error)
{
  enum { TENSOR = 1 };
  MusterProtoField field;
  self->has_list = TRUE;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == TENSOR && field.type == MUSTER_WIRE_BYTES &&
        !add_listed (self, muster_proto_reader (field.data, field.size), error))
      return FALSE;
  return muster_proto_at_end (&reader) || damaged (error, "", "in the list is invalid");
}

/* --- the values --- */

/* Reads the values. Type and shape are in the list. Each element takes a byte at least, and none
 * may be missing. */
static MusterTensor *
read_values (const Listed *listed, const MusterExtent *box, const guint8 *values, gsize size,
             GError **error)
{
  enum { DTYPE = 1, SHAPE = 2, DIM = 2, SIZE = 1 };
  g_autoptr (GByteArray) message = g_byte_array_new (), shape = g_byte_array_new ();
  const gint64 n = muster_slice_volume (listed->n_dims, box);
  gsize budget = 0;
  if (n < 0 || (guint64)n > size) {
    damaged (error, listed->name, "has fewer values than its shape");
    return NULL;
  }
  for (int d = 0; d < listed->n_dims; d++) {
    g_autoptr (GByteArray) dim = g_byte_array_new ();
    muster_proto_put_varint (dim, SIZE << 3);
    muster_proto_put_varint (dim, (guint64)box[d].length);
    muster_proto_put_varint (shape, DIM << 3 | MUSTER_WIRE_BYTES);
    muster_proto_put_varint (shape, dim->len);
    g_byte_array_append (shape, dim->data, dim->len);
  }
  g_byte_array_append (message, values, (guint)size);
  muster_proto_put_varint (message, DTYPE << 3);
  muster_proto_put_varint (message, (guint64)listed->dtype);
  muster_proto_put_varint (message, SHAPE << 3 | MUSTER_WIRE_BYTES);
  muster_proto_put_varint (message, shape->len);
  if (shape->len > 0)
    g_byte_array_append (message, shape->data, shape->len);
  g_autoptr (GError) why = NULL;
  MusterTensor *tensor =
      muster_tensor_proto_read_within (message->data, message->len, NULL, &budget, &why);
  if (tensor == NULL)
    muster_fail (error, MUSTER_ERROR_DATA_LOSS, "the entry of '%s' can't be read: %s", listed->name,
                 why->message);
  return tensor;
}

static void
append_strings (Loader *self, MusterTensor *tensor, MusterBundleEntry *entry)
{
  g_autoptr (GByteArray) head = g_byte_array_new ();
  entry->crc32c = muster_crc32c_mask (muster_strings_encode (tensor, head));
  if (head->len > 0)
    g_byte_array_append (self->data, head->data, head->len);
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++) {
    const MusterString string = muster_tensor_string (tensor, i);
    if (string.size > 0)
      g_byte_array_append (self->data, (const guint8 *)string.data, (guint)string.size);
  }
}

/* Appends the values as a data file would have them. */
static gboolean
append_values (Loader *self, MusterTensor *tensor, gsize read_size, MusterBundleEntry *entry,
               GError **error)
{
  /* a string took two bytes before its text, and takes ten at most */
  const gsize size =
      entry->dtype == MUSTER_STRING ? 6 * read_size + 4 : muster_tensor_n_bytes (tensor);
  if (size > MUSTER_TABLE_MAX || self->data->len > MUSTER_TABLE_MAX - size)
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "its values take more than 2 GiB, too many for a V1 checkpoint");
  entry->offset = self->data->len;
  if (entry->dtype == MUSTER_STRING) {
    append_strings (self, tensor, entry);
  } else {
    const guint8 *data = muster_tensor_data (tensor);
    entry->crc32c = muster_crc32c_mask (muster_crc32c_extend (0, data, size));
    if (size > 0)
      g_byte_array_append (self->data, data, (guint)size);
  }
  entry->size = self->data->len - entry->offset;
  return TRUE;
}

static gboolean
is_listed (const Listed *listed, const MusterExtent *slice)
{
  const gsize n_dims = (gsize)listed->n_dims;
  const MusterExtent *slices = (const MusterExtent *)listed->slices->data;
  for (gint64 i = 0; i < listed->n_slices; i++)
    if (n_dims == 0 || memcmp (slices + (gsize)i * n_dims, slice, n_dims * sizeof *slice) == 0)
      return TRUE;
  return FALSE;
}

static gboolean
add_slice (Loader *self, Listed *listed, const MusterExtent *slice, const guint8 *values,
           gsize size, GError **error)
{
  MusterExtent box[MUSTER_MAX_DIMS];
  gint64 dims[MUSTER_MAX_DIMS];
  g_autoptr (GByteArray) key = g_byte_array_new ();
  if (!muster_slice_resolve (listed->n_dims, listed->dims, slice, box) ||
      !is_listed (listed, slice))
    return damaged (error, listed->name, "is a slice that isn't in the list");
  muster_slice_append_key (key, listed->name, listed->n_dims, slice);
  if (!g_hash_table_add (self->keys, g_bytes_new (key->data, key->len)))
    return damaged (error, listed->name, "is there twice");
  listed->n_read++;
  for (int d = 0; d < listed->n_dims; d++)
    dims[d] = box[d].length;
  const gboolean is_whole = listed->is_whole =
      listed->n_slices == 1 && muster_slice_is_whole (listed->n_dims, listed->dims, box);
  MusterIndexEntry entry = {
      .entry = {.dtype = listed->dtype, .n_dims = listed->n_dims, .dims = dims},
      .key = is_whole ? (const guint8 *)listed->name : key->data,
      .key_size = is_whole ? strlen (listed->name) : key->len};
  g_autoptr (MusterTensor) tensor = read_values (listed, box, values, size, error);
  if (tensor == NULL || !append_values (self, tensor, size, &entry.entry, error))
    return FALSE;
  muster_bundle_index_add (self->index, &entry);
  return TRUE;
}

static gboolean
read_data (Loader *self, MusterProtoReader reader, GError **error)
{
  enum { NAME = 1, SLICE = 2, DATA = 3 };
  MusterProtoField field, parts[DATA + 1] = {{0}};
  MusterExtent slice[MUSTER_MAX_DIMS];
  while (muster_proto_read_field (&reader, &field))
    if (field.number >= NAME && field.number <= DATA && field.type == MUSTER_WIRE_BYTES)
      parts[field.number] = field;
  if (!muster_proto_at_end (&reader))
    return damaged (error, "", "of values is invalid");
  g_autofree char *name = g_strndup ((const char *)parts[NAME].data, parts[NAME].size);
  Listed *listed = name != NULL ? g_hash_table_lookup (self->tensors, name) : NULL;
  if (listed == NULL || !read_slice (muster_proto_reader (parts[SLICE].data, parts[SLICE].size),
                                     listed->n_dims, slice))
    return damaged (error, name != NULL ? name : "", "isn't in the list of tensors");
  return add_slice (self, listed, slice, parts[DATA].data, parts[DATA].size, error);
}

/* Loads a SavedTensorSlices: the list, under the empty key, or values. */
static gboolean
load_one (const guint8 *key G_GNUC_UNUSED, gsize key_size, const guint8 *value, gsize value_size,
          gpointer user_data, GError **error)
{
  enum { META = 1, DATA = 2 };
  Loader *self = user_data;
  const guint32 wanted = key_size == 0 ? META : DATA;
  MusterProtoReader reader = muster_proto_reader (value, value_size);
  MusterProtoField field;
  if (self->has_list == (key_size == 0))
    return damaged (error, "", "of the list is missing, or there are two");
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number != wanted || field.type != MUSTER_WIRE_BYTES)
      continue;
    const MusterProtoReader inner = muster_proto_reader (field.data, field.size);
    return key_size == 0 ? read_list (self, inner, error) : read_data (self, inner, error);
  }
  return damaged (error, "", "is neither a list nor values");
}

/* --- all of it --- */

static gboolean
load_file (Loader *self, MusterStorage *storage, const char *path, GError **error)
{
  g_autoptr (GError) why = NULL;
  g_autoptr (GBytes) table = muster_bundle_read_table (storage, path, &why);
  self->has_list = FALSE;
  if (table != NULL && muster_table_foreach (table, load_one, self, &self->index->flaw, &why) &&
      self->has_list)
    return TRUE;
  if (table == NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  const int code = muster_error_is (why, MUSTER_ERROR_UNIMPLEMENTED) ||
                           muster_error_is (why, MUSTER_ERROR_RESOURCE_EXHAUSTED)
                       ? why->code
                       : MUSTER_ERROR_DATA_LOSS;
  return muster_fail (error, code, "The V1 checkpoint '%s' can't be read: %s", path,
                      why != NULL ? why->message : "it has no list of tensors");
}

/* Adds the entries of partitioned tensors, of which all slices must have been read. */
static gboolean
add_partitioned (Loader *self, const char *prefix, GError **error)
{
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, self->tensors);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    const Listed *listed = value;
    if (listed->n_read != listed->n_slices)
      return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                          "The V1 checkpoint '%s' lists the tensor '%s', but lacks values of it",
                          prefix, listed->name);
    if (listed->is_whole)
      continue;
    const MusterIndexEntry entry = {.entry = {.dtype = listed->dtype,
                                              .n_dims = listed->n_dims,
                                              .dims = listed->dims,
                                              .is_sliced = TRUE},
                                    .key = (const guint8 *)listed->name,
                                    .key_size = strlen (listed->name),
                                    .n_slices = (gsize)listed->n_slices,
                                    .slices = (const MusterExtent *)listed->slices->data};
    muster_bundle_index_add (self->index, &entry);
  }
  return TRUE;
}

MusterBundleIndex *
muster_v1_load (MusterStorage *storage, const char *prefix, GBytes **data, GError **error)
{
  g_autoptr (MusterBundleIndex) index = muster_bundle_index_new ();
  Loader loader = {.tensors = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, listed_free),
                   .keys = g_hash_table_new_full (g_bytes_hash, g_bytes_equal,
                                                  (GDestroyNotify)g_bytes_unref, NULL),
                   .index = index,
                   .data = g_byte_array_new ()};
  const int n = muster_v1_count_files (prefix);
  gboolean is_loaded = TRUE;
  for (int i = 0; is_loaded && i < n; i++) {
    g_autofree char *path = muster_v1_file (prefix, i);
    is_loaded = load_file (&loader, storage, path, error);
  }
  is_loaded = is_loaded && add_partitioned (&loader, prefix, error);
  g_hash_table_unref (loader.tensors);
  g_hash_table_unref (loader.keys);
  g_autoptr (GBytes) bytes = g_byte_array_free_to_bytes (loader.data);
  if (!is_loaded)
    return NULL;
  muster_bundle_index_sort (index);
  *data = g_steal_pointer (&bytes);
  return g_steal_pointer (&index);
}

MusterBundleIndex *
muster_any_index_load (MusterStorage *storage, const char *prefix, GBytes **data, GError **error)
{
  g_autoptr (GError) why = NULL;
  MusterBundleIndex *index = muster_bundle_index_load (storage, prefix, &why);
  if (index != NULL)
    return index;
  if (muster_error_is (why, MUSTER_ERROR_NOT_FOUND) && muster_v1_is_there (storage, prefix))
    return muster_v1_load (storage, prefix, data, error);
  g_propagate_error (error, g_steal_pointer (&why));
  return NULL;
}
