// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/status.h"

#include "cli/terminal/figures.h"
#include "cli/terminal/table.h"
#include "master/announcement.h"

#define WAITERS_SHOWN 10
#define LONGEST_WHY   100 /* characters */

static gboolean
has (const char *text)
{
  return *text != '\0';
}

/* Is it well, in a word. */
static const char *
word_of (const Muster__Announcement *model)
{
  MusterChiefPhase phase = (MusterChiefPhase)model->phase;
  if (phase == MUSTER_CHIEF_OVER)
    return "over";
  if (model->alive && muster_chief_phase_is_preparing (phase))
    return muster_chief_phase_name (phase);
  return model->ready ? "ready" : "not ready";
}

/* "  step 1200" */
static void
append_step (GString *text, gint64 step)
{
  if (step >= 0)
    g_string_append_printf (text, "  step %" G_GINT64_FORMAT, step);
}

static void
tell_first_line (const Muster__StatusResponse *status)
{
  g_autofree char *uptime = muster_format_duration (status->uptime_us);
  g_autofree char *memory = muster_format_size ((guint64)MAX (status->memory_bytes, 0));
  g_autoptr (GString) text = g_string_new (NULL);
  gsize n_ready = 0;
  for (gsize i = 0; i < status->n_models; i++)
    n_ready += status->models[i]->ready && status->models[i]->phase != MUSTER__PHASE__OVER;
  if (status->n_models == 0) {
    g_string_append (text, "up  no chief has ever registered");
  } else if (status->n_models == 1) {
    g_string_append_printf (text, "%s  %s", word_of (status->models[0]), status->models[0]->model);
    append_step (text, status->models[0]->step);
  } else {
    g_string_append_printf (text, "up  %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT " models ready",
                            n_ready, status->n_models);
  }
  muster_cli_say (stdout, "%s  muster %s, up %s, %s%s%s\n", text->str, status->version, uptime,
                  memory, has (status->master) ? ", serves " : "", status->master);
}

/* "training for 12 s", "lost 3 s ago, while initialising" */
static char *
state_of_chief (const Muster__Announcement *model)
{
  const char *phase = muster_chief_phase_name ((MusterChiefPhase)model->phase);
  g_autofree char *age = muster_format_duration (model->phase_age_us);
  g_autofree char *lost = muster_format_duration (model->lost_age_us);
  if (model->phase == MUSTER__PHASE__OVER)
    return g_strdup_printf ("ended the job %s ago", age);
  if (model->alive)
    return g_strdup_printf ("%s%s%s for %s", phase, has (model->detail) ? " " : "", model->detail,
                            age);
  if (model->phase == MUSTER__PHASE__PREPARED && model->prepared)
    return g_strdup_printf ("prepared it and left, %s ago", lost);
  return g_strdup_printf ("lost %s ago, while %s", lost, phase);
}

static void
tell_chief (MusterTable *table, const Muster__Announcement *model)
{
  g_autofree char *state = state_of_chief (model);
  g_autofree char *durable_age = muster_format_duration (model->durable_age_us);
  g_autoptr (GString) text = g_string_new (has (model->task) ? model->task : model->who);
  if (has (model->task) && has (model->who))
    g_string_append_printf (text, " (%s)", model->who);
  g_string_append_printf (text, "  %s", state);
  if (model->durable_step >= 0)
    g_string_append_printf (text, ", last durable step %" G_GINT64_FORMAT " (%s, %s ago)",
                            model->durable_step, model->durable, durable_age);
  muster_table_add (table, "  chief", text->str, NULL);
}

static void
tell_models (MusterTable *table, const Muster__StatusResponse *status)
{
  for (gsize i = 0; i < status->n_models; i++) {
    const Muster__Announcement *model = status->models[i];
    if (status->n_models > 1) {
      g_autoptr (GString) text = g_string_new (NULL);
      g_string_append_printf (text, "%s  %s", model->model, word_of (model));
      append_step (text, model->step);
      muster_table_add (table, "  model", text->str, NULL);
    }
    tell_chief (table, model);
  }
}

static void
tell_waiter (MusterTable *table, const Muster__Waiter *waiter)
{
  g_autofree char *age = muster_format_duration (waiter->age_us);
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append (text, has (waiter->task)  ? waiter->task
                         : has (waiter->who) ? waiter->who
                                             : "a task");
  g_string_append_printf (text, " for %s", age);
  if (has (waiter->model))
    g_string_append_printf (text, ", for %s", waiter->model);
  if (g_utf8_strlen (waiter->why, -1) > LONGEST_WHY) {
    g_autofree char *cut = g_utf8_substring (waiter->why, 0, LONGEST_WHY);
    g_string_append_printf (text, ": %s…", cut);
  } else if (has (waiter->why)) {
    g_string_append_printf (text, ": %s", waiter->why);
  }
  muster_table_add (table, "  waiting", text->str, NULL);
}

static void
tell_waiters (MusterTable *table, const Muster__StatusResponse *status)
{
  gsize shown = 0;
  for (gsize i = 0; i < status->n_waiters && shown < WAITERS_SHOWN; i++) {
    const Muster__Waiter *waiter = status->waiters[i];
    if (!has (waiter->waits_for))
      continue;
    tell_waiter (table, waiter);
    shown++;
  }
  gsize n_waiting = 0;
  for (gsize i = 0; i < status->n_waiters; i++)
    n_waiting += has (status->waiters[i]->waits_for);
  if (n_waiting > shown) {
    g_autofree char *more =
        g_strdup_printf ("… and %" G_GSIZE_FORMAT " more%s", n_waiting - shown,
                         (gint64)status->n_waiters < status->watchers ? ", or still more" : "");
    muster_table_add (table, "  waiting", more, NULL);
  }
}

static void
tell_load (MusterTable *table, const Muster__StatusResponse *status)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *rate = muster_figure_steps_rate (status->steps_per_second);
  g_string_append_printf (text, "%d", status->sessions);
  if (status->watchers > 0)
    g_string_append_printf (text, ", %d watched", status->watchers);
  g_string_append_printf (text, ", %s (%" G_GINT64_FORMAT " in all)", rate, status->steps);
  if (status->median_step_us > 0) {
    g_autofree char *median = muster_format_duration (status->median_step_us);
    g_string_append_printf (text, ", p50 %s", median);
  }
  muster_table_add (table, "  sessions", text->str, NULL);
}

/* Those that refused something. */
static void
tell_limits (MusterTable *table, const Muster__StatusResponse *status)
{
  for (gsize i = 0; i < status->n_limits; i++) {
    const Muster__Limit *limit = status->limits[i];
    if (limit->refused == 0)
      continue;
    g_autofree char *text = g_strdup_printf (
        "%s: %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT ", refused %" G_GINT64_FORMAT " times",
        limit->name, limit->used, limit->limit, limit->refused);
    muster_table_add (table, "  limit", text, NULL);
  }
}

void
muster_cli_status_text (const MusterCliOptions *options G_GNUC_UNUSED,
                        const Muster__StatusResponse *status)
{
  g_autoptr (MusterTable) table = muster_table_new (2);
  tell_first_line (status);
  tell_models (table, status);
  tell_waiters (table, status);
  tell_load (table, status);
  tell_limits (table, status);
  muster_table_print (table, stdout);
}

static void
models_json (JsonBuilder *builder, const Muster__StatusResponse *status)
{
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (Muster__Announcement, model, STRING, "model"),
      MUSTER_JSON_FIELD (Muster__Announcement, task, STRING, "task"),
      MUSTER_JSON_FIELD (Muster__Announcement, who, STRING, "who"),
      MUSTER_JSON_FIELD (Muster__Announcement, epoch, INT64, "epoch"),
      MUSTER_JSON_FIELD (Muster__Announcement, phase_age_us, SECONDS, "phase_age"),
      MUSTER_JSON_FIELD (Muster__Announcement, detail, STRING, "detail"),
      MUSTER_JSON_FIELD (Muster__Announcement, step, STEP, "step"),
      MUSTER_JSON_FIELD (Muster__Announcement, durable_step, STEP, "durable_step"),
      MUSTER_JSON_FIELD (Muster__Announcement, durable, STRING, "durable"),
      MUSTER_JSON_FIELD (Muster__Announcement, alive, BOOLEAN, "alive"),
      MUSTER_JSON_FIELD (Muster__Announcement, prepared, BOOLEAN, "prepared"),
      MUSTER_JSON_FIELD (Muster__Announcement, ready, BOOLEAN, "ready"),
  };
  json_builder_set_member_name (builder, "models");
  json_builder_begin_array (builder);
  for (gsize i = 0; i < status->n_models; i++) {
    const Muster__Announcement *model = status->models[i];
    json_builder_begin_object (builder);
    muster_json_add_string (builder, "state", word_of (model));
    muster_json_add_string (builder, "phase",
                            muster_chief_phase_name ((MusterChiefPhase)model->phase));
    muster_json_add_fields (builder, fields, G_N_ELEMENTS (fields), model);
    if (model->durable_step >= 0)
      muster_json_add_seconds (builder, "durable_age", model->durable_age_us);
    if (!model->alive)
      muster_json_add_seconds (builder, "lost_age", model->lost_age_us);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

void
muster_cli_status_json (const MusterCliOptions *options, const Muster__StatusResponse *status)
{
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (Muster__StatusResponse, version, STRING, "version"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, master, STRING, "serves"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, uptime_us, SECONDS, "uptime"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, sessions, INT, "sessions"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, watchers, INT, "watchers"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, steps, INT64, "steps"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, steps_per_second, DOUBLE, "steps_per_second"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, median_step_us, SECONDS, "median_step"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, memory_bytes, INT64, "memory_bytes"),
  };
  static const MusterJsonField of_waiters[] = {
      MUSTER_JSON_FIELD (Muster__Waiter, task, STRING, "task"),
      MUSTER_JSON_FIELD (Muster__Waiter, who, STRING, "who"),
      MUSTER_JSON_FIELD (Muster__Waiter, model, STRING, "model"),
      MUSTER_JSON_FIELD (Muster__Waiter, age_us, SECONDS, "age"),
      MUSTER_JSON_FIELD (Muster__Waiter, waits_for, STRING, "waits_for"),
      MUSTER_JSON_FIELD (Muster__Waiter, why, STRING, "why"),
  };
  static const MusterJsonField of_limits[] = {
      MUSTER_JSON_FIELD (Muster__Limit, name, STRING, "name"),
      MUSTER_JSON_FIELD (Muster__Limit, used, INT64, "used"),
      MUSTER_JSON_FIELD (Muster__Limit, limit, INT64, "limit"),
      MUSTER_JSON_FIELD (Muster__Limit, refused, INT64, "refused"),
  };
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "target", options->target);
  muster_json_add_boolean (builder, "keeps_announcements", TRUE);
  muster_json_add_fields (builder, fields, G_N_ELEMENTS (fields), status);
  models_json (builder, status);
  muster_json_add_list (builder, "waiters", of_waiters, G_N_ELEMENTS (of_waiters),
                        (gpointer const *)status->waiters, status->n_waiters);
  muster_json_add_list (builder, "limits", of_limits, G_N_ELEMENTS (of_limits),
                        (gpointer const *)status->limits, status->n_limits);
  muster_json_print_line (builder);
}
