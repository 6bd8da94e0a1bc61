// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/digest_private.h"

G_BEGIN_DECLS

/* MusterKnownGraphs keeps the last few large graphs that clients have sent, so that a client that
 * starts again needn't send its graph, and sessions with the same graph share its bytes. Bounded:
 * MUSTER_MOST_KNOWN_GRAPHS graphs of together MUSTER_MOST_KNOWN_BYTES; the one that wasn't used for
 * longest goes. A graph that a session uses takes no further memory here. Any thread. */

typedef struct _MusterKnownGraphs MusterKnownGraphs;

#define MUSTER_MOST_KNOWN_GRAPHS 4
#define MUSTER_MOST_KNOWN_BYTES  (256 << 20)

MusterKnownGraphs *muster_known_graphs_new (void);
void muster_known_graphs_free (MusterKnownGraphs *self);

/* A graph's bytes, or the same ones that are known (transfer full). They are known from then on,
 * unless they are few. held_bytes is the size of the message of which graph is a part: the rest of
 * a message isn't kept with a graph, as it wouldn't count. */
GBytes *muster_known_graphs_share (MusterKnownGraphs *self, GBytes *graph, gsize held_bytes);

/* The graph of this size whose SHA-256 this is (transfer full); NULL if it isn't known. Its digest
 * is computed when it is first asked for, not when a graph comes. */
GBytes *muster_known_graphs_find (MusterKnownGraphs *self, const guint8 *digest, guint64 size);

/* For tests: how many are known, and of how many bytes. */
guint muster_known_graphs_size (MusterKnownGraphs *self, guint64 *n_bytes);

G_END_DECLS
