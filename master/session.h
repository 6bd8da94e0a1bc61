// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/step.h"
#include "master/announcement.h"

G_BEGIN_DECLS

/**
 * MusterSession:
 *
 * A graph on a master, ready to run steps. The operations are the same for a master in this process
 * and behind gRPC. Any thread may run steps, several at once. A session that is freed without a
 * close is closed in the background; the caller isn't blocked.
 *
 * Every operation takes an absolute deadline, an instant of g_get_monotonic_time () or any
 * #MusterClock (%MUSTER_WAIT_FOREVER: none; a duration or a time of day in its place is
 * INVALID_ARGUMENT if detectable: [func@deadline_check]), and a #GCancellable, which may be %NULL.
 * A step's errors have TensorFlow's code, and name the node and the op. ABORTED: the master no
 * longer knows the session. UNAVAILABLE: the master can't be reached.
 */

#define MUSTER_TYPE_SESSION (muster_session_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterSession, muster_session, MUSTER, SESSION, GObject)

/**
 * MusterSessionFunc:
 * @session: the session to work in
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @user_data: the caller's
 * @error: return location for an error
 *
 * Work in a session, as a part of an operation, whose deadline and cancellable it must respect.
 *
 * Returns: `FALSE` fails the operation
 */
typedef gboolean (*MusterSessionFunc) (MusterSession *session, gint64 deadline_us,
                                       GCancellable *cancellable, gpointer user_data,
                                       GError **error);

typedef struct _MusterMaster MusterMaster;
typedef struct _MusterLease MusterLease;
typedef struct _MusterClaim MusterClaim;

/**
 * MusterWatchFor:
 * @ready_for_local_init_op: the gate before local init (nullable)
 * @ready_op: the op that reports whether the model is ready (nullable)
 * @model: as its chief announces it; not ready while a chief prepares it (nullable)
 * @task: the waiter's name for messages: "worker:3" (nullable)
 *
 * What a waiter watches.
 */
typedef struct {
  const char *ready_for_local_init_op;
  const char *ready_op;
  const char *model;
  const char *task;
} MusterWatchFor;

#define MUSTER_TYPE_WATCH_FOR (muster_watch_for_get_type ())
GType muster_watch_for_get_type (void);

/**
 * MusterReadiness:
 * @gate_open: local init may run
 * @is_ready: the model is ready
 * @why_gate: why it may not (owned, nullable)
 * @why_not_ready: why it isn't (owned, nullable)
 * @missing: (array zero-terminated=1): names of variables without a value, in one block (owned,
 *   nullable)
 * @keeps_announcements: the master keeps announcements about the model that the watch named: the
 *   following is known
 * @chief: NULL: no chief has ever registered (owned, nullable)
 * @graph_difference: how the waiter's graph differs from the chief's (owned, nullable)
 * @coordinator_failure: why the job's coordinator doesn't answer, so that the chief's announcements
 *   aren't known (owned, nullable)
 * @n_tasks: if the job waits for tasks: the number that it has
 * @min_tasks: the number that it needs; 0: it doesn't wait for tasks
 * @version: number of changes so far, counted where it is kept; 0: nothing is known
 *
 * The state that a watch pushes: whether local init may run, and whether the model is ready.
 */
typedef struct {
  gboolean gate_open;
  gboolean is_ready;
  char *why_gate;
  char *why_not_ready;
  char **missing;
  gboolean keeps_announcements;
  MusterAnnouncement *chief;
  char *graph_difference;
  char *coordinator_failure;
  guint n_tasks;
  guint min_tasks;
  guint64 version;
} MusterReadiness;

#define MUSTER_TYPE_READINESS (muster_readiness_get_type ())
GType muster_readiness_get_type (void);

/**
 * muster_readiness_clear:
 * @self: readiness
 *
 * Frees what it contains, and empties it.
 */
void muster_readiness_clear (MusterReadiness *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterReadiness, muster_readiness_clear)

/**
 * MusterWatch:
 *
 * A watch of one session's readiness ([method@Session.watch]). One thread.
 */
#define MUSTER_TYPE_WATCH (muster_watch_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterWatch, muster_watch, MUSTER, WATCH, GObject)

/**
 * MusterWatchClass:
 * @parent: the parent class
 * @next: see [vfunc@Watch.next]
 *
 * What a watch implements.
 */
struct _MusterWatchClass {
  GObjectClass parent;
  gboolean (*next) (MusterWatch *self, MusterReadiness *readiness, gint64 until_us,
                    GCancellable *cancellable, GError **error);
};

/**
 * MusterWatchClass::next:
 * @self: a watch
 * @readiness: where the result goes, which the caller clears
 * @until_us: an instant of g_get_monotonic_time ()
 * @cancellable: (nullable): cancels the call
 *
 * Waits for the next change, as [method@Watch.next], until @until_us: then DEADLINE_EXCEEDED, and
 * the watch continues.
 *
 * Returns: %TRUE, or %FALSE with an error
 */

/**
 * muster_watch_next:
 * @self: a watch
 * @readiness: where the result goes, which the caller clears
 * @cancellable: (nullable): cancels the call
 *
 * Waits for the next change; the first call returns at once. ABORTED if the session is lost,
 * UNIMPLEMENTED (at the first call) if the master can't push, DEADLINE_EXCEEDED if nothing changed
 * by the deadline that [method@Session.watch] was given, or, at the first call, no answer came.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_watch_next (MusterWatch *self, MusterReadiness *readiness,
                            GCancellable *cancellable, GError **error);

/**
 * MusterSessionClass:
 * @parent: the parent class
 * @is_here: steps run in this process: fed tensors aren't copied
 * @run: see muster_session_run ()
 * @extend: see [method@Session.extend]
 * @close: see [method@Session.close]
 * @make_callable: see muster_session_make_callable ()
 * @run_callable: see muster_session_run_callable ()
 * @release_callable: see [method@Session.release_callable]
 * @set_up_partial_run: optional, with the next: see muster_session_set_up_partial_run ()
 * @run_part: see muster_session_run_part ()
 * @watch: optional: see [method@Session.watch]
 * @claim: optional: see [method@Session.claim]
 *
 * What a session implements.
 */
struct _MusterSessionClass {
  GObjectClass parent;
  gboolean is_here;
  gboolean (*run) (MusterSession *self, const MusterStep *step, MusterTensor **fetched,
                   GBytes **metadata, GCancellable *cancellable, GError **error);
  gboolean (*extend) (MusterSession *self, MusterGraph *graph, gint64 deadline_us,
                      GCancellable *cancellable, GError **error);
  gboolean (*close) (MusterSession *self, gint64 deadline_us, GCancellable *cancellable,
                     GError **error);
  /* (nullable) without it, give_up closes */
  void (*give_up) (MusterSession *self);
  gint64 (*make_callable) (MusterSession *self, const MusterStep *step, gint64 deadline_us,
                           GCancellable *cancellable, GError **error);
  gboolean (*run_callable) (MusterSession *self, gint64 callable, MusterTensor *const *feeds,
                            gsize n_feeds, gint64 deadline_us, MusterTensor **fetched,
                            GBytes **metadata, GCancellable *cancellable, GError **error);
  gboolean (*release_callable) (MusterSession *self, gint64 callable, gint64 deadline_us,
                                GCancellable *cancellable, GError **error);
  char *(*set_up_partial_run) (MusterSession *self, const MusterStep *step, gint64 deadline_us,
                               GCancellable *cancellable, GError **error);
  gboolean (*run_part) (MusterSession *self, const char *partial_run, const MusterStep *part,
                        MusterTensor **fetched, GBytes **metadata, GCancellable *cancellable,
                        GError **error);
  MusterWatch *(*watch) (MusterSession *self, const MusterWatchFor *what, gint64 deadline_us,
                         GError **error);
  MusterLease *(*claim) (MusterSession *self, const MusterClaim *claim, MusterAnnouncement **before,
                         gint64 deadline_us, GCancellable *cancellable, GError **error);
};

/**
 * MUSTER_DEADLINE_MARGIN_US:
 *
 * A master is given slightly less than a step's time, so that its own error arrives in time:
 * DEADLINE_EXCEEDED may come this much before the deadline, in microseconds.
 */
#define MUSTER_DEADLINE_MARGIN_US (50 * MUSTER_MILLISECOND)

/**
 * muster_session_ran_out:
 * @failure: (nullable): the failure of a call that just returned
 * @deadline_us: the call's deadline
 * @now_us: the present, as g_get_monotonic_time () returns it
 *
 * Tells whether a call has failed because of its deadline.
 *
 * Returns: %TRUE if @failure is DEADLINE_EXCEEDED because of that deadline, and not an op's own
 *   error long before it
 */
gboolean muster_session_ran_out (const GError *failure, gint64 deadline_us, gint64 now_us);

/**
 * muster_session_handle:
 * @self: a session
 *
 * The handle by which the master knows it.
 *
 * Returns: the handle, borrowed
 */
const char *muster_session_handle (MusterSession *self);

/**
 * muster_session_graph:
 * @self: a session
 *
 * The graph it was created with.
 *
 * Returns: (transfer none) (nullable): the graph
 */
MusterGraph *muster_session_graph (MusterSession *self);

/**
 * muster_session_is_here:
 * @self: a session
 *
 * Tests whether steps run in this process, so that tensors pass without serialisation or copy.
 *
 * Returns: %TRUE if so
 */
gboolean muster_session_is_here (MusterSession *self);

/**
 * muster_session_run: (skip)
 * @self: a session
 * @step: the step
 * @fetched: (nullable): n_fetches elements, which the caller frees; untouched on failure; %NULL if
 *   nothing is fetched
 * @metadata: (nullable): a serialised RunMetadata, or %NULL
 * @cancellable: (nullable): cancels the call
 *
 * Runs a step. Other languages use [method@StepBuilder.run].
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_run (MusterSession *self, const MusterStep *step, MusterTensor **fetched,
                             GBytes **metadata, GCancellable *cancellable, GError **error);

/**
 * muster_session_run_async: (skip)
 * @self: a session
 * @step: the step, which is copied; its tensors are referenced
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Runs a step on a thread of its own: [method@Session.run], and calls back in the thread-default
 * main context of the thread that called it.
 */
void muster_session_run_async (MusterSession *self, const MusterStep *step,
                               GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data);

/**
 * muster_session_run_finish: (skip)
 * @self: a session
 * @result: what the callback was given
 * @fetched: (out caller-allocates) (nullable): one tensor (transfer full) for each fetch;
 * untouched on failure
 * @metadata: (out) (optional) (nullable): a serialised RunMetadata, if the step asked for one
 *
 * The result of muster_session_run_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_run_finish (MusterSession *self, GAsyncResult *result,
                                    MusterTensor **fetched, GBytes **metadata, GError **error);

/**
 * muster_session_set_up_partial_run: (skip)
 * @self: a session
 * @step: of it, only the feeds' names, fetches and targets are used
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Sets up a step that runs in parts. A part feeds some of @step's feeds and fetches what can be
 * computed from the feeds so far. Every node runs once, the targets as soon as possible. The
 * partial run ends when everything was fed and fetched, or when a node fails. UNIMPLEMENTED if this
 * kind of session doesn't support it. Other languages use [method@StepBuilder.set_up_partial_run].
 *
 * Returns: (transfer full): the handle to put into partial_run of each part
 */
char *muster_session_set_up_partial_run (MusterSession *self, const MusterStep *step,
                                         gint64 deadline_us, GCancellable *cancellable,
                                         GError **error);

/**
 * muster_session_run_part: (skip)
 * @self: a session
 * @partial_run: the handle of the partial run
 * @part: a part of its feeds and fetches
 * @fetched: (nullable): as in muster_session_run ()
 * @metadata: (nullable): as in muster_session_run ()
 * @cancellable: (nullable): cancels the call
 *
 * Runs a part of a partial run: it feeds some of what that was set up for, and fetches what can be
 * computed from what was fed so far; otherwise as muster_session_run (). Other languages use
 * [method@StepBuilder.run_part].
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_run_part (MusterSession *self, const char *partial_run,
                                  const MusterStep *part, MusterTensor **fetched, GBytes **metadata,
                                  GCancellable *cancellable, GError **error);

/**
 * muster_session_run_op:
 * @self: a session
 * @op: the op's name
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Runs one op for its effect.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_run_op (MusterSession *self, const char *op, gint64 deadline_us,
                                GCancellable *cancellable, GError **error);

/**
 * muster_session_fetch:
 * @self: a session
 * @tensor: a tensor, such as "loss:0"
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Fetches one tensor.
 *
 * Returns: (transfer full): its value
 */
MusterTensor *muster_session_fetch (MusterSession *self, const char *tensor, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error);

/**
 * MUSTER_SESSION_CONTAINER:
 *
 * The prefix of containers whose variables belong to one session: on muster's engine, variables of
 * nodes added by [method@Session.extend] in such a container end with the session. TensorFlow keeps
 * them until they are destroyed or the master is reset.
 */
#define MUSTER_SESSION_CONTAINER "muster.session/"

/**
 * muster_session_extend:
 * @self: a session
 * @graph: the nodes to add
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Adds nodes to the session's graph. ALREADY_EXISTS or INVALID_ARGUMENT for an existing name;
 * UNIMPLEMENTED if this kind of session doesn't support it.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_extend (MusterSession *self, MusterGraph *graph, gint64 deadline_us,
                                GCancellable *cancellable, GError **error);

/**
 * muster_session_close:
 * @self: a session
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Closes the session; running steps fail with CANCELLED. Closing twice is allowed.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_close (MusterSession *self, gint64 deadline_us, GCancellable *cancellable,
                               GError **error);

/**
 * muster_session_close_quietly:
 * @self: (nullable): a session
 *
 * Closes within five seconds and ignores the error, for a session that is given up.
 */
void muster_session_close_quietly (MusterSession *self);

/**
 * muster_session_close_quietly_within:
 * @self: (nullable): a session
 * @timeout_us: microseconds
 *
 * Closes within a time and ignores the error. Use a second if the master can't be reached: the
 * server then closes the session when its lease expires.
 */
void muster_session_close_quietly_within (MusterSession *self, gint64 timeout_us);

/**
 * muster_session_give_up:
 * @self: (nullable): a session
 *
 * Closes a session that is lost, or whose master may not answer, without waiting for the master:
 * it is told in the background, within five seconds. The session can't be used any more.
 */
void muster_session_give_up (MusterSession *self);

/**
 * muster_session_make_callable: (skip)
 * @self: a session
 * @step: of it, only the feeds' names, fetches, targets and options are used
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Registers a step at the master. Other languages use [method@StepBuilder.make_callable].
 *
 * Returns: its number, or 0 with an error
 */
gint64 muster_session_make_callable (MusterSession *self, const MusterStep *step,
                                     gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_session_run_callable: (skip)
 * @self: a session
 * @callable: the number of a registered step
 * @feeds: the values of its feeds, in their order
 * @n_feeds: their number
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @fetched: (nullable): as in muster_session_run ()
 * @metadata: (nullable): as in muster_session_run ()
 * @cancellable: (nullable): cancels the call
 *
 * Runs a registered step. Other languages use [method@StepBuilder.run_callable].
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_run_callable (MusterSession *self, gint64 callable,
                                      MusterTensor *const *feeds, gsize n_feeds, gint64 deadline_us,
                                      MusterTensor **fetched, GBytes **metadata,
                                      GCancellable *cancellable, GError **error);

/**
 * muster_session_release_callable:
 * @self: a session
 * @callable: the number of a registered step
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Forgets a registered step.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_session_release_callable (MusterSession *self, gint64 callable, gint64 deadline_us,
                                          GCancellable *cancellable, GError **error);

/**
 * muster_session_watch:
 * @self: a session
 * @what: what is watched
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 *
 * Watches readiness, pushed by the master. UNIMPLEMENTED if this kind of master can't push.
 *
 * Returns: (transfer full): the watch
 */
MusterWatch *muster_session_watch (MusterSession *self, const MusterWatchFor *what,
                                   gint64 deadline_us, GError **error);

/**
 * muster_session_set_identity:
 * @self: a session
 * @handle: the handle by which the master knows it
 * @graph: (nullable): the graph it was created with
 *
 * For implementations: called once, after construction.
 */
void muster_session_set_identity (MusterSession *self, const char *handle, MusterGraph *graph);

/**
 * muster_session_check_needs:
 * @self: a session
 * @graph: the graph it was created with
 * @names: (array zero-terminated=1): the ops and tensors that are to be run; those that the graph
 *   lacks are ignored
 * @feeds: (nullable) (array zero-terminated=1): the tensors that will be fed
 *
 * Looks whether the master has all operations that these need, before anything is run.
 * UNIMPLEMENTED lists the missing ones with the number of their nodes. Masters that refuse a graph
 * with unknown operations, as TensorFlow's do, lack none.
 *
 * Returns: %TRUE if it has
 */
gboolean muster_session_check_needs (MusterSession *self, MusterGraph *graph,
                                     const char *const *names, const char *const *feeds,
                                     GError **error);

/**
 * muster_session_lacks:
 * @self: a session
 *
 * The operations of its graph that the master lacks.
 *
 * Returns: (transfer none) (nullable) (array zero-terminated=1): their names; %NULL: none
 */
const char *const *muster_session_lacks (MusterSession *self);

/**
 * muster_session_set_lacks:
 * @self: a session
 * @ops: (nullable) (array zero-terminated=1): operations
 *
 * For implementations: called once, after construction, with the operations of the graph that the
 * master lacks.
 */
void muster_session_set_lacks (MusterSession *self, const char *const *ops);

G_END_DECLS
