// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/train_role.h"

#include "cli/common/usage_error.h"
#include "session/cluster/cluster_spec_private.h"

#include <string.h>

#define MOST_TASKS 100000

void
muster_train_role_clear (MusterTrainRole *self)
{
  g_clear_pointer (&self->task, g_free);
  g_clear_pointer (&self->master, g_free);
}

/* --- TF_CONFIG --- */

static gboolean
take_cluster (MusterTrainRole *self, const MusterClusterSpec *cluster, GError **error)
{
  const char *job = muster_cluster_spec_job (cluster);
  const guint index = muster_cluster_spec_index (cluster);
  const gint number = muster_cluster_spec_trainer (cluster);
  self->n_tasks = MAX (muster_cluster_spec_n_trainers (cluster), 1);
  if (job == NULL)
    return TRUE; /* no task: the job has one task */
  g_autofree char *name = g_strdup_printf ("%s:%u", job, index);
  if (number < 0 && g_str_equal (job, "ps"))
    return muster_cli_usage_error (
        error,
        "TF_CONFIG: this task is '%s', but train runs only the chief and workers; run `muster "
        "serve --master=tensorflow --task=%s`",
        name, name);
  if (number < 0 && g_str_equal (job, "evaluator"))
    return muster_cli_usage_error (
        error,
        "TF_CONFIG: this task is '%s', but train runs only the chief and workers; run `muster "
        "evaluate`",
        name);
  if (number < 0)
    return muster_cli_usage_error (
        error, "TF_CONFIG: this task is '%s', but train runs only the chief and workers", name);
  self->index = (guint)number;
  self->is_worker = number > 0;
  g_free (self->task);
  self->task = g_steal_pointer (&name);
  return TRUE;
}

/* --- the command line */

static gboolean
take_task (MusterTrainRole *self, const char *task, GError **error)
{
  guint64 number = 0;
  gboolean is_worker = g_str_has_prefix (task, "worker:");
  if (strcmp (task, "chief") != 0 && strcmp (task, "chief:0") != 0 &&
      !(is_worker &&
        g_ascii_string_to_unsigned (task + strlen ("worker:"), 10, 0, MOST_TASKS, &number, NULL)))
    return muster_cli_usage_error (
        error, "invalid --task '%s' (use chief:0, worker:N with N from 0, or auto)", task);
  self->is_worker = is_worker;
  self->index = is_worker ? (guint)number + 1 : 0;
  if (self->index >= self->n_tasks)
    return muster_cli_usage_error (error,
                                   "--task=%s needs --tasks=%u or more (the chief and all workers)",
                                   task, self->index + 1);
  g_free (self->task);
  self->task = g_strdup (is_worker ? task : "chief:0");
  return TRUE;
}

/* Slurm numbers a job step's tasks. The number is only a name here. */
static gboolean
take_auto (MusterTrainRole *self, int n_tasks, GError **error)
{
  const char *number = g_getenv ("SLURM_PROCID");
  if (n_tasks > 0)
    return muster_cli_usage_error (error,
                                   "--tasks can't be combined with --task=auto, whose number "
                                   "of tasks may change; use --min-tasks and --max-tasks");
  self->is_elastic = TRUE;
  self->n_tasks = 1;
  g_free (self->task);
  self->task = number != NULL && g_ascii_string_to_unsigned (number, 10, 0, MOST_TASKS, NULL, NULL)
                   ? g_strdup_printf ("task:%s", number)
                   : NULL;
  return TRUE;
}

/* TRUE if the cluster says the same. */
static gboolean
is_own_task (const MusterClusterSpec *cluster, const char *task)
{
  const char *job = muster_cluster_spec_job (cluster);
  g_autofree char *own =
      job != NULL ? g_strdup_printf ("%s:%u", job, muster_cluster_spec_index (cluster)) : NULL;
  return g_strcmp0 (own, task) == 0;
}

gboolean
muster_train_role_read (MusterTrainRole *self, const char *task, int n_tasks, const char *master,
                        const MusterClusterSpec *cluster, GError **error)
{
  g_auto (MusterTrainRole) role = {.n_tasks = 1, .task = g_strdup ("chief:0")};
  if (n_tasks < 0 || n_tasks > MOST_TASKS)
    return muster_cli_usage_error (
        error, "invalid --tasks '%d' (use the number of workers plus the chief)", n_tasks);
  if (is_own_task (cluster, task))
    task = NULL;
  if (n_tasks == 0 && muster_cluster_spec_is_outside (cluster))
    return muster_cli_usage_error (
        error,
        "a worker outside the cluster needs --tasks=N, the number of workers plus the chief, "
        "the same in every task");
  if (task == NULL && !take_cluster (&role, cluster, error))
    return FALSE;
  if (g_strcmp0 (task, "auto") == 0) {
    if (!take_auto (&role, n_tasks, error))
      return FALSE;
  } else if (task != NULL) {
    role.n_tasks = n_tasks > 0 ? (guint)n_tasks : MAX (muster_cluster_spec_n_trainers (cluster), 1);
    if (!take_task (&role, task, error))
      return FALSE;
  } else if (n_tasks > 0) {
    role.n_tasks = (guint)n_tasks;
    if (role.index >= role.n_tasks)
      return muster_cli_usage_error (error, "--tasks=%d is too few: TF_CONFIG makes this task %u",
                                     n_tasks, role.index + 1);
  }
  role.master = g_strdup (master);
  *self = role;
  role = (MusterTrainRole){0};
  return TRUE;
}
