// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/hook.h"

G_BEGIN_DECLS

/* What a task does for a SyncReplicasOptimizer (train/completion/sync_replicas.h), like
 * TensorFlow's hook: after each session, fresh or restored, the chief sets the accumulators' step,
 * fills the queue of tokens, and runs the update until a stop. Each task feeds its own step to its
 * gradients: the variable for it may be shared by all of them. NULL if the model isn't of this
 * kind. */
MusterHook *muster_sync_replicas_hook_new (MusterScaffold *scaffold, gboolean is_chief);

G_END_DECLS
