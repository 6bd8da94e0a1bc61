// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* What a job runs (behaviours B003.12 to B003.26): MusterJobGroup is a group of tasks, each on a
 * node of a cluster (jobs/cluster.h). A group's run starts all of its tasks at once and ends when
 * the last one has; then the tasks' outputs are fetched, node by node.
 *
 * For those who know Caffe2: a net or an execution step is a MusterJobStep, ops of the node's graph
 * or a function. What stands in a GLOBAL workspace there, shared by a node's tasks and kept from
 * run to run, is the variables on the node's master. A PRIVATE workspace is the tensors of a
 * RunStep, which go with it: what is to outlive the run is declared as an output. Groups and tasks
 * have no kind, so none can contradict another's.
 *
 * A group is put together by one thread; once it has run, been compiled or listed it can't be
 * changed any more (FAILED_PRECONDITION). */

typedef struct _MusterClusterNode MusterClusterNode; /* jobs/cluster.h */

/* Work on a node, on a thread of its own: other functions of the group run beside it. */
typedef gboolean (*MusterJobFunc) (MusterClusterNode *node, gint64 deadline_us,
                                   GCancellable *cancellable, gpointer user_data, GError **error);

/* Ops of the node's graph, or a function. Everything is copied, feeds' tensors are referenced. */
typedef struct {
  const char *name;           /* (nullable) that of a task without one */
  const char *const *targets; /* (nullable) ops, NULL-terminated: one RunStep runs them all */
  const MusterFeed *feeds;
  gsize n_feeds;
  guint64 repeat;         /* so many RunSteps, one after the other; 0: one */
  gboolean until_end;     /* until one of them says OUT_OF_RANGE, which is no failure here; repeat
                             is then the most (0: any number) */
  MusterJobFunc func;     /* (nullable) in the place of targets */
  gpointer user_data;     /* func's */
  GDestroyNotify destroy; /* (nullable) of user_data */
} MusterJobStep;

/* --- setups --- */

#define MUSTER_TYPE_JOB_SETUP (muster_job_setup_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobSetup, muster_job_setup, MUSTER, JOB_SETUP, GObject)

/* What is run before, init (nullable), and after something else, exit (nullable). Where that fails,
 * the exit isn't run. */
MusterJobSetup *muster_job_setup_new (const MusterJobStep *init, const MusterJobStep *exit);

/* --- outputs --- */

#define MUSTER_TYPE_JOB_OUTPUT (muster_job_output_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobOutput, muster_job_output, MUSTER, JOB_OUTPUT, GObject)

/* The value as the group's last run left it (transfer full): FAILED_PRECONDITION "Output value not
 * set yet." before there was one. An output of several tensors has a list, in the order declared
 * (element-type MusterTensor); get gives the only one. */
MusterTensor *muster_job_output_get (MusterJobOutput *self, GError **error);
GPtrArray *muster_job_output_get_list (MusterJobOutput *self, GError **error);

/* Fetches it anew, as it is now, in the session of its last run: FAILED_PRECONDITION "Cannot fetch
 * value for this output." before there was one. What a function has set stays. */
gboolean muster_job_output_fetch (MusterJobOutput *self, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/* For a task's function that has the value: "Wrong number of output values." (INVALID_ARGUMENT).
 * The tensors are referenced. */
gboolean muster_job_output_set (MusterJobOutput *self, MusterTensor *const *values, gsize n,
                                GError **error);

/* --- tasks --- */

#define MUSTER_TYPE_JOB_TASK (muster_job_task_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobTask, muster_job_task, MUSTER, JOB_TASK, GObject)

#define MUSTER_JOB_MAX_INSTANCES 256

/* Without name (nullable): the step's, else "task"; without node (nullable): "local". n_instances
 * copies of the step run beside each other (0: one). */
MusterJobTask *muster_job_task_new (const char *name, const char *node, guint n_instances);

/* A task without a step is fine: it only has outputs. A second step is FAILED_PRECONDITION ("This
 * Task already has an execution step."). */
gboolean muster_job_task_set_step (MusterJobTask *self, const MusterJobStep *step, GError **error);

/* Around all of the task's instances, or around each of them. The same setup again changes
 * nothing. */
gboolean muster_job_task_add_setup (MusterJobTask *self, MusterJobSetup *setup,
                                    gboolean each_instance, GError **error);

/* The tensors (nullable) to fetch when the node's tasks have ended (NULL-terminated), as one
 * output. NULL: one value, which the task's function sets. Borrowed from the task. */
MusterJobOutput *muster_job_task_add_output (MusterJobTask *self, const char *const *tensors,
                                             GError **error);

/* "NODE/NAME", and "NODE/NAME:1" for the second of that name in its group; before it is in one,
 * the name alone. Both borrowed. */
const char *muster_job_task_name (MusterJobTask *self);
const char *muster_job_task_node (MusterJobTask *self);

/* --- groups --- */

#define MUSTER_TYPE_JOB_GROUP (muster_job_group_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobGroup, muster_job_group, MUSTER, JOB_GROUP, GObject)

MusterJobGroup *muster_job_group_new (void);

/* "Cannot add Task to an already used TaskGroup."; a task is in one group at most. */
gboolean muster_job_group_add (MusterJobGroup *self, MusterJobTask *task, GError **error);

/* Around all of a node's tasks: once before any, once after all. The same setup again changes
 * nothing. */
gboolean muster_job_group_add_setup (MusterJobGroup *self, const char *node, MusterJobSetup *setup,
                                     GError **error);

/* Repeats a step on a node while its tasks run, every interval_us (0: a second), and once more when
 * they have ended. It takes the place of Caffe2's report nets as well. */
gboolean muster_job_group_add_report (MusterJobGroup *self, const char *node,
                                      const MusterJobStep *step, gint64 interval_us,
                                      GError **error);

/* The nodes of its tasks, first use first, each once (transfer full). The group may still grow. */
char **muster_job_group_nodes (MusterJobGroup *self);

/* Its tasks, in order (transfer none) (element-type MusterJobTask): it is used from then on. */
GPtrArray *muster_job_group_tasks (MusterJobGroup *self);

/* A node's part of a group; borrowed from the group. */
typedef struct {
  char *node;         /* in the cluster */
  GPtrArray *tasks;   /* (element-type MusterJobTask) */
  GPtrArray *setups;  /* (element-type MusterJobSetup) */
  GPtrArray *reports; /* private */
} MusterJobPart;

/* Its tasks by node (transfer none) (element-type MusterJobPart). names (nullable) maps the group's
 * names of nodes to the cluster's; a name that isn't in it stays. Once for each group: with other
 * names "Cannot call tasks_by_node multiple times.", with the same ones the same parts. */
GPtrArray *muster_job_group_tasks_by_node (MusterJobGroup *self, GHashTable *names, GError **error);

G_END_DECLS
