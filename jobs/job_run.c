// SPDX-License-Identifier: Apache-2.0
/* Runs a group: nodes, a node's tasks, and a task's instances all concurrently. The first failure
 * cancels the rest, and all are joined. */
#include "base/check_time_private.h"
#include "jobs/cluster_private.h"
#include "jobs/job_group_private.h"

typedef struct {
  MusterClock *clock; /* (not owned) */
  gint64 deadline_us;
  GCancellable *cancellable; /* (owned) the run's own */
  GMutex lock;
  GError *error; /* (owned) (nullable) the first; guarded by lock */
} Run;

/* One node's part. */
typedef struct {
  Run *run;
  MusterClusterNode *node;
  const MusterJobPart *part;
  GCancellable *ended; /* (owned) (nullable) cancelled when its tasks have ended */
} NodeRun;

typedef struct {
  NodeRun *node_run;
  MusterJobTask *task;           /* of a task or an instance */
  const MusterJobBeside *report; /* of a report */
} TaskRun;

/* --- threads --- */

/* Runs func on each item concurrently, the last one on this thread. */
static void
run_beside (GThreadFunc func, const char *name, gpointer items, gsize size, guint n)
{
  g_autofree GThread **threads = g_new0 (GThread *, n);

  if (n == 0)
    return;
  for (guint i = 0; i + 1 < n; i++)
    threads[i] = g_thread_new (name, func, (char *)items + i * size);
  func ((char *)items + (n - 1) * size);
  for (guint i = 0; i + 1 < n; i++)
    g_thread_join (threads[i]);
}

static gboolean
has_failed (Run *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->error != NULL;
}

/* Keeps the first failure, with its node and task, and cancels the others. */
static void
fail_task (NodeRun *self, MusterJobTask *task, GError *failure)
{
  Run *run = self->run;
  if (task != NULL)
    g_prefix_error (&failure, "Node '%s', task '%s': ", self->node->name,
                    muster_job_task_name (task));
  else
    g_prefix_error (&failure, "Node '%s': ", self->node->name);
  g_mutex_lock (&run->lock);
  if (run->error == NULL)
    run->error = g_steal_pointer (&failure);
  g_mutex_unlock (&run->lock);
  g_clear_error (&failure);
  g_cancellable_cancel (run->cancellable);
}

/* --- steps --- */

static gboolean
run_ops (NodeRun *self, const MusterJobStep *work, GError **error)
{
  MusterStep step = {.feeds = work->feeds,
                     .n_feeds = work->n_feeds,
                     .targets = work->targets,
                     .n_targets =
                         work->targets != NULL ? g_strv_length ((char **)work->targets) : 0,
                     .deadline_us = self->run->deadline_us};
  const guint64 n = work->repeat > 0 ? work->repeat : work->until_end ? G_MAXUINT64 : 1;
  for (guint64 i = 0; step.n_targets > 0 && i < n; i++) {
    g_autoptr (GError) failure = NULL;
    if (g_cancellable_set_error_if_cancelled (self->run->cancellable, error))
      return FALSE;
    if (muster_session_run (self->node->session, &step, NULL, NULL, self->run->cancellable,
                            &failure))
      continue;
    if (work->until_end && muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE))
      return TRUE;
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  return TRUE;
}

/* Returns FALSE if the run has failed, here or in another task. */
static gboolean
run_work (NodeRun *self, MusterJobTask *task, const MusterJobStep *work)
{
  GError *failure = NULL;
  if (has_failed (self->run))
    return FALSE;
  if (work == NULL)
    return TRUE;
  if (work->func != NULL ? work->func (self->node, self->run->deadline_us, self->run->cancellable,
                                       work->user_data, &failure)
                         : run_ops (self, work, &failure))
    return TRUE;
  fail_task (self, task, failure);
  return FALSE;
}

static gboolean
run_setups (NodeRun *self, MusterJobTask *task, GPtrArray *setups, gboolean is_exit)
{
  for (guint i = 0; i < setups->len; i++) {
    const MusterJobSetup *setup = setups->pdata[is_exit ? setups->len - 1 - i : i];
    if (!run_work (self, task, is_exit ? setup->exit : setup->init))
      return FALSE;
  }
  return TRUE;
}

/* --- tasks --- */

static gpointer
run_instance (gpointer data)
{
  TaskRun *self = data;
  MusterJobTask *task = self->task;
  (void)(run_setups (self->node_run, task, task->instance_setups, FALSE) &&
         run_work (self->node_run, task, task->step) &&
         run_setups (self->node_run, task, task->instance_setups, TRUE));
  return NULL;
}

static gpointer
run_task (gpointer data)
{
  TaskRun *self = data;
  MusterJobTask *task = self->task;
  g_autofree TaskRun *instances = g_new0 (TaskRun, task->n_instances);

  for (guint i = 0; i < task->n_instances; i++)
    instances[i] = *self;
  if (run_setups (self->node_run, task, task->setups, FALSE)) {
    run_beside (run_instance, "job-instance", instances, sizeof *instances, task->n_instances);
    (void)run_setups (self->node_run, task, task->setups, TRUE);
  }
  return NULL;
}

/* Repeats until the tasks have ended, and once after that. */
static gpointer
run_report (gpointer data)
{
  TaskRun *self = data;
  NodeRun *node_run = self->node_run;
  MusterClock *clock = node_run->run->clock;
  gboolean goes_on = TRUE;
  while (goes_on) {
    const gint64 wake_us =
        muster_deadline_after (muster_clock_now_us (clock), self->report->interval_us);
    goes_on = muster_clock_wait_until (clock, wake_us, node_run->ended, NULL);
    goes_on = run_work (node_run, NULL, self->report->report) && goes_on;
  }
  return NULL;
}

static void
run_tasks (NodeRun *self)
{
  GPtrArray *tasks = self->part->tasks;
  g_autofree TaskRun *runs = g_new0 (TaskRun, tasks->len);

  for (guint i = 0; i < tasks->len; i++)
    runs[i] = (TaskRun){.node_run = self, .task = tasks->pdata[i]};
  run_beside (run_task, "job-task", runs, sizeof *runs, tasks->len);
  g_cancellable_cancel (self->ended);
}

static void
run_tasks_and_reports (NodeRun *self)
{
  GPtrArray *reports = self->part->reports;
  g_autofree TaskRun *runs = g_new0 (TaskRun, reports->len);
  g_autofree GThread **threads = g_new0 (GThread *, reports->len);

  for (guint i = 0; i < reports->len; i++) {
    runs[i] = (TaskRun){.node_run = self, .report = reports->pdata[i]};
    threads[i] = g_thread_new ("job-report", run_report, &runs[i]);
  }
  run_tasks (self);
  for (guint i = 0; i < reports->len; i++)
    g_thread_join (threads[i]);
}

/* --- outputs --- */

static void
tensor_unref (gpointer tensor)
{
  muster_tensor_unref (tensor);
}

static void
hand_out (NodeRun *self, GPtrArray *outputs, MusterTensor **fetched)
{
  gsize next = 0;
  for (guint i = 0; i < outputs->len; i++) {
    MusterJobOutput *output = outputs->pdata[i];
    GPtrArray *values = g_ptr_array_new_with_free_func (tensor_unref);
    for (gsize j = 0; j < output->n; j++)
      g_ptr_array_add (values, fetched[next++]);
    muster_job_output_take (output, self->node->session, values);
  }
}

/* Fetches all outputs of the node's tasks in one step. */
static void
fetch_outputs (NodeRun *self)
{
  g_autoptr (GPtrArray) outputs = g_ptr_array_new ();
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  GError *failure = NULL;
  for (guint i = 0; i < self->part->tasks->len; i++) {
    MusterJobTask *task = self->part->tasks->pdata[i];
    for (guint j = 0; j < task->outputs->len; j++) {
      MusterJobOutput *output = task->outputs->pdata[j];
      if (output->tensors == NULL)
        continue;
      g_ptr_array_add (outputs, output);
      for (gsize k = 0; k < output->n; k++)
        g_ptr_array_add (names, output->tensors[k]);
    }
  }
  if (names->len == 0)
    return;
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, names->len);
  MusterStep step = {.fetches = (const char *const *)names->pdata,
                     .n_fetches = names->len,
                     .deadline_us = self->run->deadline_us};
  if (muster_session_run (self->node->session, &step, fetched, NULL, self->run->cancellable,
                          &failure)) {
    hand_out (self, outputs, fetched);
    return;
  }
  g_prefix_error (&failure, "fetching outputs: ");
  fail_task (self, NULL, failure);
}

/* --- nodes --- */

static gpointer
run_node (gpointer data)
{
  NodeRun *self = data;
  if (!run_setups (self, NULL, self->part->setups, FALSE))
    return NULL;
  run_tasks_and_reports (self);
  if (run_setups (self, NULL, self->part->setups, TRUE) && !has_failed (self->run))
    fetch_outputs (self);
  return NULL;
}

static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  g_cancellable_cancel (data);
}

gboolean
muster_job_group_run (MusterJobGroup *self, MusterCluster *cluster, gint64 deadline_us,
                      GCancellable *cancellable, GError **error)
{
  g_autoptr (GCancellable) own = g_cancellable_new ();
  g_autofree NodeRun *nodes = g_new0 (NodeRun, self->parts->len);
  Run run = {
      .clock = muster_cluster_clock (cluster), .deadline_us = deadline_us, .cancellable = own};

  if (!muster_check_time ("Running its tasks", deadline_us, cancellable, error))
    return FALSE;
  g_mutex_init (&run.lock);
  for (guint i = 0; i < self->parts->len; i++) {
    const MusterJobPart *part = self->parts->pdata[i];
    nodes[i] = (NodeRun){.run = &run,
                         .node = muster_cluster_node (cluster, part->node),
                         .part = part,
                         .ended = g_cancellable_new ()};
  }
  const gulong id = cancellable != NULL
                        ? g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), own, NULL)
                        : 0;
  run_beside (run_node, "job-node", nodes, sizeof *nodes, self->parts->len);
  g_cancellable_disconnect (cancellable, id);
  for (guint i = 0; i < self->parts->len; i++)
    g_object_unref (nodes[i].ended);
  g_mutex_clear (&run.lock);
  if (run.error == NULL)
    return TRUE;
  g_propagate_error (error, run.error);
  return FALSE;
}
