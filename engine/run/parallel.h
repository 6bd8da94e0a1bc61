// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Loops over many elements on all processors. The caller's thread and the idle ones of a pool, one
 * fewer than the process has processors, take pieces of a loop until none is left. What the pieces
 * are depends only on the loop, and none waits for another, so the result is the same for any
 * number of threads. The pool is shared by everyone who runs: with as many callers as processors
 * each works alone. */

/* Elements of an element-wise loop in a piece: fewer take less time than waking a thread. */
#define MUSTER_PARALLEL_PIECE ((gint64)1 << 16)

/* The size of the pieces of a loop whose elements are of n_inner numbers each. */
static inline gint64
muster_parallel_piece (gint64 n_inner)
{
  return MAX (MUSTER_PARALLEL_PIECE / MAX (n_inner, 1), 1);
}

/* Handles the elements from begin up to end. Must not wait for anything. */
typedef void (*MusterPiece) (gint64 begin, gint64 end, gpointer data);

/* Returns when all n elements are handled, piece by piece of that size (the last one may be
 * smaller). A loop of one piece, and one within a piece, runs on the caller's thread alone. */
void muster_parallel_for (gint64 n, gint64 size, MusterPiece piece, gpointer data);

/* Between the two, the caller's thread counts as one that needs a processor. */
void muster_parallel_enter (void);
void muster_parallel_leave (void);

/* For tests: at most this many threads of the pool take part; -1: all. */
void muster_parallel_limit (int n_threads);

G_END_DECLS
