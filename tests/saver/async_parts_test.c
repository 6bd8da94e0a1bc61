// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/notebook.h"
#include "tests/saver/async_fixture.h"

/* What goes into a save in the background, when that is asked, and whose it is. */

/* B001.11: the saver and its counter are no part of the model. */
MUSTER_TEST (AsyncParts, leave_the_saver_and_its_counter_out)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) first = async_save (&f, -1, &error);
  g_autoptr (MusterSaveTicket) second = async_save (&f, -1, &error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_async_saver_save_counter (f.async), 2);
  g_autofree char *names = muster_small_model_names (muster_save_ticket_path (second));
  MUSTER_EXPECT_STREQ (names, "v w");
}

/* B001.15: what is there at the first save counts, not what was there when the saver was made. */
MUSTER_TEST (AsyncParts, are_listed_when_the_first_save_is_asked_for)
{
  const MusterSmallVariable with_slot[] = {{"v", MUSTER_FLOAT, 1, {2, 0}},
                                           {"w", MUSTER_INT64, 0, {0, 0}},
                                           {"w/Momentum", MUSTER_INT64, 0, {0, 0}}};
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autoptr (MusterMetaGraph) meta_graph = muster_small_model_new (with_slot, 3, 0);
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, NULL, NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = muster_master_create_session (
      f.master, muster_meta_graph_graph (meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  (void)muster_session_run_op (session, "w/Momentum/Assign", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  muster_async_saver_set_model (f.async, saver, session);
  muster_saver_add_saveable (saver, "late", MUSTER_SAVEABLE (notebook), MUSTER_SAVEABLE_DEFAULT,
                             &error);
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *names = muster_small_model_names (muster_save_ticket_path (ticket));
  MUSTER_EXPECT_STREQ (names, "late/n v w w/Momentum"); /* B001.14: a slot is a variable */
}

/* B001.22: it is given, and kept: the same one saves all. */
MUSTER_TEST (AsyncParts, are_saved_by_the_saver_that_was_given)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  gpointer saver = f.saver;
  g_object_add_weak_pointer (G_OBJECT (f.saver), &saver);

  g_clear_object (&f.saver);
  MUSTER_ASSERT_TRUE (saver != NULL);
  for (gint64 step = 1; step <= 2; step++) {
    g_autoptr (MusterSaveTicket) ticket = async_save (&f, step, &error);
    MUSTER_EXPECT_TRUE (ticket != NULL);
  }
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_auto (GStrv) list = muster_saver_last_checkpoints (saver);
  MUSTER_EXPECT_EQ (g_strv_length (list), 2u);
  g_clear_object (&f.async);

  MUSTER_EXPECT_NULL (saver);
}

/* B001.32: nothing is before the first, and nothing is copied for it twice. */
MUSTER_TEST (AsyncParts, are_copied_once_for_the_first_save_which_waits_for_nobody)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (MusterNotebook) notebook = muster_far_notebook_new (7);
  g_autoptr (GError) error = NULL;
  muster_saver_add_saveable (f.saver, "n", MUSTER_SAVEABLE (notebook), MUSTER_SAVEABLE_DEFAULT,
                             &error);
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);

  g_autoptr (MusterSaveTicket) ticket =
      muster_async_saver_save (f.async, muster_test_tmpdir (), 1, async_soon (), NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (ticket), MUSTER_SAVE_STAGED);
  MUSTER_EXPECT_EQ (notebook->n_copied, 1u);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (notebook->n_copied, 1u);
  MUSTER_EXPECT_EQ (notebook->n_retrieved, 1u);
}

/* B001.8: the saver behind doesn't count what its caller was held once more. */
MUSTER_TEST (AsyncParts, are_counted_once_in_the_background)
{
  const MusterSaveMetrics before = muster_save_metrics_process ();
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  const MusterSaveMetrics own = muster_async_saver_metrics (f.async);
  const MusterSaveMetrics after = muster_save_metrics_process ();
  MUSTER_EXPECT_EQ (own.save_blocked_us.count, 1u);
  MUSTER_EXPECT_EQ (own.async_write_us.count, 1u);
  MUSTER_EXPECT_EQ (own.n_durable, 1u);
  MUSTER_EXPECT_EQ (after.save_blocked_us.count - before.save_blocked_us.count, 1u);
  MUSTER_EXPECT_EQ (after.async_write_us.count - before.async_write_us.count, 1u);
  MUSTER_EXPECT_EQ (after.n_durable - before.n_durable, 1u);
}

/* B001.8: a write in the caller's own time is no write in the background, and a checkpoint. */
MUSTER_TEST (AsyncParts, are_counted_once_where_they_are_saved_at_once)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.budget_bytes = 15});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  muster_gate_storage_fail (f.gates, 1, MUSTER_ERROR_UNAVAILABLE, "away");
  MUSTER_EXPECT_NULL (async_save (&f, 2, NULL));

  const MusterSaveMetrics own = muster_async_saver_metrics (f.async);
  MUSTER_EXPECT_EQ (own.save_blocked_us.count, 1u);
  MUSTER_EXPECT_EQ (own.async_write_us.count, 0u);
  MUSTER_EXPECT_EQ (own.n_durable, 1u);
  MUSTER_EXPECT_EQ (own.n_failed, 1u);
}

/* B001.60: what is under way comes first; then the model's own variables are assigned. */
MUSTER_TEST (AsyncParts, are_restored_after_the_save_that_is_under_way)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.budget_bytes = 1000});
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-7", NULL);
  g_autoptr (GError) error = NULL;
  muster_small_model_write (prefix, muster_small_variables, 2, 1, &error);
  async_set_w (&f, 123);
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 8, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (
      muster_async_saver_read (f.async, prefix, g_get_monotonic_time (), NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (async_w (&f), 123);
  g_clear_error (&error);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (muster_async_saver_read (f.async, prefix, async_soon (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (ticket), MUSTER_SAVE_DURABLE);
  MUSTER_EXPECT_EQ (async_w (&f), 0x0101010101010101);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (ticket)), 123);
}

/* B001.63, DIFF.28: a save under way, written or waiting, keeps what it began with. */
MUSTER_TEST (AsyncParts, of_a_save_under_way_are_as_it_began)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.budget_bytes = 1000});
  const MusterSaverOptions other = {.base_name = "other", .unlisted = TRUE, .no_meta_graph = TRUE};
  g_autoptr (MusterSaver) saver = muster_saver_new (f.meta_graph, &other, NULL);
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) written = async_save (&f, 1, &error);
  async_set_w (&f, 123);
  g_autoptr (MusterSaveTicket) waiting = async_save (&f, 2, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_BEGIN));

  MUSTER_EXPECT_FALSE (muster_async_saver_read (f.async, muster_save_ticket_path (written),
                                                g_get_monotonic_time (), NULL, NULL));
  muster_async_saver_set_model (f.async, saver, f.session);
  async_set_w (&f, 234);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *latest = async_latest ();
  g_autofree char *meta = g_strconcat (muster_save_ticket_path (waiting), ".meta", NULL);
  MUSTER_EXPECT_STREQ (latest, "model.ckpt-2");
  MUSTER_EXPECT_TRUE (g_file_test (meta, G_FILE_TEST_EXISTS));
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (waiting)), 123);
}

/* Ends two savers of one model, the first or the second first; what both began is there. */
static void
end_two (gboolean second_first)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (MusterAsyncSaver) other =
      muster_async_saver_new (f.saver, f.session, MUSTER_SAVES_BLOCK, 0, NULL);
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, &error);
  g_autoptr (MusterSaveTicket) second =
      muster_async_saver_save (other, muster_test_tmpdir (), 2, async_soon (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_BEGIN));
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);

  MUSTER_EXPECT_TRUE (
      muster_async_saver_shutdown (second_first ? other : f.async, async_soon (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (second_first ? second : first), MUSTER_SAVE_DURABLE);
  MusterAsyncSaver *left = second_first ? f.async : other;
  g_autoptr (MusterSaveTicket) third =
      muster_async_saver_save (left, muster_test_tmpdir (), 3, async_soon (), NULL, &error);
  MUSTER_EXPECT_TRUE (muster_async_saver_shutdown (left, async_soon (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (first), MUSTER_SAVE_DURABLE);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (second), MUSTER_SAVE_DURABLE);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (third), MUSTER_SAVE_DURABLE);
}

/* B001.75 has an order of exit hooks; here each is ended by its owner, in any order, and the others
 * go on. */
MUSTER_TEST (AsyncParts, of_two_savers_end_with_the_later_one_first)
{
  end_two (TRUE);
}

MUSTER_TEST (AsyncParts, of_two_savers_end_with_the_earlier_one_first)
{
  end_two (FALSE);
}
