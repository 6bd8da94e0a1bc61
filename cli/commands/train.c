// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include "base/log_private.h"
#include "checkpoint/s3/s3_metrics.h"
#include "cli/commands/operation.h"
#include "cli/commands/train_data.h"
#include "cli/commands/train_options.h"
#include "cli/commands/train_role.h"
#include "cli/commands/train_show.h"
#include "cli/common/cli.h"
#include "cli/common/example.h"
#include "graph/device_name_private.h"
#include "graph/graph_walk_private.h"
#include "master/remote/target.h"
#include "train/completion/completion.h"
#include "train/completion/step_waits_private.h"
#include "train/completion/sync_replicas_private.h"
#include "train/position/position_private.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* The time after the grace at which the process ends in any case. */
#define OVERDUE_US (500 * MUSTER_MILLISECOND)

/* The loss to report: the one given, or the first of the graph's collection, or NULL. */
static gboolean
find_loss (MusterScaffold *scaffold, const char *asked, char **loss, GError **error)
{
  const char *own = muster_meta_graph_op (muster_scaffold_meta_graph (scaffold), "losses");
  const char *name = asked != NULL ? asked : own;
  g_autofree char *op = NULL;
  *loss = NULL;
  if (name == NULL)
    return TRUE;
  const int output = muster_graph_split_input (name, &op);
  if (output >= 0 && muster_graph_has_node (muster_scaffold_graph (scaffold), op)) {
    *loss = g_strdup_printf ("%s:%d", op, output);
    return TRUE;
  }
  if (asked == NULL) /* a collection may name a tensor that was not exported */
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "--loss: the graph has no tensor '%s'",
                      asked);
}

/* A name that the graph doesn't have may be an evaluator's, or a mistake. */
static void
say_metric (MusterScaffold *scaffold, const MusterTrainOptions *command, const char *loss)
{
  const char *metric = command->training.saver.metric;
  const char *colon = metric != NULL ? strrchr (metric, ':') : NULL;
  g_autofree char *op = NULL;
  if (colon == NULL)
    return;
  g_autofree char *name = g_strndup (metric, (gsize)(colon - metric));
  if ((muster_graph_split_input (name, &op) >= 0 &&
       muster_graph_has_node (muster_scaffold_graph (scaffold), op)) ||
      (loss != NULL && strcmp (name, "loss") == 0))
    return;
  muster_cli_say (stderr,
                  "metric '%s' isn't in the graph; its values come from `muster checkpoint mark`\n",
                  name);
}

/* --- one training --- */

typedef struct {
  const MusterTrainOptions *command;
  const MusterCliOptions *options; /* the command's common ones */
  const MusterTrainRole *role;
  MusterScaffold *scaffold;     /* (owned) */
  MusterTrainData data;         /* (owned) */
  MusterBatches *batches;       /* (owned) (nullable) */
  char *loss;                   /* (owned) (nullable) */
  MusterPreemption *preemption; /* (owned) */
} Job;

static void
job_clear (Job *self)
{
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  muster_train_data_clear (&self->data);
  g_clear_pointer (&self->batches, muster_batches_free);
  g_free (self->loss);
  g_clear_object (&self->preemption);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, job_clear)

/* In a TensorFlow cluster each task has its own. */
static gboolean
has_own_master (const MusterCliOptions *options)
{
  return options->target_from_spec && muster_cluster_spec_has_own_masters (options->spec);
}

/* Its tasks are members of the job at the coordinator, and one of them is its chief. */
static gboolean
is_coordinated (const MusterTrainOptions *command)
{
  return command->common.coordinator != NULL && has_own_master (&command->common);
}

/* The positions' variables have to be on one task for all masters, as those of a model that names
 * none aren't. */
static gboolean
check_positions (const Job *self, GError **error)
{
  if (!self->command->positions)
    return TRUE;
  if (self->command->training.without_positions)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "use --positions or --no-positions, not both");
  g_autofree char *task =
      muster_device_task (muster_position_device (muster_scaffold_meta_graph (self->scaffold)));
  return task != NULL || !has_own_master (self->options) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "--positions needs the global step on a parameter server, but the graph "
                      "doesn't place it on a job; export it with a replica_device_setter");
}

/* Without positions, a different seed gives each task its own order of the rows. */
static guint64
seed_of (const Job *self)
{
  const gboolean is_apart =
      (has_own_master (self->options) && !self->command->positions) ||
      muster_graph_has_node (muster_scaffold_graph (self->scaffold), MUSTER_SYNC_TOKENS);
  return (guint64)self->command->seed + (is_apart ? self->role->index : 0);
}

/* Only the graph's own input can end by itself. */
static gboolean
check_end (const Job *self, GError **error)
{
  return self->command->training.until_step > 0 || self->command->training.epochs > 0 ||
         muster_meta_graph_has_own_input (muster_scaffold_meta_graph (self->scaffold)) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "train needs either --steps=N, the global step to reach, or --epochs=N");
}

/* Checks all input before a session or thread is created. */
static gboolean
load (Job *self, GError **error)
{
  const MusterTrainOptions *command = self->command;
  self->scaffold = muster_cli_scaffold (self->options, error);
  if (self->scaffold == NULL ||
      !muster_train_data_read (&self->data, self->scaffold, command->feeds, command->rows,
                               command->batch_size, error) ||
      !check_end (self, error) || !check_positions (self, error) ||
      !find_loss (self->scaffold, command->loss, &self->loss, error))
    return FALSE;
  if (!self->options->json && !self->role->is_worker)
    say_metric (self->scaffold, command, self->loss);
  if (self->data.n_feeds == 0)
    return TRUE;
  self->batches = muster_batches_new (self->data.arrays, self->data.n_batched,
                                      self->data.batch_size, seed_of (self), error);
  for (gsize i = self->data.n_batched; self->batches != NULL && i < self->data.n_feeds; i++)
    muster_batches_add_constant (self->batches, self->data.arrays[i]);
  return self->batches != NULL;
}

static void
end_preempted (int number G_GNUC_UNUSED)
{
  _exit (MUSTER_EXIT_PREEMPTED);
}

/* Until the training handles its signals (MusterLive), there is nothing to save: SIGTERM ends the
 * process with the code that it has later, too. A shell's background jobs ignore SIGINT. */
static void
take_early_signals (void)
{
  static const int numbers[] = {SIGINT, SIGTERM};
  const struct sigaction early = {.sa_handler = end_preempted};
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++) {
    struct sigaction before;
    if (sigaction (numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
      sigaction (numbers[i], &early, NULL);
  }
}

/* The process ends soon after its grace, whatever it is doing: a step is cancelled between its
 * nodes only, and one of them may not end. */
static void
bound_grace (gint64 grace_us)
{
  const struct sigaction late = {.sa_handler = end_preempted};
  const gint64 late_us = muster_deadline_after (grace_us, OVERDUE_US);
  const struct itimerval timer = {
      .it_value = {.tv_sec = late_us / MUSTER_SECOND, .tv_usec = late_us % MUSTER_SECOND}};
  sigaction (SIGALRM, &late, NULL);
  (void)setitimer (ITIMER_REAL, &timer, NULL);
}

static gboolean
on_signal (int number, gpointer user_data)
{
  MusterTrainShow *show = user_data;
  g_auto (MusterPreemptionReport) report = {0};
  (void)muster_preemption_report (show->preemption, &report);
  bound_grace (report.grace_us);
  if (!show->options->json) {
    g_autofree char *text = g_strdup_printf (
        "%s: stopping after this step; signal again to exit immediately", strsignal (number));
    muster_live_say (show->live, stderr, text);
  }
  muster_preemption_request (show->preemption, number);
  return TRUE;
}

static gboolean
train (Job *self, MusterMaster *master, MusterTrainShow *show, MusterTrained *trained,
       GError **error)
{
  const MusterCliOptions *options = self->options;
  const MusterTrainRole *role = self->role;
  g_autoptr (MusterTrainingObserver) observer = muster_train_show_observer (show);
  MusterTraining training = self->command->training;
  MusterMonitoredTrainingOptions *session = &training.session;
  session->restore.count_deaths = TRUE;
  session->restore.progress = muster_live_restoring;
  session->restore.user_data = show->live;
  session->scaffold = self->scaffold;
  session->master = master;
  session->is_worker = role->is_worker;
  training.is_elastic = role->is_elastic || is_coordinated (self->command);
  session->manager.model = options->model;
  session->manager.task = role->task;
  training.task_number = role->index;
  session->n_tasks = role->n_tasks;
  training.batches = self->batches;
  training.feeds = (const char *const *)self->data.feeds;
  training.n_feeds = self->data.n_feeds;
  training.loss = self->loss;
  session->own_masters = has_own_master (options);
  training.without_positions =
      training.without_positions || (session->own_masters && !self->command->positions);
  training.ends_job = !role->is_worker || training.is_elastic;
  session->saving.preemption = self->preemption;
  session->timeout_us = options->timeout_us == MUSTER_WAIT_FOREVER ? 0 : options->timeout_us;
  session->manager.cluster = (const char *const *)options->addresses;
  session->manager.chief = options->chief;
  session->manager.config = options->config;
  training.observer = observer;
  return muster_train (&training, trained, NULL, error);
}

/* A server has these in /metrics; a chief that sends its checkpoints itself has only this. */
static void
log_object_store (void)
{
  MusterS3Metrics counts;
  muster_s3_metrics (&counts);
  const guint64 retries = counts.retries_throttled + counts.retries_failed + counts.retries_lost +
                          counts.retries_stalled + counts.retries_damaged + counts.retries_expired;
  if (counts.requests == 0)
    return;
  g_autofree char *sent = muster_format_size (counts.bytes_sent);
  g_autofree char *received = muster_format_size (counts.bytes_received);
  muster_log (
      G_LOG_LEVEL_INFO, "object-store", "MESSAGE",
      "object store: %" G_GUINT64_FORMAT " requests, sent %s, received %s, %" G_GUINT64_FORMAT
      " retries (%" G_GUINT64_FORMAT " throttled, %" G_GUINT64_FORMAT " stalled)",
      counts.requests, sent, received, retries, counts.retries_throttled, counts.retries_stalled);
}

/* (transfer full) (nullable) */
static char *
what_steps_wait_for (MusterScaffold *scaffold)
{
  MusterGraph *graph = muster_scaffold_graph (scaffold);
  g_autofree guint8 *needed = g_malloc0 (muster_graph_n_nodes (graph) + 1);
  muster_graph_mark_needs (graph, muster_scaffold_train_op (scaffold), needed);
  return muster_step_waits_for (muster_scaffold_meta_graph (scaffold), needed);
}

static MusterExit
run (Job *job)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterTrained) trained = {.step = -1};
  MusterTrainShow show = {.n_variables = muster_scaffold_n_variables (job->scaffold),
                          .preemption = job->preemption,
                          .n_fast = job->command->training.saver.n_fast,
                          .is_drill = job->command->drill,
                          .has_step_timeout = job->command->training.session.step_timeout_us > 0,
                          .is_worker = job->role->is_worker,
                          .waits_for = what_steps_wait_for (job->scaffold)};
  const gboolean may_wait =
      job->role->is_worker || job->role->is_elastic || is_coordinated (job->command);
  MusterLive *live =
      muster_live_new (may_wait ? "waiting for" : "preparing", job->options, job->options->json);
  muster_train_show_init (&show, job->options, live);
  muster_live_set_tick (live, muster_train_show_tick, &show);
  muster_live_begin (live, on_signal, &show);
  g_autoptr (MusterMaster) master = muster_cli_master (job->options, &error);
  if (master != NULL && muster_preemption_watch (job->preemption, &error))
    (void)train (job, master, &show, &trained, &error);
  g_clear_object (&master);
  log_object_store ();
  /* Ignore further signals, so that the result is always printed. */
  alarm (0);
  signal (SIGTERM, SIG_IGN);
  signal (SIGINT, SIG_IGN);
  muster_live_end (live);
  const MusterExit code = muster_train_show_end (&show, &trained, error);
  muster_train_show_clear (&show);
  return code;
}

static MusterExit
train_task (const MusterTrainOptions *command, const MusterTrainRole *role)
{
  g_autoptr (GError) error = NULL;
  g_auto (Job) job = {.command = command, .options = &command->common, .role = role};
  if (!load (&job, &error))
    return muster_cli_fail (error);
  job.preemption = muster_preemption_new (command->grace_us, NULL);
  return run (&job);
}

/* Determines the target and this task, from the command line or TF_CONFIG. */
static gboolean
take_role (MusterTrainOptions *command, MusterTrainRole *role, GError **error)
{
  MusterCliOptions *options = &command->common;
  if (!muster_train_role_read (role, options->task, command->tasks, options->target, options->spec,
                               error))
    return FALSE;
  if (role->master == NULL) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "train needs --master=TARGET: the grpc://HOST:PORT of a `muster serve`, or "
                        "local to train in this process");
  }
  if ((command->training.min_tasks > 0 || command->training.max_tasks > 0) && !role->is_elastic &&
      !(is_coordinated (command) && command->positions)) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "--min-tasks and --max-tasks need --task=auto, or on a TensorFlow cluster "
                        "--coordinator and --positions; otherwise --tasks is the number of tasks");
  }
  if (options->coordinator != NULL && role->is_elastic) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "--task=auto needs no --coordinator: its tasks share a master, which keeps "
                        "the job's members");
  }
  if (has_own_master (options) && role->is_elastic) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "--task=auto needs one master that all tasks share; in TF_CONFIG each has "
                        "its own, so set --master=TARGET, or \"session_master\" there");
  }
  if (muster_master_is_offered (role->master) && role->is_elastic) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "--master=%s runs in this process, so no other task could join; start "
                        "`muster serve` and use its address, or leave out --task=auto",
                        role->master);
  }
  if (muster_master_is_offered (role->master) && role->n_tasks > 1) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "--master=%s runs in this process, so %u tasks can't share it; start "
                        "`muster serve` and use its address",
                        role->master, role->n_tasks);
  }
  g_free (options->target);
  options->target = g_strdup (role->master);
  g_free (options->task);
  options->task = g_strdup (role->task);
  return TRUE;
}

int
muster_cli_train (int argc G_GNUC_UNUSED, char **argv)
{
  g_auto (MusterTrainOptions) command = {0};
  g_auto (MusterTrainRole) role = {0};
  g_autoptr (GError) error = NULL;
  take_early_signals ();
  g_auto (GStrv) words = muster_cli_example_expand (argv, &error);
  if (words == NULL || !muster_train_options_parse (&command, words, &error) ||
      !take_role (&command, &role, &error))
    return muster_cli_fail (error);
  muster_cli_output_only_tells ();
  if (command.example && !command.common.json) {
    g_autofree char *text = muster_cli_example_command (words);
    muster_cli_say (stderr, "running %s\n", text);
  }
  return train_task (&command, &role);
}
