// SPDX-License-Identifier: Apache-2.0
/* The result of `muster train`, and its exit code. */
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/stores/default_storage.h"
#include "cli/commands/train_event.h"
#include "cli/commands/train_show.h"
#include "cli/common/cli.h"
#include "cli/output/figures.h"
#include "cli/output/json.h"
#include "status/goodput.h"

#include <math.h>

static const char *
event_of (MusterExit code)
{
  return code == MUSTER_EXIT_DONE        ? "trained"
         : code == MUSTER_EXIT_PREEMPTED ? "preempted"
         : code == MUSTER_EXIT_OVER      ? "over"
                                         : "failed";
}

/* The mean rate of the whole training; 0 if unknown. */
static double
mean_rate (const MusterTrainShow *self, const MusterTrained *trained, gint64 *took_us)
{
  *took_us = self->ready_us > 0 ? muster_train_now_us () - self->ready_us : 0;
  const gint64 steps = trained->step - self->ready_step;
  return *took_us > 0 && steps > 0 ? (double)steps * MUSTER_SECOND / (double)*took_us : 0;
}

/* "trained digits to step 1000 in 3.2 s (5,210 steps/s), loss 0.213; run/model.ckpt-1000 is
 * durable" */
static void
say_trained (MusterTrainShow *self, const MusterTrained *trained)
{
  gint64 took_us;
  const double rate = mean_rate (self, trained, &took_us);
  g_autofree char *took = muster_format_duration (took_us),
                  *speed = muster_figure_steps_rate (rate);
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append_printf (text, "trained %s to step %" G_GINT64_FORMAT, self->options->model,
                          trained->step);
  if (rate > 0)
    g_string_append_printf (text, " in %s (%s)", took, speed);
  else
    g_string_append (text, ": already complete");
  if (isfinite (self->state.loss))
    g_string_append_printf (text, ", loss %.4g", self->state.loss);
  if (self->durable != NULL)
    g_string_append_printf (text, "; %s is durable", self->durable);
  muster_cli_say (stdout, "%s\n", text->str);
}

/* A worker's is only its process's. */
static void
say_goodput (const MusterTrainShow *self, const MusterTrained *trained)
{
  if (self->is_worker || trained->goodput.began_us == 0)
    return;
  g_autofree char *text = muster_goodput_text (&trained->goodput);
  muster_cli_say (stdout, "%s\n", text);
}

/* Reports a drill that didn't happen because training ended first. */
static gboolean
missed_drill (const MusterTrainShow *self, const MusterPreemptionReport *preempted,
              const GError *error)
{
  return self->is_drill && preempted->outcome == MUSTER_PREEMPTION_NOT_ASKED && error == NULL;
}

static char *
describe_missed_drill (const MusterTrainShow *self)
{
  g_autofree char *after = muster_format_duration (MUSTER_TRAIN_DRILL_AFTER_US);
  g_autofree char *took = muster_format_duration (muster_train_now_us () - self->ready_us);
  return g_strdup_printf ("drill failed: training ended after %s, and the drill begins after %s; "
                          "set more --steps or --epochs",
                          took, after);
}

/* The exit code of a failure that no preemption explains. Once the model is ready, a deadline no
 * longer ends a wait, and a file that fails, such as the last checkpoint's, is no input. */
static MusterExit
failed_exit_of (MusterTrainShow *self, const MusterCliResult *result)
{
  const MusterExit code = muster_cli_result_exit (result);
  const GError *error = result->error;
  if (self->ready_us == 0 || error == NULL)
    return code;
  const gboolean is_of_a_file = error->domain == G_FILE_ERROR || error->domain == G_IO_ERROR ||
                                muster_error_is (error, MUSTER_ERROR_NOT_FOUND) ||
                                muster_error_is (error, MUSTER_ERROR_DATA_LOSS) ||
                                muster_error_is (error, MUSTER_ERROR_PERMISSION_DENIED);
  return code == MUSTER_EXIT_NOT_READY || (code == MUSTER_EXIT_BAD_INPUT && is_of_a_file)
             ? MUSTER_EXIT_FAILED
             : code;
}

static MusterExit
exit_of (MusterTrainShow *self, const MusterCliResult *result, const MusterTrained *trained,
         const MusterPreemptionReport *preempted)
{
  if (missed_drill (self, preempted, result->error))
    return MUSTER_EXIT_FAILED;
  if (preempted->outcome == MUSTER_PREEMPTION_NOT_ASKED ||
      !muster_preemption_explains (self->preemption, result->error))
    return failed_exit_of (self, result);
  if (!preempted->is_drill) /* training that had finished before the signal succeeded */
    return result->error == NULL && trained->is_reached ? MUSTER_EXIT_DONE : MUSTER_EXIT_PREEMPTED;
  return preempted->outcome == MUSTER_PREEMPTION_SAVED ||
                 preempted->outcome == MUSTER_PREEMPTION_NO_SAVE
             ? MUSTER_EXIT_DONE
             : MUSTER_EXIT_FAILED;
}

static void
print_end (MusterTrainShow *self, const MusterCliResult *result, const MusterTrained *trained,
           const MusterPreemptionReport *preempted, MusterExit code)
{
  g_autofree char *preemption =
      preempted->outcome != MUSTER_PREEMPTION_NOT_ASKED ? muster_preemption_report_text (preempted)
      : missed_drill (self, preempted, result->error)   ? describe_missed_drill (self)
                                                        : NULL;
  gint64 took_us;
  const double rate = mean_rate (self, trained, &took_us);
  JsonBuilder *builder = muster_train_event_begin (event_of (code), trained->step);
  muster_train_event_add_state (builder, &self->state);
  muster_train_event_add_number (builder, "mean_steps_per_second", rate > 0 ? rate : NAN);
  muster_json_add_seconds (builder, "trained_seconds", took_us);
  muster_json_add_string (builder, "checkpoint", self->durable);
  muster_json_add_int (builder, "recoveries", trained->n_recoveries);
  muster_json_add_string (builder, "preemption", preemption);
  muster_json_add_int (builder, "exit_code", code);
  muster_cli_result_json (builder, result);
  muster_train_event_end (builder);
}

/* The directory may have gone with its checkpoints while the job trained. A store across the
 * network isn't asked: the grace may end before it answers. */
static void
say_resume (MusterTrainShow *self, FILE *to)
{
  if (self->durable == NULL)
    return;
  if (!muster_storage_is_local (NULL, self->durable) ||
      !muster_checkpoint_is_gone (NULL, self->durable)) {
    muster_cli_say (to, "  the same command resumes from %s\n", self->durable);
    return;
  }
  muster_cli_say (to, "  %s is gone: nothing can be resumed from it\n", self->durable);
  muster_cli_say (to,
                  "  try: `muster save` to another directory, if a server still has the model\n");
}

/* Started again beside the other chief, this one would take the directory back from it. */
static gboolean
is_replaced (const MusterCliResult *result)
{
  return result->report->outcome == MUSTER_OUTCOME_FENCED ||
         muster_saver_is_taken_over (result->error);
}

/* Reports the preemption's outcome, and how to resume. */
static void
say_preempted (MusterTrainShow *self, const MusterPreemptionReport *preempted)
{
  g_autofree char *text = muster_preemption_report_text (preempted);
  muster_cli_say (stdout, "%s\n", text);
  say_resume (self, stdout);
}

/* Reports a failure, and how to resume: not what the first step already refuses. */
static void
say_failed (MusterTrainShow *self, const MusterCliResult *result, const MusterTrained *trained,
            MusterExit code)
{
  if (self->ready_us == 0 || code == MUSTER_EXIT_OVER) {
    muster_cli_report_failure (result);
    return;
  }
  muster_cli_say (stderr, "muster: %s\n", result->error->message);
  if (is_replaced (result))
    muster_cli_say (stderr, "  another chief has its place: end that one before you start this one "
                            "again\n");
  else if (code != MUSTER_EXIT_BAD_INPUT || trained->step > self->ready_step)
    say_resume (self, stderr);
}

MusterExit
muster_train_show_end (MusterTrainShow *self, const MusterTrained *trained, const GError *error)
{
  g_auto (MusterPreemptionReport) preempted = {0};
  (void)muster_preemption_report (self->preemption, &preempted);
  const MusterCliResult result = {.options = self->options,
                                  .report = &trained->report,
                                  .error = error,
                                  .took_us = muster_train_now_us () - self->made_us};
  const MusterExit code = exit_of (self, &result, trained, &preempted);
  self->live = NULL;
  self->state.goodput = trained->goodput;
  muster_cli_trace_write (self->trace, self->options, "train");
  const gboolean is_told = preempted.outcome != MUSTER_PREEMPTION_NOT_ASKED &&
                           muster_preemption_explains (self->preemption, error);
  if (code != MUSTER_EXIT_DONE && !is_told && error != NULL)
    say_failed (self, &result, trained, code);
  if (self->options->json)
    print_end (self, &result, trained, &preempted, code);
  else if (preempted.outcome != MUSTER_PREEMPTION_NOT_ASKED &&
           (code != MUSTER_EXIT_DONE || self->is_drill))
    say_preempted (self, &preempted);
  else if (error == NULL)
    say_trained (self, trained);
  if (!self->options->json && self->ready_us > 0)
    say_goodput (self, trained);
  if (missed_drill (self, &preempted, error) && !self->options->json) {
    g_autofree char *text = describe_missed_drill (self);
    muster_cli_say (stderr, "muster: %s\n", text);
  }
  return code;
}
