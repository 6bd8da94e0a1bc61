// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "server/server.h"
#include "tests/doubles/gate_storage.h"
#include "tests/gtest_shim.h"
#include "train/monitored_training.h"

G_BEGIN_DECLS

/* A chief that saves in the background, on the engine, over a store that can hold a save up. */

/* Nothing here takes so long: a test that hangs fails. */
#define LIMIT_US (30 * MUSTER_SECOND)

typedef struct {
  MusterScaffold *scaffold;
  MusterGateStorage *gates;
  MusterSaver *saver;
  MusterMaster *master;
  MusterServer *server; /* (nullable) it serves a master of its own, and master is its client */
  MusterPreemption *preemption; /* (nullable) */
  char *directory;
  MusterMonitoredSession *session;
  GString *saved; /* " 0 4": the steps whose saves were reported */
} Job;

/* Of a model of tests/fixtures. */
static inline Job
set_up_model (const char *meta_graph)
{
  g_autoptr (GError) error = NULL;
  Job job = {.scaffold = muster_scaffold_load (meta_graph, &error),
             .gates = muster_gate_storage_new (),
             .master = muster_local_master_new (),
             .directory = g_build_filename (muster_test_tmpdir (), "run", NULL),
             .saved = g_string_new (NULL)};

  g_assert_no_error (error);
  const MusterSaverOptions options = {.storage = MUSTER_STORAGE (job.gates)};
  job.saver = muster_saver_new (muster_scaffold_meta_graph (job.scaffold), &options, &error);
  g_assert_no_error (error);
  return job;
}

static inline Job
set_up (void)
{
  return set_up_model ("tests/fixtures/linreg.meta");
}

static inline void
tear_down (Job *job)
{
  for (guint gate = 0; gate < MUSTER_N_GATES; gate++)
    muster_gate_storage_open_gate (job->gates, (MusterGate)gate);
  g_clear_object (&job->session);
  g_clear_object (&job->preemption);
  g_clear_object (&job->master);
  g_clear_pointer (&job->server, muster_server_free);
  g_clear_object (&job->saver);
  g_clear_object (&job->gates);
  g_clear_pointer (&job->scaffold, muster_scaffold_unref);
  g_free (job->directory);
  g_string_free (job->saved, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, tear_down)

static inline void
serve (Job *job)
{
  g_autoptr (MusterMaster) own = muster_local_master_new ();
  g_autoptr (GError) error = NULL;

  job->server = muster_server_new (own, NULL);
  const int port = muster_server_listen (job->server, "127.0.0.1:0", &error);
  g_assert_no_error (error);
  muster_server_start (job->server);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  g_clear_object (&job->master);
  job->master = muster_master_new_for_target (target, &error);
  g_assert_no_error (error);
}

static inline void
note_saved (MusterSaverObserver *observer G_GNUC_UNUSED, const MusterSaved *saved, gpointer data)
{
  g_string_append_printf (data, " %" G_GINT64_FORMAT "%s", saved->step,
                          saved->skipped ? " skipped" : "");
}

static inline gboolean
check_after_save (MusterSaverObserver *observer G_GNUC_UNUSED, MusterSession *session, gint64 step,
                  const char *prefix, gint64 deadline_us G_GNUC_UNUSED,
                  GCancellable *cancellable G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (muster_checkpoint_step (prefix), step);
  return FALSE;
}

static inline gboolean
open_job (Job *job, gint64 save_steps, GError **error)
{
  g_autoptr (MusterSaverObserver) observer = muster_saver_observer_new ();
  g_signal_connect (observer, "after-save", G_CALLBACK (check_after_save), NULL);
  g_signal_connect (observer, "saved", G_CALLBACK (note_saved), job->saved);
  const MusterMonitoredTrainingOptions options = {.scaffold = job->scaffold,
                                                  .master = job->master,
                                                  .saving.checkpoint_dir = job->directory,
                                                  .saving.saver = job->saver,
                                                  .saving.save_steps = save_steps,
                                                  .save_summaries_steps = MUSTER_NEVER,
                                                  .log_step_count_steps = MUSTER_NEVER,
                                                  .saving.saver_observer = observer,
                                                  .saving.preemption = job->preemption};

  job->session = muster_monitored_training_session_new (&options, NULL, NULL, error);
  return job->session != NULL;
}

static inline gboolean
train (Job *job, int n, GError **error)
{
  const char *targets[] = {muster_scaffold_train_op (job->scaffold)};
  const gint64 dims[] = {1};
  const float one = 1;
  g_autoptr (MusterTensor) x =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, &one, sizeof one, NULL);
  const MusterFeed feeds[] = {{"x:0", x}, {"y:0", x}};
  const MusterStep step = {.feeds = feeds, .n_feeds = 2, .targets = targets, .n_targets = 1};

  for (int i = 0; i < n; i++)
    if (!muster_monitored_session_run (job->session, &step, NULL, NULL, error))
      return FALSE;
  return TRUE;
}

/* Trains until a save of that step has been reported; one run may report the next one, too. */
static inline gboolean
train_until_saved (Job *job, gint64 step, GError **error)
{
  g_autofree char *sought = g_strdup_printf ("%" G_GINT64_FORMAT, step);
  const gint64 until_us = g_get_monotonic_time () + LIMIT_US;

  for (;;) {
    g_auto (GStrv) steps = g_strsplit (job->saved->str, " ", -1);
    if (g_strv_contains ((const char *const *)steps, sought))
      return TRUE;
    if (!train (job, 1, error) || g_get_monotonic_time () > until_us)
      return FALSE;
  }
}

static inline gboolean
finish (Job *job, GError **error)
{
  return muster_monitored_session_finish (job->session, NULL, g_get_monotonic_time () + LIMIT_US,
                                          error);
}

static inline gint64
latest_step (Job *job)
{
  g_autofree char *latest = muster_latest_checkpoint (NULL, job->directory, NULL);
  return latest != NULL ? muster_checkpoint_step (latest) : -1;
}

G_END_DECLS
