// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/goodput/goodput_meter.h"
#include "train/hooks/step_timer_private.h"

G_BEGIN_DECLS

/* The checkpoint hook's interval, if it chooses that itself
 * (train/goodput/save_interval_private.h). */

typedef struct {
  double share;       /* of the time for saves; 0: the interval is fixed */
  guint64 n_durable;  /* the saves that were seen */
  gboolean is_known;  /* a save was measured */
  gint64 blocked_us;  /* what one costs, smoothed */
  gint64 took_us;     /* how long one takes, smoothed */
  gint64 reported_us; /* the last interval that was reported; 0: none */
} MusterAutoCadence;

/* share 0: 1 %. INVALID_ARGUMENT unless it is above 0 and below 1. */
gboolean muster_auto_cadence_init (MusterAutoCadence *self, double share, GError **error);

/* After each save: measures it, and sets the timer. The first one only makes room for those after
 * it, and isn't measured. The choice is in the saver's status, and logged if it has changed
 * noticeably. Does nothing for a fixed interval. */
void muster_auto_cadence_update (MusterAutoCadence *self, MusterSaver *saver,
                                 MusterGoodputMeter *meter, MusterStepTimer *timer);

G_END_DECLS
