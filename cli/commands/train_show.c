// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/train_show.h"

#include "cli/commands/train_line.h"
#include "cli/common/cli.h"
#include "cli/output/figures.h"
#include "cli/output/json.h"
#include "cli/output/notify.h"
#include "ready/backoff.h"
#include "status/goodput.h"
#include "status/saves.h"

#include <math.h>
#include <string.h>

#define LINE_EVERY_US  (10 * MUSTER_SECOND) /* if the output isn't a terminal */
#define JSON_EVERY_US  (MUSTER_SECOND / 10)
#define SAVED_EVERY_US MUSTER_SECOND /* checkpoints in between are shown only in the bar */
#define DRILL_AFTER_US MUSTER_SECOND

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

static gboolean
is_json (const MusterTrainShow *self)
{
  return self->options->json;
}

static void say (MusterTrainShow *self, FILE *to, const char *format, ...) G_GNUC_PRINTF (3, 4);

static void
say (MusterTrainShow *self, FILE *to, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  if (self->live != NULL)
    muster_live_say (self->live, to, text);
  else
    muster_cli_say (to, "%s\n", text);
}

/* --- JSON --- */

static void
add_number (JsonBuilder *builder, const char *name, double number)
{
  json_builder_set_member_name (builder, name);
  if (isfinite (number))
    json_builder_add_double_value (builder, number);
  else
    json_builder_add_null_value (builder);
}

static JsonBuilder *
begin_event (const char *event, gint64 step)
{
  JsonBuilder *builder = muster_json_new_line ();
  muster_json_add_string (builder, "event", event);
  add_number (builder, "time",
              (double)muster_clock_wall_us (muster_system_clock ()) / MUSTER_SECOND);
  muster_json_add_step (builder, "step", step);
  return builder;
}

static void
end_event (JsonBuilder *builder)
{
  muster_json_print_line (builder);
  g_object_unref (builder);
}

static void
add_state (JsonBuilder *builder, const MusterTrainingState *state)
{
  muster_json_add_step (builder, "until_step",
                        state->until_step < G_MAXINT64 ? state->until_step : -1);
  add_number (builder, "steps_per_second",
              state->steps_per_second > 0 ? state->steps_per_second : NAN);
  add_number (builder, "loss", state->loss);
  add_number (builder, "seconds_left",
              state->left_us < 0 ? NAN : (double)state->left_us / MUSTER_SECOND);
  muster_json_add_step (builder, "durable_step", state->durable_step);
  muster_json_add_string (builder, "awaits", state->awaits);
  add_number (builder, "awaits_seconds",
              state->awaits == NULL ? NAN : (double)state->awaits_us / MUSTER_SECOND);
  muster_saves_json (builder, state->saves);
  muster_goodput_json (builder, &state->goodput);
}

/* --- ready --- */

/* How the model became ready. */
static const char *
way_of (const MusterSessionReport *report)
{
  return report->continued                          ? "continued"
         : report->restored_from != NULL            ? "restored"
         : muster_cli_phase_us (report, "init") > 0 ? "initialised"
                                                    : "joined";
}

static void
say_ready (MusterTrainShow *self, const MusterSessionReport *report, gint64 step, gint64 took_us)
{
  const char *model = self->options->model;
  g_autofree char *spent = muster_cli_in_phases (report);
  g_autofree char *took = muster_format_duration (took_us);
  if (report->continued) {
    say (self, stdout,
         "continuing with the model on the master: %s at step %" G_GINT64_FORMAT ", after %s%s",
         model, step, took, spent);
  } else if (report->restored_from != NULL) {
    g_autofree char *restored = muster_cli_restored (report);
    say (self, stdout, "%s: %s at step %" G_GINT64_FORMAT "%s", restored, model, step, spent);
  } else if (muster_cli_phase_us (report, "init") > 0) {
    say (self, stdout, "initialised %s, %" G_GSIZE_FORMAT " variables, after %s%s", model,
         self->n_variables, took, spent);
  } else {
    say (self, stdout, "ready after %s: %s at step %" G_GINT64_FORMAT "%s", took, model, step,
         spent);
  }
}

static void
on_ready (const MusterSessionReport *report, gint64 step, gpointer user_data)
{
  MusterTrainShow *self = user_data;
  const gint64 at_us = now_us (), took_us = at_us - self->made_us;
  muster_cli_trace_add_report (self->trace, report, self->made_us);
  if (report->passed_over != NULL)
    say (self, stderr, "warning: %s", report->passed_over);
  if (report->restore_warning != NULL)
    say (self, stderr, "warning: %s", report->restore_warning);
  if (self->ready_us == 0) {
    self->ready_us = at_us;
    self->ready_step = step;
  }
  if (is_json (self))
    self->reported_us = 0;
  if (report->restored_from != NULL) {
    g_free (self->durable);
    self->durable = g_strdup (report->restored_from);
  }
  muster_live_line (self->live, "");
  muster_notify ("READY=1\nSTATUS=training");
  if (!is_json (self)) {
    say_ready (self, report, step, took_us);
    return;
  }
  JsonBuilder *builder = begin_event ("ready", step);
  muster_json_add_string (builder, "model", self->options->model);
  muster_json_add_string (builder, "task", self->options->task);
  muster_json_add_string (builder, "how", way_of (report));
  muster_json_add_string (builder, "restored_from", report->restored_from);
  muster_json_add_int (builder, "variables", (gint64)self->n_variables);
  muster_json_add_seconds (builder, "seconds", took_us);
  end_event (builder);
}

/* A worker's model is durable where its chief says. */
static void
on_role (gboolean is_chief, guint slot, gpointer user_data)
{
  MusterTrainShow *self = user_data;
  const char *role = is_chief ? "chief" : "worker";
  self->made_us = now_us ();
  self->is_worker = !is_chief;
  if (!is_chief)
    g_clear_pointer (&self->durable, g_free);
  if (!is_json (self)) {
    say (self, stdout, "this task is %s in slot %u", is_chief ? "the chief" : "a worker", slot);
    return;
  }
  JsonBuilder *builder = begin_event ("role", self->state.step);
  muster_json_add_string (builder, "role", role);
  muster_json_add_int (builder, "slot", slot);
  end_event (builder);
}

static void
say_lost (MusterTrainShow *self, const GError *why, gint64 pause_us)
{
  g_autofree char *pause = muster_format_duration (pause_us);
  if (muster_failure_is_reset (why))
    say (self, stderr, MUSTER_RESET_REASON);
  else if (muster_error_is (why, MUSTER_ERROR_UNAVAILABLE))
    say (self, stderr, "lost the session: %s; retrying within %s", why->message, pause);
  else
    say (self, stderr, "lost the session: %s; retrying in %s", why->message, pause);
}

static void
on_lost (const GError *why, guint n, gint64 pause_us, gpointer user_data)
{
  MusterTrainShow *self = user_data;
  self->made_us = now_us ();
  if (!is_json (self)) {
    say_lost (self, why, pause_us);
    return;
  }
  JsonBuilder *builder = begin_event ("lost", self->state.step);
  muster_json_add_string (builder, "why", why->message);
  muster_json_add_int (builder, "times", n);
  muster_json_add_seconds (builder, "pause", pause_us);
  end_event (builder);
}

/* --- training --- */

static void
show_step (MusterTrainShow *self, gint64 at_us)
{
  const guint width = muster_live_width (self->live);
  const gint64 every_us = is_json (self) ? JSON_EVERY_US : LINE_EVERY_US;
  if (width > 0) {
    g_autofree char *line =
        muster_train_line (&self->state, width, muster_live_is_coloured (self->live));
    muster_live_line (self->live, line);
    return;
  }
  /* in JSON the first step of each session is an event */
  if (at_us - (is_json (self) ? self->reported_us : MAX (self->reported_us, self->ready_us)) <
      every_us)
    return;
  self->reported_us = at_us;
  if (is_json (self)) {
    JsonBuilder *builder = begin_event ("step", self->state.step);
    add_state (builder, &self->state);
    end_event (builder);
  } else {
    g_autofree char *line = muster_train_line (&self->state, 0, FALSE);
    say (self, stdout, "%s", line);
  }
}

/* A pause of the training, and its end. */
static void
note_paused (MusterTrainShow *self)
{
  const char *why = self->state.paused;
  if (g_strcmp0 (why, self->paused) == 0)
    return;
  g_free (self->paused);
  self->paused = g_strdup (why);
  muster_notify_status (why != NULL ? why : "training");
  if (!is_json (self)) {
    say (self, stderr, "%s", why != NULL ? why : "the job has enough tasks; training goes on");
    return;
  }
  JsonBuilder *builder = begin_event ("waiting", self->state.step);
  muster_json_add_string (builder, "waiting", why);
  end_event (builder);
}

static gboolean
on_progress (const MusterTrainingState *state, gpointer user_data)
{
  MusterTrainShow *self = user_data;
  const gint64 at_us = now_us ();
  muster_save_status_free (self->saves);
  self->saves = muster_save_status_copy (state->saves);
  self->state = *state;
  self->state.saves = self->saves;
  if (self->is_drill && at_us - self->ready_us >= DRILL_AFTER_US)
    muster_preemption_drill (self->preemption);
  note_paused (self);
  if (self->paused == NULL || !is_json (self)) /* there are no steps to report */
    show_step (self, at_us);
  self->state.awaits = self->state.paused = NULL; /* they aren't kept */
  return TRUE;
}

static void
say_saved (MusterTrainShow *self, const MusterSaved *saved)
{
  const gint64 at_us = now_us ();
  if (saved->skipped) {
    say (self, stderr, "no checkpoint of step %" G_GINT64_FORMAT ": %s", saved->step, saved->why);
    return;
  }
  if (saved->why != NULL)
    say (self, stderr,
         "warning: the checkpoint is complete, but its metadata could not be written: %s",
         saved->why);
  if (at_us - self->said_us < SAVED_EVERY_US)
    return;
  self->said_us = at_us;
  g_autofree char *transfer = muster_figure_transfer (saved->bytes, saved->took_us);
  say (self, stdout, "saved %s, %s%s", saved->prefix, saved->tier < self->n_fast ? "" : "durable, ",
       transfer);
}

/* A box for each state, for as long as the save took to reach it. */
static void
trace_saved (MusterTrainShow *self, const MusterSaved *saved)
{
  for (guint i = MUSTER_SAVE_STAGED; i < MUSTER_N_SAVE_STATES; i++)
    if (saved->at_us[i - 1] >= 0 && saved->at_us[i] >= saved->at_us[i - 1])
      muster_cli_trace_add (self->trace, "saves", muster_save_state_name ((MusterSaveState)i),
                            saved->prefix, saved->at_us[i - 1], saved->at_us[i]);
}

static void
on_saved (const MusterSaved *saved, gpointer user_data)
{
  MusterTrainShow *self = user_data;
  trace_saved (self, saved);
  if (!saved->skipped) {
    g_free (self->durable);
    self->durable = g_strdup (saved->prefix);
    self->saved_step = saved->step;
    if (saved->tier >= self->n_fast)
      self->state.durable_step = saved->step;
  }
  if (!is_json (self)) {
    say_saved (self, saved);
    return;
  }
  JsonBuilder *builder = begin_event (saved->skipped ? "skipped" : "saved", saved->step);
  muster_json_add_string (builder, "checkpoint", saved->prefix);
  muster_json_add_int (builder, "bytes", (gint64)saved->bytes);
  muster_json_add_seconds (builder, "seconds", saved->took_us);
  muster_json_add_string (builder, "why", saved->why);
  end_event (builder);
}

/* The same checkpoint, in a lower tier. */
static void
on_copied (const MusterTierCopied *copied, gpointer user_data)
{
  MusterTrainShow *self = user_data;
  const gint64 at_us = now_us ();
  if (copied->step == self->saved_step) {
    g_free (self->durable);
    self->durable = g_strdup (copied->prefix);
  }
  if (copied->tier >= self->n_fast)
    self->state.durable_step = MAX (self->state.durable_step, copied->step);
  if (is_json (self)) {
    JsonBuilder *builder = begin_event ("copied", copied->step);
    muster_json_add_string (builder, "checkpoint", copied->prefix);
    muster_json_add_int (builder, "bytes", (gint64)copied->bytes);
    muster_json_add_seconds (builder, "seconds", copied->took_us);
    end_event (builder);
  } else if (at_us - self->copied_us >= SAVED_EVERY_US) {
    g_autofree char *transfer = muster_figure_transfer (copied->bytes, copied->took_us);
    self->copied_us = at_us;
    say (self, stdout, "copied to %s, %s%s", copied->prefix,
         copied->tier < self->n_fast ? "" : "durable, ", transfer);
  }
}

/* The text is the hook's message. */
static void
on_save_failed (const MusterFailedSave *failed, gpointer user_data)
{
  MusterTrainShow *self = user_data;
  if (!is_json (self))
    return;
  JsonBuilder *builder = begin_event ("save-failed", failed->step);
  muster_json_add_string (builder, "error", failed->why->message);
  muster_json_add_int (builder, "in_a_row", failed->n_in_a_row);
  muster_json_add_int (builder, "left_out", failed->n_left_out);
  end_event (builder);
}

MusterTrainingListener
muster_train_show_listener (MusterTrainShow *self)
{
  return (MusterTrainingListener){.waiting = muster_live_progress,
                                  .waiting_data = self->live,
                                  .ready = on_ready,
                                  .lost = on_lost,
                                  .role = on_role,
                                  .progress = on_progress,
                                  .saved = on_saved,
                                  .copied = on_copied,
                                  .save_failed = on_save_failed,
                                  .user_data = self};
}

void
muster_train_show_init (MusterTrainShow *self, const MusterCliOptions *options, MusterLive *live)
{
  self->options = options;
  self->live = live;
  self->made_us = now_us ();
  self->trace = muster_cli_trace_new (self->made_us);
  self->state = (MusterTrainingState){
      .step = -1, .until_step = G_MAXINT64, .loss = NAN, .left_us = -1, .durable_step = -1};
}

void
muster_train_show_clear (MusterTrainShow *self)
{
  g_clear_pointer (&self->durable, g_free);
  g_clear_pointer (&self->paused, g_free);
  g_clear_pointer (&self->saves, muster_save_status_free);
  g_clear_pointer (&self->trace, muster_cli_trace_free);
}

/* --- the end --- */

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
  *took_us = self->ready_us > 0 ? now_us () - self->ready_us : 0;
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
  g_autofree char *after = muster_format_duration (DRILL_AFTER_US);
  g_autofree char *took = muster_format_duration (now_us () - self->ready_us);
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
  JsonBuilder *builder = begin_event (event_of (code), trained->step);
  add_state (builder, &self->state);
  add_number (builder, "mean_steps_per_second", rate > 0 ? rate : NAN);
  muster_json_add_seconds (builder, "trained_seconds", took_us);
  muster_json_add_string (builder, "checkpoint", self->durable);
  muster_json_add_int (builder, "recoveries", trained->n_recoveries);
  muster_json_add_string (builder, "preemption", preemption);
  muster_json_add_int (builder, "exit_code", code);
  muster_cli_result_json (builder, result);
  end_event (builder);
}

/* Reports the preemption's outcome, and how to resume. */
static void
say_preempted (MusterTrainShow *self, const MusterPreemptionReport *preempted)
{
  g_autofree char *text = muster_preemption_report_text (preempted);
  muster_cli_say (stdout, "%s\n", text);
  if (self->durable != NULL)
    muster_cli_say (stdout, "  the same command resumes from %s\n", self->durable);
}

MusterExit
muster_train_show_end (MusterTrainShow *self, const MusterTrained *trained, const GError *error)
{
  g_auto (MusterPreemptionReport) preempted = {0};
  (void)muster_preemption_report (self->preemption, &preempted);
  const MusterCliResult result = {.options = self->options,
                                  .report = &trained->report,
                                  .error = error,
                                  .took_us = now_us () - self->made_us};
  const MusterExit code = exit_of (self, &result, trained, &preempted);
  self->live = NULL;
  self->state.goodput = trained->goodput;
  muster_cli_trace_write (self->trace, self->options, "train");
  const gboolean is_told = preempted.outcome != MUSTER_PREEMPTION_NOT_ASKED &&
                           muster_preemption_explains (self->preemption, error);
  if (code != MUSTER_EXIT_DONE && !is_told && error != NULL) {
    if (self->ready_us == 0 || code == MUSTER_EXIT_OVER)
      muster_cli_report_failure (&result);
    else
      muster_cli_say (stderr, "muster: %s\n", error->message);
  }
  if (is_json (self))
    print_end (self, &result, trained, &preempted, code);
  else if (preempted.outcome != MUSTER_PREEMPTION_NOT_ASKED &&
           (code != MUSTER_EXIT_DONE || self->is_drill))
    say_preempted (self, &preempted);
  else if (error == NULL)
    say_trained (self, trained);
  if (!is_json (self) && self->ready_us > 0)
    say_goodput (self, trained);
  if (missed_drill (self, &preempted, error) && !is_json (self)) {
    g_autofree char *text = describe_missed_drill (self);
    muster_cli_say (stderr, "muster: %s\n", text);
  }
  return code;
}
