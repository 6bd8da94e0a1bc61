// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/notebook.h"
#include "tests/saver/async_fixture.h"

/* What a save does while another is under way: B001.43 and DIFF.30, and the byte budget. */

typedef struct {
  Async *f;
  gint64 step;
  MusterSaveTicket *ticket; /* (owned) */
  gint is_done;             /* atomic */
} Caller;

static gpointer
call_save (gpointer data)
{
  Caller *self = data;
  self->ticket = async_save (self->f, self->step, NULL);
  g_atomic_int_set (&self->is_done, TRUE);
  return NULL;
}

/* B001.43: the second waits until the first is on disk */
MUSTER_TEST (AsyncPolicy, block_holds_the_second_caller)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  Caller second = {.f = &f, .step = 2};
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_PUBLISH);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, &error);
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_PUBLISH));

  /* A deadline ends the wait. */
  g_autoptr (MusterSaveTicket) late = muster_async_saver_save (
      f.async, muster_test_tmpdir (), 2, g_get_monotonic_time (), NULL, &error);
  MUSTER_EXPECT_NULL (late);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_clear_error (&error);
  GThread *thread = g_thread_new ("second", call_save, &second);
  MUSTER_EXPECT_FALSE (g_atomic_int_get (&second.is_done));
  MUSTER_EXPECT_EQ (async_step (&f, MUSTER_SAVE_REQUESTED), 1);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_PUBLISH);
  g_thread_join (thread);

  MUSTER_EXPECT_EQ (muster_save_ticket_state (first), MUSTER_SAVE_DURABLE);
  MUSTER_EXPECT_TRUE (second.ticket != NULL);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  muster_save_ticket_unref (second.ticket);
}

static gpointer
cancel (gpointer cancellable)
{
  g_cancellable_cancel (cancellable);
  return NULL;
}

MUSTER_TEST (AsyncPolicy, block_lets_a_cancelled_caller_go)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, &error);

  GThread *thread = g_thread_new ("canceller", cancel, cancellable);
  g_autoptr (MusterSaveTicket) second = muster_async_saver_save (
      f.async, muster_test_tmpdir (), 2, async_soon (), cancellable, &error);
  g_thread_join (thread);

  MUSTER_EXPECT_NULL (second);
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* DIFF.30: never silently */
MUSTER_TEST (AsyncPolicy, skip_says_so_in_the_ticket)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.policy = MUSTER_SAVES_SKIP});
  g_autoptr (GError) error = NULL, own = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, &error);
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_BEGIN));

  g_autoptr (MusterSaveTicket) second = async_save (&f, 2, &error);

  MUSTER_ASSERT_TRUE (second != NULL);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (second), MUSTER_SAVE_SKIPPED);
  g_autofree char *why = muster_save_ticket_why (second);
  MUSTER_EXPECT_TRUE (strstr (why, "model.ckpt-1' is still being written"));
  MUSTER_EXPECT_FALSE (async_wait (second, MUSTER_SAVE_STAGED, &own));
  MUSTER_EXPECT_ERROR (own, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error)); /* a skipped one is no failure */
  MUSTER_EXPECT_NO_ERROR (error);
  g_auto (MusterSaveStatus) status = MUSTER_SAVE_STATUS_INIT;
  muster_async_saver_status (f.async, &status);
  MUSTER_EXPECT_EQ (status.step[MUSTER_SAVE_DURABLE], 1);
  MUSTER_EXPECT_EQ (status.step[MUSTER_SAVE_REQUESTED], 2);
  MUSTER_EXPECT_EQ (status.n_skipped, (guint64)1);
  g_autoptr (MusterSaveTicket) third = async_save (&f, 3, &error);
  MUSTER_EXPECT_TRUE (async_wait (third, MUSTER_SAVE_DURABLE, &error));
}

/* DIFF.30: the second may be skipped before the thread has begun with the first */
MUSTER_TEST (AsyncPolicy, skip_names_the_save_that_no_thread_has_begun_yet)
{
  for (int i = 0; i < 20; i++) {
    g_auto (Async) f = async_set_up ((AsyncHow){.policy = MUSTER_SAVES_SKIP});
    muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
    g_autoptr (MusterSaveTicket) first = async_save (&f, 1, NULL);

    g_autoptr (MusterSaveTicket) second = async_save (&f, 2, NULL);

    g_autofree char *why = muster_save_ticket_why (second);
    MUSTER_ASSERT_TRUE (strstr (why, "model.ckpt-1' is still being written"));
  }
}

/* DIFF.30 */
MUSTER_TEST (AsyncPolicy, replace_puts_the_newest_in_place_of_the_one_that_waits)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.policy = MUSTER_SAVES_REPLACE});
  g_autoptr (GError) error = NULL, own = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  async_set_w (&f, 1);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, &error);
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_BEGIN));
  async_set_w (&f, 2);
  g_autoptr (MusterSaveTicket) second = async_save (&f, 2, &error);
  async_set_w (&f, 3);
  g_autoptr (MusterSaveTicket) third = async_save (&f, 3, &error);
  async_set_w (&f, 4);

  MUSTER_EXPECT_EQ (muster_save_ticket_state (second), MUSTER_SAVE_REPLACED);
  MUSTER_EXPECT_FALSE (async_wait (second, MUSTER_SAVE_DURABLE, &own));
  MUSTER_EXPECT_ERROR (own, MUSTER_ERROR, MUSTER_ERROR_CANCELLED);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (first)), 1);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (second)), -1);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (third)), 3);
}

/* One save is being written, and the next waits, until the gate is opened. */
static void
hold_two (Async *f, MusterSaveTicket *tickets[2])
{
  muster_gate_storage_close_gate (f->gates, MUSTER_GATE_BEGIN);
  async_set_w (f, 1);
  tickets[0] = async_save (f, 1, NULL);
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f->gates, MUSTER_GATE_BEGIN));
  async_set_w (f, 2);
  tickets[1] = async_save (f, 2, NULL);
  async_set_w (f, 3);
}

/* DIFF.30 */
MUSTER_TEST (AsyncPolicy, replace_leaves_the_one_that_waits_if_the_newest_does_not_begin)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.policy = MUSTER_SAVES_REPLACE});
  g_autoptr (MusterMaster) other = muster_local_master_new ();
  g_autoptr (MusterSession) closed = muster_master_create_session (
      other, muster_meta_graph_graph (f.meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  MusterSaveTicket *held[2];
  hold_two (&f, held);
  g_autoptr (MusterSaveTicket) first = held[0], second = held[1];
  g_cancellable_cancel (cancelled);
  MUSTER_EXPECT_TRUE (muster_session_close (closed, async_soon (), NULL, NULL));

  MUSTER_EXPECT_NULL (muster_async_saver_save (f.async, muster_test_tmpdir (), 3, async_soon (),
                                               cancelled, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  MUSTER_EXPECT_NULL (muster_async_saver_save (f.async, muster_test_tmpdir (), 3,
                                               g_get_monotonic_time (), NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_clear_error (&error);
  muster_async_saver_set_model (f.async, f.saver, closed);
  MUSTER_EXPECT_NULL (async_save (&f, 3, &error));
  MUSTER_EXPECT_TRUE (error != NULL);
  g_clear_error (&error);

  MUSTER_EXPECT_EQ (muster_save_ticket_state (second), MUSTER_SAVE_STAGED);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (first)), 1);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (second)), 2);
}

/* DIFF.25, DIFF.30 */
MUSTER_TEST (AsyncPolicy, replace_reports_the_one_that_a_failed_save_has_overwritten)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.policy = MUSTER_SAVES_REPLACE});
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (1);
  g_autoptr (GError) error = NULL, own = NULL;
  MusterSaveTicket *held[2];
  muster_saver_add_saveable (f.saver, "notebook", MUSTER_SAVEABLE (notebook),
                             MUSTER_SAVEABLE_DEFAULT, NULL);
  hold_two (&f, held);
  g_autoptr (MusterSaveTicket) first = held[0], second = held[1];
  notebook->fails_to_copy = MUSTER_ERROR_INTERNAL;

  MUSTER_EXPECT_NULL (async_save (&f, 3, NULL));

  MUSTER_EXPECT_EQ (muster_save_ticket_state (second), MUSTER_SAVE_FAILED);
  MUSTER_EXPECT_FALSE (async_wait (second, MUSTER_SAVE_DURABLE, &own));
  MUSTER_EXPECT_ERROR (own, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_TRUE (strstr (own->message, "model.ckpt-2: discarded for a newer save, which "
                                            "failed: Saving '"));
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_FALSE (async_sync (&f, &error));
  MUSTER_EXPECT_STREQ (error->message, own->message);
  MUSTER_EXPECT_TRUE (async_sync (&f, NULL));
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (first)), 1);
  notebook->fails_to_copy = 0;
  g_autoptr (MusterSaveTicket) third = async_save (&f, 3, NULL); /* its slot is free */
  MUSTER_EXPECT_TRUE (async_wait (third, MUSTER_SAVE_DURABLE, NULL));
}

/* The small model takes 16 bytes. */
MUSTER_TEST (AsyncPolicy, a_budget_lets_as_many_snapshots_wait_as_fit)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.budget_bytes = 47});
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  async_set_w (&f, 1);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, &error);
  async_set_w (&f, 2);
  g_autoptr (MusterSaveTicket) second = async_save (&f, 2, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterSaveTicket) third = muster_async_saver_save (
      f.async, muster_test_tmpdir (), 3, g_get_monotonic_time (), NULL, &error);

  MUSTER_EXPECT_NULL (third);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_clear_error (&error);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (first)), 1);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (second)), 2);
}

MUSTER_TEST (AsyncPolicy, a_model_over_the_budget_is_saved_at_once_and_the_ticket_says_so)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.budget_bytes = 15});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (ticket), MUSTER_SAVE_DURABLE);
  g_autofree char *why = muster_save_ticket_why (ticket);
  MUSTER_EXPECT_TRUE (strstr (why, "saved at once"));
  MUSTER_EXPECT_EQ (async_step (&f, MUSTER_SAVE_DURABLE), 1);
  g_autofree char *latest = async_latest ();
  MUSTER_EXPECT_STREQ (latest, "model.ckpt-1");
  muster_gate_storage_fail (f.gates, 1, MUSTER_ERROR_UNAVAILABLE, "away");
  g_autoptr (MusterSaveTicket) failed = async_save (&f, 2, &error);
  MUSTER_EXPECT_NULL (failed);
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
}

static gboolean
rest (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
      GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED,
      GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static gboolean
is_quiesced (MusterSession *session G_GNUC_UNUSED, gboolean *is_consistent,
             gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
             gpointer user_data G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  *is_consistent = TRUE;
  return TRUE;
}

static gboolean
call_it_100 (MusterSession *session G_GNUC_UNUSED, gint64 *step, gint64 deadline_us G_GNUC_UNUSED,
             GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED,
             GError **error G_GNUC_UNUSED)
{
  *step = 100;
  return TRUE;
}

static void
release (MusterSession *session G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED)
{
}

/* A ticket has been given out by then. */
MUSTER_TEST (AsyncPolicy, saves_under_the_name_of_the_ticket_whatever_the_consistent_cut_says)
{
  static const MusterSaverConsistentCut consistent_cut = {rest, is_quiesced, call_it_100, release};
  for (guint64 budget = 0; budget <= 15; budget += 15) {
    g_auto (Async) f = async_set_up ((AsyncHow){.budget_bytes = budget});
    g_autoptr (GError) error = NULL;
    g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "mine", NULL);
    muster_saver_set_consistent_cut (f.saver, &consistent_cut, NULL, NULL);
    const gint64 w = 4 + (gint64)budget;
    async_set_w (&f, w);

    g_autoptr (MusterSaveTicket) numbered = async_save (&f, 1, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (MusterSaveTicket) named =
        muster_async_saver_write (f.async, prefix, async_soon (), NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);

    MUSTER_EXPECT_TRUE (async_wait (numbered, MUSTER_SAVE_DURABLE, &error));
    MUSTER_EXPECT_TRUE (async_wait (named, MUSTER_SAVE_DURABLE, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (numbered)), w);
    MUSTER_EXPECT_EQ (async_w_in (prefix), w);
    MUSTER_EXPECT_STREQ (muster_save_ticket_path (named), prefix);
  }
}

MUSTER_TEST (AsyncPolicy, replace_skips_where_the_budget_lets_none_wait)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.policy = MUSTER_SAVES_REPLACE, .budget_bytes = 16});
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, &error);
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_BEGIN));

  g_autoptr (MusterSaveTicket) second = async_save (&f, 2, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (second), MUSTER_SAVE_SKIPPED);
}
