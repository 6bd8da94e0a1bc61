// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include "base/log.h"
#include "checkpoint/s3/s3_metrics.h"
#include "cli/commands/train_data.h"
#include "cli/commands/train_role.h"
#include "cli/commands/train_show.h"
#include "cli/commands/train_tiers.h"
#include "cli/common/cli.h"
#include "cli/common/example.h"
#include "master/remote/target.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* The time after the grace at which the process ends in any case. */
#define OVERDUE_SECONDS 5

static const char summary[] =
    "Trains a model to a global step; each task runs this command. The chief initialises the\n"
    "model or restores the latest checkpoint of --checkpoint-dir, saves there, and ends the job;\n"
    "workers wait for the model and train it together. If the master is lost, train retries and\n"
    "resumes. At SIGTERM it stops, saves if the grace is long enough, and exits with 6; the same\n"
    "command resumes from there.\n\n"
    "Set --task and --tasks, or TF_CONFIG. Without them the job has one task. With --task=auto "
    "all\n"
    "tasks of a job run the same command, and come and go: the server chooses the chief, another\n"
    "task takes over when it is gone, and batches are dealt to the tasks that are there.\n\n"
    "To try it without files of your own: muster train --example --checkpoint-dir=run\n\n"
    "  muster train --meta-graph=digits.meta --master=local --feed=x:0=@images.npy "
    "--feed=y:0=@labels.npy \\\n"
    "      --epochs=10 --checkpoint-dir=run";

/* The command's options; strings are (owned) (nullable). */
typedef struct {
  char **feeds;
  char *rows;
  gint64 batch_size;
  gint64 seed;
  gint64 steps;
  gint64 epochs;
  char *directory;
  char **fast_dirs;
  char *save_every;
  char *save_share;
  char *save_secs;
  int keep;
  int keep_best;
  gint64 keep_every_steps;
  char *metric;
  char *log_dir;
  char *loss;
  int tasks;
  int min_tasks;
  int max_tasks;
  char *grace;
  char *step_timeout;
  char *save_timeout;
  gboolean save_blocking;
  gboolean drill;
  gboolean overwrite;
  gboolean restore;
  gboolean allow_missing;
  gboolean no_positions;
  gboolean example;
  /* parsed from the strings above */
  gint64 save_steps;
  gboolean save_auto;
  double share;
  gint64 save_us;
  gint64 grace_us;
  gint64 step_timeout_us;
  gint64 save_timeout_us;
  MusterTier *fast; /* (owned) (array length=n_fast) */
  gsize n_fast;
} CommandOptions;

static void
options_clear (CommandOptions *self)
{
  g_strfreev (self->feeds);
  g_free (self->rows);
  g_free (self->directory);
  g_strfreev (self->fast_dirs);
  muster_train_tiers_free (self->fast, self->n_fast);
  g_free (self->save_every);
  g_free (self->save_share);
  g_free (self->save_secs);
  g_free (self->metric);
  g_free (self->log_dir);
  g_free (self->loss);
  g_free (self->grace);
  g_free (self->step_timeout);
  g_free (self->save_timeout);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (CommandOptions, options_clear)

static gboolean
parse_save_every (CommandOptions *command, GError **error)
{
  command->save_auto = g_strcmp0 (command->save_every, "auto") == 0;
  return command->save_every == NULL || command->save_auto ||
         g_ascii_string_to_signed (command->save_every, 10, 1, G_MAXINT64, &command->save_steps,
                                   NULL) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --save-every '%s' (use a number of steps of 1 or more, or auto)",
                      command->save_every);
}

/* "1" and "1%" */
static gboolean
parse_save_share (CommandOptions *command, GError **error)
{
  char *end = NULL;
  if (command->save_share == NULL)
    return TRUE;
  const double percent = g_ascii_strtod (command->save_share, &end);
  command->share = percent / 100;
  return (end != command->save_share && (*end == '\0' || strcmp (end, "%") == 0) && percent > 0 &&
          percent < 100) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --save-share '%s' (use a percentage such as 1 or 0.5)",
                      command->save_share);
}

static gboolean
check_options (CommandOptions *command, GError **error)
{
  const char *wrong = NULL;
  if ((command->steps != 0) == (command->epochs != 0))
    wrong = "train needs either --steps=N, the global step to reach, or --epochs=N";
  else if (command->steps < 0 || command->epochs < 0)
    wrong = "--steps and --epochs must be 1 or more";
  else if (command->batch_size < 0)
    wrong = "--batch-size must be 1 or more";
  else if (command->save_every != NULL && command->save_secs != NULL)
    wrong = "--save-every can't be combined with --save-secs";
  else if (command->save_share != NULL && g_strcmp0 (command->save_every, "auto") != 0)
    wrong = "--save-share needs --save-every=auto";
  else if (command->epochs > 0 && command->feeds == NULL)
    wrong = "--epochs needs --feed, whose rows it counts; for the graph's own input use --steps=N";
  else if (command->keep_best > 0 && command->metric == NULL)
    wrong = "--keep-best needs --metric=NAME:max or NAME:min, such as loss:min";
  else if (command->fast_dirs != NULL && command->directory == NULL)
    wrong = "--fast-dir needs --checkpoint-dir, the durable directory behind it";
  else if (command->min_tasks < 0 || command->max_tasks < 0)
    wrong = "--min-tasks and --max-tasks must be 1 or more";
  else if (command->feeds == NULL && (command->rows != NULL || command->batch_size > 0))
    wrong = "--rows and --batch-size need --feed=NAME=@FILE.npy";
  if (wrong != NULL)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", wrong);
  if (wrong != NULL || !muster_cli_check_path ("--checkpoint-dir", command->directory, error) ||
      !muster_cli_check_path ("--log-dir", command->log_dir, error) ||
      !parse_save_every (command, error) || !parse_save_share (command, error) ||
      !muster_train_tiers_parse (command->fast_dirs, &command->fast, &command->n_fast, error) ||
      (command->save_secs != NULL &&
       !muster_cli_duration (command->save_secs, &command->save_us, error)) ||
      (command->grace != NULL &&
       !muster_cli_duration (command->grace, &command->grace_us, error)) ||
      (command->step_timeout != NULL &&
       !muster_cli_duration (command->step_timeout, &command->step_timeout_us, error)) ||
      (command->save_timeout != NULL &&
       !muster_cli_duration (command->save_timeout, &command->save_timeout_us, error)))
    return FALSE;
  if (command->step_timeout_us == MUSTER_WAIT_FOREVER)
    command->step_timeout_us = 0;
  if (command->save_us == 0 && command->save_secs != NULL)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "invalid --save-secs '%s' (use 1s or more)",
                 command->save_secs);
  return command->save_us > 0 || command->save_secs == NULL;
}

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
say_metric (MusterScaffold *scaffold, const CommandOptions *command, const char *loss)
{
  const char *colon = command->metric != NULL ? strrchr (command->metric, ':') : NULL;
  g_autofree char *op = NULL;
  if (colon == NULL)
    return;
  g_autofree char *name = g_strndup (command->metric, (gsize)(colon - command->metric));
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
  const CommandOptions *command;
  const MusterCliOptions *options;
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

/* Positions need one master that all tasks share; in a TensorFlow cluster each task has its own. */
static gboolean
has_own_master (const MusterCliOptions *options)
{
  return options->target_from_spec && muster_cluster_spec_has_own_masters (options->spec);
}

/* Without positions, a different seed gives each task its own order of the rows. */
static guint64
seed_of (const Job *self)
{
  return (guint64)self->command->seed + (has_own_master (self->options) ? self->role->index : 0);
}

/* Checks all input before a session or thread is created. */
static gboolean
load (Job *self, GError **error)
{
  const CommandOptions *command = self->command;
  self->scaffold = muster_scaffold_load (self->options->meta_graph, error);
  if (self->scaffold == NULL ||
      !muster_train_data_read (&self->data, self->scaffold, command->feeds, command->rows,
                               command->batch_size, error) ||
      !find_loss (self->scaffold, command->loss, &self->loss, error))
    return FALSE;
  if (!self->options->json && !self->role->is_worker)
    say_metric (self->scaffold, command, self->loss);
  if (self->data.n_feeds == 0)
    return TRUE;
  self->batches = muster_batches_new (self->data.arrays, self->data.n_feeds, self->data.batch_size,
                                      seed_of (self), error);
  return self->batches != NULL;
}

/* A step is cancelled between its nodes only; this one doesn't come to another. */
static void
end_late (int number G_GNUC_UNUSED)
{
  _exit (MUSTER_EXIT_PREEMPTED);
}

/* The process ends soon after its grace, whatever it is doing. */
static void
bound_grace (gint64 grace_us)
{
  const struct sigaction late = {.sa_handler = end_late};
  const gint64 seconds = grace_us / MUSTER_SECOND + OVERDUE_SECONDS;
  if (seconds > G_MAXINT)
    return;
  sigaction (SIGALRM, &late, NULL);
  alarm ((guint)seconds);
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
  const CommandOptions *command = self->command;
  const MusterTrainingListener listener = muster_train_show_listener (show);
  const MusterSaverOptions saver = {.max_to_keep = command->keep,
                                    .keep_best = command->keep_best,
                                    .keep_every_steps = command->keep_every_steps,
                                    .metric = command->metric,
                                    .save_timeout_us = command->save_timeout_us,
                                    .fast = command->fast,
                                    .n_fast = command->n_fast};
  const MusterRestoreOptions restore = {.allow_missing = command->allow_missing,
                                        .count_deaths = TRUE,
                                        .progress = muster_live_restoring,
                                        .user_data = show->live};
  const MusterTraining training = {
      .scaffold = self->scaffold,
      .master = master,
      .is_worker = self->role->is_worker,
      .is_elastic = self->role->is_elastic,
      .min_tasks = (guint)command->min_tasks,
      .max_tasks = (guint)command->max_tasks,
      .model = self->options->model,
      .task = self->role->task,
      .task_number = self->role->index,
      .n_tasks = self->role->n_tasks,
      .batches = self->batches,
      .feeds = (const char *const *)self->data.feeds,
      .n_feeds = self->data.n_feeds,
      .loss = self->loss,
      .until_step = command->steps,
      .epochs = command->epochs,
      .without_positions = command->no_positions || has_own_master (self->options),
      .checkpoint_dir = command->directory,
      .saver = &saver,
      .save_us = command->save_us,
      .save_steps = command->save_steps,
      .save_auto = command->save_auto,
      .save_share = command->share,
      .save_blocking = command->save_blocking,
      .restore = &restore,
      .overwrite = command->overwrite,
      .always_restore = command->restore,
      .ends_job = !self->role->is_worker,
      .log_dir = command->log_dir,
      .preemption = self->preemption,
      .timeout_us =
          self->options->timeout_us == MUSTER_WAIT_FOREVER ? 0 : self->options->timeout_us,
      .step_timeout_us = command->step_timeout_us,
      .cluster = (const char *const *)self->options->addresses,
      .chief = self->options->chief,
      .config = self->options->config,
      .listener = &listener,
  };
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

static MusterExit
run (Job *job)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterTrained) trained = {.step = -1};
  MusterTrainShow show = {.n_variables = muster_scaffold_n_variables (job->scaffold),
                          .preemption = job->preemption,
                          .n_fast = job->command->n_fast,
                          .is_drill = job->command->drill,
                          .is_worker = job->role->is_worker};
  const gboolean may_wait = job->role->is_worker || job->role->is_elastic;
  MusterLive *live =
      muster_live_new (may_wait ? "waiting for" : "preparing", job->options, job->options->json);
  muster_train_show_init (&show, job->options, live);
  muster_live_set_signal (live, on_signal, &show);
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
train_task (const CommandOptions *command, const MusterCliOptions *options,
            const MusterTrainRole *role)
{
  g_autoptr (GError) error = NULL;
  g_auto (Job) job = {.command = command, .options = options, .role = role};
  if (!load (&job, &error))
    return muster_cli_fail (error);
  job.preemption = muster_preemption_new (command->grace_us, NULL);
  return run (&job);
}

/* Determines the target and this task, from the command line or TF_CONFIG. */
static gboolean
take_role (MusterCliOptions *options, const CommandOptions *command, MusterTrainRole *role,
           GError **error)
{
  if (!muster_train_role_read (role, options->task, command->tasks, options->target, options->spec,
                               error))
    return FALSE;
  if (role->master == NULL) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "train needs --master=TARGET: the grpc://HOST:PORT of a `muster serve`, or "
                        "local to train in this process");
  }
  if ((command->min_tasks > 0 || command->max_tasks > 0) && !role->is_elastic) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "--min-tasks and --max-tasks need --task=auto; otherwise --tasks is the "
                        "number of tasks");
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
  g_auto (CommandOptions) command = {0};
  g_auto (MusterCliOptions) options = {0};
  g_auto (MusterTrainRole) role = {0};
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
      {"master", 0, 0, G_OPTION_ARG_STRING, &options.target,
       "master to connect to: local, tensorflow[:PATH], grpc://HOST:PORT, with TLS "
       "grpcs://HOST:PORT, or unix:/PATH (default: from TF_CONFIG)",
       "TARGET"},
      {"task", 0, 0, G_OPTION_ARG_STRING, &options.task,
       "this task: chief:0, worker:N with N from 0, or auto: all tasks are equal (default: from "
       "TF_CONFIG, or chief:0)",
       "TASK"},
      {"tasks", 0, 0, G_OPTION_ARG_INT, &command.tasks,
       "number of tasks, including the chief (default: from TF_CONFIG, or 1)", "N"},
      {"min-tasks", 0, 0, G_OPTION_ARG_INT, &command.min_tasks,
       "of --task=auto: number of tasks without which the job doesn't start, and pauses (default: "
       "1)",
       "N"},
      {"max-tasks", 0, 0, G_OPTION_ARG_INT, &command.max_tasks,
       "of --task=auto: maximum number of tasks; further ones wait for a place (default: 64)", "N"},
      {"feed", 0, 0, G_OPTION_ARG_STRING_ARRAY, &command.feeds,
       "data to feed in batches of rows: a NumPy file or a JSON list (default: none; the graph has "
       "its own input)",
       "NAME=VALUE|NAME=@FILE.npy"},
      {"rows", 0, 0, G_OPTION_ARG_STRING, &command.rows,
       "rows of each NumPy file to use, such as 1500:1600 or 1500: (default: all)", "FIRST:END"},
      {"batch-size", 0, 0, G_OPTION_ARG_INT64, &command.batch_size,
       "number of rows in a batch (default: the graph's batch size, else 32)", "N"},
      {"seed", 0, 0, G_OPTION_ARG_INT64, &command.seed,
       "seed of the shuffle of the rows (default: 0)", "N"},
      {"steps", 0, 0, G_OPTION_ARG_INT64, &command.steps,
       "global step, shared by all tasks, at which training ends (required, or --epochs)", "N"},
      {"epochs", 0, 0, G_OPTION_ARG_INT64, &command.epochs,
       "number of passes over the rows after which training ends (required, or --steps)", "N"},
      {"checkpoint-dir", 0, 0, G_OPTION_ARG_FILENAME, &command.directory,
       "checkpoint directory: the latest checkpoint is restored, new ones are saved (default: "
       "none)",
       "DIR"},
      {"fast-dir", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &command.fast_dirs,
       "faster directory in front of it, such as one in memory; may be repeated, fastest first. "
       "Settings: every=STEPS or secs=TIME between checkpoints (default: 10s), keep=N of them "
       "(default: 2)",
       "DIR[,SETTINGS]"},
      {"save-every", 0, 0, G_OPTION_ARG_STRING, &command.save_every,
       "number of steps between checkpoints; auto: chosen from the cost of a save and the failures "
       "seen (default: --save-secs)",
       "STEPS|auto"},
      {"save-share", 0, 0, G_OPTION_ARG_STRING, &command.save_share,
       "of --save-every=auto: share of the time that saves may hold training (default: 1%)",
       "PERCENT"},
      {"save-secs", 0, 0, G_OPTION_ARG_STRING, &command.save_secs,
       "time between checkpoints (default: 10m)", "TIME"},
      {"keep", 0, 0, G_OPTION_ARG_INT, &command.keep,
       "number of checkpoints to keep (-1: all; default: the meta graph's max_to_keep)", "N"},
      {"keep-best", 0, 0, G_OPTION_ARG_INT, &command.keep_best,
       "number of checkpoints with the best --metric to keep beside the newest (-1: none; default: "
       "as the directory's last job)",
       "N"},
      {"keep-every-steps", 0, 0, G_OPTION_ARG_INT64, &command.keep_every_steps,
       "keep checkpoints whose step is divisible by N for good (-1: none; default: as the "
       "directory's last job)",
       "N"},
      {"metric", 0, 0, G_OPTION_ARG_STRING, &command.metric,
       "metric of --keep-best: a tensor or op of the graph, loss (that of --loss), or a name that "
       "`muster checkpoint mark` gives values to; and whether its max or min is best (default: as "
       "the directory's last job)",
       "NAME[:OUTPUT]:max|min"},
      {"allow-missing", 0, 0, G_OPTION_ARG_NONE, &command.allow_missing,
       "initialise variables that are missing in the checkpoint, including positions", NULL},
      {"no-positions", 0, 0, G_OPTION_ARG_NONE, &command.no_positions,
       "don't store each task's position in the data in the model", NULL},
      {"log-dir", 0, 0, G_OPTION_ARG_FILENAME, &command.log_dir,
       "local directory for TensorBoard event files (default: a local checkpoint directory)",
       "DIR"},
      {"loss", 0, 0, G_OPTION_ARG_STRING, &command.loss,
       "scalar to report; training stops if it is NaN (default: the first in the collection "
       "'losses')",
       "NAME"},
      {"grace", 0, 0, G_OPTION_ARG_STRING, &command.grace,
       "time to save and exit after SIGTERM (default: 30s)", "TIME"},
      {"step-timeout", 0, 0, G_OPTION_ARG_STRING, &command.step_timeout,
       "time after which a step's session is considered lost (default: forever)", "TIME"},
      {"save-timeout", 0, 0, G_OPTION_ARG_STRING, &command.save_timeout,
       "time after which a save fails (default: forever)", "TIME"},
      {"save-blocking", 0, 0, G_OPTION_ARG_NONE, &command.save_blocking,
       "stop training while a checkpoint is written, instead of writing it in the background",
       NULL},
      {"drill", 0, 0, G_OPTION_ARG_NONE, &command.drill,
       "rehearse a preemption and report the remaining grace", NULL},
      {"overwrite", 0, 0, G_OPTION_ARG_NONE, &command.overwrite,
       "start a job that is over, or that another chief has prepared", NULL},
      {"restore", 0, 0, G_OPTION_ARG_NONE, &command.restore,
       "restore the latest checkpoint, even if a chief that died left the model whole on the "
       "master",
       NULL},
      {"example", 0, 0, G_OPTION_ARG_NONE, &command.example,
       "train the installed example, handwritten digits: sets --meta-graph and --feed, and if they "
       "aren't given --master=local, --loss and --epochs=20",
       NULL},
      {NULL}};
  g_auto (GStrv) words = muster_cli_example_expand (argv, &error);
  if (words == NULL)
    return muster_cli_fail (error);
  if (!muster_cli_parse ((int)g_strv_length (words), words, "", summary, entries,
                         MUSTER_CLI_META_GRAPH | MUSTER_CLI_TIMEOUT | MUSTER_CLI_JSON |
                             MUSTER_CLI_MODEL | MUSTER_CLI_CLUSTER | MUSTER_CLI_TRACE |
                             MUSTER_CLI_SECURITY | MUSTER_CLI_LOG,
                         &options, NULL, &error) ||
      !check_options (&command, &error) || !take_role (&options, &command, &role, &error))
    return muster_cli_fail (error);
  if (command.example && !options.json) {
    g_autofree char *text = muster_cli_example_command (words);
    muster_cli_say (stderr, "running %s\n", text);
  }
  return train_task (&command, &options, &role);
}
