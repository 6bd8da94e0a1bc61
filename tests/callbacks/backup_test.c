// SPDX-License-Identifier: Apache-2.0
/* When a backup is saved: behaviours B004 and D004, by their numbers. */
#include "callbacks/backup.h"

#include "tests/callbacks/backup_fixture.h"
#include "tests/gtest_shim.h"

#include <stdio.h>
#include <string.h>

#define EVERY(count)                                                                               \
  {                                                                                                \
    .kind = MUSTER_SAVE_EVERY_N, .n = (count)                                                      \
  }

/* --- options --- */

/* B004.1, B004.2 */
MUSTER_TEST (Backup, touches_nothing_when_it_is_made)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {.backup_dir = in, .program = program_operations (&program)};
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
                                 .program = program_operations (&program)};
    MUSTER_EXPECT_NULL (muster_backup_new (&wrong, &refused));
    MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (g_str_has_prefix (refused->message, "Empty `backup_dir` argument passed"));
  }
}

MUSTER_TEST (Backup, goes_where_its_directory_s_scheme_leads)
{
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {.program = program_operations (&program)};
  for (int i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;
    options.backup_dir = i == 0 ? "s3://bucket/backup" : "gs://bucket/backup";
    g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
    MUSTER_EXPECT_EQ (backup != NULL, i == 0);
    if (i == 1)
      MUSTER_EXPECT_TRUE (strstr (error->message, "no store supports 'gs://'") != NULL);
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
  g_autofree char *in = backup_directory ();

  program_train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 7);

  g_autofree char *metadata = backup_get (in, "training_metadata.json");
  g_autofree char *file = backup_variables (in);
  static const char wanted[] =
      "{\"version\": 1, \"epoch\": 2, \"batch\": 0, \"after_batch\": 0, \"variables\": 2, ";
  MUSTER_EXPECT_TRUE (metadata && g_str_has_prefix (metadata, wanted));
  MUSTER_EXPECT_STREQ (file, "latest-2.canary");
  g_autofree char *canary = backup_get (in, file);
  MUSTER_EXPECT_STREQ (canary, "canary 6\n");
  MUSTER_EXPECT_FALSE (backup_is_there (in, "training_metadata.json.bkp"));
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
  g_autofree char *now = backup_get (self->in, "training_metadata.json");
  int epoch, batch;

  if (now != NULL && g_strcmp0 (now, self->last) != 0 &&
      sscanf (now, "{\"version\": 1, \"epoch\": %d, \"batch\": %d", &epoch, &batch) == 2)
    g_string_append_printf (self->seen, "%s(%d,%d)", self->seen->len > 0 ? " " : "", epoch, batch);
  g_free (self->last);
  self->last = g_steal_pointer (&now);
  return TRUE;
}

static gboolean
expect_batch (gint64 epoch G_GNUC_UNUSED, gint64 batch G_GNUC_UNUSED,
              gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
              gpointer data, GError **error G_GNUC_UNUSED)
{
  return look (data);
}

static gboolean
expect_epoch (gint64 epoch G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
              GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  return look (data);
}

static gboolean
do_nothing (const MusterFitPosition *at G_GNUC_UNUSED, gint64 n G_GNUC_UNUSED,
            gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
            gpointer data G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static char *
where_saved (const char *in, MusterSaveFreq freq, gint64 n_batches, gint64 per_call)
{
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {
      .backup_dir = in, .save_freq = freq, .program = program_operations (&program)};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
  Watcher watcher = {.in = in, .seen = g_string_new (NULL)};
  MusterFitCallback callbacks[] = {
      muster_backup_callback (backup),
      {.batch_end = expect_batch, .epoch_end = expect_epoch, .user_data = &watcher}};
  MusterFit fit = {.train = do_nothing,
                   .n_epochs = 2,
                   .n_batches = n_batches,
                   .batches_per_call = per_call,
                   .callbacks = callbacks,
                   .n_callbacks = 2};
  MUSTER_EXPECT_TRUE (muster_fit (&fit, NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_free (watcher.last);
  return g_string_free (watcher.seen, FALSE);
}

/* B004.15, B004.16: the count runs across epochs, whose ends don't save */
MUSTER_TEST (Backup, saves_every_so_many_batches_across_epochs)
{
  g_autofree char *in = backup_directory ();
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
  g_autofree char *in = backup_directory ();
  g_autofree char *every_3 = where_saved (in, (MusterSaveFreq)EVERY (3), 6, 2);
  g_autofree char *every_2 = where_saved (in, (MusterSaveFreq)EVERY (2), 6, 2);

  MUSTER_EXPECT_STREQ (every_3, "(0,3) (1,1) (1,5)");
  MUSTER_EXPECT_STREQ (every_2, "(0,1) (0,3) (0,5) (1,1) (1,3) (1,5)");
}

/* B004.18, B004.28 with D004.11 */
MUSTER_TEST (Backup, counts_each_training_anew)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {
      .backup_dir = in, .save_freq = EVERY (100), .program = program_operations (&program)};
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
MUSTER_TEST (Backup, keeps_the_one_before_where_it_is_asked_to)
{
  g_autofree char *in = backup_directory ();
  MusterBackupOptions options = {.backup_dir = in, .double_checkpoint = TRUE};

  program_train_until (options, 5, 3, 4);
  MUSTER_EXPECT_FALSE (backup_is_there (in, "training_metadata.json.bkp"));
  program_train_until (options, 5, 3, 4); /* goes on: 3 to 7 */

  MUSTER_EXPECT_TRUE (backup_is_there (in, "training_metadata.json.bkp"));
  MUSTER_EXPECT_TRUE (backup_is_there (in, "latest-1.canary"));
  MUSTER_EXPECT_TRUE (backup_is_there (in, "latest-2.canary"));
}

/* MUSTER_SAVE_NEVER is for who asks. */
MUSTER_TEST (Backup, saves_when_it_is_asked_while_it_trains)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {.backup_dir = in,
                                 .save_freq = {.kind = MUSTER_SAVE_NEVER},
                                 .program = program_operations (&program)};
  g_autoptr (GError) error = NULL, refused = NULL;
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
  MusterFitCallback callback = muster_backup_callback (backup);
  MusterFitPosition start = {0, 0};

  MUSTER_EXPECT_FALSE (muster_backup_save (backup, MUSTER_WAIT_FOREVER, NULL, &refused));
  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_ASSERT_TRUE (callback.train_begin (&start, 3, MUSTER_WAIT_FOREVER, NULL, backup, &error));
  MUSTER_ASSERT_TRUE (callback.epoch_begin (4, MUSTER_WAIT_FOREVER, NULL, backup, &error));
  MUSTER_ASSERT_TRUE (callback.batch_end (4, 1, MUSTER_WAIT_FOREVER, NULL, backup, &error));
  MUSTER_EXPECT_TRUE (muster_backup_save (backup, MUSTER_WAIT_FOREVER, NULL, &error));
  callback.train_failed (NULL, backup);
  MUSTER_EXPECT_TRUE (callback.train_begin (&start, 3, MUSTER_WAIT_FOREVER, NULL, backup, &error));

  MUSTER_EXPECT_EQ (start.epoch, 4);
  MUSTER_EXPECT_EQ (start.batch, 2);
}
