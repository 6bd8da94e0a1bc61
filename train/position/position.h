// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/monitored/monitored_session.h"
#include "train/position/batches.h"

G_BEGIN_DECLS

/* Where each task of a job is in its data, kept in the model itself, so that a checkpoint holds
 * weights and positions of one moment: a resumed job skips no batch and trains none twice,
 * whichever process or master died, on any master.
 *
 * A meta graph is extended by four global variables: muster/begun and muster/done, which count each
 * task's batches, muster/hold and muster/over. A step of a task says which batch it is. The master
 * refuses it (INVALID_ARGUMENT) where the task is elsewhere, counts it as begun, and only then lets
 * the train op write; when that has ended, it counts it as done. So
 *
 * - where begun and done are equal and begun stays as it is, nothing writes: the chief's saver sets
 *   hold, which every task hears of with its steps, waits for that, saves, looks again, and throws
 *   away what isn't a cut (muster_position_guard ());
 * - a step that was lost on the way is known to have been done or not, and one that was cut off in
 *   the middle shows: begun is ahead of done and stays there. There is no repair of that but the
 *   last checkpoint: whoever finds it resets the master, and the chief prepares the model anew;
 * - a chief begins by resetting the master (reset_master of MusterPrepareOptions), so that nothing
 *   runs on over what it restores; the other tasks wait for the model again. One that is alone does
 *   so only where no claim ends its life before (reset_unclaimed). All tasks have their sessions at
 *   one master;
 * - hold may be written by any saver and task, muster/over by the chief alone: once all batches are
 *   done it writes how many they are, and no save can overwrite that, whatever the order of their
 *   steps on the master.
 *
 * What the graph reads by itself (queues, files) has no position here, only what is fed. */

/* The names of what is added. */
#define MUSTER_POSITION_BEGUN "muster/begun"
#define MUSTER_POSITION_DONE  "muster/done"
#define MUSTER_POSITION_HOLD  "muster/hold"
#define MUSTER_POSITION_OVER  "muster/over"

/* The meta graph extended for so many tasks (at least 1, at most 65536): every task of the job
 * extends it by the same number. Its ready op goes, so that the scaffold builds one that knows the
 * new variables; its init op initialises them too; its SaverDef becomes one that saves all global
 * variables. One that is extended for as many tasks already is returned as it is. INVALID_ARGUMENT
 * where it has no train op, where that writes no variable or writes one in a loop of the graph, and
 * where it was extended for another number of tasks. */
MusterMetaGraph *muster_position_add (MusterMetaGraph *meta_graph, guint n_tasks, GError **error);

/* For how many tasks it is extended; 0: it isn't. */
guint muster_position_n_tasks (MusterMetaGraph *meta_graph);

/* The number of a task's position-th batch among all of the job's: its tasks take turns. With
 * MusterBatches of one seed every batch of an epoch is one task's. */
gint64 muster_position_batch (gint64 position, guint task, guint n_tasks);

/* INVALID_ARGUMENT where the checkpoint was made by another number of tasks: it says what to do. A
 * checkpoint without positions is taken, with allow_missing of MusterRestoreOptions: they begin at
 * 0. So is a prefix that can't be read here: restoring it tells why. */
gboolean muster_position_check (MusterMetaGraph *meta_graph, MusterStorage *storage,
                                const char *prefix, GError **error);

/* --- the chief's saves --- */

typedef struct {
  /* A task whose step doesn't end for so long was cut off: the save is ABORTED, which takes a
   * monitored session back to the last checkpoint. Longer than the longest step. 0: 60 s. */
  gint64 quiesce_us;
  /* (nullable) a tensor: each checkpoint is named by its value in it, not by the step that the save
   * is given, which somebody else's steps overtake. Copied. */
  const char *global_step;
  gboolean is_apart;  /* who saves is none of the job's tasks, so that a chief holds as well */
  MusterClock *clock; /* NULL: the machine's */
} MusterPositionGuard;

/* Makes each save of saver a cut over all tasks (muster_saver_set_consistent_cut ()); a job of one
 * task that saves by itself isn't told to hold, and only looked at. Nothing where the graph isn't
 * extended. options may be NULL. */
void muster_position_guard (MusterSaver *saver, MusterMetaGraph *meta_graph,
                            const MusterPositionGuard *options);

/* For a save beside the job, by a process that is none of its tasks (`muster save`): the meta graph
 * as the job trains it (transfer full), which is extended where the master keeps positions, so that
 * a saver of it saves them too. What such a saver saves becomes the latest, and the job could not
 * go on from one without. Use muster_position_guard () with is_apart. config (nullable) as in
 * muster_master_create_session (). INVALID_ARGUMENT where the master keeps positions and the meta
 * graph can't be extended by them. */
MusterMetaGraph *muster_position_find (MusterMaster *master, MusterMetaGraph *meta_graph,
                                       GBytes *config, gint64 deadline_us,
                                       GCancellable *cancellable, GError **error);

/* --- a task's steps --- */

typedef struct {
  guint task;       /* below the number of tasks; no two processes are the same task at a time */
  const char *name; /* (nullable) its name, "worker:1", from which it knows the others'; NULL: task
                       0 is chief:0, 1 worker:0 and so on */
  gboolean is_worker;     /* a chief unless this is set: it lets the model go once it is prepared */
  MusterMaster *master;   /* (nullable) what is reset for a step that was cut off; NULL: the hook
                             fails (ABORTED) without */
  MusterBatches *batches; /* (nullable) NULL: who runs the step feeds it */
  const char *const *feeds; /* the tensors that the arrays of a batch are fed to */
  gsize n_feeds;
  gint64 n_batches;   /* of the whole job, the same for every task, after which it stops; 0: no
                         end */
  gint64 settle_us;   /* how long a step of a life before may still run; 0: 5 s */
  gint64 hold_us;     /* how long a task waits that is told to hold, before it goes on; 0: 60 s. Its
                         saver is taken for dead then, and hold is cleared for all tasks */
  gint64 others_us;   /* how long a task that has dealt its share waits while no task does a batch,
                         before it fails (DEADLINE_EXCEEDED: it says which task to start again);
                         0: 30 minutes */
  MusterClock *clock; /* NULL: the machine's */
} MusterPositionOptions;

/* For a monitored session over the extended graph: begins where the task is, deals the batches, and
 * adds the position to each run that has the train op among its targets. Strings are copied,
 * batches and master referenced or, for batches, the caller's for as long as the hook.
 * INVALID_ARGUMENT at begin where the graph isn't extended, or the task isn't one of it. */
MusterHook *muster_position_hook_new (const MusterPositionOptions *options, GError **error);

/* One turn of a loop over n_batches: while (!should_stop) run. Runs step, which has the train op
 * among its targets, where the task has a batch left. Else a run without the train op, as long as
 * it takes until every task has done its share and, for the others than the chief, until that has
 * said so: then a stop is requested. A task that left earlier would be missed by a model that goes
 * back to a checkpoint. *trained (nullable) tells which it was; fetched (nullable where nothing is
 * fetched) is as in muster_monitored_session_run (), and untouched where nothing was trained. (A
 * loop that runs the train op alone ends with OUT_OF_RANGE, the end of the input.) */
gboolean muster_position_run (MusterHook *self, MusterMonitoredSession *session,
                              const MusterStep *step, MusterTensor **fetched, gboolean *trained,
                              GError **error);

/* Whom a task waits for that has dealt its share. */
typedef struct {
  const char *task; /* (not owned) the first that hasn't: "worker:1"; until the next run */
  gint64 since_us;  /* the clock's instant since when it has been seen to do no batch */
} MusterAwaited;

/* FALSE where it waits for nobody. */
gboolean muster_position_hook_awaits (MusterHook *self, MusterAwaited *awaited);

/* TRUE once every batch of the job is known to be done. */
gboolean muster_position_hook_is_over (MusterHook *self);

/* How many batches the task has dealt, as the master counts; -1 before the first session. */
gint64 muster_position_hook_position (MusterHook *self);

G_END_DECLS
