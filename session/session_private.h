// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/manager.h"

G_BEGIN_DECLS

/* What the manager's verbs share: the manager's own ops, and one run of a verb with its clock, its
 * deadline, its phases and its report. A verb is one thread's and lives on its stack. */

struct _MusterSessionManager {
  GObject parent;
  MusterGraph *graph;            /* (owned) (nullable) */
  char **local_init_ops;         /* (owned) (nullable) */
  char *local_init_name;         /* (owned) (nullable) for messages */
  char *ready_op;                /* (owned) (nullable) */
  char *ready_for_local_init_op; /* (owned) (nullable) */
  gint64 recovery_wait_us;
  GBytes *local_init_run_options;      /* (owned) (nullable) */
  GBytes *config;                      /* (owned) (nullable) */
  MusterClock *clock;                  /* (owned) */
  char *model;                         /* (owned) (nullable) */
  char *task;                          /* (owned) (nullable) */
  MusterMetaGraph *meta_graph;         /* (owned) (nullable) */
  const MusterVariableInfo *variables; /* (not owned) (nullable) the meta graph's */
  gsize n_variables;
  char **cluster; /* (owned) (nullable) */
  char *chief;    /* (owned) (nullable) */
  MusterRetryPolicy waiting;
  MusterRetryPolicy preparing;
  MusterSessionProgress progress;
  gpointer progress_data;
};

/* Makes report (nullable) what a caller may clear, also where the verb is refused. */
void muster_session_report_begin (MusterSessionReport *report);

typedef struct {
  const MusterSessionManager *manager; /* (not owned) */
  MusterMaster *master;                /* (not owned) */
  MusterClock *clock;                  /* (not owned) the manager's */
  GCancellable *cancellable;           /* (not owned) (nullable) */
  gint64 timeout_us;                   /* as asked for */
  gint64 started_us;
  gint64 deadline_us;
  /* What bounds a call to the master: the deadline, but for a single look some time of its own. */
  gint64 call_deadline_us;
  MusterRetries retries;
  gint64 down_since_us; /* since when the master couldn't be reached; 0: it could */
  gboolean is_chiefs;   /* prepare or recover */
  const char *phase;    /* (nullable) the running one */
  gint64 phase_started_us;
  MusterReasons *reasons; /* (owned) */
  gboolean has_situation; /* they have been updated */
  GError *failure;        /* (owned) (nullable) the last one heard, unless a turn came after it */
  gboolean has_news;      /* they have changed since the listener was told */
  char *why;  /* (owned) (nullable) why the model wasn't ready when that was last known */
  char *told; /* (owned) (nullable) what the listener was told last */
  /* What a closer look at a master that doesn't answer has found. */
  char *diagnosis;          /* (owned) (nullable) */
  const char *server_state; /* (nullable) static */
  char **missing_tasks;     /* (owned) (nullable) */
  gboolean ran_out;         /* the time for a session is over, but for what was kept to look */
  MusterLease *lease;       /* (owned) (nullable) the chief's, in this session */
  gint64 claimed_epoch;     /* of the last claim; 0: none yet */
  /* (owned) (nullable) what stood at the model before the first claim */
  MusterAnnouncement *before;
  MusterSessionReport report; /* (owned) */
} MusterOperation;

#define MUSTER_SINGLE_POLL_LIMIT_US (30 * MUSTER_SECOND)

/* operation.c */

/* Starts the clock. timeout_us 0 and below: a single look. */
void muster_operation_start (MusterOperation *self, const MusterSessionManager *manager,
                             MusterMaster *master, gint64 timeout_us, GCancellable *cancellable);
/* Ends a verb: hands on session (transfer full) if there was no failure (transfer full), else
 * closes it. Hands the report to *report (nullable). */
MusterSession *muster_operation_conclude (MusterOperation *self, MusterSession *session,
                                          GError *failure, MusterSessionReport *report,
                                          GError **error);

/* Ends the running phase and begins another: a static string, or NULL for none. Time spent in one
 * name adds up. */
void muster_operation_phase (MusterOperation *self, const char *name);
/* Gives the running phase another name, now that it is known what it was. */
void muster_operation_rename_phase (MusterOperation *self, const char *name);
gboolean muster_operation_is_over (const MusterOperation *self);

/* Creates a session: the phase "connect" if that fails, "create" if it works. */
MusterSession *muster_operation_create_session (MusterOperation *self, GError **error);
/* Drops the lease and closes session (transfer full) (nullable) quietly, in what is left of the
 * verb's time. */
void muster_operation_give_up_session (MusterOperation *self, MusterSession *session);

/* Decides what becomes of an attempt that failed, after started_us, with failure (transfer full).
 * TRUE: it is to be tried again, and the pause before is over. cost_us is what another one costs,
 * for it must end by the deadline. */
gboolean muster_operation_retry (MusterOperation *self, GError *failure, gint64 started_us,
                                 gint64 cost_us, GError **error);

/* situation.c: what a verb has heard, and what its listener is told. */
void muster_operation_receive_readiness (MusterOperation *self, const MusterReadiness *readiness);
void muster_operation_receive_reason (MusterOperation *self, const char *why); /* why is nullable */
void muster_operation_receive_failure (MusterOperation *self, const GError *failure);
/* There is a session now: what failed before is past. */
void muster_operation_receive_session (MusterOperation *self);
/* The same failure as before, but more is known of it. */
void muster_operation_update_reasons (MusterOperation *self);
/* (transfer full) (nullable) Why there is no session yet, in one line. */
char *muster_operation_why (const MusterOperation *self);
/* Tells the manager's listener, if the message is another one than the last, or a reason is. */
void muster_operation_report (MusterOperation *self, const char *message,
                              const MusterReadiness *readiness);

/* diagnose.c: why a master doesn't answer; nothing for one in this process. */
gboolean muster_cluster_check (const char *const *cluster, GError **error);
/* What is to be kept of the verb's time as long as there was no session. */
gint64 muster_operation_reserve_us (const MusterOperation *self);
/* is_kept: CreateSession, called when the phase began, has had no answer. */
void muster_operation_diagnose (MusterOperation *self, gboolean is_kept);
/* Whether there is an address to look at. */
gboolean muster_operation_can_diagnose (const MusterOperation *self);
/* The same while CreateSession has no answer yet, until answered is cancelled. TRUE if it came to
 * something else than *found (owned by the caller, nullable), which is an outline of it. */
gboolean muster_operation_diagnose_again (MusterOperation *self, GCancellable *answered,
                                          char **found);
void muster_operation_forget_diagnosis (MusterOperation *self);

/* chief.c: claims and announcements; without a model named, or on a master that keeps none, nothing
 * happens and all is well. */
gboolean muster_operation_claim (MusterOperation *self, MusterSession *session,
                                 const MusterPrepareOptions *options, GError **error);
/* detail is nullable. */
gboolean muster_operation_announce (MusterOperation *self, MusterChiefPhase phase,
                                    const char *detail, GError **error);
gboolean muster_operation_announce_prepared (MusterOperation *self, GError **error);
/* Fails if the lease is known to be lost; asks nobody. */
gboolean muster_operation_check_lease (MusterOperation *self, GError **error);
/* Whether the init ops may run: not over a model that another chief has prepared. */
gboolean muster_operation_may_initialise (MusterOperation *self,
                                          const MusterPrepareOptions *options, GError **error);
/* A failure is the lost lease's, whatever it says itself. */
void muster_operation_judge_failure (MusterOperation *self, GError **failure);
/* The lease lives as long as the session from now on. */
void muster_operation_hand_lease_to (MusterOperation *self, MusterSession *session);

/* prepare.c */
gboolean muster_prepare_options_check (const MusterSessionManager *manager,
                                       const MusterPrepareOptions *options, gboolean initialises,
                                       GError **error);
MusterSession *muster_operation_prepare (MusterOperation *self, const MusterPrepareOptions *options,
                                         GError **error);
MusterSession *muster_operation_recover (MusterOperation *self, const MusterPrepareOptions *options,
                                         GError **error);
gboolean muster_operation_run_local_init (MusterOperation *self, MusterSession *session,
                                          GError **error);

/* restore.c: restores what options name, if there is anything; report.restored_from says what. */
gboolean muster_operation_restore (MusterOperation *self, MusterSession *session,
                                   const MusterPrepareOptions *options, GError **error);
/* TRUE if options name a saver and a place. */
gboolean muster_prepare_options_can_restore (const MusterPrepareOptions *options);
gboolean muster_prepare_options_check_places (const MusterPrepareOptions *options, GError **error);

/* wait.c: the waiter's loop. */
MusterSession *muster_operation_wait (MusterOperation *self, GError **error);

G_END_DECLS
