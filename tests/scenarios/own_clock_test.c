// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "graph/npy.h"
#include "master/remote/remote_master.h"
#include "server/server.h"
#include "tests/doubles/shifted_clock.h"
#include "tests/gtest_shim.h"
#include "train/monitored/coordinator.h"
#include "train/train.h"

/* What takes a clock, with a clock of the program's own that counts from elsewhere, on real
 * masters, which know the machine's alone. */

#define PATIENCE_US (60 * MUSTER_SECOND)

/* Long before what the machine's clock says, and long after it. */
static const gint64 beginnings[] = {1, MUSTER_SECOND * 365 * 24 * 3600 * 1000};

typedef struct {
  MusterClock *clock;
  MusterMaster *engine;
  MusterServer *server;
  MusterMaster *remote;
  MusterScaffold *scaffold;
  MusterSessionManager *manager;
  MusterSessionReport report;
  char *directory;
  GError *error;
} Place;

static void
set_up (Place *self, gint64 beginning_us)
{
  self->clock = muster_shifted_clock_new (beginning_us);
  self->engine = muster_local_master_new ();
  self->server = muster_server_new (self->engine, NULL);
  int port = muster_server_listen (self->server, "127.0.0.1:0", &self->error);
  g_assert_no_error (self->error);
  muster_server_start (self->server);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  self->remote = muster_remote_master_new (target, &self->error);
  self->scaffold = muster_scaffold_load ("tests/fixtures/digits.meta", &self->error);
  g_assert_no_error (self->error);
  MusterSessionManagerOptions options = {.ready_op = muster_scaffold_ready_op (self->scaffold),
                                         .clock = self->clock};
  self->manager =
      muster_session_manager_new (muster_scaffold_graph (self->scaffold), &options, &self->error);
  self->directory = g_strdup_printf ("%s/run-%" G_GINT64_FORMAT, muster_test_tmpdir (),
                                     muster_clock_now_us (self->clock));
}

static void
tear_down (Place *self)
{
  muster_session_report_clear (&self->report);
  g_clear_object (&self->manager);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_object (&self->remote);
  g_clear_pointer (&self->server, muster_server_free);
  g_clear_object (&self->engine);
  g_clear_object (&self->clock);
  g_free (self->directory);
  g_clear_error (&self->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Place, tear_down)

static MusterSession *
prepare (Place *self, MusterMaster *master)
{
  MusterPrepareOptions options = {.init_op = muster_scaffold_init_op (self->scaffold),
                                  .timeout_us = PATIENCE_US};
  muster_session_report_clear (&self->report);
  return muster_session_manager_prepare_session (self->manager, master, &options, &self->report,
                                                 NULL, &self->error);
}

MUSTER_TEST (OwnClock, bounds_what_a_manager_asks_of_a_real_master)
{
  for (gsize i = 0; i < 2 * G_N_ELEMENTS (beginnings); i++) {
    g_auto (Place) place = {0};
    MUSTER_TRACE ("case %u", (guint)i);
    set_up (&place, beginnings[i / 2]);
    MusterMaster *master = i % 2 == 0 ? place.engine : place.remote;

    g_autoptr (MusterSession) none = muster_session_manager_wait_for_session (
        place.manager, master, 0, &place.report, NULL, &place.error);
    MUSTER_EXPECT_NULL (none);
    MUSTER_EXPECT_ERROR (place.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
    MUSTER_EXPECT_EQ (place.report.polls, 1u);
    g_clear_error (&place.error);

    g_autoptr (MusterSession) chief = prepare (&place, master);
    MUSTER_ASSERT_NO_ERROR (place.error);
    g_autoptr (MusterSession) worker = muster_session_manager_wait_for_session (
        place.manager, master, PATIENCE_US, NULL, NULL, &place.error);
    MUSTER_ASSERT_NO_ERROR (place.error);
    gint64 deadline_us = muster_deadline_after (muster_clock_now_us (place.clock), PATIENCE_US);
    MUSTER_EXPECT_EQ (
        muster_read_global_step (worker, place.scaffold, deadline_us, NULL, &place.error), 0);
    MUSTER_EXPECT_NO_ERROR (place.error);
  }
}

MUSTER_TEST (OwnClock, bounds_what_a_saver_does)
{
  for (gsize i = 0; i < G_N_ELEMENTS (beginnings); i++) {
    g_auto (Place) place = {0};
    MUSTER_TRACE ("case %u", (guint)i);
    set_up (&place, beginnings[i]);
    MusterSaverOptions options = {.clock = place.clock};
    g_autoptr (MusterSaver) saver =
        muster_saver_new (muster_scaffold_meta_graph (place.scaffold), &options, &place.error);
    g_autoptr (MusterSession) session = prepare (&place, place.remote);
    MUSTER_ASSERT_NO_ERROR (place.error);
    gint64 machines_us = muster_clock_now_us (muster_system_clock ());

    /* by the machine's clock, which is what another caller has */
    g_autofree char *saved = muster_saver_save (saver, session, place.directory, 1,
                                                machines_us + PATIENCE_US, NULL, &place.error);
    MUSTER_ASSERT_NO_ERROR (place.error);
    gint64 own_us = muster_clock_now_us (place.clock);
    MUSTER_EXPECT_TRUE (muster_saver_restore (saver, session,
                                              &(MusterRestoreOptions){.prefix = saved}, NULL,
                                              own_us + PATIENCE_US, NULL, &place.error));
    MUSTER_EXPECT_NO_ERROR (place.error);
  }
}

/* A duration in a deadline's place: no verb takes it for an instant that has passed. */
MUSTER_TEST (Deadline, that_is_a_duration_is_refused_by_every_operation)
{
  g_auto (Place) place = {0};
  set_up (&place, 1);
  g_autoptr (MusterSession) session = prepare (&place, place.remote);
  MUSTER_ASSERT_NO_ERROR (place.error);
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (place.scaffold), NULL, &place.error);
  g_autoptr (MusterCoordinator) threads = muster_coordinator_new (NULL, FALSE);
  g_autoptr (MusterTensor) value = NULL;
  const gint64 wrong_us = 3 * MUSTER_MILLISECOND;
  const char *init = muster_scaffold_init_op (place.scaffold);
  GError *errors[7] = {NULL};

  (void)muster_session_run_op (session, init, wrong_us, NULL, &errors[0]);
  value = muster_session_fetch (session, "global_step:0", wrong_us, NULL, &errors[1]);
  (void)muster_session_close (session, -1, NULL, &errors[2]);
  g_free (muster_saver_save (saver, session, place.directory, 1, wrong_us, NULL, &errors[3]));
  (void)muster_saver_restore (saver, session, &(MusterRestoreOptions){.prefix = place.directory},
                              NULL, wrong_us, NULL, &errors[4]);
  (void)muster_saver_restore (saver, session, &(MusterRestoreOptions){.directory = place.directory},
                              NULL, wrong_us, NULL, &errors[5]);
  (void)muster_coordinator_join (threads, 0, TRUE, wrong_us, NULL, &errors[6]);

  for (gsize i = 0; i < G_N_ELEMENTS (errors); i++) {
    MUSTER_TRACE ("call %u", (guint)i);
    MUSTER_EXPECT_SAYS (errors[i], MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "deadline_us");
    g_clear_error (&errors[i]);
  }
}

static gboolean
train (Place *self, gint64 until_step)
{
  static const char *const feeds[] = {"x:0", "y:0"};
  g_autoptr (MusterTensor) x = muster_npy_load ("tests/fixtures/digits_x.npy", &self->error);
  g_autoptr (MusterTensor) y = muster_npy_load ("tests/fixtures/digits_y.npy", &self->error);
  g_assert_no_error (self->error);
  MusterTensor *arrays[] = {x, y};
  MusterBatches *batches = muster_batches_new (arrays, 2, 32, 1, NULL);
  MusterTraining training = {.session.scaffold = self->scaffold,
                             .session.master = self->remote,
                             .session.manager.model = "digits",
                             .batches = batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .until_step = until_step,
                             .session.saving.checkpoint_dir = self->directory,
                             .session.saving.save_steps = 10,
                             .session.timeout_us = PATIENCE_US,
                             .session.step_timeout_us = PATIENCE_US,
                             .session.manager.clock = self->clock};
  gboolean done = muster_train (&training, NULL, NULL, &self->error);

  muster_batches_free (batches);
  return done;
}

MUSTER_TEST (OwnClock, bounds_what_a_training_does)
{
  for (gsize i = 0; i < G_N_ELEMENTS (beginnings); i++) {
    g_auto (Place) place = {0};
    MUSTER_TRACE ("case %u", (guint)i);
    set_up (&place, beginnings[i]);

    MUSTER_EXPECT_TRUE (train (&place, 25));
    MUSTER_ASSERT_NO_ERROR (place.error);
    MUSTER_EXPECT_TRUE (train (&place, 32));
    MUSTER_ASSERT_NO_ERROR (place.error);
    g_autoptr (MusterCheckpointState) state =
        muster_checkpoint_state_read (muster_local_storage (), place.directory, &place.error);
    MUSTER_ASSERT_TRUE (state != NULL);
    MUSTER_EXPECT_TRUE (g_str_has_suffix (state->latest, "model.ckpt-32"));
  }
}
