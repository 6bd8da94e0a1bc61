// SPDX-License-Identifier: Apache-2.0
/* PREFIX.index, with checksums that fit: what a program, or somebody, may have written on purpose.
 */
#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/protowire_private.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/format/bundle_reader.h"
#include "tests/doubles/memory_storage.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define FOOTER_SIZE  48
#define TRAILER_SIZE 5

static void
put_le32 (guint8 *at, guint32 value)
{
  value = GUINT32_TO_LE (value);
  memcpy (at, &value, sizeof value);
}

static gboolean
read_place (MusterProtoReader *reader, gsize end, guint64 *offset, guint64 *size)
{
  return muster_proto_read_varint (reader, offset) && muster_proto_read_varint (reader, size) &&
         *offset <= end && end - *offset >= TRAILER_SIZE && *size <= end - *offset - TRAILER_SIZE;
}

static void
mend_sum (guint8 *block, guint64 size)
{
  block[size] = block[size] == 1; /* compressed with Snappy, or not */
  put_le32 (block + size + 1, muster_crc32c_mask (muster_crc32c_extend (0, block, size + 1)));
}

/* Of the blocks that the index block names, as far as that can be read; then its own. */
static void
mend_blocks (guint8 *data, gsize end, guint64 offset, guint64 size)
{
  MusterProtoReader entries = muster_proto_reader (data + offset, size);
  guint64 shared, own, value_size, at, n;
  while (muster_proto_read_varint (&entries, &shared) &&
         muster_proto_read_varint (&entries, &own) &&
         muster_proto_read_varint (&entries, &value_size)) {
    const guint64 left = (guint64)(entries.end - entries.at);
    if (own > left || value_size > left - own)
      break;
    MusterProtoReader value = muster_proto_reader (entries.at + own, value_size);
    if (read_place (&value, end, &at, &n))
      mend_sum (data + at, n);
    entries.at += own + value_size;
  }
  mend_sum (data + offset, size);
}

static void
mend (guint8 *data, gsize size)
{
  static const guint8 magic[] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};
  const gsize end = size - FOOTER_SIZE;
  MusterProtoReader footer = muster_proto_reader (data + end, FOOTER_SIZE - sizeof magic);
  guint64 offset, n;
  memcpy (data + size - sizeof magic, magic, sizeof magic);
  if (read_place (&footer, end, &offset, &n))
    mend_sum (data + offset, n); /* the metaindex block */
  footer = muster_proto_reader (data + end, FOOTER_SIZE - sizeof magic);
  if (muster_proto_read_varint (&footer, &offset) && muster_proto_read_varint (&footer, &n) &&
      read_place (&footer, end, &offset, &n))
    mend_blocks (data, end, offset, n);
}

static GBytes *
save (MusterMemoryStorage *storage, GError **error)
{
  g_autoptr (MusterBundleIndex) index =
      muster_bundle_index_load (MUSTER_STORAGE (storage), "c", error);
  return index != NULL ? muster_bundle_index_save (index, error) : NULL;
}

/* What was read, written again, says the same. */
static void
check_rewritten (MusterMemoryStorage *storage)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) first = save (storage, &error);
  g_assert_no_error (error);
  memory_storage_put (storage, "c.index", g_bytes_get_data (first, NULL), g_bytes_get_size (first));
  g_autoptr (GBytes) second = save (storage, &error);
  g_assert_no_error (error);
  g_assert_true (g_bytes_equal (first, second));
}

/* The same bytes as a V1 checkpoint. */
static void
read_as_v1 (MusterMemoryStorage *storage)
{
  const GByteArray *table = memory_storage_file (storage, "c.index");
  g_autoptr (GError) error = NULL;
  memory_storage_put (storage, "v1", table->data, table->len);
  g_autoptr (MusterBundleReader) reader =
      muster_bundle_reader_open (MUSTER_STORAGE (storage), "v1", &error);
  g_assert_true ((reader == NULL) == (error != NULL));
  for (gsize i = 0; reader != NULL && i < muster_bundle_reader_n_entries (reader); i++) {
    g_autoptr (GError) unread = NULL;
    g_autoptr (MusterTensor) tensor =
        muster_bundle_reader_read (reader, muster_bundle_reader_entry (reader, i)->name, &unread);
    g_assert_true ((tensor == NULL) == (unread != NULL));
  }
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMemoryStorage) storage = memory_storage_new ();
  memory_storage_put (storage, "c.index", data, size);
  if (size >= FOOTER_SIZE)
    mend (memory_storage_file (storage, "c.index")->data, size);
  read_as_v1 (storage);
  g_autoptr (MusterBundleReader) reader =
      muster_bundle_reader_open (MUSTER_STORAGE (storage), "c", &error);
  g_assert_true ((reader == NULL) == (error != NULL));
  if (reader == NULL) {
    g_assert_true (muster_error_is (error, MUSTER_ERROR_DATA_LOSS) ||
                   muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED));
    return 0;
  }
  for (gsize i = 0; i < muster_bundle_reader_n_entries (reader); i++) {
    const MusterBundleEntry *entry = muster_bundle_reader_entry (reader, i);
    g_assert_true (muster_bundle_reader_find (reader, entry->name) == entry);
    g_assert_cmpint (muster_shape_n_elements (entry->n_dims, entry->dims), >=, 0);
  }
  check_rewritten (storage);
  return 0;
}

void
muster_fuzz_seeds (void)
{
  static const char *const paths[] = {"tests/checkpoint/testdata/dtypes.index",
                                      "tests/checkpoint/testdata/shards.index",
                                      "tests/checkpoint/testdata/slices.index",
                                      "tests/checkpoint/testdata/objects-1.index",
                                      "tests/checkpoint/testdata/snappy.index",
                                      "tests/checkpoint/testdata/v1",
                                      "tests/checkpoint/testdata/v1_parts-00000-of-00002",
                                      "tests/fixtures/mlp_adam_ref.after5.index"};
  for (gsize i = 0; i < G_N_ELEMENTS (paths); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *text = NULL;
    gsize size;
    g_file_get_contents (paths[i], &text, &size, &error);
    g_assert_no_error (error);
    muster_fuzz_seed (NULL, text, size);
  }
}
