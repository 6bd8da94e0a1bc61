// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/executor.h"
#include "engine/run/plan.h"
#include "engine/run/randoms.h"
#include "engine/session/local_session.h"

G_BEGIN_DECLS

/* A local session's struct: local_session.c creates and closes it, local_session_steps.c runs
 * steps. */

typedef enum { MUSTER_LOCAL_OPEN, MUSTER_LOCAL_CLOSED, MUSTER_LOCAL_RESET } MusterLocalState;

/* The number of recently used plans, by the low bits of their hash: most sessions run a few steps.
 */
#define MUSTER_N_RECENT 16

struct _MusterLocalSession {
  MusterSession parent;
  MusterLocalShared *shared; /* (owned) */
  MusterSessionConfig config;
  MusterResources *resources;   /* (owned) the master's, or its own if its state is isolated */
  MusterGraphCache *graphs;     /* (not owned) whose plans refer to those resources */
  MusterGraphCache *own_graphs; /* (owned) (nullable) for an isolated session */
  MusterRandoms *randoms;       /* (owned) */
  MusterResources *own;         /* (owned) queues and other resources of this session only */

  GMutex lock; /* short; guards all below */
  MusterLocalState state;
  MusterProgram *program;              /* (owned) */
  MusterPlan *recent[MUSTER_N_RECENT]; /* (owned) (nullable) */
  GPtrArray *containers; /* (owned) (nullable) (element-type utf8) cleared with the session;
                            constant once it has ended */
  GHashTable *callables; /* (owned) (nullable) number to the registered step */
  gint64 last_callable;
  GHashTable *partials; /* (owned) (nullable) handle to MusterPartial */
  gint64 n_partials;    /* number ever set up */
  GQueue running;       /* of MusterRun; the links are their callers' */
  GCond idle;           /* signals that nothing is running */
};

/* With the lock held, of a session that has ended: FALSE with ABORTED. */
gboolean muster_local_session_refuse (MusterLocalSession *self, GError **error);

/* The functions that run steps, for the class. */
gboolean muster_local_session_run (MusterSession *session, const MusterStep *step,
                                   MusterTensor **fetched, GBytes **metadata,
                                   GCancellable *cancellable, GError **error);
char *muster_local_session_set_up_partial_run (MusterSession *session, const MusterStep *step,
                                               gint64 deadline_us, GCancellable *cancellable,
                                               GError **error);
gboolean muster_local_session_run_part (MusterSession *session, const char *partial_run,
                                        const MusterStep *part, MusterTensor **fetched,
                                        GBytes **metadata, GCancellable *cancellable,
                                        GError **error);
gint64 muster_local_session_make_callable (MusterSession *session, const MusterStep *step,
                                           gint64 deadline_us, GCancellable *cancellable,
                                           GError **error);
gboolean muster_local_session_run_callable (MusterSession *session, gint64 callable,
                                            MusterTensor *const *feeds, gsize n_feeds,
                                            gint64 deadline_us, MusterTensor **fetched,
                                            GBytes **metadata, GCancellable *cancellable,
                                            GError **error);
gboolean muster_local_session_release_callable (MusterSession *session, gint64 callable,
                                                gint64 deadline_us, GCancellable *cancellable,
                                                GError **error);

G_END_DECLS
