// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/goodput/goodput_meter.h"

G_BEGIN_DECLS

/* The account of a job's time in the side file of its checkpoints. */

/* Before the first session: what the runs before have written. */
void muster_saved_goodput_offer (MusterGoodputMeter *meter, MusterSaver *saver,
                                 const char *directory);
/* What the checkpoints that are saved from now on say. */
void muster_saved_goodput_note (MusterGoodputMeter *meter, MusterSaver *saver, MusterRunEnd end);
/* Writes it at once, at the end of a run. A failure is only logged. */
void muster_saved_goodput_write (MusterGoodputMeter *meter, MusterSaver *saver,
                                 const char *directory, MusterRunEnd end, gint64 deadline_us,
                                 GCancellable *cancellable);

G_END_DECLS
