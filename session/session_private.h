// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/retries_private.h"
#include "ready/situation_private.h"
#include "session/manager.h"

G_BEGIN_DECLS

/* What prepare, recover and wait share: the manager, and an operation, which is one run of one of
 * them with its clock, deadline, phases and report. It belongs to one thread and lives on its
 * stack. */

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
  char **cluster;   /* (owned) (nullable) */
  char *chief;      /* (owned) (nullable) */
  char **will_run;  /* (owned) (nullable) */
  char **will_feed; /* (owned) (nullable) */
  MusterRetryPolicy waiting;
  MusterRetryPolicy preparing;
  MusterSessionProgress progress;
  gpointer progress_data;
  GBytes *progress_owner; /* (owned) (nullable) frees progress_data */
  gint64 claim_by_us;     /* see muster_session_manager_set_claim_by () */
};

/* Initialises report (nullable), so that the caller can clear it even if the operation is refused.
 */
static inline void
muster_session_report_begin (MusterSessionReport *report)
{
  if (report != NULL)
    *report = (MusterSessionReport){.final_step = -1};
}

/* NULL and "" are both unset (B002.12). */
static inline gboolean
muster_is_given (const char *path)
{
  return path != NULL && *path;
}

typedef struct {
  /* The arguments. */
  const MusterSessionManager *manager; /* (not owned) */
  MusterMaster *master;                /* (not owned) */
  const MusterPrepareOptions *options; /* (not owned) (nullable) NULL for a wait */
  gboolean is_recovery;
  GCancellable *cancellable; /* (not owned) (nullable) */
  gint64 timeout_us;         /* 0 and below: check once */

  /* operation.c: the time, */
  MusterClock *clock; /* (not owned) the manager's */
  gint64 started_us;
  gint64 deadline_us;
  /* Limits a call to the master: the deadline, or MUSTER_SINGLE_POLL_LIMIT_US for a single check.
   */
  gint64 call_deadline_us;
  MusterRetries retries;
  const char *phase; /* (nullable) the running one */
  gint64 phase_started_us;
  gboolean ran_out; /* no time is left for a session, except what was reserved for the check */
  /* and the situation. */
  MusterReasons *reasons; /* (owned) */
  gboolean has_situation; /* they have been updated */
  /* Counts the changes of readiness (its own version's), of the failure and of its diagnosis: what
   * the reasons are made of. */
  guint64 version;
  guint64 reported_version; /* what the listener was told of last */
  gboolean knows_readiness; /* readiness was received, in this version, since the last failure */
  guint64 readiness_version;
  GError *failure; /* (owned) (nullable) the last one heard, unless a readiness came after it */
  char *why;       /* (owned) (nullable) why the model wasn't ready when that was last known */
  MusterSessionReport report; /* (owned) */

  /* connect.c: the session, or why the master doesn't answer. */
  MusterSession *session;   /* (owned) (nullable) */
  gint64 down_since_us;     /* since when the master can't be reached; 0: it can */
  char *diagnosis;          /* (owned) (nullable) */
  const char *server_state; /* (nullable) static */
  char **missing_tasks;     /* (owned) (nullable) */

  /* prepare.c: the claim. */
  MusterLease *lease;   /* (owned) (nullable) the chief's, in this session */
  gint64 claimed_epoch; /* of the last claim; 0: none yet */
  MusterAnnouncement
      *before; /* (owned) (nullable) the model's announcement before the first claim */
  gboolean has_claimed_before; /* in an earlier session of this operation */
  MusterChiefPhase announced;  /* the last phase under this claim */
  gboolean has_fallen_short;   /* a recovery whose model isn't ready */
} MusterOperation;

/* manager.c: FALSE if the graph (nullable: unknown) lacks the op: a session would be created, and a
 * model claimed, before a step says so. A graph that can't be parsed is the master's to judge. */
gboolean muster_session_check_op (MusterGraph *graph, const char *what, const char *name,
                                  GError **error);
gboolean muster_session_check_ops (MusterGraph *graph, const char *what, const char *const *names,
                                   GError **error);

#define MUSTER_SINGLE_POLL_LIMIT_US (30 * MUSTER_SECOND)

/* operation.c */

/* One attempt: creates self->session and works in it. On failure the session is closed, and
 * *cost_us is the time that the attempt took until it could work. */
typedef gboolean (*MusterAttempt) (MusterOperation *self, gint64 *cost_us, GError **error);

/* Retries until an attempt succeeds or mustn't be retried, and returns its session. refusal
 * (transfer full) (nullable): fail with this error without an attempt. */
MusterSession *muster_operation_run (MusterOperation *self, MusterAttempt attempt, GError *refusal,
                                     MusterSessionReport *report, GError **error);

/* The deadline is that of the timeout, or by_us (0: none) if that is earlier. */
void muster_operation_set_deadline (MusterOperation *self, gint64 by_us);

/* Ends the current phase and begins another: a static string, or NULL for none. Times of one name
 * are added. */
void muster_operation_phase (MusterOperation *self, const char *name);
/* Renames the current phase. */
void muster_operation_rename_phase (MusterOperation *self, const char *name);

void muster_operation_receive_readiness (MusterOperation *self, const MusterReadiness *readiness);
void muster_operation_receive_failure (MusterOperation *self, const GError *failure);
/* TRUE if the attempts before ended at a store that couldn't be reached, and none has read it
 * since: that is why there is no session at the deadline, whatever a last attempt had no time for.
 */
gboolean muster_operation_has_no_store (const MusterOperation *self);
/* Notes that there is a session: earlier failures no longer count. */
void muster_operation_receive_session (MusterOperation *self);
/* Updates the reasons for the same failure, after more became known. */
void muster_operation_update_reasons (MusterOperation *self);
/* (transfer full) (nullable) why there is no session yet, in one line. */
char *muster_operation_why (const MusterOperation *self);
/* Calls the manager's listener if the message or a reason has changed. */
void muster_operation_report (MusterOperation *self, const char *message,
                              const MusterReadiness *readiness);
/* Has it told in any case: what has changed is in the message alone. */
void muster_operation_report_step (MusterOperation *self, const char *message);

/* prepare.c */

/* Announces the chief's phase; detail is nullable. TRUE without a lease. */
gboolean muster_operation_announce (MusterOperation *self, MusterChiefPhase phase,
                                    const char *detail, GError **error);
/* Fails if the lease is known to be lost, without a call. */
gboolean muster_operation_check_lease (MusterOperation *self, GError **error);

/* restore_phase.c */

gboolean muster_operation_can_restore (const MusterPrepareOptions *options);
/* Sets *may if there is a checkpoint to restore, or may be one by then. */
gboolean muster_operation_may_find_checkpoint (const MusterPrepareOptions *options, gboolean *may,
                                               GError **error);
/* Restores what the options name, if anything; sets report.restored_from. */
gboolean muster_operation_restore (MusterOperation *self, GError **error);

/* connect.c: creating a session, and why a master doesn't answer (not for one in this process). */
gboolean muster_cluster_check (const char *const *cluster, GError **error);
/* Closes the current session, if any, and creates another. The phase is "connect" if that fails,
 * "create" if it succeeds. */
gboolean muster_operation_create_session (MusterOperation *self, GError **error);
/* Releases the lease and closes the session, if any, in the remaining time; errors are ignored. One
 * that failure (nullable) says is lost is closed in the background. */
void muster_operation_give_up_session (MusterOperation *self, const GError *failure);
/* Pauses before another attempt, which must be able to finish before the deadline if it takes as
 * long as the last one; waits for a master that can't be reached. If there isn't enough time, it
 * waits for the rest of it and fails. */
gboolean muster_operation_pause (MusterOperation *self, MusterFailure class, gint64 pause_us,
                                 gint64 cost_us, GError **error);
void muster_operation_forget_diagnosis (MusterOperation *self);

/* living.c: decides, right after the claim, whether the chief continues with the model on the
 * master. Sets report.continued. */
void muster_operation_continue (MusterOperation *self);
void muster_operation_describe_continued (const MusterOperation *self,
                                          MusterAnnouncement *announcement);

/* prepare.c */
gboolean muster_operation_run_local_init (MusterOperation *self, GError **error);

G_END_DECLS
