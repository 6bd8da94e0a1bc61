// SPDX-License-Identifier: Apache-2.0
#include "saver/save_how_private.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"
#include "train/goodput/save_interval_private.h"
#include "train/hooks/auto_cadence_private.h"

typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
  MusterSession *session;
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
  MusterGoodputMeter *meter;
  gint64 blocked_us; /* by each save */
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
  f.meter = muster_goodput_meter_new (MUSTER_CLOCK (f.clock));
  muster_fake_master_set_variable (f.master, "v");
  muster_small_model_play (f.master);
  return f;
}

static void
tear_down (Fixture *f)
{
  muster_goodput_meter_unref (f->meter);
  g_clear_object (&f->saver);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static void
on_written (gpointer data)
{
  Fixture *f = data;
  muster_fake_clock_pass (f->clock, f->blocked_us);
}

static void
save (Fixture *f, gint64 step, gint64 blocked_us)
{
  const MusterSaveHow how = {.written = on_written, .written_data = f};
  g_auto (MusterSaved) saved = {0};
  f->blocked_us = blocked_us;
  MUSTER_ASSERT_TRUE (muster_saver_save_for_ticket (f->saver, f->session, muster_test_tmpdir (),
                                                    step, &how, NULL, &saved, MUSTER_WAIT_FOREVER,
                                                    NULL, NULL));
}

static gint64
chosen (gint64 blocked_us, gint64 mtbf_us, double share)
{
  const MusterSaveCost cost = {blocked_us, blocked_us, mtbf_us, share};
  return muster_save_interval_us (&cost);
}

static gint64
interval_of (Fixture *f)
{
  g_auto (MusterSaveStatus) status = MUSTER_SAVE_STATUS_INIT;
  muster_saver_status (f->saver, &status);
  return status.interval_us;
}

MUSTER_TEST (AutoCadence, follows_the_cost_of_saves)
{
  g_auto (Fixture) f = set_up ();
  MusterAutoCadence cadence;
  MusterStepTimer timer = {.every_us = MUSTER_SECOND, .clock = MUSTER_CLOCK (f.clock)};
  MUSTER_ASSERT_TRUE (muster_auto_cadence_init (&cadence, 0, NULL));

  muster_auto_cadence_update (&cadence, f.saver, f.meter, &timer); /* nothing is known yet */
  MUSTER_EXPECT_EQ (timer.every_us, MUSTER_SECOND);

  save (&f, 0, 300 * MUSTER_SECOND); /* the first one is no measure */
  muster_auto_cadence_update (&cadence, f.saver, f.meter, &timer);
  MUSTER_EXPECT_EQ (timer.every_us, MUSTER_SECOND);
  MUSTER_EXPECT_EQ (interval_of (&f), 0);

  save (&f, 1, 8 * MUSTER_SECOND);
  muster_auto_cadence_update (&cadence, f.saver, f.meter, &timer);
  MUSTER_EXPECT_EQ (timer.every_us, chosen (8 * MUSTER_SECOND, 3600 * MUSTER_SECOND, 0.01));
  MUSTER_EXPECT_EQ (interval_of (&f), timer.every_us);

  save (&f, 2, 4 * MUSTER_SECOND);
  muster_auto_cadence_update (&cadence, f.saver, f.meter, &timer);
  MUSTER_EXPECT_EQ (timer.every_us, chosen (7 * MUSTER_SECOND, 3600 * MUSTER_SECOND, 0.01));
}

MUSTER_TEST (AutoCadence, follows_the_failures)
{
  g_auto (Fixture) f = set_up ();
  MusterAutoCadence cadence;
  MusterStepTimer timer = {.every_us = MUSTER_SECOND, .clock = MUSTER_CLOCK (f.clock)};
  MUSTER_ASSERT_TRUE (muster_auto_cadence_init (&cadence, 0.5, NULL));
  for (guint i = 0; i < 3; i++) { /* sessions: two failures */
    muster_goodput_meter_made (f.meter, 0, 0, 0);
    muster_fake_clock_pass (f.clock, 200 * MUSTER_SECOND);
  }

  save (&f, 1, 0);
  muster_auto_cadence_update (&cadence, f.saver, f.meter, &timer);
  save (&f, 2, 6 * MUSTER_SECOND);
  muster_auto_cadence_update (&cadence, f.saver, f.meter, &timer);

  MUSTER_EXPECT_EQ (timer.every_us, chosen (6 * MUSTER_SECOND, 303 * MUSTER_SECOND, 0.5));
}

MUSTER_TEST (AutoCadence, leaves_a_fixed_interval_alone)
{
  g_auto (Fixture) f = set_up ();
  MusterAutoCadence cadence = {0};
  MusterStepTimer timer = {.every_us = MUSTER_SECOND, .clock = MUSTER_CLOCK (f.clock)};
  save (&f, 1, 8 * MUSTER_SECOND);
  muster_auto_cadence_update (&cadence, f.saver, f.meter, &timer);

  MUSTER_EXPECT_EQ (timer.every_us, MUSTER_SECOND);
  MUSTER_EXPECT_EQ (interval_of (&f), 0);
}

MUSTER_TEST (AutoCadence, refuses_a_share_that_is_none)
{
  MusterAutoCadence cadence;
  const double shares[] = {-0.1, 1, 7};
  for (guint i = 0; i < G_N_ELEMENTS (shares); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (muster_auto_cadence_init (&cadence, shares[i], &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}
