// SPDX-License-Identifier: Apache-2.0
/* What is made of checkpoints: whole copies, averages, parts and other names; and what is refused.
 * tests/tensorflow/edit_test.py has TensorFlow read the results. */
#include "base/error.h"
#include "checkpoint/edit/edit.h"
#include "checkpoint/format/object_graph.h"
#include "checkpoint/state/checkpoint_record.h"
#include "checkpoint/state/quarantine.h"
#include "graph/npy.h"
#include "tests/checkpoint/bundle_fixture.h"
#include "tests/doubles/memory_storage.h"
#include "tests/doubles/object_storage.h"

#include <string.h>

static MusterTensor *
floats (gint64 n, float first)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_FLOAT, 1, &n);
  float *data = muster_tensor_data_mutable (tensor);
  for (gint64 i = 0; i < n; i++)
    data[i] = first + (float)i;
  return tensor;
}

/* "a" has n floats from first on, "b/step" a number, "words" strings, "w" two slices. */
static void
write_model (MusterStorage *storage, const char *prefix, gint64 n, float first)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, prefix, &error);
  const MusterString words[] = {{"one", 3}, {"", 0}};
  const gint64 two = 2, part[] = {2, 3};
  MUSTER_ASSERT_NO_ERROR (error);
  add_tensor (writer, "a", NULL, floats (n, first));
  add_tensor (writer, "b/step", NULL, muster_tensor_new_int64 ((gint64)first));
  add_tensor (writer, "words", NULL, muster_tensor_new_strings (1, &two, words));
  add_tensor (writer, "w", "4 3 0,2:-", counting_int32 (2, part, (gint32)first));
  add_tensor (writer, "w", "4 3 2,2:-", counting_int32 (2, part, 100));
  muster_bundle_writer_set_n_shards (writer, 3);
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, &error));
  MUSTER_ASSERT_NO_ERROR (error);
}

static MusterStorage *
store_with (const char *prefix, float first)
{
  MusterStorage *storage = MUSTER_STORAGE (memory_storage_new ());
  write_model (storage, prefix, 2000, first);
  return storage;
}

static gboolean
copy (MusterStorage *storage, const char *from, const char *to, MusterCopyLatest latest,
      MusterEditReport *report, GError **error)
{
  const MusterEditOptions options = {.storage = storage, .latest = latest};
  return muster_checkpoint_copy (from, to, &options, report, NULL, NULL, MUSTER_WAIT_FOREVER, NULL,
                                 error);
}

static char *
read_first (MusterStorage *storage, const char *prefix, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, prefix, &error);
  g_autoptr (MusterTensor) tensor =
      reader != NULL ? muster_bundle_reader_read (reader, name, &error) : NULL;
  if (tensor == NULL)
    return g_strdup (error->message);
  if (muster_tensor_dtype (tensor) == MUSTER_FLOAT)
    return g_strdup_printf ("%g", ((const float *)muster_tensor_data (tensor))[0]);
  if (muster_tensor_dtype (tensor) == MUSTER_INT64)
    return g_strdup_printf ("%d", (int)((const gint64 *)muster_tensor_data (tensor))[0]);
  return g_strdup_printf ("%d", ((const gint32 *)muster_tensor_data (tensor))[0]);
}

static void
expect_first (MusterStorage *storage, const char *prefix, const char *name, const char *value)
{
  g_autofree char *found = read_first (storage, prefix, name);
  MUSTER_EXPECT_STREQ (found, value);
}

static char *
files_in (MusterStorage *storage, const char *directory)
{
  g_auto (GStrv) names = muster_storage_list (storage, directory, NULL);
  return names != NULL ? g_strjoinv (" ", names) : g_strdup ("");
}

static char *
list_of (MusterStorage *storage, const char *directory)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_read (storage, directory, NULL);
  g_autoptr (GString) text = g_string_new (state != NULL ? state->latest : "none");
  for (guint i = 0; state != NULL && i < state->all->len; i++)
    g_string_append_printf (text, " %s", (const char *)state->all->pdata[i]);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static void
expect_list (MusterStorage *storage, const char *list)
{
  g_autofree char *found = list_of (storage, "to");
  MUSTER_EXPECT_STREQ (found, list);
}

MUSTER_TEST (Copy, is_byte_for_byte_with_its_meta_graph)
{
  g_autoptr (MusterMemoryStorage) memory = MUSTER_MEMORY_STORAGE (store_with ("run/m-5", 1));
  MusterStorage *storage = MUSTER_STORAGE (memory);
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  memory_storage_put (memory, "run/m-5.meta", "graph", 5);

  MUSTER_EXPECT_TRUE (
      copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (report.n_tensors, 4);
  MUSTER_EXPECT_TRUE (report.is_latest && !report.was_there && report.kept_bytes == 0);
  static const char *const ends[] = {".index", ".meta", ".data-00000-of-00003",
                                     ".data-00001-of-00003", ".data-00002-of-00003"};
  for (gsize i = 0; i < G_N_ELEMENTS (ends); i++) {
    g_autofree char *from = g_strconcat ("run/m-5", ends[i], NULL);
    g_autofree char *to = g_strconcat ("to/m-5", ends[i], NULL);
    GByteArray *a = memory_storage_file (memory, from), *b = memory_storage_file (memory, to);
    MUSTER_ASSERT_TRUE (a != NULL && b != NULL);
    MUSTER_EXPECT_MEMEQ (a->data, a->len, b->data, b->len);
  }
  g_autofree char *files = files_in (storage, "to");
  MUSTER_EXPECT_TRUE (strstr (files, ".saving-") == NULL);
}

/* The record says what a save would have. */
MUSTER_TEST (Copy, takes_along_what_is_known_of_the_original)
{
  g_autoptr (MusterStorage) storage = store_with ("run/m-5", 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_new ();
  MusterSideCheckpoint *one = muster_checkpoint_record_ensure (record, "m-5");
  one->step = 5;
  one->epoch = 7;
  one->time = 1234567;
  one->run = g_strdup ("the run");
  one->preserved = TRUE;
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_write (storage, "run", record, NULL));

  MUSTER_EXPECT_TRUE (copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterCheckpointRecord) there = muster_checkpoint_record_read (storage, "to", &error);
  const MusterSideCheckpoint *other = muster_checkpoint_record_find (there, "m-5");
  MUSTER_ASSERT_TRUE (other != NULL);
  MUSTER_EXPECT_TRUE (other->step == 5 && other->epoch == 7 && other->time == 1234567);
  MUSTER_EXPECT_TRUE (other->preserved && other->verified && other->copied);
  MUSTER_EXPECT_STREQ (other->run, "the run");
  MUSTER_EXPECT_EQ (other->files->len, 4);
  MUSTER_EXPECT_EQ (there->epoch, 0); /* the directory isn't claimed */
}

MUSTER_TEST (Copy, overtakes_an_earlier_copy_but_never_goes_back)
{
  g_autoptr (MusterStorage) storage = store_with ("run/m-5", 1);
  write_model (storage, "run/m-7", 10, 2);
  write_model (storage, "run/m-6", 10, 3);
  g_autoptr (GError) error = NULL;
  MusterEditReport report;

  copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error);
  expect_list (storage, "to/m-5 to/m-5");
  copy (storage, "run/m-7", "to/m-7", MUSTER_COPY_LATEST_AUTO, &report, &error);
  expect_list (storage, "to/m-7 to/m-5 to/m-7");
  copy (storage, "run/m-6", "to/m-6", MUSTER_COPY_LATEST_AUTO, &report, &error);
  expect_list (storage, "to/m-7 to/m-5 to/m-6 to/m-7");
  MUSTER_EXPECT_FALSE (report.is_latest);
  copy (storage, "run/m-6", "to/m-6", MUSTER_COPY_LATEST_ALWAYS, &report, &error);
  expect_list (storage, "to/m-6 to/m-5 to/m-7 to/m-6");
  MUSTER_EXPECT_TRUE (report.is_latest && report.was_there);
  MUSTER_ASSERT_NO_ERROR (error);
}

MUSTER_TEST (Copy, doesnt_overtake_what_a_job_saved)
{
  g_autoptr (MusterStorage) storage = store_with ("run/m-9", 1);
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  write_model (storage, "to/m-3", 10, 2);
  muster_checkpoint_state_add (state, "to/m-3", 1000);
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_new ();
  muster_checkpoint_record_ensure (record, "m-3")->step = 3;
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_write (storage, "to", record, NULL));
  MUSTER_EXPECT_TRUE (muster_checkpoint_state_write (storage, "to", state, NULL));

  copy (storage, "run/m-9", "to/m-9", MUSTER_COPY_LATEST_AUTO, &report, &error);
  MUSTER_EXPECT_FALSE (report.is_latest);
  expect_list (storage, "to/m-3 to/m-9 to/m-3");
  copy (storage, "run/m-9", "to/m-9", MUSTER_COPY_LATEST_ALWAYS, &report, &error);
  expect_list (storage, "to/m-9 to/m-3 to/m-9");
  MUSTER_ASSERT_NO_ERROR (error);
}

MUSTER_TEST (Copy, refuses_another_checkpoint_of_that_name_and_repairs_the_same)
{
  g_autoptr (MusterMemoryStorage) memory = MUSTER_MEMORY_STORAGE (store_with ("run/m-5", 1));
  MusterStorage *storage = MUSTER_STORAGE (memory);
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  write_model (storage, "to/m-5", 10, 2);

  MUSTER_EXPECT_FALSE (
      copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_ALREADY_EXISTS));
  expect_first (storage, "to/m-5", "a", "2");
  g_clear_error (&error);

  const MusterEditOptions replaces = {.storage = storage, .replaces = TRUE};
  MUSTER_EXPECT_TRUE (muster_checkpoint_copy ("run/m-5", "to/m-5", &replaces, &report, NULL, NULL,
                                              MUSTER_WAIT_FOREVER, NULL, &error));
  expect_first (storage, "to/m-5", "a", "1");

  g_auto (GStrv) names = muster_storage_list (storage, "to", NULL);
  for (char **name = names; *name != NULL; name++) {
    g_autofree char *path = g_strconcat ("to/", *name, NULL);
    GByteArray *file = memory_storage_file (memory, path);
    if (strstr (*name, ".data-") != NULL && file->len > 1000)
      file->data[100] ^= 1;
  }
  MUSTER_EXPECT_TRUE (
      copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (report.was_there);
  expect_first (storage, "to/m-5", "a", "1");
}

/* Every bit that a copy reads is checked, and what is damaged isn't published. */
MUSTER_TEST (Copy, finds_a_changed_bit)
{
  static const char *const ends[] = {".index", ".data-00000-of-00003", ".data-00001-of-00003",
                                     ".data-00002-of-00003"};
  g_autoptr (MusterMemoryStorage) memory = memory_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (memory);
  write_model (storage, "run/m-5", 20, 1);
  for (gsize i = 0; i < G_N_ELEMENTS (ends); i++) {
    g_autofree char *path = g_strconcat ("run/m-5", ends[i], NULL);
    GByteArray *file = memory_storage_file (memory, path);
    for (guint k = 0; k < file->len; k++) {
      g_autoptr (GError) error = NULL;
      file->data[k] ^= 1;
      MUSTER_EXPECT_FALSE (
          copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, NULL, &error));
      file->data[k] ^= 1;
      MUSTER_EXPECT_FALSE (muster_checkpoint_exists (storage, "to/m-5"));
    }
  }
}

/* How often the first data file was begun. */
static guint
count_begun (const char *log)
{
  g_auto (GStrv) calls = g_strsplit (log, "; ", -1);
  guint n = 0;
  for (char **call = calls; *call != NULL; call++)
    n += g_str_has_prefix (*call, "create") && strstr (*call, "data-00000-of-00003") != NULL;
  return n;
}

/* Each attempt gets one call further: what those before have copied isn't copied again. */
MUSTER_TEST (Copy, goes_on_where_it_was_interrupted)
{
  g_autofree char *from = in_tmpdir ("m-5");
  g_autofree char *directory = in_tmpdir ("copies");
  g_autofree char *to = g_strconcat (directory, "/m-5", NULL);
  guint n_attempts = 0, n_begun = 0;
  gboolean is_done = FALSE;
  write_model (NULL, from, 2000, 1);
  while (!is_done) {
    g_autoptr (MusterFaultyStorage) faulty = faulty_storage_new ((int)++n_attempts);
    is_done = copy (MUSTER_STORAGE (faulty), from, to, MUSTER_COPY_LATEST_AUTO, NULL, NULL);
    n_begun += count_begun (faulty->log->str);
  }
  expect_first (NULL, to, "a", "1");
  MUSTER_EXPECT_GT (n_attempts, 30);
  MUSTER_EXPECT_TRUE (n_begun > 0 && n_begun <= 6); /* create, reserve, append, sync, close */
}

/* What an interrupted copy left is believed only if its sums are right. */
MUSTER_TEST (Copy, checks_what_was_there)
{
  g_autoptr (MusterMemoryStorage) memory = MUSTER_MEMORY_STORAGE (store_with ("run/m-5", 1));
  MusterStorage *storage = MUSTER_STORAGE (memory);
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  GByteArray *last = memory_storage_file (memory, "run/m-5.data-00002-of-00003");
  last->data[0] ^= 1;
  MUSTER_EXPECT_FALSE (copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, NULL, NULL));
  last->data[0] ^= 1;
  g_auto (GStrv) left = muster_storage_list (storage, "to", NULL);
  guint n = 0;
  for (char **name = left; *name != NULL; name++) {
    g_autofree char *path = g_strconcat ("to/", *name, NULL);
    GByteArray *file = memory_storage_file (memory, path);
    if (strstr (*name, ".data-") == NULL)
      continue;
    n++;
    if (file->len >= 8000)
      file->data[77] ^= 1;
  }
  MUSTER_EXPECT_EQ (n, 2);

  MUSTER_EXPECT_TRUE (
      copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (report.kept_bytes > 0 && report.kept_bytes < 1000);
  expect_first (storage, "to/m-5", "a", "1");
}

typedef struct {
  GCancellable *cancellable;
  guint64 last, total;
} Canceller;

static void
cancel (guint64 done, guint64 total, gpointer user_data)
{
  Canceller *self = user_data;
  MUSTER_EXPECT_TRUE (done >= self->last && done <= total);
  self->last = done;
  self->total = total;
  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
}

MUSTER_TEST (Edit, that_is_cancelled_leaves_nothing)
{
  static const char *const names[] = {"a", "x", NULL}, *const both[] = {"run/m-5", "run/m-5", NULL};
  g_autoptr (MusterStorage) storage = store_with ("run/m-5", 1);
  const MusterEditOptions options = {.storage = storage};
  for (int i = 0; i < 5; i++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    g_autoptr (GError) error = NULL;
    Canceller self = {.cancellable = cancellable};
    const gint64 never = MUSTER_WAIT_FOREVER;
    const gboolean is_done =
        i == 0   ? muster_checkpoint_copy ("run/m-5", "to/x", &options, NULL, cancel, &self, never,
                                           cancellable, &error)
        : i == 1 ? muster_checkpoint_merge (both, "to/x", &options, NULL, cancel, &self, never,
                                            cancellable, &error)
        : i == 2
            ? muster_checkpoint_extract ("run/m-5", (const char *const[]){"*", NULL}, "to/x",
                                         &options, NULL, cancel, &self, never, cancellable, &error)
        : i == 3 ? muster_checkpoint_extract_npy ("run/m-5", (const char *const[]){"?", NULL}, "to",
                                                  &options, NULL, cancel, &self, never, cancellable,
                                                  &error)
                 : muster_checkpoint_rename ("run/m-5", names, "to/x", &options, NULL, cancel,
                                             &self, never, cancellable, &error);
    MUSTER_EXPECT_FALSE (is_done);
    MUSTER_EXPECT_TRUE (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED));
    g_autofree char *files = files_in (storage, "to");
    MUSTER_EXPECT_STREQ (files, "");
  }
}

MUSTER_TEST (Edit, tells_its_progress_to_the_end)
{
  g_autoptr (MusterStorage) storage = store_with ("run/m-5", 1);
  const MusterEditOptions options = {.storage = storage};
  g_autoptr (GError) error = NULL;
  Canceller self = {0};
  MUSTER_EXPECT_TRUE (muster_checkpoint_extract ("run/m-5", (const char *const[]){"*", NULL},
                                                 "to/x", &options, NULL, cancel, &self,
                                                 MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (self.last, self.total);
  MUSTER_EXPECT_EQ (self.total, 2 * (8000 + 8 + 48 + 9));
}

MUSTER_TEST (Edit, ends_at_its_deadline)
{
  g_autoptr (MusterStorage) storage = store_with ("run/m-5", 1);
  const MusterEditOptions options = {.storage = storage};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (muster_checkpoint_copy ("run/m-5", "to/x", &options, NULL, NULL, NULL,
                                               g_get_monotonic_time (), NULL, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED));
}

static gboolean
merge (MusterStorage *storage, const char *a, const char *b, GError **error)
{
  const char *const from[] = {a, b, NULL};
  const MusterEditOptions options = {.storage = storage};
  return muster_checkpoint_merge (from, "to/mean", &options, NULL, NULL, NULL, MUSTER_WAIT_FOREVER,
                                  NULL, error);
}

MUSTER_TEST (Merge, averages_floats_and_takes_the_rest_from_the_last)
{
  g_autoptr (MusterStorage) storage = store_with ("run/m-1", 1);
  write_model (storage, "run/m-2", 2000, 4);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (merge (storage, "run/m-1", "run/m-2", &error));

  MUSTER_ASSERT_NO_ERROR (error);
  expect_first (storage, "to/mean", "a", "2.5");
  expect_first (storage, "to/mean", "b/step", "4");
  expect_first (storage, "to/mean", "w", "4");
  g_autofree char *files = files_in (storage, "to");
  MUSTER_EXPECT_TRUE (strstr (files, "checkpoint") == NULL); /* nobody lists it */
}

static void
expect_no_merge (MusterStorage *storage, const char *other, const char *why)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (merge (storage, "run/m-1", other, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_INVALID_ARGUMENT));
  MUSTER_EXPECT_TRUE (strstr (error->message, why) != NULL);
  g_autofree char *files = files_in (storage, "to");
  MUSTER_EXPECT_STREQ (files, "");
}

static void
write_only (MusterStorage *storage, const char *prefix, const char *name, const char *slice,
            MusterTensor *tensor)
{
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, prefix, NULL);
  add_tensor (writer, name, slice, tensor);
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, NULL));
}

MUSTER_TEST (Merge, names_the_first_difference)
{
  g_autoptr (MusterStorage) storage = MUSTER_STORAGE (memory_storage_new ());
  const gint64 dims[] = {2, 3}, part[] = {1, 3};
  write_only (storage, "run/m-1", "a", NULL, counting_int32 (2, dims, 0));
  write_only (storage, "run/type", "a", NULL, floats (6, 0));
  write_only (storage, "run/shape", "a", NULL, counting_int32 (1, dims, 0));
  write_only (storage, "run/name", "b", NULL, counting_int32 (2, dims, 0));
  expect_no_merge (storage, "run/type",
                   "the tensor 'a' has the type int32 in 'run/m-1', but float in 'run/type'");
  expect_no_merge (storage, "run/shape",
                   "the tensor 'a' has the shape [2,3] in 'run/m-1', but [2] in 'run/shape'");
  expect_no_merge (storage, "run/name", "'run/name' has no tensor 'a', which 'run/m-1' has");
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, "run/slices", NULL);
  add_tensor (writer, "a", "2 3 0,1:-", counting_int32 (2, part, 0));
  add_tensor (writer, "a", "2 3 1,1:-", counting_int32 (2, part, 0));
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, NULL));
  expect_no_merge (storage, "run/slices",
                   "the tensor 'a' is partitioned otherwise in 'run/m-1' than in 'run/slices'");
}

/* Half a unit in the last place of each type, and what a second rounding would lose. */
MUSTER_TEST (Merge, rounds_once)
{
  static const struct {
    MusterDType dtype;
    guint16 a, b, c, mean; /* bits */
  } cases[] = {
      {MUSTER_HALF, 0x3c00, 0x3c01, 0x3c01, 0x3c01}, /* 1, 1 + u, 1 + u: 1 + 2/3 u */
      {MUSTER_HALF, 0x3c00, 0x3c00, 0x3c01, 0x3c00}, /* 1 + 1/3 u */
      {MUSTER_HALF, 0x7bff, 0x7bff, 0x7bff, 0x7bff}, /* the sum is beyond the type */
      {MUSTER_BFLOAT16, 0x3f80, 0x3f81, 0x3f81, 0x3f81},
      {MUSTER_BFLOAT16, 0x7f7f, 0x7f7f, 0x7f7f, 0x7f7f},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterStorage) storage = MUSTER_STORAGE (memory_storage_new ());
    const guint16 bits[] = {cases[i].a, cases[i].b, cases[i].c};
    const char *const from[] = {"m-0", "m-1", "m-2", NULL};
    const MusterEditOptions options = {.storage = storage};
    g_autoptr (GError) error = NULL;
    for (gsize k = 0; k < 3; k++) {
      MusterTensor *tensor = muster_tensor_new (cases[i].dtype, 0, NULL);
      memcpy (muster_tensor_data_mutable (tensor), &bits[k], sizeof bits[k]);
      write_only (storage, from[k], "x", NULL, tensor);
    }
    MUSTER_EXPECT_TRUE (muster_checkpoint_merge (from, "mean", &options, NULL, NULL, NULL,
                                                 MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, "mean", &error);
    g_autoptr (MusterTensor) mean = muster_bundle_reader_read (reader, "x", &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (*(const guint16 *)muster_tensor_data (mean), cases[i].mean);
  }
}

/* 2, 2 + 2^-9, 2^-24 and 0: their mean is a little above the middle of 1 and the next number, where
 * a float between would be the middle itself. */
MUSTER_TEST (Merge, doesnt_round_to_float_first)
{
  static const guint16 bits[] = {0x4000, 0x4001, 0x0001, 0x0000};
  static const char *const from[] = {"m-0", "m-1", "m-2", "m-3", NULL};
  g_autoptr (MusterStorage) storage = MUSTER_STORAGE (memory_storage_new ());
  const MusterEditOptions options = {.storage = storage};
  g_autoptr (GError) error = NULL;
  for (gsize k = 0; k < G_N_ELEMENTS (bits); k++) {
    MusterTensor *tensor = muster_tensor_new (MUSTER_HALF, 0, NULL);
    memcpy (muster_tensor_data_mutable (tensor), &bits[k], sizeof bits[k]);
    write_only (storage, from[k], "x", NULL, tensor);
  }
  MUSTER_EXPECT_TRUE (muster_checkpoint_merge (from, "mean", &options, NULL, NULL, NULL,
                                               MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, "mean", &error);
  g_autoptr (MusterTensor) mean = muster_bundle_reader_read (reader, "x", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (*(const guint16 *)muster_tensor_data (mean), 0x3c01);
}

MUSTER_TEST (Extract, keeps_slices_and_refuses_a_pattern_without_a_match)
{
  g_autoptr (MusterStorage) storage = store_with ("run/m-5", 1);
  const MusterEditOptions options = {.storage = storage};
  const char *const some[] = {"w", "b/*", NULL}, *const none[] = {"a", "c*", NULL};
  g_autoptr (GError) error = NULL;
  MusterEditReport report;

  MUSTER_EXPECT_TRUE (muster_checkpoint_extract ("run/m-5", some, "to/small", &options, &report,
                                                 NULL, NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, "to/small", NULL);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (reader), 2);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_slices (reader, "w"), 2);
  MUSTER_EXPECT_EQ (report.bytes, 48 + 8);
  expect_first (storage, "to/small", "b/step", "1");

  MUSTER_EXPECT_FALSE (muster_checkpoint_extract ("run/m-5", none, "to/none", &options, NULL, NULL,
                                                  NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_NOT_FOUND));
  MUSTER_EXPECT_TRUE (strstr (error->message, "matches 'c*'") != NULL);
}

MUSTER_TEST (Extract, writes_npy_files)
{
  g_autoptr (MusterStorage) storage = store_with ("run/m-5", 1);
  const MusterEditOptions options = {.storage = storage};
  const char *const some[] = {"?", "b/step", NULL}, *const words[] = {"words", NULL};
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_checkpoint_extract_npy ("run/m-5", some, "to", &options, NULL, NULL,
                                                     NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *files = files_in (storage, "to");
  MUSTER_EXPECT_TRUE (strstr (files, "tempstate") == NULL);
  g_autoptr (GBytes) file = muster_storage_read (storage, "to/w.npy", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) w = muster_npy_read (file, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const gint32 *data = muster_tensor_data (w);
  MUSTER_EXPECT_TRUE (muster_tensor_n_elements (w) == 12 && data[0] == 1 && data[6] == 100);
  g_autoptr (GBytes) step = muster_storage_read (storage, "to/b/step.npy", &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (muster_checkpoint_extract_npy ("run/m-5", some, "to", &options, NULL, NULL,
                                                      NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_ALREADY_EXISTS));
  g_clear_error (&error);
  MUSTER_EXPECT_FALSE (muster_checkpoint_extract_npy ("run/m-5", words, "to", &options, NULL, NULL,
                                                      NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED));
}

/* A checkpoint's names are whoever's wrote it. */
MUSTER_TEST (Extract, writes_nothing_outside_its_directory)
{
  static const char *const names[] = {"../x", "/x", "a/../../x", "a//x", "..", ".", "a/"};
  const char *const all[] = {"*", NULL};
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (MusterStorage) storage = MUSTER_STORAGE (memory_storage_new ());
    const MusterEditOptions options = {.storage = storage};
    g_autoptr (GError) error = NULL;
    write_only (storage, "run/m", names[i], NULL, floats (1, 0));
    MUSTER_EXPECT_FALSE (muster_checkpoint_extract_npy ("run/m", all, "to", &options, NULL, NULL,
                                                        NULL, MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_INVALID_ARGUMENT));
  }
}

static gboolean
rename_as (MusterStorage *storage, const char *const *names, GError **error)
{
  const MusterEditOptions options = {.storage = storage, .replaces = TRUE};
  return muster_checkpoint_rename ("run/m-5", names, "to/m", &options, NULL, NULL, NULL,
                                   MUSTER_WAIT_FOREVER, NULL, error);
}

MUSTER_TEST (Rename, changes_names_and_beginnings_and_keeps_slices)
{
  g_autoptr (MusterStorage) storage = store_with ("run/m-5", 1);
  const char *const names[] = {"w", "a", "a", "w", "b/*", "c/d/*", NULL};
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (rename_as (storage, names, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, "to/m", NULL);
  g_auto (GStrv) found = muster_bundle_reader_names (reader);
  g_autofree char *joined = g_strjoinv (" ", found);
  MUSTER_EXPECT_STREQ (joined, "a c/d/step w words");
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_slices (reader, "a"), 2);
  expect_first (storage, "to/m", "w", "1");
  g_autoptr (MusterTensor) a = muster_bundle_reader_read (reader, "a", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (((const gint32 *)muster_tensor_data (a))[6], 100);
}

MUSTER_TEST (Rename, refuses_collisions_and_names_that_arent_there)
{
  g_autoptr (MusterStorage) storage = store_with ("run/m-5", 1);
  static const struct {
    const char *names[5];
    MusterError code;
  } cases[] = {
      {{"a", "w", NULL}, MUSTER_ERROR_ALREADY_EXISTS},
      {{"a", "x", "w", "x", NULL}, MUSTER_ERROR_ALREADY_EXISTS},
      {{"nothing", "x", NULL}, MUSTER_ERROR_NOT_FOUND},
      {{"c/*", "x/*", NULL}, MUSTER_ERROR_NOT_FOUND},
      {{"b/*", "x", NULL}, MUSTER_ERROR_INVALID_ARGUMENT},
      {{"a", "", NULL}, MUSTER_ERROR_INVALID_ARGUMENT},
      {{"a", "\xff", NULL}, MUSTER_ERROR_INVALID_ARGUMENT},
      {{"a", NULL}, MUSTER_ERROR_INVALID_ARGUMENT},
      {{NULL}, MUSTER_ERROR_INVALID_ARGUMENT},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (rename_as (storage, cases[i].names, &error));
    MUSTER_EXPECT_TRUE (muster_error_is (error, cases[i].code));
    MUSTER_EXPECT_FALSE (muster_checkpoint_exists (storage, "to/m"));
  }
}

MUSTER_TEST (Rename, refuses_objects)
{
  g_autofree char *from = golden ("objects-1");
  g_autofree char *to = in_tmpdir ("renamed");
  const char *const names[] = {"*", "x*", NULL};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (muster_checkpoint_rename (from, names, to, NULL, NULL, NULL, NULL,
                                                 MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED));
}

MUSTER_TEST (Extract, knows_objects_by_their_paths)
{
  g_autofree char *from = golden ("objects-1");
  g_autofree char *to = in_tmpdir ("npy");
  g_autofree char *file = g_strconcat (to, "/net/first/kernel.npy", NULL);
  const char *const names[] = {"net/first/*", NULL};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_checkpoint_extract_npy (from, names, to, NULL, NULL, NULL, NULL,
                                                     MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) kernel = muster_npy_load (file, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_tensor_n_elements (kernel), 12);
}

static char *
name_of_first (MusterStorage *storage, const char *directory, const char *part)
{
  g_auto (GStrv) names = muster_storage_list (storage, directory, NULL);
  for (char **name = names; name != NULL && *name != NULL; name++)
    if (strstr (*name, part) != NULL)
      return g_build_filename (directory, *name, NULL);
  return NULL;
}

/* Nothing is read back there unless it is asked for, and what was sent isn't sent again. */
MUSTER_TEST (Objects, are_copied_into_and_resumed)
{
  g_autoptr (MusterObjectStorage) objects = object_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (objects);
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  write_model (storage, "s3://run/m-5", 2000, 1);
  g_autoptr (MusterObjectStorage) dies = object_storage_process (objects);
  object_storage_stop_at (dies, 6, FALSE);
  MUSTER_EXPECT_FALSE (copy (MUSTER_STORAGE (dies), "s3://run/m-5", "s3://to/m-5",
                             MUSTER_COPY_LATEST_AUTO, NULL, NULL));
  g_autofree char *left = name_of_first (storage, "s3://to", ".saving-");
  MUSTER_ASSERT_TRUE (left != NULL);

  MUSTER_EXPECT_TRUE (
      copy (storage, "s3://run/m-5", "s3://to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (report.kept_bytes > 0 && report.is_latest);
  expect_first (storage, "s3://to/m-5", "a", "1");
  g_autofree char *temporary = name_of_first (storage, "s3://to", ".saving-");
  MUSTER_EXPECT_STREQ (temporary, NULL);
}

typedef struct {
  MusterStorage *storage;
  const char *to;
} Other;

static void
copy_another (gpointer data)
{
  const Other *other = data;
  MUSTER_EXPECT_TRUE (
      copy (other->storage, "s3://run/m-6", other->to, MUSTER_COPY_LATEST_AUTO, NULL, NULL));
}

/* Two copies into one directory: neither is lost. */
MUSTER_TEST (Objects, are_listed_though_another_was_faster)
{
  static const char *const files[] = {"checkpoint", "checkpoint.muster"};
  for (gsize i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autoptr (MusterObjectStorage) objects = object_storage_new ();
    g_autoptr (MusterObjectStorage) second = object_storage_process (objects);
    MusterStorage *storage = MUSTER_STORAGE (objects);
    Other other = {.storage = MUSTER_STORAGE (second), .to = "s3://to/m-6"};
    g_autoptr (GError) error = NULL;
    write_model (storage, "s3://run/m-5", 10, 1);
    write_model (storage, "s3://run/m-6", 10, 2);
    object_storage_before_replace (objects, files[i], copy_another, &other);

    MUSTER_EXPECT_TRUE (
        copy (storage, "s3://run/m-5", "s3://to/m-5", MUSTER_COPY_LATEST_AUTO, NULL, &error));

    MUSTER_ASSERT_NO_ERROR (error);
    g_autofree char *list = list_of (storage, "s3://to");
    MUSTER_EXPECT_STREQ (list, "s3://to/m-6 s3://to/m-5 s3://to/m-6");
    g_autoptr (MusterCheckpointRecord) record =
        muster_checkpoint_record_read (storage, "s3://to", NULL);
    MUSTER_EXPECT_EQ (record->checkpoints->len, 2);
  }
}

/* Whatever is damaged is found on the way in, though nothing is read back. */
MUSTER_TEST (Objects, have_no_damage_copied_into_them)
{
  g_autoptr (MusterObjectStorage) objects = object_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (objects);
  const char *const from[] = {"s3://run/m-5", NULL}, *const all[] = {"*", NULL};
  const char *const names[] = {"a", "x", NULL};
  const MusterEditOptions options = {.storage = storage};
  write_model (storage, "s3://run/m-5", 2000, 1);
  for (int shard = 0; shard < 3; shard++) {
    g_autofree char *path = g_strdup_printf ("s3://run/m-5.data-0000%d-of-00003", shard);
    g_autoptr (GBytes) good = muster_storage_read (storage, path, NULL);
    g_autofree guint8 *bad = g_memdup2 (g_bytes_get_data (good, NULL), g_bytes_get_size (good));
    bad[0] ^= 1;
    MUSTER_EXPECT_TRUE (
        muster_storage_replace (storage, path, bad, g_bytes_get_size (good), NULL, NULL, NULL));
    for (int i = 0; i < 4; i++) {
      g_autoptr (GError) error = NULL;
      const gint64 never = MUSTER_WAIT_FOREVER;
      const gboolean is_done =
          i == 0   ? copy (storage, *from, "s3://to/x", MUSTER_COPY_LATEST_AUTO, NULL, &error)
          : i == 1 ? muster_checkpoint_merge (from, "s3://to/x", &options, NULL, NULL, NULL, never,
                                              NULL, &error)
          : i == 2 ? muster_checkpoint_extract (*from, all, "s3://to/x", &options, NULL, NULL, NULL,
                                                never, NULL, &error)
                   : muster_checkpoint_rename (*from, names, "s3://to/x", &options, NULL, NULL,
                                               NULL, never, NULL, &error);
      MUSTER_EXPECT_FALSE (is_done);
      MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_DATA_LOSS));
      MUSTER_EXPECT_FALSE (muster_checkpoint_exists (storage, "s3://to/x"));
    }
    MUSTER_EXPECT_TRUE (muster_storage_replace (storage, path, g_bytes_get_data (good, NULL),
                                                g_bytes_get_size (good), NULL, NULL, NULL));
  }
}

MUSTER_TEST (Objects, get_averages_parts_other_names_and_numpy_files)
{
  g_autoptr (MusterObjectStorage) objects = object_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (objects);
  const char *const from[] = {"s3://run/m-5", "s3://run/m-6", NULL}, *const all[] = {"?", NULL};
  const char *const names[] = {"a", "x", NULL};
  const MusterEditOptions options = {.storage = storage, .replaces = TRUE, .reads_back = TRUE};
  const gint64 never = MUSTER_WAIT_FOREVER;
  write_model (storage, from[0], 2000, 1);
  write_model (storage, from[1], 2000, 4);
  for (int i = 0; i < 2; i++) { /* and again over what is there */
    g_autoptr (GError) error = NULL;
    muster_checkpoint_merge (from, "s3://to/mean", &options, NULL, NULL, NULL, never, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    expect_first (storage, "s3://to/mean", "a", "2.5");
    muster_checkpoint_rename (from[0], names, "s3://to/new", &options, NULL, NULL, NULL, never,
                              NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    expect_first (storage, "s3://to/new", "x", "1");
    muster_checkpoint_extract (from[0], all, "s3://to/part", &options, NULL, NULL, NULL, never,
                               NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    expect_first (storage, "s3://to/part", "w", "1");
    muster_checkpoint_extract_npy (from[0], all, "s3://npy", &options, NULL, NULL, NULL, never,
                                   NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (GBytes) file = muster_storage_read (storage, "s3://npy/a.npy", &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (MusterTensor) a = muster_npy_read (file, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (muster_tensor_n_elements (a), 2000);
  }
}
