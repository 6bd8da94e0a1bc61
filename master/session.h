// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/step.h"
#include "master/announcement.h"

G_BEGIN_DECLS

/* MusterSession is a graph on a master, ready to run steps. The operations are the same for a
 * master in this process and behind gRPC. Any thread may run steps, several at once. A session that
 * is freed without a close is closed in the background; the caller isn't blocked.
 *
 * Every operation takes an absolute deadline, an instant of any clock (MUSTER_WAIT_FOREVER: none; a
 * duration in its place is INVALID_ARGUMENT if detectable: muster_deadline_check ()), and a
 * nullable GCancellable. A step's errors have TensorFlow's code, and name the node and the op.
 * ABORTED: the master no longer knows the session. UNAVAILABLE: the master can't be reached. */

#define MUSTER_TYPE_SESSION (muster_session_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterSession, muster_session, MUSTER, SESSION, GObject)

typedef struct _MusterMaster MusterMaster;
typedef struct _MusterLease MusterLease; /* master/lease.h */
typedef struct _MusterClaim MusterClaim;

/* What a waiter watches. */
typedef struct {
  const char *ready_for_local_init_op; /* (nullable) */
  const char *ready_op;                /* (nullable) */
  const char *model; /* (nullable) as its chief announces it; not ready while a chief prepares it */
  const char *task;  /* (nullable) the waiter's name for messages: "worker:3" */
} MusterWatchFor;

/* The state that a watch pushes: whether local init may run, and whether the model is ready. */
typedef struct {
  gboolean gate_open;
  gboolean is_ready;
  char *why_gate;      /* (owned) (nullable) */
  char *why_not_ready; /* (owned) (nullable) */
  char **missing;      /* (owned) (nullable) names of variables without a value, in one block
                          (base/names.h) */
  /* About the model that the watch named: */
  gboolean keeps_announcements; /* the master keeps announcements: the following is known */
  MusterAnnouncement *chief;    /* (owned) (nullable) NULL: no chief has ever registered */
  char *graph_difference; /* (owned) (nullable) how the waiter's graph differs from the chief's */
  guint64 version; /* number of changes so far, counted where it is kept; 0: nothing is known */
} MusterReadiness;

/**
 * muster_readiness_clear: (skip)
 */
void muster_readiness_clear (MusterReadiness *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterReadiness, muster_readiness_clear)

/* A watch of one session's readiness. */
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
 * Waits for the next change; the first call returns at once. Sets *readiness, which the caller
 * clears. ABORTED if the session is lost, UNIMPLEMENTED (at the first call) if the master can't
 * push, DEADLINE_EXCEEDED at the deadline that muster_session_watch () was given.
 */
gboolean muster_watch_next (MusterWatch *self, MusterReadiness *readiness,
                            GCancellable *cancellable, GError **error);

struct _MusterSessionClass {
  GObjectClass parent;
  gboolean is_here; /* steps run in this process: fed tensors aren't copied */
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

/* A master is given slightly less than a step's time, so that its own error arrives in time:
 * DEADLINE_EXCEEDED may come this much before the deadline. */
#define MUSTER_DEADLINE_MARGIN_US (50 * MUSTER_MILLISECOND)

/**
 * muster_session_ran_out: (skip)
 *
 * TRUE if failure (nullable), of a call with deadline_us that just returned, is DEADLINE_EXCEEDED
 * because of that deadline, and not an op's own error long before it.
 */
gboolean muster_session_ran_out (const GError *failure, gint64 deadline_us, gint64 now_us);

/* The handle by which the master knows it; borrowed. */
const char *muster_session_handle (MusterSession *self);

/**
 * muster_session_graph:
 *
 * The graph it was created with; borrowed (nullable).
 *
 * Returns: (transfer none) (nullable)
 */
MusterGraph *muster_session_graph (MusterSession *self);

/* TRUE if steps run in this process, so that tensors pass without serialisation or copy. */
gboolean muster_session_is_here (MusterSession *self);

/**
 * muster_session_run: (skip)
 *
 * Runs a step. fetched (nullable if nothing is fetched) has n_fetches elements (transfer full),
 * untouched on failure. metadata (nullable out) becomes a serialised RunMetadata, or NULL.
 */
gboolean muster_session_run (MusterSession *self, const MusterStep *step, MusterTensor **fetched,
                             GBytes **metadata, GCancellable *cancellable, GError **error);

/**
 * muster_session_set_up_partial_run: (skip)
 *
 * Sets up a step that runs in parts. Returns the handle (transfer full) to put into partial_run of
 * each part. A part feeds some of step's feeds and fetches what can be computed from the feeds so
 * far. Every node runs once, the targets as soon as possible. Of step, only the feeds' names,
 * fetches and targets are used. The partial run ends when everything was fed and fetched, or when a
 * node fails. UNIMPLEMENTED if this kind of session doesn't support it.
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

/* Fetches one tensor (transfer full). */
MusterTensor *muster_session_fetch (MusterSession *self, const char *tensor, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error);

/* The prefix of containers whose variables belong to one session: on muster's engine, variables of
 * nodes added by muster_session_extend () in such a container end with the session. TensorFlow
 * keeps them until they are destroyed or the master is reset. */
#define MUSTER_SESSION_CONTAINER "muster.session/"

/* Adds nodes to the session's graph. ALREADY_EXISTS or INVALID_ARGUMENT for an existing name;
 * UNIMPLEMENTED if this kind of session doesn't support it. */
gboolean muster_session_extend (MusterSession *self, MusterGraph *graph, gint64 deadline_us,
                                GCancellable *cancellable, GError **error);

/* Closes the session; running steps fail with CANCELLED. Closing twice is allowed. */
gboolean muster_session_close (MusterSession *self, gint64 deadline_us, GCancellable *cancellable,
                               GError **error);

/* Closes within five seconds and ignores the error, for a session that is given up. self may be
 * NULL. */
void muster_session_close_quietly (MusterSession *self);
/* The same within timeout_us; self may be NULL. Use a second if the master can't be reached: the
 * server then closes the session when its lease expires. */
void muster_session_close_quietly_within (MusterSession *self, gint64 timeout_us);

/**
 * muster_session_make_callable: (skip)
 *
 * Registers a step at the master and returns its number, or 0 on failure. Of step, only the feeds'
 * names, fetches, targets and options are used.
 */
gint64 muster_session_make_callable (MusterSession *self, const MusterStep *step,
                                     gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_session_run_callable: (skip)
 *
 * Runs a registered step. fetched (nullable if nothing is fetched) and metadata (nullable out) as
 * in muster_session_run ().
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
 * Watches readiness, pushed by the master. UNIMPLEMENTED if this kind of master can't push.
 */
MusterWatch *muster_session_watch (MusterSession *self, const MusterWatchFor *what,
                                   gint64 deadline_us, GError **error);

/**
 * muster_session_set_identity: (skip)
 *
 * For implementations: called once, after construction. graph (nullable).
 */
void muster_session_set_identity (MusterSession *self, const char *handle, MusterGraph *graph);

G_END_DECLS
