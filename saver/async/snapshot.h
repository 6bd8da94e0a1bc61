// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* MusterSnapshot keeps what a save op saves as it is at one moment: for each tensor that goes into
 * a SaveV2 a resource variable on the same device, its shadow, and a copy of the save's nodes that
 * saves the shadows. They are added to a session; taking the snapshot is one step there, writing it
 * is another that may run while training goes on. On muster's engine a shadow shares the variable's
 * memory until the variable is next updated; on TensorFlow it is a copy on the variable's own task.
 * The cut is consistent where no other step runs while it is taken, as with any save. One thread.
 */

typedef struct _MusterSnapshot MusterSnapshot;

/* Adds the nodes under scope, a name that nothing in the session begins with, for a save_tensor
 * (or op) of graph. INVALID_ARGUMENT where there is no SaveV2 behind it. */
MusterSnapshot *muster_snapshot_new (MusterSession *session, MusterGraph *graph,
                                     const char *save_tensor, const char *scope, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);
void muster_snapshot_free (MusterSnapshot *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSnapshot, muster_snapshot_free)

/* Takes it; one from before is overwritten. */
gboolean muster_snapshot_take (MusterSnapshot *self, gint64 deadline_us, GCancellable *cancellable,
                               GError **error);
/* Takes as much memory as all of it takes, and gives it back at once: a master that keeps what it
 * has had, as muster's engine does, then needs no new pages when training goes on beside the first
 * snapshot. */
gboolean muster_snapshot_reserve_memory (MusterSnapshot *self, gint64 deadline_us,
                                         GCancellable *cancellable, GError **error);
/* Gives its memory back, within five seconds; where the master can't be asked, it is gone too. */
void muster_snapshot_drop (MusterSnapshot *self);

/* Saves the shadows: takes the same filename tensor as the original. Borrowed. */
const char *muster_snapshot_save_tensor (MusterSnapshot *self);
/* Of the first SaveV2; "" for none. Borrowed. */
const char *muster_snapshot_device (MusterSnapshot *self);

/* How many bytes a save op of graph saves, as far as the graph says so: *is_exact FALSE where a
 * shape isn't known. */
guint64 muster_snapshot_size (MusterGraph *graph, const char *save_tensor, gboolean *is_exact);

G_END_DECLS
