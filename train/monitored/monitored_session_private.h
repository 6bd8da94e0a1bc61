// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/hook_private.h"
#include "train/monitored/monitored_session.h"
#include "train/monitored/run_context_private.h"

G_BEGIN_DECLS

/* Its inside, for monitored_session.c (running, ending) and monitored_make.c (making sessions). */

struct _MusterMonitoredSession {
  GObject parent;
  MusterScaffold *scaffold;      /* (owned) */
  MusterSaver *saver;            /* (owned) (nullable) made for the scaffold's SaverDef */
  MusterMaster *master;          /* (owned) */
  MusterSessionManager *manager; /* (owned) */
  gboolean is_worker;
  gboolean never_recover;
  MusterPrepareOptions prepare;
  gint64 max_wait_us;
  gint64 step_timeout_us;
  gint64 stop_grace_us;
  GPtrArray *hooks;         /* (owned) (element-type MusterHook) */
  GPtrArray *queue_runners; /* (owned) (element-type MusterQueueRunner) */
  MusterRetryPolicy recovery;
  MusterRetries retries; /* since it last came further */
  MusterSessionListener listener;
  guint n_recoveries;
  MusterClock *clock;        /* (owned) */
  GCancellable *cancellable; /* (owned) (nullable) */
  gulong cancel_id;          /* it stops the coordinator's threads; 0: there is none */
  MusterRunContext *context; /* (owned) */
  gint64 global_step;        /* the highest seen; -1 */
  gint64 session_since_us;
  gint64 deadline_us;        /* of the run that comes back; else MUSTER_WAIT_FOREVER */
  char *end_of_input;        /* (owned) (nullable) */
  GError *hooks_mistake;     /* (owned) (nullable) OUT_OF_RANGE from where no input is */
  gint stop_requested;       /* atomic */
  gint is_closed;            /* atomic */
  gboolean in_step_function; /* recovery is the whole function's */
  MusterSession *session;    /* (owned) (nullable) NULL between two */
  /* The coordinator goes with the session; who asks from another thread takes lock. */
  GMutex lock;
  MusterCoordinator *coordinator; /* (owned) (nullable) */
};

gboolean muster_monitored_is_recoverable (const MusterMonitoredSession *self,
                                          const GError *failure);
/* Makes a session where there is none, again and again as far as the policy goes (MON.42). */
gboolean muster_monitored_ensure (MusterMonitoredSession *self, MusterSessionReport *report,
                                  GError **error);
/* Pauses before another try; FALSE, with the failure (transfer full) and the number of tries, where
 * there is to be none (DMON.1). */
gboolean muster_monitored_pause (MusterMonitoredSession *self, GError *failure, GError **error);
/* Stops the threads of a session that is given up; what they say of it is known. */
void muster_monitored_drop (MusterMonitoredSession *self);
/* Stops and joins the coordinator's threads: within the grace, and shortly where it is cancelled.
 */
void muster_monitored_join (MusterMonitoredSession *self, gint64 deadline_us, GError **error);
void muster_monitored_close (MusterMonitoredSession *self);
/* A hook that ends training by a slip of its own, in a verb that brings no input, is not to pass
 * for the end of the input (DMON.8). */
void muster_monitored_note_mistake (MusterMonitoredSession *self, const GError *failure);

G_END_DECLS
