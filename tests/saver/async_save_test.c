// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/held_master.h"
#include "tests/saver/async_fixture.h"

#include <unistd.h>

/* What is saved, under which name, and when it counts. */

/* B001.20 */
MUSTER_TEST (AsyncSaver, needs_a_saver_and_a_session)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_async_saver_new (NULL, f.session, MUSTER_SAVES_BLOCK, 0, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  g_clear_error (&error);
  MUSTER_EXPECT_NULL (muster_async_saver_new (f.saver, NULL, MUSTER_SAVES_BLOCK, 0, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* One that has been joined may still be listed. */
static guint
n_threads (void)
{
  g_autoptr (GDir) tasks = g_dir_open ("/proc/self/task", 0, NULL);
  guint n = 0;
  while (g_dir_read_name (tasks) != NULL)
    n++;
  return n;
}

/* B001.25 */
MUSTER_TEST (AsyncSaver, makes_nothing_before_its_first_save)
{
  guint before = n_threads ();
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  MUSTER_EXPECT_LE (n_threads (), before);
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  MUSTER_EXPECT_EQ (g_strv_length (files), 0u);
  MUSTER_EXPECT_EQ (muster_async_saver_save_counter (f.async), 0);
}

MUSTER_TEST (AsyncSaver, is_prepared_without_a_thread_or_a_file)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  guint before = n_threads ();
  MUSTER_EXPECT_TRUE (muster_async_saver_prepare (f.async, async_soon (), NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_LE (n_threads (), before);
  MUSTER_EXPECT_EQ (muster_async_saver_save_counter (f.async), 0);
  async_set_w (&f, 123);
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (ticket)), 123);
}

/* B001.40, B001.65 */
MUSTER_TEST (AsyncSaver, numbers_its_saves_from_one)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) first = async_save (&f, -1, &error);
  g_autoptr (MusterSaveTicket) second = async_save (&f, -1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *first_name = async_name (first), *second_name = async_name (second);
  MUSTER_EXPECT_STREQ (first_name, "model.ckpt-1");
  MUSTER_EXPECT_STREQ (second_name, "model.ckpt-2");
  MUSTER_EXPECT_EQ (muster_save_ticket_step (second), 2);
  MUSTER_EXPECT_EQ (muster_async_saver_save_counter (f.async), 2);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  g_autofree char *latest = async_latest ();
  MUSTER_EXPECT_STREQ (latest, "model.ckpt-2");
}

MUSTER_TEST (AsyncSaver, takes_the_step_it_is_given_and_counts_on_from_it)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) given = async_save (&f, 1200, &error);
  g_autoptr (MusterSaveTicket) counted = async_save (&f, -1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *given_name = async_name (given), *counted_name = async_name (counted);
  MUSTER_EXPECT_STREQ (given_name, "model.ckpt-1200");
  MUSTER_EXPECT_STREQ (counted_name, "model.ckpt-1201");
}

/* B001.41 */
MUSTER_TEST (AsyncSaver, writes_to_a_prefix_without_counting_or_naming_it_the_latest)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "mine", NULL);
  g_autoptr (GError) error = NULL;
  async_set_w (&f, 123);

  g_autoptr (MusterSaveTicket) ticket =
      muster_async_saver_write (f.async, prefix, async_soon (), NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (async_wait (ticket, MUSTER_SAVE_DURABLE, &error));
  MUSTER_EXPECT_STREQ (muster_save_ticket_path (ticket), prefix);
  MUSTER_EXPECT_EQ (async_w_in (prefix), 123);
  MUSTER_EXPECT_EQ (muster_async_saver_save_counter (f.async), 0);
  g_autofree char *latest = async_latest ();
  MUSTER_EXPECT_STREQ (latest, "none");
  g_auto (GStrv) list = muster_saver_last_checkpoints (f.saver);
  MUSTER_EXPECT_EQ (g_strv_length (list), 0u);
}

/* B001.35, B001.42: the cut is the moment of the call, not of the write */
MUSTER_TEST (AsyncSaver, saves_what_was_there_when_it_was_asked)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  async_set_w (&f, 123);

  g_autoptr (MusterSaveTicket) first = async_save (&f, -1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  async_set_w (&f, 234);
  MUSTER_EXPECT_FALSE (muster_checkpoint_exists (NULL, muster_save_ticket_path (first)));
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (async_wait (first, MUSTER_SAVE_DURABLE, &error));
  async_set_w (&f, 345);
  g_autoptr (MusterSaveTicket) second = async_save (&f, -1, &error);
  async_set_w (&f, 456);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (first)), 123);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (second)), 345);
  MUSTER_EXPECT_EQ (async_w (&f), 456);
}

/* B001.66 */
MUSTER_TEST (AsyncSaver, restores_right_after_a_save_what_it_saved)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  async_set_w (&f, 123);
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, -1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  async_set_w (&f, 234);

  MUSTER_EXPECT_TRUE (muster_async_saver_read (f.async, muster_save_ticket_path (ticket),
                                               async_soon (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (async_w (&f), 123);
}

/* A saver's own time limit holds for the snapshot as well: the master may be silent. */
MUSTER_TEST (AsyncSaver, takes_a_snapshot_within_the_savers_time)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  const MusterSaverOptions options = {.save_timeout_us = 50 * MUSTER_MILLISECOND};
  g_autoptr (MusterHeldMaster) held = muster_held_master_new (f.master);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaver) saver = muster_saver_new (f.meta_graph, &options, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterSession) session =
      muster_master_create_session (MUSTER_MASTER (held), muster_meta_graph_graph (f.meta_graph),
                                    NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterAsyncSaver) async =
      muster_async_saver_new (saver, session, MUSTER_SAVES_BLOCK, 0, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  muster_held_master_hold (held, TRUE);

  MUSTER_EXPECT_NULL (
      muster_async_saver_save (async, muster_test_tmpdir (), 1, MUSTER_WAIT_FOREVER, NULL, &error));

  muster_held_master_hold (held, FALSE);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

/* With the options and the report of a restore that blocks; it waits for the save under way. */
MUSTER_TEST (AsyncSaver, restores_the_newest_of_a_directory_and_reports_it)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_auto (MusterRestored) restored = {0};
  g_autoptr (GError) error = NULL;
  async_set_w (&f, 123);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 5, &error);
  MUSTER_ASSERT_TRUE (async_sync (&f, &error));
  async_set_w (&f, 234);
  g_autoptr (MusterSaveTicket) second = async_save (&f, 6, &error);
  MUSTER_ASSERT_TRUE (async_sync (&f, &error));
  g_autofree char *data =
      g_strconcat (muster_save_ticket_path (second), ".data-00000-of-00001", NULL);
  MUSTER_ASSERT_EQ (truncate (data, 1), 0);
  async_set_w (&f, 345);
  g_autofree char *apart = g_build_filename (muster_test_tmpdir (), "apart", NULL);
  g_autoptr (MusterSaveTicket) written =
      muster_async_saver_write (f.async, apart, async_soon (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (muster_async_saver_restore (
      f.async, &(MusterRestoreOptions){.directory = muster_test_tmpdir ()}, &restored,
      async_soon (), NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (written), MUSTER_SAVE_DURABLE);
  MUSTER_EXPECT_STREQ (restored.prefix, muster_save_ticket_path (first));
  MUSTER_EXPECT_TRUE (restored.passed_over != NULL &&
                      strstr (restored.passed_over, "model.ckpt-6") != NULL);
  MUSTER_EXPECT_EQ (async_w (&f), 123);
}

/* B001.61, B001.62, B001.65 */
MUSTER_TEST (AsyncSaver, restores_without_a_save_and_counts_on_from_there)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-7", NULL);
  g_autoptr (GError) error = NULL;
  guint before = n_threads ();
  muster_small_model_write (prefix, muster_small_variables, 2, 1, &error);

  MUSTER_EXPECT_TRUE (muster_async_saver_read (f.async, prefix, async_soon (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_LE (n_threads (), before);
  MUSTER_EXPECT_EQ (async_w (&f), 0x0101010101010101);
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, -1, &error);
  MUSTER_EXPECT_EQ (muster_save_ticket_step (ticket), 8);
  MUSTER_EXPECT_TRUE (async_sync (&f, NULL));
}

/* DIFF.29, and the four numbers */
MUSTER_TEST (AsyncSaver, moves_latest_only_when_the_checkpoint_is_durable)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) first = async_save (&f, 10, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_PUBLISH);
  g_autoptr (MusterSaveTicket) second = async_save (&f, 20, &error);
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_BEGIN));
  g_auto (MusterSaveStatus) staged = MUSTER_SAVE_STATUS_INIT;
  muster_async_saver_status (f.async, &staged);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (second), MUSTER_SAVE_STAGED);
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (async_wait (second, MUSTER_SAVE_WRITTEN, &error));
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_PUBLISH));
  g_auto (MusterSaveStatus) written = MUSTER_SAVE_STATUS_INIT;
  muster_async_saver_status (f.async, &written);
  g_autofree char *still = async_latest ();
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_PUBLISH);
  MUSTER_EXPECT_TRUE (async_wait (second, MUSTER_SAVE_DURABLE, &error));
  g_auto (MusterSaveStatus) durable = MUSTER_SAVE_STATUS_INIT;
  muster_async_saver_status (f.async, &durable);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (staged.step[MUSTER_SAVE_REQUESTED], 20);
  MUSTER_EXPECT_EQ (staged.step[MUSTER_SAVE_STAGED], 20);
  MUSTER_EXPECT_EQ (staged.step[MUSTER_SAVE_WRITTEN], 10);
  MUSTER_EXPECT_EQ (staged.step[MUSTER_SAVE_DURABLE], 10);
  MUSTER_EXPECT_EQ (written.step[MUSTER_SAVE_WRITTEN], 20);
  MUSTER_EXPECT_EQ (written.step[MUSTER_SAVE_DURABLE], 10);
  MUSTER_EXPECT_STREQ (still, "model.ckpt-10");
  MUSTER_EXPECT_EQ (durable.step[MUSTER_SAVE_DURABLE], 20);
  g_autofree char *latest = async_latest ();
  MUSTER_EXPECT_STREQ (latest, "model.ckpt-20");
}

/* On the engine a snapshot is a reference, and it is given back (docs/decisions/0004). */
MUSTER_TEST (AsyncSaver, holds_the_very_memory_until_it_is_written)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (MusterTensor) value = muster_tensor_new_int64 (123);
  g_autoptr (GError) error = NULL;
  async_assign_w (&f, value);
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);

  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  async_set_w (&f, 234); /* now it is the shadow's and ours */
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (value));
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_tensor_is_exclusive (value));
}

/* B001.16, DIFF.24: another graph, another list */
MUSTER_TEST (AsyncSaver, saves_the_variables_of_a_graph_that_has_grown)
{
  const MusterSmallVariable grown[] = {{"v", MUSTER_FLOAT, 1, {2, 0}},
                                       {"w", MUSTER_INT64, 0, {0, 0}},
                                       {"x", MUSTER_FLOAT, 0, {0, 0}}};
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) small = async_save (&f, 1, &error);
  g_autoptr (MusterMetaGraph) meta_graph = muster_small_model_new (grown, 3, 0);
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, NULL, &error);
  g_autoptr (MusterSession) session = muster_master_create_session (
      f.master, muster_meta_graph_graph (meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  muster_session_run_op (session, "x/Assign", MUSTER_WAIT_FOREVER, NULL, &error);

  muster_async_saver_set_model (f.async, saver, session);
  g_autoptr (MusterSaveTicket) large = async_save (&f, 2, &error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) before =
      muster_bundle_reader_open (NULL, muster_save_ticket_path (small), NULL);
  g_autoptr (MusterBundleReader) after =
      muster_bundle_reader_open (NULL, muster_save_ticket_path (large), NULL);
  MUSTER_ASSERT_TRUE (before != NULL && after != NULL);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (before), 2u);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (after), 3u);
}

/* A session that the master lost is replaced. */
MUSTER_TEST (AsyncSaver, goes_on_with_another_session)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, &error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  muster_session_close_quietly (f.session);

  g_autoptr (MusterSaveTicket) lost = async_save (&f, 2, &error);
  MUSTER_EXPECT_NULL (lost);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  g_clear_error (&error);
  g_autoptr (MusterSession) session = muster_master_create_session (
      f.master, muster_meta_graph_graph (f.meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  muster_async_saver_set_model (f.async, f.saver, session);
  g_autoptr (MusterSaveTicket) again = async_save (&f, 3, &error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *latest = async_latest ();
  MUSTER_EXPECT_STREQ (latest, "model.ckpt-3");
}
