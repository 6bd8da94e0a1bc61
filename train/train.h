// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored_training.h"
#include "train/position/batches.h"

G_BEGIN_DECLS

/* Trains one task of a job, chief or worker, from the job's current state to its end: a monitored
 * session with the standard hooks (train/monitored_training.h) runs the train op with batches until
 * the global step, which all tasks share, reaches its target, or all batches are done. Each task's
 * position in the data is kept in the model (train/position/position.h): a resumed job skips no
 * batch and repeats none. A chief of several tasks resets its master, which must be the job's own;
 * so does a single task on a master without claims. A chief whose predecessor died and left the
 * model whole on the master continues with it instead. Input that the graph reads by itself has no
 * position. Lost sessions are recovered. A chief also claims its checkpoint directory, saves,
 * announces its progress (at most once a second), and may end the job. A run that restored a
 * checkpoint (count_deaths in saver/restore_options.h) counts as good after the first save, after
 * ten seconds of steps or at the end; if a step fails by itself before that, it counts as a death.
 */

/* The progress. */
typedef struct {
  gint64 step; /* the global step; during training possibly the one before the last run's update */
  gint64
      until_step; /* the target; with epochs: the step at which a new model has done all batches */
  double steps_per_second; /* of all tasks, over the last second or two; 0: unknown */
  double loss;             /* NAN: none configured */
  gint64 left_us;          /* remaining time; -1: unknown */
  gint64 durable_step;     /* the last saved or restored, not in a fast tier; -1: none or unknown */
  /* How far the saves have come: (nullable) (not owned), valid during the call; NULL on a worker,
   * and without a checkpoint_dir. */
  const MusterSaveStatus *saves;
  MusterGoodput goodput; /* until now */
  /* With epochs (nullable) (not owned), valid during the call: this task's share is done, and it
   * waits for this task, "worker:1", … */
  const char *awaits;
  gint64 awaits_us; /* … which has done no batch for this long */
} MusterTrainingState;

/* Functions that report events; each may be NULL. Called on the training thread. */
typedef struct {
  MusterSessionProgress waiting; /* while a session is created */
  gpointer waiting_data;
  /* A session was created, the first or another: the model is ready, at this step. */
  void (*ready) (const MusterSessionReport *report, gint64 step, gpointer user_data);
  /* The session is lost; another is created after a pause. */
  void (*lost) (const GError *why, guint n, gint64 pause_us, gpointer user_data);
  /* Called at most twenty times a second, and once at the end. FALSE ends the training early, like
   * reaching its target, without ending the job. */
  gboolean (*progress) (const MusterTrainingState *state, gpointer user_data);
  /* Called after each save: it is durable, or was skipped for lack of space (saved->why). Training
   * continues, and the next save is due at the usual interval. */
  void (*saved) (const MusterSaved *saved, gpointer user_data);
  /* A checkpoint of a fast tier has been copied to a lower one. */
  void (*copied) (const MusterTierCopied *copied, gpointer user_data);
  gpointer user_data;
} MusterTrainingListener;

typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  gboolean is_worker; /* FALSE: a chief */
  const char *model;  /* (nullable) the model's name in announcements */
  const char *task;   /* (nullable) "worker:0", for messages */
  guint task_number;  /* below n_tasks: 0 for the chief, another for each worker */
  guint n_tasks;      /* chief and workers; the same in all of them; 0: 1 */

  MusterBatches *batches;   /* (nullable) one array for each feed; NULL: the graph's own input */
  const char *const *feeds; /* the tensors to feed: "x:0" */
  gsize n_feeds;
  const char *loss;  /* (nullable) a float scalar to watch; NaN fails the run */
  gint64 until_step; /* the global step to reach, or */
  gint64 epochs;     /* the number of passes over the rows of batches, by all tasks together */
  gboolean without_positions; /* don't add positions to the model; a resumed job's batches start
                                 from the beginning, and each task uses its own batches */

  const char *checkpoint_dir;      /* (nullable) of a chief; NULL: nothing is restored or saved */
  const MusterSaverOptions *saver; /* (nullable) */
  gint64 save_us; /* like save_checkpoint_us and _steps of MusterMonitoredTrainingOptions */
  gint64 save_steps;
  gboolean save_auto;                  /* the same */
  double save_share;                   /* the same */
  gboolean save_blocking;              /* the same */
  const MusterRestoreOptions *restore; /* (nullable) */
  gboolean overwrite; /* of a chief: start a job that is over or was prepared by another chief */
  /* of a chief: like those of MusterMonitoredTrainingOptions */
  gboolean always_restore;
  gboolean continue_without_positions;
  gboolean ends_job;   /* of a chief: reaching until_step ends the job, which is announced */
  const char *log_dir; /* (nullable) for event files; NULL: with the checkpoints */

  /* (nullable) train/preemption/preemption.h: its cancellable is used for the training if that has
   * none. */
  MusterPreemption *preemption;
  gint64 timeout_us; /* for preparing the model or waiting for it, each time; 0: no limit for a
                        chief, two hours for a worker */
  /* A step that takes longer counts as a lost session; set it above the longest step. 0: none. */
  gint64 step_timeout_us;
  const char *const *cluster; /* (nullable) "ps:0=HOST:PORT" */
  const char *chief;          /* (nullable) "chief:0=HOST:PORT", as the manager's */
  GBytes *config;             /* (nullable) "chief:0=HOST:PORT", as in the manager's options */
  const MusterTrainingListener *listener; /* (nullable) */
  MusterClock *clock;                     /* NULL: the machine's */
} MusterTraining;

/* The result. Clear it. */
typedef struct {
  gint64 step; /* the last global step seen; -1: none */
  /* The target was reached, with epochs by all tasks, and its last save has succeeded: there is
   * nothing to resume, also after a preemption request. */
  gboolean is_reached;
  guint n_recoveries;
  /* What the job's time was spent on: a chief's, with a checkpoint_dir, since the job's first
   * start; else this process's. */
  MusterGoodput goodput;
  MusterSessionReport report; /* of the last session that was created, or couldn't be */
} MusterTrained;

void muster_trained_clear (MusterTrained *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTrained, muster_trained_clear)

/* trained (nullable) is set also on failure. INVALID_ARGUMENT if the scaffold has no train op or no
 * global step, a feed or the loss isn't in its graph, it can't be extended by positions, or the
 * checkpoint is from another number of tasks; OUT_OF_RANGE if the job is over; FAILED_PRECONDITION
 * if another chief holds the lease or the directory; otherwise the error of creating the session,
 * of a step, of the last save or of announcing the end of the job. */
gboolean muster_train (const MusterTraining *training, MusterTrained *trained,
                       GCancellable *cancellable, GError **error);

G_END_DECLS
