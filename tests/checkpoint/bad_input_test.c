// SPDX-License-Identifier: Apache-2.0
/* Damaged files: an error or the right values, never a crash, never other values. */
#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/protowire_private.h"
#include "checkpoint/format/leveldb_table_private.h"
#include "checkpoint/state/state_text_private.h"
#include "tests/checkpoint/bundle_fixture.h"

#include <string.h>

#define SEED 20240229

static guint
n_rounds (guint n)
{
  return g_getenv ("MUSTER_LONG") != NULL ? 50 * n : n;
}

/* The whole of a checkpoint that reads well: name to tensor. */
static GHashTable *
read_all (const char *prefix)
{
  GHashTable *all =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)muster_tensor_unref);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, NULL);
  for (gsize i = 0; i < muster_bundle_reader_n_entries (reader); i++) {
    const char *name = muster_bundle_reader_entry (reader, i)->name;
    g_hash_table_insert (all, g_strdup (name), muster_bundle_reader_read (reader, name, NULL));
  }
  return all;
}

/* Reads a damaged checkpoint: each tensor as it was, or an error. FALSE ends the test. */
static gboolean
check_damaged (const char *prefix, GHashTable *expected)
{
  GHashTableIter iter;
  gpointer name, value;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  if (reader == NULL) /* without its end, a V1 checkpoint isn't one */
    return is_verdict (error) || muster_error_is (error, MUSTER_ERROR_NOT_FOUND);
  g_hash_table_iter_init (&iter, expected);
  while (g_hash_table_iter_next (&iter, &name, &value)) {
    g_clear_error (&error);
    g_autoptr (MusterTensor) tensor = muster_bundle_reader_read (reader, name, &error);
    if (tensor != NULL ? !muster_tensor_equal (tensor, value) : !is_verdict (error))
      return FALSE;
  }
  return TRUE;
}

typedef struct {
  char *prefix;
  char *file; /* the one to damage */
  GBytes *bytes;
  GHashTable *expected;
} Fixture;

static Fixture
set_up (const char *name, const char *suffix)
{
  Fixture f = {.prefix = in_tmpdir (name), .file = g_strconcat (name, suffix, NULL)};
  g_autofree char *path = in_tmpdir (f.file);
  copy_golden (name);
  f.bytes = get_file (path);
  f.expected = read_all (f.prefix);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_hash_table_unref (f->expected);
  g_bytes_unref (f->bytes);
  g_free (f->file);
  g_free (f->prefix);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static void
truncate_everywhere (const char *name, const char *suffix, gsize step)
{
  g_auto (Fixture) f = set_up (name, suffix);
  for (gsize size = 0; size < g_bytes_get_size (f.bytes); size += step) {
    put_file (f.file, g_bytes_get_data (f.bytes, NULL), size);
    MUSTER_TRACE ("'%s' cut to %d bytes", f.file, (int)size);
    if (!check_damaged (f.prefix, f.expected)) {
      MUSTER_FAIL ("other values, or no verdict");
      break;
    }
  }
}

static void
damage (GRand *rand, guint8 *data, gsize size)
{
  for (int n = g_rand_int_range (rand, 1, 4); n > 0; n--)
    data[g_rand_int_range (rand, 0, (gint32)size)] ^= (guint8)g_rand_int_range (rand, 1, 256);
}

static void
flip_bytes (const char *name, const char *suffix, guint rounds)
{
  g_auto (Fixture) f = set_up (name, suffix);
  gsize size;
  const guint8 *sound = g_bytes_get_data (f.bytes, &size);
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  for (guint i = 0; i < n_rounds (rounds); i++) {
    g_autofree guint8 *data = g_memdup2 (sound, size);
    damage (rand, data, size);
    put_file (f.file, data, size);
    if (!check_damaged (f.prefix, f.expected)) {
      MUSTER_FAIL ("'%s', round %u: other values, or no verdict", f.file, i);
      break;
    }
  }
}

MUSTER_TEST (BadInput, a_truncated_index)
{
  truncate_everywhere ("dtypes", ".index", 1);
  truncate_everywhere ("shards", ".index", 1);
  truncate_everywhere ("snappy", ".index", 1);
}

MUSTER_TEST (BadInput, a_truncated_data_file)
{
  truncate_everywhere ("dtypes", ".data-00000-of-00001", 13);
  truncate_everywhere ("slices", ".data-00000-of-00001", 7);
  truncate_everywhere ("shards", ".data-00001-of-00002", 1);
}

MUSTER_TEST (BadInput, flipped_bytes_in_an_index)
{
  flip_bytes ("dtypes", ".index", 1000);
  flip_bytes ("shards", ".index", 1000);
  flip_bytes ("slices", ".index", 500);
  flip_bytes ("snappy", ".index", 500);
}

MUSTER_TEST (BadInput, flipped_bytes_in_a_data_file)
{
  flip_bytes ("dtypes", ".data-00000-of-00001", 500);
  flip_bytes ("slices", ".data-00000-of-00001", 500);
  flip_bytes ("model-42", ".data-00000-of-00001", 500);
}

static gboolean
ignore (const guint8 *key, gsize key_size, const guint8 *value, gsize value_size,
        gpointer user_data, GError **error G_GNUC_UNUSED)
{
  guint *sum = user_data; /* touch every byte, for the sanitizer */
  for (gsize i = 0; i < key_size; i++)
    *sum += key[i];
  for (gsize i = 0; i < value_size; i++)
    *sum += value[i];
  return TRUE;
}

static void
put_le32 (guint8 *at, guint32 value)
{
  value = GUINT32_TO_LE (value);
  memcpy (at, &value, sizeof value);
}

MUSTER_TEST (BadInput, a_v1_checkpoint_truncated_or_flipped)
{
  truncate_everywhere ("v1", "", 7);
  flip_bytes ("v1", "", 500);
}

/* A recorded table of one data block; its place stands in the index block, and that of the index
 * block in the footer. */
typedef struct {
  guint8 *data; /* (owned) */
  gsize size;
  gsize starts[2], sizes[2]; /* of the data block and the index block, without their trailers */
} Table;

static Table
open_table (const char *name)
{
  g_autofree char *path = golden (name);
  g_autoptr (GBytes) bytes = get_file (path);
  Table table = {.size = g_bytes_get_size (bytes)};
  table.data = g_memdup2 (g_bytes_get_data (bytes, NULL), table.size);
  /* The data block ends where the empty block behind it starts: five bytes of trailer between. */
  guint64 places[4] = {0};
  MusterProtoReader reader = muster_proto_reader (table.data + table.size - 48, 40);
  for (int i = 0; i < 4; i++)
    MUSTER_EXPECT_TRUE (muster_proto_read_varint (&reader, &places[i]));
  table.starts[1] = places[2];
  table.sizes[0] = places[0] - 5;
  table.sizes[1] = places[3];
  return table;
}

static void
close_table (Table *table)
{
  g_free (table->data);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Table, close_table)

/* Makes the checksum of a block fit. */
static void
mend (Table *table, int which)
{
  guint8 *block = table->data + table->starts[which];
  const gsize size = table->sizes[which];
  put_le32 (block + size + 1, muster_crc32c_mask (muster_crc32c_extend (0, block, size + 1)));
}

static gboolean
walk (const Table *table, GError **error)
{
  guint sum = 0;
  g_autoptr (GBytes) bytes = g_bytes_new_static (table->data, table->size);
  return muster_table_foreach (bytes, ignore, &sum, NULL, error);
}

/* As an index, or as a V1 checkpoint. */
static void
read_what_opens (const Table *table, gboolean is_v1)
{
  const char *name = is_v1 ? "lie-v1" : "lie.index";
  g_autofree char *prefix = in_tmpdir (is_v1 ? "lie-v1" : "lie");
  put_file (name, table->data, table->size);
  g_autoptr (MusterBundleReader) opened = muster_bundle_reader_open (NULL, prefix, NULL);
  for (gsize k = 0; opened != NULL && k < muster_bundle_reader_n_entries (opened); k++) {
    g_autoptr (MusterTensor) tensor =
        muster_bundle_reader_read (opened, muster_bundle_reader_entry (opened, k)->name, NULL);
  }
}

static guint
damage_with_checksums_that_fit (const char *name, guint rounds)
{
  g_auto (Table) table = open_table (name);
  g_autofree guint8 *sound = g_memdup2 (table.data, table.size);
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  guint n_refused = 0;
  for (guint i = 0; i < n_rounds (rounds); i++) {
    const int which = i % 2;
    memcpy (table.data, sound, table.size);
    damage (rand, table.data + table.starts[which], table.sizes[which]);
    mend (&table, which);
    g_autoptr (GError) error = NULL;
    if (!walk (&table, &error)) {
      n_refused++;
      MUSTER_EXPECT_TRUE (is_verdict (error));
    }
    read_what_opens (&table, g_str_has_prefix (name, "v1"));
  }
  return n_refused;
}

/* What LevelDB itself would trust. */
MUSTER_TEST (BadInput, a_table_that_lies_with_checksums_that_fit)
{
  MUSTER_EXPECT_GT (damage_with_checksums_that_fit ("slices.index", 4000), 1000u);
  MUSTER_EXPECT_GT (damage_with_checksums_that_fit ("snappy.index", 2000), 1000u);
  damage_with_checksums_that_fit ("v1_parts-00000-of-00002", 4000);
}

/* Refused before any memory is allocated for it. */
MUSTER_TEST (BadInput, a_compressed_block_that_claims_more_than_it_can_hold)
{
  static const guint64 lengths[] = {G_GUINT64_CONSTANT (1) << 40, G_MAXUINT32, 1 << 30, 100 * 64};
  for (gsize i = 0; i < G_N_ELEMENTS (lengths); i++) {
    g_auto (Table) table = open_table ("snappy.index");
    g_autoptr (GError) error = NULL;
    muster_proto_store_varint (table.data, lengths[i]);
    mend (&table, 0);
    MUSTER_EXPECT_FALSE (walk (&table, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
    MUSTER_EXPECT_TRUE (strstr (error->message, "length of a compressed block") != NULL);
  }
}

MUSTER_TEST (BadInput, a_table_compressed_by_another_method_is_refused_by_name)
{
  g_auto (Table) table = open_table ("slices.index");
  g_autoptr (GError) error = NULL;
  table.data[table.sizes[0]] = 4;
  mend (&table, 0);

  MUSTER_EXPECT_FALSE (walk (&table, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
}

MUSTER_TEST (BadInput, random_bytes_with_a_tables_ending)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  static const guint8 magic[] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};
  for (guint i = 0; i < n_rounds (5000); i++) {
    guint8 data[200];
    guint sum = 0;
    const gsize size = (gsize)g_rand_int_range (rand, 0, sizeof data - sizeof magic);
    for (gsize k = 0; k < size; k++)
      data[k] = (guint8)(g_rand_boolean (rand) ? g_rand_int (rand) : 0xff);
    memcpy (data + size, magic, sizeof magic);
    g_autoptr (GBytes) table = g_bytes_new_static (data, size + sizeof magic);
    MUSTER_EXPECT_FALSE (muster_table_foreach (table, ignore, &sum, NULL, NULL));
  }
}

MUSTER_TEST (BadInput, a_state_file_truncated_or_flipped)
{
  g_autofree char *path = golden ("checkpoint.odd");
  g_autoptr (GBytes) bytes = get_file (path);
  gsize size;
  const char *sound = g_bytes_get_data (bytes, &size);
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  for (gsize n = 0; n < size; n++) {
    g_autofree char *cut = g_memdup2 (sound, n); /* its own allocation: reading past it is seen */
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterCheckpointState) state = muster_state_text_parse (cut, n, &error);
    MUSTER_EXPECT_TRUE (state != NULL || is_verdict (error));
  }
  for (guint i = 0; i < n_rounds (5000); i++) {
    g_autofree guint8 *data = g_memdup2 (sound, size);
    g_autoptr (GError) error = NULL;
    damage (rand, data, size);
    g_autoptr (MusterCheckpointState) state =
        muster_state_text_parse ((const char *)data, size, &error);
    MUSTER_EXPECT_TRUE (state != NULL || is_verdict (error));
  }
}
