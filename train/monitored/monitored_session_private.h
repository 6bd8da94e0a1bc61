// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/retries_private.h"
#include "train/monitored/hook_private.h"
#include "train/monitored/monitored_session.h"
#include "train/monitored/run_context_private.h"

G_BEGIN_DECLS

/* The struct, for monitored_session.c (running, ending) and monitored_make.c (creating sessions).
 */

struct _MusterMonitoredSession {
  GObject parent;
  MusterScaffold *scaffold;      /* (owned) */
  MusterSaver *saver;            /* (owned) (nullable) created for the scaffold's SaverDef */
  MusterMaster *master;          /* (owned) */
  MusterSessionManager *manager; /* (owned) */
  gboolean is_worker;
  gboolean never_recover;
  MusterPrepareOptions *prepare; /* (owned) */
  gint64 max_wait_us;
  gint64 step_timeout_us;
  gint64 stop_grace_us;
  GPtrArray *hooks;         /* (owned) (element-type MusterHook) */
  GPtrArray *queue_runners; /* (owned) (element-type MusterQueueRunner) */
  MusterRetryPolicy recovery;
  MusterRetries retries;           /* since the last progress */
  MusterSessionObserver *observer; /* (owned) (nullable) */
  guint n_recoveries;
  MusterClock *clock;        /* (owned) */
  GCancellable *cancellable; /* (owned) (nullable) */
  GCancellable *calling;     /* (not owned) (nullable) during a call that GLib's current
                                cancellable ends: cancelled if that or cancellable is */
  gulong cancel_id;          /* handler that stops the coordinator's threads; 0: none */
  MusterRunContext *context; /* (owned) */
  MusterGoodputMeter *meter; /* (owned) */
  gint64 global_step;        /* the highest seen; -1 */
  gint64 session_since_us;
  gint64 deadline_us; /* of the run that recovers; else MUSTER_WAIT_FOREVER */
  gint64 until_us;    /* no attempt to create a session follows one that failed; 0: always */
  char *end_of_input; /* (owned) (nullable) */
  GError
      *hooks_mistake; /* (owned) (nullable) OUT_OF_RANGE from a function that provides no input */
  GError *lost;       /* (owned) (nullable) why there is no session: another one is due */
  gboolean recovers_when_told;
  gint stop_requested;       /* atomic */
  gint is_closed;            /* atomic */
  gboolean in_step_function; /* the whole function is repeated after a recovery */
  MusterSession *session;    /* (owned) (nullable) NULL between two sessions */
  /* The coordinator is replaced with the session; other threads take the lock. */
  GMutex lock;
  MusterCoordinator *coordinator; /* (owned) (nullable) */
};

/* What ends the call that is being made. */
static inline GCancellable *
muster_monitored_cancellable (const MusterMonitoredSession *self)
{
  return self->calling != NULL ? self->calling : self->cancellable;
}

/* The options with the scaffold's ops and meta graph; what they point to is the scaffold's and the
 * options'. */
MusterSessionManagerOptions
muster_monitored_manager_options (MusterScaffold *scaffold,
                                  const MusterSessionManagerOptions *options);

/* For a loop of its own: a run that loses the session, or finds it lost, fails with the reason
 * instead of recovering. Then the session is lost until it is told to recover: it pauses, and
 * creates another session, with retries until until_us. FALSE if that is given up. */
void muster_monitored_session_recover_when_told (MusterMonitoredSession *self);
gboolean muster_monitored_session_is_lost (const MusterMonitoredSession *self);
/* A stop was requested of the session itself, as by a hook: also by one that refused a step so. */
gboolean muster_monitored_session_is_stopping (const MusterMonitoredSession *self);
gboolean muster_monitored_session_recover (MusterMonitoredSession *self, gint64 until_us,
                                           GError **error);

/* What monitored_session.c and monitored_make.c have of each other. */

gboolean muster_monitored_is_recoverable (const MusterMonitoredSession *self,
                                          const GError *failure);
/* Creates a session if there is none, with retries by the policy (MON.42): after a pause if one was
 * lost. */
gboolean muster_monitored_ensure (MusterMonitoredSession *self, MusterSessionReport *report,
                                  GError **error);
/* Stops the threads of a lost session; their errors are dropped. */
void muster_monitored_drop (MusterMonitoredSession *self);
/* Stops and joins the coordinator's threads: within the grace, and quickly if cancelled. */
void muster_monitored_join (MusterMonitoredSession *self, gint64 deadline_us, GError **error);
void muster_monitored_close (MusterMonitoredSession *self);
/* Notes an OUT_OF_RANGE from a hook's function that provides no input, so that it isn't taken for
 * the end of the input (DMON.8). */
void muster_monitored_note_mistake (MusterMonitoredSession *self, const GError *failure);

G_END_DECLS
