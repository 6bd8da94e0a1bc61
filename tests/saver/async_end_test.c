// SPDX-License-Identifier: Apache-2.0
#include "saver/async/async_private.h"
#include "tests/doubles/heard.h"
#include "tests/saver/async_fixture.h"

/* sync, cancel, shutdown and the last unref: B001.50 to B001.55, B001.64, B001.70 to B001.76,
 * DIFF.26, DIFF.27. */

/* B001.64 */
MUSTER_TEST (AsyncEnd, sync_with_nothing_to_wait_for_is_fine)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (AsyncEnd, sync_ends_at_its_deadline)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);

  MUSTER_EXPECT_FALSE (muster_async_saver_sync (f.async, g_get_monotonic_time (), NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_autoptr (GError) own = NULL;
  MUSTER_EXPECT_FALSE (
      muster_save_ticket_wait (ticket, MUSTER_SAVE_DURABLE, g_get_monotonic_time (), NULL, &own));
  MUSTER_EXPECT_ERROR (own, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

/* B001.73 */
MUSTER_TEST (AsyncEnd, shutdown_without_a_save_comes_back_at_once)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_async_saver_shutdown (f.async, g_get_monotonic_time (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* On a busy machine the thread, which has a low priority, may have nothing left but its end. */
MUSTER_TEST (AsyncEnd, shutdown_misses_nothing_where_only_the_thread_is_late)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_EXPECT_TRUE (muster_async_saver_shutdown (f.async, g_get_monotonic_time (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (ticket), MUSTER_SAVE_DURABLE);
  MUSTER_EXPECT_TRUE (muster_async_saver_shutdown (f.async, async_soon (), NULL, &error));
}

/* B001.76, B001.53 */
MUSTER_TEST (AsyncEnd, shutdown_lets_what_is_written_be_completed)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.budget_bytes = 1000});
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, &error);
  g_autoptr (MusterSaveTicket) second = async_save (&f, 2, &error);
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_BEGIN));
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);

  MUSTER_EXPECT_TRUE (muster_async_saver_shutdown (f.async, async_soon (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (first), MUSTER_SAVE_DURABLE);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (second), MUSTER_SAVE_DURABLE);
}

/* DIFF.26 (B001.74): refused, none hangs */
MUSTER_TEST (AsyncEnd, nothing_works_after_shutdown_but_shutdown)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) save = NULL, write = NULL, restore = NULL, sync = NULL, again = NULL;
  MUSTER_EXPECT_TRUE (muster_async_saver_shutdown (f.async, async_soon (), NULL, NULL));

  MUSTER_EXPECT_NULL (async_save (&f, 1, &save));
  MUSTER_EXPECT_NULL (muster_async_saver_write (f.async, "p", async_soon (), NULL, &write));
  MUSTER_EXPECT_FALSE (muster_async_saver_read (f.async, "p", async_soon (), NULL, &restore));
  MUSTER_EXPECT_FALSE (async_sync (&f, &sync));
  MUSTER_EXPECT_TRUE (muster_async_saver_shutdown (f.async, async_soon (), NULL, &again));

  MUSTER_EXPECT_ERROR (save, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_ERROR (write, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_ERROR (restore, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_ERROR (sync, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_NO_ERROR (again);
}

/* DIFF.26 (B001.71, B001.72): the bound bounds the write as well */
MUSTER_TEST (AsyncEnd, shutdown_is_bounded_and_gives_up_what_is_under_way)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.budget_bytes = 1000});
  g_autoptr (GError) error = NULL, first_error = NULL, second_error = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, &error);
  g_autoptr (MusterSaveTicket) second = async_save (&f, 2, &error);
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_BEGIN));

  MUSTER_EXPECT_FALSE (
      muster_async_saver_shutdown (f.async, g_get_monotonic_time (), NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, "Timeout waiting for the async save thread"));
  MUSTER_EXPECT_TRUE (strstr (error->message, "model.ckpt-1"));
  MUSTER_EXPECT_TRUE (strstr (error->message, "may be incomplete"));
  g_clear_error (&error);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (muster_async_saver_shutdown (f.async, async_soon (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (async_wait (first, MUSTER_SAVE_DURABLE, &first_error));
  MUSTER_EXPECT_ERROR (first_error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_FALSE (async_wait (second, MUSTER_SAVE_DURABLE, &second_error));
  MUSTER_EXPECT_ERROR (second_error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_autofree char *latest = async_latest ();
  MUSTER_EXPECT_STREQ (latest, "none");
}

/* What its caller gives up is no failure for others to hear of. */
MUSTER_TEST (AsyncEnd, a_ticket_that_is_cancelled_publishes_nothing)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL, own = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);

  muster_save_ticket_cancel (ticket);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);

  MUSTER_EXPECT_FALSE (async_wait (ticket, MUSTER_SAVE_DURABLE, &own));
  MUSTER_EXPECT_ERROR (own, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *latest = async_latest ();
  MUSTER_EXPECT_STREQ (latest, "none");
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  MUSTER_EXPECT_EQ (g_strv_length (files), 0u);
}

/* DIFF.27 (B001.24): it ends with its last reference, and what is written is completed */
MUSTER_TEST (AsyncEnd, the_last_unref_waits_for_what_is_written)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  gpointer weak = f.async;
  g_object_add_weak_pointer (G_OBJECT (f.async), &weak);

  g_clear_object (&f.async);

  MUSTER_EXPECT_NULL (weak);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (ticket), MUSTER_SAVE_DURABLE);
}

MUSTER_TEST (AsyncEnd, the_last_unref_is_bounded_and_warns)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  muster_async_saver_set_dispose_wait (f.async, 1);
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_BEGIN));

  heard_begin (G_LOG_LEVEL_WARNING);
  g_clear_object (&f.async);
  MUSTER_EXPECT_EQ (heard_count ("save", "*freed before it was shut down*"), 1U);
  heard_end ();

  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_FALSE (async_wait (ticket, MUSTER_SAVE_DURABLE, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

static void
drop (MusterSaveTicket *ticket G_GNUC_UNUSED, gpointer data)
{
  Async *f = *(Async **)data;
  g_clear_object (&f->async);
}

static void
note_gone (gpointer data, GObject *object G_GNUC_UNUSED)
{
  g_atomic_int_set ((gint *)data, TRUE);
}

/* From its own callback: it can't wait for itself, and needn't. */
MUSTER_TEST (AsyncEnd, the_last_unref_may_come_from_its_own_thread)
{
  Async *self = NULL;
  g_auto (Async) f = async_set_up ((AsyncHow){.finished = drop, .finished_data = &self});
  g_autoptr (GError) error = NULL;
  self = &f;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  gint is_gone = FALSE;
  g_object_weak_ref (G_OBJECT (f.async), note_gone, &is_gone);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);

  MUSTER_EXPECT_TRUE (async_wait (ticket, MUSTER_SAVE_DURABLE, &error));
  const gint64 until_us = async_soon ();
  while (!g_atomic_int_get (&is_gone) && g_get_monotonic_time () < until_us)
    g_thread_yield ();

  MUSTER_EXPECT_TRUE (g_atomic_int_get (&is_gone));
}

static void
count (MusterSaveTicket *ticket, gpointer data)
{
  GPtrArray *seen = data;
  if (muster_save_ticket_state (ticket) == MUSTER_SAVE_DURABLE &&
      muster_checkpoint_exists (muster_local_storage (), muster_save_ticket_path (ticket)))
    g_ptr_array_add (seen, g_thread_self ());
}

/* B001.48, B001.50, B001.55: one thread for all, one after the other, and the files are there when
 * it calls */
MUSTER_TEST (AsyncEnd, one_thread_writes_and_calls_back_for_each)
{
  g_autoptr (GPtrArray) seen = g_ptr_array_new ();
  g_auto (Async) f = async_set_up ((AsyncHow){.finished = count, .finished_data = seen});
  g_autoptr (GError) error = NULL;
  for (gint64 step = 1; step <= 3; step++) {
    g_autoptr (MusterSaveTicket) ticket = async_save (&f, step, &error);
    MUSTER_EXPECT_TRUE (ticket != NULL);
  }
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (seen->len, 3u);
  MUSTER_EXPECT_TRUE (seen->pdata[0] == seen->pdata[1] && seen->pdata[1] == seen->pdata[2]);
  MUSTER_EXPECT_FALSE (seen->pdata[0] == (gpointer)g_thread_self ());
}

/* B001.30, B001.51, B001.53, B001.56, B001.64, B001.70: what it says on the way */
MUSTER_TEST (AsyncEnd, says_what_it_does)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  heard_begin (G_LOG_LEVEL_DEBUG);
  muster_gate_storage_fail (f.gates, 1, MUSTER_ERROR_UNAVAILABLE, "away");

  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 7, NULL);
  (void)async_sync (&f, NULL);
  (void)muster_async_saver_shutdown (f.async, async_soon (), NULL, NULL);

  const char *said[] = {"Initializing async checkpoint's save_counter: 7",
                        "Starting async checkpoint save on the device: *",
                        "Sync on ongoing save/restore.",
                        "Propagating the most recent error from the async thread: *",
                        "Joining the async save thread.",
                        "Async save thread reached the end of the execution."};
  for (gsize i = 0; i < G_N_ELEMENTS (said); i++)
    if (!heard_wait ("save", said[i]))
      MUSTER_FAIL ("'%s' isn't in the log", said[i]);
  heard_end ();
}

/* B001.1 to B001.7 as muster has them: recorded before the end is announced */
MUSTER_TEST (AsyncEnd, numbers_are_there_when_a_save_has_ended)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) good = async_save (&f, 1, &error);
  MUSTER_EXPECT_TRUE (async_wait (good, MUSTER_SAVE_DURABLE, &error));
  MusterSaveMetrics after_good = muster_async_saver_metrics (f.async);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  muster_gate_storage_fail (f.gates, 1, MUSTER_ERROR_UNAVAILABLE, "away");
  g_autoptr (MusterSaveTicket) bad = async_save (&f, 2, &error);
  MUSTER_EXPECT_FALSE (async_wait (bad, MUSTER_SAVE_DURABLE, NULL));
  MusterSaveMetrics after_bad = muster_async_saver_metrics (f.async);
  MUSTER_EXPECT_NULL (async_save (&f, 3, NULL)); /* reports: B001.3, not recorded */
  MusterSaveMetrics after_none = muster_async_saver_metrics (f.async);

  MUSTER_EXPECT_EQ (after_good.async_write_us.count, 1u);
  MUSTER_EXPECT_EQ (after_good.n_durable, 1u);
  MUSTER_EXPECT_EQ (after_bad.async_write_us.count, 2u); /* B001.4 */
  MUSTER_EXPECT_EQ (after_bad.n_failed, 1u);
  MUSTER_EXPECT_EQ (after_bad.progress_saved_us, after_good.progress_saved_us); /* DIFF.28 */
  MUSTER_EXPECT_EQ (after_bad.save_blocked_us.count, 2u);
  MUSTER_EXPECT_EQ (after_none.save_blocked_us.count, 2u);
  MUSTER_EXPECT_GE (muster_save_metrics_process ().n_durable, 1u);
}
