// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include "cli/commands/operation.h"
#include "cli/common/cli.h"
#include "cli/common/flags.h"
#include "cli/output/json.h"
#include "train/position/position_private.h"
#include "train/train.h"

#include <string.h>

static const char summary[] =
    "Runs as the chief: opens a session on the master and makes the model ready. Restores the\n"
    "checkpoint of --checkpoint, or the latest one of --checkpoint-dir; without a checkpoint, "
    "runs\n"
    "the model's init op. The model stays initialised on the master for the workers, which wait\n"
    "with `muster wait`.\n\n"
    "On muster's master, prepare claims the model first. If two chiefs claim it, one prepares it\n"
    "and the other is refused before it runs anything. A model that another chief has prepared\n"
    "isn't initialised again, and a job that is over isn't started again, except with --overwrite.";

typedef struct {
  MusterFlags *flags; /* (owned) */
  MusterPrepareOptions what;
  MusterRestoreOptions restore; /* names are owned */
  int n_tasks;                  /* of the job that is to train the model; 0: it has no positions */
  char **renamed;               /* (owned) (nullable) "VARIABLE=NAME" */
} PrepareOptions;

static void
prepare_options_clear (PrepareOptions *self)
{
  muster_flags_free (self->flags);
  g_strfreev (self->renamed);
  g_clear_pointer (&self->restore.names, g_hash_table_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PrepareOptions, prepare_options_clear)

/* A variable's name has no '=' in it. */
static gboolean
parse_names (PrepareOptions *self, GError **error)
{
  if (self->renamed == NULL)
    return TRUE;
  self->restore.names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  for (char **pair = self->renamed; *pair != NULL; pair++) {
    const char *at = strchr (*pair, '=');
    if (at == NULL || at == *pair || at[1] == '\0') {
      return muster_fail (
          error, MUSTER_ERROR_INVALID_ARGUMENT,
          "invalid --rename '%s' (use VARIABLE=NAME, where NAME is the name in the checkpoint)",
          *pair);
    }
    g_hash_table_replace (self->restore.names, g_strndup (*pair, (gsize)(at - *pair)),
                          g_strdup (at + 1));
  }
  return TRUE;
}

static void
report_ready (const MusterCliResult *result, gsize n_variables, gint64 step)
{
  const MusterSessionReport *report = result->report;
  const gint64 init_us = muster_cli_phase_us (report, "init");
  g_autofree char *spent = muster_cli_in_phases (report);
  g_autofree char *init = muster_format_duration (init_us);
  g_autofree char *restored = report->restored_from != NULL ? muster_cli_restored (report) : NULL;
  g_autofree char *at =
      step < 0 ? g_strdup ("") : g_strdup_printf (" at step %" G_GINT64_FORMAT, step);
  if (restored != NULL)
    muster_cli_say (stdout, "%s\n", restored);
  else if (init_us < MUSTER_MILLISECOND)
    muster_cli_say (stdout, "initialised %" G_GSIZE_FORMAT " variables\n", n_variables);
  else
    muster_cli_say (stdout, "initialised %" G_GSIZE_FORMAT " variables in %s\n", n_variables, init);
  muster_cli_say (stdout, "ready: %s%s%s\n", result->options->model, at, spent);
}

/* Prints the result: of a success as text, of any outcome as JSON. */
static void
report_result (const MusterCliResult *result, gsize n_variables, gint64 step)
{
  if (result->error == NULL && result->report->passed_over != NULL)
    muster_cli_say (stderr, "warning: %s\n", result->report->passed_over);
  if (result->error == NULL && result->report->restore_warning != NULL)
    muster_cli_say (stderr, "warning: %s\n", result->report->restore_warning);
  if (result->options->json) {
    g_autoptr (JsonBuilder) builder = muster_json_new_line ();
    muster_cli_result_json (builder, result);
    muster_json_add_int (builder, "variables", (gint64)n_variables);
    muster_json_add_step (builder, "step", step);
    muster_json_print_line (builder);
  } else if (result->error == NULL) {
    report_ready (result, n_variables, step);
  }
}

/* The model's global step, which is known only when it is ready; -1 if it has none. */
static gint64
read_step (MusterCliOperation *operation, MusterSession *session, GError **error)
{
  if (muster_scaffold_global_step (operation->scaffold) == NULL)
    return -1;
  gint64 deadline_us =
      muster_deadline_after (operation->started_us, operation->options->timeout_us);
  gint64 step = muster_read_global_step (session, operation->scaffold, deadline_us,
                                         muster_live_cancellable (operation->live), error);
  if (step < 0)
    operation->report.outcome = MUSTER_OUTCOME_FAILED;
  return step;
}

/* A model with positions holds its tasks until its chief trains; here no chief does. */
static gboolean
release_tasks (MusterCliOperation *operation, MusterSession *session, GError **error)
{
  const gint64 deadline_us =
      muster_deadline_after (operation->started_us, operation->options->timeout_us);
  if (operation->n_tasks == 0 ||
      muster_position_set_hold (session, MUSTER_POSITION_GO, deadline_us,
                                muster_live_cancellable (operation->live), error))
    return TRUE;
  operation->report.outcome = MUSTER_OUTCOME_FAILED;
  return FALSE;
}

static MusterExit
prepare_model (const MusterCliOptions *options, const PrepareOptions *prepare)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaver) saver = NULL;
  g_auto (MusterCliOperation) operation = {.n_tasks = (guint)prepare->n_tasks};
  if (!muster_cli_operation_begin (&operation, options, "preparing", 0, FALSE, &error))
    return muster_cli_fail (error);
  if (prepare->what.checkpoint_dir != NULL || prepare->what.checkpoint_filename != NULL) {
    saver = muster_saver_new (muster_scaffold_meta_graph (operation.scaffold), NULL, &error);
    if (saver == NULL) {
      g_clear_pointer (&operation.live, muster_live_end); /* before anything is printed */
      return muster_cli_fail (error);
    }
  }
  MusterRestoreOptions restore = prepare->restore;
  restore.progress = muster_live_restoring;
  restore.user_data = operation.live;
  MusterPrepareOptions what = prepare->what;
  what.init_op = muster_scaffold_init_op (operation.scaffold);
  what.saver = saver;
  what.restore = &restore;
  what.timeout_us = options->timeout_us;
  g_autoptr (MusterSession) session = muster_session_manager_prepare_session (
      operation.manager, operation.master, &what, &operation.report,
      muster_live_cancellable (operation.live), &error);
  gint64 step = session != NULL && release_tasks (&operation, session, &error)
                    ? read_step (&operation, session, &error)
                    : -1;
  MusterCliResult result;
  muster_cli_operation_end (&operation, "prepare", session, error, &result);
  report_result (&result, muster_scaffold_n_variables (operation.scaffold), step);
  return muster_cli_result_exit (&result);
}

#define AT(field) MUSTER_CLI_AT (PrepareOptions, field)

static const GOptionEntry entries[] = {
    {"rename", 0, 0, G_OPTION_ARG_STRING_ARRAY, AT (renamed),
     "read VARIABLE from the checkpoint's tensor NAME, or all a/… from b/… by 'a/*=b/*' (default: "
     "its own name)",
     "VARIABLE=NAME"},
    {"tasks", 0, 0, G_OPTION_ARG_INT, AT (n_tasks),
     "prepare for `muster train --feed` with this number of tasks, chief and workers: add their "
     "positions in the data to the model (default: none)",
     "N"},
    {NULL}};

/* Numbers of which 0 stands for the default from here on: given, they are 1 or more. */
static gboolean
check_counts (PrepareOptions *self, GError **error)
{
  const gboolean has_tasks = self->n_tasks != MUSTER_CLI_NOT_GIVEN;
  if (has_tasks && self->n_tasks < 1)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "prepare: invalid --tasks '%d' (use the number of workers plus the chief)",
                        self->n_tasks);
  self->n_tasks = has_tasks ? self->n_tasks : 0;
  return self->what.epoch > 0 || !muster_flags_is_given (self->flags, "epoch") ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "prepare: --epoch must be 1 or more");
}

static gboolean
parse (PrepareOptions *self, int argc, char **argv, MusterCliOptions *options, GError **error)
{
  self->n_tasks = MUSTER_CLI_NOT_GIVEN;
  self->flags = muster_flags_new ("prepare");
  muster_flags_add_options (self->flags, MUSTER_TYPE_PREPARE_OPTIONS, &self->what);
  muster_flags_add_options (self->flags, MUSTER_TYPE_RESTORE_OPTIONS, &self->restore);
  muster_flags_add (self->flags, entries, self);
  return muster_cli_parse (argc, argv, "", summary, muster_flags_entries (self->flags),
                           MUSTER_CLI_OPERATION, options, NULL, error) &&
         muster_flags_apply (self->flags, error) && check_counts (self, error) &&
         parse_names (self, error);
}

int
muster_cli_prepare (int argc, char **argv)
{
  g_auto (PrepareOptions) prepare = {0};
  g_auto (MusterCliOptions) options = {0};
  g_autoptr (GError) error = NULL;
  if (!parse (&prepare, argc, argv, &options, &error))
    return muster_cli_fail (error);
  return prepare_model (&options, &prepare);
}
