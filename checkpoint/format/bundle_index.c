// SPDX-License-Identifier: Apache-2.0
/* A checkpoint's index in memory, with its entries sorted by key, its loading from PREFIX.index
 * and its saving. Indexes may have millions of entries, so the common form of an entry is read and
 * written by hand; anything else is unpacked by protobuf-c, which also decides what is refused. */
#include "checkpoint/format/bundle_index_private.h"

#include "base/error.h"
#include "base/protowire_private.h"
#include "checkpoint/format/leveldb_table_private.h"
#include "checkpoint/format/v1_files_private.h"
#include "checkpoint/proto/tensor_bundle.pb-c.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"

#include <string.h>

#define FORMAT_VERSION 1
/* Number of hexadecimal digits in the name of a checkpoint that is being placed. */
#define PLACING_ID_LEN 8
/* The largest number in the names of data files. */
#define SHARDS_MAX 99999

/* The fields of a BundleEntryProto. */
enum {
  ENTRY_DTYPE = 1,
  ENTRY_SHAPE = 2,
  ENTRY_SHARD_ID = 3,
  ENTRY_OFFSET = 4,
  ENTRY_SIZE = 5,
  ENTRY_CRC32C = 6,
  ENTRY_SLICES = 7
};

MusterBundleIndex *
muster_bundle_index_new (void)
{
  MusterBundleIndex *self = g_new0 (MusterBundleIndex, 1);
  self->arena = muster_arena_new ();
  self->n_shards = 1;
  self->entries = g_array_new (FALSE, FALSE, sizeof (MusterIndexEntry));
  return self;
}

void
muster_bundle_index_free (MusterBundleIndex *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->entries);
  muster_arena_free (self->arena);
  g_free (self);
}

char *
muster_bundle_index_path (const char *prefix)
{
  return g_strconcat (prefix, ".index", NULL);
}

char *
muster_bundle_home (const char *prefix)
{
  const char *slash = strrchr (prefix, '/');
  const char *name = slash != NULL ? slash + 1 : prefix;
  const char *id = name + strlen (MUSTER_PLACING_PREFIX);
  if (!g_str_has_prefix (name, MUSTER_PLACING_PREFIX) ||
      strspn (id, "0123456789abcdef") != PLACING_ID_LEN || id[PLACING_ID_LEN] != '-')
    return g_strdup (prefix);
  return g_strdup_printf ("%.*s%s", (int)(name - prefix), prefix, id + PLACING_ID_LEN + 1);
}

char *
muster_bundle_data_path (const char *prefix, gint32 shard, gint32 n_shards)
{
  g_autofree char *home = muster_bundle_home (prefix);
  return g_strdup_printf ("%s.data-%05d-of-%05d", home, shard, n_shards);
}

static int
compare_keys (const void *a, gsize a_size, const void *b, gsize b_size)
{
  const gsize n = MIN (a_size, b_size);
  const int order = n > 0 ? memcmp (a, b, n) : 0;
  return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

static int
compare_entries (gconstpointer a, gconstpointer b)
{
  const MusterIndexEntry *left = a, *right = b;
  return compare_keys (left->key, left->key_size, right->key, right->key_size);
}

const MusterIndexEntry *
muster_bundle_index_find (const MusterBundleIndex *self, const void *key, gsize key_size)
{
  const MusterIndexEntry wanted = {.key = key, .key_size = key_size};
  guint at;
  return g_array_binary_search (self->entries, &wanted, compare_entries, &at)
             ? &g_array_index (self->entries, MusterIndexEntry, at)
             : NULL;
}

static gpointer
copy_in (MusterArena *arena, const void *data, gsize size)
{
  guint8 *copy = muster_arena_alloc (arena, size + 1);
  if (size > 0)
    memcpy (copy, data, size);
  copy[size] = '\0';
  return copy;
}

MusterIndexEntry *
muster_bundle_index_add (MusterBundleIndex *self, const MusterIndexEntry *entry)
{
  MusterIndexEntry copy = *entry;
  copy.key = copy_in (self->arena, entry->key, entry->key_size);
  copy.entry.name = muster_index_entry_is_part (&copy) ? "" : (const char *)copy.key;
  copy.entry.dims =
      copy_in (self->arena, entry->entry.dims, (gsize)entry->entry.n_dims * sizeof (gint64));
  copy.n_slices = 0;
  copy.slices = NULL;
  for (gsize i = 0; i < entry->n_slices; i++)
    muster_bundle_index_add_slice (self, &copy, entry->slices + i * (gsize)entry->entry.n_dims);
  g_array_append_val (self->entries, copy);
  if (muster_index_entry_is_part (&copy))
    self->n_parts++;
  return &g_array_index (self->entries, MusterIndexEntry, self->entries->len - 1);
}

MusterIndexEntry *
muster_bundle_index_grow (MusterBundleIndex *self, guint n)
{
  const guint len = self->entries->len;
  g_return_val_if_fail (n <= G_MAXUINT - len, NULL);
  g_array_set_size (self->entries, len + n);
  return (MusterIndexEntry *)self->entries->data + len;
}

void
muster_bundle_index_add_slice (MusterBundleIndex *self, MusterIndexEntry *entry,
                               const MusterExtent *slice)
{
  const gsize one = (gsize)entry->entry.n_dims * sizeof (MusterExtent);
  /* The capacity doubles at each power of two. */
  if ((entry->n_slices & (entry->n_slices - 1)) == 0) {
    MusterExtent *extents = muster_arena_alloc (self->arena, MAX (2 * entry->n_slices, 1) * one);
    if (entry->n_slices > 0)
      memcpy (extents, entry->slices, entry->n_slices * one);
    entry->slices = extents;
  }
  memcpy ((char *)entry->slices + entry->n_slices * one, slice, one);
  entry->n_slices++;
}

/* Sorts only if necessary: entries usually come in order. */
static void
sort (GArray *entries)
{
  for (guint i = 1; i < entries->len; i++)
    if (compare_entries (&g_array_index (entries, MusterIndexEntry, i - 1),
                         &g_array_index (entries, MusterIndexEntry, i)) > 0) {
      g_array_sort (entries, compare_entries);
      return;
    }
}

void
muster_bundle_index_sort (MusterBundleIndex *self)
{
  sort (self->entries);
}

/* Loading */

typedef struct {
  MusterBundleIndex *index;
  gboolean has_header;
} Loader;

static gboolean
data_loss (GError **error, const char *name, const char *why)
{
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "the entry of '%s' %s", name, why);
}

static gboolean
check_version (const Tensorflow__BundleVersion *version, GError **error)
{
  gboolean is_readable = version == NULL || version->min_consumer <= FORMAT_VERSION;
  for (gsize i = 0; version != NULL && i < version->n_bad_consumers; i++)
    if (version->bad_consumers[i] == FORMAT_VERSION)
      is_readable = FALSE;
  if (!is_readable)
    muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                 "the checkpoint's format is newer than version %d, the newest supported one",
                 FORMAT_VERSION);
  return is_readable;
}

static gboolean
load_header (MusterBundleIndex *self, const guint8 *value, gsize size, GError **error)
{
  const Tensorflow__BundleHeaderProto *header =
      muster_unpack (&tensorflow__bundle_header_proto__descriptor, value, size, self->arena,
                     "checkpoint header", error);
  if (header == NULL)
    return FALSE;
  if (header->endianness != 0) {
    return muster_fail (
        error, MUSTER_ERROR_UNIMPLEMENTED,
        "the checkpoint is big-endian (written on a big-endian machine), which isn't "
        "supported");
  }
  if (header->num_shards < 1) {
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "invalid num_shards %d in the header",
                        header->num_shards);
  }
  self->n_shards = header->num_shards;
  return check_version (header->version, error);
}

static gboolean
load_shape (MusterBundleIndex *self, const Tensorflow__BundleShape *shape, const char *name,
            MusterBundleEntry *entry, GError **error)
{
  const gsize n_dims = shape != NULL ? shape->n_dim : 0;
  if (n_dims > MUSTER_MAX_DIMS || (shape != NULL && shape->unknown_rank))
    return data_loss (error, name, "has an invalid shape");
  gint64 *dims = muster_arena_alloc (self->arena, MAX (n_dims, 1) * sizeof (gint64));
  for (gsize d = 0; d < n_dims; d++)
    dims[d] = shape->dim[d]->size;
  if (muster_shape_n_elements ((int)n_dims, dims) < 0)
    return data_loss (error, name,
                      "has an invalid shape: a size is negative, or there are too many elements");
  entry->n_dims = (int)n_dims;
  entry->dims = dims;
  return TRUE;
}

static gboolean
load_slices (MusterBundleIndex *self, const Tensorflow__BundleEntryProto *proto, const char *name,
             MusterIndexEntry *loaded, GError **error)
{
  const gsize n_dims = (gsize)loaded->entry.n_dims;
  for (gsize i = 0; i < proto->n_slices; i++)
    if (proto->slices[i]->n_extent != n_dims || n_dims == 0)
      return data_loss (error, name, "lists a slice of the wrong rank");
  MusterExtent *slices =
      muster_arena_alloc (self->arena, MAX (proto->n_slices * n_dims, 1) * sizeof (MusterExtent));
  MusterExtent resolved[MUSTER_MAX_DIMS];
  for (gsize i = 0; i < proto->n_slices; i++) {
    MusterExtent *slice = slices + i * n_dims;
    for (gsize d = 0; d < n_dims; d++) {
      const Tensorflow__TensorSliceProto__Extent *extent = proto->slices[i]->extent[d];
      slice[d].start = extent->start;
      slice[d].length =
          extent->has_length_case == TENSORFLOW__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH
              ? extent->length
              : MUSTER_ALL;
    }
    if (!muster_slice_resolve ((int)n_dims, loaded->entry.dims, slice, resolved))
      return data_loss (error, name, "lists a slice outside its shape");
  }
  loaded->n_slices = proto->n_slices;
  loaded->slices = slices;
  return TRUE;
}

/* Checks shard, offset and size of an entry that has bytes. */
static gboolean
check_place (const MusterBundleIndex *self, const MusterBundleEntry *entry, const char *name,
             GError **error)
{
  gsize size = (gsize)muster_shape_n_elements (entry->n_dims, entry->dims);
  const gsize element_size = muster_dtype_size (entry->dtype);
  if (entry->shard < 0 || entry->shard >= self->n_shards || entry->offset < 0 || entry->size < 0 ||
      entry->size > G_MAXINT64 - entry->offset)
    return data_loss (error, name, "has an invalid shard, offset or size");
  if (element_size > 0 &&
      (!g_size_checked_mul (&size, size, element_size) || size != (gsize)entry->size))
    return data_loss (error, name, "has a size that doesn't match its type and shape");
  return TRUE;
}

/* Reads "dim { size: N }", the form in most shapes. */
static gboolean
read_plain_dim (MusterProtoReader reader, gint64 *size)
{
  enum { SIZE = 1 };
  MusterProtoField field;
  *size = 0;
  if (muster_proto_at_end (&reader))
    return TRUE;
  if (!muster_proto_read_field (&reader, &field) || field.number != SIZE ||
      field.type != MUSTER_WIRE_VARINT)
    return FALSE;
  *size = (gint64)field.value;
  return muster_proto_at_end (&reader);
}

static gboolean
read_plain_shape (MusterBundleIndex *self, MusterProtoReader reader, MusterBundleEntry *entry)
{
  enum { DIM = 2 };
  gint64 dims[MUSTER_MAX_DIMS];
  MusterProtoField field;
  int n = 0;
  for (; muster_proto_read_field (&reader, &field); n++)
    if (n == MUSTER_MAX_DIMS || field.number != DIM || field.type != MUSTER_WIRE_BYTES ||
        !read_plain_dim (muster_proto_reader (field.data, field.size), &dims[n]))
      return FALSE;
  if (!muster_proto_at_end (&reader) || muster_shape_n_elements (n, dims) < 0)
    return FALSE;
  entry->n_dims = n;
  if (n > 0)
    entry->dims = copy_in (self->arena, dims, (gsize)n * sizeof *dims);
  return TRUE;
}

static gboolean
read_plain_field (MusterBundleIndex *self, const MusterProtoField *field, MusterBundleEntry *entry)
{
  const guint8 type = field->type;
  switch (field->number) {
  case ENTRY_DTYPE:
    entry->dtype = (MusterDType)(gint32)field->value;
    return type == MUSTER_WIRE_VARINT;
  case ENTRY_SHAPE:
    return type == MUSTER_WIRE_BYTES &&
           read_plain_shape (self, muster_proto_reader (field->data, field->size), entry);
  case ENTRY_SHARD_ID:
    entry->shard = (gint32)field->value;
    return type == MUSTER_WIRE_VARINT;
  case ENTRY_OFFSET:
    entry->offset = (gint64)field->value;
    return type == MUSTER_WIRE_VARINT;
  case ENTRY_SIZE:
    entry->size = (gint64)field->value;
    return type == MUSTER_WIRE_VARINT;
  case ENTRY_CRC32C:
    entry->crc32c = (guint32)field->value;
    return type == MUSTER_WIRE_FIXED32;
  default:
    return FALSE;
  }
}

/* Reads the common form of an entry: each field at most once, in order, without slices. FALSE:
 * it must be unpacked to be read or refused. */
static gboolean
read_plain_entry (MusterBundleIndex *self, const guint8 *value, gsize size,
                  MusterBundleEntry *entry)
{
  MusterProtoReader reader = muster_proto_reader (value, size);
  MusterProtoField field;
  guint32 last = 0;
  static const gint64 no_dims[1];
  *entry = (MusterBundleEntry){.dims = no_dims};
  for (; muster_proto_read_field (&reader, &field); last = field.number)
    if (field.number <= last || !read_plain_field (self, &field, entry))
      return FALSE;
  return muster_proto_at_end (&reader);
}

static gboolean
unpack_entry (MusterBundleIndex *self, const char *name, const guint8 *value, gsize size,
              MusterIndexEntry *loaded, GError **error)
{
  const Tensorflow__BundleEntryProto *proto = muster_unpack (
      &tensorflow__bundle_entry_proto__descriptor, value, size, self->arena, name, error);
  if (proto == NULL)
    return FALSE;
  loaded->entry = (MusterBundleEntry){.dtype = (MusterDType)proto->dtype,
                                      .shard = proto->shard_id,
                                      .offset = proto->offset,
                                      .size = proto->size,
                                      .crc32c = proto->crc32c,
                                      .is_sliced = proto->n_slices > 0};
  return load_shape (self, proto->shape, name, &loaded->entry, error) &&
         load_slices (self, proto, name, loaded, error);
}

static gboolean
load_entry (MusterBundleIndex *self, const guint8 *key, gsize key_size, const guint8 *value,
            gsize size, GError **error)
{
  MusterIndexEntry loaded = {.key = copy_in (self->arena, key, key_size), .key_size = key_size};
  const gboolean is_part = muster_index_entry_is_part (&loaded);
  const char *name = is_part ? (const char *)loaded.key + 1 : (const char *)loaded.key;
  if (!is_part && !g_utf8_validate_len ((const char *)key, key_size, NULL)) {
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "a tensor's name is not UTF-8");
  }
  if (!read_plain_entry (self, value, size, &loaded.entry) &&
      !unpack_entry (self, name, value, size, &loaded, error))
    return FALSE;
  loaded.entry.name = is_part ? "" : name;
  if ((!loaded.entry.is_sliced && !check_place (self, &loaded.entry, name, error)))
    return FALSE;
  g_array_append_val (self->entries, loaded);
  if (is_part)
    self->n_parts++;
  return TRUE;
}

static gboolean
load_one (const guint8 *key, gsize key_size, const guint8 *value, gsize value_size,
          gpointer user_data, GError **error)
{
  Loader *loader = user_data;
  const GArray *entries = loader->index->entries;
  if (!loader->has_header) {
    loader->has_header = key_size == 0;
    if (loader->has_header)
      return load_header (loader->index, value, value_size, error);
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "the header is missing");
  }
  const MusterIndexEntry *last =
      entries->len > 0 ? &g_array_index (entries, MusterIndexEntry, entries->len - 1) : NULL;
  if (key_size == 0 ||
      (last != NULL && compare_keys (last->key, last->key_size, key, key_size) >= 0)) {
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "the keys are out of order");
  }
  return load_entry (loader->index, key, key_size, value, value_size, error);
}

/* Reads the file. No memory is allocated if it can't be an index. */
GBytes *
muster_bundle_read_table (MusterStorage *storage, const char *path, GError **error)
{
  guint64 size = 0;
  MusterStorageInput *input = muster_storage_open (storage, path, &size, error);
  if (input == NULL)
    return NULL;
  g_autofree guint8 *data = size <= MUSTER_TABLE_MAX ? g_try_malloc (MAX (size, 1)) : NULL;
  gssize n = -1;
  if (size > MUSTER_TABLE_MAX)
    muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                 "'%s' isn't an index: it has %" G_GUINT64_FORMAT
                 " bytes; an index has less than 2 GiB",
                 path, size);
  else if (data == NULL)
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "'%s': not enough memory for its %" G_GUINT64_FORMAT " bytes", path, size);
  else
    n = muster_storage_read_at (storage, input, 0, data, (gsize)size, error);
  muster_storage_close_input (storage, input);
  return n < 0 ? NULL : g_bytes_new_take (g_steal_pointer (&data), (gsize)n);
}

/* Records whether there were any entries. */
typedef struct {
  MusterTableFunc func;
  gpointer user_data;
  gboolean has_any;
} Walk;

static gboolean
walk_one (const guint8 *key, gsize key_size, const guint8 *value, gsize value_size,
          gpointer user_data, GError **error)
{
  Walk *walk = user_data;
  walk->has_any = TRUE;
  return walk->func (key, key_size, value, value_size, walk->user_data, error);
}

static gboolean
walk_bytes (GBytes *bytes, MusterTableFunc func, gpointer user_data, const char **flaw,
            GError **error)
{
  Walk walk = {.func = func, .user_data = user_data};
  g_autoptr (GError) why = NULL;
  if (!muster_table_foreach (bytes, walk_one, &walk, flaw, &why) && why != NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  if (walk.has_any)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "the table is empty");
}

/* Calls func for each entry of PREFIX.index, unparsed, beginning with the header (empty key), until
 * it returns FALSE. *flaw (nullable) as in MusterBundleIndex. */
static gboolean
walk_index (MusterStorage *storage, const char *prefix, MusterTableFunc func, gpointer user_data,
            const char **flaw, GError **error)
{
  g_autofree char *path = muster_bundle_index_path (prefix);
  g_autoptr (GError) why = NULL;
  g_autoptr (GBytes) bytes = muster_bundle_read_table (storage, path, &why);
  if (bytes == NULL && muster_storage_failure_is_absent (why)) {
    return muster_fail (error, MUSTER_ERROR_NOT_FOUND,
                        "There is no checkpoint '%s' (no file '%s')%s", prefix, path,
                        muster_v1_is_there (storage, prefix)
                            ? ": it is a V1 checkpoint; convert it with `muster checkpoint copy`"
                            : "");
  }
  if (bytes == NULL) {
    g_propagate_prefixed_error (error, g_steal_pointer (&why),
                                "Reading the checkpoint '%s': ", prefix);
    return FALSE;
  }
  if (walk_bytes (bytes, func, user_data, flaw, &why))
    return TRUE;
  /* A message that doesn't parse is an invalid argument elsewhere; in a file it is damage. */
  const int code =
      muster_error_is (why, MUSTER_ERROR_UNIMPLEMENTED) ? why->code : MUSTER_ERROR_DATA_LOSS;
  return muster_fail (error, code, "The checkpoint index '%s' can't be read: %s", path,
                      why->message);
}

MusterBundleIndex *
muster_bundle_index_load (MusterStorage *storage, const char *prefix, GError **error)
{
  g_autoptr (MusterBundleIndex) self = muster_bundle_index_new ();
  Loader loader = {.index = self};
  return walk_index (storage, prefix, load_one, &loader, &self->flaw, error)
             ? g_steal_pointer (&self)
             : NULL;
}

/* Saving. The entries' messages are written by hand, because there may be very many. */

static gsize
uint_size (guint64 value)
{
  return value != 0 ? 1 + muster_proto_varint_size (value) : 0;
}

static guint8 *
store_shape (guint8 *at, const MusterBundleEntry *entry)
{
  enum { DIM = 2, SIZE = 1 };
  gsize size = 0;
  for (int d = 0; d < entry->n_dims; d++)
    size += 2 + uint_size ((guint64)entry->dims[d]);
  at = muster_proto_store_head (at, ENTRY_SHAPE, size);
  for (int d = 0; d < entry->n_dims; d++) {
    at = muster_proto_store_head (at, DIM, uint_size ((guint64)entry->dims[d]));
    at = muster_proto_store_uint (at, SIZE, (guint64)entry->dims[d]);
  }
  return at;
}

static gsize
extent_size (const MusterExtent *extent)
{
  return extent->length == MUSTER_ALL ? 0
                                      : uint_size ((guint64)extent->start) + 1 +
                                            muster_proto_varint_size ((guint64)extent->length);
}

static guint8 *
store_slice (guint8 *at, int n_dims, const MusterExtent *slice)
{
  enum { EXTENT = 1, START = 1, LENGTH = 2 };
  gsize size = 0;
  for (int d = 0; d < n_dims; d++)
    size += 2 + extent_size (&slice[d]);
  at = muster_proto_store_head (at, ENTRY_SLICES, size);
  for (int d = 0; d < n_dims; d++) {
    at = muster_proto_store_head (at, EXTENT, extent_size (&slice[d]));
    if (slice[d].length == MUSTER_ALL)
      continue;
    at = muster_proto_store_uint (at, START, (guint64)slice[d].start);
    /* Written even if 0: a missing length means all. */
    at = muster_proto_store_varint (at, LENGTH << 3 | MUSTER_WIRE_VARINT);
    at = muster_proto_store_varint (at, (guint64)slice[d].length);
  }
  return at;
}

/* Upper bound of an entry's size: a head, and two varints for each dimension. */
static gsize
max_entry_size (const MusterIndexEntry *self)
{
  enum { FIELD = 2 + MUSTER_PROTO_VARINT_MAX };
  return (8 + self->n_slices + (gsize)self->entry.n_dims * (1 + self->n_slices) * 3) * FIELD;
}

/* Returns the end of what was written. */
static guint8 *
store_entry (guint8 *at, const MusterIndexEntry *self)
{
  const guint32 crc32c = GUINT32_TO_LE (self->entry.crc32c);
  at = muster_proto_store_uint (at, ENTRY_DTYPE, (guint64)(gint64)(int)self->entry.dtype);
  at = store_shape (at, &self->entry);
  at = muster_proto_store_uint (at, ENTRY_SHARD_ID, (guint64)self->entry.shard);
  at = muster_proto_store_uint (at, ENTRY_OFFSET, (guint64)self->entry.offset);
  at = muster_proto_store_uint (at, ENTRY_SIZE, (guint64)self->entry.size);
  if (crc32c != 0) {
    at = muster_proto_store_tag (at, ENTRY_CRC32C, MUSTER_WIRE_FIXED32);
    memcpy (at, &crc32c, sizeof crc32c);
    at += sizeof crc32c;
  }
  for (gsize i = 0; i < self->n_slices; i++)
    at = store_slice (at, self->entry.n_dims, self->slices + i * (gsize)self->entry.n_dims);
  return at;
}

static GBytes *
pack_header (const MusterBundleIndex *self)
{
  Tensorflow__BundleVersion version = TENSORFLOW__BUNDLE_VERSION__INIT;
  Tensorflow__BundleHeaderProto header = TENSORFLOW__BUNDLE_HEADER_PROTO__INIT;
  version.producer = FORMAT_VERSION;
  header.num_shards = self->n_shards;
  header.version = &version;
  return muster_pack (&header.base);
}

GBytes *
muster_bundle_index_save (MusterBundleIndex *self, GError **error)
{
  g_autoptr (MusterTableBuilder) table = muster_table_builder_new ();
  g_autoptr (GByteArray) value = g_byte_array_new ();
  g_autoptr (GBytes) header = pack_header (self);
  gsize size;
  const guint8 *data = g_bytes_get_data (header, &size);
  muster_table_builder_add (table, (const guint8 *)"", 0, data, size);
  sort (self->entries);
  for (guint i = 0; i < self->entries->len; i++) {
    const MusterIndexEntry *entry = &g_array_index (self->entries, MusterIndexEntry, i);
    if (i > 0 && compare_entries (entry - 1, entry) == 0) {
      muster_fail (error, MUSTER_ERROR_ALREADY_EXISTS,
                   "the tensor '%s', or a slice of it, occurs twice",
                   (const char *)entry->key + muster_index_entry_is_part (entry));
      return NULL;
    }
    const gsize capacity = max_entry_size (entry);
    if (capacity > MUSTER_TABLE_MAX) {
      muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                   "the tensor '%s' has too many slices for an index", entry->entry.name);
      return NULL;
    }
    if (capacity > value->len)
      g_byte_array_set_size (value, (guint)capacity);
    const guint8 *end = store_entry (value->data, entry);
    muster_table_builder_add (table, entry->key, entry->key_size, value->data,
                              (gsize)(end - value->data));
  }
  return muster_table_builder_finish (table, error);
}

typedef struct {
  GArray *sizes; /* (element-type guint64) by shard; empty before the header */
} Measure;

static gboolean
damaged_header (GError **error, const char *why)
{
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "%s", why);
}

static gboolean
read_header (Measure *self, MusterProtoReader *reader, GError **error)
{
  MusterProtoField field;
  guint64 n_shards = 0;
  while (muster_proto_read_field (reader, &field))
    if (field.number == 1 && field.type == MUSTER_WIRE_VARINT)
      n_shards = field.value;
  if (!muster_proto_at_end (reader) || n_shards < 1 || n_shards > SHARDS_MAX)
    return damaged_header (error, "invalid num_shards in the header");
  g_array_set_size (self->sizes, (guint)n_shards);
  return TRUE;
}

/* Reads an entry's shard, offset and size, and whether it is a sliced tensor, which has none of
 * its own. */
static gboolean
read_entry (Measure *self, MusterProtoReader *reader, GError **error)
{
  MusterProtoField field;
  guint64 place[3] = {0};
  gboolean is_sliced = FALSE;
  while (muster_proto_read_field (reader, &field)) {
    if (field.number >= 3 && field.number <= 5 && field.type == MUSTER_WIRE_VARINT)
      place[field.number - 3] = field.value;
    is_sliced = is_sliced || field.number == 7;
  }
  if (!muster_proto_at_end (reader) || place[0] >= self->sizes->len || place[1] > G_MAXINT64 ||
      place[2] > G_MAXINT64 - place[1])
    return damaged_header (error, "an entry has an invalid shard, offset or size");
  guint64 *size = &g_array_index (self->sizes, guint64, (guint)place[0]);
  if (!is_sliced)
    *size = MAX (*size, place[1] + place[2]);
  return TRUE;
}

static gboolean
measure_one (const guint8 *key G_GNUC_UNUSED, gsize key_size, const guint8 *value, gsize value_size,
             gpointer user_data, GError **error)
{
  Measure *self = user_data;
  MusterProtoReader reader = muster_proto_reader (value, value_size);
  if (self->sizes->len > 0)
    return read_entry (self, &reader, error);
  return key_size == 0 ? read_header (self, &reader, error)
                       : damaged_header (error, "the header is missing");
}

/* Stops after the first entry. */
static gboolean
read_first (const guint8 *key, gsize key_size, const guint8 *value, gsize value_size,
            gpointer user_data, GError **error)
{
  (void)measure_one (key, key_size, value, value_size, user_data, error);
  return FALSE;
}

gboolean
muster_bundle_index_count_shards (MusterStorage *storage, const char *prefix, gint32 *n_shards,
                                  GError **error)
{
  g_autoptr (GArray) sizes = g_array_new (FALSE, TRUE, sizeof (guint64));
  Measure self = {.sizes = sizes};
  if (!walk_index (storage, prefix, read_first, &self, NULL, error))
    return FALSE;
  *n_shards = (gint32)sizes->len;
  return TRUE;
}

GArray *
muster_bundle_index_measure (MusterStorage *storage, const char *prefix, GError **error)
{
  g_autoptr (GArray) sizes = g_array_new (FALSE, TRUE, sizeof (guint64));
  Measure self = {.sizes = sizes};
  return walk_index (storage, prefix, measure_one, &self, NULL, error) ? g_steal_pointer (&sizes)
                                                                       : NULL;
}
