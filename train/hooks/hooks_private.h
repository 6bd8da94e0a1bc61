// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/hooks/hooks.h"
#include "train/hooks/step_timer_private.h"

G_BEGIN_DECLS

/* What the standard hooks share. */

/* "Global step should be created to use WHAT." if the model has none. */
gboolean muster_hook_need_global_step (MusterScaffold *scaffold, const char *what, GError **error);

/* muster_checkpoint_saver_hook_new () with a clock (nullable) in place of the saver's. */
MusterHook *muster_checkpoint_saver_hook_new_at (const MusterCheckpointSaverOptions *options,
                                                 MusterClock *clock, GError **error);

/* The saver with which a checkpoint hook will save in a directory: its own, or the one that is
 * offered if it has none. NULL: it saves elsewhere. */
MusterSaver *muster_checkpoint_saver_hook_share (MusterHook *hook, const char *directory,
                                                 MusterSaver *offered);

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

/* INVALID_ARGUMENT if the graph lacks the node ("loss:0", "loss"). */
gboolean muster_hook_need_node (MusterScaffold *scaffold, const char *name, GError **error);

/* Writes DIRECTORY/graph.pbtxt, which is only informative: a failure is logged. */
void muster_hook_print_graph (MusterScaffold *scaffold, const char *directory);
/* Records the graph and the meta graph as events; writer is (nullable). */
gboolean muster_hook_log_graphs (MusterScaffold *scaffold, MusterEventWriter *writer, gint64 step,
                                 GError **error);

G_END_DECLS
