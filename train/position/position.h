// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/monitored/monitored_session.h"
#include "train/position/batches.h"
#include "train/position/position_slots.h"

G_BEGIN_DECLS

/* Keeps each task's position in its data in the model itself, so that the weights and positions of
 * a checkpoint agree. A resumed job skips no batch and trains none twice, whichever process or
 * master died, on any master.
 *
 * A meta graph is extended by four global variables: muster/begun and muster/done, which count each
 * task's batches, muster/hold and muster/over. Each step of a task feeds the number of its batch.
 * The master refuses the step (INVALID_ARGUMENT) if the task is at another position. It counts the
 * batch as begun, then lets the train op write, then counts it as done. Therefore:
 *
 * - while begun equals done and begun doesn't change, no step writes. The chief's saver sets hold,
 *   which every task reads with its steps, waits for that state, saves, checks again, and discards
 *   a save that isn't a cut (muster_position_guard ());
 * - it is known whether a step whose response was lost is done. A step that was aborted midway
 *   shows in the counts: begun stays ahead of done. Only the last checkpoint repairs that: the task
 *   that detects it resets the master, and the chief prepares the model again;
 * - a chief whose predecessor died continues with the model on the master if no step was cut off
 *   (continue_func of MusterPrepareOptions);
 * - otherwise it first resets the master (reset_master), so that no earlier step writes over what
 * it restores; the other tasks wait for the model again. A job of one task does so only if no claim
 * ends the earlier session (reset_unclaimed);
 * - tasks may have a master each, over the same variables (own_masters). Then the model is fenced
 *   instead of reset: each step that hasn't begun is refused until the chief has restored it;
 * - any saver and task may write hold, only the chief muster/over: when all batches are done it
 *   writes their number, and no save can overwrite that, whatever the order of steps on the master.
 *
 * Input that the graph reads by itself (queues, files) has no position, only fed input.
 *
 * The above holds for a job with a fixed number of tasks, each with its share of the batches. In a
 * job whose batches are dealt (muster_position_add_dealt ()), the tasks may change. Each task has a
 * slot. The slot has the position, in muster/slot/begun and muster/slot/done, and one batch in
 * hand, in muster/taken. A step trains that batch and draws the next one from muster/next. A save
 * is a cut as before: all batches that were drawn are done, except those in hand. If the task of a
 * slot is gone, its batch in hand is trained by the next task in that slot, or by another task that
 * claims the slot for that one step ([iface@PositionSlots]). */

/**
 * MUSTER_POSITION_BEGUN:
 *
 * The added variable that counts the batches that each task has begun: int64 [n_tasks].
 */
#define MUSTER_POSITION_BEGUN "muster/begun"

/**
 * MUSTER_POSITION_DONE:
 *
 * The added variable that counts the batches that each task has done: int64 [n_tasks]. If batches
 * are dealt: what the job with a fixed number of tasks, which this one continues, had done; [0] in
 * a new job.
 */
#define MUSTER_POSITION_DONE "muster/done"

/**
 * MUSTER_POSITION_SLOT_BEGUN:
 *
 * The added variable that counts the steps that each slot has begun: int64 [n_slots]. Only if
 * batches are dealt.
 */
#define MUSTER_POSITION_SLOT_BEGUN "muster/slot/begun"

/**
 * MUSTER_POSITION_SLOT_DONE:
 *
 * The added variable that counts the steps that each slot has done: int64 [n_slots]. Only if
 * batches are dealt.
 */
#define MUSTER_POSITION_SLOT_DONE "muster/slot/done"

/**
 * MUSTER_POSITION_NEXT:
 *
 * The added variable that counts the batches that were drawn: an int64 scalar. Only if batches are
 * dealt.
 */
#define MUSTER_POSITION_NEXT "muster/next"

/**
 * MUSTER_POSITION_TAKEN:
 *
 * The added variable with the batch that each slot has in hand, by the number of its draw, -1 for
 * none: int64 [n_slots]. Only if batches are dealt.
 */
#define MUSTER_POSITION_TAKEN "muster/taken"

/**
 * MUSTER_POSITION_HOLD:
 *
 * The added variable by which a saver holds the tasks: an int64 scalar.
 */
#define MUSTER_POSITION_HOLD "muster/hold"

/**
 * MUSTER_POSITION_OVER:
 *
 * The added variable with the number of the job's batches once the job is over: an int64 scalar.
 */
#define MUSTER_POSITION_OVER "muster/over"

/**
 * muster_position_add:
 * @meta_graph: the model
 * @n_tasks: from 1 to 65536, the same number in every task
 *
 * Extends the meta graph by positions. The ready op is removed, so that the scaffold builds one
 * that knows the new variables; the init op initialises them too; the SaverDef becomes one that
 * saves all global variables. A meta graph that is already extended for as many tasks is returned
 * unchanged. INVALID_ARGUMENT if it has no train op, if that writes no variable or writes one in a
 * loop, or if it is extended for another number of tasks.
 *
 * Returns: (transfer full): the extended meta graph
 */
MusterMetaGraph *muster_position_add (MusterMetaGraph *meta_graph, guint n_tasks, GError **error);

/**
 * muster_position_add_dealt:
 * @meta_graph: the model
 * @n_slots: the largest number of tasks at one time, from 1 to 65536; the same in every task
 *
 * muster_position_add () for a job with a changing number of tasks, to which batches are dealt. It
 * also continues checkpoints of a job with a fixed number of tasks.
 *
 * Returns: (transfer full): the extended meta graph
 */
MusterMetaGraph *muster_position_add_dealt (MusterMetaGraph *meta_graph, guint n_slots,
                                            GError **error);

/**
 * muster_position_n_tasks:
 * @meta_graph: a model
 *
 * The number of tasks that it is extended for; of slots, if batches are dealt.
 *
 * Returns: the number; 0: it isn't extended
 */
guint muster_position_n_tasks (MusterMetaGraph *meta_graph);

/**
 * muster_position_is_dealt:
 * @meta_graph: a model
 *
 * Whether it is extended by muster_position_add_dealt ().
 *
 * Returns: TRUE if batches are dealt
 */
gboolean muster_position_is_dealt (MusterMetaGraph *meta_graph);

/**
 * muster_position_batch:
 * @position: the number of a task's batch, from 0
 * @task: the task's number
 * @n_tasks: the number of tasks
 *
 * The number, among all of the job's batches, of a task's batch; tasks alternate. If all use
 * [struct@Batches] with one seed, each batch of an epoch goes to one task.
 *
 * Returns: the number, from 0
 */
gint64 muster_position_batch (gint64 position, guint task, guint n_tasks);

/**
 * muster_position_check:
 * @meta_graph: an extended model
 * @storage: (nullable): NULL: local files
 * @prefix: a checkpoint
 *
 * INVALID_ARGUMENT, with the remedy, if the checkpoint was made by another number of tasks or, if
 * batches are dealt, of slots. A model whose batches are dealt takes one of any fixed number of
 * tasks (FAILED_PRECONDITION if a batch was in progress in it), but not the other way round. A
 * checkpoint without positions passes, for allow_missing of [struct@RestoreOptions]: positions then
 * start at 0. So does a prefix that can't be read here; restoring it gives the error.
 *
 * Returns: FALSE with an error if it doesn't fit
 */
gboolean muster_position_check (MusterMetaGraph *meta_graph, MusterStorage *storage,
                                const char *prefix, GError **error);

/* --- the chief's saves --- */

/**
 * MusterPositionGuard:
 * @quiesce_us: if a task's step doesn't end for this long, in microseconds, it was aborted: the
 * save fails with ABORTED, and a monitored session restores the last checkpoint. Set it above the
 *   longest step. 0: 60 s
 * @global_step: (nullable): a tensor whose value names each checkpoint, instead of the save's step,
 *   which other tasks' steps overtake. Copied
 * @is_apart: the saver isn't one of the job's tasks, so the chief holds too
 * @clock: (nullable): NULL: the machine's
 *
 * How saves become cuts over all tasks.
 */
typedef struct {
  gint64 quiesce_us;
  const char *global_step;
  gboolean is_apart;
  MusterClock *clock;
} MusterPositionGuard;

#define MUSTER_TYPE_POSITION_GUARD (muster_position_guard_get_type ())
GType muster_position_guard_get_type (void);

/**
 * muster_position_guard:
 * @saver: a saver
 * @meta_graph: its model
 * @options: (nullable): NULL: the defaults
 *
 * Makes each save of @saver a cut over all tasks. A job of one task that saves by itself doesn't
 * hold; it is only checked. Does nothing if the graph isn't extended.
 */
void muster_position_guard (MusterSaver *saver, MusterMetaGraph *meta_graph,
                            const MusterPositionGuard *options);

/**
 * muster_position_find:
 * @master: the job's master
 * @meta_graph: the model
 * @config: (nullable): a serialised `ConfigProto`
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * For a save by a process that isn't one of the job's tasks (`muster save`): the meta graph as the
 * job trains it, extended if the master keeps positions, so that a saver for it saves them. Such a
 * save becomes the latest checkpoint, and the job couldn't continue from one without positions. Use
 * muster_position_guard () with is_apart. INVALID_ARGUMENT if the master keeps positions and the
 * meta graph can't be extended.
 *
 * Returns: (transfer full): the meta graph
 */
MusterMetaGraph *muster_position_find (MusterMaster *master, MusterMetaGraph *meta_graph,
                                       GBytes *config, gint64 deadline_us,
                                       GCancellable *cancellable, GError **error);

/* --- a task's steps --- */

/**
 * MusterPositionOptions:
 * @task: below the number of tasks, different in each process. If batches are dealt, the
 *   task's slot, which no other process may be in
 * @name: (nullable): this task's name, "worker:1", from which the others' names follow; NULL: task
 *   0 is chief:0, 1 worker:0 and so on
 * @is_worker: FALSE: a chief, which clears hold when the model is prepared
 * @master: (nullable): reset after an aborted step; NULL: the hook fails (ABORTED) instead
 * @own_masters: each task has a master of its own, over the same variables: after an aborted step
 *   nothing is reset. The other tasks' steps are refused until the chief has restored the model.
 *   That needs a global step on a task of a cluster, "/job:ps/task:0"
 * @batches: (nullable): NULL: the caller feeds its steps
 * @feeds: (nullable) (array length=n_feeds): the tensors to which a batch's arrays are fed
 * @n_feeds: the number of @feeds
 * @n_batches: of the whole job, the same in every task; the job stops after them; 0: no end
 * @settle_us: how long a step of an earlier session may still run, in microseconds; 0: 5 s, but 60
 * s with @own_masters if an earlier process of the task has begun it, at the master that it has now
 * @hold_us: how long a task holds before it continues; 0: 60 s. The saver is then assumed dead, and
 *   hold is cleared for all tasks
 * @others_us: how long a task that has done its share waits while no task does a batch, or, with
 *   @own_masters, for the chief's restore, before it fails (DEADLINE_EXCEEDED, which names the task
 *   to restart); 0: 30 minutes
 * @slots: (nullable): if batches are dealt: how to train what departed tasks have in hand, by the
 *   task in the lowest slot or by one without a batch. NULL: only the next task in such a slot
 *   trains it
 * @clock: (nullable): NULL: the machine's
 *
 * Options of a position hook.
 */
typedef struct {
  guint task;
  const char *name;
  gboolean is_worker;
  MusterMaster *master;
  gboolean own_masters;
  MusterBatches *batches;
  const char *const *feeds;
  gsize n_feeds;
  gint64 n_batches;
  gint64 settle_us;
  gint64 hold_us;
  gint64 others_us;
  MusterPositionSlots *slots;
  MusterClock *clock;
} MusterPositionOptions;

#define MUSTER_TYPE_POSITION_OPTIONS (muster_position_options_get_type ())
GType muster_position_options_get_type (void);

/**
 * muster_position_options_new:
 * @master: (nullable): reset after an aborted step
 * @batches: (nullable): the data, shared with the hook
 * @feeds: (nullable) (array zero-terminated=1): the tensor to feed with each array
 *
 * Options on the heap, for other languages: numbers and strings are fields.
 *
 * Returns: (transfer full): options of a chief
 */
MusterPositionOptions *muster_position_options_new (MusterMaster *master, MusterBatches *batches,
                                                    const char *const *feeds);

/**
 * muster_position_hook_new:
 * @options: the task and its data
 *
 * A hook for a monitored session with the extended graph: starts at the task's position, returns
 * the batches, and adds the position to each run with the train op as a target. Strings are copied,
 * master and batches are referenced. INVALID_ARGUMENT at begin if the graph isn't extended or has
 * fewer tasks.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_position_hook_new (const MusterPositionOptions *options, GError **error);

/**
 * muster_position_run: (skip)
 * @self: a position hook
 * @session: the monitored session that has it
 * @step: what to run; its targets must contain the train op
 * @fetched: (nullable): as in muster_monitored_session_run (), if a batch was trained
 * @trained: (nullable): TRUE: a batch was trained
 *
 * One iteration of a loop over n_batches: while (!should_stop) run. If the task has a batch left,
 * runs @step. Otherwise it runs without the train op until every task has done its share and,
 * except in the chief, until the chief has written that; then a stop is requested. A task that left
 * earlier would be missing if the model returned to a checkpoint. If batches are dealt, nothing is
 * trained either by a step that is refused because another process made it. (A loop that only runs
 * the train op ends with OUT_OF_RANGE, the end of the input.)
 *
 * Returns: FALSE with an error
 */
gboolean muster_position_run (MusterHook *self, MusterMonitoredSession *session,
                              const MusterStep *step, MusterTensor **fetched, gboolean *trained,
                              GError **error);

/**
 * muster_position_run_builder:
 * @self: a position hook
 * @session: the monitored session that has it
 * @step: what to run; its targets must contain the train op
 * @timeout_us: in microseconds, including a recovery, or %MUSTER_WAIT_FOREVER
 *
 * muster_position_run () for other languages.
 *
 * Returns: (transfer container) (element-type MusterTensor): the fetched tensors; none if the task
 *   had no batch left
 */
GPtrArray *muster_position_run_builder (MusterHook *self, MusterMonitoredSession *session,
                                        MusterStepBuilder *step, gint64 timeout_us, GError **error);

/**
 * MusterAwaited:
 * @task: the first that isn't done: "worker:1", or "the task in slot 3" if batches are dealt; not
 *   owned, valid until the next run
 * @since_us: on the clock: since when it has done no batch
 *
 * The task that a task waits for after its own share.
 */
typedef struct {
  const char *task;
  gint64 since_us;
} MusterAwaited;

/**
 * muster_position_hook_awaits:
 * @self: a position hook
 * @awaited: (out caller-allocates): whom it waits for
 *
 * Whom a task waits for after its own share.
 *
 * Returns: FALSE if it waits for no task
 */
gboolean muster_position_hook_awaits (MusterHook *self, MusterAwaited *awaited);

/**
 * muster_position_hook_is_over:
 * @self: a position hook
 *
 * Whether the job's batches are done.
 *
 * Returns: TRUE when every batch of the job is known to be done
 */
gboolean muster_position_hook_is_over (MusterHook *self);

/**
 * muster_position_hook_position:
 * @self: a position hook
 *
 * The number of batches that the task has begun, by the master's count. If batches are dealt, the
 * number of steps in its slot.
 *
 * Returns: the number; -1 before the first session
 */
gint64 muster_position_hook_position (MusterHook *self);

G_END_DECLS
