// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/manager.h"
#include "train/monitored/hook.h"

G_BEGIN_DECLS

/* MusterMonitoredSession is a session with hooks that comes back after a crash (behaviours MON.20
 * to MON.61): a run that fails because the master lost the session (ABORTED) or can't be reached
 * (UNAVAILABLE) closes it, makes another the same way, restored or waited for, and runs again; the
 * caller sees the result alone. One thread runs it; request_stop and should_stop are any thread's.
 * Deadlines are on its clock: where that isn't the machine's, its master's must be the same. */

#define MUSTER_TYPE_MONITORED_SESSION (muster_monitored_session_get_type ())
G_DECLARE_FINAL_TYPE (MusterMonitoredSession, muster_monitored_session, MUSTER, MONITORED_SESSION,
                      GObject)

/* What becomes of its sessions, for people; each may be NULL. Called on the thread that runs it. */
typedef struct {
  /* After each try to make one, before the hooks hear of it. report is the manager's; who empties
   * it (leaving zeros) keeps what is in it. error is (nullable): it failed. */
  void (*made) (MusterSessionReport *report, const GError *error, gpointer user_data);
  /* It comes back, for the n-th time in all, after a pause. */
  void (*lost) (const GError *why, guint n, gint64 pause_us, gpointer user_data);
  gpointer user_data;
} MusterSessionListener;

typedef struct {
  MusterScaffold *scaffold; /* its graph, ops and global step */
  MusterMaster *master;
  MusterSessionManager *manager; /* (nullable) NULL: one with the scaffold's ops */
  gboolean is_worker;            /* a chief unless this is set */
  /* (nullable) A chief's: what to restore and how to initialise; its init_op, init_feeds and
   * init_func NULL: the scaffold's; its saver NULL with a place to restore from: one for the
   * scaffold's SaverDef, which is built where there is none. Copied; the feeds, and what the
   * functions are given, must live as long as the session. */
  const MusterPrepareOptions *prepare;
  gint64 max_wait_us;       /* a worker's wait for the model; 0: 30 minutes (MON.11) */
  MusterHook *const *hooks; /* called in this order */
  gsize n_hooks;
  /* A run that takes longer has lost its session (UNAVAILABLE), which is made anew; longer than the
   * longest step. Nothing else finds a machine behind the master that has stopped without a word.
   * 0: none but the step's own deadline, which is the caller's and isn't recovered from. */
  gint64 step_timeout_us;
  gint64 stop_grace_us;   /* for the coordinator's threads at the end; 0: 120 s */
  gboolean never_recover; /* a singular session: what fails, fails (MON.47) */
  /* How often it comes back without having come further (a global step not seen before; without
   * one, a run that ended well), and how it pauses: NULL: 10 times, 100 ms to 10 s. */
  const MusterRetryPolicy *recovery;
  const MusterSessionListener *listener; /* (nullable) copied */
  MusterClock *clock;                    /* NULL: the machine's */
} MusterMonitoredSessionOptions;

/* Begins the hooks and makes the first session, then starts the graph's queue runners
 * (train/monitored/queue_runner.h). Two hooks that want the same for themselves are
 * INVALID_ARGUMENT before there is a session. cancellable ends every wait of its life, and stops
 * its threads. report (nullable) is filled by the manager's verb, also on failure. */
MusterMonitoredSession *muster_monitored_session_new (const MusterMonitoredSessionOptions *options,
                                                      MusterSessionReport *report,
                                                      GCancellable *cancellable, GError **error);

/* Runs a step with all hooks around it; fetched (nullable where nothing is fetched) and metadata
 * (nullable out) as in muster_session_run (). step's deadline bounds coming back as well; where
 * that isn't done by then, the next run goes on. FAILED_PRECONDITION
 * after a stop that a hook or request_stop asked for ("Run called even after should_stop
 * requested.") and after the end. After a thread has failed it runs all the same, as TensorFlow's
 * does, and fails with what the master says: CANCELLED, say, of a queue that was closed. */
gboolean muster_monitored_session_run (MusterMonitoredSession *self, const MusterStep *step,
                                       MusterTensor **fetched, GBytes **metadata, GError **error);

/* The same without hooks, recovered all the same (DMON.5); fetched (nullable where nothing is
 * fetched) and metadata (nullable out) as there. */
gboolean muster_monitored_session_run_without_hooks (MusterMonitoredSession *self,
                                                     const MusterStep *step, MusterTensor **fetched,
                                                     GBytes **metadata, GError **error);

/* Several runs that belong together: where one of them finds the session lost, the whole function
 * is run again in the next one (MON.48 to MON.50, DMON.9). It runs in session, without hooks, or by
 * muster_monitored_session_run (). FALSE without an error asks for a stop, and is no failure. */
typedef gboolean (*MusterStepFunction) (MusterMonitoredSession *self, MusterSession *session,
                                        gint64 deadline_us, GCancellable *cancellable,
                                        gpointer user_data, GError **error);
/* The deadline is handed to function, as is what cancels the monitored session (nullable). */
gboolean muster_monitored_session_run_step_function (MusterMonitoredSession *self,
                                                     MusterStepFunction function,
                                                     gpointer user_data, gint64 deadline_us,
                                                     GError **error);

/* TRUE once a hook, a thread or the caller has asked for a stop, after a thread's failure that
 * can't be recovered from, and after the end. FALSE where a thread has reported a lost session: the
 * next run makes another (TensorFlow makes it here, MON.43). Never blocks, never fails. */
gboolean muster_monitored_session_should_stop (MusterMonitoredSession *self);
void muster_monitored_session_request_stop (MusterMonitoredSession *self);

/* Ends it. failure (nullable) is what the caller's work ended with: NULL, OUT_OF_RANGE (the end of
 * the input, from a run, from before_run or from the caller) and a stop are clean ends, after which
 * the hooks' end is called, each once, all of them; any other goes to their on_error, and out
 * through error again; so does an OUT_OF_RANGE from another verb of a hook's, which is a mistake of
 * the hook's (DMON.8). Then the threads are joined and the session is closed.
 *
 * The hooks' ends have until deadline_us (on the monitored session's clock), the threads their
 * stop_grace_us, but no longer than that; what cancels the session ends both.
 *
 * FALSE with the error that came first: what a thread has reported to the coordinator, unless it is
 * a lost session; else failure; else that of a hook's end. The others are logged. A second call is
 * FAILED_PRECONDITION ("Session is already closed."). */
gboolean muster_monitored_session_finish (MusterMonitoredSession *self, const GError *failure,
                                          gint64 deadline_us, GError **error);

/* The session below and its coordinator, for threads of the caller's own; borrowed, and replaced by
 * a recovery. NULL after the end. */
MusterSession *muster_monitored_session_session (MusterMonitoredSession *self);
MusterCoordinator *muster_monitored_session_coordinator (MusterMonitoredSession *self);
/* The chief's lease, or NULL; borrowed. */
MusterLease *muster_monitored_session_lease (MusterMonitoredSession *self);
/* The highest global step that a run has shown; -1 before. */
gint64 muster_monitored_session_global_step (MusterMonitoredSession *self);
/* What said that the input had ended: the failure's text, which names the op or the hook; NULL
 * where it hasn't. Borrowed. */
const char *muster_monitored_session_end_of_input (MusterMonitoredSession *self);
/* How often it has come back. */
guint muster_monitored_session_n_recoveries (MusterMonitoredSession *self);

G_END_DECLS
