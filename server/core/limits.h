// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* MusterLimits enforces a server's limits. Code that is about to add something asks first; over a
 * limit it gets RESOURCE_EXHAUSTED with the limit's name, value and option. Any thread; no locks.
 */

typedef struct _MusterLimits MusterLimits;

typedef enum {
  MUSTER_LIMIT_SESSIONS,
  MUSTER_LIMIT_GRAPH_BYTES, /* of one graph */
  MUSTER_LIMIT_STEPS,
  MUSTER_LIMIT_WATCHERS,
  MUSTER_LIMIT_REQUEST_BYTES, /* of one request */
  MUSTER_LIMIT_OPEN_FILES,
  MUSTER_LIMIT_STREAMS, /* calls of one connection; refused: connections that were ended */
  MUSTER_LIMIT_MEMORY,  /* of the process: base/memory_account_private.h, which refuses over it */
  MUSTER_N_LIMITS,
} MusterLimit;

typedef struct {
  const char *name; /* static: "sessions", "graph_bytes", "steps", … */
  guint64 used;     /* current; for a limit of one item's size, the largest so far */
  guint64 max;      /* 0: none */
  guint64 refused;
} MusterLimitUse;

/* Zeros are the defaults (server/server.h). */
MusterLimits *muster_limits_new (const MusterServerLimits *limits);
void muster_limits_free (MusterLimits *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterLimits, muster_limits_free)

/* Adds a session, step or watcher; release it when it ends. Sessions and watchers are also refused
 * when few file descriptors are left. */
gboolean muster_limits_take (MusterLimits *self, MusterLimit limit, GError **error);
void muster_limits_release (MusterLimits *self, MusterLimit limit);

/* Checks the size of a graph or a request. */
gboolean muster_limits_allow (MusterLimits *self, MusterLimit limit, guint64 n_bytes,
                              GError **error);

/* For a limit that is kept elsewhere: measure fills in used, max and refused. Before others read
 * it.
 */
void muster_limits_measure (MusterLimits *self, MusterLimit limit,
                            void (*measure) (MusterLimitUse *usage, gpointer data), gpointer data);

guint64 muster_limits_max (MusterLimits *self, MusterLimit limit);
/* Counts open files, so it is too slow for use in each step. */
void muster_limits_read (MusterLimits *self, MusterLimit limit, MusterLimitUse *usage);

G_END_DECLS
