// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* What a job runs (behaviours B003.12 to B003.26). MusterJobGroup is a group of tasks, each on a
 * node of a cluster (jobs/cluster.h). Running a group starts all tasks at once and ends with the
 * last one; then the tasks' outputs are fetched, node by node.
 *
 * Compared with Caffe2: a net or an execution step is a MusterJobStep, which is ops of the node's
 * graph or a function. A GLOBAL workspace, shared by a node's tasks and kept between runs, is the
 * variables on the node's master. A PRIVATE workspace is the tensors of a RunStep, which are
 * dropped with it; declare those that are needed afterwards as outputs. Groups and tasks have no
 * workspace type, so none can conflict.
 *
 * One thread builds a group. After it has been run, compiled or listed it can't be changed
 * (FAILED_PRECONDITION). */

typedef struct _MusterClusterNode MusterClusterNode; /* jobs/cluster.h */

/* Work on a node, on its own thread, concurrent with other functions of the group. */
typedef gboolean (*MusterJobFunc) (MusterClusterNode *node, gint64 deadline_us,
                                   GCancellable *cancellable, gpointer user_data, GError **error);

/* Ops of the node's graph, or a function. Everything is copied; the feeds' tensors are referenced.
 */
typedef struct {
  const char *name;           /* (nullable) the name of a task without one */
  const char *const *targets; /* (nullable) ops, NULL-terminated, all run in one RunStep */
  const MusterFeed *feeds;
  gsize n_feeds;
  guint64 repeat;         /* number of RunSteps, one after another; 0: one */
  gboolean until_end;     /* run until OUT_OF_RANGE, which isn't a failure here; repeat is then the
                             maximum (0: no limit) */
  MusterJobFunc func;     /* (nullable) instead of targets */
  gpointer user_data;     /* func's */
  GDestroyNotify destroy; /* (nullable) of user_data */
} MusterJobStep;

/* --- setups --- */

#define MUSTER_TYPE_JOB_SETUP (muster_job_setup_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobSetup, muster_job_setup, MUSTER, JOB_SETUP, GObject)

/* Steps to run before, init (nullable), and after, exit (nullable), something else. If that fails,
 * exit isn't run. */
MusterJobSetup *muster_job_setup_new (const MusterJobStep *init, const MusterJobStep *exit);

/* --- outputs --- */

#define MUSTER_TYPE_JOB_OUTPUT (muster_job_output_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobOutput, muster_job_output, MUSTER, JOB_OUTPUT, GObject)

/* The value from the group's last run (transfer full); FAILED_PRECONDITION "Output value not set
 * yet." before it. An output of several tensors is a list, in the order declared (element-type
 * MusterTensor); get returns a single one. */
MusterTensor *muster_job_output_get (MusterJobOutput *self, GError **error);
GPtrArray *muster_job_output_get_list (MusterJobOutput *self, GError **error);

/* Fetches the current value in the session of the last run: FAILED_PRECONDITION "Cannot fetch value
 * for this output." before it. A value set by a function is kept. */
gboolean muster_job_output_fetch (MusterJobOutput *self, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/* Sets the value, for a task's function: "Wrong number of output values." (INVALID_ARGUMENT). The
 * tensors are referenced. */
gboolean muster_job_output_set (MusterJobOutput *self, MusterTensor *const *values, gsize n,
                                GError **error);

/* --- tasks --- */

#define MUSTER_TYPE_JOB_TASK (muster_job_task_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobTask, muster_job_task, MUSTER, JOB_TASK, GObject)

#define MUSTER_JOB_MAX_INSTANCES 256

/* name (nullable): the step's, else "task"; node (nullable): "local". n_instances copies of the
 * step run concurrently (0: one). */
MusterJobTask *muster_job_task_new (const char *name, const char *node, guint n_instances);

/* Sets the step. A task without a step only has outputs. A second step is FAILED_PRECONDITION
 * ("This Task already has an execution step."). */
gboolean muster_job_task_set_step (MusterJobTask *self, const MusterJobStep *step, GError **error);

/* Adds a setup for the whole task, or for each of its instances. Adding it twice does nothing. */
gboolean muster_job_task_add_setup (MusterJobTask *self, MusterJobSetup *setup,
                                    gboolean each_instance, GError **error);

/* Declares tensors (nullable) to fetch after the node's tasks (NULL-terminated), as one output.
 * NULL: one value, set by the task's function. Borrowed from the task. */
MusterJobOutput *muster_job_task_add_output (MusterJobTask *self, const char *const *tensors,
                                             GError **error);

/* "NODE/NAME", or "NODE/NAME:1" for the second with that name in its group; before it is in a
 * group, NAME. Both borrowed. */
const char *muster_job_task_name (MusterJobTask *self);
const char *muster_job_task_node (MusterJobTask *self);

/* --- groups --- */

#define MUSTER_TYPE_JOB_GROUP (muster_job_group_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobGroup, muster_job_group, MUSTER, JOB_GROUP, GObject)

MusterJobGroup *muster_job_group_new (void);

/* "Cannot add Task to an already used TaskGroup."; a task can be in one group only. */
gboolean muster_job_group_add (MusterJobGroup *self, MusterJobTask *task, GError **error);

/* Adds a setup for all of a node's tasks: init runs once before any, exit once after all. Adding it
 * twice does nothing. */
gboolean muster_job_group_add_setup (MusterJobGroup *self, const char *node, MusterJobSetup *setup,
                                     GError **error);

/* Repeats a step on a node while its tasks run, every interval_us (0: a second), and once when they
 * have ended. Corresponds to Caffe2's report nets too. */
gboolean muster_job_group_add_report (MusterJobGroup *self, const char *node,
                                      const MusterJobStep *step, gint64 interval_us,
                                      GError **error);

/* The nodes of its tasks in order of first use, each once (transfer full). Tasks can still be
 * added. */
char **muster_job_group_nodes (MusterJobGroup *self);

/* Its tasks, in order (transfer none) (element-type MusterJobTask). The group counts as used
 * afterwards. */
GPtrArray *muster_job_group_tasks (MusterJobGroup *self);

/* A node's part of a group; borrowed from the group. */
typedef struct {
  char *node;         /* in the cluster */
  GPtrArray *tasks;   /* (element-type MusterJobTask) */
  GPtrArray *setups;  /* (element-type MusterJobSetup) */
  GPtrArray *reports; /* private */
} MusterJobPart;

/* Its tasks by node (transfer none) (element-type MusterJobPart). names (nullable) maps the group's
 * node names to the cluster's; other names are kept. A second call with other names fails with
 * "Cannot call tasks_by_node multiple times."; with the same ones it returns the same parts. */
GPtrArray *muster_job_group_tasks_by_node (MusterJobGroup *self, GHashTable *names, GError **error);

G_END_DECLS
