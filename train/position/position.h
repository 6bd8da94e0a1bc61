// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/monitored/monitored_session.h"
#include "train/position/batches.h"

G_BEGIN_DECLS

/* Keeps each task's position in its data in the model itself, so that a checkpoint has weights and
 * positions of one moment. A resumed job skips no batch and trains none twice, whichever process or
 * master died, on any master.
 *
 * A meta graph is extended by four global variables: muster/begun and muster/done, which count each
 * task's batches, muster/hold and muster/over. Each step of a task feeds the number of its batch.
 * The master refuses the step (INVALID_ARGUMENT) if the task is at another position. It counts the
 * batch as begun, then lets the train op write, then counts it as done. Therefore:
 *
 * - while begun equals done and begun doesn't change, nothing writes. The chief's saver sets hold,
 *   which every task reads with its steps, waits for that state, saves, checks again, and discards
 *   a save that isn't a cut (muster_position_guard ());
 * - whether a step with a lost response was done is known. One that was aborted in the middle
 * shows: begun stays ahead of done. Only the last checkpoint repairs that: the task that detects it
 *   resets the master, and the chief prepares the model again;
 * - a chief whose predecessor died continues with the model on the master if no step was cut off
 *   (continue_func of MusterPrepareOptions);
 * - otherwise it first resets the master (reset_master), so that no earlier step runs on over what
 *   it restores; the other tasks wait for the model again. A job of one task does
 *   so only if no claim ends the earlier session (reset_unclaimed). All tasks have their sessions
 * at one master;
 * - any saver and task may write hold, only the chief muster/over: when all batches are done it
 *   writes their number, and no save can overwrite that, whatever the order of steps on the master.
 *
 * Input that the graph reads by itself (queues, files) has no position, only fed input. */

/* The names of the added variables. */
#define MUSTER_POSITION_BEGUN "muster/begun"
#define MUSTER_POSITION_DONE  "muster/done"
#define MUSTER_POSITION_HOLD  "muster/hold"
#define MUSTER_POSITION_OVER  "muster/over"

/* Extends the meta graph for n_tasks (1 to 65536), the same number in every task. The ready op is
 * removed, so that the scaffold builds one that knows the new variables; the init op initialises
 * them too; the SaverDef becomes one that saves all global variables. A meta graph that is already
 * extended for as many tasks is returned unchanged. INVALID_ARGUMENT if it has no train op, if that
 * writes no variable or writes one in a loop, or if it is extended for another number of tasks. */
MusterMetaGraph *muster_position_add (MusterMetaGraph *meta_graph, guint n_tasks, GError **error);

/* The number of tasks that it is extended for; 0: it isn't. */
guint muster_position_n_tasks (MusterMetaGraph *meta_graph);

/* The number, among all of the job's batches, of a task's position-th batch; tasks alternate. If
 * all use MusterBatches with one seed, each batch of an epoch goes to one task. */
gint64 muster_position_batch (gint64 position, guint task, guint n_tasks);

/* INVALID_ARGUMENT, with the remedy, if the checkpoint was made by another number of tasks. A
 * checkpoint without positions passes, for allow_missing of MusterRestoreOptions: positions then
 * start at 0. So does a prefix that can't be read here; restoring it gives the error. */
gboolean muster_position_check (MusterMetaGraph *meta_graph, MusterStorage *storage,
                                const char *prefix, GError **error);

/* --- the chief's saves --- */

typedef struct {
  /* If a task's step doesn't end for this long, it was aborted: the save fails with ABORTED, and a
   * monitored session restores the last checkpoint. Set it above the longest step. 0: 60 s. */
  gint64 quiesce_us;
  /* (nullable) A tensor whose value names each checkpoint, instead of the save's step, which other
   * tasks' steps overtake. Copied. */
  const char *global_step;
  gboolean is_apart;  /* the saver isn't one of the job's tasks, so the chief holds too */
  MusterClock *clock; /* NULL: the machine's */
} MusterPositionGuard;

/* Makes each save of saver a cut over all tasks (muster_saver_set_consistent_cut ()). A job of one
 * task that saves by itself isn't told to hold, only checked. Does nothing if the graph isn't
 * extended. options may be NULL. */
void muster_position_guard (MusterSaver *saver, MusterMetaGraph *meta_graph,
                            const MusterPositionGuard *options);

/* For a save by a process that isn't one of the job's tasks (`muster save`): the meta graph as the
 * job trains it (transfer full), extended if the master keeps positions, so that a saver for it
 * saves them. Such a save becomes the latest checkpoint, and the job couldn't continue from one
 * without positions. Use muster_position_guard () with is_apart. config (nullable) as in
 * muster_master_create_session (). INVALID_ARGUMENT if the master keeps positions and the meta
 * graph can't be extended. */
MusterMetaGraph *muster_position_find (MusterMaster *master, MusterMetaGraph *meta_graph,
                                       GBytes *config, gint64 deadline_us,
                                       GCancellable *cancellable, GError **error);

/* --- a task's steps --- */

typedef struct {
  guint task;       /* below the number of tasks; each process must be another task */
  const char *name; /* (nullable) this task's name, "worker:1", from which the others' names follow;
                       NULL: task 0 is chief:0, 1 worker:0 and so on */
  gboolean is_worker; /* FALSE: a chief, which clears hold when the model is prepared */
  MusterMaster
      *master; /* (nullable) reset after an aborted step; NULL: the hook fails (ABORTED) instead */
  MusterBatches *batches;   /* (nullable) NULL: the caller feeds its steps */
  const char *const *feeds; /* the tensors to which a batch's arrays are fed */
  gsize n_feeds;
  gint64
      n_batches; /* of the whole job, the same in every task; the job stops after them; 0: no end */
  gint64 settle_us; /* how long a step of an earlier session may still run; 0: 5 s */
  gint64 hold_us;   /* how long a task holds before it continues; 0: 60 s. The saver is then assumed
                       dead, and hold is cleared for all tasks */
  gint64
      others_us; /* how long a task that has done its share waits while no task does a batch, before
                    it fails (DEADLINE_EXCEEDED, which names the task to restart); 0: 30 minutes */
  MusterClock *clock; /* NULL: the machine's */
} MusterPositionOptions;

/* A hook for a monitored session with the extended graph: starts at the task's position, returns
 * the batches, and adds the position to each run with the train op as a target. Strings are copied,
 * master is referenced, batches must live as long as the hook. INVALID_ARGUMENT at begin if the
 * graph isn't extended or has fewer tasks. */
MusterHook *muster_position_hook_new (const MusterPositionOptions *options, GError **error);

/* One iteration of a loop over n_batches: while (!should_stop) run. If the task has a batch left,
 * runs step, whose targets must contain the train op. Otherwise it runs without the train op until
 * every task has done its share and, except in the chief, until the chief has written that; then a
 * stop is requested. A task that left earlier would be missing if the model returned to a
 * checkpoint. *trained (nullable) is TRUE in the first case; fetched (nullable if nothing is
 * fetched) is as in muster_monitored_session_run (), untouched in the second case. (A loop that
 * only runs the train op ends with OUT_OF_RANGE, the end of the input.) */
gboolean muster_position_run (MusterHook *self, MusterMonitoredSession *session,
                              const MusterStep *step, MusterTensor **fetched, gboolean *trained,
                              GError **error);

/* The task that a task waits for after its own share. */
typedef struct {
  const char
      *task;       /* (not owned) the first that isn't done: "worker:1"; valid until the next run */
  gint64 since_us; /* on the clock: since when it has done no batch */
} MusterAwaited;

/* FALSE if it waits for no task. */
gboolean muster_position_hook_awaits (MusterHook *self, MusterAwaited *awaited);

/* TRUE when every batch of the job is known to be done. */
gboolean muster_position_hook_is_over (MusterHook *self);

/* The number of batches that the task has begun, by the master's count; -1 before the first
 * session. */
gint64 muster_position_hook_position (MusterHook *self);

G_END_DECLS
