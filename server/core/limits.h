// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* MusterLimits holds a server to its limits: whoever is about to take something on asks here first,
 * and over a limit gets RESOURCE_EXHAUSTED with its name, its value and the flag that raises it.
 * Any thread; no locks. */

typedef struct _MusterLimits MusterLimits;

typedef enum {
  MUSTER_LIMIT_SESSIONS,
  MUSTER_LIMIT_GRAPH_BYTES, /* of one graph */
  MUSTER_LIMIT_STEPS,
  MUSTER_LIMIT_WATCHERS,
  MUSTER_LIMIT_REQUEST_BYTES, /* of one request */
  MUSTER_LIMIT_OPEN_FILES,
  MUSTER_N_LIMITS,
} MusterLimit;

typedef struct {
  const char *name; /* static: "sessions", "graph_bytes", "steps", … */
  guint64 used;     /* at present; of a limit that holds one thing, the largest there was */
  guint64 max;
  /* Requests that are too large are refused before anybody can count them: always 0 there. */
  guint64 refused;
} MusterLimitUse;

/* Zeros are the defaults (server.h). */
MusterLimits *muster_limits_new (const MusterServerLimits *limits);
void muster_limits_free (MusterLimits *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterLimits, muster_limits_free)

/* One session, step or watcher more: release it when it has ended. A session or watcher is also
 * refused once file descriptors run short. */
gboolean muster_limits_take (MusterLimits *self, MusterLimit limit, GError **error);
void muster_limits_release (MusterLimits *self, MusterLimit limit);

/* A graph or a request of so many bytes. */
gboolean muster_limits_allow (MusterLimits *self, MusterLimit limit, guint64 n_bytes,
                              GError **error);

guint64 muster_limits_max (MusterLimits *self, MusterLimit limit);
/* Of the open files it counts, so it isn't for the way of a step. */
void muster_limits_read (MusterLimits *self, MusterLimit limit, MusterLimitUse *usage);

G_END_DECLS
