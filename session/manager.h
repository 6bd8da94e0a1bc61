// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/lease.h"
#include "master/master.h"
#include "ready/backoff.h"
#include "ready/reasons.h"
#include "saver/restore.h"

G_BEGIN_DECLS

/* MusterSessionManager creates sessions whose model is ready, like TensorFlow 1's SessionManager
 * (behaviours B002). The chief prepares: it restores the latest checkpoint or runs the init ops.
 * Other tasks wait. Recover restores, and reports whether the model is then ready. The manager has
 * no role and keeps no session; the caller owns what an operation returns. Any number of threads
 * may use it.
 *
 * One deadline bounds an operation (docs/decisions/0005). The error names the phase in which the
 * time ran out, and how long each phase took. An operation that fails closes its session in the
 * remaining time, or a quarter of a second if none remains, but within five seconds. A wait keeps
 * its session and creates another only if the master lost it (docs/decisions/0006). */

#define MUSTER_TYPE_SESSION_MANAGER (muster_session_manager_get_type ())
G_DECLARE_FINAL_TYPE (MusterSessionManager, muster_session_manager, MUSTER, SESSION_MANAGER,
                      GObject)

typedef struct {
  /* Runs after every restore or init, and in each waiter. Without ready_for_local_init_op, a waiter
   * that ran it before the model was ready runs it again. */
  const char *local_init_op;
  const char *const *local_init_ops;   /* (nullable) a list instead, run in one step */
  const char *ready_op;                /* NULL: readiness isn't checked */
  const char *ready_for_local_init_op; /* the gate before local init; needs local_init_op */
  gint64 recovery_wait_us;        /* maximum interval between readiness checks; 0: 30 s; below 0 is
                                     INVALID_ARGUMENT */
  GBytes *local_init_run_options; /* (nullable) a serialised RunOptions */
  GBytes *config;                 /* (nullable) a serialised ConfigProto for every session */
  MusterClock *clock;             /* NULL: the machine's */

  /* The model's name in announcements, on muster's servers. With a name, the chief claims the model
   * before it runs anything; waiters see the chief's phase, aren't ready before its init function
   * has ended, and are notified when the job is over. NULL: no claim, no announcements. */
  const char *model;
  const char *task;            /* (nullable) this task's name in messages, such as "worker:3" */
  MusterMetaGraph *meta_graph; /* (nullable) gives the task that owns a variable, for reasons */
  const char *const
      *cluster; /* (nullable) "ps:0=HOST:PORT": probed when the master doesn't answer */
  /* (nullable) "chief:0=HOST:PORT": the chief's master, in a cluster whose tasks have their own
   * masters; for remedies in reasons */
  const char *chief;
  const MusterRetryPolicy *waiting;   /* NULL: muster_retry_waiting; copied */
  const MusterRetryPolicy *preparing; /* NULL: muster_retry_preparing; copied */
} MusterSessionManagerOptions;

/**
 * muster_session_manager_new: (skip)
 *
 * INVALID_ARGUMENT: "If you pass a ready_for_local_init_op you must also pass a local_init_op"
 * (B002.2). graph may be NULL for masters that have their own graph; on any other master,
 * operations then fail with INVALID_ARGUMENT.
 */
MusterSessionManager *muster_session_manager_new (MusterGraph *graph,
                                                  const MusterSessionManagerOptions *options,
                                                  GError **error);

/**
 * muster_session_manager_new_for_ops:
 * @graph: the sessions' graph
 * @ready_op: (nullable): as in the options
 * @ready_for_local_init_op: (nullable): as in the options
 * @local_init_op: (nullable): as in the options
 * @model: (nullable): the model's name
 * @task: (nullable): this task's name in messages
 *
 * The same for bindings, which can't set the options. A scaffold has the names.
 *
 * Returns: (transfer full): a manager
 */
MusterSessionManager *muster_session_manager_new_for_ops (MusterGraph *graph, const char *ready_op,
                                                          const char *ready_for_local_init_op,
                                                          const char *local_init_op,
                                                          const char *model, const char *task,
                                                          GError **error);

/* Initialises the model after the init op, in the chief. FALSE fails the operation. deadline_us and
 * cancellable (nullable) are the operation's; the function must respect them. */
typedef gboolean (*MusterInitFunc) (MusterSession *session, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);

/* Initialises the master's devices, which may clear their memory. Therefore it runs before the
 * session is created and anything restored (B002.10). FALSE fails the operation. */
typedef gboolean (*MusterDeviceFunc) (MusterMaster *master, gint64 deadline_us,
                                      GCancellable *cancellable, gpointer user_data,
                                      GError **error);

/* Lets the steps of other sessions finish before the master is reset. It does so until the
 * deadline; steps that remain are aborted. */
typedef void (*MusterQuiesceFunc) (MusterSession *session, gint64 deadline_us,
                                   GCancellable *cancellable, gpointer user_data);

/* Decides whether a chief may continue with the model that an earlier chief, of the same graph, has
 * prepared and trained on the master: no step that was cut off has changed only a part of it. *step
 * is set to the model's step. FALSE, with the reason: the chief prepares the model as if this
 * function weren't set. deadline_us and cancellable (nullable) are the operation's. */
typedef gboolean (*MusterContinueFunc) (MusterSession *session, gint64 *step, gint64 deadline_us,
                                        GCancellable *cancellable, gpointer user_data,
                                        GError **error);

typedef struct {
  const char *init_op;
  const char *const *init_ops; /* (nullable) a list instead, run in one step */
  const MusterFeed *init_feeds;
  gsize n_init_feeds;
  MusterInitFunc init_func;
  gpointer init_func_data;
  MusterSaver *saver;                  /* NULL: nothing is restored */
  const char *checkpoint_dir;          /* restores its latest checkpoint; NULL and "" are unset */
  const char *checkpoint_filename;     /* restores this checkpoint instead */
  const MusterRestoreOptions *restore; /* NULL: defaults; copied, names referenced */
  gboolean wait_for_checkpoint;
  gint64 max_wait_us; /* for a checkpoint; 0: 7200 s; below 0: check once; MUSTER_WAIT_FOREVER. If
                         none appears in time, that isn't an error */
  gint64 timeout_us;  /* of the whole operation; 0: MUSTER_WAIT_FOREVER */
  gint64 epoch;       /* the chief's, if the model has a name; 0: the master assigns the next */
  /* Initialise even a model that another chief has prepared, or whose job is over. */
  gboolean overwrite;
  /* After the chief has claimed the model, it resets the master and continues in a new session,
   * unless the ready op says that none of the model's variables has a value. No step of an earlier
   * session runs on during the restore or init, and all other sessions are lost (ABORTED), so that
   * their tasks wait for the model again. */
  gboolean reset_master;
  /* The same, only if nothing was claimed. If the model was claimed, the claim has ended the
   * earlier chief's session, and other models on the master are kept. */
  gboolean reset_unclaimed;
  MusterQuiesceFunc quiesce_func; /* (nullable) runs before such a reset */
  gpointer quiesce_func_data;
  /* (nullable) If the model was claimed and an earlier chief has left it whole, with the same graph
   * and checkpoint directory, the chief continues with it: nothing is reset, restored or
   * initialised. Not with overwrite, checkpoint_filename or device_func, and not in recover. NULL:
   * it is always restored or initialised. */
  MusterContinueFunc continue_func;
  gpointer continue_func_data;
  MusterDeviceFunc device_func; /* runs before each session that prepare and recover create */
  gpointer device_func_data;
} MusterPrepareOptions;

/**
 * muster_prepare_options_own: (skip)
 *
 * For callers that keep options beyond a call: replaces the pointers by copies (feeds' tensors, the
 * saver and a table of names are referenced; init_func_data and device_func_data remain the
 * caller's). Free them with muster_prepare_options_clear ().
 */
void muster_prepare_options_own (MusterPrepareOptions *self);

/**
 * muster_prepare_options_clear: (skip)
 */
void muster_prepare_options_clear (MusterPrepareOptions *self);

/* Options for bindings, which can't set the strings in a struct. Numbers and booleans are set
 * afterwards. Copies of the boxed type own everything except init_func_data and device_func_data.
 */
#define MUSTER_TYPE_PREPARE_OPTIONS (muster_prepare_options_get_type ())
GType muster_prepare_options_get_type (void);

/**
 * muster_prepare_options_new:
 * @init_op: (nullable): the op that initialises the model if there is nothing to restore
 * @saver: (nullable): the saver that restores it
 * @checkpoint_dir: (nullable): the checkpoint directory
 *
 * Returns: (transfer full): options
 */
MusterPrepareOptions *muster_prepare_options_new (const char *init_op, MusterSaver *saver,
                                                  const char *checkpoint_dir);
MusterPrepareOptions *muster_prepare_options_copy (const MusterPrepareOptions *self);
void muster_prepare_options_free (MusterPrepareOptions *self); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterPrepareOptions, muster_prepare_options_free)

typedef enum {
  MUSTER_OUTCOME_FAILED,
  MUSTER_OUTCOME_READY,
  /* recover: there is a session, but the model isn't ready; wait: the model wasn't ready in time,
     whatever the time was spent on */
  MUSTER_OUTCOME_NOT_READY,
  MUSTER_OUTCOME_FENCED, /* another chief holds the model, or has prepared it */
  MUSTER_OUTCOME_OVER,   /* the job has ended; there is nothing to start */
} MusterOutcome;

/**
 * MusterSessionReport:
 * @retries: (array fixed-size=5): the number of retries, by cause
 *
 * What an operation did, for messages and logs. A plain struct; clear it.
 */
typedef struct {
  MusterOutcome outcome;
  gint64 final_step;                /* OVER: the job's last step; else -1 */
  gint64 epoch;                     /* prepare: the chief's; 0: the master keeps no announcements */
  GPtrArray *reasons;               /* (owned) (nullable) of MusterReason: the last situation */
  GArray *timeline;                 /* (owned) (nullable) of MusterSpan, in order; 10,000 at most */
  guint retries[MUSTER_N_FAILURES]; /* the number of retries, by cause */
  char *restored_from;              /* (owned) (nullable) the checkpoint */
  gboolean continued; /* prepare: with the model on the master; nothing was restored or initialised
                       */
  gint64 continued_step; /* then: the model's step */
  char *passed_over; /* (owned) (nullable) newer checkpoints that weren't whole, the cause, and what
                        was done with them: lines */
  char *restore_warning; /* (owned) (nullable) remarks on the restore: lines */
  char *reason; /* (owned) (nullable) recover, and operations that failed: why the model isn't ready
                 */
  /* prepare: (owned) (nullable) what the chief before has announced of the job's time, and when it
   * had measured that. */
  MusterGoodput *goodput;
  gint64 goodput_at_us;
  GArray *phases;  /* (owned) (nullable) of MusterPhase, in order */
  guint polls;     /* the number of readiness checks */
  guint sessions;  /* the number of sessions created */
  gboolean pushed; /* the master pushed readiness */
} MusterSessionReport;

typedef struct {
  /* "devices", "connect" (until there was a session, with the pauses), "create" (of the session
   * that was created), "claim", "continue", "reset", "restore", "init", "local init", "waiting",
   * "ready". Times
   * of one name are added. */
  const char *name;
  gint64 duration_us;
} MusterPhase;

/* One interval of a phase. */
typedef struct {
  const char *name;  /* a phase's */
  gint64 started_us; /* since the operation began */
  gint64 duration_us;
} MusterSpan;

void muster_session_report_clear (MusterSessionReport *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSessionReport, muster_session_report_clear)

/**
 * muster_session_manager_prepare_session:
 * @report: (nullable)
 *
 * Creates a session and makes the model ready. FAILED_PRECONDITION, with TensorFlow's text, if
 * nothing can make it ready or it isn't ready afterwards. report may be NULL; it is set also on
 * failure.
 *
 * If the master loses the session (ABORTED), ends a step (CANCELLED) or, with a timeout, can't be
 * reached (UNAVAILABLE), the operation starts again in another session according to the policy
 * `preparing`, including restore, init op and init function: an init function must tolerate a
 * second run.
 *
 * A model with a name is claimed right after CreateSession. FAILED_PRECONDITION and FENCED: a
 * living chief holds it, or took it during the operation, or (unless `overwrite`) another chief
 * prepared it, nothing was restored, and the init ops would overwrite it. OUT_OF_RANGE and OVER:
 * its job has ended.
 *
 * Returns: (transfer full)
 */
MusterSession *muster_session_manager_prepare_session (MusterSessionManager *self,
                                                       MusterMaster *master,
                                                       const MusterPrepareOptions *options,
                                                       MusterSessionReport *report,
                                                       GCancellable *cancellable, GError **error);

/**
 * muster_session_manager_recover_session:
 * @recovered: (out) (optional)
 * @report: (nullable)
 *
 * Creates a session and restores if possible; init_op, feeds and init_func of options aren't used.
 * *recovered is TRUE if the model was restored and is ready. FALSE with a session is success, and
 * report->reason has the cause: the caller then initialises the model and announces that it is
 * prepared (muster_session_manager_lease ()). Retries and claims like prepare.
 *
 * Returns: (transfer full)
 */
MusterSession *muster_session_manager_recover_session (
    MusterSessionManager *self, MusterMaster *master, const MusterPrepareOptions *options,
    gboolean *recovered, MusterSessionReport *report, GCancellable *cancellable, GError **error);

/**
 * muster_session_manager_wait_for_session:
 * @report: (nullable)
 *
 * Waits until another task has made the model ready. With timeout_us 0 or below it checks once, for
 * at most 30 s; MUSTER_WAIT_FOREVER has no limit. If the master can't be reached (UNAVAILABLE),
 * lost the session (ABORTED) or is stopping (CANCELLED), it retries according to the policy
 * `waiting` until the deadline; any other failure ends the wait. DEADLINE_EXCEEDED and NOT_READY
 * when the time is used: "Session was not ready after waiting N secs.", with the cause, the number
 * of checks, and what took the time; report->sessions is 0 if the master never answered.
 * OUT_OF_RANGE and OVER: the chief has ended the job.
 *
 * Returns: (transfer full)
 */
MusterSession *muster_session_manager_wait_for_session (MusterSessionManager *self,
                                                        MusterMaster *master, gint64 timeout_us,
                                                        MusterSessionReport *report,
                                                        GCancellable *cancellable, GError **error);

/* The same three in the background, each on its own thread. callback runs in the main context of
 * the calling thread. The options' strings and structs are copied; the feeds' tensors are
 * referenced; init_func_data must live until the end. The finish functions return what the blocking
 * operations return; report (nullable) is set also on failure. */
void muster_session_manager_prepare_session_async (MusterSessionManager *self, MusterMaster *master,
                                                   const MusterPrepareOptions *options,
                                                   GCancellable *cancellable,
                                                   GAsyncReadyCallback callback,
                                                   gpointer user_data);

/**
 * muster_session_manager_prepare_session_finish:
 * @report: (nullable)
 *
 * Returns: (transfer full)
 */
MusterSession *muster_session_manager_prepare_session_finish (MusterSessionManager *self,
                                                              GAsyncResult *result,
                                                              MusterSessionReport *report,
                                                              GError **error);
void muster_session_manager_recover_session_async (MusterSessionManager *self, MusterMaster *master,
                                                   const MusterPrepareOptions *options,
                                                   GCancellable *cancellable,
                                                   GAsyncReadyCallback callback,
                                                   gpointer user_data);

/**
 * muster_session_manager_recover_session_finish:
 * @recovered: (out) (optional)
 * @report: (nullable)
 *
 * Returns: (transfer full)
 */
MusterSession *muster_session_manager_recover_session_finish (MusterSessionManager *self,
                                                              GAsyncResult *result,
                                                              gboolean *recovered,
                                                              MusterSessionReport *report,
                                                              GError **error);
void muster_session_manager_wait_for_session_async (MusterSessionManager *self,
                                                    MusterMaster *master, gint64 timeout_us,
                                                    GCancellable *cancellable,
                                                    GAsyncReadyCallback callback,
                                                    gpointer user_data);

/**
 * muster_session_manager_wait_for_session_finish:
 * @report: (nullable)
 *
 * Returns: (transfer full)
 */
MusterSession *muster_session_manager_wait_for_session_finish (MusterSessionManager *self,
                                                               GAsyncResult *result,
                                                               MusterSessionReport *report,
                                                               GError **error);

/**
 * muster_session_manager_lease:
 *
 * The chief's lease on the model, for a session from prepare or recover. It is held as long as the
 * session. NULL if there is none (the model has no name, or the master keeps no announcements).
 * Borrowed. Announce the phases of training with it, and pass it to the saver.
 *
 * Returns: (transfer none) (nullable)
 */
MusterLease *muster_session_manager_lease (MusterSession *session);

/* The checkpoint that a session from prepare or recover was restored from: (nullable), borrowed
 * from the session. */
const char *muster_session_manager_restored_from (MusterSession *session);
/* The step of the model on the master with which a session from prepare continues; -1: it was
 * restored or initialised. */
gint64 muster_session_manager_continued_step (MusterSession *session);

/* Called on the waiting thread when the situation changes, and when a master with an address hasn't
 * answered CreateSession for two seconds, with the cause. message is one line. readiness is empty
 * if the master wasn't asked for it. reasons (element-type MusterReason) describe the situation.
 * Set it before the first operation. */
typedef void (*MusterSessionProgress) (const char *message, const MusterReadiness *readiness,
                                       GPtrArray *reasons, gpointer user_data);

/**
 * muster_session_manager_set_progress: (skip)
 *
 * progress (nullable)
 */
void muster_session_manager_set_progress (MusterSessionManager *self,
                                          MusterSessionProgress progress, gpointer user_data);

G_END_DECLS
