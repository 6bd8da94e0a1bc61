// SPDX-License-Identifier: Apache-2.0
#include "saver/save_how_private.h"
#include "tests/doubles/narrow_storage.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

/* What muster_saver_status () says of blocking saves; tests/saver/async_*_test.c has the others. */

typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
  MusterSession *session;
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
  MusterSaveStatus between; /* while a save was published */
} Fixture;

static Fixture
set_up (void)
{
  Fixture f = {.clock = muster_fake_clock_new ()};
  const MusterSaverOptions options = {.clock = MUSTER_CLOCK (f.clock), .no_probe = TRUE};
  f.meta_graph = muster_small_model_new (muster_small_variables, 2, 5);
  f.master = muster_fake_master_new (f.clock);
  f.session = muster_master_create_session (MUSTER_MASTER (f.master), NULL, NULL,
                                            MUSTER_WAIT_FOREVER, NULL, NULL);
  f.saver = muster_saver_new (f.meta_graph, &options, NULL);
  muster_fake_master_set_variable (f.master, "v");
  return f;
}

static void
tear_down (Fixture *f)
{
  muster_save_status_clear (&f->between);
  g_clear_object (&f->saver);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static gboolean
hold (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
      GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  Fixture *f = data;
  muster_fake_clock_pass (f->clock, 3 * MUSTER_SECOND);
  return TRUE;
}

static gboolean
is_consistent (MusterSession *session G_GNUC_UNUSED, gboolean *consistent,
               gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
               gpointer data G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  *consistent = TRUE;
  return TRUE;
}

static void
let_go (MusterSession *session G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
}

static void
on_written (gpointer data)
{
  Fixture *f = data;
  muster_fake_clock_pass (f->clock, 5 * MUSTER_SECOND);
  muster_save_status_clear (&f->between);
  muster_saver_status (f->saver, &f->between);
}

static gboolean
save (Fixture *f, gint64 step)
{
  const MusterSaveHow how = {.written = on_written, .written_data = f};
  g_auto (MusterSaved) saved = {0};
  return muster_saver_save_for_ticket (f->saver, f->session, muster_test_tmpdir (), step, &how,
                                       NULL, &saved, MUSTER_WAIT_FOREVER, NULL, NULL);
}

MUSTER_TEST (SaverStatus, is_empty_at_first)
{
  g_auto (Fixture) f = set_up ();
  g_auto (MusterSaveStatus) status = MUSTER_SAVE_STATUS_INIT;
  muster_saver_status (f.saver, &status);

  const MusterSaveStatus empty = MUSTER_SAVE_STATUS_INIT;
  MUSTER_EXPECT_TRUE (muster_save_status_equal (&status, &empty));
}

MUSTER_TEST (SaverStatus, says_how_far_a_blocking_save_is_and_what_it_took)
{
  static const MusterSaverConsistentCut cut = {
      .quiesce = hold, .check = is_consistent, .release = let_go};
  g_auto (Fixture) f = set_up ();
  g_auto (MusterSaveStatus) status = MUSTER_SAVE_STATUS_INIT;
  muster_small_model_play (f.master);
  muster_saver_set_consistent_cut (f.saver, &cut, &f, NULL);

  MUSTER_ASSERT_TRUE (save (&f, 7));
  MUSTER_ASSERT_TRUE (save (&f, 8));
  muster_fake_clock_pass (f.clock, 2 * MUSTER_SECOND);
  muster_saver_status (f.saver, &status);

  MUSTER_EXPECT_EQ (f.between.step[MUSTER_SAVE_WRITTEN], 8);
  MUSTER_EXPECT_EQ (f.between.step[MUSTER_SAVE_STAGED], 8);
  MUSTER_EXPECT_EQ (f.between.step[MUSTER_SAVE_DURABLE], 7);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (f.between.saving, "/model.ckpt-8"));
  MUSTER_EXPECT_EQ (f.between.saving_step, 8);
  MUSTER_EXPECT_EQ ((int)f.between.saving_state, (int)MUSTER_SAVE_WRITTEN);
  MUSTER_EXPECT_EQ (f.between.saving_age_us, 8 * MUSTER_SECOND);

  MUSTER_EXPECT_NULL (status.saving);
  MUSTER_EXPECT_EQ (status.step[MUSTER_SAVE_DURABLE], 8);
  MUSTER_EXPECT_EQ (status.age_us[MUSTER_SAVE_DURABLE], 2 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (status.age_us[MUSTER_SAVE_REQUESTED], 10 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (status.n_durable, (guint64)2);
  MUSTER_EXPECT_TRUE (status.last_bytes > 0);
  const gint64 last_us[] = {8 * MUSTER_SECOND, 0, 3 * MUSTER_SECOND, 5 * MUSTER_SECOND};
  for (guint i = 0; i < MUSTER_N_SAVE_PHASES; i++) {
    MUSTER_TRACE ("%s", muster_save_phase_name ((MusterSavePhase)i));
    MUSTER_EXPECT_EQ (status.last_us[i], last_us[i]);
    MUSTER_EXPECT_EQ (status.total_us[i], 2 * last_us[i]);
  }
}

MUSTER_TEST (SaverStatus, counts_failed_saves_without_their_time)
{
  g_auto (Fixture) f = set_up ();
  g_auto (MusterSaveStatus) status = MUSTER_SAVE_STATUS_INIT;
  MUSTER_EXPECT_FALSE (save (&f, 7)); /* the fake master writes nothing */
  muster_saver_status (f.saver, &status);

  MUSTER_EXPECT_EQ (status.n_failed, (guint64)1);
  MUSTER_EXPECT_EQ (status.n_durable, (guint64)0);
  MUSTER_EXPECT_EQ (status.step[MUSTER_SAVE_REQUESTED], 7);
  MUSTER_EXPECT_EQ (status.step[MUSTER_SAVE_DURABLE], -1);
  MUSTER_EXPECT_EQ (status.total_us[MUSTER_SAVE_BLOCKED], 0);
  MUSTER_EXPECT_NULL (status.saving);
}

MUSTER_TEST (SaverStatus, counts_saves_skipped_for_lack_of_space)
{
  g_auto (Fixture) f = set_up ();
  g_auto (MusterSaveStatus) status = MUSTER_SAVE_STATUS_INIT;
  g_autoptr (MusterNarrowStorage) narrow = muster_narrow_storage_new ();
  const MusterSaverOptions options = {.clock = MUSTER_CLOCK (f.clock),
                                      .no_probe = TRUE,
                                      .storage = MUSTER_STORAGE (narrow),
                                      .when_full = MUSTER_WHEN_FULL_SKIP};
  g_clear_object (&f.saver);
  f.saver = muster_saver_new (f.meta_graph, &options, NULL);
  muster_narrow_storage_set_free (narrow, 1);
  muster_small_model_play (f.master);

  MUSTER_EXPECT_TRUE (save (&f, 7));
  muster_saver_status (f.saver, &status);

  MUSTER_EXPECT_EQ (status.n_skipped, (guint64)1);
  MUSTER_EXPECT_EQ (status.n_durable + status.n_failed, (guint64)0);
  MUSTER_EXPECT_NULL (status.saving);
}
