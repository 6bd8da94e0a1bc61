// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/lease.h"
#include "master/master.h"
#include "ready/backoff.h"
#include "ready/reasons.h"
#include "saver/restore.h"

G_BEGIN_DECLS

/* MusterSessionManager gets a job a session whose model is ready: TensorFlow 1's SessionManager
 * (behaviours B002). The chief prepares (restores the latest checkpoint, or runs the init ops),
 * everyone else waits; recover restores and says whether that made the model ready. The manager
 * knows no roles and keeps no session: what a verb returns is the caller's. It can be used by
 * several threads at once.
 *
 * One deadline bounds a verb from end to end (docs/decisions/0005); an error says which phase ran
 * out and how long each took. A verb that fails closes the session it made, in what is left of its
 * time, or else a quarter of a second; in five seconds at most. Waiting keeps one session and makes
 * another only when the master lost it (docs/decisions/0006). */

#define MUSTER_TYPE_SESSION_MANAGER (muster_session_manager_get_type ())
G_DECLARE_FINAL_TYPE (MusterSessionManager, muster_session_manager, MUSTER, SESSION_MANAGER,
                      GObject)

typedef struct {
  /* Run after every restore or init, and by each waiter; without a gate once more by one that ran
   * it before the model was ready. */
  const char *local_init_op;
  const char *const *local_init_ops;   /* (nullable) a list in its place, run in one step */
  const char *ready_op;                /* NULL: readiness isn't checked */
  const char *ready_for_local_init_op; /* the gate before local init; needs local_init_op */
  gint64 recovery_wait_us; /* 0: 30 s; the ceiling between two looks; below 0 is INVALID_ARGUMENT */
  GBytes *local_init_run_options; /* (nullable) a serialised RunOptions */
  GBytes *config;                 /* (nullable) a serialised ConfigProto for every session */
  MusterClock *clock;             /* NULL: the machine's */

  /* What the model is called where chiefs announce what they prepare, on muster's own servers. With
   * a name the chief claims it before anything is run, waiters are told what the chief does, aren't
   * ready before its init function has ended, and hear when the job is over. NULL: none of that. */
  const char *model;
  const char *task;            /* (nullable) "worker:3", for people */
  MusterMetaGraph *meta_graph; /* (nullable) tells which task owns a variable, for reasons */
  const char *const
      *cluster; /* (nullable) "ps:0=HOST:PORT": looked at where the master is silent */
  /* (nullable) "chief:0=HOST:PORT": in a cluster whose tasks have masters of their own, the chief
   * and its; for what would help */
  const char *chief;
  const MusterRetryPolicy *waiting;   /* NULL: muster_retry_waiting; copied */
  const MusterRetryPolicy *preparing; /* NULL: muster_retry_preparing; copied */
} MusterSessionManagerOptions;

/**
 * muster_session_manager_new: (skip)
 *
 * INVALID_ARGUMENT: "If you pass a ready_for_local_init_op you must also pass a local_init_op"
 * (B002.2). graph may be NULL only for a master that has one; a verb on any other then fails with
 * INVALID_ARGUMENT.
 */
MusterSessionManager *muster_session_manager_new (MusterGraph *graph,
                                                  const MusterSessionManagerOptions *options,
                                                  GError **error);

/**
 * muster_session_manager_new_for_ops:
 * @graph: what sessions are made with
 * @ready_op: (nullable): as in the options
 * @ready_for_local_init_op: (nullable): as in the options
 * @local_init_op: (nullable): as in the options
 * @model: (nullable): what the model is called
 * @task: (nullable): who this is, for people
 *
 * The same for languages that can't fill in the options. A scaffold knows the names.
 *
 * Returns: (transfer full): a manager
 */
MusterSessionManager *muster_session_manager_new_for_ops (MusterGraph *graph, const char *ready_op,
                                                          const char *ready_for_local_init_op,
                                                          const char *local_init_op,
                                                          const char *model, const char *task,
                                                          GError **error);

/* The chief's own initialisation after the init op; FALSE fails the verb. deadline_us and
 * cancellable (nullable) are the verb's, for what it waits for. */
typedef gboolean (*MusterInitFunc) (MusterSession *session, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);

/* Initialises the master's devices where they need it, which may wipe their memory: hence before
 * the session is made and anything is restored (B002.10). FALSE fails the verb. */
typedef gboolean (*MusterDeviceFunc) (MusterMaster *master, gint64 deadline_us,
                                      GCancellable *cancellable, gpointer user_data,
                                      GError **error);

/* Lets the steps of other lives come to an end before the master is reset under them. It does what
 * it can until the deadline; what is left is cut off. */
typedef void (*MusterQuiesceFunc) (MusterSession *session, gint64 deadline_us,
                                   GCancellable *cancellable, gpointer user_data);

typedef struct {
  const char *init_op;
  const char *const *init_ops; /* (nullable) a list in its place, run in one step */
  const MusterFeed *init_feeds;
  gsize n_init_feeds;
  MusterInitFunc init_func;
  gpointer init_func_data;
  MusterSaver *saver;                  /* NULL: nothing is restored */
  const char *checkpoint_dir;          /* the directory's latest; NULL and "" count as not given */
  const char *checkpoint_filename;     /* or this very checkpoint */
  const MusterRestoreOptions *restore; /* NULL: the plain ones; copied, names referenced; which
                                          checkpoint is told above */
  gboolean wait_for_checkpoint;
  gint64 max_wait_us; /* for a checkpoint; 0: 7200 s; below 0: one look; MUSTER_WAIT_FOREVER; it
                         isn't an error when none has come by then */
  gint64 timeout_us;  /* over everything; 0: MUSTER_WAIT_FOREVER */
  gint64 epoch;       /* the chief's, where the model has a name; 0: the master gives the next */
  /* Initialises a model that another chief has prepared since, and one whose job is over. */
  gboolean overwrite;
  /* The chief, once it has claimed the model, resets the master and begins in a session after that:
   * no step of another life runs on over what it restores or initialises, and all other sessions
   * are lost (ABORTED), so that their tasks wait for the model anew. */
  gboolean reset_master;
  /* The same only where nothing was claimed: where it was, another life has lost its session by
   * that, and other models on the master are left alone. */
  gboolean reset_unclaimed;
  MusterQuiesceFunc quiesce_func; /* (nullable) before such a reset */
  gpointer quiesce_func_data;
  MusterDeviceFunc device_func; /* before each session that prepare and recover make */
  gpointer device_func_data;
} MusterPrepareOptions;

/**
 * muster_prepare_options_own: (skip)
 *
 * For who keeps options beyond a call: makes what they point to a copy of their own (feeds'
 * tensors, the saver and a table of names are referenced; init_func_data and device_func_data stay
 * the caller's); clear drops it again.
 */
void muster_prepare_options_own (MusterPrepareOptions *self);

/**
 * muster_prepare_options_clear: (skip)
 */
void muster_prepare_options_clear (MusterPrepareOptions *self);

/* For languages that can't set the names in a struct: options that own what they point to. Numbers
 * and switches are set in them afterwards. As a boxed type they are copied whole, but for
 * init_func_data and device_func_data. */
#define MUSTER_TYPE_PREPARE_OPTIONS (muster_prepare_options_get_type ())
GType muster_prepare_options_get_type (void);

/**
 * muster_prepare_options_new:
 * @init_op: (nullable): what initialises the model where there is nothing to restore
 * @saver: (nullable): what restores it
 * @checkpoint_dir: (nullable): where checkpoints are
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
   * whatever the time ran out in */
  MUSTER_OUTCOME_NOT_READY,
  MUSTER_OUTCOME_FENCED, /* another chief holds the model, or has prepared it since */
  MUSTER_OUTCOME_OVER,   /* the job has ended: there is nothing to start */
} MusterOutcome;

/**
 * MusterSessionReport:
 * @retries: (array fixed-size=5): how often was tried again, and why
 *
 * What a verb did, for people and logs. A plain struct; clear it.
 */
typedef struct {
  MusterOutcome outcome;
  gint64 final_step;                /* OVER: where the job ended; else -1 */
  gint64 epoch;                     /* prepare: the chief's; 0: the master keeps no announcements */
  GPtrArray *reasons;               /* (owned) (nullable) of MusterReason: the last situation */
  GArray *timeline;                 /* (owned) (nullable) of MusterSpan, in order; 10,000 at most */
  guint retries[MUSTER_N_FAILURES]; /* how often was tried again, and why */
  char *restored_from;              /* (owned) (nullable) the checkpoint */
  char *passed_over;     /* (owned) (nullable) newer checkpoints that were not whole, why, and what
                            became of them: lines */
  char *restore_warning; /* (owned) (nullable) what was unusual about the restore: lines */
  char *reason;    /* (owned) (nullable) recover, and a verb that failed: why it isn't ready */
  GArray *phases;  /* (owned) (nullable) of MusterPhase, in order */
  guint polls;     /* how often readiness was looked at */
  guint sessions;  /* how many sessions were made */
  gboolean pushed; /* the master pushed readiness */
} MusterSessionReport;

typedef struct {
  /* "devices", "connect" (until there was a session, with the pauses), "create" (the session that
   * was made), "claim", "reset", "restore", "init", "local init", "waiting", "ready"; time spent in
   * one adds up */
  const char *name;
  gint64 duration_us;
} MusterPhase;

/* One stretch of a phase. */
typedef struct {
  const char *name;  /* a phase's */
  gint64 started_us; /* since the verb began */
  gint64 duration_us;
} MusterSpan;

void muster_session_report_clear (MusterSessionReport *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSessionReport, muster_session_report_clear)

/**
 * muster_session_manager_prepare_session:
 * @report: (nullable)
 *
 * Creates a session and makes the model ready, or fails: FAILED_PRECONDITION with TensorFlow's
 * words where nothing can make it ready, or what was run didn't. report may be NULL; it is filled
 * also on failure. * Where the master loses the session (ABORTED), ends a step (CANCELLED) or, with
 * a timeout, can't be reached (UNAVAILABLE), the work begins again in another session as the policy
 * for preparing says, restore, init op and init function included: an init function must bear being
 * run again. * With a model named, it is claimed right after CreateSession. FAILED_PRECONDITION and
 * FENCED: a living chief holds it, or took it in mid-verb, or (unless `overwrite`) it was prepared
 * by another chief, nothing was restored, and the init ops would run over it. OUT_OF_RANGE and
 * OVER: its job has ended.
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
 * Creates a session and restores if possible; init_op, feeds and init_func of options are not used.
 * *recovered says whether the model is restored and ready; FALSE with a session is success, and
 * report->reason says why not: then the caller initialises and announces that it has prepared
 * (muster_session_manager_lease ()). Retries and claims as prepare.
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
 * Waits until another task has made the model ready. timeout_us 0 and below looks once (and gives
 * that look half a minute); MUSTER_WAIT_FOREVER waits without end. A master that isn't there yet
 * (UNAVAILABLE), that lost the session (ABORTED) or is stopping (CANCELLED) is tried again as the
 * policy for waiting says, until the deadline; any other failure ends the wait. DEADLINE_EXCEEDED
 * and NOT_READY, when all of the time is used: "Session was not ready after waiting N secs.", why,
 * how often it looked, and what took the time; report->sessions is 0 if the master never answered.
 * OUT_OF_RANGE and OVER: the model's chief has ended the job.
 *
 * Returns: (transfer full)
 */
MusterSession *muster_session_manager_wait_for_session (MusterSessionManager *self,
                                                        MusterMaster *master, gint64 timeout_us,
                                                        MusterSessionReport *report,
                                                        GCancellable *cancellable, GError **error);

/* The same three in the background, each on a thread of its own from the call on; callback runs in
 * the caller's main context. What a verb's options point to is copied but for the feeds' tensors,
 * which are referenced, and init_func_data, which must live until the end. finish hands out what
 * the blocking verb returns; report (nullable) is filled also on failure. */
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
 * The chief's lease on the model, for the session that prepare or recover returned; held as long as
 * that session. NULL where there is none (no model named, or a master that keeps no announcements).
 * Borrowed. Announce the training's phases with it, and give it to the saver.
 *
 * Returns: (transfer none) (nullable)
 */
MusterLease *muster_session_manager_lease (MusterSession *session);

/* Called while waiting, on the waiting thread, whenever the situation changes, and when a master
 * with an address has kept CreateSession for two seconds, with why; message is one line, turn is
 * empty where the master wasn't asked about readiness, and reasons (element-type MusterReason) are
 * the situation's. Set it before the first verb. */
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
