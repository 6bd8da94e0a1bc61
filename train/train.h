// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored_training.h"
#include "train/position/batches.h"

G_BEGIN_DECLS

/* One call trains one task of a job, chief or worker, from wherever the job is to its end: a
 * monitored session with the stock hooks (train/monitored_training.h), batches in, the train op run
 * until the global step, which all tasks share, has reached its target, or all batches are dealt.
 * Where each task is in the data is kept in the model (train/position/position.h): a resumed job
 * skips no batch and repeats none. A chief of several tasks resets its master, which is the job's
 * own; so does one on a master that keeps no claims. What the graph reads by itself has no
 * position. It comes back from a lost session by itself. A chief's also claims its checkpoint
 * directory, saves, announces how far it is (once a second at most), and may end the job. A life
 * that its restore began (count_deaths in saver/restore_options.h) is outlived after the first
 * save, after ten seconds of steps or at the end; a step that fails by itself before that leaves it
 * a death. */

/* How far it is. */
typedef struct {
  gint64 step; /* the global step; on the way it may be the one before the last run's update */
  gint64 until_step;       /* the target; in epochs: where all batches of a new model are dealt */
  double steps_per_second; /* of all tasks, over the last second or two; 0: not known yet */
  double loss;             /* NAN: none is asked for */
  gint64 left_us;          /* -1: not known yet */
  gint64 durable_step;     /* the last that was saved or restored; -1: none, or not known here */
  /* In epochs (nullable) (not owned), for as long as the call: its own share is dealt, and it waits
   * for this task, "worker:1", … */
  const char *awaits;
  gint64 awaits_us; /* … which has done no batch for so long */
} MusterTrainingState;

/* Who wants to hear of it; each may be NULL. Called on the training thread. */
typedef struct {
  MusterSessionProgress waiting; /* while a session is made */
  gpointer waiting_data;
  /* A session is made, the first or one more: the model is ready, at this step. */
  void (*ready) (const MusterSessionReport *report, gint64 step, gpointer user_data);
  /* The session is lost; another is made after a pause. */
  void (*lost) (const GError *why, guint n, gint64 pause_us, gpointer user_data);
  /* At most twenty times a second, and once at the end. FALSE ends the training early, as if its
   * target were reached, but for the end of the job. */
  gboolean (*progress) (const MusterTrainingState *state, gpointer user_data);
  /* After each save: it is durable, or was skipped for want of room (saved->why); training goes on
   * then, and the next save is due as if this one had been made. */
  void (*saved) (const MusterSaved *saved, gpointer user_data);
  gpointer user_data;
} MusterTrainingListener;

typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  gboolean is_worker; /* a chief unless this is set */
  const char *model;  /* (nullable) as chiefs announce it */
  const char *task;   /* (nullable) "worker:0", for people */
  guint task_number;  /* below n_tasks: the chief is 0 and each worker another */
  guint n_tasks;      /* chief and workers; the same for all of them; 0: 1 */

  MusterBatches *batches;   /* (nullable) one array for each feed; NULL: the graph's own input */
  const char *const *feeds; /* the tensors they are fed to: "x:0" */
  gsize n_feeds;
  const char *loss;  /* (nullable) a float scalar to watch: one that is no number fails the run */
  gint64 until_step; /* the global step to reach, or */
  gint64 epochs;     /* how often the batches' rows are dealt, by all tasks together */
  gboolean without_positions; /* the model is trained as it is, and a resumed job's batches begin
                                 anew; each task deals from its own batches */

  const char *checkpoint_dir;      /* (nullable) a chief's: NULL: nothing is restored or saved */
  const MusterSaverOptions *saver; /* (nullable) */
  gint64 save_us; /* as save_checkpoint_us and _steps of a monitored training session */
  gint64 save_steps;
  const MusterRestoreOptions *restore; /* (nullable) */
  gboolean overwrite;  /* a chief's: begins a job that is over or was prepared by another */
  gboolean ends_job;   /* a chief's: until_step is the job's end, which is announced */
  const char *log_dir; /* (nullable) event files; NULL: beside the checkpoints */

  /* (nullable) train/preemption/preemption.h: its cancellable is the training's, where that has
   * none. */
  MusterPreemption *preemption;
  gint64 timeout_us; /* for each time that the model is made ready or waited for; 0: a chief as long
                        as it takes, a worker two hours */
  /* A step that takes longer has lost its session; longer than the longest one. 0: none. */
  gint64 step_timeout_us;
  const char *const *cluster;             /* (nullable) "ps:0=HOST:PORT" */
  const char *chief;                      /* (nullable) "chief:0=HOST:PORT", as the manager's */
  GBytes *config;                         /* (nullable) a serialised ConfigProto, referenced */
  const MusterTrainingListener *listener; /* (nullable) */
  MusterClock *clock;                     /* NULL: the machine's */
} MusterTraining;

/* What came of it. Clear it. */
typedef struct {
  gint64 step; /* the last global step that was seen; -1: none */
  /* It has reached its target, in epochs with all tasks, and what it was to save of that is saved:
   * there is nothing left to resume, also where it was told to go then. */
  gboolean is_reached;
  guint n_recoveries;
  MusterSessionReport report; /* of the last session that was made, or could not be */
} MusterTrained;

void muster_trained_clear (MusterTrained *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTrained, muster_trained_clear)

/* trained (nullable) is filled also on failure. INVALID_ARGUMENT where the scaffold has no train op
 * or no global step, a feed or the loss isn't in its graph, it can't be given positions, or the
 * checkpoint is another number of tasks'; OUT_OF_RANGE where the job is over;
 * FAILED_PRECONDITION where the lease or the directory is another chief's by now; else whatever
 * making the session, a step, the last save or the announcement of the job's end failed with. */
gboolean muster_train (const MusterTraining *training, MusterTrained *trained,
                       GCancellable *cancellable, GError **error);

G_END_DECLS
