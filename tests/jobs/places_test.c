// SPDX-License-Identifier: Apache-2.0
/* Whatever is given a directory refuses one with a scheme before it touches anything: it was taken
 * for a local folder of that name, whose checkpoints were called durable. */
#include "callbacks/backup.h"
#include "callbacks/worker_training_state.h"
#include "engine/session/local_master.h"
#include "jobs/job_checkpoint.h"
#include "saver/async/checkpoint_manager.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "train/hooks/hooks.h"
#include "train/monitored_training.h"
#include "train/position/position.h"
#include "train/train.h"

#include <glib/gstdio.h>

#define PLACE "hdfs://bucket/run"

typedef struct {
  char *before; /* the working directory */
  MusterMetaGraph *model;
  MusterScaffold *scaffold;
  MusterMaster *master;
  GError *error;
} Fixture;

static Fixture
set_up (void)
{
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&(MusterSeenModel){0});
  Fixture f = {.before = g_get_current_dir (),
               .model = muster_position_add (plain, 1, NULL),
               .master = muster_local_master_new ()};
  f.scaffold = muster_scaffold_new (f.model, NULL);
  g_assert (g_chdir (muster_test_tmpdir ()) == 0);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_autoptr (GDir) directory = g_dir_open (".", 0, NULL);
  MUSTER_EXPECT_STREQ (g_dir_read_name (directory), NULL); /* nothing was made */
  g_assert (g_chdir (f->before) == 0);
  g_free (f->before);
  muster_scaffold_unref (f->scaffold);
  muster_meta_graph_unref (f->model);
  g_clear_object (&f->master);
  g_clear_error (&f->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static void
expect_refused (Fixture *f, gconstpointer made)
{
  MUSTER_EXPECT_TRUE (made == NULL);
  MUSTER_EXPECT_ERROR (f->error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (f->error && strstr (f->error->message, PLACE));
  g_clear_error (&f->error);
}

MUSTER_TEST (Places, a_training_refuses_one_with_a_scheme)
{
  g_auto (Fixture) f = set_up ();
  static const char *const feeds[] = {"rows:0"};
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&(MusterSeenModel){0});
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_new (plain, NULL);
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  g_autoptr (MusterBatches) batches =
      muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
  const MusterTraining training = {.session.scaffold = scaffold,
                                   .session.master = f.master,
                                   .until_step = 1,
                                   .batches = batches,
                                   .feeds = feeds,
                                   .n_feeds = 1,
                                   .session.saving.checkpoint_dir = PLACE};
  const MusterMonitoredTrainingOptions saved = {
      .scaffold = f.scaffold, .master = f.master, .saving.checkpoint_dir = PLACE};
  const MusterMonitoredTrainingOptions told = {
      .scaffold = f.scaffold, .master = f.master, .summary_dir = PLACE};
  const MusterMonitoredTrainingOptions working = {.scaffold = f.scaffold,
                                                  .master = f.master,
                                                  .saving.checkpoint_dir = PLACE,
                                                  .is_worker = TRUE};

  MUSTER_EXPECT_FALSE (muster_train (&training, NULL, NULL, &f.error));
  expect_refused (&f, NULL);
  expect_refused (&f, muster_monitored_training_session_new (&saved, NULL, NULL, &f.error));
  expect_refused (&f, muster_monitored_training_session_new (&told, NULL, NULL, &f.error));
  expect_refused (&f, muster_monitored_training_session_new (&working, NULL, NULL, &f.error));
}

MUSTER_TEST (Places, hooks_and_event_files_refuse_one_with_a_scheme)
{
  g_auto (Fixture) f = set_up ();
  const MusterCheckpointSaverOptions saving = {.checkpoint_dir = PLACE, .save_steps = 1};
  expect_refused (&f, muster_checkpoint_saver_hook_new (&saving, &f.error));
  expect_refused (&f, muster_profiler_hook_new (1, 0, PLACE, NULL, NULL, &f.error));
  expect_refused (&f, muster_event_writer_new (PLACE, NULL, &f.error));
}

static gboolean
nothing (const char *prefix G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
         GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED,
         GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

MUSTER_TEST (Places, what_brings_a_loop_back_refuses_one_with_a_scheme)
{
  g_auto (Fixture) f = set_up ();
  const MusterBackupOptions backup = {.backup_dir = PLACE,
                                      .program = {.save = nothing, .restore = nothing}};
  const MusterWorkerTrainingStateOptions state = {.directory = PLACE};
  g_autoptr (MusterSession) session = muster_master_create_session (
      f.master, muster_meta_graph_graph (f.model), NULL, MUSTER_WAIT_FOREVER, NULL, &f.error);
  MUSTER_ASSERT_NO_ERROR (f.error);

  expect_refused (&f, muster_backup_new (&backup, &f.error));
  expect_refused (&f, muster_worker_training_state_new (f.model, session, &state, &f.error));
  expect_refused (&f, muster_checkpoint_manager_new (f.model, PLACE, NULL, &f.error));
}

MUSTER_TEST (Places, a_jobs_checkpoints_refuse_one_with_a_scheme)
{
  static const char *const nodes[] = {"a", NULL};
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterJobCheckpoint) checkpoint = muster_job_checkpoint_new (PLACE, NULL, NULL, NULL);
  expect_refused (
      &f, muster_job_checkpoint_init_group (checkpoint, nodes, MUSTER_NO_EPOCH, NULL, &f.error));
}
