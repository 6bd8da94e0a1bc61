// SPDX-License-Identifier: Apache-2.0
/* The text of `muster status`: rows of a table, from the message that --json prints as well. */
#include "cli/commands/status_text.h"

#include "cli/common/cli.h"
#include "cli/output/figures.h"
#include "cli/output/table.h"
#include "master/goodput_message_private.h"
#include "master/save_status_message_private.h"
#include "status/saves.h"
#include "status/status.h"

#define MODELS_SHOWN  1000
#define WAITERS_SHOWN 10
#define TASKS_SHOWN   32
#define LONGEST_WHY   100 /* characters */

static gboolean
has (const char *text)
{
  return *text != '\0';
}

/* "  step 1200" */
static void
append_step (GString *text, gint64 step)
{
  if (step >= 0)
    g_string_append_printf (text, "  step %" G_GINT64_FORMAT, step);
}

static void
add_first_row (const Muster__StatusResponse *status)
{
  g_autofree char *uptime = muster_format_duration (status->uptime_us);
  g_autofree char *memory = muster_format_size ((guint64)MAX (status->memory_bytes, 0));
  g_autoptr (GString) text = g_string_new (NULL);
  gsize n_ready = 0;
  for (gsize i = 0; i < status->n_models; i++)
    n_ready += status->models[i]->ready;
  if (status->n_models == 0) {
    g_string_append (text, "up  no chief has ever registered");
  } else if (status->n_models == 1) {
    g_string_append_printf (text, "%s  %s", muster_status_state (status, status->models[0]).word,
                            status->models[0]->model);
    append_step (text, status->models[0]->step);
  } else {
    g_string_append_printf (text, "up  %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT " models ready",
                            n_ready, status->n_models);
  }
  muster_cli_say (stdout, "%s  muster %s, up %s, %s%s%s\n", text->str, status->version, uptime,
                  memory, has (status->master) ? ", serves " : "", status->master);
}

static void
add_chief_row (MusterTable *table, const Muster__Announcement *model)
{
  g_autofree char *state = muster_status_chief (model);
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
add_saves_row (MusterTable *table, const Muster__Announcement *model)
{
  g_autoptr (MusterSaveStatus) saves = muster_save_status_read (model->saves);
  if (saves == NULL)
    return;
  g_autofree char *text = muster_saves_text (saves);
  muster_table_add (table, "  saves", text, NULL);
}

static void
add_goodput_row (MusterTable *table, const Muster__Announcement *model)
{
  g_autofree MusterGoodput *goodput = muster_goodput_read (model->goodput);
  if (goodput == NULL)
    return;
  g_autofree char *text = muster_goodput_text (goodput);
  muster_table_add (table, "  time", text, NULL);
}

static void
add_model_rows (MusterTable *table, const Muster__StatusResponse *status)
{
  for (gsize i = 0; i < MIN (status->n_models, MODELS_SHOWN); i++) {
    const Muster__Announcement *model = status->models[i];
    if (status->n_models > 1) {
      g_autoptr (GString) text = g_string_new (NULL);
      g_string_append_printf (text, "%s  %s", model->model,
                              muster_status_state (status, model).word);
      append_step (text, model->step);
      muster_table_add (table, "  model", text->str, NULL);
    }
    add_chief_row (table, model);
    add_saves_row (table, model);
    add_goodput_row (table, model);
  }
  if (status->n_models > MODELS_SHOWN) {
    g_autofree char *more = g_strdup_printf ("… and %" G_GSIZE_FORMAT " more; --json prints all",
                                             status->n_models - MODELS_SHOWN);
    muster_table_add (table, "  model", more, NULL);
  }
}

/* The tasks of a job, with their model where there are several. */
static void
add_job_rows (MusterTable *table, const Muster__StatusResponse *status, const Muster__Members *job)
{
  const gboolean is_named = status->n_jobs > 1 || status->n_models != 1;
  g_autofree char *lacks = muster_status_lacks (status, job);
  g_autofree char *sum = g_strdup_printf ("%d in %d slots%s%s%s%s", job->n, job->n_slots,
                                          is_named ? " of " : "", is_named ? job->model : "",
                                          lacks != NULL ? "; " : "", lacks != NULL ? lacks : "");
  muster_table_add (table, "  tasks", sum, NULL);
  for (gsize i = 0; i < MIN (job->n_members, TASKS_SHOWN); i++) {
    g_autofree char *text = muster_status_member (job->members[i]);
    muster_table_add (table, "  task", text, NULL);
  }
  if (job->n > TASKS_SHOWN) {
    g_autofree char *more = g_strdup_printf ("… and %d more", job->n - TASKS_SHOWN);
    muster_table_add (table, "  task", more, NULL);
  }
  for (gsize i = 0; i < job->n_left; i++) {
    g_autofree char *text = muster_status_member (job->left[i]);
    muster_table_add (table, "  left", text, NULL);
  }
}

/* The tasks of jobs with a fixed number, with their model where there are several. */
static void
add_task_rows (MusterTable *table, const Muster__StatusResponse *status)
{
  for (gsize i = 0; i < MIN (status->n_tasks, TASKS_SHOWN); i++) {
    const Muster__Task *task = status->tasks[i];
    g_autofree char *text = muster_status_task (task);
    g_autofree char *row =
        status->n_models == 1 ? g_strdup (text) : g_strconcat (text, ", of ", task->model, NULL);
    muster_table_add (table, "  task", row, NULL);
  }
  if (status->n_tasks > TASKS_SHOWN) {
    g_autofree char *more =
        g_strdup_printf ("… and %" G_GSIZE_FORMAT " more", status->n_tasks - TASKS_SHOWN);
    muster_table_add (table, "  task", more, NULL);
  }
}

static void
add_waiter_row (MusterTable *table, const Muster__Waiter *waiter)
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
add_waiter_rows (MusterTable *table, const Muster__StatusResponse *status)
{
  gsize shown = 0;
  for (gsize i = 0; i < status->n_waiters && shown < WAITERS_SHOWN; i++) {
    const Muster__Waiter *waiter = status->waiters[i];
    if (!has (waiter->waits_for))
      continue;
    add_waiter_row (table, waiter);
    shown++;
  }
  gsize n_waiting = 0;
  for (gsize i = 0; i < status->n_waiters; i++)
    n_waiting += has (status->waiters[i]->waits_for);
  if (n_waiting > shown) {
    g_autofree char *more =
        g_strdup_printf ("… and %" G_GSIZE_FORMAT " more%s", n_waiting - shown,
                         (gint64)status->n_waiters < status->watchers ? ", possibly more" : "");
    muster_table_add (table, "  waiting", more, NULL);
  }
}

static void
add_drain_row (MusterTable *table, const Muster__StatusResponse *status)
{
  if (status->draining_us <= 0)
    return;
  g_autofree char *left = muster_format_duration (status->draining_us);
  g_autofree char *text = g_strdup_printf ("stops in %s at the latest", left);
  muster_table_add (table, "  draining", text, NULL);
}

static void
add_master_row (MusterTable *table, const Muster__StatusResponse *status)
{
  if (!has (status->master_failure))
    return;
  g_autofree char *text = g_strdup_printf ("can't be used: %s", status->master_failure);
  muster_table_add (table, "  master", text, NULL);
}

static void
add_load_row (MusterTable *table, const Muster__StatusResponse *status)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *rate = muster_figure_steps_rate (status->steps_per_second);
  g_autofree char *stall = muster_status_stall (status, MUSTER_STATUS_STALL_US);
  g_string_append_printf (text, "%d", status->sessions);
  if (status->watchers > 0)
    g_string_append_printf (text, ", %d watched", status->watchers);
  if (muster_status_has_steps_elsewhere (status))
    g_string_append (text, "; " MUSTER_STATUS_STEPS_ELSEWHERE);
  else
    g_string_append_printf (text, ", %s (%" G_GINT64_FORMAT " in all)", rate, status->steps);
  if (status->median_step_us > 0) {
    g_autofree char *median = muster_format_duration (status->median_step_us);
    g_string_append_printf (text, ", p50 %s", median);
  }
  if (stall != NULL)
    g_string_append_printf (text, "; %s", stall);
  muster_table_add (table, "  sessions", text->str, NULL);
}

/* Adds the limits that have refused something. */
static void
add_limit_rows (MusterTable *table, const Muster__StatusResponse *status)
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
muster_cli_status_text (const Muster__StatusResponse *status)
{
  g_autoptr (MusterTable) table = muster_table_new (2);
  add_first_row (status);
  add_master_row (table, status);
  add_drain_row (table, status);
  add_model_rows (table, status);
  for (gsize i = 0; i < MIN (status->n_jobs, MODELS_SHOWN); i++)
    add_job_rows (table, status, status->jobs[i]);
  add_task_rows (table, status);
  add_waiter_rows (table, status);
  add_load_row (table, status);
  add_limit_rows (table, status);
  muster_table_print (table, stdout);
}
