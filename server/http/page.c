// SPDX-License-Identifier: Apache-2.0
/* The status page in HTML: models, waiting clients, tasks, load and limits, from the same status
 * as the command's text. The content alone is an event; the page around it is sent once, with a
 * policy that allows only its own style and script. */
#include "server/http/page.h"

#include "master/announcement.h"
#include "master/goodput_message_private.h"
#include "master/save_status_message_private.h"
#include "server/http/html.h"
#include "server/http/page_chart.h"
#include "server/http/page_text.h"
#include "status/saves.h"
#include "status/status.h"

#include <string.h>

/* Maximum number of models and waiting clients on the page; /api/status has all models. */
#define MODELS_SHOWN  100
#define WAITERS_SHOWN 50
#define TASKS_SHOWN   32

#define PLACE "<!--main-->"

static gboolean
has (const char *text)
{
  return text != NULL && *text != '\0';
}

/* --- models --- */

static const char *const class_names[] = {
    [MUSTER_STATUS_GOOD] = "good",
    [MUSTER_STATUS_WARNING] = "warn",
    [MUSTER_STATUS_BAD] = "bad",
    [MUSTER_STATUS_IDLE] = "idle",
};

static void
put_chief (GString *out, const Muster__Announcement *model)
{
  g_autofree char *state = muster_status_chief (model);
  g_string_append (out, "<dt>chief</dt><dd>");
  muster_html_put_text (out, has (model->task) ? model->task : model->who);
  if (has (model->task) && has (model->who)) {
    g_string_append (out, " (");
    muster_html_put_text (out, model->who);
    g_string_append_c (out, ')');
  }
  g_string_append (out, ": ");
  muster_html_put_text (out, state);
  muster_html_put (out, "; epoch %" G_GINT64_FORMAT "</dd>", model->epoch);
}

static void
put_durable (GString *out, const Muster__Announcement *model)
{
  g_autofree char *age = muster_format_duration (model->durable_age_us);
  g_string_append (out, "<dt>durable</dt><dd>");
  if (model->durable_step < 0) {
    g_string_append (out, "no checkpoint yet</dd>");
    return;
  }
  muster_html_put_text (out, model->durable);
  muster_html_put (out, ", step %" G_GINT64_FORMAT ", %s ago</dd>", model->durable_step, age);
}

/* The four steps of a save, each with the last save that reached it. */
static void
put_save_states (GString *out, const MusterSaveStatus *saves)
{
  g_string_append (out, "<h3>Checkpoints</h3><table><tr><th>state</th><th class=\"number\">step"
                        "</th><th class=\"number\">age</th></tr>");
  for (guint i = 0; i < MUSTER_N_SAVE_STATES; i++) {
    g_autofree char *age = muster_format_duration (saves->age_us[i]);
    muster_html_put (out, "<tr><td>%s</td>", muster_save_state_name ((MusterSaveState)i));
    if (saves->step[i] < 0)
      g_string_append (out, "<td class=\"number\">–</td><td class=\"number\">–</td></tr>");
    else
      muster_html_put (
          out, "<td class=\"number\">%" G_GINT64_FORMAT "</td><td class=\"number\">%s</td></tr>",
          saves->step[i], age);
  }
  g_string_append (out, "</table>");
}

static void
put_saves (GString *out, const Muster__Announcement *model)
{
  g_autoptr (MusterSaveStatus) saves = muster_save_status_read (model->saves);
  if (saves == NULL)
    return;
  g_autofree char *text = muster_saves_text (saves);
  put_save_states (out, saves);
  g_string_append (out, "<p class=\"quiet\">");
  muster_html_put_text (out, text);
  g_string_append (out, "</p>");
}

static void
put_goodput (GString *out, const Muster__Announcement *model)
{
  g_autofree MusterGoodput *goodput = muster_goodput_read (model->goodput);
  if (goodput == NULL || goodput->began_us == 0)
    return;
  g_autofree char *text = muster_goodput_text (goodput);
  g_string_append (out, "<h3>Time</h3>");
  muster_chart_goodput (out, goodput);
  muster_html_put (out, "<p class=\"quiet\">%s</p>", text);
}

static void
put_model (GString *out, const Muster__StatusResponse *status, const Muster__Announcement *model)
{
  const MusterStatusState state = muster_status_state (status, model);
  g_string_append (out, "<section><div class=\"title\"><h2>");
  muster_html_put_text (out, model->model);
  muster_html_put (out, "</h2><span class=\"state %s\">%s</span>", class_names[state.kind],
                   state.word);
  if (model->step >= 0)
    muster_html_put (out, "<span class=\"step\">step <b>%" G_GINT64_FORMAT "</b></span>",
                     model->step);
  g_string_append (out, "</div><dl>");
  put_chief (out, model);
  put_durable (out, model);
  g_string_append (out, "</dl>");
  put_saves (out, model);
  put_goodput (out, model);
  g_string_append (out, "</section>");
}

static void
put_models (GString *out, const Muster__StatusResponse *status)
{
  g_string_append (out, "<div class=\"cards\">");
  for (gsize i = 0; i < MIN (status->n_models, MODELS_SHOWN); i++)
    put_model (out, status, status->models[i]);
  if (status->n_models == 0)
    g_string_append (out,
                     "<section><div class=\"title\"><h2>No model</h2><span class=\"state idle\">"
                     "waiting</span></div><p class=\"quiet\">No chief has ever registered. "
                     "<code>muster train</code> or <code>muster prepare</code> starts one."
                     "</p></section>");
  g_string_append (out, "</div>");
  if (status->n_models > MODELS_SHOWN)
    muster_html_put (out, "<p>%u more models are in <a href=\"/api/status\">/api/status</a>.</p>",
                     (guint)(status->n_models - MODELS_SHOWN));
}

/* --- who waits --- */

static void
put_waiter (GString *out, const Muster__Waiter *waiter)
{
  g_autofree char *age = muster_format_duration (waiter->age_us);
  g_string_append (out, "<tr><td>");
  muster_html_put_text (out, has (waiter->task)  ? waiter->task
                             : has (waiter->who) ? waiter->who
                                                 : "a task");
  g_string_append (out, "</td><td>");
  muster_html_put_text (out, waiter->model);
  g_string_append (out, "</td><td class=\"why\">");
  muster_html_put_text (out, waiter->why);
  muster_html_put (out, "</td><td class=\"number\">%s</td></tr>", age);
}

static void
put_waiters (GString *out, const Muster__StatusResponse *status)
{
  guint n_waiting = 0;
  for (gsize i = 0; i < status->n_waiters; i++)
    n_waiting += has (status->waiters[i]->waits_for);
  muster_html_put (out, "<section><h2>Waiting: %u%s</h2>", n_waiting,
                   (gint64)status->n_waiters < status->watchers ? " or more" : "");
  if (n_waiting == 0) {
    g_string_append (out, "<p class=\"quiet\">No client waits for a model.</p></section>");
    return;
  }
  g_string_append (out, "<table class=\"reasons\"><tr><th>task</th><th>model</th>"
                        "<th class=\"why\">waits for</th>"
                        "<th class=\"number\">since</th></tr>");
  guint n_shown = 0;
  for (gsize i = 0; i < status->n_waiters && n_shown < WAITERS_SHOWN; i++) {
    if (!has (status->waiters[i]->waits_for))
      continue;
    put_waiter (out, status->waiters[i]);
    n_shown++;
  }
  g_string_append (out, "</table>");
  if (n_waiting > n_shown)
    muster_html_put (out, "<p class=\"quiet\">and %u more</p>", n_waiting - n_shown);
  g_string_append (out, "</section>");
}

/* --- the tasks of jobs --- */

static void
put_member (GString *out, const Muster__Members *job, const Muster__Member *member)
{
  g_autofree char *stay = muster_format_duration (member->age_us);
  g_autofree char *left = muster_format_duration (member->left_age_us);
  g_autofree char *rate = muster_html_number (member->batches_per_second);
  g_string_append (out, "<tr><td>");
  muster_html_put_text (out, has (member->task)  ? member->task
                             : has (member->who) ? member->who
                                                 : "a task");
  g_string_append (out, "</td><td>");
  muster_html_put_text (out, job->model);
  g_string_append (out, "</td><td class=\"why\">");
  if (has (member->why)) {
    muster_html_put (out, "%s ago: ", left);
    muster_html_put_text (out, member->why);
  } else {
    muster_html_put (out, "%s in slot %d, %s batches/s", member->chief ? "chief" : "worker",
                     member->slot, rate);
  }
  muster_html_put (out, "</td><td class=\"number\">%" G_GINT64_FORMAT "</td>", member->batches);
  muster_html_put (out, "<td class=\"number\">%s</td></tr>", stay);
}

static void
put_job (GString *out, const Muster__StatusResponse *status, const Muster__Members *job)
{
  const gsize n_shown = MIN (job->n_members, TASKS_SHOWN);
  g_autofree char *lacks = muster_status_lacks (status, job);
  if (lacks != NULL) {
    g_string_append (out, "<tr><td></td><td>");
    muster_html_put_text (out, job->model);
    muster_html_put (out, "</td><td class=\"why\">%s</td><td></td><td></td></tr>", lacks);
  }
  for (gsize i = 0; i < n_shown; i++)
    put_member (out, job, job->members[i]);
  if ((gsize)job->n > n_shown)
    muster_html_put (out, "<tr><td class=\"quiet\" colspan=\"5\">and %d more</td></tr>",
                     job->n - (gint)n_shown);
  for (gsize i = 0; i < job->n_left; i++)
    put_member (out, job, job->left[i]);
}

/* A task of a job with a fixed number. */
static void
put_task (GString *out, const Muster__Task *task)
{
  g_autofree char *age = muster_format_duration (task->age_us);
  g_string_append (out, "<tr><td>");
  muster_html_put_text (out, task->task);
  g_string_append (out, "</td><td>");
  muster_html_put_text (out, task->model);
  muster_html_put (out,
                   "</td><td class=\"why\">ready</td><td class=\"number\">–</td>"
                   "<td class=\"number\">%s</td></tr>",
                   age);
}

static void
put_jobs (GString *out, const Muster__StatusResponse *status)
{
  gint n = (gint)status->n_tasks;
  if (status->n_jobs == 0 && n == 0)
    return;
  for (gsize i = 0; i < status->n_jobs; i++)
    n += status->jobs[i]->n;
  muster_html_put (out, "<section><h2>Tasks: %d</h2>", n);
  g_string_append (out,
                   "<table class=\"reasons\"><tr><th>task</th><th>model</th>"
                   "<th class=\"why\">role</th>"
                   "<th class=\"number\">batches</th><th class=\"number\">time in job</th></tr>");
  for (gsize i = 0; i < MIN (status->n_jobs, MODELS_SHOWN); i++)
    put_job (out, status, status->jobs[i]);
  for (gsize i = 0; i < MIN (status->n_tasks, TASKS_SHOWN); i++)
    put_task (out, status->tasks[i]);
  g_string_append (out, "</table></section>");
}

/* --- the server --- */

static void
put_load (GString *out, const Muster__StatusResponse *status, const MusterStepPeriod *periods)
{
  if (muster_status_has_steps_elsewhere (status)) {
    g_string_append (
        out, "<section><h2>Steps</h2><p class=\"quiet\">None here: " MUSTER_STATUS_STEPS_ELSEWHERE
             ".</p></section>");
    return;
  }
  g_autofree char *median = muster_format_duration (status->median_step_us);
  g_autofree char *rate = muster_html_number (status->steps_per_second);
  g_autofree char *stall = muster_status_stall (status, MUSTER_STATUS_STALL_US);
  muster_html_put (
      out,
      "<div class=\"stack\"><section><h2>Steps</h2><p><span class=\"big\">%s</span> per second, ",
      rate);
  muster_html_put (out, "%" G_GINT64_FORMAT " in all</p>", status->steps);
  if (stall != NULL)
    muster_html_put (out, "<p class=\"bad\">%s</p>", stall);
  muster_chart_rate (out, periods, status->steps_per_second);
  muster_html_put (
      out, "</section><section><h2>Step duration</h2><p><span class=\"big\">%s</span>%s</p>",
      status->median_step_us > 0 ? median : "–",
      status->median_step_us > 0 ? " median of the last 1000" : "");
  muster_chart_latency (out, periods);
  g_string_append (out, "</section></div>");
}

static gboolean
is_bytes (const char *limit)
{
  return g_str_has_suffix (limit, "bytes") || strcmp (limit, "memory") == 0;
}

static void
put_amount (GString *out, const char *limit, gint64 amount)
{
  g_autofree char *size = muster_format_size ((guint64)MAX (amount, 0));
  if (is_bytes (limit))
    muster_html_put (out, "<td class=\"number\">%s</td>", size);
  else
    muster_html_put (out, "<td class=\"number\">%" G_GINT64_FORMAT "</td>", amount);
}

static void
put_limits (GString *out, const Muster__StatusResponse *status)
{
  g_string_append (out, "<h3>Limits</h3><table><tr><th>limit</th><th class=\"number\">used</th>"
                        "<th class=\"number\">of</th><th class=\"number\">refused</th></tr>");
  for (gsize i = 0; i < status->n_limits; i++) {
    const Muster__Limit *limit = status->limits[i];
    muster_html_put (out, "<tr><td>%s</td>", limit->name);
    put_amount (out, limit->name, limit->used);
    put_amount (out, limit->name, limit->limit);
    muster_html_put (
        out, "<td class=\"number\"><span class=\"%s\">%" G_GINT64_FORMAT "</span></td></tr>",
        limit->refused > 0 ? "bad" : "", limit->refused);
  }
  g_string_append (out, "</table>");
}

static void
put_server (GString *out, const Muster__StatusResponse *status)
{
  g_autofree char *uptime = muster_format_duration (status->uptime_us);
  g_autofree char *memory = muster_format_size ((guint64)MAX (status->memory_bytes, 0));
  g_string_append (out, "<section><h2>Server</h2><dl><dt>serves</dt><dd>");
  muster_html_put_text (out, status->master);
  if (*status->master_failure != '\0')
    muster_html_put (out, " <span class=\"bad\">can't be used: %s</span>", status->master_failure);
  muster_html_put (out,
                   "</dd><dt>version</dt><dd>%s</dd><dt>up</dt><dd>%s</dd><dt>memory</dt><dd>%s"
                   "</dd><dt>sessions</dt><dd>%d</dd></dl>",
                   status->version, uptime, memory, status->sessions);
  put_limits (out, status);
  g_string_append (out, "</section>");
}

char *
muster_page_content (const Muster__StatusResponse *status, const MusterStepPeriod *periods)
{
  GString *out = g_string_new (NULL);
  put_models (out, status);
  put_jobs (out, status);
  g_string_append (out, "<div class=\"cards\">");
  put_waiters (out, status);
  put_load (out, status, periods);
  put_server (out, status);
  g_string_append (out, "</div>");
  return g_string_free (out, FALSE);
}

/* --- the page around it --- */

char *
muster_page_whole (const char *content)
{
  const char *place = strstr (page_text, PLACE);
  GString *out = g_string_new_len (page_text, place - page_text);
  g_string_append (out, content);
  g_string_append (out, place + strlen (PLACE));
  return g_string_free (out, FALSE);
}

/* Returns the 'sha256-…' of the text between the tags. */
static char *
hash_between (const char *begin, const char *end)
{
  guint8 digest[32];
  gsize size = sizeof digest;
  const char *from = strstr (page_text, begin) + strlen (begin);
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_checksum_update (checksum, (const guchar *)from, strstr (from, end) - from);
  g_checksum_get_digest (checksum, digest, &size);
  g_autofree char *text = g_base64_encode (digest, size);
  return g_strdup_printf ("'sha256-%s'", text);
}

char *
muster_page_policy (void)
{
  g_autofree char *style = hash_between ("<style>", "</style>");
  g_autofree char *script = hash_between ("<script>", "</script>");
  return g_strdup_printf ("default-src 'none'; style-src %s; script-src %s; connect-src 'self'; "
                          "img-src data:; base-uri 'none'; form-action 'none'; "
                          "frame-ancestors 'none'",
                          style, script);
}
