// SPDX-License-Identifier: Apache-2.0
/* `muster evaluate`: evaluates the checkpoints of a job beside it. */
#include "cli/commands/commands.h"

#include "checkpoint/stores/default_storage.h"
#include "cli/commands/train_data.h"
#include "cli/commands/train_event.h"
#include "cli/common/cli.h"
#include "cli/common/flags.h"
#include "cli/output/json.h"
#include "cli/output/notify.h"
#include "cli/terminal/live.h"
#include "train/evaluation/evaluate.h"

#include <string.h>

#define COMMON                                                                                     \
  (MUSTER_CLI_META_GRAPH | MUSTER_CLI_TIMEOUT | MUSTER_CLI_JSON | MUSTER_CLI_MODEL |               \
   MUSTER_CLI_SECURITY | MUSTER_CLI_LOG)

static const char summary[] =
    "Runs as the evaluator beside a job: waits for each checkpoint that the job saves in\n"
    "--checkpoint-dir, restores it on a master of its own, runs all data through the model once,\n"
    "writes the metrics for TensorBoard and marks the checkpoint with them, for a job with\n"
    "--keep-best. The newest is next; one that is marked isn't evaluated again. Ends when the job\n"
    "is over.\n\n"
    "  muster evaluate --meta-graph=digits.meta --feed=x:0=@images.npy --feed=y:0=@labels.npy \\\n"
    "      --metric=accuracy --checkpoint-dir=run";

typedef struct {
  MusterFlags *flags; /* (owned), with the texts of fields */
  MusterCliOptions common;
  MusterEvaluateOptions what;
  char *directory; /* (owned) (nullable), as the rest */
  char **feeds;
  char **metrics;
  char *rows;
  gint64 batch_size;
} EvaluateCommand;

static void
evaluate_command_clear (EvaluateCommand *self)
{
  muster_flags_free (self->flags);
  muster_cli_options_clear (&self->common);
  g_free (self->directory);
  g_strfreev (self->feeds);
  g_strfreev (self->metrics);
  g_free (self->rows);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (EvaluateCommand, evaluate_command_clear)

#define AT(field) MUSTER_CLI_AT (EvaluateCommand, field)

static const GOptionEntry entries[] = {
    {"master", 0, 0, G_OPTION_ARG_STRING, AT (common.target),
     "master to evaluate on, used by nothing else: local, tensorflow[:PATH], "
     "grpc://HOST:PORT, with TLS grpcs://HOST:PORT, or unix:/PATH (default: local)",
     "TARGET"},
    {"feed", 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (feeds),
     "data to feed: a NumPy file in batches of its rows, each row once; a value (0.5, true, text) "
     "or a JSON list, the same in each batch (default: none; the graph has its own input)",
     "NAME=VALUE|NAME=@FILE.npy"},
    {"rows", 0, 0, G_OPTION_ARG_STRING, AT (rows),
     "rows of each NumPy file to use, such as 1500:1600 or 1500: (default: all)", "FIRST:END"},
    {"batch-size", 0, 0, G_OPTION_ARG_INT64, AT (batch_size),
     "number of rows in a batch (default: the graph's batch size, or 32)", "N"},
    {"metric", 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (metrics),
     "metric to evaluate; may be repeated: a tensor of one number, averaged over the rows, or the "
     "name of one of tf.metrics (default: the first in the collection 'losses')",
     "NAME"},
    {"checkpoint-dir", 0, 0, G_OPTION_ARG_FILENAME, AT (directory),
     "directory whose checkpoints are evaluated as they are saved (required, or --checkpoint)",
     "DIR"},
    {"overwrite", 0, 0, G_OPTION_ARG_NONE, AT (what.training.session.overwrite),
     "use a master that has values of the model, which are then lost", NULL},
    {NULL}};

static gboolean
parse (EvaluateCommand *self, int argc, char **argv, GError **error)
{
  self->flags = muster_flags_new ("evaluate");
  muster_flags_add (self->flags, entries, self);
  muster_flags_add_options (self->flags, MUSTER_TYPE_EVALUATE_OPTIONS, &self->what);
  if (!muster_cli_parse (argc, argv, "", summary, muster_flags_entries (self->flags), COMMON,
                         &self->common, NULL, error) ||
      !muster_flags_apply (self->flags, error))
    return FALSE;
  if (self->common.target == NULL)
    self->common.target = g_strdup ("local");
  if (self->directory == NULL && self->what.checkpoint == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "evaluate needs --checkpoint-dir=DIR, where the job saves, or "
                        "--checkpoint=PREFIX");
  if (self->feeds == NULL && (self->rows != NULL || self->batch_size > 0))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "--rows and --batch-size need --feed=NAME=@FILE.npy");
  return TRUE;
}

/* This task's name, which TF_CONFIG may give: (transfer full) */
static char *
find_task (GError **error)
{
  g_autoptr (MusterClusterSpec) spec = muster_cluster_spec_new (g_getenv ("TF_CONFIG"), error);
  if (spec == NULL)
    return NULL;
  const gboolean is_named = g_strcmp0 (muster_cluster_spec_job (spec), "evaluator") == 0;
  return g_strdup_printf ("evaluator:%u", is_named ? muster_cluster_spec_index (spec) : 0);
}

/* --- what is shown --- */

typedef struct {
  const MusterCliOptions *options;
  MusterLive *live;
} Show;

static void
on_waiting (MusterTrainingObserver *observer G_GNUC_UNUSED, const char *message,
            const MusterReadiness *readiness G_GNUC_UNUSED, GPtrArray *reasons G_GNUC_UNUSED,
            gpointer user_data)
{
  const Show *self = user_data;
  muster_notify_status (message);
  if (self->options->json) {
    JsonBuilder *builder = muster_train_event_begin ("waiting", -1);
    muster_json_add_string (builder, "waiting", message);
    muster_train_event_end (builder);
  } else if (muster_live_width (self->live) > 0) {
    muster_live_line (self->live, message);
  } else {
    muster_live_say (self->live, stderr, message);
  }
}

static void
print_evaluated (const MusterEvaluated *evaluated)
{
  JsonBuilder *builder = muster_train_event_begin (
      evaluated->values != NULL ? "evaluated" : "passed-over", evaluated->step);
  muster_json_add_string (builder, "prefix", evaluated->prefix);
  json_builder_set_member_name (builder, "metrics");
  json_builder_begin_object (builder);
  for (guint i = 0; evaluated->values != NULL && i < evaluated->values->len; i++)
    muster_train_event_add_number (builder, evaluated->metrics[i],
                                   g_array_index (evaluated->values, double, i));
  json_builder_end_object (builder);
  muster_json_add_int (builder, "rows", evaluated->n_rows);
  muster_json_add_seconds (builder, "seconds", evaluated->took_us);
  muster_json_add_string (builder, "why", evaluated->why);
  muster_train_event_end (builder);
}

/* "run/model.ckpt-40: eval/accuracy 0.97 (1797 rows in 23 ms)" */
static char *
describe (const MusterEvaluated *evaluated)
{
  g_autoptr (GString) text = g_string_new (evaluated->prefix);
  g_autofree char *took = muster_format_duration (evaluated->took_us);
  for (guint i = 0; i < evaluated->values->len; i++)
    g_string_append_printf (text, "%s %s %.6g", i == 0 ? ":" : ",", evaluated->metrics[i],
                            g_array_index (evaluated->values, double, i));
  if (evaluated->n_evaluated == 0)
    g_string_append (text, " (evaluated before)");
  else
    g_string_append_printf (text, " (%" G_GINT64_FORMAT " rows in %s)", evaluated->n_rows, took);
  return g_strdup (text->str);
}

static void
on_evaluated (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterEvaluated *evaluated,
              gpointer user_data)
{
  const Show *self = user_data;
  if (self->options->json) {
    print_evaluated (evaluated);
    return;
  }
  if (evaluated->values != NULL) {
    g_autofree char *text = describe (evaluated);
    muster_live_say (self->live, stdout, text);
  }
  if (evaluated->why != NULL) {
    g_autofree char *text = g_strdup_printf ("warning: %s: %s", evaluated->prefix, evaluated->why);
    muster_live_say (self->live, stderr, text);
  }
}

/* --- the evaluation --- */

typedef struct {
  MusterScaffold *scaffold; /* (owned), as the rest */
  MusterTrainData data;
  MusterBatches *batches; /* (nullable) */
  char *task;
} Input;

static void
input_clear (Input *self)
{
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  muster_train_data_clear (&self->data);
  g_clear_pointer (&self->batches, muster_batches_free);
  g_free (self->task);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Input, input_clear)

static gboolean
load (Input *self, const EvaluateCommand *command, GError **error)
{
  self->task = find_task (error);
  self->scaffold = self->task != NULL ? muster_cli_scaffold (&command->common, error) : NULL;
  if (self->scaffold == NULL ||
      !muster_train_data_read (&self->data, self->scaffold, command->feeds, command->rows,
                               command->batch_size, error))
    return FALSE;
  if (self->data.n_feeds == 0)
    return TRUE;
  self->batches =
      muster_batches_new (self->data.arrays, self->data.n_batched, self->data.batch_size, 0, error);
  for (gsize i = self->data.n_batched; self->batches != NULL && i < self->data.n_feeds; i++)
    muster_batches_add_constant (self->batches, self->data.arrays[i]);
  return self->batches != NULL;
}

static gboolean
evaluate (const EvaluateCommand *command, const Input *input, Show *show, MusterMaster *master,
          MusterEvaluated *evaluated, GError **error)
{
  const MusterCliOptions *options = &command->common;
  g_autoptr (MusterTrainingObserver) observer = muster_training_observer_new ();
  MusterEvaluateOptions what = command->what;
  MusterMonitoredTrainingOptions *session = &what.training.session;
  g_signal_connect (observer, "waiting", G_CALLBACK (on_waiting), show);
  g_signal_connect (observer, "evaluated", G_CALLBACK (on_evaluated), show);
  session->scaffold = input->scaffold;
  session->master = master;
  session->manager.model = options->model;
  session->manager.task = input->task;
  session->manager.config = options->config;
  session->saving.checkpoint_dir = command->directory;
  session->timeout_us = options->timeout_us == MUSTER_WAIT_FOREVER ? 0 : options->timeout_us;
  what.metrics = (const char *const *)command->metrics;
  what.training.batches = input->batches;
  what.training.feeds = (const char *const *)input->data.feeds;
  what.training.n_feeds = input->data.n_feeds;
  what.training.observer = observer;
  return muster_evaluate (&what, evaluated, muster_live_cancellable (show->live), error);
}

static MusterExit
run (const EvaluateCommand *command, const Input *input)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterEvaluated) evaluated = {0};
  MusterLive *live = muster_live_new ("evaluating", &command->common, FALSE);
  Show show = {&command->common, live};
  muster_live_line (live, "");
  muster_live_begin (live, NULL, NULL);
  g_autoptr (MusterMaster) master = muster_cli_master (&command->common, &error);
  muster_notify ("READY=1\nSTATUS=evaluating");
  const gboolean is_done =
      master != NULL && evaluate (command, input, &show, master, &evaluated, &error);
  g_clear_object (&master);
  muster_live_end (live);
  if (!is_done)
    return muster_cli_fail (error);
  return MUSTER_EXIT_DONE;
}

int
muster_cli_evaluate (int argc, char **argv)
{
  g_auto (EvaluateCommand) command = {0};
  g_auto (Input) input = {0};
  g_autoptr (GError) error = NULL;
  if (!parse (&command, argc, argv, &error) || !load (&input, &command, &error))
    return muster_cli_fail (error);
  return muster_cli_leave (run (&command, &input));
}
