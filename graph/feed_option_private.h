// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"
#include "graph/node_private.h"

G_BEGIN_DECLS

/* The options of the command that feed placeholders, to paste into a shell: what is to be filled in
 * stands in capitals. */

/* "float[?,64]", "bool"; "float, any shape". (transfer full) */
char *muster_feed_type (MusterGraph *graph, const MusterNode *placeholder);
char *muster_feed_type_of (MusterDType dtype, int n_dims, const gint64 *dims);

/* Which nodes of a graph take which, for what follows. */
typedef struct _MusterFeedUsers MusterFeedUsers;
MusterFeedUsers *muster_feed_users_new (MusterGraph *graph);
void muster_feed_users_free (MusterFeedUsers *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterFeedUsers, muster_feed_users_free)

/* TRUE if it is fed with rows: of a placeholder of unknown shape, and of a list, its users tell. */
gboolean muster_feed_takes_rows (const MusterFeedUsers *users, const MusterNode *placeholder);

/* TRUE for the indices of a sparse placeholder, whose rows aren't those of a batch. */
gboolean muster_feed_is_sparse (const MusterFeedUsers *users, const MusterNode *placeholder);

/* What it takes if it doesn't take rows: "1", "true", "text", "[1,1]". (transfer full) */
char *muster_feed_example (const MusterFeedUsers *users, const MusterNode *placeholder);

/* TRUE for one that muster has added and feeds itself, as a position. */
gboolean muster_feed_is_own (const MusterNode *node);

/* TRUE for another placeholder that fails unless it is fed. */
gboolean muster_feed_is_needed (const MusterNode *node);

/* Such a placeholder that an op or a tensor needs; NULL: none. */
const MusterNode *muster_feed_needed_by (MusterGraph *graph, const char *name);

/* "--feed=x:0=@FILE.npy (float[?,2]), --feed=keep_prob:0=NUMBER (float), --feed=is_training:0=true
 * (bool)": the options of all placeholders among the marked nodes (a byte for each). NULL if there
 * are none. (transfer full) */
char *muster_feed_options (MusterGraph *graph, const guint8 *marked);

G_END_DECLS
