// SPDX-License-Identifier: Apache-2.0
/* Every verb of jobs, backups and training states that waits ends at its deadline, and when it is
 * cancelled while it waits: each is asked on a master that holds every call. */
#include "callbacks/backup.h"
#include "callbacks/worker_training_state.h"
#include "engine/session/local_master.h"
#include "tests/doubles/held_master.h"
#include "tests/doubles/sharded_model.h"
#include "tests/gtest_shim.h"
#include "tests/jobs/job_fixture.h"

#define SHORT_US (50 * MUSTER_MILLISECOND)

static const MusterShardedModel weights = {.is_whole = TRUE};

/* All that the verbs are asked of; every part that saves has saved once. */
typedef struct {
  MusterHeldMaster *master;
  char *directory;
  /* a session of the weights: */
  MusterSession *session;
  MusterSessionProgram *program;
  MusterBackup *backup;
  MusterWorkerTrainingState *state;
  /* a job on one node: */
  MusterCluster *cluster;
  MusterJob *job;
  MusterJobOutput *output; /* (not owned) the job's only condition */
  MusterJobCheckpoint *checkpoint;
  MusterJobRunner *runner;
} World;

static MusterFitPosition start = {0, 0};

static void
set_up_session (World *self)
{
  g_autoptr (MusterMetaGraph) model = muster_sharded_model_new (&weights);
  g_autofree char *backup_dir = g_build_filename (self->directory, "backup", NULL);
  g_autofree char *state_dir = g_build_filename (self->directory, "state", NULL);
  g_autoptr (GError) error = NULL;

  self->session =
      muster_master_create_session (MUSTER_MASTER (self->master), muster_meta_graph_graph (model),
                                    NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (muster_sharded_model_set (&weights, self->session, 1, NULL));
  self->program = muster_session_program_new (model, self->session, NULL, NULL, &error);
  g_assert_no_error (error);
  MusterBackupOptions backup = {.backup_dir = backup_dir,
                                .program = muster_session_program_operations (self->program)};
  self->backup = muster_backup_new (&backup, &error);
  g_assert_no_error (error);
  const MusterFitCallback callback = muster_backup_callback (self->backup);
  g_assert_true (callback.train_begin (&start, 3, MUSTER_WAIT_FOREVER, NULL, self->backup, &error));
  g_assert_true (muster_backup_save (self->backup, MUSTER_WAIT_FOREVER, NULL, &error));
  const MusterWorkerTrainingStateOptions state = {.directory = state_dir};
  self->state = muster_worker_training_state_new (model, self->session, &state, &error);
  g_assert_no_error (error);
  (void)muster_worker_training_state_back_up (self->state, 0, -1, MUSTER_WAIT_FOREVER, NULL,
                                              &error);
  g_assert_no_error (error);
}

static MusterCluster *
make_cluster (World *self)
{
  g_autoptr (MusterMetaGraph) model = job_model_new ();
  MusterCluster *cluster = muster_cluster_new (NULL);
  g_assert_true (muster_cluster_add (cluster, "a", MUSTER_MASTER (self->master), model, NULL));
  return cluster;
}

static void
set_up_job (World *self)
{
  g_autoptr (GError) error = NULL;
  self->cluster = make_cluster (self);
  self->job = muster_job_new ();
  job_add (muster_job_init_group (self->job), job_ops_task ("init", "a", 0, "init", NULL));
  job_add (muster_job_epoch_group (self->job), job_ops_task ("read", "a", 10, "read", NULL));
  g_assert_true (muster_job_add_stop_tensor (self->job, "a", "finished:0", NULL));
  self->output = muster_job_stop_conditions (self->job)->pdata[0];
  self->checkpoint = muster_job_checkpoint_new (self->directory, NULL, NULL, NULL);
  self->runner = muster_job_runner_new (self->job, self->checkpoint, MUSTER_NO_EPOCH, NULL);
  (void)muster_cluster_open (self->cluster, 30 * MUSTER_SECOND, NULL, &error);
  g_assert_no_error (error);
  (void)muster_job_runner_train (self->runner, self->cluster, NULL, MUSTER_WAIT_FOREVER, NULL,
                                 &error);
  g_assert_no_error (error);
}

static void
set_up (World *self)
{
  g_autoptr (MusterMaster) engine = muster_local_master_new ();
  *self = (World){.master = muster_held_master_new (engine),
                  .directory = g_strdup (muster_test_tmpdir ())};
  set_up_session (self);
  set_up_job (self);
  muster_held_master_hold (self->master, TRUE);
}

static void
tear_down (World *self)
{
  muster_held_master_hold (self->master, FALSE);
  g_clear_object (&self->runner);
  g_clear_object (&self->checkpoint);
  g_clear_object (&self->job);
  g_clear_object (&self->cluster);
  muster_worker_training_state_free (self->state);
  muster_backup_free (self->backup);
  muster_session_program_free (self->program);
  g_clear_object (&self->session);
  g_free (self->directory);
  g_clear_object (&self->master);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (World, tear_down)

/* --- the verbs --- */

typedef gboolean (*Call) (World *self, gint64 deadline_us, GCancellable *cancellable,
                          GError **error);

static gboolean
train_nothing (const MusterFitPosition *at G_GNUC_UNUSED, gint64 n G_GNUC_UNUSED,
               gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
               gpointer data G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

/* The backup restores in the place of its beginning, or saves at the end of an epoch. */
static gboolean
fit (World *self, gboolean restores, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterFitCallback callback = muster_backup_callback (self->backup);
  if (!restores)
    callback.train_begin = NULL;
  callback.train_failed = NULL;
  const MusterFit fit = {.train = train_nothing,
                         .n_epochs = 1,
                         .n_batches = 1,
                         .callbacks = &callback,
                         .n_callbacks = 1};
  return muster_fit (&fit, NULL, deadline_us, cancellable, error);
}

static gboolean
fit_that_restores (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return fit (self, TRUE, deadline_us, cancellable, error);
}

static gboolean
fit_that_saves (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return fit (self, FALSE, deadline_us, cancellable, error);
}

static gboolean
save_backup (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_backup_save (self->backup, deadline_us, cancellable, error);
}

static gboolean
back_up (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_worker_training_state_back_up (self->state, 1, -1, deadline_us, cancellable, error);
}

static gboolean
restore_state (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_worker_training_state_restore (self->state, NULL, deadline_us, cancellable, error);
}

static gboolean
open_cluster (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterCluster) cluster = make_cluster (self);
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return muster_cluster_open (cluster, muster_deadline_remaining (deadline_us, now_us), cancellable,
                              error);
}

static gboolean
run_group (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_cluster_run (self->cluster, muster_job_epoch_group (self->job), deadline_us,
                             cancellable, error);
}

static gboolean
run_task (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterJobTask) task = job_ops_task ("read", "a", 0, "read", NULL);
  return muster_cluster_run_task (self->cluster, task, deadline_us, cancellable, error);
}

static gboolean
fetch_output (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_job_output_fetch (self->output, deadline_us, cancellable, error);
}

static gboolean
train_job (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_job_runner_train (self->runner, self->cluster, NULL, deadline_us, cancellable,
                                  error);
}

static gboolean
save_job (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_job_runner_save (self->runner, self->cluster, 2, FALSE, NULL, deadline_us,
                                 cancellable, error);
}

static gboolean
load_partial (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  static const char *const names[] = {"total", NULL};
  gboolean found;
  return muster_job_runner_load_partial (self->runner, self->cluster, names, 1, NULL, &found, NULL,
                                         deadline_us, cancellable, error);
}

static gboolean
load_locally (World *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  static const char *const nodes[] = {"a", NULL};
  static const char *const names[] = {"total", NULL};
  gboolean found;
  return muster_job_checkpoint_load_locally (self->checkpoint, nodes, names, 1, self->cluster, NULL,
                                             &found, NULL, deadline_us, cancellable, error);
}

static const struct {
  const char *name;
  Call call;
} verbs[] = {
    {"a fit that restores", fit_that_restores},
    {"a fit that saves", fit_that_saves},
    {"muster_backup_save", save_backup},
    {"muster_worker_training_state_back_up", back_up},
    {"muster_worker_training_state_restore", restore_state},
    {"muster_cluster_open", open_cluster},
    {"muster_cluster_run", run_group},
    {"muster_cluster_run_task", run_task},
    {"muster_job_output_fetch", fetch_output},
    {"muster_job_runner_train", train_job},
    {"muster_job_runner_save", save_job},
    {"muster_job_runner_load_partial", load_partial},
    {"muster_job_checkpoint_load_locally", load_locally},
};

MUSTER_TEST (Deadline, ends_every_operation_that_waits)
{
  g_auto (World) world = {0};
  set_up (&world);

  for (gsize i = 0; i < G_N_ELEMENTS (verbs); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("%s", verbs[i].name);
    const gint64 deadline_us = muster_clock_now_us (muster_system_clock ()) + SHORT_US;

    MUSTER_EXPECT_FALSE (verbs[i].call (&world, deadline_us, NULL, &error));

    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
    MUSTER_EXPECT_GE (muster_clock_now_us (muster_system_clock ()), deadline_us);
  }
}

/* The master isn't held: it is no wait that ends. */
MUSTER_TEST (Deadline, is_now_where_it_is_0)
{
  g_auto (World) world = {0};
  set_up (&world);
  muster_held_master_hold (world.master, FALSE);

  for (gsize i = 0; i < G_N_ELEMENTS (verbs); i++) {
    g_autoptr (GError) error = NULL;
    if (verbs[i].call == open_cluster)
      continue; /* takes a timeout: 0 is one look */
    MUSTER_TRACE ("%s", verbs[i].name);

    MUSTER_EXPECT_FALSE (verbs[i].call (&world, 0, NULL, &error));

    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  }
}

/* A timeout in the place of a deadline has passed long ago: it is no instant of this process. */
MUSTER_TEST (Deadline, is_no_duration)
{
  g_auto (World) world = {0};
  set_up (&world);

  for (gsize i = 0; i < G_N_ELEMENTS (verbs); i++) {
    g_autoptr (GError) error = NULL;
    if (verbs[i].call == open_cluster)
      continue;
    MUSTER_TRACE ("%s", verbs[i].name);

    MUSTER_EXPECT_FALSE (verbs[i].call (&world, MUSTER_MILLISECOND, NULL, &error));

    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

typedef struct {
  World *world;
  GCancellable *cancellable;
  gboolean has_waited;
} Cancel;

static gpointer
cancel_what_waits (gpointer data)
{
  Cancel *self = data;
  self->has_waited = muster_held_master_wait_for_call (self->world->master);
  g_cancellable_cancel (self->cancellable);
  return NULL;
}

MUSTER_TEST (Cancellable, ends_every_operation_that_waits)
{
  g_auto (World) world = {0};
  set_up (&world);

  for (gsize i = 0; i < G_N_ELEMENTS (verbs); i++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    g_autoptr (GError) error = NULL;
    Cancel cancel = {&world, cancellable, FALSE};
    MUSTER_TRACE ("%s", verbs[i].name);
    GThread *thread = g_thread_new ("cancel", cancel_what_waits, &cancel);

    MUSTER_EXPECT_FALSE (verbs[i].call (&world, MUSTER_WAIT_FOREVER, cancellable, &error));

    g_thread_join (thread);
    MUSTER_EXPECT_TRUE (cancel.has_waited);
    MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  }
}

/* --- a loop of batches --- */
