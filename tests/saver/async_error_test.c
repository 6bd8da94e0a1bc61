// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/notebook.h"
#include "tests/saver/async_fixture.h"

/* Who hears of a failure, and when: B001.45 to B001.47, B001.52, B001.56 to B001.58, DIFF.25. */

/* B001.45, B001.46, B001.47, B001.52, B001.58 */
MUSTER_TEST (AsyncError, is_reported_by_the_next_save_in_its_place_and_once)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL, own = NULL, again = NULL;
  muster_gate_storage_fail (f.gates, 1, MUSTER_ERROR_RESOURCE_EXHAUSTED, "no room");

  g_autoptr (MusterSaveTicket) failed = async_save (&f, -1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterSaveTicket) none = async_save (&f, -1, &error);
  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  g_clear_error (&error);
  g_autoptr (MusterSaveTicket) next = async_save (&f, -1, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  /* The ticket tells its own, however often. */
  MUSTER_EXPECT_FALSE (async_wait (failed, MUSTER_SAVE_DURABLE, &own));
  MUSTER_EXPECT_ERROR (own, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_EXPECT_FALSE (async_wait (failed, MUSTER_SAVE_STAGED, &again));
  MUSTER_EXPECT_ERROR (again, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_EXPECT_EQ (muster_save_ticket_state (failed), MUSTER_SAVE_FAILED);
  /* The number that was given out doesn't come again; the one of the save that wasn't begun does.
   */
  MUSTER_EXPECT_EQ (muster_save_ticket_step (failed), 1);
  MUSTER_EXPECT_EQ (muster_save_ticket_step (next), 2);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (next)), 0);
}

/* DIFF.25 */
MUSTER_TEST (AsyncError, is_reported_by_sync_once_and_stays_readable)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  muster_gate_storage_fail (f.gates, 1, MUSTER_ERROR_UNAVAILABLE, "away");

  MUSTER_EXPECT_NULL (muster_async_saver_last_failure (f.async));
  g_autoptr (MusterSaveTicket) failed = async_save (&f, 1, &error);
  MUSTER_EXPECT_FALSE (async_sync (&f, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (GError) last = muster_async_saver_last_failure (f.async);
  MUSTER_EXPECT_ERROR (last, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
  g_auto (MusterSaveStatus) status = MUSTER_SAVE_STATUS_INIT;
  muster_async_saver_status (f.async, &status);
  MUSTER_EXPECT_EQ (status.step[MUSTER_SAVE_STAGED], 1);
  MUSTER_EXPECT_EQ (status.step[MUSTER_SAVE_DURABLE], -1);
  MUSTER_EXPECT_EQ (status.n_failed, (guint64)1);
  MUSTER_EXPECT_NULL (status.saving);
}

/* B001.57: restore leaves it for the next save or sync */
MUSTER_TEST (AsyncError, is_left_alone_by_restore)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-7", NULL);
  g_autoptr (GError) error = NULL;
  muster_small_model_write (prefix, muster_small_variables, 2, 1, &error);
  muster_gate_storage_fail (f.gates, 1, MUSTER_ERROR_UNAVAILABLE, "away");
  g_autoptr (MusterSaveTicket) failed = async_save (&f, 1, &error);

  MUSTER_EXPECT_TRUE (muster_async_saver_read (f.async, prefix, async_soon (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (async_sync (&f, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
}

MUSTER_TEST (AsyncError, is_reported_by_shutdown)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  muster_gate_storage_fail (f.gates, 1, MUSTER_ERROR_UNAVAILABLE, "away");
  g_autoptr (MusterSaveTicket) failed = async_save (&f, 1, &error);

  MUSTER_EXPECT_FALSE (muster_async_saver_shutdown (f.async, async_soon (), NULL, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (muster_async_saver_shutdown (f.async, async_soon (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* B001.31: a first save that fails while it is staged leaves nothing, and the next does it all */
MUSTER_TEST (AsyncError, of_staging_is_the_callers_and_nothing_is_begun)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (MusterSession) empty = NULL;
  g_autoptr (MusterMaster) other = muster_local_master_new ();
  g_autoptr (GError) error = NULL;
  empty = muster_master_create_session (other, muster_meta_graph_graph (f.meta_graph), NULL,
                                        MUSTER_WAIT_FOREVER, NULL, &error);
  muster_async_saver_set_model (f.async, f.saver, empty);

  g_autoptr (MusterSaveTicket) none = async_save (&f, -1, &error);
  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_NULL (muster_async_saver_last_failure (f.async));
  g_clear_error (&error);
  (void)muster_session_run_op (empty, "init", MUSTER_WAIT_FOREVER, NULL, &error);
  g_autoptr (MusterSaveTicket) next = async_save (&f, -1, &error);

  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (async_w_in (muster_save_ticket_path (next)), 0);
}

/* B001.33, DIFF.23: left out, and listed; a value of the moment of the call */
MUSTER_TEST (AsyncError, does_not_come_of_what_can_not_be_copied)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (MusterNotebook) stuck = muster_notebook_new (1);
  g_autoptr (MusterNotebook) notebook = muster_far_notebook_new (2);
  g_autoptr (GError) error = NULL;
  stuck->fails_to_copy = MUSTER_ERROR_UNIMPLEMENTED;
  muster_saver_add_saveable (f.saver, "stuck", MUSTER_SAVEABLE (stuck), MUSTER_SAVEABLE_DEFAULT,
                             &error);
  muster_saver_add_saveable (f.saver, "notebook", MUSTER_SAVEABLE (notebook),
                             MUSTER_SAVEABLE_DEFAULT, &error);
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_BEGIN);

  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  notebook->number = 3;
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_BEGIN);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_save_ticket_left_out (ticket)[0], "stuck");
  MUSTER_EXPECT_NULL (muster_save_ticket_left_out (ticket)[1]);
  g_autoptr (MusterBundleReader) reader =
      muster_bundle_reader_open (NULL, muster_save_ticket_path (ticket), NULL);
  MUSTER_ASSERT_TRUE (reader != NULL);
  MUSTER_EXPECT_NULL (muster_bundle_reader_find (reader, "stuck/n"));
  g_autoptr (MusterTensor) number = muster_bundle_reader_read (reader, "notebook/n", NULL);
  MUSTER_ASSERT_TRUE (number != NULL);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (number), 2);
  MUSTER_EXPECT_EQ (notebook->n_retrieved, 1u); /* B001.81: not again when it is written */
}

typedef struct {
  MusterAsyncSaver *async;
  GError *save, *write, *restore, *sync, *shutdown; /* (owned) what came of a call from within */
} Within;

static void
call_from_within (gpointer data)
{
  Within *self = data;
  gint64 soon = async_soon ();
  muster_save_ticket_unref (muster_async_saver_save (self->async, "d", 1, soon, NULL, &self->save));
  muster_save_ticket_unref (muster_async_saver_write (self->async, "p", soon, NULL, &self->write));
  muster_async_saver_read (self->async, "p", soon, NULL, &self->restore);
  muster_async_saver_sync (self->async, soon, NULL, &self->sync);
  muster_async_saver_shutdown (self->async, soon, NULL, &self->shutdown);
}

static void
check_refused (Within *self)
{
  GError **errors[] = {&self->save, &self->write, &self->restore, &self->sync, &self->shutdown};
  for (gsize i = 0; i < G_N_ELEMENTS (errors); i++) {
    MUSTER_EXPECT_ERROR (*errors[i], MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
    g_clear_error (errors[i]);
  }
}

static void
on_finished (MusterSaveTicket *ticket G_GNUC_UNUSED, gpointer data)
{
  call_from_within (data);
}

/* B001.44 in muster: no async inside async; and B001.48, on the saver's own thread */
MUSTER_TEST (AsyncError, comes_of_a_call_from_within_a_save)
{
  Within finished = {0}, copying = {0};
  g_auto (Async) f = async_set_up ((AsyncHow){.finished = on_finished, .finished_data = &finished});
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (1);
  g_autoptr (GError) error = NULL;
  finished.async = copying.async = f.async;
  notebook->copying = call_from_within;
  notebook->copying_data = &copying;
  muster_saver_add_saveable (f.saver, "notebook", MUSTER_SAVEABLE (notebook),
                             MUSTER_SAVEABLE_DEFAULT, &error);

  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  check_refused (&copying);
  check_refused (&finished);
}

/* B001.47: also after a restore of an older one, and whoever sets the counter back */
MUSTER_TEST (AsyncError, leaves_a_number_that_never_comes_again)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL, failure = NULL;
  g_autoptr (MusterSaveTicket) first = async_save (&f, -1, &error);
  MUSTER_ASSERT_TRUE (async_sync (&f, &error));
  muster_gate_storage_fail (f.gates, 1, MUSTER_ERROR_UNAVAILABLE, "away");
  g_autoptr (MusterSaveTicket) failed = async_save (&f, -1, &error);
  MUSTER_EXPECT_FALSE (async_sync (&f, &failure));
  MUSTER_ASSERT_EQ (muster_save_ticket_step (failed), 2);

  MUSTER_EXPECT_TRUE (muster_async_saver_read (f.async, muster_save_ticket_path (first),
                                               async_soon (), NULL, &error));
  g_autoptr (MusterSaveTicket) next = async_save (&f, -1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_save_ticket_step (next), 3);
  muster_async_saver_set_save_counter (f.async, 1);
  MUSTER_EXPECT_EQ (muster_async_saver_save_counter (f.async), 3);
  MUSTER_EXPECT_TRUE (async_sync (&f, &error));
}

MUSTER_TEST (AsyncError, reports_a_mistake_and_not_by_a_crash)
{
  static const char *const paths[] = {NULL, "", "hdfs://bucket/run"};
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  for (gsize i = 0; i < G_N_ELEMENTS (paths); i++) {
    GError *errors[4] = {NULL};
    MUSTER_EXPECT_NULL (
        muster_async_saver_save (f.async, paths[i], 1, async_soon (), NULL, &errors[0]));
    MUSTER_EXPECT_NULL (
        muster_async_saver_write (f.async, paths[i], async_soon (), NULL, &errors[1]));
    MUSTER_EXPECT_FALSE (
        muster_async_saver_read (f.async, paths[i], async_soon (), NULL, &errors[2]));
    MUSTER_EXPECT_FALSE (
        muster_async_saver_read (f.async, paths[i], async_soon (), NULL, &errors[3]));
    for (gsize j = 0; j < G_N_ELEMENTS (errors); j++) {
      MUSTER_EXPECT_ERROR (errors[j], MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
      g_clear_error (&errors[j]);
    }
  }
  MUSTER_EXPECT_EQ (muster_async_saver_save_counter (f.async), 0);
}

/* How a save ends otherwise is its state, and nothing to wait for. */
MUSTER_TEST (AsyncError, is_nothing_to_wait_for)
{
  g_auto (Async) f = async_set_up ((AsyncHow){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaveTicket) ticket = async_save (&f, 1, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  for (int state = MUSTER_SAVE_FAILED; state <= MUSTER_SAVE_REPLACED; state++) {
    MUSTER_EXPECT_FALSE (async_wait (ticket, (MusterSaveState)state, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    g_clear_error (&error);
  }
  MUSTER_EXPECT_FALSE (async_wait (NULL, MUSTER_SAVE_DURABLE, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}
