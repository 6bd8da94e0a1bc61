// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/manager.h"
#include "train/monitored/hook.h"

G_BEGIN_DECLS

/* MusterMonitoredSession is a session with hooks that recovers from failures (behaviours MON.20 to
 * MON.61). If a run fails because the master lost the session (ABORTED) or can't be reached
 * (UNAVAILABLE), it closes the session, creates another in the same way, restored or waited for,
 * and runs again; the caller only sees the result. One thread runs it; request_stop and should_stop
 * may be called by any. Deadlines are on its clock: if that isn't the machine's, its master must
 * use the same. */

#define MUSTER_TYPE_MONITORED_SESSION (muster_monitored_session_get_type ())
G_DECLARE_FINAL_TYPE (MusterMonitoredSession, muster_monitored_session, MUSTER, MONITORED_SESSION,
                      GObject)

/* Reports on its sessions; each function may be NULL. Called on the thread that runs it. */
typedef struct {
  /* After each attempt to create one, before the hooks are called. report is the manager's; to keep
   * it, move its fields and leave zeros. error (nullable): the attempt failed. */
  void (*made) (MusterSessionReport *report, const GError *error, gpointer user_data);
  /* It recovers, for the n-th time, after a pause. */
  void (*lost) (const GError *why, guint n, gint64 pause_us, gpointer user_data);
  gpointer user_data;
} MusterSessionListener;

typedef struct {
  MusterScaffold *scaffold; /* provides graph, ops and global step */
  MusterMaster *master;
  MusterSessionManager *manager; /* (nullable) NULL: one with the scaffold's ops */
  gboolean is_worker;            /* FALSE: a chief */
  /* (nullable) For a chief: what to restore and how to initialise. Unset init_op, init_feeds and
   * init_func are the scaffold's. If saver is unset and there is something to restore from: one for
   * the scaffold's SaverDef, which is built if there is none. Copied; the feeds and the functions'
   * data must live as long as the session. */
  const MusterPrepareOptions *prepare;
  gint64 max_wait_us;       /* of a worker, for the model; 0: 30 minutes (MON.11) */
  MusterHook *const *hooks; /* called in this order */
  gsize n_hooks;
  /* A longer run counts as a lost session (UNAVAILABLE), which is replaced. Set it above the
   * longest step. It is the only way to detect that a machine behind the master has stopped
   * silently. 0: none; the step's own deadline is the caller's and isn't recovered from. */
  gint64 step_timeout_us;
  gint64 stop_grace_us;   /* for the coordinator's threads at the end; 0: 120 s */
  gboolean never_recover; /* a singular session: no recovery (MON.47) */
  /* Retries without progress (a higher global step or, without one, a successful run), and their
   * pauses: NULL: 10 times, 100 ms to 10 s. */
  const MusterRetryPolicy *recovery;
  const MusterSessionListener *listener; /* (nullable) copied */
  MusterClock *clock;                    /* NULL: the machine's */
} MusterMonitoredSessionOptions;

/* Calls the hooks' begin and creates the first session, then starts the graph's queue runners
 * (train/monitored/queue_runner.h). Two hooks with the same claim are INVALID_ARGUMENT before there
 * is a session. cancellable ends every wait during its life and stops its threads. report
 * (nullable) is set by the manager, also on failure. */
MusterMonitoredSession *muster_monitored_session_new (const MusterMonitoredSessionOptions *options,
                                                      MusterSessionReport *report,
                                                      GCancellable *cancellable, GError **error);

/* Runs a step with all hooks; fetched (nullable if nothing is fetched) and metadata (nullable out)
 * as in muster_session_run (). step's deadline also limits the recovery; if it isn't complete by
 * then, the next run continues it. FAILED_PRECONDITION after a stop requested by a hook or
 * request_stop ("Run called even after should_stop requested.") and after the end. After a thread
 * has failed it still runs, like TensorFlow's, and fails with the master's error, such as CANCELLED
 * for a closed queue. */
gboolean muster_monitored_session_run (MusterMonitoredSession *self, const MusterStep *step,
                                       MusterTensor **fetched, GBytes **metadata, GError **error);

/* The same without hooks, also with recovery (DMON.5); fetched (nullable if nothing is fetched) and
 * metadata (nullable out) as there. */
gboolean muster_monitored_session_run_without_hooks (MusterMonitoredSession *self,
                                                     const MusterStep *step, MusterTensor **fetched,
                                                     GBytes **metadata, GError **error);

/* Several runs that belong together: if one finds the session lost, the whole function is run again
 * in the next session (MON.48 to MON.50, DMON.9). It runs in session, without hooks, or through
 * muster_monitored_session_run (). FALSE without an error requests a stop and isn't a failure. */
typedef gboolean (*MusterStepFunction) (MusterMonitoredSession *self, MusterSession *session,
                                        gint64 deadline_us, GCancellable *cancellable,
                                        gpointer user_data, GError **error);
/* The deadline is passed to function, as is the monitored session's cancellable (nullable). */
gboolean muster_monitored_session_run_step_function (MusterMonitoredSession *self,
                                                     MusterStepFunction function,
                                                     gpointer user_data, gint64 deadline_us,
                                                     GError **error);

/* TRUE once a hook, a thread or the caller has requested a stop, after an unrecoverable failure of
 * a thread, and after the end. FALSE if a thread has reported a lost session: the next run creates
 * another (TensorFlow creates it here, MON.43). Never blocks, never fails. */
gboolean muster_monitored_session_should_stop (MusterMonitoredSession *self);
void muster_monitored_session_request_stop (MusterMonitoredSession *self);

/* Ends the session. failure (nullable) is the caller's result. NULL, OUT_OF_RANGE (the end of the
 * input, from a run, from before_run or from the caller) and a stop are clean ends: the hooks' end
 * functions are called, all of them, once. Any other failure is passed to their on_error and
 * returned; so is an OUT_OF_RANGE from another function of a hook, which is a mistake in the hook
 * (DMON.8). Then the threads are joined and the session is closed.
 *
 * The hooks' end functions have until deadline_us (on the monitored session's clock), the threads
 * stop_grace_us, but no longer than that. Cancelling the session's cancellable ends both.
 *
 * FALSE with the first error: a thread's report to the coordinator, unless it is a lost session;
 * else failure; else the one of a hook's end. The others are logged. A second call is
 * FAILED_PRECONDITION ("Session is already closed."). */
gboolean muster_monitored_session_finish (MusterMonitoredSession *self, const GError *failure,
                                          gint64 deadline_us, GError **error);

/* The current session and its coordinator, for the caller's own threads; borrowed, and replaced by
 * a recovery. NULL after the end. */
MusterSession *muster_monitored_session_session (MusterMonitoredSession *self);
MusterCoordinator *muster_monitored_session_coordinator (MusterMonitoredSession *self);
/* The highest global step of any run; -1 before. */
gint64 muster_monitored_session_global_step (MusterMonitoredSession *self);
/* The text of the failure that ended the input, which names the op or the hook; NULL if the input
 * hasn't ended. Borrowed. */
const char *muster_monitored_session_end_of_input (MusterMonitoredSession *self);
/* What the job's time was spent on. A chief with a checkpoint hook continues the account of the
 * runs before. After the end it no longer changes. */
void muster_monitored_session_goodput (MusterMonitoredSession *self, MusterGoodput *goodput);
/* The number of recoveries. */
guint muster_monitored_session_n_recoveries (MusterMonitoredSession *self);

G_END_DECLS
