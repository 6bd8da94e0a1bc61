// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/hooks/hooks.h"
#include "train/monitored/monitored_session.h"

G_BEGIN_DECLS

/* A monitored session put together as TensorFlow's MonitoredTrainingSession does (behaviours MON.14
 * to MON.19): the session manager, the saver and the stock hooks around a scaffold. */

/* In the place of a number: not at all. */
#define MUSTER_NEVER (-1)

typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  gboolean is_worker; /* a chief unless this is set */
  const char
      *checkpoint_dir; /* (nullable) NULL: nothing is restored or saved, and the log says so */
  /* 0: the default; MUSTER_NEVER: not so. Given by steps, the default of seconds is off, and the
   * other way round; both given are INVALID_ARGUMENT (DMON.3). */
  MusterSaver *saver; /* (nullable) with checkpoint_dir; NULL: one for the scaffold's SaverDef,
                         which is built where there is none */
  const MusterRestoreOptions *restore; /* (nullable) a chief's, copied */
  gboolean overwrite;                  /* a chief's (session/manager.h) */
  gint64 save_checkpoint_us;           /* 600 s */
  gint64 save_checkpoint_steps;
  gint64 save_summaries_us;
  gint64 save_summaries_steps; /* 100 */
  gint64 log_step_count_steps; /* 100 */
  const char *summary_dir;     /* (nullable) NULL: checkpoint_dir */
  MusterHook *const *hooks;    /* called last, on every task */
  gsize n_hooks;
  MusterHook *const *chief_only_hooks; /* called first, on the chief alone */
  gsize n_chief_only_hooks;
  const MusterSaverListener *saver_listeners;
  gsize n_saver_listeners;
  gint64 max_wait_us;      /* a worker's; 0: 7200 s */
  gint64 step_timeout_us;  /* a monitored session's; 0: none */
  gint64 stop_grace_us;    /* 0: 120 s */
  gint64 recovery_wait_us; /* the ceiling between a waiter's looks; 0: 30 s (DMON.2) */
  gint64 timeout_us;       /* a chief's, for each time it prepares; 0: MUSTER_WAIT_FOREVER */
  /* Whether a chief waits at the end for workers that still train: see
   * muster_finish_barrier_hook_new (). 0: it doesn't. */
  gint64 finish_quiet_us;
  gint64 finish_timeout_us; /* 0: 60 s */
  const MusterRetryPolicy *recovery;
  GBytes *config;                /* (nullable) a serialised ConfigProto */
  const char *model;             /* (nullable) as chiefs announce it */
  const char *task;              /* (nullable) "worker:0" */
  const char *const *cluster;    /* (nullable) "ps:0=HOST:PORT" */
  const char *chief;             /* (nullable) "chief:0=HOST:PORT", as the manager's */
  guint most_failed_saves;       /* in a row, before the run fails; 0: any number */
  gint64 position_quiesce_us;    /* with positions: MusterPositionGuard's quiesce_us */
  MusterPreemption *preemption;  /* (nullable) gets its hook, and its save at the end */
  MusterSessionProgress waiting; /* (nullable) as the manager's */
  gpointer waiting_data;
  const MusterSessionListener *listener; /* (nullable) copied */
  MusterClock *clock;                    /* NULL: the machine's */
} MusterMonitoredTrainingOptions;

/* Strings may go after the call, what hooks point to lives as long as the session. report
 * (nullable) is the manager's. */
MusterMonitoredSession *
muster_monitored_training_session_new (const MusterMonitoredTrainingOptions *options,
                                       MusterSessionReport *report, GCancellable *cancellable,
                                       GError **error);

G_END_DECLS
