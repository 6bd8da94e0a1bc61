// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/hook.h"

G_BEGIN_DECLS

/* What a task does for a SyncReplicasOptimizer (train/completion/sync_replicas.h), like
 * TensorFlow's hook: after each session, fresh or restored, the chief sets the accumulators' step,
 * fills the queue of tokens, and runs the update until a stop. Each task feeds its own step to its
 * gradients: the variable for it may be shared by all of them.
 *
 * If nobody else is at a step of an earlier run, the queue is filled only as far as n_tasks need to
 * begin, and a chief that is the only task discards the gradients that the run before it has left.
 * Then no replica is a gradient ahead: while the chief saves, no update runs. n_tasks is 0 if it is
 * unknown or if others may be at a step; then there is a token for each gradient of an update, as
 * in TensorFlow, which replaces lost ones.
 *
 * NULL if the model isn't of this kind. */
MusterHook *muster_sync_replicas_hook_new (MusterScaffold *scaffold, gboolean is_chief,
                                           guint n_tasks);

G_END_DECLS
