// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_reader.h"

#include "base/crc32c_private.h"
#include "base/error.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/format/bundle_reader_private.h"
#include "tests/checkpoint/bundle_fixture.h"
#include "tests/doubles/counting_storage.h"
#include "tests/doubles/object_storage.h"

#include <string.h>
#include <unistd.h>

typedef struct {
  char *prefix;
  MusterBundleWriter *writer;
} Fixture;

static Fixture
set_up (void)
{
  Fixture f = {.prefix = in_tmpdir ("model")};
  f.writer = muster_bundle_writer_new (NULL, f.prefix, NULL);
  return f;
}

static MusterBundleReader *
finish (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  muster_bundle_writer_finish (f->writer, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MusterBundleReader *reader = muster_bundle_reader_open (NULL, f->prefix, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return reader;
}

static void
tear_down (Fixture *f)
{
  muster_bundle_writer_free (f->writer);
  g_free (f->prefix);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

/* Rewrites one entry of the index, checksums and all: a file that lies. */
static void
tamper (Fixture *f, const char *name, void (*change) (MusterIndexEntry *entry))
{
  g_autoptr (MusterBundleIndex) index =
      muster_bundle_index_load (muster_local_storage (), f->prefix, NULL);
  change ((MusterIndexEntry *)muster_bundle_index_find (index, name, strlen (name)));
  g_autoptr (GBytes) bytes = muster_bundle_index_save (index, NULL);
  put_file ("model.index", g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
}

static void
expect_read_error (const Fixture *f, const char *name, const char *slice, int code)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, f->prefix, &error);
  g_autoptr (MusterTensor) tensor =
      reader != NULL ? muster_bundle_reader_read_slice (reader, name, slice, &error) : NULL;
  MUSTER_EXPECT_NULL (tensor);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, code);
}

MUSTER_TEST (Crc32c, is_castagnoli_and_extends)
{
  MUSTER_EXPECT_EQ (muster_crc32c_extend (0, "123456789", 9), 0xe3069283u);
  const guint32 half = muster_crc32c_extend (0, "1234", 4);
  MUSTER_EXPECT_EQ (muster_crc32c_extend (half, "56789", 5), 0xe3069283u);
  MUSTER_EXPECT_EQ (muster_crc32c_unmask (muster_crc32c_mask (0xe3069283u)), 0xe3069283u);
}

MUSTER_TEST (Crc32c, of_two_parts_is_put_together)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);
  guint8 data[1000];
  for (gsize i = 0; i < sizeof data; i++)
    data[i] = (guint8)g_rand_int (rand);
  for (gsize n = 0; n <= sizeof data; n++) {
    const guint32 first = muster_crc32c_extend (0, data, n);
    const guint32 second = muster_crc32c_extend (0, data + n, sizeof data - n);
    MUSTER_ASSERT_EQ (muster_crc32c_combine (first, second, sizeof data - n),
                      muster_crc32c_extend (0, data, sizeof data));
  }
}

MUSTER_TEST (BundleReader, a_tensor_is_its_owners_whatever_becomes_of_the_file)
{
  const gint64 dims[] = {256, 256};
  g_auto (Fixture) f = set_up ();
  add_tensor (f.writer, "before", NULL, muster_tensor_new_bool (TRUE));
  add_tensor (f.writer, "large", NULL, counting_int32 (2, dims, 0));
  g_autoptr (MusterBundleReader) reader = finish (&f);
  g_autoptr (GError) error = NULL, of_cut = NULL, of_verify = NULL;

  g_autoptr (MusterTensor) a = muster_bundle_reader_read (reader, "large", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *path = muster_bundle_data_path (f.prefix, 0, 1);
  MUSTER_ASSERT_EQ (truncate (path, 100000), 0);
  MUSTER_EXPECT_NULL (muster_bundle_reader_read (reader, "large", &of_cut));
  MUSTER_EXPECT_FALSE (muster_bundle_reader_verify (reader, NULL, NULL, NULL, &of_verify));

  MUSTER_EXPECT_TRUE (muster_tensor_is_exclusive (a));
  MUSTER_EXPECT_EQ (((const gint32 *)muster_tensor_data (a))[65535], 65535);
  MUSTER_EXPECT_ERROR (of_cut, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_ERROR (of_verify, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_TRUE (strstr (of_cut->message, "'large'") != NULL);
  MUSTER_EXPECT_TRUE (strstr (of_cut->message, path) != NULL);
}

#define PARTS 4

/* Reads "parts" a row at a time, and returns how many rows it got. */
static gint32
read_rows (MusterBundleReader *reader, GError **error)
{
  g_autoptr (GHashTable) parts = muster_bundle_parts_new ();
  const MusterBundleEntry *entry = muster_bundle_reader_find (reader, "parts");
  for (gint32 i = 0; i < PARTS; i++) {
    g_autofree char *row = g_strdup_printf ("%d,1:-", i);
    g_autoptr (MusterTensor) part =
        muster_bundle_reader_read_part (reader, parts, entry, row, NULL, error);
    if (part == NULL)
      return i;
    const gint32 *values = muster_tensor_data (part);
    MUSTER_EXPECT_EQ (values[0], 1000 * i);
    MUSTER_EXPECT_EQ (values[999], 1000 * i + 999);
  }
  return PARTS;
}

static void
damage (const Fixture *f, gint64 offset)
{
  g_autofree char *path = muster_bundle_data_path (f->prefix, 0, 1);
  g_autoptr (GBytes) bytes = get_file (path);
  gsize size;
  g_autofree char *data = g_memdup2 (g_bytes_get_data (bytes, &size), g_bytes_get_size (bytes));
  data[offset] ^= 1;
  put_file ("model.data-00000-of-00001", data, size);
}

/* Of "parts", stored whole or in these slices (NULL-terminated). */
static void
expect_rows_read_alone (const char *const *slices)
{
  const gint64 dims[] = {slices[0] == NULL ? PARTS : 2, 1000};
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterCountingStorage) storage = muster_counting_storage_new ();
  g_autoptr (GError) error = NULL;
  guint often;
  if (slices[0] == NULL)
    add_tensor (f.writer, "parts", NULL, counting_int32 (2, dims, 0));
  for (gint32 k = 0; slices[k] != NULL; k++)
    add_tensor (f.writer, "parts", slices[k], counting_int32 (2, dims, 2000 * k));
  muster_bundle_reader_unref (finish (&f));
  g_autoptr (MusterBundleReader) reader =
      muster_bundle_reader_open (MUSTER_STORAGE (storage), f.prefix, &error);
  MUSTER_EXPECT_EQ (read_rows (reader, &error), PARTS);
  MUSTER_EXPECT_NO_ERROR (error);
  (void)muster_counting_storage_take (storage, &often);
  MUSTER_EXPECT_EQ (often, 1u);

  damage (&f, 3 * 4000 + 3996); /* the last value of the last row */
  g_autoptr (MusterBundleReader) again = muster_bundle_reader_open (NULL, f.prefix, &error);
  MUSTER_EXPECT_EQ (read_rows (again, &error), PARTS - 1);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

MUSTER_TEST (BundleReader, rows_are_read_alone_and_checked_with_the_last_one)
{
  expect_rows_read_alone ((const char *const[]){NULL});
}

MUSTER_TEST (BundleReader, rows_are_read_alone_and_checked_with_the_last_one_of_a_slice)
{
  expect_rows_read_alone ((const char *const[]){"4 1000 0,2:-", "4 1000 2,2:-", NULL});
}

MUSTER_TEST (BundleReader, every_slice_of_a_tensor_reads_whatever_slices_hold_it)
{
  const gint64 dims[] = {3, 4, 2};
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  add_tensor (f.writer, "whole", NULL, counting_int32 (3, dims, 0));
  g_autoptr (MusterBundleReader) wholes = finish (&f);
  muster_bundle_writer_free (f.writer);
  f.writer = muster_bundle_writer_new (NULL, f.prefix, NULL);
  static const char *parts[] = {"3 4 2 0,2:-:0,1", "3 4 2 0,2:0,3:1,1", "3 4 2 0,2:3,1:1,1",
                                "3 4 2 2,1:-:-"};
  for (gsize i = 0; i < G_N_ELEMENTS (parts); i++)
    add_tensor (f.writer, "whole", parts[i],
                muster_bundle_reader_read_slice (wholes, "whole", parts[i], &error));
  g_autoptr (MusterBundleReader) sliced = finish (&f);

  for (int box = 0; box < 6 * 10 * 3; box++) {
    /* Every start and length: 6 for a dimension of 3, 10 for one of 4, 3 for one of 2. */
    static const int starts[] = {0, 0, 1, 0, 1, 2, 0, 1, 2, 3},
                     lengths[] = {1, 2, 1, 3, 2, 1, 4, 3, 2, 1};
    const int i = box % 6, j = box / 6 % 10, k = box / 60;
    const gint64 sizes[] = {lengths[i], lengths[j], lengths[k]};
    g_autofree char *slice = g_strdup_printf ("%d,%d:%d,%d:%d,%d", starts[i], lengths[i], starts[j],
                                              lengths[j], starts[k], lengths[k]);
    g_autoptr (MusterTensor) expected = muster_tensor_new (MUSTER_INT32, 3, sizes);
    gint32 *at = muster_tensor_data_mutable (expected);
    for (int a = 0; a < sizes[0]; a++)
      for (int b = 0; b < sizes[1]; b++)
        for (int c = 0; c < sizes[2]; c++)
          *at++ = (starts[i] + a) * 8 + (starts[j] + b) * 2 + starts[k] + c;
    g_autoptr (MusterTensor) of_whole =
        muster_bundle_reader_read_slice (wholes, "whole", slice, &error);
    g_autoptr (MusterTensor) of_parts =
        muster_bundle_reader_read_slice (sliced, "whole", slice, &error);
    MUSTER_TRACE ("slice %s", slice);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_ASSERT_TRUE (muster_tensor_equal (of_whole, expected));
    MUSTER_ASSERT_TRUE (muster_tensor_equal (of_parts, expected));
  }
  MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (sliced, NULL, NULL, NULL, NULL));
}

MUSTER_TEST (BundleReader, strings_in_slices_are_put_together)
{
  static const char *const texts[] = {"a", "", "ccc", NULL};
  g_auto (Fixture) f = set_up ();
  add_tensor (f.writer, "s", "3 0,2",
              muster_tensor_new_strv ((const char *const[]){"a", "", NULL}));
  add_tensor (f.writer, "s", "3 2,1", muster_tensor_new_strv ((const char *const[]){"ccc", NULL}));
  g_autoptr (MusterBundleReader) reader = finish (&f);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterTensor) whole = muster_bundle_reader_read (reader, "s", &error);

  g_autoptr (MusterTensor) expected = muster_tensor_new_strv (texts);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (whole, expected));
}

/* SAV.68 */
MUSTER_TEST (BundleReader, lists_name_type_and_shape)
{
  static const gint64 dims[] = {2, 3};
  g_auto (Fixture) f = set_up ();
  add_tensor (f.writer, "v1", NULL, muster_tensor_new_int64 (7));
  add_tensor (f.writer, "v0", NULL, muster_tensor_new (MUSTER_FLOAT, 2, dims));
  g_autoptr (MusterBundleReader) reader = finish (&f);

  MUSTER_ASSERT_EQ (muster_bundle_reader_n_entries (reader), 2u);
  const MusterBundleEntry *first = muster_bundle_reader_entry (reader, 0);
  MUSTER_EXPECT_STREQ (first->name, "v0");
  MUSTER_EXPECT_EQ ((int)first->dtype, (int)MUSTER_FLOAT);
  g_autofree char *shape = muster_shape_to_string (first->n_dims, first->dims);
  MUSTER_EXPECT_STREQ (shape, "[2,3]");
  MUSTER_EXPECT_TRUE (muster_bundle_reader_find (reader, "v1") ==
                      muster_bundle_reader_entry (reader, 1));
}

/* SAV.68 */
MUSTER_TEST (BundleReader, what_is_not_there_is_not_found)
{
  g_auto (Fixture) f = set_up ();
  add_tensor (f.writer, "a", NULL, muster_tensor_new_float (1));
  g_autoptr (MusterBundleReader) reader = finish (&f);
  g_autofree char *absent = in_tmpdir ("absent");
  g_autoptr (GError) of_prefix = NULL, of_name = NULL;

  MUSTER_EXPECT_NULL (muster_bundle_reader_open (NULL, absent, &of_prefix));
  MUSTER_EXPECT_NULL (muster_bundle_reader_read (reader, "b", &of_name));

  MUSTER_EXPECT_ERROR (of_prefix, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  MUSTER_EXPECT_SAYS (of_name, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND,
                      "'b' is not found in checkpoint");
  MUSTER_EXPECT_NULL (muster_bundle_reader_find (reader, ""));
}

MUSTER_TEST (BundleReader, a_slice_that_does_not_fit_is_an_invalid_argument)
{
  static const char *slices[] = {"0,3:-",
                                 "-",
                                 "3 2 -:-",
                                 "0,1:-:-",
                                 "x",
                                 "0,0:-",
                                 "-1,1:-",
                                 "1,2:-",
                                 "2  -:-",
                                 ":",
                                 "2 2 -",
                                 " -:-",
                                 "1,9223372036854775807:-"};
  const gint64 dims[] = {2, 2};
  g_auto (Fixture) f = set_up ();
  add_tensor (f.writer, "a", NULL, counting_int32 (2, dims, 0));
  g_autoptr (MusterBundleReader) reader = finish (&f);

  for (gsize i = 0; i < G_N_ELEMENTS (slices); i++) {
    MUSTER_TRACE ("slice '%s'", slices[i]);
    expect_read_error (&f, "a", slices[i], MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

static void
make_larger (MusterIndexEntry *entry)
{
  static const gint64 dims[] = {G_GINT64_CONSTANT (1) << 40};
  entry->entry.n_dims = 1;
  entry->entry.dims = dims;
}

static void
make_larger_with_size (MusterIndexEntry *entry)
{
  make_larger (entry);
  entry->entry.size = G_GINT64_CONSTANT (4) << 40;
}

static void
move_away (MusterIndexEntry *entry)
{
  entry->entry.offset = G_MAXINT64 - 4;
}

static void
change_shard (MusterIndexEntry *entry)
{
  entry->entry.shard = 1;
}

static void
change_crc (MusterIndexEntry *entry)
{
  entry->entry.crc32c ^= 1;
}

static void
change_type (MusterIndexEntry *entry)
{
  entry->entry.dtype = (MusterDType)11; /* qint8 */
}

MUSTER_TEST (BundleReader, an_entry_that_lies_is_data_loss)
{
  static void (*const changes[]) (MusterIndexEntry *) = {make_larger, make_larger_with_size,
                                                         move_away, change_shard, change_crc};
  for (gsize i = 0; i < G_N_ELEMENTS (changes); i++) {
    g_auto (Fixture) f = set_up ();
    add_tensor (f.writer, "a", NULL, muster_tensor_new_float (1));
    add_tensor (f.writer, "s", NULL, muster_tensor_new_string ("text"));
    g_autoptr (MusterBundleReader) reader = finish (&f);
    tamper (&f, "a", changes[i]);
    MUSTER_TRACE ("change %d", (int)i);
    expect_read_error (&f, "a", NULL, MUSTER_ERROR_DATA_LOSS);
  }
  g_auto (Fixture) f = set_up ();
  add_tensor (f.writer, "s", NULL, muster_tensor_new_string ("text"));
  g_autoptr (MusterBundleReader) reader = finish (&f);
  tamper (&f, "s", make_larger);
  expect_read_error (&f, "s", NULL, MUSTER_ERROR_DATA_LOSS);
}

MUSTER_TEST (BundleReader, a_type_that_muster_lacks_spoils_that_tensor_alone)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  add_tensor (f.writer, "a", NULL, muster_tensor_new_float (1));
  add_tensor (f.writer, "b", NULL, muster_tensor_new_float (2));
  g_autoptr (MusterBundleReader) before = finish (&f);
  tamper (&f, "a", change_type);

  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, f.prefix, &error);
  g_autoptr (MusterTensor) b = muster_bundle_reader_read (reader, "b", &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_ASSERT_NOT_NULL (b);
  expect_read_error (&f, "a", NULL, MUSTER_ERROR_UNIMPLEMENTED);
}

static void
forget_a_slice (MusterIndexEntry *entry)
{
  entry->n_slices--;
}

static void
repeat_a_slice (MusterIndexEntry *entry)
{
  memcpy ((MusterExtent *)entry->slices + 1, entry->slices, sizeof (MusterExtent));
}

static void
shift_a_slice (MusterIndexEntry *entry)
{
  ((MusterExtent *)entry->slices)[1].start = 1;
}

MUSTER_TEST (BundleReader, slices_that_are_missing_or_overlap_are_data_loss)
{
  static void (*const changes[]) (MusterIndexEntry *) = {forget_a_slice, repeat_a_slice,
                                                         shift_a_slice};
  for (gsize i = 0; i < G_N_ELEMENTS (changes); i++) {
    g_auto (Fixture) f = set_up ();
    g_autoptr (GError) error = NULL;
    add_tensor (f.writer, "a", "4 0,2", counting_int32 (1, (const gint64[]){2}, 0));
    add_tensor (f.writer, "a", "4 2,2", counting_int32 (1, (const gint64[]){2}, 2));
    g_autoptr (MusterBundleReader) before = finish (&f);
    tamper (&f, "a", changes[i]);
    MUSTER_TRACE ("change %d", (int)i);
    expect_read_error (&f, "a", NULL, MUSTER_ERROR_DATA_LOSS);
    g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, f.prefix, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_FALSE (muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error));
  }
}

MUSTER_TEST (BundleReader, a_data_file_that_is_gone_is_data_loss_and_named)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  add_tensor (f.writer, "a", NULL, muster_tensor_new_float (1));
  g_autoptr (MusterBundleReader) reader = finish (&f);
  g_autofree char *data = muster_bundle_data_path (f.prefix, 0, 1);
  muster_storage_remove (muster_local_storage (), data, NULL);

  MUSTER_EXPECT_NULL (muster_bundle_reader_read (reader, "a", &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, data);
}

MUSTER_TEST (BundleReader, verify_stops_when_cancelled)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  add_tensor (f.writer, "a", NULL, muster_tensor_new_float (1));
  g_autoptr (MusterBundleReader) reader = finish (&f);
  g_cancellable_cancel (cancellable);

  MUSTER_EXPECT_FALSE (muster_bundle_reader_verify (reader, NULL, NULL, cancellable, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

typedef struct {
  guint64 done, total;
  guint n_calls;
  gboolean went_back;
} Progress;

static void
note_progress (guint64 done, guint64 total, gpointer user_data)
{
  Progress *self = user_data;
  self->went_back = self->went_back || done < self->done;
  self->done = done;
  self->total = total;
  self->n_calls++;
}

MUSTER_TEST (BundleReader, verify_reports_how_far_it_has_come)
{
  const gint64 dims[] = {3000};
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  Progress progress = {0};
  add_tensor (f.writer, "a", NULL, counting_int32 (1, dims, 0));
  add_tensor (f.writer, "s", "4 0,2", counting_int32 (1, (const gint64[]){2}, 0));
  add_tensor (f.writer, "s", "4 2,2", counting_int32 (1, (const gint64[]){2}, 2));
  g_autoptr (MusterBundleReader) reader = finish (&f);

  MUSTER_EXPECT_TRUE (muster_bundle_reader_verify (reader, note_progress, &progress, NULL, &error));

  MUSTER_EXPECT_GT (progress.n_calls, 0u);
  MUSTER_EXPECT_FALSE (progress.went_back);
  MUSTER_EXPECT_GE (progress.total, 12016u);
  MUSTER_EXPECT_EQ (progress.done, progress.total);
}

MUSTER_TEST (BundleReader, reads_many_in_the_order_asked_for)
{
  static const char *const names[] = {"w", "a", "w", "s", "a"};
  static const char *const slices[] = {"", NULL, "4 2 1,2:-", "2 1,1", "0,1"};
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  MusterTensor *tensors[G_N_ELEMENTS (names)] = {NULL};
  add_tensor (f.writer, "a", NULL, counting_int32 (1, (const gint64[]){3}, 7));
  add_tensor (f.writer, "s", NULL,
              muster_tensor_new_strv ((const char *const[]){"one", "two", NULL}));
  add_tensor (f.writer, "w", "4 2 0,2:-", counting_int32 (2, (const gint64[]){2, 2}, 0));
  add_tensor (f.writer, "w", "4 2 2,2:-", counting_int32 (2, (const gint64[]){2, 2}, 4));
  g_autoptr (MusterBundleReader) reader = finish (&f);

  MUSTER_ASSERT_TRUE (muster_bundle_reader_read_many (reader, names, slices, G_N_ELEMENTS (names),
                                                      tensors, NULL, &error));

  MusterTensor *expected[] = {counting_int32 (2, (const gint64[]){4, 2}, 0),
                              counting_int32 (1, (const gint64[]){3}, 7),
                              counting_int32 (2, (const gint64[]){2, 2}, 2),
                              muster_tensor_new_strv ((const char *const[]){"two", NULL}),
                              counting_int32 (1, (const gint64[]){1}, 7)};
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    MUSTER_TRACE ("tensor %d", (int)i);
    MUSTER_EXPECT_TRUE (muster_tensor_equal (tensors[i], expected[i]));
    muster_tensor_unref (tensors[i]);
    muster_tensor_unref (expected[i]);
  }
}

MUSTER_TEST (BundleReader, of_many_all_are_read_or_none)
{
  static const char *const names[] = {"a", "b", "absent"};
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) of_name = NULL, of_damage = NULL;
  MusterTensor *tensors[] = {NULL, NULL, NULL};
  add_tensor (f.writer, "a", NULL, muster_tensor_new_float (1));
  add_tensor (f.writer, "b", NULL, muster_tensor_new_float (2));
  g_autoptr (MusterBundleReader) before = finish (&f);

  MUSTER_EXPECT_FALSE (
      muster_bundle_reader_read_many (before, names, NULL, 3, tensors, NULL, &of_name));
  tamper (&f, "b", change_crc);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, f.prefix, NULL);
  MUSTER_EXPECT_FALSE (
      muster_bundle_reader_read_many (reader, names, NULL, 2, tensors, NULL, &of_damage));

  MUSTER_EXPECT_ERROR (of_name, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  MUSTER_EXPECT_ERROR (of_damage, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  for (gsize i = 0; i < G_N_ELEMENTS (tensors); i++)
    MUSTER_EXPECT_NULL (tensors[i]);
}

static gpointer
read_many (gpointer reader)
{
  gsize n_read = 0;
  for (int i = 0; i < 200; i++) {
    g_autoptr (MusterTensor) a = muster_bundle_reader_read (reader, "a", NULL);
    n_read += a != NULL;
  }
  return GSIZE_TO_POINTER (n_read);
}

MUSTER_TEST (BundleReader, serves_several_threads_at_once)
{
  g_auto (Fixture) f = set_up ();
  GThread *threads[4];
  add_tensor (f.writer, "a", "4 0,2", counting_int32 (1, (const gint64[]){2}, 0));
  add_tensor (f.writer, "a", "4 2,2", counting_int32 (1, (const gint64[]){2}, 2));
  g_autoptr (MusterBundleReader) reader = finish (&f);

  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("reader", read_many, reader);

  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    MUSTER_EXPECT_EQ (GPOINTER_TO_SIZE (g_thread_join (threads[i])), 200u);
}

/* A request takes as long as many bytes do. */
MUSTER_TEST (BundleReader, asks_an_object_store_for_megabytes_at_a_time)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (store);
  const gint64 dims[] = {3 << 18};
  g_autoptr (MusterTensor) tensor = muster_tensor_new (MUSTER_FLOAT, 1, dims);
  memset (muster_tensor_data_mutable (tensor), 0, muster_tensor_n_bytes (tensor));
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, "/run/model", NULL);
  MUSTER_EXPECT_TRUE (muster_bundle_writer_add (writer, "w", tensor, &error));
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, "/run/model", &error);
  MUSTER_ASSERT_NO_ERROR (error);

  const guint before = object_storage_n_calls (store);
  g_autoptr (MusterTensor) read = muster_bundle_reader_read (reader, "w", &error);
  const guint n_calls = object_storage_n_calls (store) - before;

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (read, tensor));
  MUSTER_EXPECT_LE (n_calls, 3u);
}

#define N_MEETING 16

/* A store in which reads of megabytes wait for one another. */
#define MUSTER_TYPE_MEETING_STORAGE (muster_meeting_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterMeetingStorage, muster_meeting_storage, MUSTER, MEETING_STORAGE,
                      MusterForwardingStorage)

struct _MusterMeetingStorage {
  MusterForwardingStorage parent;
  GMutex lock;
  GCond changed;
  guint n; /* guarded by lock: that have come */
};

static void muster_meeting_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterMeetingStorage, muster_meeting_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      muster_meeting_storage_iface_init))

static gssize
meeting_read_at (MusterStorage *storage, MusterStorageInput *input, guint64 offset, void *buffer,
                 gsize size, GError **error)
{
  MusterMeetingStorage *self = MUSTER_MEETING_STORAGE (storage);
  const gint64 until = g_get_monotonic_time () + 30 * G_TIME_SPAN_SECOND;
  g_mutex_lock (&self->lock);
  self->n += size >= 1 << 20;
  g_cond_broadcast (&self->changed);
  while (size >= 1 << 20 && self->n < N_MEETING &&
         g_cond_wait_until (&self->changed, &self->lock, until))
    ;
  const gboolean have_met = size < 1 << 20 || self->n >= N_MEETING;
  g_mutex_unlock (&self->lock);
  if (!have_met) {
    muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "the others didn't come");
    return -1;
  }
  return muster_storage_read_at (
      muster_forwarding_storage_inner (MUSTER_FORWARDING_STORAGE (storage)), input, offset, buffer,
      size, error);
}

static void
muster_meeting_storage_iface_init (MusterStorageInterface *iface)
{
  iface->read_at = meeting_read_at;
}

static void
muster_meeting_storage_finalize (GObject *object)
{
  MusterMeetingStorage *self = MUSTER_MEETING_STORAGE (object);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_meeting_storage_parent_class)->finalize (object);
}

static void
muster_meeting_storage_class_init (MusterMeetingStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_meeting_storage_finalize;
}

static void
muster_meeting_storage_init (MusterMeetingStorage *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_autoptr (MusterObjectStorage) inner = object_storage_new ();
  muster_forwarding_storage_set_inner (MUSTER_FORWARDING_STORAGE (self), MUSTER_STORAGE (inner));
}

/* However many processors there are: they wait for the store. */
MUSTER_TEST (BundleReader, asks_another_store_for_many_ranges_at_the_same_time)
{
  g_autoptr (MusterMeetingStorage) store = g_object_new (MUSTER_TYPE_MEETING_STORAGE, NULL);
  MusterStorage *storage = MUSTER_STORAGE (store);
  const gint64 dims[] = {N_MEETING << 20};
  g_autoptr (MusterTensor) tensor = muster_tensor_new (MUSTER_FLOAT, 1, dims);
  memset (muster_tensor_data_mutable (tensor), 1, muster_tensor_n_bytes (tensor));
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, "/run/model", NULL);
  MUSTER_EXPECT_TRUE (muster_bundle_writer_add (writer, "w", tensor, &error));
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, "/run/model", &error);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterTensor) read = muster_bundle_reader_read (reader, "w", &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (read, tensor));
}
