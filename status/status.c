// SPDX-License-Identifier: Apache-2.0
/* What a status says in words and in JSON, the same for the command, the page and /api/status.
 * */
#include "status/status.h"

#include "master/announcement.h"
#include "master/goodput_message_private.h"
#include "master/save_status_message_private.h"
#include "ready/member_private.h"
#include "status/goodput.h"
#include "status/saves.h"

#include <string.h>

static gboolean
has (const char *text)
{
  return *text != '\0';
}

static gboolean
waits_for_tasks (const Muster__StatusResponse *status, const char *model)
{
  for (gsize i = 0; i < status->n_jobs; i++)
    if (strcmp (status->jobs[i]->model, model) == 0)
      return status->jobs[i]->waiting;
  return FALSE;
}

/* Returns a word for how the run of a chief that isn't alive ended. */
static const char *
ended (const Muster__Announcement *model)
{
  return model->failed ? "failed" : has (model->ended) ? model->ended : "lost";
}

gboolean
muster_status_has_finished (const Muster__Announcement *model)
{
  return !model->alive && !model->failed && strcmp (model->ended, "finished") == 0;
}

MusterStatusState
muster_status_state (const Muster__StatusResponse *status, const Muster__Announcement *model)
{
  const MusterChiefPhase phase = (MusterChiefPhase)model->phase;
  const gboolean has_left = phase == MUSTER_CHIEF_PREPARED && model->prepared;
  if (phase == MUSTER_CHIEF_OVER)
    return (MusterStatusState){"over", MUSTER_STATUS_IDLE};
  if (model->alive && muster_chief_phase_is_preparing (phase))
    return (MusterStatusState){muster_chief_phase_name (phase), MUSTER_STATUS_WARNING};
  if (waits_for_tasks (status, model->model))
    return (MusterStatusState){"waiting for tasks", MUSTER_STATUS_WARNING};
  if (model->failed)
    return (MusterStatusState){"failed", MUSTER_STATUS_BAD};
  if (muster_status_has_finished (model))
    return (MusterStatusState){"finished", MUSTER_STATUS_IDLE};
  if (!model->alive && !has_left && has (model->ended))
    return (MusterStatusState){"preempted", MUSTER_STATUS_WARNING};
  if (!model->alive && !has_left)
    return (MusterStatusState){"chief lost", MUSTER_STATUS_BAD};
  return model->ready ? (MusterStatusState){"ready", MUSTER_STATUS_GOOD}
                      : (MusterStatusState){"not ready", MUSTER_STATUS_WARNING};
}

gint64
muster_status_n_running (const Muster__StatusResponse *status)
{
  for (gsize i = 0; i < status->n_limits; i++)
    if (strcmp (status->limits[i]->name, "steps") == 0)
      return status->limits[i]->used;
  return 0;
}

char *
muster_status_stall (const Muster__StatusResponse *status, gint64 least_us)
{
  g_autofree char *age = muster_format_duration (status->stalled_us);
  return status->stalled_us > 0 && status->stalled_us >= least_us
             ? g_strdup_printf ("no step has ended for %s, %" G_GINT64_FORMAT " running", age,
                                muster_status_n_running (status))
             : NULL;
}

gboolean
muster_status_has_steps_elsewhere (const Muster__StatusResponse *status)
{
  for (gsize i = 0; i < status->n_models; i++)
    if (status->models[i]->prepared)
      return status->steps == 0;
  return FALSE;
}

char *
muster_status_chief (const Muster__Announcement *model)
{
  const char *phase = muster_chief_phase_name ((MusterChiefPhase)model->phase);
  g_autofree char *age = muster_format_duration (model->phase_age_us);
  g_autofree char *lost = muster_format_duration (model->lost_age_us);
  g_autofree char *left = muster_format_duration (model->drain_left_us);
  if (model->phase == MUSTER__PHASE__OVER)
    return g_strdup_printf ("ended the job %s ago", age);
  if (model->alive && model->phase == MUSTER__PHASE__TRAINING && has (model->detail))
    return g_strdup_printf ("no session for %s: %s", age, model->detail);
  if (model->alive && model->drain == MUSTER_DRAIN_SAVED)
    return g_strdup_printf ("%s, holding for a drain%s%s", phase,
                            model->drain_left_us > 0 ? " for another " : "",
                            model->drain_left_us > 0 ? left : "");
  if (model->alive)
    return g_strdup_printf ("%s%s%s for %s", phase, has (model->detail) ? " " : "", model->detail,
                            age);
  if (model->phase == MUSTER__PHASE__PREPARED && model->prepared)
    return g_strdup_printf ("prepared the model and exited, %s ago", lost);
  if (muster_status_has_finished (model))
    return g_strdup_printf ("reached its last step %s ago", lost);
  const gboolean is_known = model->phase != MUSTER__PHASE__UNKNOWN; /* a reset clears it */
  const gboolean has_why = model->failed && has (model->ended);
  return g_strdup_printf ("%s %s ago%s%s%s%s", ended (model), lost, is_known ? ", while " : "",
                          is_known ? phase : "", has_why ? ": " : "", has_why ? model->ended : "");
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
      MUSTER_JSON_FIELD (Muster__Announcement, failed, BOOLEAN, "failed"),
      MUSTER_JSON_FIELD (Muster__Announcement, ended, STRING, "ended"),
  };
  json_builder_set_member_name (builder, "models");
  json_builder_begin_array (builder);
  for (gsize i = 0; i < status->n_models; i++) {
    const Muster__Announcement *model = status->models[i];
    g_autoptr (MusterSaveStatus) saves = muster_save_status_read (model->saves);
    g_autofree MusterGoodput *goodput = muster_goodput_read (model->goodput);
    json_builder_begin_object (builder);
    muster_json_add_string (builder, "state", muster_status_state (status, model).word);
    muster_json_add_string (builder, "phase",
                            muster_chief_phase_name ((MusterChiefPhase)model->phase));
    muster_json_add_fields (builder, fields, G_N_ELEMENTS (fields), model);
    if (model->durable_step >= 0)
      muster_json_add_seconds (builder, "durable_age", model->durable_age_us);
    if (!model->alive)
      muster_json_add_seconds (builder, "lost_age", model->lost_age_us);
    muster_saves_json (builder, saves);
    muster_goodput_json (builder, goodput);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

char *
muster_status_member (const Muster__Member *member)
{
  const char *name = has (member->task) ? member->task : has (member->who) ? member->who : "a task";
  const gboolean has_both = has (member->task) && has (member->who);
  g_autofree char *stay = muster_format_duration (member->age_us);
  g_autofree char *left = muster_format_duration (member->left_age_us);
  GString *text = g_string_new (name);
  g_string_append_printf (text, "%s%s%s  slot %d, ", has_both ? " (" : "",
                          has_both ? member->who : "", has_both ? ")" : "", member->slot);
  if (has (member->why))
    g_string_append_printf (text, "%s ago: %s, after %s and %" G_GINT64_FORMAT " batches", left,
                            member->why, stay, member->batches);
  else
    g_string_append_printf (text, "%s, joined %s ago, %" G_GINT64_FORMAT " batches, %.1f/s",
                            member->chief ? "chief" : "worker", stay, member->batches,
                            member->batches_per_second);
  return g_string_free (text, FALSE);
}

char *
muster_status_task (const Muster__Task *task)
{
  const gboolean has_who = has (task->who);
  g_autofree char *age = muster_format_duration (task->age_us);
  return g_strdup_printf ("%s%s%s%s  ready for %s", task->task, has_who ? " (" : "", task->who,
                          has_who ? ")" : "", age);
}

/* The job's chief, or the last one; NULL: it never had one. */
static const Muster__Announcement *
chief_of (const Muster__StatusResponse *status, const Muster__Members *job)
{
  for (gsize i = 0; i < status->n_models; i++)
    if (strcmp (status->models[i]->model, job->model) == 0)
      return status->models[i];
  return NULL;
}

static const char *
no_chief (const Muster__StatusResponse *status, const Muster__Members *job)
{
  const Muster__Announcement *last = chief_of (status, job);
  if (job->n == 0 || last == NULL || last->alive || last->phase == MUSTER__PHASE__OVER)
    return NULL;
  return "no chief: no checkpoints are written";
}

char *
muster_status_waits (const Muster__Members *job)
{
  return job->waiting ? muster_waiting_for_tasks ((guint)job->n, (guint)job->min_tasks) : NULL;
}

char *
muster_status_lacks (const Muster__StatusResponse *status, const Muster__Members *job)
{
  const char *chief = no_chief (status, job);
  g_autofree char *tasks = muster_status_waits (job);
  if (chief == NULL)
    return g_steal_pointer (&tasks);
  return tasks != NULL ? g_strdup_printf ("%s; %s", chief, tasks) : g_strdup (chief);
}

static const MusterJsonField of_members[] = {
    MUSTER_JSON_FIELD (Muster__Member, task, STRING, "task"),
    MUSTER_JSON_FIELD (Muster__Member, who, STRING, "who"),
    MUSTER_JSON_FIELD (Muster__Member, slot, INT, "slot"),
    MUSTER_JSON_FIELD (Muster__Member, age_us, SECONDS, "age"),
    MUSTER_JSON_FIELD (Muster__Member, batches, INT64, "batches"),
    MUSTER_JSON_FIELD (Muster__Member, batches_per_second, DOUBLE, "batches_per_second"),
};

static void
members_json (JsonBuilder *builder, const Muster__Members *job)
{
  json_builder_set_member_name (builder, "members");
  json_builder_begin_array (builder);
  for (gsize i = 0; i < job->n_members; i++) {
    json_builder_begin_object (builder);
    muster_json_add_fields (builder, of_members, G_N_ELEMENTS (of_members), job->members[i]);
    muster_json_add_string (builder, "role", job->members[i]->chief ? "chief" : "worker");
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

static void
left_json (JsonBuilder *builder, const Muster__Members *job)
{
  json_builder_set_member_name (builder, "left");
  json_builder_begin_array (builder);
  for (gsize i = 0; i < job->n_left; i++) {
    json_builder_begin_object (builder);
    muster_json_add_fields (builder, of_members, G_N_ELEMENTS (of_members), job->left[i]);
    muster_json_add_string (builder, "why", job->left[i]->why);
    muster_json_add_seconds (builder, "left_age", job->left[i]->left_age_us);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

static void
jobs_json (JsonBuilder *builder, const Muster__StatusResponse *status)
{
  json_builder_set_member_name (builder, "jobs");
  json_builder_begin_array (builder);
  for (gsize i = 0; i < status->n_jobs; i++) {
    const Muster__Members *job = status->jobs[i];
    const Muster__Announcement *chief = chief_of (status, job);
    json_builder_begin_object (builder);
    muster_json_add_string (builder, "model", job->model);
    muster_json_add_int (builder, "slots", job->n_slots);
    muster_json_add_int (builder, "tasks", job->n);
    muster_json_add_boolean (builder, "has_chief", chief != NULL && chief->alive);
    muster_json_add_int (builder, "min_tasks", job->min_tasks);
    muster_json_add_boolean (builder, "waiting_for_tasks", job->waiting);
    members_json (builder, job);
    left_json (builder, job);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

void
muster_status_json (JsonBuilder *builder, const Muster__StatusResponse *status)
{
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (Muster__StatusResponse, version, STRING, "version"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, master, STRING, "serves"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, master_failure, STRING, "master_failure"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, uptime_us, SECONDS, "uptime"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, draining_us, SECONDS, "draining"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, sessions, INT, "sessions"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, watchers, INT, "watchers"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, steps, INT64, "steps"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, steps_per_second, DOUBLE, "steps_per_second"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, stalled_us, SECONDS, "stalled"),
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
  static const MusterJsonField of_tasks[] = {
      MUSTER_JSON_FIELD (Muster__Task, task, STRING, "task"),
      MUSTER_JSON_FIELD (Muster__Task, who, STRING, "who"),
      MUSTER_JSON_FIELD (Muster__Task, model, STRING, "model"),
      MUSTER_JSON_FIELD (Muster__Task, age_us, SECONDS, "age"),
  };
  static const MusterJsonField of_limits[] = {
      MUSTER_JSON_FIELD (Muster__Limit, name, STRING, "name"),
      MUSTER_JSON_FIELD (Muster__Limit, used, INT64, "used"),
      MUSTER_JSON_FIELD (Muster__Limit, limit, INT64, "limit"),
      MUSTER_JSON_FIELD (Muster__Limit, refused, INT64, "refused"),
  };
  muster_json_add_fields (builder, fields, G_N_ELEMENTS (fields), status);
  models_json (builder, status);
  jobs_json (builder, status);
  muster_json_add_list (builder, "waiters", of_waiters, G_N_ELEMENTS (of_waiters),
                        (gpointer const *)status->waiters, status->n_waiters);
  muster_json_add_list (builder, "tasks", of_tasks, G_N_ELEMENTS (of_tasks),
                        (gpointer const *)status->tasks, status->n_tasks);
  muster_json_add_list (builder, "limits", of_limits, G_N_ELEMENTS (of_limits),
                        (gpointer const *)status->limits, status->n_limits);
}
