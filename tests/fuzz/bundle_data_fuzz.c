// SPDX-License-Identifier: Apache-2.0
/* A checkpoint, index and data: verified and read whole, in parts and many at once. The input is a
 * message: field 1 an entry of the index (1 its key, 2 its value), field 2 a data file. The byte
 * before it says whether the checksums of the tensors are made right: then damage lies deeper. */
#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/protowire_private.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/leveldb_table_private.h"
#include "tests/doubles/memory_storage.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX     "c"
#define MAX_SHARDS 8

typedef struct {
  MusterMemoryStorage *memory;
  MusterStorage *storage;
  guint n_shards;
} Fixture;

const gsize muster_fuzz_n_picks = 1;

static int
compare_keys (const void *a, const void *b)
{
  return g_bytes_compare (*(GBytes *const *)a, *(GBytes *const *)b);
}

/* The entries' values by their keys. */
static GHashTable *
take_entries (const guint8 *data, gsize size)
{
  GHashTable *values = g_hash_table_new_full (
      g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, (GDestroyNotify)g_bytes_unref);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field, part;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number != 1 || field.type != MUSTER_WIRE_BYTES)
      continue;
    MusterProtoReader entry = muster_proto_reader (field.data, field.size);
    g_autoptr (GBytes) key = g_bytes_new_static ("", 0), value = g_bytes_new_static ("", 0);
    while (muster_proto_read_field (&entry, &part)) {
      if (part.type != MUSTER_WIRE_BYTES)
        continue;
      GBytes **into = part.number == 1 ? &key : &value;
      g_bytes_unref (*into);
      *into = g_bytes_new_static (part.data, part.size);
    }
    g_hash_table_insert (values, g_steal_pointer (&key), g_steal_pointer (&value));
  }
  return values;
}

static void
put_index (Fixture *f, const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GHashTable) values = take_entries (data, size);
  g_autoptr (MusterTableBuilder) builder = muster_table_builder_new ();
  guint n;
  g_autofree gpointer *keys = g_hash_table_get_keys_as_array (values, &n);
  qsort (keys, n, sizeof *keys, compare_keys);
  for (guint i = 0; i < n; i++) {
    gsize key_size, value_size;
    const guint8 *key = g_bytes_get_data (keys[i], &key_size);
    const guint8 *value = g_bytes_get_data (g_hash_table_lookup (values, keys[i]), &value_size);
    muster_table_builder_add (builder, key, key_size, value, value_size);
  }
  g_autoptr (GBytes) table = muster_table_builder_finish (builder, &error);
  g_assert_no_error (error);
  memory_storage_put (f->memory, PREFIX ".index", g_bytes_get_data (table, NULL),
                      g_bytes_get_size (table));
}

static void
put_data (Fixture *f, const guint8 *data, gsize size)
{
  g_autoptr (MusterBundleIndex) index = muster_bundle_index_load (f->storage, PREFIX, NULL);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  while (index != NULL && f->n_shards < MAX_SHARDS && muster_proto_read_field (&reader, &field)) {
    if (field.number != 2 || field.type != MUSTER_WIRE_BYTES)
      continue;
    g_autofree char *path =
        muster_bundle_data_path (PREFIX, (gint32)f->n_shards++, index->n_shards);
    memory_storage_put (f->memory, path, field.data, field.size);
  }
}

/* Makes the checksum of the lengths right, in the file; that of the whole is returned. */
static guint32
sum_strings (guint8 *data, gsize size, gint64 n)
{
  MusterProtoReader reader = muster_proto_reader (data, size);
  guint32 crc = 0;
  for (gint64 i = 0; i < n; i++) {
    guint64 length;
    if (!muster_proto_read_varint (&reader, &length))
      return 0;
    const guint32 narrow = GUINT32_TO_LE ((guint32)length);
    const guint64 wide = GUINT64_TO_LE (length);
    crc = length <= G_MAXUINT32 ? muster_crc32c_extend (crc, &narrow, sizeof narrow)
                                : muster_crc32c_extend (crc, &wide, sizeof wide);
  }
  const guint32 stored = GUINT32_TO_LE (muster_crc32c_mask (crc));
  const gsize at = (gsize)(reader.at - data);
  if (size - at < sizeof stored)
    return 0;
  memcpy (data + at, &stored, sizeof stored);
  return muster_crc32c_extend (crc, data + at, size - at);
}

static void
mend_sums (Fixture *f)
{
  g_autoptr (MusterBundleIndex) index = muster_bundle_index_load (f->storage, PREFIX, NULL);
  for (guint i = 0; index != NULL && i < index->entries->len; i++) {
    MusterBundleEntry *e = &g_array_index (index->entries, MusterIndexEntry, i).entry;
    g_autofree char *path = muster_bundle_data_path (PREFIX, e->shard, index->n_shards);
    GByteArray *file = memory_storage_file (f->memory, path);
    if (e->is_sliced || e->size == 0 || file == NULL || e->offset > file->len ||
        e->size > file->len - e->offset)
      continue;
    guint8 *at = file->data + e->offset;
    const gint64 n = muster_shape_n_elements (e->n_dims, e->dims);
    e->crc32c = muster_crc32c_mask (e->dtype == MUSTER_STRING
                                        ? sum_strings (at, (gsize)e->size, n)
                                        : muster_crc32c_extend (0, at, (gsize)e->size));
  }
  g_autoptr (GBytes) saved = index != NULL ? muster_bundle_index_save (index, NULL) : NULL;
  if (saved != NULL)
    memory_storage_put (f->memory, PREFIX ".index", g_bytes_get_data (saved, NULL),
                        g_bytes_get_size (saved));
}

/* The tensor is what lies in its file. */
static void
check_bytes (Fixture *f, MusterBundleReader *reader, const MusterBundleEntry *e,
             MusterTensor *tensor)
{
  if (e->is_sliced || e->dtype == MUSTER_STRING || e->size == 0)
    return;
  g_autofree char *path =
      muster_bundle_data_path (PREFIX, e->shard, muster_bundle_reader_n_shards (reader));
  const GByteArray *file = memory_storage_file (f->memory, path);
  g_assert_cmpmem (muster_tensor_data (tensor), muster_tensor_n_bytes (tensor),
                   file->data + e->offset, (gsize)e->size);
}

/* A part that is the first index of the first dimension, against the whole. */
static void
check_part (MusterBundleReader *reader, const MusterBundleEntry *e, MusterTensor *whole)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) slice = g_string_new ("0,1");
  if (e->n_dims == 0 || e->dims[0] == 0)
    return;
  for (int d = 1; d < e->n_dims; d++)
    g_string_append (slice, ":-");
  g_autoptr (MusterTensor) part =
      muster_bundle_reader_read_slice (reader, e->name, slice->str, &error);
  g_assert_no_error (error);
  g_assert_cmpint (muster_tensor_n_elements (part), ==,
                   muster_tensor_n_elements (whole) / e->dims[0]);
  const gsize size = muster_tensor_n_bytes (part);
  if (e->dtype != MUSTER_STRING && size > 0)
    g_assert_cmpmem (muster_tensor_data (part), size, muster_tensor_data (whole), size);
}

static void
read_all (Fixture *f, MusterBundleReader *reader, gboolean is_sound)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autoptr (GPtrArray) tensors =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
  for (gsize i = 0; i < muster_bundle_reader_n_entries (reader); i++) {
    g_autoptr (GError) error = NULL;
    const MusterBundleEntry *e = muster_bundle_reader_entry (reader, i);
    MusterTensor *tensor = muster_bundle_reader_read (reader, e->name, &error);
    g_assert_true ((tensor == NULL) == (error != NULL));
    if (tensor == NULL) {
      g_assert_true (!is_sound || !muster_dtype_is_supported (e->dtype));
      continue;
    }
    g_ptr_array_add (names, (gpointer)e->name);
    g_ptr_array_add (tensors, tensor);
    check_bytes (f, reader, e, tensor);
    check_part (reader, e, tensor);
  }
  g_autoptr (GError) error = NULL;
  g_autofree MusterTensor **many = g_new0 (MusterTensor *, names->len + 1);
  (void)muster_bundle_reader_read_many (reader, (const char *const *)names->pdata, NULL, names->len,
                                        many, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < names->len; i++) {
    g_assert_true (muster_tensor_equal (many[i], tensors->pdata[i]));
    muster_tensor_unref (many[i]);
  }
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMemoryStorage) memory = memory_storage_new ();
  Fixture f = {.memory = memory, .storage = MUSTER_STORAGE (memory)};
  if (size == 0)
    return 0;
  put_index (&f, data + 1, size - 1);
  put_data (&f, data + 1, size - 1);
  if (data[0] % 2 == 0)
    mend_sums (&f);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (f.storage, PREFIX, &error);
  g_assert_true ((reader == NULL) == (error != NULL));
  if (reader == NULL)
    return 0;
  const gboolean is_sound = muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error);
  g_assert_true (is_sound == (error == NULL));
  read_all (&f, reader, is_sound);
  return 0;
}

static gboolean
add_entry (const guint8 *key, gsize key_size, const guint8 *value, gsize value_size,
           gpointer user_data, GError **error G_GNUC_UNUSED)
{
  g_autoptr (GByteArray) entry = g_byte_array_new ();
  muster_proto_put_bytes (entry, 1, key, key_size);
  muster_proto_put_bytes (entry, 2, value, value_size);
  muster_proto_put_bytes (user_data, 1, entry->data, entry->len);
  return TRUE;
}

static GBytes *
get_file (const char *path)
{
  g_autoptr (GError) error = NULL;
  char *data = NULL;
  gsize size;
  g_file_get_contents (path, &data, &size, &error);
  g_assert_no_error (error);
  return g_bytes_new_take (data, size);
}

static void
seed_checkpoint (const char *prefix, gint32 n_shards)
{
  g_autoptr (GByteArray) seed = g_byte_array_new ();
  g_autofree char *index_path = muster_bundle_index_path (prefix);
  g_autoptr (GBytes) index = get_file (index_path);
  (void)muster_table_foreach (index, add_entry, seed, NULL, NULL);
  for (gint32 i = 0; i < n_shards; i++) {
    g_autofree char *path = muster_bundle_data_path (prefix, i, n_shards);
    g_autoptr (GBytes) data = get_file (path);
    gsize size;
    const guint8 *bytes = g_bytes_get_data (data, &size);
    muster_proto_put_bytes (seed, 2, bytes, size);
  }
  for (guint8 pick = 0; pick < 2; pick++)
    muster_fuzz_seed (&pick, seed->data, seed->len);
}

void
muster_fuzz_seeds (void)
{
  seed_checkpoint ("tests/checkpoint/testdata/dtypes", 1);
  seed_checkpoint ("tests/checkpoint/testdata/shards", 2);
  seed_checkpoint ("tests/checkpoint/testdata/slices", 1);
  seed_checkpoint ("tests/checkpoint/testdata/objects-1", 1);
  seed_checkpoint ("tests/checkpoint/testdata/foreign", 1);
}
