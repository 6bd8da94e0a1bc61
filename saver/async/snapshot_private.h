// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* MusterSnapshot copies what a save op saves at one moment. For each tensor of a SaveV2 it adds a
 * resource variable on the same device, a shadow, and a copy of the save's nodes that saves the
 * shadows. Taking the snapshot is one step in the session; writing it is another, which may run
 * during training. On muster's engine a shadow shares the variable's memory until the variable is
 * updated; on TensorFlow it is a copy on the variable's task. The snapshot is consistent if no
 * other step runs while it is taken, as with any save. One thread. */

typedef struct _MusterSnapshot MusterSnapshot;

/* Adds the nodes for a save_tensor (or op) of graph under scope, a prefix that no name in the
 * session has. The shadows end with the session (MUSTER_SESSION_CONTAINER), so a client that is
 * killed leaves no copy of the model. INVALID_ARGUMENT if no SaveV2 leads to it. */
MusterSnapshot *muster_snapshot_new (MusterSession *session, MusterGraph *graph,
                                     const char *save_tensor, const char *scope, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);
void muster_snapshot_free (MusterSnapshot *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSnapshot, muster_snapshot_free)

/* TRUE if training has to wait for a save, since a snapshot can't be taken: that is logged, of
 * `what`. *for_good: no later one can be either, for the graph has no SaveV2 op, or the master
 * accepts no further nodes or lacks their ops. */
gboolean muster_snapshot_must_block (const GError *failure, const char *what, gboolean *for_good);

/* Takes the snapshot; replaces an earlier one. */
gboolean muster_snapshot_take (MusterSnapshot *self, gint64 deadline_us, GCancellable *cancellable,
                               GError **error);
/* Allocates the memory of a snapshot and frees it at once. A master that caches freed memory, like
 * muster's engine, then needs no new pages when training continues beside the first snapshot. */
gboolean muster_snapshot_reserve_memory (MusterSnapshot *self, gint64 deadline_us,
                                         GCancellable *cancellable, GError **error);
/* Frees its memory, within timeout_us. If the master can't be reached, the memory is gone with
 * it. */
void muster_snapshot_drop (MusterSnapshot *self, gint64 timeout_us);

/* The tensor that saves the shadows. It uses the same filename tensor as the original. Borrowed. */
const char *muster_snapshot_save_tensor (MusterSnapshot *self);
/* The graph that has it. Borrowed. */
MusterGraph *muster_snapshot_graph (MusterSnapshot *self);
/* The device of the first SaveV2; "" for none. Borrowed. */
const char *muster_snapshot_device (MusterSnapshot *self);

/* The bytes that a save op of graph saves, as far as known: *is_exact is FALSE if a shape is
 * unknown. */
guint64 muster_snapshot_size (MusterGraph *graph, const char *save_tensor, gboolean *is_exact);

G_END_DECLS
