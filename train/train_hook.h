// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/train.h"

G_BEGIN_DECLS

/* The hooks by which muster_train () follows what it runs. The one, before all that save,
 * announces, tells of progress, and keeps the account of lives; the other, the last of all, tells
 * of the end and ends the job. A part of training.c. */

/* training and trained are borrowed for its life. saver is (nullable). */
MusterHook *muster_training_hook_new (const MusterTraining *training, MusterSaver *saver,
                                      MusterTrained *trained);
/* By position, a hook's of train/position/position.h, the end of epochs is known; until_step is the
 * target to show. */
void muster_training_hook_set_epochs (MusterHook *self, MusterHook *position, gint64 n_batches);
MusterHook *muster_training_hook_new_ending (MusterHook *training);
/* Reports of sessions and of saves go through it; user_data of both is the hook. */
MusterSessionListener muster_training_hook_session_listener (MusterHook *self);
MusterSaverListener muster_training_hook_saver_listener (MusterHook *self);
/* TRUE if the target was reached before the first step. */
gboolean muster_training_hook_is_done (MusterHook *self);
/* What a failed training is to be said to have failed with: that another chief has come counts for
 * more than what it did to the session. Takes failure. */
GError *muster_training_hook_blame (MusterHook *self, GError *failure);

G_END_DECLS
