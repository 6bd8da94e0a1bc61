// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/train_options.h"

#include "cli/commands/train_tiers.h"

#include <string.h>

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
     "this task: chief:0, worker:N with N from 0, or auto: all tasks are equal (default: from "
     "TF_CONFIG, or chief:0)",
     "TASK"},
    {"tasks", 0, 0, G_OPTION_ARG_INT, AT (tasks),
     "number of tasks, including the chief (default: from TF_CONFIG, or 1)", "N"},
    {"min-tasks", 0, 0, G_OPTION_ARG_INT, AT (training.min_tasks),
     "with --task=auto: number of tasks without which training doesn't start, and pauses (default: "
     "1)",
     "N"},
    {"max-tasks", 0, 0, G_OPTION_ARG_INT, AT (training.max_tasks),
     "with --task=auto: maximum number of tasks; further ones wait for a place (default: 64)", "N"},
    {"feed", 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (feeds),
     "data to feed: a NumPy file in batches of its rows; a value (0.5, true, text) or a JSON list, "
     "the same in each step (default: none; the graph has its own input)",
     "NAME=VALUE|NAME=@FILE.npy"},
    {"rows", 0, 0, G_OPTION_ARG_STRING, AT (rows),
     "rows of each NumPy file to use, such as 1500:1600 or 1500: (default: all)", "FIRST:END"},
    {"batch-size", 0, 0, G_OPTION_ARG_INT64, AT (batch_size),
     "number of rows in a batch (default: the graph's batch size, else 32)", "N"},
    {"seed", 0, 0, G_OPTION_ARG_INT64, AT (seed), "seed of the shuffle of the rows (default: 0)",
     "N"},
    {"steps", 0, 0, G_OPTION_ARG_INT64, AT (training.until_step),
     "global step, shared by all tasks, at which training ends (required, or --epochs, unless the "
     "graph's own input ends)",
     "N"},
    {"epochs", 0, 0, G_OPTION_ARG_INT64, AT (training.epochs),
     "number of passes over the rows after which training ends (default: --steps)", "N"},
    {"checkpoint-dir", 0, 0, G_OPTION_ARG_FILENAME, AT (training.session.checkpoint_dir),
     "checkpoint directory: the latest checkpoint is restored, new ones are saved (default: "
     "none)",
     "DIR"},
    {"fast-dir", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, AT (fast_dirs),
     "faster directory in front of it, such as one in memory; may be repeated, fastest first. "
     "Settings: every=STEPS or secs=TIME between checkpoints (default: 10s), keep=N of them "
     "(default: 2)",
     "DIR[,SETTINGS]"},
    {"save-every", 0, 0, G_OPTION_ARG_STRING, AT (save_every),
     "number of steps between checkpoints; auto: chosen from the cost of a save and the failures "
     "seen (default: --save-secs)",
     "STEPS|auto"},
    {"save-share", 0, 0, G_OPTION_ARG_STRING, AT (save_share),
     "of --save-every=auto: share of the time that saves may hold training (default: 1%)",
     "PERCENT"},
    {"save-secs", 0, 0, G_OPTION_ARG_STRING, AT (save_secs),
     "time between checkpoints (default: 10m)", "TIME"},
    {"no-positions", 0, 0, G_OPTION_ARG_NONE, AT (training.without_positions),
     "don't store each task's position in the data in the model", NULL},
    {"log-dir", 0, 0, G_OPTION_ARG_FILENAME, AT (training.session.summary_dir),
     "local directory for TensorBoard event files (default: a local checkpoint directory)", "DIR"},
    {"loss", 0, 0, G_OPTION_ARG_STRING, AT (loss),
     "scalar to report; training stops if it is NaN (default: the first in the collection "
     "'losses')",
     "NAME"},
    {"grace", 0, 0, G_OPTION_ARG_STRING, AT (grace),
     "time to save and exit after SIGTERM (default: 30s)", "TIME"},
    {"step-timeout", 0, 0, G_OPTION_ARG_STRING, AT (step_timeout),
     "time after which a step's session is considered lost (default: forever)", "TIME"},
    {"save-blocking", 0, 0, G_OPTION_ARG_NONE, AT (training.session.save_blocking),
     "stop training while a checkpoint is written, instead of writing it in the background", NULL},
    {"drill", 0, 0, G_OPTION_ARG_NONE, AT (drill),
     "rehearse a preemption and report the remaining grace", NULL},
    {"overwrite", 0, 0, G_OPTION_ARG_NONE, AT (training.session.overwrite),
     "start a job that is over, or that another chief has prepared", NULL},
    {"restore", 0, 0, G_OPTION_ARG_NONE, AT (training.session.always_restore),
     "restore the latest checkpoint, even if a chief that died left the model whole on the "
     "master",
     NULL},
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
  g_free ((char *)self->training.session.checkpoint_dir);
  g_free ((char *)self->training.session.summary_dir);
  muster_train_tiers_free ((MusterTier *)self->training.saver.fast, self->training.saver.n_fast);
  g_strfreev (self->fast_dirs);
  g_free (self->save_every);
  g_free (self->save_share);
  g_free (self->save_secs);
  g_free (self->loss);
  g_free (self->grace);
  g_free (self->step_timeout);
  muster_flags_free (self->flags);
}

static gboolean
parse_save_every (MusterTrainOptions *self, GError **error)
{
  MusterTraining *training = &self->training;
  training->session.save_auto = g_strcmp0 (self->save_every, "auto") == 0;
  return self->save_every == NULL || training->session.save_auto ||
         g_ascii_string_to_signed (self->save_every, 10, 1, G_MAXINT64,
                                   &training->session.save_steps, NULL) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --save-every '%s' (use a number of steps of 1 or more, or auto)",
                      self->save_every);
}

/* "1" and "1%" */
static gboolean
parse_save_share (MusterTrainOptions *self, GError **error)
{
  char *end = NULL;
  if (self->save_share == NULL)
    return TRUE;
  const double percent = g_ascii_strtod (self->save_share, &end);
  self->training.session.save_share = percent / 100;
  return (end != self->save_share && (*end == '\0' || strcmp (end, "%") == 0) && percent > 0 &&
          percent < 100) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --save-share '%s' (use a percentage such as 1 or 0.5)",
                      self->save_share);
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

/* What is wrong with options together (nullable). */
static const char *
find_conflict (const MusterTrainOptions *self)
{
  const MusterTraining *training = &self->training;
  if (training->until_step != 0 && training->epochs != 0)
    return "--steps can't be combined with --epochs";
  if (training->until_step < 0 || training->epochs < 0)
    return "--steps and --epochs must be 1 or more";
  if (self->batch_size < 0)
    return "--batch-size must be 1 or more";
  if (self->save_every != NULL && self->save_secs != NULL)
    return "--save-every can't be combined with --save-secs";
  if (self->save_share != NULL && g_strcmp0 (self->save_every, "auto") != 0)
    return "--save-share needs --save-every=auto";
  if (training->epochs > 0 && self->feeds == NULL)
    return "--epochs needs --feed, whose rows it counts; for the graph's own input use --steps=N";
  if (self->training.saver.keep_best > 0 && self->training.saver.metric == NULL)
    return "--keep-best needs --metric=NAME:max or NAME:min, such as loss:min";
  if (self->fast_dirs != NULL && training->session.checkpoint_dir == NULL)
    return "--fast-dir needs --checkpoint-dir, the durable directory behind it";
  if (training->min_tasks > G_MAXINT || training->max_tasks > G_MAXINT)
    return "--min-tasks and --max-tasks must be 1 or more";
  if (self->feeds == NULL && (self->rows != NULL || self->batch_size > 0))
    return "--rows and --batch-size need --feed=NAME=@FILE.npy";
  return NULL;
}

/* An absent one stays 0. */
static gboolean
read_time (const char *text, gint64 *time_us, GError **error)
{
  return text == NULL || muster_cli_duration (text, time_us, error);
}

static gboolean
read_times (MusterTrainOptions *self, GError **error)
{
  if (!read_time (self->save_secs, &self->training.session.save_us, error) ||
      !read_time (self->grace, &self->grace_us, error) ||
      !read_time (self->step_timeout, &self->training.session.step_timeout_us, error))
    return FALSE;
  if (self->training.session.step_timeout_us == MUSTER_WAIT_FOREVER)
    self->training.session.step_timeout_us = 0;
  return self->training.session.save_us > 0 || self->save_secs == NULL ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --save-secs '%s' (use 1s or more)", self->save_secs);
}

static gboolean
check_options (MusterTrainOptions *self, GError **error)
{
  const char *conflict = find_conflict (self);
  if (conflict != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", conflict);
  return muster_cli_check_path ("--checkpoint-dir", self->training.session.checkpoint_dir, error) &&
         muster_cli_check_path ("--log-dir", self->training.session.summary_dir, error) &&
         parse_save_every (self, error) && parse_save_share (self, error) &&
         parse_tiers (self, error) && read_times (self, error);
}

gboolean
muster_train_options_parse (MusterTrainOptions *self, char *const *words, GError **error)
{
  self->flags = muster_flags_new ("train");
  muster_flags_add (self->flags, entries, self);
  muster_flags_add_options (self->flags, MUSTER_TYPE_TRAINING, &self->training);
  return muster_cli_parse ((int)g_strv_length ((char **)words), (char **)words, "", summary,
                           muster_flags_entries (self->flags), COMMON, &self->common, NULL,
                           error) &&
         muster_flags_apply (self->flags, error) && check_options (self, error);
}
