// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/train_show.h"

#include "cli/commands/train_event.h"
#include "cli/commands/train_line.h"
#include "cli/common/cli.h"
#include "cli/output/figures.h"
#include "cli/output/json.h"
#include "cli/output/notify.h"
#include "ready/backoff.h"

#include <math.h>
#include <string.h>

#define LINE_EVERY_US  (10 * MUSTER_SECOND) /* if the output isn't a terminal */
#define JSON_EVERY_US  (MUSTER_SECOND / 10)
#define STALL_EVERY_US (30 * MUSTER_SECOND)
#define SAVED_EVERY_US MUSTER_SECOND /* checkpoints in between are shown only in the bar */

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

/* --- steps that don't end --- */

static void
note_step (MusterTrainShow *self, gint64 at_us)
{
  __atomic_store_n (&self->step_us, at_us, __ATOMIC_RELAXED);
}

void
muster_train_show_tick (gpointer user_data)
{
  MusterTrainShow *self = user_data;
  const gint64 step_us = __atomic_load_n (&self->step_us, __ATOMIC_RELAXED);
  const gint64 now_us = muster_train_now_us ();
  if (step_us == 0 || now_us - MAX (step_us, self->stall_us) < STALL_EVERY_US)
    return;
  self->stall_us = now_us;
  g_autofree char *age = muster_format_duration (now_us - step_us);
  say (self, stderr, "no step has ended for %s%s%s%s", age, self->waits_for != NULL ? "; " : "",
       self->waits_for != NULL ? self->waits_for : "",
       self->has_step_timeout ? "" : "; to end such a step, set --step-timeout");
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
on_ready (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterSessionReport *report,
          gint64 step, gpointer user_data)
{
  MusterTrainShow *self = user_data;
  const gint64 at_us = muster_train_now_us (), took_us = at_us - self->made_us;
  note_step (self, at_us);
  muster_cli_trace_add_report (self->trace, report, self->made_us);
  if (report->passed_over != NULL)
    say (self, stderr, "warning: %s", report->passed_over);
  if (report->restore_warning != NULL)
    say (self, stderr, "warning: %s", report->restore_warning);
  if (self->ready_us == 0) {
    self->ready_us = at_us;
    self->ready_step = step;
  }
  if (self->options->json)
    self->reported_us = 0;
  if (report->restored_from != NULL) {
    g_free (self->durable);
    self->durable = g_strdup (report->restored_from);
  }
  muster_live_line (self->live, "");
  muster_notify ("READY=1\nSTATUS=training");
  if (!self->options->json) {
    say_ready (self, report, step, took_us);
    return;
  }
  JsonBuilder *builder = muster_train_event_begin ("ready", step);
  muster_json_add_string (builder, "model", self->options->model);
  muster_json_add_string (builder, "task", self->options->task);
  muster_json_add_string (builder, "how", way_of (report));
  muster_json_add_string (builder, "restored_from", report->restored_from);
  muster_json_add_int (builder, "variables", (gint64)self->n_variables);
  muster_json_add_seconds (builder, "seconds", took_us);
  muster_train_event_end (builder);
}

/* A worker's model is durable where its chief says. */
static void
on_role (MusterTrainingObserver *observer G_GNUC_UNUSED, gboolean is_chief, guint slot,
         gpointer user_data)
{
  MusterTrainShow *self = user_data;
  const char *role = is_chief ? "chief" : "worker";
  self->made_us = muster_train_now_us ();
  self->is_worker = !is_chief;
  if (!is_chief)
    g_clear_pointer (&self->durable, g_free);
  if (!self->options->json) {
    say (self, stdout, "this task is %s in slot %u", is_chief ? "the chief" : "a worker", slot);
    return;
  }
  JsonBuilder *builder = muster_train_event_begin ("role", self->state.step);
  muster_json_add_string (builder, "role", role);
  muster_json_add_int (builder, "slot", slot);
  muster_train_event_end (builder);
}

static void
say_lost (MusterTrainShow *self, const GError *why, gint64 pause_us)
{
  g_autofree char *pause = muster_format_duration (pause_us);
  if (muster_failure_is_reset (why))
    say (self, stderr,
         self->is_worker ? MUSTER_RESET_REASON : "the master was reset; preparing the model again");
  else if (muster_error_is (why, MUSTER_ERROR_UNAVAILABLE))
    say (self, stderr, "lost the session: %s; retrying within %s", why->message, pause);
  else
    say (self, stderr, "lost the session: %s; retrying in %s", why->message, pause);
}

static void
on_lost (MusterTrainingObserver *observer G_GNUC_UNUSED, const GError *why, guint n,
         gint64 pause_us, gpointer user_data)
{
  MusterTrainShow *self = user_data;
  self->made_us = muster_train_now_us ();
  note_step (self, 0);
  if (!self->options->json) {
    say_lost (self, why, pause_us);
    return;
  }
  JsonBuilder *builder = muster_train_event_begin ("lost", self->state.step);
  muster_json_add_string (builder, "why", why->message);
  muster_json_add_int (builder, "times", n);
  muster_json_add_seconds (builder, "pause", pause_us);
  muster_train_event_end (builder);
}

/* --- training --- */

static void
show_step (MusterTrainShow *self, gint64 at_us)
{
  const guint width = muster_live_width (self->live);
  const gint64 every_us = self->options->json ? JSON_EVERY_US : LINE_EVERY_US;
  if (width > 0) {
    g_autofree char *line =
        muster_train_line (&self->state, width, muster_live_is_coloured (self->live));
    muster_live_line (self->live, line);
    return;
  }
  /* in JSON the first step of each session is an event */
  if (at_us - (self->options->json ? self->reported_us : MAX (self->reported_us, self->ready_us)) <
      every_us)
    return;
  self->reported_us = at_us;
  if (self->options->json) {
    JsonBuilder *builder = muster_train_event_begin ("step", self->state.step);
    muster_train_event_add_state (builder, &self->state);
    muster_train_event_end (builder);
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
  if (!self->options->json) {
    say (self, stderr, "%s", why != NULL ? why : "training goes on");
    return;
  }
  JsonBuilder *builder = muster_train_event_begin ("waiting", self->state.step);
  muster_json_add_string (builder, "waiting", why);
  muster_train_event_end (builder);
}

static gboolean
on_progress (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterTrainingState *state,
             gpointer user_data)
{
  MusterTrainShow *self = user_data;
  const gint64 at_us = muster_train_now_us ();
  note_step (self, state->paused == NULL ? at_us : 0);
  muster_save_status_free (self->saves);
  self->saves = muster_save_status_copy (state->saves);
  self->state = *state;
  self->state.saves = self->saves;
  if (self->is_drill && at_us - self->ready_us >= MUSTER_TRAIN_DRILL_AFTER_US)
    muster_preemption_drill (self->preemption);
  note_paused (self);
  if (self->paused == NULL || !self->options->json) /* there are no steps to report */
    show_step (self, at_us);
  self->state.awaits = self->state.paused = NULL; /* they aren't kept */
  return FALSE;
}

static void
say_saved (MusterTrainShow *self, const MusterSaved *saved)
{
  const gint64 at_us = muster_train_now_us ();
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
  g_autofree char *transfer = muster_figure_transfer (saved->bytes, saved->bytes, saved->took_us);
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
on_saved (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterSaved *saved,
          gpointer user_data)
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
  if (!self->options->json) {
    say_saved (self, saved);
    return;
  }
  JsonBuilder *builder =
      muster_train_event_begin (saved->skipped ? "skipped" : "saved", saved->step);
  muster_json_add_string (builder, "checkpoint", saved->prefix);
  muster_json_add_int (builder, "bytes", (gint64)saved->bytes);
  muster_json_add_seconds (builder, "seconds", saved->took_us);
  muster_json_add_string (builder, "why", saved->why);
  muster_train_event_end (builder);
}

/* The same checkpoint, in a lower tier. */
static void
on_copied (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterTierCopied *copied,
           gpointer user_data)
{
  MusterTrainShow *self = user_data;
  const gint64 at_us = muster_train_now_us ();
  if (copied->step == self->saved_step) {
    g_free (self->durable);
    self->durable = g_strdup (copied->prefix);
  }
  if (copied->tier >= self->n_fast)
    self->state.durable_step = MAX (self->state.durable_step, copied->step);
  if (self->options->json) {
    JsonBuilder *builder = muster_train_event_begin ("copied", copied->step);
    muster_json_add_string (builder, "checkpoint", copied->prefix);
    muster_json_add_int (builder, "bytes", (gint64)copied->bytes);
    muster_json_add_seconds (builder, "seconds", copied->took_us);
    muster_train_event_end (builder);
  } else if (at_us - self->copied_us >= SAVED_EVERY_US) {
    g_autofree char *transfer =
        muster_figure_transfer (copied->bytes, copied->bytes, copied->took_us);
    self->copied_us = at_us;
    say (self, stdout, "copied to %s, %s%s", copied->prefix,
         copied->tier < self->n_fast ? "" : "durable, ", transfer);
  }
}

/* The text is the hook's message. */
static void
on_save_failed (MusterTrainingObserver *observer G_GNUC_UNUSED, gint64 step, const GError *why,
                guint n_in_a_row, guint n_left_out, gpointer user_data)
{
  MusterTrainShow *self = user_data;
  if (!self->options->json)
    return;
  JsonBuilder *builder = muster_train_event_begin ("save-failed", step);
  muster_json_add_string (builder, "error", why->message);
  muster_json_add_int (builder, "in_a_row", n_in_a_row);
  muster_json_add_int (builder, "left_out", n_left_out);
  muster_train_event_end (builder);
}

static void
on_waiting (MusterTrainingObserver *observer G_GNUC_UNUSED, const char *message,
            const MusterReadiness *readiness, GPtrArray *reasons, gpointer user_data)
{
  muster_live_progress (message, readiness, reasons, ((MusterTrainShow *)user_data)->live);
}

MusterTrainingObserver *
muster_train_show_observer (MusterTrainShow *self)
{
  static const struct {
    const char *signal;
    GCallback handler;
  } handlers[] = {
      {"waiting", G_CALLBACK (on_waiting)},   {"ready", G_CALLBACK (on_ready)},
      {"lost", G_CALLBACK (on_lost)},         {"role", G_CALLBACK (on_role)},
      {"progress", G_CALLBACK (on_progress)}, {"saved", G_CALLBACK (on_saved)},
      {"copied", G_CALLBACK (on_copied)},     {"save-failed", G_CALLBACK (on_save_failed)}};
  MusterTrainingObserver *observer = muster_training_observer_new ();
  for (gsize i = 0; i < G_N_ELEMENTS (handlers); i++)
    g_signal_connect (observer, handlers[i].signal, handlers[i].handler, self);
  return observer;
}

void
muster_train_show_init (MusterTrainShow *self, const MusterCliOptions *options, MusterLive *live)
{
  self->options = options;
  self->live = live;
  self->made_us = muster_train_now_us ();
  self->trace = muster_cli_trace_new (self->made_us);
  self->state = (MusterTrainingState){
      .step = -1, .until_step = G_MAXINT64, .loss = NAN, .left_us = -1, .durable_step = -1};
}

void
muster_train_show_clear (MusterTrainShow *self)
{
  g_clear_pointer (&self->waits_for, g_free);
  g_clear_pointer (&self->durable, g_free);
  g_clear_pointer (&self->paused, g_free);
  g_clear_pointer (&self->saves, muster_save_status_free);
  g_clear_pointer (&self->trace, muster_cli_trace_free);
}
