// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/training.h"

G_BEGIN_DECLS

/* The hooks by which muster_train () follows its monitored session. The first, placed before all
 * hooks that save, announces, reports progress and records runs; the second, after all others,
 * reports the end and ends the job. Part of train/round.c. */

/* training and trained must outlive it. saver is (nullable). */
MusterHook *muster_training_hook_new (const MusterTraining *training, MusterSaver *saver,
                                      MusterTrained *trained);
/* With positions, from the hook `position` (train/position/position.h), the end of the epochs is
 * known; until_step is the target to display. */
void muster_training_hook_set_epochs (MusterHook *self, MusterHook *position, gint64 n_batches);
MusterHook *muster_training_hook_new_ending (MusterHook *training);
/* Forward the reports of sessions and of saves; the observers must not outlive the hook. */
void muster_training_hook_follow_sessions (MusterHook *self, MusterSessionObserver *observer);
void muster_training_hook_follow_saves (MusterHook *self, MusterSaverObserver *observer);
/* Why steps wait (nullable): it is reported at the next run, and then at once. */
void muster_training_hook_set_paused (MusterHook *self, const char *why);
/* Between these, time is spent on waiting. */
void muster_training_hook_begin_pause (MusterHook *self);
void muster_training_hook_end_pause (MusterHook *self);
/* The graph's own input has ended, and the job with it; not that of a model with positions, whose
 * batches are counted. */
void muster_training_hook_set_input_ended (MusterHook *self);
/* TRUE if the target was reached before the first step. */
gboolean muster_training_hook_is_done (MusterHook *self);
/* TRUE if the session's lease on the model is known to be lost. */
gboolean muster_training_hook_is_replaced (MusterHook *self);
/* The error to report for a failed training: that another chief has taken over is preferred to its
 * effect on the session. Takes failure. */
GError *muster_training_hook_blame (MusterHook *self, GError *failure);

G_END_DECLS
