// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/async/save_metrics.h"

G_BEGIN_DECLS

/* Records one saver's metrics, also in the process's. Any thread. */
typedef struct _MusterSaveMeter MusterSaveMeter;

/* The first one sets the start of the process's progress. */
MusterSaveMeter *muster_save_meter_new (gint64 now_us);
void muster_save_meter_free (MusterSaveMeter *self);

/* An end before its start, because the clock was set, counts as 0. */
void muster_save_meter_blocked (MusterSaveMeter *self, gint64 start_us, gint64 end_us);
void muster_save_meter_written (MusterSaveMeter *self, gint64 start_us, gint64 end_us,
                                gboolean durable);
/* Records a synchronous save. */
void muster_save_meter_saved (MusterSaveMeter *self, gint64 start_us, gboolean durable);

MusterSaveMetrics muster_save_meter_read (MusterSaveMeter *self);

G_END_DECLS
