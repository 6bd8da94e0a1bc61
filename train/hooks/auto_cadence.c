// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/auto_cadence_private.h"

#include "base/log_private.h"
#include "train/goodput/save_interval_private.h"

#define DEFAULT_SHARE 0.01
/* A choice is reported if it is that many times longer or shorter than the last one reported. */
#define NOTICEABLE 1.5

gboolean
muster_auto_cadence_init (MusterAutoCadence *self, double share, GError **error)
{
  *self = (MusterAutoCadence){.share = share == 0 ? DEFAULT_SHARE : share};
  return (self->share > 0 && self->share < 1) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "the share of the time for saves must be above 0 and below 1");
}

/* Smooths a duration: one save counts for a quarter, because it may be slow by chance. */
static gint64
smooth (gint64 before_us, gint64 now_us, gboolean is_first)
{
  return is_first ? now_us : (3 * before_us + now_us) / 4;
}

/* Measures the last save. FALSE if none has become durable since, or none before: the first one
 * adds nodes to the graph and makes the master allocate memory. */
static gboolean
measure (MusterAutoCadence *self, MusterSaver *saver)
{
  g_auto (MusterSaveStatus) status = MUSTER_SAVE_STATUS_INIT;
  const gboolean is_first = !self->is_known;
  muster_saver_status (saver, &status);
  const gboolean is_new = status.n_durable > self->n_durable;
  self->n_durable = status.n_durable;
  if (!is_new || status.n_durable == 1)
    return FALSE;
  self->is_known = TRUE;
  self->blocked_us = smooth (self->blocked_us, status.last_us[MUSTER_SAVE_BLOCKED], is_first);
  self->took_us =
      smooth (self->took_us,
              status.last_us[MUSTER_SAVE_STAGING] + status.last_us[MUSTER_SAVE_WRITING] +
                  status.last_us[MUSTER_SAVE_PUBLISHING],
              is_first);
  return TRUE;
}

static void
report (MusterAutoCadence *self, const MusterSaveCost *cost, gint64 interval_us,
        gboolean is_assumed)
{
  const double change = (double)interval_us / (double)MAX (self->reported_us, 1);
  if (self->reported_us > 0 && change < NOTICEABLE && change > 1 / NOTICEABLE)
    return;
  self->reported_us = interval_us;
  g_autofree char *interval = muster_format_duration (interval_us);
  g_autofree char *blocked = muster_format_duration (cost->blocked_us);
  g_autofree char *took = muster_format_duration (cost->took_us);
  g_autofree char *mtbf = muster_format_duration (cost->mtbf_us);
  muster_log (G_LOG_LEVEL_MESSAGE, "save-interval", "MESSAGE",
              "saving every %s: a save holds training for %s and takes %s, the mean time between "
              "failures is %s%s",
              interval, blocked, took, mtbf, is_assumed ? " (assumed)" : "");
}

void
muster_auto_cadence_update (MusterAutoCadence *self, MusterSaver *saver, MusterGoodputMeter *meter,
                            MusterStepTimer *timer)
{
  MusterGoodput goodput = MUSTER_GOODPUT_INIT;
  if (self->share == 0 || !measure (self, saver))
    return;
  muster_goodput_meter_read (meter, &goodput);
  const MusterSaveCost cost = {.blocked_us = self->blocked_us,
                               .took_us = self->took_us,
                               .mtbf_us = muster_goodput_mtbf_us (&goodput),
                               .share = self->share};
  timer->every_us = muster_save_interval_us (&cost);
  muster_saver_set_interval (saver, timer->every_us);
  report (self, &cost, timer->every_us, goodput.n_failures == 0);
}
