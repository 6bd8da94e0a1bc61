// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/manager.h"

G_BEGIN_DECLS

/* What prepare, recover and wait share: the manager's own ops, and an operation, which is one run
 * of one of them with its clock, its deadline, its phases and its report. It is one thread's and
 * lives on its stack. */

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

/* Makes report (nullable) what a caller may clear, also where the operation is refused. */
static inline void
muster_session_report_begin (MusterSessionReport *report)
{
  if (report != NULL)
    *report = (MusterSessionReport){.final_step = -1};
}

typedef struct {
  /* As it was asked for. */
  const MusterSessionManager *manager; /* (not owned) */
  MusterMaster *master;                /* (not owned) */
  const MusterPrepareOptions *options; /* (not owned) (nullable) a worker's wait has none */
  gboolean is_recovery;
  GCancellable *cancellable; /* (not owned) (nullable) */
  gint64 timeout_us;         /* 0 and below: a single look */

  /* operation.c's: the time, */
  MusterClock *clock; /* (not owned) the manager's */
  gint64 started_us;
  gint64 deadline_us;
  /* What bounds a call to the master: the deadline, but for a single look some time of its own. */
  gint64 call_deadline_us;
  MusterRetries retries;
  const char *phase; /* (nullable) the running one */
  gint64 phase_started_us;
  gboolean ran_out; /* the time for a session is over, but for what was kept to look */
  /* and what it has heard. */
  MusterReasons *reasons; /* (owned) */
  gboolean has_situation; /* they have been updated */
  /* Counts the changes of readiness (its own version's), of the failure and of its diagnosis: what
   * the reasons are made of. */
  guint64 version;
  guint64 reported_version; /* what the listener was told of last */
  gboolean knows_readiness; /* a session said so, of this version, and hasn't failed since */
  guint64 readiness_version;
  GError *failure; /* (owned) (nullable) the last one heard, unless a readiness came after it */
  char *why;       /* (owned) (nullable) why the model wasn't ready when that was last known */
  MusterSessionReport report; /* (owned) */

  /* connect.c's: the session, or why the master doesn't answer. */
  MusterSession *session;   /* (owned) (nullable) */
  gint64 down_since_us;     /* since when the master couldn't be reached; 0: it could */
  char *diagnosis;          /* (owned) (nullable) */
  const char *server_state; /* (nullable) static */
  char **missing_tasks;     /* (owned) (nullable) */

  /* prepare.c's: the claim. */
  MusterLease *lease;         /* (owned) (nullable) the chief's, in this session */
  gint64 claimed_epoch;       /* of the last claim; 0: none yet */
  MusterAnnouncement *before; /* (owned) (nullable) what stood at the model before the first one */
  gboolean has_fallen_short;  /* it was to be recovered, and isn't ready */
} MusterOperation;

#define MUSTER_SINGLE_POLL_LIMIT_US (30 * MUSTER_SECOND)

/* operation.c */

/* One session's life: self->session is made and worked in. Where it fails, the
 * session is given up, and *cost_us says what it took to get to work. */
typedef gboolean (*MusterAttempt) (MusterOperation *self, gint64 *cost_us, GError **error);

/* Tries until an attempt succeeds or is not to be tried again, and hands on its session. refusal
 * (transfer full) (nullable): why nothing is tried. */
MusterSession *muster_operation_run (MusterOperation *self, MusterAttempt attempt, GError *refusal,
                                     MusterSessionReport *report, GError **error);

/* Ends the running phase and begins another: a static string, or NULL for none. Time spent in one
 * name adds up. */
void muster_operation_phase (MusterOperation *self, const char *name);
/* Gives the running phase another name, now that it is known what it was. */
void muster_operation_rename_phase (MusterOperation *self, const char *name);

void muster_operation_receive_readiness (MusterOperation *self, const MusterReadiness *readiness);
void muster_operation_receive_failure (MusterOperation *self, const GError *failure);
/* There is a session now: what failed before is past. */
void muster_operation_receive_session (MusterOperation *self);
/* The same failure as before, but more is known of it. */
void muster_operation_update_reasons (MusterOperation *self);
/* (transfer full) (nullable) Why there is no session yet, in one line. */
char *muster_operation_why (const MusterOperation *self);
/* Receives readiness (nullable), and tells the manager's listener what has changed, if anything has
 * since it was told last. */
void muster_operation_report (MusterOperation *self, const char *message,
                              const MusterReadiness *readiness);
/* Has it told in any case: what has changed is in the message alone. */
void muster_operation_report_step (MusterOperation *self, const char *message);

/* connect.c: the way to a session, and why a master doesn't answer; no diagnosis for one in this
 * process. */
gboolean muster_cluster_check (const char *const *cluster, GError **error);
/* Creates a session, after giving up the one that there is: the phase "connect" if that fails,
 * "create" if it works. */
gboolean muster_operation_create_session (MusterOperation *self, GError **error);
/* Drops the lease and closes the session, if any, quietly, in what is left of the time. */
void muster_operation_give_up_session (MusterOperation *self);
/* Pauses before another attempt, which must still end by the deadline if it costs what the last one
 * did; a master that can't be reached is waited for. Where there is no time for one, what is left
 * is waited for, and it fails. */
gboolean muster_operation_pause (MusterOperation *self, MusterFailure class, gint64 pause_us,
                                 gint64 cost_us, GError **error);
void muster_operation_forget_diagnosis (MusterOperation *self);

/* prepare.c */
gboolean muster_operation_run_local_init (MusterOperation *self, GError **error);

G_END_DECLS
