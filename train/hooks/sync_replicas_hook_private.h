// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/hook.h"

G_BEGIN_DECLS

/* What a task does for a SyncReplicasOptimizer (train/completion/sync_replicas_private.h), like
 * TensorFlow's hook: after each session, fresh or restored, the chief sets the accumulators' step,
 * fills the queue of tokens, and runs the update until a stop. Each task feeds its own step to its
 * gradients: the variable for it may be shared by all of them.
 *
 * With n_tasks, no task is still at a step of an earlier run. The chief fills the queue with just
 * the tokens that these tasks need to begin; alone, it first discards the gradients that the run
 * before it has left. No replica is then a gradient ahead, and no update runs while the chief
 * saves. With 0 (unknown, or others may be at a step) there is a token for each gradient of an
 * update, as in TensorFlow, which replaces lost ones.
 *
 * NULL if the model isn't of this kind. */
MusterHook *muster_sync_replicas_hook_new (MusterScaffold *scaffold, gboolean is_chief,
                                           guint n_tasks);

G_END_DECLS
