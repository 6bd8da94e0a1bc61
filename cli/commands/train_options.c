// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/train_options.h"

#include "cli/commands/train_tiers.h"

#define COMMON                                                                                     \
  (MUSTER_CLI_META_GRAPH | MUSTER_CLI_TIMEOUT | MUSTER_CLI_JSON | MUSTER_CLI_MODEL |               \
   MUSTER_CLI_CLUSTER | MUSTER_CLI_TRACE | MUSTER_CLI_SECURITY | MUSTER_CLI_LOG)

static const char summary[] =
    "Trains a model to a global step; each task runs this command. The chief initialises the\n"
    "model or restores the latest checkpoint of --checkpoint-dir, saves there, and ends the job;\n"
    "workers wait for the model and train it together. If the master is lost, train retries and\n"
    "resumes. At SIGTERM it stops, saves if the grace is long enough, and exits with 6; the same\n"
    "command resumes from there.\n\n"
    "Set --task and --tasks, or TF_CONFIG. Without them the job has one task. With --task=auto "
    "all\n"
    "tasks of a job run the same command and may start and stop at any time. One of them is the\n"
    "chief; when it is gone, another takes over. Each batch goes to one of the running tasks.\n\n"
    "To try it without files of your own: muster train --example --checkpoint-dir=run\n\n"
    "  muster train --meta-graph=digits.meta --master=local --feed=x:0=@images.npy "
    "--feed=y:0=@labels.npy \\\n"
    "      --epochs=10 --checkpoint-dir=run";

#define AT(field) MUSTER_CLI_AT (MusterTrainOptions, field)

static const GOptionEntry entries[] = {
    {"master", 0, 0, G_OPTION_ARG_STRING, AT (common.target),
     "master to connect to: local, tensorflow[:PATH], grpc://HOST:PORT, with TLS "
     "grpcs://HOST:PORT, or unix:/PATH (default: from TF_CONFIG)",
     "TARGET"},
    {"task", 0, 0, G_OPTION_ARG_STRING, AT (common.task),
     "this task: chief:0, worker:N with N from 0, worker:N=HOST:PORT for one that isn't in "
     "TF_CONFIG's cluster, or auto: all tasks are equal (default: from TF_CONFIG, or chief:0)",
     "TASK"},
    {"tasks", 0, 0, G_OPTION_ARG_INT, AT (tasks),
     "number of tasks, including the chief (default: from TF_CONFIG, or 1)", "N"},
    {"feed", 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (feeds),
     "data to feed: a NumPy file in batches of its rows; a value (0.5, true, text) or a JSON list, "
     "the same in each step (default: none; the graph has its own input)",
     "NAME=VALUE|NAME=@FILE.npy"},
    {"rows", 0, 0, G_OPTION_ARG_STRING, AT (rows),
     "rows of each NumPy file to use, such as 1500:1600 or 1500: (default: all)", "FIRST:END"},
    {"batch-size", 0, 0, G_OPTION_ARG_INT64, AT (batch_size),
     "number of rows in a batch (default: the graph's batch size, or 32)", "N"},
    {"seed", 0, 0, G_OPTION_ARG_INT64, AT (seed), "seed of the shuffle of the rows (default: 0)",
     "N"},
    {NULL}};

/* behind the fields of the training */
static const GOptionEntry more_entries[] = {
    {"fast-dir", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, AT (fast_dirs),
     "faster directory in front of --checkpoint-dir, such as one in memory; may be repeated, "
     "fastest first. "
     "Settings: every=STEPS or secs=TIME between checkpoints (default: 10s), keep=N of them "
     "(default: 2)",
     "DIR[,SETTINGS]"},
    {"save-every", 0, 0, G_OPTION_ARG_STRING, AT (save_every),
     "number of steps between checkpoints; auto: chosen from the cost of a save and the failures "
     "seen (default: --save-secs)",
     "STEPS|auto"},
    {"loss", 0, 0, G_OPTION_ARG_STRING, AT (loss),
     "scalar to report; training stops if it is NaN (default: the first in the collection "
     "'losses')",
     "NAME"},
    {"grace", 0, 0, G_OPTION_ARG_STRING, AT (grace),
     "time to save and exit after SIGTERM (default: 30s)", "TIME"},
    {"positions", 0, 0, G_OPTION_ARG_NONE, AT (positions),
     "keep the tasks' positions in the data even on a TensorFlow cluster, whose tasks have a "
     "master each; set it on all tasks or on none",
     NULL},
    {"drill", 0, 0, G_OPTION_ARG_NONE, AT (drill),
     "rehearse a preemption and report the remaining grace", NULL},
    {"example", 0, 0, G_OPTION_ARG_NONE, AT (example),
     "train the installed example, handwritten digits: sets --meta-graph and --feed, and if they "
     "aren't given --master=local, --loss and --epochs=20",
     NULL},
    {NULL}};

void
muster_train_options_clear (MusterTrainOptions *self)
{
  muster_cli_options_clear (&self->common);
  g_strfreev (self->feeds);
  g_free (self->rows);
  muster_train_tiers_free ((MusterTier *)self->training.saver.fast, self->training.saver.n_fast);
  g_strfreev (self->fast_dirs);
  g_free (self->save_every);
  g_free (self->loss);
  g_free (self->grace);
  muster_flags_free (self->flags);
}

static gboolean
parse_save_every (MusterTrainOptions *self, GError **error)
{
  MusterTraining *training = &self->training;
  training->session.saving.save_auto = g_strcmp0 (self->save_every, "auto") == 0;
  return self->save_every == NULL || training->session.saving.save_auto ||
         g_ascii_string_to_signed (self->save_every, 10, 1, G_MAXINT64,
                                   &training->session.saving.save_steps, NULL) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --save-every '%s' (use a number of steps of 1 or more, or auto)",
                      self->save_every);
}

static gboolean
parse_tiers (MusterTrainOptions *self, GError **error)
{
  MusterTier *fast = NULL;
  if (!muster_train_tiers_parse (self->fast_dirs, &fast, &self->training.saver.n_fast, error))
    return FALSE;
  self->training.saver.fast = fast;
  return TRUE;
}

static gboolean
is_below_one (const MusterTrainOptions *self, const char *flag, gint64 number)
{
  return number < 1 && muster_flags_is_given (self->flags, flag);
}

/* Numbers of which 0 stands for the default until here: given, they are 1 or more. */
static gboolean
take_counts (MusterTrainOptions *self, GError **error)
{
  const gboolean has_batch = self->batch_size != MUSTER_CLI_NOT_GIVEN,
                 has_tasks = self->tasks != MUSTER_CLI_NOT_GIVEN;
  if (has_batch && self->batch_size < 1)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "--batch-size must be 1 or more");
  if (has_tasks && self->tasks < 1)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid --tasks '%d' (use the number of workers plus the chief)",
                        self->tasks);
  self->batch_size = has_batch ? self->batch_size : 0;
  self->tasks = has_tasks ? self->tasks : 0;
  return TRUE;
}

/* What is wrong with options together (nullable). */
static const char *
find_conflict (const MusterTrainOptions *self)
{
  const MusterTraining *training = &self->training;
  if (training->until_step != 0 && training->epochs != 0)
    return "--steps can't be combined with --epochs";
  if (is_below_one (self, "steps", training->until_step) ||
      is_below_one (self, "epochs", training->epochs))
    return "--steps and --epochs must be 1 or more";
  if (self->save_every != NULL && muster_flags_is_given (self->flags, "save-secs"))
    return "--save-every can't be combined with --save-secs";
  if (muster_flags_is_given (self->flags, "save-share") &&
      g_strcmp0 (self->save_every, "auto") != 0)
    return "--save-share needs --save-every=auto";
  if (training->epochs > 0 && self->feeds == NULL)
    return "--epochs needs --feed, whose rows it counts; for the graph's own input use --steps=N";
  if (self->training.saver.keep_best > 0 && self->training.saver.metric == NULL)
    return "--keep-best needs --metric=NAME:max or NAME:min, such as loss:min";
  if (self->fast_dirs != NULL && training->session.saving.checkpoint_dir == NULL)
    return "--fast-dir needs --checkpoint-dir, the durable directory behind it";
  if (self->feeds == NULL && (self->rows != NULL || self->batch_size > 0))
    return "--rows and --batch-size need --feed=NAME=@FILE.npy";
  return NULL;
}

static gboolean
read_times (MusterTrainOptions *self, GError **error)
{
  MusterMonitoredTrainingOptions *session = &self->training.session;
  if (self->grace != NULL && !muster_cli_duration (self->grace, &self->grace_us, error))
    return FALSE;
  if (session->step_timeout_us == MUSTER_WAIT_FOREVER)
    session->step_timeout_us = 0;
  return TRUE;
}

static gboolean
check_options (MusterTrainOptions *self, GError **error)
{
  const char *conflict = find_conflict (self);
  if (conflict != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", conflict);
  return parse_save_every (self, error) && parse_tiers (self, error) && read_times (self, error);
}

gboolean
muster_train_options_parse (MusterTrainOptions *self, char *const *words, GError **error)
{
  self->batch_size = self->tasks = MUSTER_CLI_NOT_GIVEN;
  self->flags = muster_flags_new ("train");
  muster_flags_add (self->flags, entries, self);
  muster_flags_add_options (self->flags, MUSTER_TYPE_TRAINING, &self->training);
  muster_flags_add (self->flags, more_entries, self);
  return muster_cli_parse ((int)g_strv_length ((char **)words), (char **)words, "", summary,
                           muster_flags_entries (self->flags), COMMON, &self->common, NULL,
                           error) &&
         take_counts (self, error) && muster_flags_apply (self->flags, error) &&
         check_options (self, error);
}
