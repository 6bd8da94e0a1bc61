// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_reader.h"
#include "cli/cli.h"
#include "cli/live.h"
#include "cli/notify.h"
#include "cli/report.h"
#include "train/training.h"

#include <string.h>

static const char summary[] =
    "The chief's part: opens a session on the master and makes the model ready. With "
    "--checkpoint-dir the latest\n"
    "checkpoint there is restored, with --checkpoint that one; where there is none, the model's "
    "init op runs. The model\n"
    "stays initialised on the master for the workers, which wait with `muster wait`.\n\n"
    "On muster's master the model is claimed first: of two chiefs one prepares, and the other is "
    "told so before it runs\n"
    "anything. What another chief has prepared isn't initialised again, and a job that is over "
    "isn't begun again, unless\n"
    "--again says so.";

typedef struct {
  char *directory; /* (owned) (nullable) */
  char *prefix;    /* (owned) (nullable) */
  gint64 epoch;
  gboolean again;
} PrepareOptions;

static void
prepare_options_clear (PrepareOptions *self)
{
  g_free (self->directory);
  g_free (self->prefix);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PrepareOptions, prepare_options_clear)

static gint64
phase_us (const MusterSessionReport *report, const char *name)
{
  for (guint i = 0; report->phases != NULL && i < report->phases->len; i++)
    if (strcmp (g_array_index (report->phases, MusterPhase, i).name, name) == 0)
      return g_array_index (report->phases, MusterPhase, i).duration_us;
  return 0;
}

/* The bytes of a checkpoint's tensors; 0 if it can't be read from here. */
static guint64
size_of (const char *prefix)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, NULL);
  guint64 size = 0;
  for (gsize i = 0; reader != NULL && i < muster_bundle_reader_n_entries (reader); i++)
    size += (guint64)muster_bundle_reader_entry (reader, i)->size;
  return size;
}

/* "restored run/model.ckpt-1200: 104 variables, 3.4 GB in 2.9 s (1.2 GB/s)" */
static void
tell_restored (const MusterSessionReport *report, gsize n_variables)
{
  gint64 took_us = phase_us (report, "restore");
  guint64 size = size_of (report->restored_from);
  g_autofree char *bytes = muster_format_size (size);
  g_autofree char *took = muster_format_duration (took_us);
  g_autoptr (GString) text = g_string_new (NULL);
  if (size > 0 && took_us > 0) {
    g_autofree char *rate =
        muster_format_size ((guint64)((double)size * MUSTER_SECOND / (double)took_us));
    g_string_append_printf (text, ", %s in %s (%s/s)", bytes, took, rate);
  } else {
    g_string_append_printf (text, " in %s", took);
  }
  muster_cli_say (stdout, "restored %s: %" G_GSIZE_FORMAT " variables%s\n", report->restored_from,
                  n_variables, text->str);
}

static void
tell_ready (const MusterCliResult *result, gsize n_variables, gint64 step)
{
  const MusterSessionReport *report = result->report;
  g_autofree char *spent = muster_cli_phases (report);
  g_autofree char *init = muster_format_duration (phase_us (report, "init"));
  g_autofree char *at =
      step < 0 ? g_strdup ("") : g_strdup_printf (" at step %" G_GINT64_FORMAT, step);
  if (report->passed_over != NULL)
    muster_cli_say (stderr, "warning: passed over %s\n", report->passed_over);
  if (result->options->json)
    return;
  if (report->restored_from != NULL)
    tell_restored (report, n_variables);
  else
    muster_cli_say (stdout, "initialised %" G_GSIZE_FORMAT " variables in %s\n", n_variables, init);
  muster_cli_say (stdout, "ready: %s%s (%s)\n", result->options->model, at, spent);
}

static MusterExit
conclude (const MusterCliResult *result, gsize n_variables, gint64 step)
{
  muster_cli_write_trace (result, "prepare");
  if (result->error == NULL) {
    muster_notify ("READY=1\nSTATUS=ready");
    tell_ready (result, n_variables, step);
  } else {
    muster_notify_status (result->error->message);
    muster_cli_tell_failure (result);
  }
  if (result->options->json) {
    g_autoptr (JsonBuilder) builder = muster_json_new_line ();
    muster_cli_result_json (builder, result);
    muster_json_add_int (builder, "variables", (gint64)n_variables);
    muster_json_add_step (builder, "step", step);
    muster_json_print_line (builder);
  }
  return muster_cli_result_exit (result);
}

/* The manager and, where something is to be restored, the saver. */
static MusterSessionManager *
make_manager (MusterScaffold *scaffold, const MusterCliOptions *options,
              const PrepareOptions *prepare, MusterSaver **saver, GError **error)
{
  if (prepare->directory != NULL || prepare->prefix != NULL) {
    *saver = muster_saver_new (muster_scaffold_meta_graph (scaffold), NULL, error);
    if (*saver == NULL)
      return NULL;
  }
  return muster_cli_manager (scaffold, options, 0, error);
}

static MusterExit
prepare_model (const MusterCliOptions *options, const PrepareOptions *prepare)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load (options->meta_graph, &error);
  if (scaffold == NULL)
    return muster_cli_fail (error);
  MusterLive *live = muster_live_new ("preparing", options, FALSE);
  g_autoptr (MusterMaster) master = muster_cli_master (options, &error);
  g_autoptr (MusterSaver) saver = NULL;
  g_autoptr (MusterSessionManager) manager =
      master == NULL ? NULL : make_manager (scaffold, options, prepare, &saver, &error);
  if (manager == NULL) {
    muster_live_end (live);
    return muster_cli_fail (error);
  }
  MusterPrepareOptions what = {
      .init_op = muster_scaffold_init_op (scaffold),
      .saver = saver,
      .checkpoint_dir = prepare->directory,
      .checkpoint_filename = prepare->prefix,
      .timeout_us = options->timeout_us,
      .epoch = prepare->epoch,
      .again = prepare->again,
  };
  muster_session_manager_set_progress (manager, muster_live_progress, live);
  gint64 started_us = muster_clock_now_us (muster_system_clock ());
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (MusterSession) session = muster_session_manager_prepare_session (
      manager, master, &what, &report, muster_live_cancellable (live), &error);
  gint64 step = -1;
  if (session != NULL && muster_scaffold_global_step (scaffold) != NULL)
    step = muster_read_global_step (session, scaffold,
                                    muster_deadline_after (started_us, options->timeout_us),
                                    muster_live_cancellable (live), &error);
  if (session != NULL && error != NULL)
    report.outcome = MUSTER_OUTCOME_FAILED;
  MusterCliResult result = {
      .options = options,
      .report = &report,
      .error = error,
      .took_us = muster_clock_now_us (muster_system_clock ()) - started_us,
  };
  if (session != NULL)
    muster_session_close_quietly (session);
  muster_live_end (live);
  return conclude (&result, muster_scaffold_n_variables (scaffold), step);
}

int
muster_cli_prepare (int argc, char **argv)
{
  g_auto (PrepareOptions) prepare = {0};
  g_auto (MusterCliOptions) options = {0};
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
      {"checkpoint-dir", 0, 0, G_OPTION_ARG_FILENAME, &prepare.directory,
       "restore the latest checkpoint of this directory, if any", "DIR"},
      {"checkpoint", 0, 0, G_OPTION_ARG_FILENAME, &prepare.prefix, "restore this checkpoint",
       "PREFIX"},
      {"epoch", 0, 0, G_OPTION_ARG_INT64, &prepare.epoch,
       "the chief's epoch: the higher one wins (default: the one after the last)", "N"},
      {"again", 0, 0, G_OPTION_ARG_NONE, &prepare.again,
       "initialise what another chief has prepared, and a job that is over", NULL},
      {NULL}};
  if (!muster_cli_parse (argc, argv, "", summary, entries, MUSTER_CLI_VERB, &options, NULL, &error))
    return muster_cli_fail (error);
  if (prepare.epoch < 0) {
    fprintf (stderr, "muster: prepare needs an --epoch of 1 or more\n");
    return MUSTER_EXIT_BAD_INPUT;
  }
  return prepare_model (&options, &prepare);
}
