// SPDX-License-Identifier: Apache-2.0
/* Copies of checkpoints: what they take along, resume and refuse; and how each operation that makes
 * one of others ends early. tests/tensorflow/edit_test.py has TensorFlow read the results. */
#include "base/error.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/quarantine.h"
#include "tests/checkpoint/edit_fixture.h"
#include "tests/doubles/memory_storage.h"

#include <string.h>

MUSTER_TEST (Copy, is_byte_for_byte_with_its_meta_graph)
{
  g_autoptr (MusterMemoryStorage) memory = MUSTER_MEMORY_STORAGE (edit_store_with ("run/m-5", 1));
  MusterStorage *storage = MUSTER_STORAGE (memory);
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  memory_storage_put (memory, "run/m-5.meta", "graph", 5);

  MUSTER_EXPECT_TRUE (
      edit_copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error));

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
  g_autofree char *files = edit_files_in (storage, "to");
  MUSTER_EXPECT_TRUE (strstr (files, ".saving-") == NULL);
}

/* The record says what a save would have. */
MUSTER_TEST (Copy, takes_along_what_is_known_of_the_original)
{
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-5", 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_new ();
  MusterSideCheckpoint *one = muster_checkpoint_record_ensure (record, "m-5");
  one->step = 5;
  one->epoch = 7;
  one->time = 1234567;
  one->run = g_strdup ("the run");
  one->preserved = TRUE;
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_write (storage, "run", record, NULL));

  MUSTER_EXPECT_TRUE (
      edit_copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, NULL, &error));

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
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-5", 1);
  edit_write_model (storage, "run/m-7", 10, 2);
  edit_write_model (storage, "run/m-6", 10, 3);
  g_autoptr (GError) error = NULL;
  MusterEditReport report;

  edit_copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error);
  edit_expect_list (storage, "to/m-5 to/m-5");
  edit_copy (storage, "run/m-7", "to/m-7", MUSTER_COPY_LATEST_AUTO, &report, &error);
  edit_expect_list (storage, "to/m-7 to/m-5 to/m-7");
  edit_copy (storage, "run/m-6", "to/m-6", MUSTER_COPY_LATEST_AUTO, &report, &error);
  edit_expect_list (storage, "to/m-7 to/m-5 to/m-6 to/m-7");
  MUSTER_EXPECT_FALSE (report.is_latest);
  edit_copy (storage, "run/m-6", "to/m-6", MUSTER_COPY_LATEST_ALWAYS, &report, &error);
  edit_expect_list (storage, "to/m-6 to/m-5 to/m-7 to/m-6");
  MUSTER_EXPECT_TRUE (report.is_latest && report.was_there);
  MUSTER_ASSERT_NO_ERROR (error);
}

MUSTER_TEST (Copy, doesnt_overtake_what_a_job_saved)
{
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-9", 1);
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  edit_write_model (storage, "to/m-3", 10, 2);
  muster_checkpoint_state_add (state, "to/m-3", 1000);
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_new ();
  muster_checkpoint_record_ensure (record, "m-3")->step = 3;
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_write (storage, "to", record, NULL));
  MUSTER_EXPECT_TRUE (muster_checkpoint_state_write (storage, "to", state, NULL));

  edit_copy (storage, "run/m-9", "to/m-9", MUSTER_COPY_LATEST_AUTO, &report, &error);
  MUSTER_EXPECT_FALSE (report.is_latest);
  edit_expect_list (storage, "to/m-3 to/m-9 to/m-3");
  edit_copy (storage, "run/m-9", "to/m-9", MUSTER_COPY_LATEST_ALWAYS, &report, &error);
  edit_expect_list (storage, "to/m-9 to/m-3 to/m-9");
  MUSTER_ASSERT_NO_ERROR (error);
}

/* In run, of the run's. */
static void
note_run (MusterStorage *storage, const char *run)
{
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_new ();
  for (gint64 step = 4; step <= 9; step++) {
    g_autofree char *name = g_strdup_printf ("m-%d", (int)step);
    MusterSideCheckpoint *one = muster_checkpoint_record_ensure (record, name);
    one->step = step;
    one->run = g_strdup (run);
  }
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_write (storage, "run", record, NULL));
}

/* A restore takes the one before the latest, if that is damaged. */
MUSTER_TEST (Copy, of_another_run_is_listed_before_all_of_the_job)
{
  static const char *const own[] = {"m-3", "m-5", "m-7"};
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-4", 1);
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_new ();
  g_autoptr (GError) error = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS (own); i++) {
    g_autofree char *prefix = g_build_filename ("to", own[i], NULL);
    MusterSideCheckpoint *one = muster_checkpoint_record_ensure (record, own[i]);
    edit_write_model (storage, prefix, 10, 2);
    muster_checkpoint_state_add (state, prefix, 1000);
    one->step = muster_checkpoint_step (prefix);
    one->run = g_strdup ("the job's");
  }
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_write (storage, "to", record, NULL));
  MUSTER_EXPECT_TRUE (muster_checkpoint_state_write (storage, "to", state, NULL));
  edit_write_model (storage, "run/m-6", 10, 1);
  edit_write_model (storage, "run/m-9", 10, 1);

  note_run (storage, "another");
  edit_copy (storage, "run/m-9", "to/m-9", MUSTER_COPY_LATEST_AUTO, NULL, &error);
  edit_copy (storage, "run/m-6", "to/m-6", MUSTER_COPY_LATEST_AUTO, NULL, &error);
  edit_expect_list (storage, "to/m-7 to/m-6 to/m-9 to/m-3 to/m-5 to/m-7");
  note_run (storage, "the job's");
  edit_copy (storage, "run/m-4", "to/m-4", MUSTER_COPY_LATEST_AUTO, NULL, &error);
  edit_expect_list (storage, "to/m-7 to/m-6 to/m-9 to/m-3 to/m-4 to/m-5 to/m-7");
  MUSTER_ASSERT_NO_ERROR (error);
}

MUSTER_TEST (Copy, refuses_another_checkpoint_of_that_name_and_repairs_the_same)
{
  g_autoptr (MusterMemoryStorage) memory = MUSTER_MEMORY_STORAGE (edit_store_with ("run/m-5", 1));
  MusterStorage *storage = MUSTER_STORAGE (memory);
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  edit_write_model (storage, "to/m-5", 10, 2);

  MUSTER_EXPECT_FALSE (
      edit_copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_ALREADY_EXISTS));
  edit_expect_first (storage, "to/m-5", "a", "2");
  g_clear_error (&error);

  const MusterEditOptions replaces = {.storage = storage, .replaces = TRUE};
  MUSTER_EXPECT_TRUE (muster_checkpoint_copy ("run/m-5", "to/m-5", &replaces, &report, NULL, NULL,
                                              MUSTER_WAIT_FOREVER, NULL, &error));
  edit_expect_first (storage, "to/m-5", "a", "1");

  g_auto (GStrv) names = muster_storage_list (storage, "to", NULL);
  for (char **name = names; *name != NULL; name++) {
    g_autofree char *path = g_strconcat ("to/", *name, NULL);
    GByteArray *file = memory_storage_file (memory, path);
    if (strstr (*name, ".data-") != NULL && file->len > 1000)
      file->data[100] ^= 1;
  }
  MUSTER_EXPECT_TRUE (
      edit_copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (report.was_there);
  edit_expect_first (storage, "to/m-5", "a", "1");
}

/* Every bit that a copy reads is checked, and what is damaged isn't published. */
MUSTER_TEST (Copy, finds_a_changed_bit)
{
  static const char *const ends[] = {".index", ".data-00000-of-00003", ".data-00001-of-00003",
                                     ".data-00002-of-00003"};
  g_autoptr (MusterMemoryStorage) memory = memory_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (memory);
  edit_write_model (storage, "run/m-5", 20, 1);
  for (gsize i = 0; i < G_N_ELEMENTS (ends); i++) {
    g_autofree char *path = g_strconcat ("run/m-5", ends[i], NULL);
    GByteArray *file = memory_storage_file (memory, path);
    for (guint k = 0; k < file->len; k++) {
      g_autoptr (GError) error = NULL;
      file->data[k] ^= 1;
      MUSTER_EXPECT_FALSE (
          edit_copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, NULL, &error));
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
  edit_write_model (NULL, from, 2000, 1);
  while (!is_done) {
    g_autoptr (MusterFaultyStorage) faulty = faulty_storage_new ((int)++n_attempts);
    is_done = edit_copy (MUSTER_STORAGE (faulty), from, to, MUSTER_COPY_LATEST_AUTO, NULL, NULL);
    n_begun += count_begun (faulty->log->str);
  }
  edit_expect_first (NULL, to, "a", "1");
  MUSTER_EXPECT_GT (n_attempts, 30);
  MUSTER_EXPECT_TRUE (n_begun > 0 && n_begun <= 6); /* create, reserve, append, sync, close */
}

/* What an interrupted copy left is believed only if its sums are right. */
MUSTER_TEST (Copy, checks_what_was_there)
{
  g_autoptr (MusterMemoryStorage) memory = MUSTER_MEMORY_STORAGE (edit_store_with ("run/m-5", 1));
  MusterStorage *storage = MUSTER_STORAGE (memory);
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  GByteArray *last = memory_storage_file (memory, "run/m-5.data-00002-of-00003");
  last->data[0] ^= 1;
  MUSTER_EXPECT_FALSE (
      edit_copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, NULL, NULL));
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
      edit_copy (storage, "run/m-5", "to/m-5", MUSTER_COPY_LATEST_AUTO, &report, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (report.kept_bytes > 0 && report.kept_bytes < 1000);
  edit_expect_first (storage, "to/m-5", "a", "1");
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
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-5", 1);
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
    g_autofree char *files = edit_files_in (storage, "to");
    MUSTER_EXPECT_STREQ (files, "");
  }
}

MUSTER_TEST (Edit, tells_its_progress_to_the_end)
{
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-5", 1);
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
  g_autoptr (MusterStorage) storage = edit_store_with ("run/m-5", 1);
  const MusterEditOptions options = {.storage = storage};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (muster_checkpoint_copy ("run/m-5", "to/x", &options, NULL, NULL, NULL,
                                               g_get_monotonic_time (), NULL, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED));
}
