// SPDX-License-Identifier: Apache-2.0
/* What hooks and functions wait for ends by the caller's deadline, and when it is cancelled. */
#include "tests/doubles/thread_gate.h"
#include "tests/train/monitored_diary.h"
#include "train/hooks/hooks_private.h"

#define DEADLINE_US (60 * MUSTER_SECOND)
#define CANCEL_US   (5 * MUSTER_SECOND)

typedef enum { OPENING, RUNNING, STEPPING, FINISHING } During;

typedef struct {
  const char *what;
  During during;
  const char *hangs; /* (nullable) an op that has no answer from then on */
  void (*add) (Monitored *f);
} Wait;

static gboolean
wait_as_told (Monitored *f, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  if (!muster_clock_wait_until (MUSTER_CLOCK (f->clock), deadline_us, cancellable, error))
    return FALSE;
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "nothing has come");
}

static gboolean
wait_in_init (MusterScaffold *scaffold G_GNUC_UNUSED, MusterSession *session G_GNUC_UNUSED,
              gint64 deadline_us, GCancellable *cancellable, gpointer user_data, GError **error)
{
  return wait_as_told (user_data, deadline_us, cancellable, error);
}

static void
add_init (Monitored *f)
{
  const MusterScaffoldOptions with = {
      .init_func = wait_in_init, .init_func_data = f, .copy_from = f->scaffold};
  MusterScaffold *before = f->scaffold;
  f->scaffold = f->options.scaffold =
      muster_scaffold_new_with (muster_scaffold_meta_graph (before), &with, NULL);
  muster_scaffold_unref (before);
}

static void
add_stop (Monitored *f)
{
  monitored_add (f, muster_stop_at_step_hook_new (5, 0, NULL));
}

static void
add_saver (Monitored *f)
{
  const MusterCheckpointSaverOptions options = {.checkpoint_dir = muster_test_tmpdir (),
                                                .save_steps = 1000};
  monitored_add (f, muster_checkpoint_saver_hook_new_at (&options, MUSTER_CLOCK (f->clock), NULL));
}

static void
add_waiter (Monitored *f)
{
  monitored_add (f, muster_global_step_waiter_hook_new (10, MUSTER_CLOCK (f->clock)));
}

static gboolean
wait_for_feed (MusterTensor **feeds G_GNUC_UNUSED, gint64 deadline_us, GCancellable *cancellable,
               gpointer user_data, GError **error)
{
  return wait_as_told (user_data, deadline_us, cancellable, error);
}

static void
add_feed (Monitored *f)
{
  static const char *const tensors[] = {"v", NULL};
  monitored_add (f, muster_feed_func_hook_new (tensors, wait_for_feed, f, NULL));
}

static void
add_final_ops (Monitored *f)
{
  static const char *const fetch = "global_step:0";
  const MusterStep step = {.fetches = &fetch, .n_fetches = 1};
  monitored_add (f, muster_final_ops_hook_new (&step));
}

static void
add_logging (Monitored *f)
{
  static const char *const tensors[] = {"global_step:0", NULL};
  monitored_add (f, muster_logging_hook_new (tensors, 0, 0, TRUE, NULL, NULL));
}

static void
add_barrier (Monitored *f)
{
  monitored_add (f, muster_finish_barrier_hook_new (3600 * MUSTER_SECOND, 7200 * MUSTER_SECOND,
                                                    MUSTER_CLOCK (f->clock)));
}

static void
add_nothing (Monitored *f G_GNUC_UNUSED)
{
}

static void
add_loss (Monitored *f)
{
  muster_fake_master_fail (f->master, "train", 1, 1, MUSTER_ERROR_ABORTED, "gone");
}

static const Wait waits[] = {
    {"the scaffold's init function", OPENING, NULL, add_init},
    {"StopAtStep, where it begins to count", OPENING, "global_step", add_stop},
    {"the checkpoint saver, of a session that was made", OPENING, "global_step", add_saver},
    {"the step waiter", RUNNING, NULL, add_waiter},
    {"the step waiter, of a look", RUNNING, "global_step", add_waiter},
    {"a feed function", RUNNING, NULL, add_feed},
    {"coming back", RUNNING, "create", add_loss},
    {"a step function", STEPPING, NULL, add_nothing},
    {"final ops", FINISHING, "global_step", add_final_ops},
    {"logging at the end", FINISHING, "global_step", add_logging},
    {"the finish barrier", FINISHING, "global_step", add_barrier},
    {"the checkpoint saver, at the end", FINISHING, "global_step", add_saver},
};

static gboolean
wait_in_step (MusterMonitoredSession *session G_GNUC_UNUSED, MusterSession *raw G_GNUC_UNUSED,
              gint64 deadline_us, GCancellable *cancellable, gpointer user_data, GError **error)
{
  return wait_as_told (user_data, deadline_us, cancellable, error);
}

static gboolean
wait_during (Monitored *f, const Wait *wait, gint64 deadline_us, GError **error)
{
  static const char *const train = "train";
  const MusterStep step = {.targets = &train, .n_targets = 1, .deadline_us = deadline_us};
  if (wait->during == OPENING)
    return monitored_open (f, error);
  if (wait->during == RUNNING)
    return muster_monitored_session_run (f->session, &step, NULL, NULL, error);
  if (wait->during == STEPPING)
    return muster_monitored_session_run_step_function (f->session, wait_in_step, f, deadline_us,
                                                       error);
  return muster_monitored_session_finish (f->session, NULL, deadline_us, error);
}

/* Everything up to the wait. */
static void
come_to (Monitored *f, const Wait *wait, MusterPrepareOptions *prepare)
{
  g_autoptr (GError) error = NULL;
  wait->add (f);
  f->options.prepare = prepare;
  if (wait->during != OPENING && !monitored_open (f, &error))
    g_error ("%s: %s", wait->what, error->message);
  if (wait->hangs != NULL)
    muster_fake_master_set_cost (f->master, wait->hangs, MUSTER_WAIT_FOREVER);
}

MUSTER_TEST (Waits, of_hooks_and_functions_end_by_the_deadline)
{
  for (gsize i = 0; i < G_N_ELEMENTS (waits); i++) {
    SET_UP (f);
    MusterPrepareOptions prepare = {.timeout_us = DEADLINE_US};
    MUSTER_TRACE ("%s", waits[i].what);
    come_to (&f, &waits[i], &prepare);
    gint64 then_us = muster_clock_now_us (MUSTER_CLOCK (f.clock));

    MUSTER_EXPECT_FALSE (wait_during (&f, &waits[i], then_us + DEADLINE_US, &error));

    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
    MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), DEADLINE_US);
    MUSTER_EXPECT_EQ (diary->len, 0u);
  }
}

MUSTER_TEST (Waits, of_hooks_and_functions_end_when_they_are_cancelled)
{
  for (gsize i = 0; i < G_N_ELEMENTS (waits); i++) {
    SET_UP (f);
    MusterPrepareOptions prepare = {0};
    MUSTER_TRACE ("%s", waits[i].what);
    come_to (&f, &waits[i], &prepare);
    muster_fake_clock_cancel_at (f.clock, CANCEL_US, f.cancellable);

    MUSTER_EXPECT_FALSE (wait_during (&f, &waits[i], MUSTER_WAIT_FOREVER, &error));

    MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), CANCEL_US);
    MUSTER_EXPECT_EQ (diary->len, 0u);
  }
}

static gboolean
wait_for_cancel (MusterCoordinator *coordinator, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  (void)muster_clock_wait_until (muster_system_clock (), MUSTER_WAIT_FOREVER,
                                 muster_coordinator_cancellable (coordinator), NULL);
  g_atomic_int_set ((gint *)user_data, 1);
  return TRUE;
}

/* They may run steps that have no end. */
MUSTER_TEST (Waits, of_threads_end_when_the_session_is_cancelled)
{
  SET_UP (f);
  gint has_ended = 0;
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  MusterCoordinator *coordinator = muster_monitored_session_coordinator (f.session);
  muster_coordinator_start (coordinator, "waiter", wait_for_cancel, &has_ended, NULL);

  g_cancellable_cancel (f.cancellable);

  MUSTER_EXPECT_TRUE (muster_coordinator_should_stop (coordinator));
  while (!g_atomic_int_get (&has_ended))
    g_thread_yield ();
  MUSTER_EXPECT_EQ (diary->len, 0u);
}

/* A thread of the lost session that doesn't end has its grace, unless the run has less time. */
MUSTER_TEST (Waits, for_threads_of_a_lost_session_end_with_the_run)
{
  static const char *const train = "train";
  for (int is_cancelled = 0; is_cancelled <= 1; is_cancelled++) {
    static MusterThreadGate gates[2];
    SET_UP (f);
    MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
    muster_coordinator_start (muster_monitored_session_coordinator (f.session), "reader",
                              muster_thread_gate_wait, &gates[is_cancelled], NULL);
    muster_fake_master_fail (f.master, "train", 1, 1, MUSTER_ERROR_ABORTED, "gone");
    gint64 limit_us = is_cancelled ? CANCEL_US : DEADLINE_US;
    const gint64 now_us = muster_clock_now_us (MUSTER_CLOCK (f.clock));
    const MusterStep step = {
        .targets = &train, .n_targets = 1, .deadline_us = is_cancelled ? 0 : now_us + limit_us};
    if (is_cancelled)
      muster_fake_clock_cancel_at (f.clock, limit_us, f.cancellable);

    MUSTER_EXPECT_FALSE (muster_monitored_session_run (f.session, &step, NULL, NULL, &error));

    MUSTER_EXPECT_TRUE (error != NULL);
    MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), limit_us);
    MUSTER_EXPECT_EQ (diary->len, 0u);
    muster_thread_gate_open (&gates[is_cancelled]);
  }
}

/* Not the deadline of a run that is long over. */
MUSTER_TEST (Waits, for_threads_of_a_session_that_is_dropped_have_the_whole_grace)
{
  static const char *const train = "train";
  static MusterThreadGate gate;
  SET_UP (f);
  f.options.stop_grace_us = 7 * MUSTER_SECOND;
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  const gint64 soon_us = muster_clock_now_us (MUSTER_CLOCK (f.clock)) + MUSTER_SECOND;
  const MusterStep step = {.targets = &train, .n_targets = 1, .deadline_us = soon_us};
  MUSTER_EXPECT_TRUE (muster_monitored_session_run (f.session, &step, NULL, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  muster_fake_clock_pass (f.clock, 2 * MUSTER_SECOND);
  const gint64 before_us = muster_fake_clock_elapsed_us (f.clock);
  muster_coordinator_start (muster_monitored_session_coordinator (f.session), "reader",
                            muster_thread_gate_wait, &gate, NULL);

  g_clear_object (&f.session);

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock) - before_us, 7 * MUSTER_SECOND);
  muster_thread_gate_open (&gate);
}

static gboolean
feed_late (MusterTensor **feeds, gint64 deadline_us G_GNUC_UNUSED,
           GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data,
           GError **error G_GNUC_UNUSED)
{
  muster_fake_clock_pass (user_data, 10 * MUSTER_SECOND);
  feeds[0] = muster_tensor_new_float (1);
  return TRUE;
}

/* What a hook waits for before a run isn't the master's delay. */
MUSTER_TEST (Waits, of_hooks_do_not_count_as_the_steps_time)
{
  static const char *const tensors[] = {"v", NULL};
  SET_UP (f);
  monitored_add (&f, muster_feed_func_hook_new (tensors, feed_late, f.clock, NULL));
  f.options.step_timeout_us = 5 * MUSTER_SECOND;
  muster_fake_master_set_cost (f.master, "train", 4 * MUSTER_SECOND);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (f.session), 0u);
  MUSTER_EXPECT_EQ (diary->len, 0u);
}

/* A pause, too, is the run's; what it didn't finish is the next one's. */
MUSTER_TEST (Waits, for_a_master_that_is_down_end_with_the_run_and_go_on_in_the_next)
{
  static const char *const train = "train";
  const MusterRetryPolicy patient = {
      .budget = {[MUSTER_FAILURE_UNREACHABLE] = 1000, [MUSTER_FAILURE_LOST_SESSION] = 1000},
      .first_pause_us = 60 * MUSTER_SECOND,
      .last_pause_us = 60 * MUSTER_SECOND};
  SET_UP (f);
  f.options.recovery = &patient;
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  muster_fake_master_fail (f.master, "train", 1, 1, MUSTER_ERROR_ABORTED, "gone");
  muster_fake_master_fail (f.master, "create", 2, 1, MUSTER_ERROR_ABORTED, "gone again");
  muster_fake_master_fail (f.master, "create", 3, 3, MUSTER_ERROR_ABORTED, "gone again");
  const MusterStep step = {.targets = &train,
                           .n_targets = 1,
                           .deadline_us =
                               muster_clock_now_us (MUSTER_CLOCK (f.clock)) + MUSTER_SECOND};

  MUSTER_EXPECT_FALSE (muster_monitored_session_run (f.session, &step, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), MUSTER_SECOND);
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (diary->len, 0u);
}
