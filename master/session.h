// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/step.h"
#include "master/announcement.h"

G_BEGIN_DECLS

/* MusterSession is a graph on a master, ready to run steps: the same verbs whether the master is in
 * this process or behind gRPC. Any thread may run steps, several at once. A session that is dropped
 * without a close is closed quietly in the background of the master, never blocking the caller.
 *
 * Every verb takes an absolute deadline, an instant of any clock (MUSTER_WAIT_FOREVER: none; a
 * duration in its place is INVALID_ARGUMENT where it can be told: muster_deadline_check ()), and a
 * nullable GCancellable. Errors of a step carry TensorFlow's code, and name the node and the op.
 * ABORTED: the master no longer knows the session. UNAVAILABLE: the master can't be reached. */

#define MUSTER_TYPE_SESSION (muster_session_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterSession, muster_session, MUSTER, SESSION, GObject)

typedef struct _MusterMaster MusterMaster;
typedef struct _MusterLease MusterLease; /* master/lease.h */
typedef struct _MusterClaim MusterClaim;

/* What a waiter asks a master to push. */
typedef struct {
  const char *ready_for_local_init_op; /* (nullable) */
  const char *ready_op;                /* (nullable) */
  const char *model; /* (nullable) as its chief announces it: not ready while one prepares it */
  const char *task;  /* (nullable) who waits, for people: "worker:3" */
} MusterWatchFor;

/* The present answer to "may I run local init, and is the model ready": what the server's Watch
 * pushes. */
typedef struct {
  gboolean gate_open;
  gboolean is_ready;
  char *why_gate;      /* (owned) (nullable) */
  char *why_not_ready; /* (owned) (nullable) */
  char **missing;      /* (owned) (nullable) names of variables without a value, in one block
                          (base/names.h) */
  /* Of the model that the watch named: */
  gboolean keeps_announcements; /* the master keeps announcements: what follows is known */
  MusterAnnouncement *chief;    /* (owned) (nullable) NULL: no chief has ever registered */
  char *graph_difference; /* (owned) (nullable) how the waiter's graph differs from the chief's */
  guint64 version;        /* its keeper's: counts the changes; 0 before the first */
} MusterReadiness;

/**
 * muster_readiness_clear: (skip)
 */
void muster_readiness_clear (MusterReadiness *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterReadiness, muster_readiness_clear)

/* A watch over both questions of one session. */
#define MUSTER_TYPE_WATCH (muster_watch_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterWatch, muster_watch, MUSTER, WATCH, GObject)

struct _MusterWatchClass {
  GObjectClass parent;
  gboolean (*next) (MusterWatch *self, MusterReadiness *readiness, GCancellable *cancellable,
                    GError **error);
};

/**
 * muster_watch_next: (skip)
 *
 * Waits for the next turn; the first comes at once. Fills *readiness (the caller clears it).
 * ABORTED when the session is gone, UNIMPLEMENTED (at the first call) where the master can't push,
 * DEADLINE_EXCEEDED at the deadline given to watch.
 */
gboolean muster_watch_next (MusterWatch *self, MusterReadiness *readiness,
                            GCancellable *cancellable, GError **error);

struct _MusterSessionClass {
  GObjectClass parent;
  gboolean is_here; /* steps run in this process: what is fed is taken as it is */
  gboolean (*run) (MusterSession *self, const MusterStep *step, MusterTensor **fetched,
                   GBytes **metadata, GCancellable *cancellable, GError **error);
  gboolean (*extend) (MusterSession *self, MusterGraph *graph, gint64 deadline_us,
                      GCancellable *cancellable, GError **error);
  gboolean (*close) (MusterSession *self, gint64 deadline_us, GCancellable *cancellable,
                     GError **error);
  gint64 (*make_callable) (MusterSession *self, const MusterStep *step, gint64 deadline_us,
                           GCancellable *cancellable, GError **error);
  gboolean (*run_callable) (MusterSession *self, gint64 callable, MusterTensor *const *feeds,
                            gsize n_feeds, gint64 deadline_us, MusterTensor **fetched,
                            GBytes **metadata, GCancellable *cancellable, GError **error);
  gboolean (*release_callable) (MusterSession *self, gint64 callable, gint64 deadline_us,
                                GCancellable *cancellable, GError **error);
  /* optional, these two together */
  char *(*set_up_partial_run) (MusterSession *self, const MusterStep *step, gint64 deadline_us,
                               GCancellable *cancellable, GError **error);
  gboolean (*run_part) (MusterSession *self, const char *partial_run, const MusterStep *part,
                        MusterTensor **fetched, GBytes **metadata, GCancellable *cancellable,
                        GError **error);
  /* optional */
  MusterWatch *(*watch) (MusterSession *self, const MusterWatchFor *what, gint64 deadline_us,
                         GError **error);
  /* optional: see master/lease.h */
  MusterLease *(*claim) (MusterSession *self, const MusterClaim *claim, MusterAnnouncement **before,
                         gint64 deadline_us, GCancellable *cancellable, GError **error);
};

/* A master is given a little less than a step's time, so that its own verdict still arrives: a
 * DEADLINE_EXCEEDED may come so much before the deadline. */
#define MUSTER_DEADLINE_MARGIN_US (50 * MUSTER_MILLISECOND)

/**
 * muster_session_ran_out: (skip)
 *
 * Whether failure (nullable), of a call that was given deadline_us and has just come back, is that
 * deadline's: DEADLINE_EXCEEDED, and not one of an op's own, long before.
 */
gboolean muster_session_ran_out (const GError *failure, gint64 deadline_us, gint64 now_us);

/* The handle that the master knows it by; borrowed. */
const char *muster_session_handle (MusterSession *self);

/**
 * muster_session_graph:
 *
 * The graph it was made with; borrowed (nullable).
 *
 * Returns: (transfer none) (nullable)
 */
MusterGraph *muster_session_graph (MusterSession *self);

/* Whether steps run in this process, so that tensors go in and out without a wire and without a
 * copy. */
gboolean muster_session_is_here (MusterSession *self);

/**
 * muster_session_run: (skip)
 *
 * Runs a step: fetched (nullable where nothing is fetched) has room for n_fetches references
 * (transfer full), untouched on failure. metadata (nullable out) gets a serialised RunMetadata, or
 * NULL.
 */
gboolean muster_session_run (MusterSession *self, const MusterStep *step, MusterTensor **fetched,
                             GBytes **metadata, GCancellable *cancellable, GError **error);

/**
 * muster_session_set_up_partial_run: (skip)
 *
 * A step that is run in parts, by the handle that this returns (transfer full). Of step, only the
 * feeds' names, fetches and targets count. UNIMPLEMENTED where this kind of session has none.
 */
char *muster_session_set_up_partial_run (MusterSession *self, const MusterStep *step,
                                         gint64 deadline_us, GCancellable *cancellable,
                                         GError **error);

/**
 * muster_session_run_part: (skip)
 *
 * Runs a part of a partial run: it feeds some of what that was set up for, and fetches what can be
 * computed from what was fed so far; otherwise as run. Every node runs once, the targets as soon as
 * they can. The partial run is over when all was fed and fetched, or a part has failed in a node.
 */
gboolean muster_session_run_part (MusterSession *self, const char *partial_run,
                                  const MusterStep *part, MusterTensor **fetched, GBytes **metadata,
                                  GCancellable *cancellable, GError **error);

/* Runs ops for their effect. */
gboolean muster_session_run_op (MusterSession *self, const char *op, gint64 deadline_us,
                                GCancellable *cancellable, GError **error);

/* Fetches one tensor, (transfer full). */
MusterTensor *muster_session_fetch (MusterSession *self, const char *tensor, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error);

/* Adds nodes. ALREADY_EXISTS or INVALID_ARGUMENT for a name that is there; UNIMPLEMENTED where this
 * kind of session takes none. */
gboolean muster_session_extend (MusterSession *self, MusterGraph *graph, gint64 deadline_us,
                                GCancellable *cancellable, GError **error);

/* Ends it; steps that still run get CANCELLED. Closing twice is fine. */
gboolean muster_session_close (MusterSession *self, gint64 deadline_us, GCancellable *cancellable,
                               GError **error);

/* Closes within five seconds, whatever the master does, and drops the error: for a session that is
 * given up. self may be NULL. */
void muster_session_close_quietly (MusterSession *self);
/* The same within timeout_us; self may be NULL. Who gives up because the master is out of reach
 * gives it a second: what the close doesn't reach is the server's to collect. */
void muster_session_close_quietly_within (MusterSession *self, gint64 timeout_us);

/**
 * muster_session_make_callable: (skip)
 *
 * A step kept by the master under a number: only feeds' names, fetches, targets and options of step
 * count. 0 on failure.
 */
gint64 muster_session_make_callable (MusterSession *self, const MusterStep *step,
                                     gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_session_run_callable: (skip)
 *
 * Runs it; fetched (nullable where nothing is fetched) and metadata (nullable out) as above.
 */
gboolean muster_session_run_callable (MusterSession *self, gint64 callable,
                                      MusterTensor *const *feeds, gsize n_feeds, gint64 deadline_us,
                                      MusterTensor **fetched, GBytes **metadata,
                                      GCancellable *cancellable, GError **error);

/**
 * muster_session_release_callable: (skip)
 */
gboolean muster_session_release_callable (MusterSession *self, gint64 callable, gint64 deadline_us,
                                          GCancellable *cancellable, GError **error);

/**
 * muster_session_watch: (skip)
 *
 * Asks the master to push readiness. UNIMPLEMENTED where this kind of master can't.
 */
MusterWatch *muster_session_watch (MusterSession *self, const MusterWatchFor *what,
                                   gint64 deadline_us, GError **error);

/**
 * muster_session_set_identity: (skip)
 *
 * For implementations: set once, after construction. graph (nullable).
 */
void muster_session_set_identity (MusterSession *self, const char *handle, MusterGraph *graph);

G_END_DECLS
