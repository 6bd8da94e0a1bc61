// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/hooks/hooks.h"
#include "train/monitored/monitored_session.h"

G_BEGIN_DECLS

/* Creates a monitored session like TensorFlow's MonitoredTrainingSession (behaviours MON.14 to
 * MON.19): a scaffold with the session manager, the saver and the standard hooks. */

/* Disables an interval. */
#define MUSTER_NEVER (-1)

typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  gboolean is_worker; /* FALSE: a chief */
  const char
      *checkpoint_dir; /* (nullable) NULL: nothing is restored or saved, with a log message */
  /* Intervals: 0 is the default, MUSTER_NEVER none. Setting the steps disables the default in
   * seconds and the reverse; setting both is INVALID_ARGUMENT (DMON.3). */
  MusterSaver *saver; /* (nullable) with checkpoint_dir; NULL: one for the scaffold's SaverDef,
                         which is built if there is none */
  const MusterRestoreOptions *restore; /* (nullable) of a chief, copied */
  gboolean overwrite;                  /* of a chief (session/manager.h) */
  /* A chief whose predecessor has left the model whole on the master continues with it (a model
   * with a name and positions; continue_func in session/manager.h). TRUE: it restores the last
   * checkpoint in any case. */
  gboolean always_restore;
  /* It also continues with a model that has no positions, of which nobody knows whether the
   * predecessor's last step was cut off, and what its input has read. */
  gboolean continue_without_positions;
  gint64 save_checkpoint_us; /* 600 s */
  gint64 save_checkpoint_steps;
  gboolean save_auto;     /* instead of an interval: the hook chooses it (train/hooks/hooks.h) */
  double save_share;      /* of save_auto; 0: 0.01 */
  gboolean save_blocking; /* TRUE: training waits for each checkpoint (train/hooks/hooks.h) */
  gint64 save_summaries_us;
  gint64 save_summaries_steps; /* 100 */
  gint64 log_step_count_steps; /* 100 */
  const char *summary_dir;     /* (nullable) NULL: checkpoint_dir */
  MusterHook *const *hooks;    /* called last, on every task */
  gsize n_hooks;
  MusterHook *const *chief_only_hooks; /* called first, on the chief only */
  gsize n_chief_only_hooks;
  const MusterSaverListener *saver_listeners;
  gsize n_saver_listeners;
  gint64 max_wait_us;      /* of a worker; 0: 7200 s */
  gint64 step_timeout_us;  /* of the monitored session; 0: none */
  gint64 stop_grace_us;    /* 0: 120 s */
  gint64 recovery_wait_us; /* maximum interval between a waiter's polls; 0: 30 s (DMON.2) */
  gint64 timeout_us;       /* of a chief, for each time it prepares; 0: MUSTER_WAIT_FOREVER */
  /* Whether a chief waits at the end for workers that still train: see
   * muster_finish_barrier_hook_new (). 0: no. */
  gint64 finish_quiet_us;
  gint64 finish_timeout_us; /* 0: 60 s */
  const MusterRetryPolicy *recovery;
  GBytes *config;                /* (nullable) a serialised ConfigProto */
  const char *model;             /* (nullable) the model's name in announcements */
  const char *task;              /* (nullable) "worker:0" */
  const char *const *cluster;    /* (nullable) "ps:0=HOST:PORT" */
  const char *chief;             /* (nullable) "chief:0=HOST:PORT", as in the manager's options */
  guint most_failed_saves;       /* consecutive failed saves that fail the run; 0: no limit */
  gint64 position_quiesce_us;    /* with positions: MusterPositionGuard's quiesce_us */
  MusterPreemption *preemption;  /* (nullable) adds its hook, and limits the saves */
  MusterSessionProgress waiting; /* (nullable) as in the manager's options */
  gpointer waiting_data;
  const MusterSessionListener *listener; /* (nullable) copied */
  MusterClock *clock;                    /* NULL: the machine's */
} MusterMonitoredTrainingOptions;

/* Strings are copied; what hooks point to must live as long as the session. report (nullable) is
 * the manager's. */
MusterMonitoredSession *
muster_monitored_training_session_new (const MusterMonitoredTrainingOptions *options,
                                       MusterSessionReport *report, GCancellable *cancellable,
                                       GError **error);

G_END_DECLS
