// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/executor.h"
#include "engine/run/plan.h"
#include "engine/run/randoms.h"
#include "engine/session/local_session.h"

G_BEGIN_DECLS

/* A local session's inside: its life is in local_session.c, its steps in local_session_steps.c. */

typedef enum { MUSTER_LOCAL_OPEN, MUSTER_LOCAL_CLOSED, MUSTER_LOCAL_FORGOTTEN } MusterLocalState;

/* Plans used last, by the low bits of their hash: most sessions run a handful of steps. */
#define MUSTER_N_RECENT 16

struct _MusterLocalSession {
  MusterSession parent;
  MusterLocalShared *shared; /* (owned) */
  MusterSessionConfig config;
  MusterResources *resources;   /* (owned) the master's, or its own where its state is isolated */
  MusterGraphCache *graphs;     /* (not owned) whose programs' plans know those resources */
  MusterGraphCache *own_graphs; /* (owned) (nullable) of an isolated session */
  MusterRandoms *randoms;       /* (owned) */
  MusterResources *own;         /* (owned) queues and the like that no other session has */

  GMutex lock; /* short; guards all below */
  MusterLocalState state;
  MusterProgram *program;              /* (owned) */
  MusterPlan *recent[MUSTER_N_RECENT]; /* (owned) (nullable) */
  GHashTable *callables;               /* (owned) (nullable) number to what is run */
  gint64 last_callable;
  GHashTable *partials; /* (owned) (nullable) handle to MusterPartial */
  gint64 n_partials;    /* ever set up */
  GQueue running;       /* of MusterRun; the links are their callers' */
  GCond idle;           /* nothing runs any more */
};

/* With the lock held, of a session that has ended: FALSE with ABORTED. */
gboolean muster_local_session_refuse (MusterLocalSession *self, GError **error);

/* The verbs that run, for the class. */
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
