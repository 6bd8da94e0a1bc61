// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/train.h"

G_BEGIN_DECLS

/* "training  ████░░  step 640 of 1000, 5,210 steps/s, loss 0.213, 12 s left, durable 600", at most
 * width columns: the last parts are omitted first. width 0 (no terminal): all parts, no bar.
 * (transfer full) */
char *muster_train_line (const MusterTrainingState *state, guint width, gboolean coloured);

G_END_DECLS
