// SPDX-License-Identifier: Apache-2.0
/* One bit of a checkpoint's files changes: verify finds it, whichever it is, and who reads gets the
 * right values or an error. */
#include "base/error.h"
#include "tests/checkpoint/bundle_fixture.h"
#include "tests/doubles/memory_storage.h"

#include <string.h>

#define SEED 20260101

typedef struct {
  MusterMemoryStorage *memory; /* (owned) */
  MusterStorage *storage;
  const char *prefix;
  char **names;           /* (owned) of all tensors */
  MusterTensor **tensors; /* (owned) as many: what they are */
  gsize n;
} Fixture;

static void
write_part (Fixture *f, const char *prefix, void (*add) (MusterBundleWriter *writer))
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (f->storage, prefix, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  add (writer);
  muster_bundle_writer_finish (writer, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
add_first_part (MusterBundleWriter *writer)
{
  static const MusterDType dtypes[] = {MUSTER_FLOAT,    MUSTER_DOUBLE, MUSTER_INT32,
                                       MUSTER_UINT8,    MUSTER_INT64,  MUSTER_COMPLEX64,
                                       MUSTER_BFLOAT16, MUSTER_BOOL,   MUSTER_HALF};
  const gint64 dims[] = {3}, none[] = {0, 2};
  for (gsize i = 0; i < G_N_ELEMENTS (dtypes); i++) {
    g_autofree char *name = g_strdup_printf ("layer/%s", muster_dtype_name (dtypes[i]));
    add_tensor (writer, name, NULL, pattern (dtypes[i], 1, dims));
  }
  add_tensor (writer, "a/none", NULL, muster_tensor_new (MUSTER_FLOAT, 2, none));
  add_tensor (writer, "step", NULL, muster_tensor_new_int64 (42));
  add_tensor (writer, "w", "4 2 0,2:-", counting_int32 (2, (const gint64[]){2, 2}, 0));
}

static void
add_second_part (MusterBundleWriter *writer)
{
  char x[200];
  memset (x, 'x', sizeof x);
  const MusterString texts[] = {{"", 0}, {"one", 3}, {"\0\xff two", 6}, {x, sizeof x}};
  const gint64 square[] = {2, 2}, large[] = {1100};
  add_tensor (writer, "texts", NULL, muster_tensor_new_strings (2, square, texts));
  add_tensor (writer, "texts/none", NULL, muster_tensor_new_strings (1, (const gint64[]){0}, NULL));
  add_tensor (writer, "w", "4 2 2,2:0,1", counting_int32 (2, (const gint64[]){2, 1}, 4));
  add_tensor (writer, "w", "4 2 2,2:1,1", counting_int32 (2, (const gint64[]){2, 1}, 8));
  add_tensor (writer, "large", NULL,
              counting_int32 (1, large, 7)); /* aligned: there is a gap before it */
  add_tensor (writer, "s", "3 0,1", muster_tensor_new_strv ((const char *const[]){"part", NULL}));
  add_tensor (writer, "s", "3 1,2",
              muster_tensor_new_strv ((const char *const[]){"", "of it", NULL}));
}

static void
read_all (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (f->storage, f->prefix, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (reader == NULL)
    return;
  f->n = muster_bundle_reader_n_entries (reader);
  f->names = g_new0 (char *, f->n + 1);
  f->tensors = g_new0 (MusterTensor *, f->n);
  for (gsize i = 0, n = f->n; i < n; i++) {
    const MusterBundleEntry *entry = muster_bundle_reader_entry (reader, i);
    if (muster_dtype_is_supported (entry->dtype))
      f->names[i + f->n - n] = g_strdup (entry->name);
    else
      f->n--;
  }
  MUSTER_EXPECT_TRUE (muster_bundle_reader_read_many (reader, (const char *const *)f->names, NULL,
                                                      f->n, f->tensors, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

static Fixture
set_up (void)
{
  Fixture f = {.memory = memory_storage_new (), .prefix = "dir/model"};
  f.storage = MUSTER_STORAGE (f.memory);
  return f;
}

/* A checkpoint of two shards. */
static Fixture
set_up_merged (void)
{
  static const char *const parts[] = {"dir/part-0", "dir/part-1", NULL};
  g_autoptr (GError) error = NULL;
  Fixture f = set_up ();
  write_part (&f, parts[0], add_first_part);
  write_part (&f, parts[1], add_second_part);
  muster_bundle_merge (f.storage, parts, f.prefix, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  read_all (&f);
  return f;
}

/* One that TensorFlow wrote. */
static Fixture
set_up_golden (const char *name)
{
  Fixture f = set_up ();
  g_autofree char *directory = golden ("");
  g_autofree char *dotted = g_strconcat (name, ".", NULL);
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), directory, NULL);
  for (gsize i = 0; names != NULL && names[i] != NULL; i++) {
    if (!g_str_has_prefix (names[i], dotted))
      continue;
    g_autofree char *from = golden (names[i]);
    g_autofree char *to = g_strconcat (f.prefix, names[i] + strlen (name), NULL);
    g_autoptr (GBytes) bytes = get_file (from);
    memory_storage_put (f.memory, to, g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  }
  read_all (&f);
  return f;
}

static void
tear_down (Fixture *f)
{
  for (gsize i = 0; i < f->n; i++)
    muster_tensor_unref (f->tensors[i]);
  g_free (f->tensors);
  g_strfreev (f->names);
  g_object_unref (f->memory);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

/* Each tensor as it was, or a verdict. */
static gboolean
reads_right_or_not (const Fixture *f, MusterBundleReader *reader)
{
  for (gsize i = 0; i < f->n; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) tensor = muster_bundle_reader_read (reader, f->names[i], &error);
    if (tensor != NULL ? !muster_tensor_equal (tensor, f->tensors[i])
                       : !is_verdict (error) && !muster_error_is (error, MUSTER_ERROR_NOT_FOUND))
      return FALSE;
  }
  return TRUE;
}

static gboolean
is_found (const Fixture *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (f->storage, f->prefix, &error);
  if (reader == NULL)
    return is_verdict (error);
  return !muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error) && is_verdict (error) &&
         reads_right_or_not (f, reader);
}

/* Under a sanitizer every eleventh, which comes by each bit of a byte. */
static guint
flip_every_bit (Fixture *f, const char *suffix)
{
  g_autofree char *path = g_strconcat (f->prefix, suffix, NULL);
  GByteArray *file = memory_storage_file (f->memory, path);
  const gsize stride = g_getenv ("MUSTER_SHORT") != NULL ? 11 : 1;
  guint n_missed = 0;
  g_autofree guint8 *sound = g_memdup2 (file->data, file->len);
  for (gsize bit = 0; bit < (gsize)file->len * 8; bit += stride) {
    file->data[bit / 8] ^= (guint8)(1u << bit % 8);
    if (!is_found (f)) {
      MUSTER_FAIL ("'%s': bit %d of byte %d of %u", path, (int)(bit % 8), (int)(bit / 8),
                   file->len);
      n_missed++;
    }
    file->data[bit / 8] = sound[bit / 8];
    if (n_missed > 20)
      break;
  }
  return n_missed;
}

MUSTER_TEST (BitFlip, every_one_is_found_in_what_muster_wrote)
{
  g_auto (Fixture) f = set_up_merged ();
  static const char *const files[] = {".index", ".data-00000-of-00002", ".data-00001-of-00002"};
  for (gsize i = 0; i < G_N_ELEMENTS (files); i++)
    MUSTER_EXPECT_EQ (flip_every_bit (&f, files[i]), 0u);
}

MUSTER_TEST (BitFlip, every_one_is_found_in_what_tensorflow_wrote)
{
  static const struct {
    const char *name;
    const char *files[4];
  } cases[] = {
      {"dtypes", {".index", ".data-00000-of-00001"}},
      {"shards", {".index", ".data-00000-of-00002", ".data-00001-of-00002"}},
      {"slices", {".index", ".data-00000-of-00001"}},
      {"model-42", {".index", ".data-00000-of-00001"}},
      {"foreign", {".index", ".data-00000-of-00001"}}, /* variants among them */
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Fixture) f = set_up_golden (cases[i].name);
    MUSTER_TRACE ("'%s'", cases[i].name);
    for (gsize k = 0; cases[i].files[k] != NULL; k++)
      MUSTER_EXPECT_EQ (flip_every_bit (&f, cases[i].files[k]), 0u);
  }
}

static void
add_much (MusterBundleWriter *writer)
{
  const gint64 dims[] = {4, 1000}, large[] = {1500, 1024};
  add_tensor (writer, "large", NULL, counting_int32 (2, large, 1)); /* pieces for several threads */
  for (int i = 0; i < 90; i++) {
    g_autofree char *name = g_strdup_printf ("layer-%d/w", i);
    g_autofree char *bias = g_strdup_printf ("layer-%d/b", i);
    add_tensor (writer, name, NULL, counting_int32 (2, dims, i));
    add_tensor (writer, bias, NULL, muster_tensor_new_float ((float)i));
  }
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  for (int i = 0; i < 60000; i++) /* more than one block of them */
    g_ptr_array_add (texts, g_strdup_printf ("text %d", i));
  g_ptr_array_add (texts, NULL);
  add_tensor (writer, "texts", NULL, muster_tensor_new_strv ((const char *const *)texts->pdata));
}

static void
flip_at_random (Fixture *f, const char *suffix, guint n)
{
  g_autofree char *path = g_strconcat (f->prefix, suffix, NULL);
  GByteArray *file = memory_storage_file (f->memory, path);
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  for (guint i = 0; i < n; i++) {
    const guint byte = (guint)g_rand_int_range (rand, 0, (gint32)file->len);
    const guint8 bit = (guint8)(1u << g_rand_int_range (rand, 0, 8));
    file->data[byte] ^= bit;
    MUSTER_TRACE ("'%s', byte %u of %u", path, byte, file->len);
    MUSTER_EXPECT_TRUE (is_found (f));
    file->data[byte] ^= bit;
  }
}

MUSTER_TEST (BitFlip, random_ones_are_found_in_a_large_checkpoint)
{
  const guint n = g_getenv ("MUSTER_LONG") != NULL    ? 5000
                  : g_getenv ("MUSTER_SHORT") != NULL ? 40
                                                      : 200;
  g_auto (Fixture) f = set_up ();
  write_part (&f, f.prefix, add_much);
  read_all (&f);

  flip_at_random (&f, ".data-00000-of-00001", n);
  flip_at_random (&f, ".index", n / 10);
}

MUSTER_TEST (BitFlip, bytes_behind_the_last_tensor_are_zeros_or_damage)
{
  g_auto (Fixture) f = set_up_merged ();
  GByteArray *file = memory_storage_file (f.memory, "dir/model.data-00000-of-00002");
  static const guint8 zeros[100] = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (f.storage, f.prefix, &error);
  g_byte_array_append (file, zeros, sizeof zeros);
  g_autoptr (MusterBundleReader) longer = muster_bundle_reader_open (f.storage, f.prefix, &error);
  MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (longer, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  file->data[file->len - 1] = 1;
  MUSTER_EXPECT_FALSE (muster_bundle_reader_verify (longer, NULL, NULL, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}
