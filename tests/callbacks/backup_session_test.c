// SPDX-License-Identifier: Apache-2.0
/* Backups of a session's variables, on the engine: what MusterSaver says of damage is what makes a
 * backup go back (behaviours B004.8, B004.12, D004.5). */
#include "callbacks/backup.h"
#include "callbacks/backup_files_private.h"
#include "engine/session/local_master.h"
#include "tests/doubles/sharded_model.h"
#include "tests/gtest_shim.h"

#include <string.h>
#include <unistd.h>

static const MusterShardedModel model = {.is_whole = TRUE};

typedef struct {
  MusterMaster *master;
  MusterSession *session;
  MusterSessionProgram *program;
  gint64 n_trained;
  gint64 fails_after; /* batches of this program; -1: never */
} Job;

static void
set_up (Job *job)
{
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (&model);
  g_autoptr (GError) error = NULL;
  *job = (Job){.master = muster_local_master_new (), .fails_after = -1};
  job->session = muster_master_create_session (job->master, muster_meta_graph_graph (meta_graph),
                                               NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
  job->program = muster_session_program_new (meta_graph, job->session, NULL, NULL, &error);
  g_assert_no_error (error);
}

static void
tear_down (Job *job)
{
  g_clear_pointer (&job->program, muster_session_program_free);
  g_clear_object (&job->session);
  g_clear_object (&job->master);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, tear_down)

/* The weights count the batches; a new program's have no values at all. */
static gboolean
train (const MusterFitPosition *at, gint64 n, gint64 deadline_us G_GNUC_UNUSED,
       GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error)
{
  Job *job = data;
  gboolean is_first = at->epoch == 0 && at->batch == 0;
  int weights = is_first ? 0 : muster_sharded_model_get (job->session, error);
  if (weights < 0)
    return FALSE;
  if (job->n_trained == job->fails_after) {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "interrupted");
    return FALSE;
  }
  job->n_trained += n;
  return muster_sharded_model_set (&model, job->session, (guint8)(weights + n), error);
}

static gboolean
fit (Job *job, const char *in, GError **error)
{
  MusterBackupOptions options = {.backup_dir = in,
                                 .save_freq = {.kind = MUSTER_SAVE_EVERY_N, .n = 1},
                                 .double_checkpoint = TRUE,
                                 .program = muster_session_program_operations (job->program)};
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, error);
  if (backup == NULL)
    return FALSE;
  MusterFitCallback callback = muster_backup_callback (backup);
  MusterFit what = {.train = train,
                    .user_data = job,
                    .n_epochs = 2,
                    .n_batches = 3,
                    .callbacks = &callback,
                    .n_callbacks = 1};
  return muster_fit (&what, NULL, MUSTER_WAIT_FOREVER, NULL, error);
}

static void
train_until (const char *in, gint64 fails_after)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job);
  job.fails_after = fails_after;
  MUSTER_EXPECT_FALSE (fit (&job, in, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
}

static void
expect_goes_on_after (const char *in, gint64 n)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job);
  MUSTER_EXPECT_TRUE (fit (&job, in, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (job.n_trained, 6 - n);
  MUSTER_EXPECT_EQ (muster_sharded_model_get (job.session, NULL), 6);
  MUSTER_EXPECT_FALSE (g_file_test (in, G_FILE_TEST_EXISTS)); /* not even a lock is left */
}

/* B004.8 */
MUSTER_TEST (BackupSession, goes_on_with_the_weights_after_the_very_batch)
{
  g_autofree char *in = g_build_filename (muster_test_tmpdir (), "backup", NULL);

  train_until (in, 4);

  expect_goes_on_after (in, 4);
}

static void
flip (const char *path)
{
  g_autofree char *bytes = NULL;
  gsize size = 0;

  MUSTER_EXPECT_TRUE (g_file_get_contents (path, &bytes, &size, NULL));
  bytes[size / 2] ^= 1;
  MUSTER_EXPECT_TRUE (g_file_set_contents (path, bytes, (gssize)size, NULL));
}

static void
cut (const char *path)
{
  MUSTER_EXPECT_EQ (truncate (path, 3), 0);
}

static void
drop (const char *path)
{
  MUSTER_EXPECT_EQ (unlink (path), 0);
}

/* B004.12, D004.5 */
MUSTER_TEST (BackupSession, goes_back_whatever_is_wrong_with_the_newest_files)
{
  static const char *const files[] = {"latest-4.index", "latest-4.data-00000-of-00001",
                                      "training_metadata.json"};
  static void (*const damages[]) (const char *path) = {flip, cut, drop};
  g_autofree char *in = g_build_filename (muster_test_tmpdir (), "backup", NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (files); i++)
    for (gsize j = 0; j < G_N_ELEMENTS (damages); j++) {
      g_autofree char *path = g_build_filename (in, files[i], NULL);
      train_until (in, 4);
      damages[j](path);
      expect_goes_on_after (in, i == 2 ? 4 : 3); /* the newest says itself where it stood */
      if (muster_test_has_failed ())
        muster_test_fail (__FILE__, __LINE__, "%s, damage %d", files[i], (int)j);
    }
}

/* One that isn't whole is no reason to begin anew. */
MUSTER_TEST (BackupSession, names_what_is_wrong_where_there_is_none_before)
{
  static const char *const files[] = {"latest-1.index", "latest-1.data-00000-of-00001"};
  static void (*const damages[]) (const char *path) = {flip, cut, drop};
  g_autofree char *in = g_build_filename (muster_test_tmpdir (), "backup", NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (files); i++)
    for (gsize j = 0; j < G_N_ELEMENTS (damages); j++) {
      g_autofree char *path = g_build_filename (in, files[i], NULL);
      g_auto (Job) job = {0};
      g_autoptr (GError) error = NULL;
      MUSTER_TRACE ("%s, damage %d", files[i], (int)j);
      train_until (in, 1);
      damages[j](path);
      set_up (&job);
      MUSTER_EXPECT_FALSE (fit (&job, in, &error));
      MUSTER_EXPECT_EQ (job.n_trained, 0);
      MUSTER_EXPECT_TRUE (error && strstr (error->message, "'latest-1': ") != NULL);
      MUSTER_EXPECT_TRUE (muster_backup_delete_files (muster_local_storage (), in, NULL));
    }
}
