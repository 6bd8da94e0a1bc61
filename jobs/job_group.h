// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* What a job runs (behaviours B003.12 to B003.26).
 *
 * Compared with Caffe2: a net or an execution step is a MusterJobStep, which is ops of the node's
 * graph or a function. A GLOBAL workspace, shared by a node's tasks and kept between runs, is the
 * variables on the node's master. A PRIVATE workspace is the tensors of a RunStep, which are
 * dropped with it; declare those that are needed afterwards as outputs. Groups and tasks have no
 * workspace type, so none can conflict. */

typedef struct _MusterClusterNode MusterClusterNode; /* jobs/cluster.h */

/**
 * MusterJobFunc:
 * @node: where it runs
 * @deadline_us: of the run, an instant of g_get_monotonic_time ()
 * @cancellable: (nullable): of the run
 * @user_data: the caller's
 * @error: set it to fail the group
 *
 * Work on a node, on its own thread, concurrent with other functions of the group.
 *
 * Returns: FALSE with an error
 */
typedef gboolean (*MusterJobFunc) (MusterClusterNode *node, gint64 deadline_us,
                                   GCancellable *cancellable, gpointer user_data, GError **error);

/**
 * MusterJobStep:
 * @name: (nullable): the name of a task without one
 * @targets: (nullable) (array zero-terminated=1): ops, all run in one RunStep
 * @feeds: (nullable) (array length=n_feeds): what is fed
 * @n_feeds: the number of @feeds
 * @repeat: number of RunSteps, one after another; 0: one
 * @until_end: run until OUT_OF_RANGE, which isn't a failure here; @repeat is then the maximum (0:
 * no limit)
 * @func: (nullable): instead of @targets
 * @user_data: passed to @func
 * @destroy: (nullable): frees @user_data
 *
 * Ops of the node's graph, or a function. Everything is copied; the feeds' tensors are referenced.
 */
typedef struct {
  const char *name;
  const char *const *targets;
  const MusterFeed *feeds;
  gsize n_feeds;
  guint64 repeat;
  gboolean until_end;
  MusterJobFunc func;
  gpointer user_data;
  GDestroyNotify destroy;
  /*< private >*/
  GBytes *func_owner;
} MusterJobStep;

#define MUSTER_TYPE_JOB_STEP (muster_job_step_get_type ())
GType muster_job_step_get_type (void);

/**
 * muster_job_step_new:
 * @name: (nullable): the name of a task without one
 * @targets: (nullable) (array zero-terminated=1): ops, all run in one RunStep
 *
 * A step on the heap, for other languages: @repeat and @until_end are fields of [struct@JobStep].
 *
 * Returns: (transfer full): the step
 */
MusterJobStep *muster_job_step_new (const char *name, const char *const *targets);

/**
 * muster_job_step_add_feed:
 * @self: a step from new or copy
 * @name: a tensor such as "x:0"
 * @tensor: its value, referenced
 *
 * Feeds a tensor.
 */
void muster_job_step_add_feed (MusterJobStep *self, const char *name, MusterTensor *tensor);

/**
 * muster_job_step_set_func:
 * @self: a step from new or copy
 * @func: (scope notified) (closure user_data) (destroy destroy): what runs instead of targets
 * @user_data: passed to @func
 * @destroy: frees @user_data when neither a step nor a task needs it
 *
 * Makes it a function.
 */
void muster_job_step_set_func (MusterJobStep *self, MusterJobFunc func, gpointer user_data,
                               GDestroyNotify destroy);

/* --- setups --- */

/**
 * MusterJobSetup:
 *
 * Steps to run before, init, and after, exit, something else. If that fails, exit isn't run.
 */
#define MUSTER_TYPE_JOB_SETUP (muster_job_setup_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobSetup, muster_job_setup, MUSTER, JOB_SETUP, GObject)

/**
 * muster_job_setup_new:
 * @init: (nullable): runs before
 * @exit: (nullable): runs after
 *
 * A setup of two steps.
 *
 * Returns: (transfer full): the setup
 */
MusterJobSetup *muster_job_setup_new (const MusterJobStep *init, const MusterJobStep *exit);

/* --- outputs --- */

/**
 * MusterJobOutput:
 *
 * What a task fetches after it has run: one tensor, or a list of several in the order declared.
 */
#define MUSTER_TYPE_JOB_OUTPUT (muster_job_output_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobOutput, muster_job_output, MUSTER, JOB_OUTPUT, GObject)

/**
 * muster_job_output_get:
 * @self: the output, of a single tensor
 *
 * The value from the group's last run; FAILED_PRECONDITION "Output value not set yet." before it.
 *
 * Returns: (transfer full): the value
 */
MusterTensor *muster_job_output_get (MusterJobOutput *self, GError **error);

/**
 * muster_job_output_get_list:
 * @self: the output
 *
 * The values from the group's last run; FAILED_PRECONDITION "Output value not set yet." before it.
 *
 * Returns: (transfer container) (element-type MusterTensor): the values, in the order declared
 */
GPtrArray *muster_job_output_get_list (MusterJobOutput *self, GError **error);

/**
 * muster_job_output_fetch:
 * @self: the output
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the fetch
 *
 * Fetches the current value in the session of the last run: FAILED_PRECONDITION "Cannot fetch value
 * for this output." before it. A value set by a function is kept.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_output_fetch (MusterJobOutput *self, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/**
 * muster_job_output_set:
 * @self: the output
 * @values: (array length=n): the tensors, referenced
 * @n: their number
 *
 * Sets the value, for a task's function: "Wrong number of output values." (INVALID_ARGUMENT).
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_output_set (MusterJobOutput *self, MusterTensor *const *values, gsize n,
                                GError **error);

/* --- tasks --- */

/**
 * MusterJobTask:
 *
 * A step on a node, with setups and outputs.
 */
#define MUSTER_TYPE_JOB_TASK (muster_job_task_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobTask, muster_job_task, MUSTER, JOB_TASK, GObject)

/**
 * MUSTER_JOB_MAX_INSTANCES:
 *
 * The most copies of a task's step that run concurrently.
 */
#define MUSTER_JOB_MAX_INSTANCES 256

/**
 * muster_job_task_new:
 * @name: (nullable): NULL: the step's, else "task"
 * @node: (nullable): where it runs; NULL: "local"
 * @n_instances: this many copies of the step run concurrently; 0: one
 *
 * A task without a step.
 *
 * Returns: (transfer full): the task
 */
MusterJobTask *muster_job_task_new (const char *name, const char *node, guint n_instances);

/**
 * muster_job_task_set_step:
 * @self: the task
 * @step: what it runs, copied
 *
 * Sets the step. A task without a step only has outputs. A second step is FAILED_PRECONDITION
 * ("This Task already has an execution step.").
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_task_set_step (MusterJobTask *self, const MusterJobStep *step, GError **error);

/**
 * muster_job_task_add_setup:
 * @self: the task
 * @setup: steps around it
 * @each_instance: TRUE: around each of its instances; FALSE: around the whole task
 *
 * Adds a setup. Adding it twice does nothing.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_task_add_setup (MusterJobTask *self, MusterJobSetup *setup,
                                    gboolean each_instance, GError **error);

/**
 * muster_job_task_add_output:
 * @self: the task
 * @tensors: (nullable) (array zero-terminated=1): the tensors; NULL: one value, set by the task's
 *   function
 *
 * Declares tensors to fetch after the node's tasks, as one output.
 *
 * Returns: (transfer none): the output, borrowed from the task
 */
MusterJobOutput *muster_job_task_add_output (MusterJobTask *self, const char *const *tensors,
                                             GError **error);

/**
 * muster_job_task_name:
 * @self: the task
 *
 * Its name.
 *
 * Returns: "NODE/NAME", or "NODE/NAME:1" for the second with that name in its group; before it is
 *   in a group, NAME. Borrowed
 */
const char *muster_job_task_name (MusterJobTask *self);

/**
 * muster_job_task_node:
 * @self: the task
 *
 * Its node.
 *
 * Returns: the name, borrowed
 */
const char *muster_job_task_node (MusterJobTask *self);

/* --- groups --- */

/**
 * MusterJobGroup:
 *
 * A group of tasks, each on a node of a [class@Cluster]. Running a group starts all tasks at once
 * and ends with the last one; then the tasks' outputs are fetched, node by node. One thread builds
 * a group. After it has been run, compiled or listed it can't be changed (FAILED_PRECONDITION).
 */
#define MUSTER_TYPE_JOB_GROUP (muster_job_group_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobGroup, muster_job_group, MUSTER, JOB_GROUP, GObject)

/**
 * muster_job_group_new:
 *
 * A group without tasks.
 *
 * Returns: (transfer full): the group
 */
MusterJobGroup *muster_job_group_new (void);

/**
 * muster_job_group_add:
 * @self: the group
 * @task: a task that is in no other group
 *
 * Adds a task. "Cannot add Task to an already used TaskGroup."
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_group_add (MusterJobGroup *self, MusterJobTask *task, GError **error);

/**
 * muster_job_group_add_setup:
 * @self: the group
 * @node: a node
 * @setup: steps around all of its tasks
 *
 * Adds a setup for all of a node's tasks: init runs once before any, exit once after all. Adding it
 * twice does nothing.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_group_add_setup (MusterJobGroup *self, const char *node, MusterJobSetup *setup,
                                     GError **error);

/**
 * muster_job_group_add_report:
 * @self: the group
 * @node: a node
 * @step: what is repeated, copied
 * @interval_us: microseconds between two; 0: a second
 *
 * Repeats a step on a node while its tasks run, and once when they have ended. Corresponds to
 * Caffe2's report nets too.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_group_add_report (MusterJobGroup *self, const char *node,
                                      const MusterJobStep *step, gint64 interval_us,
                                      GError **error);

/**
 * muster_job_group_nodes:
 * @self: the group
 *
 * The nodes of its tasks in order of first use, each once. Tasks can still be added.
 *
 * Returns: (transfer full) (array zero-terminated=1): the names
 */
char **muster_job_group_nodes (MusterJobGroup *self);

/**
 * muster_job_group_tasks:
 * @self: the group
 *
 * Its tasks, in order. The group counts as used afterwards.
 *
 * Returns: (transfer none) (element-type MusterJobTask): the tasks
 */
GPtrArray *muster_job_group_tasks (MusterJobGroup *self);

/**
 * MusterJobPart:
 * @node: in the cluster
 * @tasks: (element-type MusterJobTask): its tasks
 * @setups: (element-type MusterJobSetup): its setups
 *
 * A node's part of a group; borrowed from the group.
 */
typedef struct {
  char *node;
  GPtrArray *tasks;
  GPtrArray *setups;
  /*< private >*/
  GPtrArray *reports;
} MusterJobPart;

/**
 * muster_job_group_tasks_by_node:
 * @self: the group
 * @names: (nullable) (element-type utf8 utf8): the group's node names to the cluster's; other names
 *   are kept
 *
 * Its tasks by node. A second call with other names fails with "Cannot call tasks_by_node multiple
 * times."; with the same ones it returns the same parts.
 *
 * Returns: (transfer none) (element-type MusterJobPart): a part for each node, borrowed
 */
GPtrArray *muster_job_group_tasks_by_node (MusterJobGroup *self, GHashTable *names, GError **error);

G_END_DECLS
