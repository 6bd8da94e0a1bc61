// SPDX-License-Identifier: Apache-2.0
#include "tests/session/fixture.h"

#include "checkpoint/state/checkpoint_state.h"
#include "tests/gtest_shim.h"

MusterSmallJob
muster_small_job_new (void)
{
  MusterSmallJob self = {.clock = muster_fake_clock_new ()};
  self.master = muster_fake_master_new (self.clock);
  muster_small_model_play (self.master);
  muster_fake_master_op_sets (self.master, "local_init", "local", NULL);
  muster_fake_master_op_reports (self.master, "gate", "v", "w", NULL);
  muster_fake_master_op_reports (self.master, "ready", "v", "w", "local", NULL);
  self.meta_graph = muster_small_model_new (muster_small_variables, 2, 5);
  MusterSaverOptions options = {.clock = MUSTER_CLOCK (self.clock)};
  self.saver = muster_saver_new (self.meta_graph, &options, NULL);
  self.manager = muster_small_job_manager (&self, "local_init", "ready", "gate");
  return self;
}

void
muster_small_job_clear (MusterSmallJob *self)
{
  g_clear_error (&self->error);
  muster_session_report_clear (&self->report);
  g_clear_object (&self->manager);
  g_clear_object (&self->saver);
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  g_clear_object (&self->master);
  g_clear_object (&self->clock);
}

MusterSessionManager *
muster_small_job_manager (MusterSmallJob *self, const char *local_init, const char *ready,
                          const char *gate)
{
  MusterSessionManagerOptions options = {.local_init_op = local_init,
                                         .ready_op = ready,
                                         .ready_for_local_init_op = gate,
                                         .clock = MUSTER_CLOCK (self->clock)};
  return muster_session_manager_new (NULL, &options, &self->error);
}

void
muster_small_job_name_model (MusterSmallJob *self, MusterSessionManagerOptions options)
{
  options.local_init_op = "local_init";
  options.ready_op = "ready";
  options.ready_for_local_init_op = "gate";
  options.clock = MUSTER_CLOCK (self->clock);
  options.model = "digits";
  if (options.task == NULL)
    options.task = "worker:0";
  g_clear_object (&self->manager);
  self->manager = muster_session_manager_new (NULL, &options, &self->error);
  muster_fake_master_set_announcing (self->master);
}

void
muster_small_job_set_chief (MusterSmallJob *self, MusterChiefPhase phase, gboolean prepared,
                            gboolean alive, gint64 step)
{
  MusterAnnouncement chief = MUSTER_ANNOUNCEMENT_INIT;
  chief.model = (char *)"digits";
  chief.task = (char *)"worker:7";
  chief.who = (char *)"elsewhere:1";
  chief.epoch = 3;
  chief.phase = phase;
  chief.prepared = prepared;
  chief.alive = alive;
  chief.step = step;
  muster_fake_master_set_chief (self->master, &chief);
}

static void
forget_last (MusterSmallJob *self)
{
  g_clear_error (&self->error);
  muster_session_report_clear (&self->report);
}

MusterSession *
muster_small_job_prepare (MusterSmallJob *self, MusterPrepareOptions options)
{
  forget_last (self);
  return muster_session_manager_prepare_session (self->manager, MUSTER_MASTER (self->master),
                                                 &options, &self->report, NULL, &self->error);
}

MusterSession *
muster_small_job_recover (MusterSmallJob *self, MusterPrepareOptions options, gboolean *recovered)
{
  forget_last (self);
  return muster_session_manager_recover_session (self->manager, MUSTER_MASTER (self->master),
                                                 &options, recovered, &self->report, NULL,
                                                 &self->error);
}

MusterSession *
muster_small_job_wait (MusterSmallJob *self, gint64 timeout_us, GCancellable *cancellable)
{
  forget_last (self);
  return muster_session_manager_wait_for_session (self->manager, MUSTER_MASTER (self->master),
                                                  timeout_us, &self->report, cancellable,
                                                  &self->error);
}

char *
muster_small_job_write_checkpoint (const char *directory, gint64 step)
{
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (muster_local_storage (), directory, NULL);
  g_autofree char *name = g_strdup_printf ("model.ckpt-%" G_GINT64_FORMAT, step);
  char *prefix = g_build_filename (directory, name, NULL);
  g_autoptr (GError) error = NULL;

  if (state == NULL)
    state = muster_checkpoint_state_new ();
  g_free (state->latest);
  state->latest = g_strdup (prefix);
  g_ptr_array_add (state->all, g_strdup (prefix));
  if (!muster_small_model_write (prefix, muster_small_variables, 2, 1, &error) ||
      !muster_checkpoint_state_write (muster_local_storage (), directory, state, &error))
    g_error ("Writing '%s': %s", prefix, error->message);
  return prefix;
}

gboolean
muster_small_job_diary_is (MusterSmallJob *self, const char *diary)
{
  g_autofree char *written = muster_fake_master_diary (self->master);
  return muster_test_string (__FILE__, __LINE__, "diary", "the master's", diary, written);
}

void
muster_small_job_initialise (gpointer job)
{
  MusterSmallJob *self = job;
  muster_fake_master_set_variable (self->master, "v");
  muster_fake_master_set_variable (self->master, "w");
}

/* The report and the error stay the waiter's. */
void
muster_small_job_chief_prepares (gpointer job)
{
  MusterSmallJob *self = job;
  MusterPrepareOptions options = {.init_op = "init"};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = muster_session_manager_prepare_session (
      self->manager, MUSTER_MASTER (self->master), &options, NULL, NULL, &error);
  if (session == NULL)
    g_error ("The chief can't prepare: %s", error->message);
  muster_session_close_quietly (session);
}

void
muster_small_job_restart_master (gpointer job)
{
  MusterSmallJob *self = job;
  muster_fake_master_restart (self->master);
}
