// SPDX-License-Identifier: Apache-2.0
/* What the chief knows of a drain, with a lease that says what the master says. */
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"
#include "train/hooks/drain_watch_private.h"
#include "train/monitored/hook_private.h"

#define FAR_US (1000 * MUSTER_SECOND)

#define MUSTER_TYPE_TOLD_LEASE (muster_told_lease_get_type ())
G_DECLARE_FINAL_TYPE (MusterToldLease, muster_told_lease, MUSTER, TOLD_LEASE, MusterLease)

struct _MusterToldLease {
  MusterLease parent;
  gint64 until_us;        /* 0: nothing drains */
  MusterChiefDrain drain; /* announced last */
};

G_DEFINE_FINAL_TYPE (MusterToldLease, muster_told_lease, MUSTER_TYPE_LEASE)

static gboolean
announce (MusterLease *lease, const MusterAnnouncement *announcement,
          gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
          GError **error G_GNUC_UNUSED)
{
  MUSTER_TOLD_LEASE (lease)->drain = announcement->drain;
  return TRUE;
}

static gboolean
is_draining (MusterLease *lease, gint64 *until_us)
{
  *until_us = MUSTER_TOLD_LEASE (lease)->until_us;
  return *until_us != 0;
}

static void
muster_told_lease_class_init (MusterToldLeaseClass *klass)
{
  MUSTER_LEASE_CLASS (klass)->announce = announce;
  MUSTER_LEASE_CLASS (klass)->is_draining = is_draining;
}

static void
muster_told_lease_init (MusterToldLease *self G_GNUC_UNUSED)
{
}

static gboolean
has_changed (MusterSession *session G_GNUC_UNUSED, gboolean *is_unchanged,
             gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
             gpointer data G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  *is_unchanged = FALSE;
  return TRUE;
}

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

/* The model was saved as the tasks began to hold, so long ago. */
static MusterDrainWatch
saved_before (MusterToldLease *lease, gint64 us)
{
  MusterDrainWatch watch = {.lease = MUSTER_LEASE (lease)};
  lease->until_us = now_us () + FAR_US;
  muster_drain_watch_note_heard (&watch, lease->until_us);
  watch.held_us -= us;
  muster_drain_watch_note_saved (&watch, lease->until_us);
  return watch;
}

MUSTER_TEST (DrainWatch, saves_anew_when_the_tasks_hold_no_longer)
{
  static const MusterSaverConsistentCut cut = {.check = has_changed};
  g_autoptr (MusterToldLease) lease = g_object_new (MUSTER_TYPE_TOLD_LEASE, NULL);
  g_autoptr (MusterMetaGraph) meta_graph =
      muster_small_model_new (muster_small_variables, G_N_ELEMENTS (muster_small_variables), 5);
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, NULL, NULL);
  g_autoptr (GError) error = NULL;
  const MusterSaveCall call = {.deadline_us = MUSTER_WAIT_FOREVER};
  MusterDrainWatch watch = saved_before (lease, MUSTER_HOLD_US);
  gint64 until_us = 0;
  muster_saver_set_consistent_cut (saver, &cut, NULL, NULL);
  MUSTER_EXPECT_FALSE (muster_drain_watch_is_due (&watch, &until_us));

  MUSTER_EXPECT_TRUE (muster_drain_watch_await_end (&watch, &call, NULL, saver, NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (lease->drain, MUSTER_DRAIN_OFFERED);
  MUSTER_EXPECT_TRUE (muster_drain_watch_is_due (&watch, &until_us));
  MUSTER_EXPECT_EQ (until_us, lease->until_us);
}

MUSTER_TEST (DrainWatch, is_due_again_when_the_drain_is_prolonged)
{
  g_autoptr (MusterToldLease) lease = g_object_new (MUSTER_TYPE_TOLD_LEASE, NULL);
  MusterDrainWatch watch = saved_before (lease, 0);
  gint64 until_us = 0;
  MUSTER_EXPECT_FALSE (muster_drain_watch_is_due (&watch, &until_us));

  lease->until_us += 5 * MUSTER_SECOND;

  MUSTER_EXPECT_TRUE (muster_drain_watch_is_due (&watch, &until_us));
}
