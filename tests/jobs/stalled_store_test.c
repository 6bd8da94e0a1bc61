// SPDX-License-Identifier: Apache-2.0
/* An object store that stops answering, at every call of a job's checkpoints and of its state file:
 * each operation ends by its deadline, and by its cancellable. */
#include "tests/doubles/stalled_store.h"
#include "tests/gtest_shim.h"
#include "tests/jobs/job_fixture.h"

#include <string.h>

#define DIRECTORY "s3://bucket/job"
#define EMPTY     "s3://bucket/empty"
#define FOREIGN   "s3://bucket/foreign" /* its state file isn't a job's */

static const char *const nodes[] = {"a", "b", NULL};

/* A job whose own store stalls; its masters' doesn't. On node "b" only the list of names is saved:
 * no variable has a value. */
typedef struct {
  StalledStore store;
  JobFixture fixture; /* but for its job */
  MusterJob *job;
} World;

static void
end (gpointer world)
{
  World *self = world;
  g_clear_object (&self->job);
  job_tear_down (&self->fixture);
  stalled_store_clear (&self->store);
}

static void
begin (gpointer world, MusterObjectStorage *store)
{
  World *self = world;
  stalled_store_init (&self->store, store);
  self->job = muster_job_new ();
  job_set_up_on (&self->fixture, nodes, MUSTER_STORAGE (self->store.masters));
  job_add (muster_job_init_group (self->job), job_ops_task ("init", "a", 0, "init", NULL));
  job_add (muster_job_init_group (self->job), job_note_task (&self->fixture, "b", "init"));
  job_add (muster_job_epoch_group (self->job), job_ops_task ("read", "a", 5, "read", NULL));
  MUSTER_EXPECT_TRUE (muster_job_add_stop_tensor (self->job, "a", "finished:0", NULL));
}

static MusterJobCheckpoint *
make_checkpoint (World *self, const char *directory)
{
  g_autoptr (MusterJobStateFile) file = muster_job_state_file_new ();
  return muster_job_checkpoint_new (directory, MUSTER_STORAGE (self->store.process),
                                    MUSTER_JOB_METADATA (file), NULL);
}

/* With the first failed save the training ends. */
static MusterJobRunner *
make_runner (World *self, const char *directory, gint64 resume_epoch)
{
  const MusterJobRunnerOptions how = {.save_blocking = TRUE, .most_failures_in_a_row = 1};
  g_autoptr (MusterJobCheckpoint) checkpoint = make_checkpoint (self, directory);
  return muster_job_runner_new (self->job, checkpoint, resume_epoch, &how);
}

static gboolean
train (World *self, const char *directory, gint64 resume_epoch, GError **error)
{
  g_autoptr (MusterJobRunner) runner = make_runner (self, directory, resume_epoch);
  return muster_job_runner_train (runner, self->fixture.cluster, NULL, self->store.deadline_us,
                                  self->store.cancellable, error);
}

/* --- the operations --- */

static gboolean
begin_anew (gpointer world, GError **error)
{
  return train (world, EMPTY, MUSTER_NO_EPOCH, error);
}

static gboolean
is_enough (MusterJobRunner *runner G_GNUC_UNUSED, gint64 epoch, gpointer data G_GNUC_UNUSED)
{
  return epoch >= 1;
}

/* A save in the background without variables; one with them ends when its ticket is cancelled, at
 * the deadline of whoever waits for it (job_background_test.c). */
static gboolean
save_lists_in_the_background (gpointer data, GError **error)
{
  World *self = data;
  g_autoptr (MusterJob) job = muster_job_new ();
  const MusterJobRunnerOptions how = {.endless = TRUE, .most_failures_in_a_row = 1};
  g_autoptr (MusterJobCheckpoint) checkpoint = make_checkpoint (self, EMPTY);
  g_autoptr (MusterJobRunner) runner =
      muster_job_runner_new (job, checkpoint, MUSTER_NO_EPOCH, &how);
  g_signal_connect (runner, "epoch-done", G_CALLBACK (is_enough), NULL);

  job_add (muster_job_init_group (job), job_note_task (&self->fixture, "b", "init"));
  return muster_job_runner_train (runner, self->fixture.cluster, NULL, self->store.deadline_us,
                                  self->store.cancellable, error);
}

static gboolean
resume (gpointer world, GError **error)
{
  return train (world, DIRECTORY, MUSTER_NO_EPOCH, error);
}

static gboolean
resume_as_chosen (gpointer world, GError **error)
{
  return train (world, DIRECTORY, 1, error);
}

/* It fails; the remedy that is looked for in the store is all that counts here. */
static gboolean
fail_to_resume (World *self, const char *directory, gint64 epoch, MusterError code, GError **error)
{
  g_autoptr (GError) failure = NULL;
  MUSTER_EXPECT_FALSE (train (self, directory, epoch, &failure));
  if (muster_error_to_wire (failure) == (int)code)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static gboolean
resume_a_missing_epoch (gpointer world, GError **error)
{
  return fail_to_resume (world, DIRECTORY, 9, MUSTER_ERROR_NOT_FOUND, error);
}

static gboolean
resume_another_job (gpointer world, GError **error)
{
  return fail_to_resume (world, FOREIGN, MUSTER_NO_EPOCH, MUSTER_ERROR_DATA_LOSS, error);
}

static gboolean
load_some (gpointer data, GError **error)
{
  static const char *const names[] = {"total", NULL};
  World *self = data;
  g_autoptr (MusterJobRunner) runner = make_runner (self, DIRECTORY, MUSTER_NO_EPOCH);
  gboolean found = FALSE;
  MUSTER_EXPECT_TRUE (muster_job_compile (self->job, self->fixture.cluster, NULL));
  if (!muster_job_runner_load_partial (runner, self->fixture.cluster, names, 1, "a", &found, NULL,
                                       self->store.deadline_us, self->store.cancellable, error))
    return FALSE;
  MUSTER_EXPECT_TRUE (found);
  return TRUE;
}

static const StalledOperation operations[] = {
    {"begin", begin_anew},
    {"save lists in the background", save_lists_in_the_background},
    {"resume", resume},
    {"resume at a chosen epoch", resume_as_chosen},
    {"resume at a missing epoch", resume_a_missing_epoch},
    {"resume another job", resume_another_job},
    {"load some", load_some},
    {0},
};

static const StalledWorld worlds = {sizeof (World), begin, end};

/* --- what must hold --- */

static MusterObjectStorage *
fill (void)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  World world = {0};
  g_autoptr (GError) error = NULL;
  begin (&world, store);
  MUSTER_EXPECT_TRUE (train (&world, DIRECTORY, MUSTER_NO_EPOCH, &error));
  MUSTER_EXPECT_TRUE (muster_storage_replace (
      MUSTER_STORAGE (store), FOREIGN "/" MUSTER_JOB_STATE_NAME, "?", 1, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  end (&world);
  return g_steal_pointer (&store);
}

MUSTER_TEST (StalledStore, ends_every_call_of_a_jobs_checkpoints)
{
  g_autoptr (MusterObjectStorage) filled = fill ();
  stalled_store_expect_ends (&worlds, filled, operations);
}

/* Advises no other epoch where the n-th call finds no store (0: each does); returns how many there
 * are. */
static guint
resume_without_call (MusterObjectStorage *filled, guint n)
{
  g_autoptr (MusterObjectStorage) store = object_storage_copy (filled);
  g_autoptr (GError) error = NULL;
  World world = {0};
  MUSTER_TRACE ("without call %u", n);
  begin (&world, store);
  object_storage_miss_at (world.store.process, n);
  (void)resume_as_chosen (&world, &error);
  MUSTER_EXPECT_TRUE (strstr (SAID (error), "resume at epoch") == NULL);
  MUSTER_EXPECT_TRUE (strstr (SAID (error), "earlier epoch") == NULL);
  const guint n_calls = object_storage_n_calls (world.store.process);
  end (&world);
  return n_calls;
}

MUSTER_TEST (AbsentStore, is_no_reason_to_resume_at_an_earlier_epoch)
{
  g_autoptr (MusterObjectStorage) filled = fill ();
  const guint n_calls = resume_without_call (filled, 0);
  MUSTER_EXPECT_GT (n_calls, 3u);
  for (guint n = 1; n <= n_calls; n++)
    (void)resume_without_call (filled, n);
}
