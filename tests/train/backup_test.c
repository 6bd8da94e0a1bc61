// SPDX-License-Identifier: Apache-2.0
/* Backup and restore: behaviours B004 and D004, by their numbers. */
#include "train/backup.h"

#include "tests/doubles/crash_storage.h"
#include "tests/gtest_shim.h"
#include "tests/train/backup_fixture.h"
#include "train/backup_files_private.h"

#include <stdio.h>
#include <string.h>

#define EVERY(count)                                                                               \
  {                                                                                                \
    .kind = MUSTER_SAVE_EVERY_N, .n = (count)                                                      \
  }

static char *
directory (void)
{
  return g_build_filename (muster_test_tmpdir (), "work", "backup", NULL);
}

static gboolean
is_there (const char *in, const char *name)
{
  g_autofree char *path = g_build_filename (in, name, NULL);

  return g_file_test (path, G_FILE_TEST_EXISTS);
}

static void
put (const char *in, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (in, name, NULL);

  MUSTER_EXPECT_TRUE (g_file_set_contents (path, text, -1, NULL));
}

static char *
get (const char *in, const char *name)
{
  g_autofree char *path = g_build_filename (in, name, NULL);
  char *text = NULL;

  (void)g_file_get_contents (path, &text, NULL, NULL);

  return text;
}

/* The one file of the variables that there is, as "latest-3.canary"; with several, the last. */
static char *
variables (const char *in)
{
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), in, NULL);
  char *found = NULL;

  for (char **file = files; file && *file; file++)
    if (g_str_has_prefix (*file, "latest-")) {
      g_free (found);
      found = g_strdup (*file);
    }

  return found;
}

/* Trains until an interruption after n batches, which stays. */
static void
train_on_until (MusterStorage *storage, MusterBackupOptions options, gint64 n_epochs,
                gint64 n_batches, gint64 fails_after)
{
  g_auto (Program) program = program_new (storage);
  g_autoptr (GError) error = NULL;

  program.fails_after = fails_after;
  MUSTER_EXPECT_FALSE (program_fit (&program, options, n_epochs, n_batches, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
}

static void
train_until (MusterBackupOptions options, gint64 n_epochs, gint64 n_batches, gint64 fails_after)
{
  train_on_until (muster_local_storage (), options, n_epochs, n_batches, fails_after);
}

/* --- options --- */

/* B004.1, B004.2 */
MUSTER_TEST (Backup, touches_nothing_when_it_is_made)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {.backup_dir = in, .program = program_verbs (&program)};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MusterBackupCounters counters = muster_backup_counters (backup);
  MUSTER_EXPECT_EQ (counters.since_save, 0);
  MUSTER_EXPECT_EQ (counters.n_batches, 0);
  MUSTER_EXPECT_EQ (counters.epoch, 0);
  MUSTER_EXPECT_FALSE (g_file_test (in, G_FILE_TEST_EXISTS));
  for (int i = 0; i < 2; i++) {
    g_autoptr (GError) refused = NULL;
    MusterBackupOptions wrong = {.backup_dir = i == 0 ? NULL : "",
                                 .save_freq = EVERY (-1), /* looked at after the directory */
                                 .program = program_verbs (&program)};
    MUSTER_EXPECT_NULL (muster_backup_new (&wrong, &refused));
    MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (g_str_has_prefix (refused->message, "Empty `backup_dir` argument passed"));
  }
}

/* B004.3, B004.4, D004.2 */
MUSTER_TEST (Backup, reads_how_often_it_saves)
{
  static const char *const wrong[] = {"batch", "0.15", "0", "-1", "", "epochs", "3x"};
  MusterSaveFreq freq = {0};
  g_autoptr (GError) error = NULL;

  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) refused = NULL;
    MUSTER_EXPECT_FALSE (muster_save_freq_parse (wrong[i], &freq, &refused));
    MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    g_autofree char *received = g_strdup_printf ("Received: '%s'.", wrong[i]);
    MUSTER_EXPECT_TRUE (strstr (refused->message, "Invalid value for argument `save_freq`.") &&
                        strstr (refused->message, received) &&
                        strstr (refused->message, "'epoch'"));
  }
  MUSTER_EXPECT_TRUE (muster_save_freq_parse ("never", &freq, &error));
  MUSTER_EXPECT_EQ (freq.kind, MUSTER_SAVE_NEVER);
  MUSTER_EXPECT_TRUE (muster_save_freq_parse ("epoch", &freq, &error));
  MUSTER_EXPECT_EQ (freq.kind, MUSTER_SAVE_EPOCH);
  MUSTER_EXPECT_TRUE (muster_save_freq_parse ("20", &freq, &error));
  MUSTER_EXPECT_EQ (freq.kind, MUSTER_SAVE_EVERY_N);
  MUSTER_EXPECT_EQ (freq.n, 20);
  MusterSaveFreq zero = EVERY (0);
  MUSTER_EXPECT_FALSE (muster_save_freq_check (&zero, NULL));
}

/* --- saving --- */

/* B004.5, B004.14, B004.19, B004.23: "epoch" saves after each epoch, and batches never */
MUSTER_TEST (Backup, saves_where_the_next_epoch_begins)
{
  g_autofree char *in = directory ();

  train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 7);

  g_autofree char *metadata = get (in, "training_metadata.json");
  g_autofree char *file = variables (in);
  static const char wanted[] =
      "{\"version\": 1, \"epoch\": 2, \"batch\": 0, \"after_batch\": 0, \"variables\": 2, ";
  MUSTER_EXPECT_TRUE (metadata && g_str_has_prefix (metadata, wanted));
  MUSTER_EXPECT_STREQ (file, "latest-2.canary");
  g_autofree char *canary = get (in, file);
  MUSTER_EXPECT_STREQ (canary, "canary 6\n");
  MUSTER_EXPECT_FALSE (is_there (in, "training_metadata.json.bkp"));
}

/* Where it has been saved, seen from outside: "(0,1) (1,0)". */
typedef struct {
  const char *in;
  GString *seen;
  char *last;
} Watcher;

static gboolean
look (Watcher *self)
{
  g_autofree char *now = get (self->in, "training_metadata.json");
  int epoch, batch;

  if (now && g_strcmp0 (now, self->last) != 0 &&
      sscanf (now, "{\"version\": 1, \"epoch\": %d, \"batch\": %d", &epoch, &batch) == 2)
    g_string_append_printf (self->seen, "%s(%d,%d)", self->seen->len > 0 ? " " : "", epoch, batch);
  g_free (self->last);
  self->last = g_steal_pointer (&now);

  return TRUE;
}

static gboolean
look_at_batch (G_GNUC_UNUSED gint64 epoch, G_GNUC_UNUSED gint64 batch, gpointer data,
               G_GNUC_UNUSED GError **error)
{
  return look (data);
}

static gboolean
look_at_epoch (G_GNUC_UNUSED gint64 epoch, gpointer data, G_GNUC_UNUSED GError **error)
{
  return look (data);
}

static gboolean
do_nothing (G_GNUC_UNUSED const MusterFitPosition *at, G_GNUC_UNUSED gint64 n,
            G_GNUC_UNUSED gpointer data, G_GNUC_UNUSED GError **error)
{
  return TRUE;
}

static char *
where_saved (const char *in, MusterSaveFreq freq, gint64 n_batches, gint64 per_call)
{
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {
      .backup_dir = in, .save_freq = freq, .program = program_verbs (&program)};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
  Watcher watcher = {.in = in, .seen = g_string_new (NULL)};
  MusterFitCallback callbacks[] = {
      muster_backup_callback (backup),
      {.batch_end = look_at_batch, .epoch_end = look_at_epoch, .user_data = &watcher}};
  MusterFit fit = {.train = do_nothing,
                   .n_epochs = 2,
                   .n_batches = n_batches,
                   .batches_per_call = per_call,
                   .callbacks = callbacks,
                   .n_callbacks = 2};

  MUSTER_EXPECT_TRUE (muster_fit (&fit, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_free (watcher.last);

  return g_string_free (watcher.seen, FALSE);
}

/* B004.15, B004.16: the count runs across epochs, whose ends don't save */
MUSTER_TEST (Backup, saves_every_so_many_batches_across_epochs)
{
  g_autofree char *in = directory ();
  g_autofree char *every_2 = where_saved (in, (MusterSaveFreq)EVERY (2), 3, 1);
  g_autofree char *every_4 = where_saved (in, (MusterSaveFreq)EVERY (4), 3, 1);
  g_autofree char *by_epoch = where_saved (in, (MusterSaveFreq){0}, 3, 1);
  g_autofree char *never = where_saved (in, (MusterSaveFreq){.kind = MUSTER_SAVE_NEVER}, 3, 1);

  MUSTER_EXPECT_STREQ (every_2, "(0,1) (1,0) (1,2)");
  MUSTER_EXPECT_STREQ (every_4, "(1,0)");
  MUSTER_EXPECT_STREQ (by_epoch, "(1,0) (2,0)");
  MUSTER_EXPECT_STREQ (never, ""); /* D004.2 */
}

/* B004.15 (the overshoot is dropped), B004.17, D004.4: 2, 4, 6, 6 batches have been seen, and again
 */
MUSTER_TEST (Backup, counts_every_batch_of_a_call)
{
  g_autofree char *in = directory ();
  g_autofree char *every_3 = where_saved (in, (MusterSaveFreq)EVERY (3), 6, 2);
  g_autofree char *every_2 = where_saved (in, (MusterSaveFreq)EVERY (2), 6, 2);

  MUSTER_EXPECT_STREQ (every_3, "(0,3) (1,1) (1,5)");
  MUSTER_EXPECT_STREQ (every_2, "(0,1) (0,3) (0,5) (1,1) (1,3) (1,5)");
}

/* B004.18, B004.28 with D004.11 */
MUSTER_TEST (Backup, counts_each_training_anew)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {
      .backup_dir = in, .save_freq = EVERY (100), .program = program_verbs (&program)};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);

  MUSTER_EXPECT_TRUE (
      program_fit_with (&program, backup, 2, 3, 0, (MusterFitPosition){0, 0}, &error));
  MusterBackupCounters after = muster_backup_counters (backup);
  MUSTER_EXPECT_EQ (after.epoch, 2);
  MUSTER_EXPECT_EQ (after.n_batches, 0);
  MUSTER_EXPECT_EQ (after.since_save, 6);
  MUSTER_EXPECT_TRUE (
      program_fit_with (&program, backup, 1, 3, 0, (MusterFitPosition){0, 0}, &error));
  after = muster_backup_counters (backup);
  MUSTER_EXPECT_EQ (after.epoch, 1);
  MUSTER_EXPECT_EQ (after.since_save, 3);
}

/* B004.20 */
MUSTER_TEST (Backup, keeps_the_one_before_where_it_is_told_to)
{
  g_autofree char *in = directory ();
  MusterBackupOptions options = {.backup_dir = in, .double_checkpoint = TRUE};

  train_until (options, 5, 3, 4);
  MUSTER_EXPECT_FALSE (is_there (in, "training_metadata.json.bkp"));
  train_until (options, 5, 3, 4); /* goes on: 3 to 7 */

  MUSTER_EXPECT_TRUE (is_there (in, "training_metadata.json.bkp"));
  MUSTER_EXPECT_TRUE (is_there (in, "latest-1.canary"));
  MUSTER_EXPECT_TRUE (is_there (in, "latest-2.canary"));
}

/* MUSTER_SAVE_NEVER is for who asks. */
MUSTER_TEST (Backup, saves_when_it_is_asked_while_it_trains)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {.backup_dir = in,
                                 .save_freq = {.kind = MUSTER_SAVE_NEVER},
                                 .program = program_verbs (&program)};
  g_autoptr (GError) error = NULL, refused = NULL;
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
  MusterFitCallback callback = muster_backup_callback (backup);
  MusterFitPosition start = {0, 0};

  MUSTER_EXPECT_FALSE (muster_backup_save (backup, &refused));
  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_ASSERT_TRUE (callback.train_begin (&start, 3, backup, &error));
  MUSTER_ASSERT_TRUE (callback.epoch_begin (4, backup, &error));
  MUSTER_ASSERT_TRUE (callback.batch_end (4, 1, backup, &error));
  MUSTER_EXPECT_TRUE (muster_backup_save (backup, &error));
  callback.train_failed (NULL, backup);
  MUSTER_EXPECT_TRUE (callback.train_begin (&start, 3, backup, &error));

  MUSTER_EXPECT_EQ (start.epoch, 4);
  MUSTER_EXPECT_EQ (start.batch, 2);
}

/* --- coming back --- */

/* B004.7, B004.22, D004.10: without a backup an unbuilt model is no trouble */
MUSTER_TEST (Backup, leaves_a_training_alone_that_has_none)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  MusterBackupOptions options = {.backup_dir = in, .program = program_verbs (&program)};
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
  program.is_unbuilt = TRUE;

  MUSTER_EXPECT_TRUE (
      program_fit_with (&program, backup, 3, 3, 0, (MusterFitPosition){2, 0}, &error));

  MUSTER_EXPECT_STREQ (program.diary->str, "begin 2, end 2 0, end 2 1, end 2 2, epoch 2, over");
  MUSTER_EXPECT_FALSE (program.has_optimizer);
  MUSTER_EXPECT_FALSE (g_file_test (in, G_FILE_TEST_EXISTS)); /* B004.22: removed */
}

/* B004.6 */
MUSTER_TEST (Backup, wants_a_model_that_is_built_where_there_is_something_to_restore)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 4);
  program.is_unbuilt = TRUE;

  MUSTER_EXPECT_FALSE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (strstr (error->message, "must be built before you call `fit()`") != NULL);
}

/* B004.8, B004.9, B004.26 */
MUSTER_TEST (Backup, goes_on_with_the_epoch_after_the_last_one_saved)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 6);

  MUSTER_EXPECT_TRUE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (program.diary->str, "build, restore, begin 2, end 2 0"));
  MUSTER_EXPECT_EQ (program.canary, 15);
  MUSTER_EXPECT_EQ (program.n_trained, 9);
}

/* B004.27 with D004.1: no batch twice, also where nobody says how many there are */
MUSTER_TEST (Backup, goes_on_after_the_very_batch)
{
  for (gint64 n_batches = 0; n_batches <= 3; n_batches += 3)
    for (gint64 fails = 0; fails < 15; fails++) {
      g_autoptr (MusterCrashStorage) storage = muster_crash_storage_new ();
      g_auto (Program) program = program_new (MUSTER_STORAGE (storage));
      g_autoptr (GError) error = NULL;
      MusterBackupOptions options = {.backup_dir = "/backup", .save_freq = EVERY (1)};
      train_on_until (MUSTER_STORAGE (storage), options, 5, n_batches, fails);

      MUSTER_EXPECT_TRUE (program_fit (&program, options, 5, n_batches, &error));

      MUSTER_EXPECT_NO_ERROR (error);
      MUSTER_EXPECT_EQ (program.canary, 15);
      MUSTER_EXPECT_EQ (program.n_trained, 15 - fails);
    }
}

/* D004.3: the second crash doesn't start over */
MUSTER_TEST (Backup, knows_its_epoch_after_it_came_back)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  MusterBackupOptions options = {.backup_dir = in, .save_freq = EVERY (2)};
  train_until (options, 5, 3, 9);
  train_until (options, 5, 3, 3); /* from 8 on: saved after 10, in epoch 3 */

  MUSTER_EXPECT_TRUE (program_fit (&program, options, 5, 3, &error));

  MUSTER_EXPECT_TRUE (g_str_has_prefix (program.diary->str, "build, restore, begin 3, end 3 1"));
  MUSTER_EXPECT_EQ (program.canary, 15);
}

/* B004.24: the callbacks' order; and an interruption at the beginning of epoch 4 of 10 */
MUSTER_TEST (Backup, has_saved_when_a_callback_behind_it_fails)
{
  g_autofree char *in = directory ();
  g_auto (Program) first = program_new (muster_local_storage ());
  g_auto (Program) second = program_new (muster_local_storage ());
  g_auto (Program) third = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  MusterBackupOptions options = {.backup_dir = in};
  first.fails_epoch_end = 1;
  second.fails_epoch_begin = 4;

  MUSTER_EXPECT_FALSE (program_fit (&first, options, 10, 1, NULL));
  MUSTER_EXPECT_TRUE (g_str_has_suffix (first.diary->str, "epoch 1, failed")); /* B004.23 */
  MUSTER_EXPECT_FALSE (program_fit (&second, options, 10, 1, NULL));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (second.diary->str, "build, restore, begin 2"));
  MUSTER_EXPECT_TRUE (program_fit (&third, options, 10, 1, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (third.n_trained, 6);
  MUSTER_EXPECT_EQ (third.canary, 10);
}

/* B004.22, B004.25 */
MUSTER_TEST (Backup, trains_nothing_where_all_has_been_trained)
{
  g_autofree char *in = directory ();
  MusterBackupOptions options = {.backup_dir = in, .keep = TRUE};

  for (int life = 0; life < 2; life++) {
    g_auto (Program) program = program_new (muster_local_storage ());
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_TRUE (program_fit (&program, options, 3, 3, &error));
    MUSTER_EXPECT_EQ (program.n_trained, life == 0 ? 9 : 0);
    MUSTER_EXPECT_EQ (program.canary, 9);
    MUSTER_EXPECT_TRUE (is_there (in, "training_metadata.json"));
  }
}

/* --- what can't be read --- */

static void
expect_comes_back (const char *in, gint64 trained_before)
{
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;

  /* B004.13: without double_checkpoint */
  MUSTER_EXPECT_TRUE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (program.canary, 15);
  MUSTER_EXPECT_EQ (program.n_trained, 15 - trained_before);
}

/* B004.12, B004.13, D004.5: any damage of either file */
MUSTER_TEST (Backup, goes_back_to_the_one_before_where_the_newest_is_damaged)
{
  static const struct {
    const char *file; /* NULL: the variables */
    const char *text; /* NULL: it is gone */
  } damages[] = {{"training_metadata.json", ""},
                 {"training_metadata.json", NULL},
                 {"training_metadata.json", "{\"epoch\": 9, \"batch\": 0}"},
                 {"training_metadata.json", "{\"epoch\": \"many\"}"},
                 {NULL, "garbage"},
                 {NULL, NULL}};

  for (gsize i = 0; i < G_N_ELEMENTS (damages); i++) {
    g_autofree char *in = directory ();
    MusterBackupOptions options = {.backup_dir = in, .double_checkpoint = TRUE};
    train_until (options, 5, 3, 4);
    train_until (options, 5, 3, 4); /* another run's backup is the newer one */
    g_autofree char *file = variables (in);
    MUSTER_EXPECT_STREQ (file, "latest-2.canary");
    const char *damaged = damages[i].file ? damages[i].file : file;
    g_autofree char *path = g_build_filename (in, damaged, NULL);
    if (damages[i].text)
      put (in, damaged, damages[i].text);
    else
      MUSTER_EXPECT_EQ (remove (path), 0);

    expect_comes_back (in, 3);
  }
}

/* D004.5: a single digit */
MUSTER_TEST (Backup, notices_a_number_that_has_changed)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 8);
  g_autofree char *metadata = get (in, "training_metadata.json");
  g_auto (GStrv) parts = g_strsplit (metadata, "\"epoch\": 2", 2);
  g_autofree char *changed = g_strjoinv ("\"epoch\": 3", parts);
  MUSTER_EXPECT_TRUE (g_strcmp0 (changed, metadata) != 0);
  put (in, "training_metadata.json", changed);

  MUSTER_EXPECT_FALSE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS); /* B004.11: that very error */
  MUSTER_EXPECT_EQ (program.n_trained, 0);
}

/* D004.5: any single bit, and any length */
MUSTER_TEST (Backup, takes_no_metadata_that_have_changed)
{
  const MusterBackupMetadata metadata = {
      .epoch = 12, .batch = 345, .after_batch = 1, .variables = 67, .run = G_MAXINT64};
  g_autofree char *text = muster_backup_metadata_print (&metadata);
  gsize size = strlen (text);

  for (gsize bit = 0; bit < size * 8; bit++) {
    g_autofree char *changed = g_memdup2 (text, size);
    changed[bit / 8] ^= (char)(1 << bit % 8);
    g_autoptr (GBytes) bytes = g_bytes_new (changed, size);
    MusterBackupMetadata read = {0};
    if (muster_backup_metadata_parse ("f", bytes, &read, NULL)) /* another kind of blank */
      MUSTER_EXPECT_MEMEQ (&read, sizeof read, &metadata, sizeof metadata);
  }
  for (gsize length = 0; length < size - 1; length++) {
    g_autoptr (GBytes) bytes = g_bytes_new (text, length);
    MusterBackupMetadata read = {0};
    MUSTER_EXPECT_FALSE (muster_backup_metadata_parse ("f", bytes, &read, NULL));
  }
  g_autofree char *deep = g_strnfill (4000, '[');
  g_autoptr (GBytes) nested = g_bytes_new (deep, 4000);
  MusterBackupMetadata read = {0};
  MUSTER_EXPECT_FALSE (muster_backup_metadata_parse ("f", nested, &read, NULL));
}

/* B004.11 */
MUSTER_TEST (Backup, fails_with_what_it_found_where_there_is_none_before)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 8);
  put (in, "latest-2.canary", "garbage");

  MUSTER_EXPECT_FALSE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_TRUE (strstr (error->message, "latest-2.canary' is garbage") != NULL);
}

/* B004.12 (a second failure is returned), D004.7: and nothing has been put over anything */
MUSTER_TEST (Backup, leaves_two_damaged_ones_as_they_are)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  train_until ((MusterBackupOptions){.backup_dir = in, .double_checkpoint = TRUE}, 5, 3, 8);
  put (in, "training_metadata.json", "newest");
  put (in, "latest-1.canary", "garbage");

  MUSTER_EXPECT_FALSE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_TRUE (strstr (error->message, "latest-1.canary") != NULL);
  g_autofree char *newest = get (in, "training_metadata.json");
  MUSTER_EXPECT_STREQ (newest, "newest");
}

/* B004.10 with D004.9 */
MUSTER_TEST (Backup, begins_anew_where_the_variables_are_gone)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 8);
  g_autofree char *path = g_build_filename (in, "latest-2.canary", NULL);
  MUSTER_ASSERT_EQ (remove (path), 0);

  MUSTER_EXPECT_TRUE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (program.n_trained, 15);
}

/* --- others --- */

/* D004.8 */
MUSTER_TEST (Backup, deletes_what_it_wrote_and_nothing_else)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  train_until ((MusterBackupOptions){.backup_dir = in, .double_checkpoint = TRUE}, 5, 3, 8);
  put (in, "notes.txt", "mine");
  put (in, "latest-2nd.txt", "mine");
  put (in, ".saving-0123abcd-latest-7.index", "of a save that was killed");

  MUSTER_EXPECT_TRUE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  g_auto (GStrv) left = muster_storage_list (muster_local_storage (), in, NULL);
  g_autofree char *names = g_strjoinv (" ", left);
  MUSTER_EXPECT_STREQ (names, "latest-2nd.txt notes.txt");
}

/* D004.12 */
MUSTER_TEST (Backup, refuses_a_second_run_in_its_directory)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_auto (Program) other = program_new (muster_local_storage ());
  MusterBackupOptions options = {.backup_dir = in, .program = program_verbs (&program)};
  g_autoptr (GError) error = NULL, refused = NULL;
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
  MusterFitCallback callback = muster_backup_callback (backup);
  MusterFitPosition start = {0, 0};
  MUSTER_ASSERT_TRUE (callback.train_begin (&start, 3, backup, &error));

  MUSTER_EXPECT_FALSE (
      program_fit (&other, (MusterBackupOptions){.backup_dir = in}, 5, 3, &refused));

  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_EQ (other.n_trained, 0);
  MUSTER_ASSERT_TRUE (callback.train_end (backup, &error));
  MUSTER_EXPECT_TRUE (program_fit (&other, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));
}

/* D004.12, where the lock is lost: by the run's number */
MUSTER_TEST (Backup, notices_another_run_by_what_that_has_written)
{
  g_autofree char *in = directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {.backup_dir = in, .program = program_verbs (&program)};
  g_autoptr (GError) error = NULL, refused = NULL;
  train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 4);
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
  MusterFitCallback callback = muster_backup_callback (backup);
  MusterFitPosition start = {0, 0};
  MUSTER_ASSERT_TRUE (callback.train_begin (&start, 3, backup, &error));
  MUSTER_ASSERT_TRUE (callback.epoch_end (1, backup, &error)); /* over the run's before it: fine */
  g_autofree char *lock = g_build_filename (in, ".backup.lock", NULL);
  MUSTER_ASSERT_EQ (remove (lock), 0);
  train_until ((MusterBackupOptions){.backup_dir = in}, 9, 3, 4);

  MUSTER_EXPECT_FALSE (callback.epoch_end (2, backup, &refused));

  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}
