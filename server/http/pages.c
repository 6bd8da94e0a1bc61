// SPDX-License-Identifier: Apache-2.0
#include "server/http/pages.h"

#include "base/memory_account.h"
#include "base/version.h"
#include "checkpoint/s3/s3_metrics.h"
#include "server/core/drain.h"
#include "server/core/server_private.h"
#include "server/services/readiness_service.h"
#include "server/services/status_service.h"

#define PAST_AFTER_US (3600 * MUSTER_SECOND)
#define SECONDS(us)   ((double)(us) / (double)MUSTER_SECOND)

gboolean
muster_pages_serves (MusterServer *server)
{
  return !g_atomic_int_get (&server->is_stopping);
}

/* --- ready --- */

const char *
muster_pages_why_not_ready (const MusterAnnouncement *chief)
{
  if (!chief->prepared)
    return "not prepared yet";
  return chief->is_ready ? NULL : "its ready op reports it not ready";
}

/* A line for each expected model that no chief has announced, or whose job is over. */
static void
append_expected (GString *text, MusterServer *server)
{
  for (char **it = server->expected; it != NULL && *it != NULL; it++) {
    g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (server->registry, *it);
    MusterMemberCounts counts;
    muster_member_registry_count (server->members, *it, &counts);
    if (chief == NULL && counts.n_tasks < counts.min_tasks)
      g_string_append_printf (text, "%s: waiting for tasks: %u of at least %u\n", *it,
                              counts.n_tasks, counts.min_tasks);
    else if (chief == NULL)
      g_string_append_printf (text, "%s: no chief has ever registered\n", *it);
    else if (chief->phase == MUSTER_CHIEF_OVER)
      g_string_append_printf (text, "%s: its job is over\n", *it);
  }
}

char *
muster_pages_ready (MusterServer *server, gboolean *is_ready)
{
  g_autoptr (GPtrArray) chiefs = muster_chief_registry_list (server->registry);
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < chiefs->len; i++) {
    const MusterAnnouncement *chief = chiefs->pdata[i];
    const char *why = muster_pages_why_not_ready (chief);
    /* Nobody waits for a job that is over. */
    if (why == NULL || chief->phase == MUSTER_CHIEF_OVER)
      continue;
    g_autofree char *described = muster_announcement_describe (chief);
    g_string_append_printf (text, "%s: %s; chief %s\n", chief->model, why, described);
  }
  append_expected (text, server);
  gboolean serves = muster_pages_serves (server);
  if (!serves)
    g_string_append (text, "the server is stopping\n");
  else if (muster_server_drain_left_us (server) > 0)
    g_string_append (text, "the server is draining\n");
  *is_ready = text->len == 0;
  if (*is_ready)
    g_string_append_printf (text, "ready: %u of %u models\n", chiefs->len, chiefs->len);
  return g_string_free (text, FALSE);
}

/* --- metrics --- */

typedef struct {
  GString *text;
  gboolean open;
  const char *name; /* of the current family */
} Page;

typedef enum { GAUGE, COUNTER, SUMMARY, HISTOGRAM } Kind;

/* Begins a metric family; unit is "" or the suffix of its name. */
static void
family (Page *page, Kind kind, const char *name, const char *unit, const char *help)
{
  static const char *const kinds[] = {"gauge", "counter", "summary", "histogram"};
  const char *suffix = kind == COUNTER && !page->open ? "_total" : "";
  page->name = name;
  g_string_append_printf (page->text, "# TYPE %s%s %s\n", name, suffix, kinds[kind]);
  if (*unit != '\0')
    g_string_append_printf (page->text, "# UNIT %s%s %s\n", name, suffix, unit);
  g_string_append_printf (page->text, "# HELP %s%s %s\n", name, suffix, help);
}

/* Names have only printable characters (ready/chief_registry.h), so there is no line break to
 * escape. */
static void
append_escaped (GString *text, const char *value)
{
  for (; *value != '\0'; value++) {
    if (*value == '\\' || *value == '"')
      g_string_append_c (text, '\\');
    g_string_append_c (text, *value);
  }
}

static void
append_label (GString *text, const char *before, const char *label, const char *value)
{
  g_string_append_printf (text, "%s%s=\"", before, label);
  append_escaped (text, value);
  g_string_append_c (text, '"');
}

static void
append_number (GString *text, double value)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_printf (text, " %s\n", g_ascii_formatd (number, sizeof number, "%.16g", value));
}

/* Writes a sample of the current family; label (nullable) and its value. */
static void
sample (Page *page, const char *suffix, const char *label, const char *label_value, double value)
{
  g_string_append_printf (page->text, "%s%s", page->name, suffix);
  if (label != NULL) {
    append_label (page->text, "{", label, label_value);
    g_string_append_c (page->text, '}');
  }
  append_number (page->text, value);
}

/* The same of a model, with another label. */
static void
sample_of (Page *page, const char *suffix, const char *model, const char *label,
           const char *label_value, double value)
{
  g_string_append_printf (page->text, "%s%s", page->name, suffix);
  append_label (page->text, "{", "model", model);
  append_label (page->text, ",", label, label_value);
  g_string_append_c (page->text, '}');
  append_number (page->text, value);
}

static void
gauge (Page *page, const char *name, const char *unit, const char *help, double value)
{
  family (page, GAUGE, name, unit, help);
  sample (page, "", NULL, NULL, value);
}

static void
counter (Page *page, const char *name, const char *help, double value)
{
  family (page, COUNTER, name, "", help);
  sample (page, "_total", NULL, NULL, value);
}

static void
add_server (Page *page, MusterServer *server)
{
  gint64 now_us = muster_clock_now_us (server->clock);
  family (page, GAUGE, "muster_build_info", "", "Version of the server.");
  sample (page, "", "version", MUSTER_VERSION, 1);
  gauge (page, "muster_uptime_seconds", "seconds", "Time since the server started.",
         SECONDS (now_us - server->started_us));
  gauge (page, "muster_resident_memory_bytes", "bytes", "Resident memory of the process.",
         (double)muster_server_resident_bytes ());
  gauge (page, "muster_sessions", "", "Number of open sessions.",
         muster_sessions_size (server->sessions));
  gauge (page, "muster_watchers", "", "Number of open watches.",
         muster_readiness_service_n_watchers (server->readiness));
  counter (page, "muster_sessions_expired",
           "Sessions closed because they were not renewed or used.",
           (double)muster_session_reaper_n_expired (server->reaper));
}

static void
add_steps (Page *page, MusterServer *server)
{
  static const double quantiles[] = {0.5, 0.9, 0.99};
  static const char *const names[] = {"0.5", "0.9", "0.99"};
  gint64 durations_us[G_N_ELEMENTS (quantiles)];
  guint64 n_steps = muster_step_meter_n_steps (server->steps);
  muster_step_meter_quantiles (server->steps, quantiles, G_N_ELEMENTS (quantiles), durations_us);
  counter (page, "muster_steps", "Number of finished steps.", (double)n_steps);
  family (page, SUMMARY, "muster_step_duration_seconds", "seconds",
          "Duration of steps; quantiles of the last 1000 steps.");
  for (guint i = 0; n_steps > 0 && i < G_N_ELEMENTS (quantiles); i++)
    sample (page, "", "quantile", names[i], SECONDS (durations_us[i]));
  sample (page, "_sum", NULL, NULL, SECONDS (muster_step_meter_total_us (server->steps)));
  sample (page, "_count", NULL, NULL, (double)n_steps);
}

static void
add_histogram (Page *page, const char *name, const char *help, MusterHistogram *histogram)
{
  MusterHistogram now;
  guint64 n = 0;
  muster_histogram_copy (histogram, &now);
  family (page, HISTOGRAM, name, "seconds", help);
  for (guint i = 0; i < MUSTER_N_BUCKETS - 1; i++) {
    char bound[G_ASCII_DTOSTR_BUF_SIZE];
    n += now.counts[i];
    if (muster_histogram_is_shown (i))
      sample (
          page, "_bucket", "le",
          g_ascii_formatd (bound, sizeof bound, "%.10g", SECONDS (muster_histogram_bound_us (i))),
          (double)n);
  }
  n += now.counts[MUSTER_N_BUCKETS - 1];
  sample (page, "_bucket", "le", "+Inf", (double)n);
  sample (page, "_sum", NULL, NULL, SECONDS (now.total_us));
  sample (page, "_count", NULL, NULL, (double)n);
}

static void
add_histograms (Page *page, MusterServer *server)
{
  add_histogram (page, "muster_watch_latency_seconds",
                 "Time from a change of a model's readiness to the message to a waiting client.",
                 &server->watch_latency);
  add_histogram (page, "muster_restore_duration_seconds", "Time that chiefs spent restoring.",
                 &server->restores);
}

static double
is_ready (const MusterAnnouncement *chief)
{
  return muster_pages_why_not_ready (chief) == NULL;
}

static double
is_chief_alive (const MusterAnnouncement *chief)
{
  return chief->alive;
}

static double
step_of (const MusterAnnouncement *chief)
{
  return (double)chief->step;
}

static double
durable_step_of (const MusterAnnouncement *chief)
{
  return (double)chief->durable_step;
}

static double
durable_age_of (const MusterAnnouncement *chief)
{
  return chief->durable_step >= 0 ? SECONDS (chief->durable_age_us) : -1;
}

static double
last_bytes_of (const MusterAnnouncement *chief)
{
  return chief->saves != NULL && chief->saves->n_durable > 0 ? (double)chief->saves->last_bytes
                                                             : -1;
}

static double
saving_age_of (const MusterAnnouncement *chief)
{
  return chief->saves != NULL && chief->saves->saving != NULL
             ? SECONDS (chief->saves->saving_age_us)
             : -1;
}

static double
save_interval_of (const MusterAnnouncement *chief)
{
  return chief->saves != NULL && chief->saves->interval_us > 0 ? SECONDS (chief->saves->interval_us)
                                                               : -1;
}

static double
goodput_of (const MusterAnnouncement *chief)
{
  return chief->goodput != NULL ? muster_goodput_share (chief->goodput) : -1;
}

/* --- saves --- */

/* The saves of each model, from its chief's announcements; each writes one family. */

static void
add_save_steps (Page *page, const char *model, const MusterSaveStatus *saves)
{
  for (guint i = 0; i < MUSTER_N_SAVE_STATES; i++)
    if (saves->step[i] >= 0)
      sample_of (page, "", model, "state", muster_save_state_name ((MusterSaveState)i),
                 (double)saves->step[i]);
}

static void
add_save_counts (Page *page, const char *model, const MusterSaveStatus *saves)
{
  const guint64 counts[] = {saves->n_durable, saves->n_failed, saves->n_skipped, saves->n_replaced};
  for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
    sample_of (page, "_total", model, "outcome",
               muster_save_state_name ((MusterSaveState)(MUSTER_SAVE_DURABLE + i)),
               (double)counts[i]);
}

static void
add_phases (Page *page, const char *suffix, const char *model, const gint64 *phases_us)
{
  for (guint i = 0; i < MUSTER_N_SAVE_PHASES; i++)
    sample_of (page, suffix, model, "phase", muster_save_phase_name ((MusterSavePhase)i),
               SECONDS (phases_us[i]));
}

static void
add_save_times (Page *page, const char *model, const MusterSaveStatus *saves)
{
  add_phases (page, "_total", model, saves->total_us);
}

static void
add_last_save_times (Page *page, const char *model, const MusterSaveStatus *saves)
{
  if (saves->n_durable > 0)
    add_phases (page, "", model, saves->last_us);
}

static void
add_saves (Page *page, GPtrArray *chiefs)
{
  static const struct {
    Kind kind;
    const char *name, *unit, *help;
    void (*add) (Page *page, const char *model, const MusterSaveStatus *saves);
  } families[] = {
      {GAUGE, "muster_model_save_step", "",
       "The step of the last save that was requested, staged, written and durable.",
       add_save_steps},
      {COUNTER, "muster_model_saves", "", "Number of saves of the current chief, by outcome.",
       add_save_counts},
      {COUNTER, "muster_model_save_seconds", "seconds",
       "Time spent on durable saves; blocked: training stood still.", add_save_times},
      {GAUGE, "muster_model_last_save_seconds", "seconds", "Time spent on the last durable save.",
       add_last_save_times},
  };
  for (guint f = 0; f < G_N_ELEMENTS (families); f++) {
    family (page, families[f].kind, families[f].name, families[f].unit, families[f].help);
    for (guint i = 0; i < chiefs->len; i++) {
      const MusterAnnouncement *chief = chiefs->pdata[i];
      if (chief->saves != NULL)
        families[f].add (page, chief->model, chief->saves);
    }
  }
}

/* --- what the job's time is spent on --- */

/* Gauges, since they can fall: a chief that finds no announcement of the one before continues from
 * what that one wrote with its last checkpoint. */
static void
add_goodput (Page *page, GPtrArray *chiefs)
{
  family (page, GAUGE, "muster_model_time_seconds", "seconds",
          "The job's time since its first start, over restarts, by use.");
  for (guint i = 0; i < chiefs->len; i++) {
    const MusterAnnouncement *chief = chiefs->pdata[i];
    for (guint use = 0; chief->goodput != NULL && use < MUSTER_N_TIMES; use++)
      sample_of (page, "", chief->model, "use", muster_time_use_name ((MusterTimeUse)use),
                 SECONDS (chief->goodput->spent_us[use]));
  }
  family (page, GAUGE, "muster_model_restarts", "",
          "Number of restarts of the chief's process and of its session.");
  for (guint i = 0; i < chiefs->len; i++) {
    const MusterAnnouncement *chief = chiefs->pdata[i];
    if (chief->goodput != NULL)
      sample (page, "", "model", chief->model, (double)chief->goodput->n_restarts);
  }
  family (page, GAUGE, "muster_model_failures", "",
          "Number of those restarts after a failure, without those on request.");
  for (guint i = 0; i < chiefs->len; i++) {
    const MusterAnnouncement *chief = chiefs->pdata[i];
    if (chief->goodput != NULL)
      sample (page, "", "model", chief->model, (double)chief->goodput->n_failures);
  }
  family (page, GAUGE, "muster_model_steps_trained_again", "",
          "Number of steps trained again after a failure.");
  for (guint i = 0; i < chiefs->len; i++) {
    const MusterAnnouncement *chief = chiefs->pdata[i];
    if (chief->goodput != NULL)
      sample (page, "", "model", chief->model, (double)chief->goodput->steps_again);
  }
}

/* --- models --- */

/* A model that nobody trains or uses any more leaves the metrics an hour after its chief. */
static gboolean
is_past (const MusterAnnouncement *chief)
{
  return !chief->alive && chief->lost_age_us >= PAST_AFTER_US &&
         (chief->phase == MUSTER_CHIEF_OVER || !chief->is_ready);
}

static GPtrArray *
list_present (MusterServer *server)
{
  GPtrArray *chiefs = muster_chief_registry_list (server->registry);
  for (guint i = chiefs->len; i-- > 0;)
    if (is_past (chiefs->pdata[i]))
      g_ptr_array_remove_index (chiefs, i);
  return chiefs;
}

static void
add_models (Page *page, MusterServer *server)
{
  static const struct {
    const char *name;
    const char *unit;
    const char *help;
    double (*value) (const MusterAnnouncement *chief); /* below 0: unknown */
  } gauges[] = {
      {"muster_model_ready", "", "Whether the model is prepared and its ready op reports it ready.",
       is_ready},
      {"muster_model_chief_alive", "", "Whether the model's chief holds its lease.",
       is_chief_alive},
      {"muster_model_step", "", "The global step that the chief last announced.", step_of},
      {"muster_model_durable_step", "", "The step of the last durable checkpoint.",
       durable_step_of},
      {"muster_model_durable_age_seconds", "seconds",
       "Time since the last checkpoint became durable, or was restored.", durable_age_of},
      {"muster_model_last_save_bytes", "bytes", "Size of the last durable checkpoint.",
       last_bytes_of},
      {"muster_model_saving_seconds", "seconds",
       "Time since the oldest save that hasn't ended was requested.", saving_age_of},
      {"muster_model_save_interval_seconds", "seconds",
       "Time between saves, if the job chooses it itself.", save_interval_of},
      {"muster_model_goodput_ratio", "ratio",
       "Share of the job's time, over restarts, in which steps were trained for the first time.",
       goodput_of},
  };
  g_autoptr (GPtrArray) chiefs = list_present (server);
  for (guint g = 0; g < G_N_ELEMENTS (gauges); g++) {
    family (page, GAUGE, gauges[g].name, gauges[g].unit, gauges[g].help);
    for (guint i = 0; i < chiefs->len; i++) {
      const MusterAnnouncement *chief = chiefs->pdata[i];
      double value = gauges[g].value (chief);
      if (value >= 0)
        sample (page, "", "model", chief->model, value);
    }
  }
  family (page, GAUGE, "muster_model_phase", "", "1 for the phase of the model's chief.");
  for (guint i = 0; i < chiefs->len; i++) {
    const MusterAnnouncement *chief = chiefs->pdata[i];
    sample_of (page, "", chief->model, "phase", muster_chief_phase_name (chief->phase), 1);
  }
  add_saves (page, chiefs);
  add_goodput (page, chiefs);
}

/* --- members --- */

static void
add_members (Page *page, MusterServer *server)
{
  g_autoptr (GPtrArray) jobs = muster_member_registry_list (server->members, 0);
  family (page, GAUGE, "muster_members", "", "Number of tasks that are members of a model's job.");
  for (guint i = 0; i < jobs->len; i++) {
    const MusterMembers *job = jobs->pdata[i];
    sample (page, "", "model", job->model, job->n_members);
  }
  counter (page, "muster_members_joined", "Number of tasks that joined a job.",
           (double)muster_member_registry_n_joined (server->members));
  family (page, COUNTER, "muster_members_left", "",
          "Number of tasks that left a job: as they meant to, with their process, or silent.");
  for (guint end = MUSTER_MEMBER_LEFT; end < MUSTER_N_MEMBER_ENDS; end++)
    sample (page, "_total", "reason", muster_member_end_name (end),
            (double)muster_member_registry_n_left (server->members, end));
}

static void
add_limits (Page *page, MusterServer *server)
{
  MusterLimitUse usages[MUSTER_N_LIMITS];
  for (guint i = 0; i < MUSTER_N_LIMITS; i++)
    muster_limits_read (server->limits, i, &usages[i]);
  family (page, GAUGE, "muster_limit_used", "", "Amount of a limit in use.");
  for (guint i = 0; i < MUSTER_N_LIMITS; i++)
    sample (page, "", "limit", usages[i].name, (double)usages[i].used);
  family (page, GAUGE, "muster_limit", "", "Value of a limit.");
  for (guint i = 0; i < MUSTER_N_LIMITS; i++)
    sample (page, "", "limit", usages[i].name, (double)usages[i].max);
  family (page, COUNTER, "muster_limit_refused", "",
          "Number of requests refused because of a limit.");
  for (guint i = 0; i < MUSTER_N_LIMITS; i++)
    sample (page, "_total", "limit", usages[i].name, (double)usages[i].refused);
  family (page, GAUGE, "muster_memory_bytes", "bytes",
          "Memory held for clients, which --max-memory limits, by use.");
  for (guint i = 0; i < MUSTER_N_MEMORY_USES; i++)
    sample (page, "", "use", muster_memory_use_name (i), (double)muster_memory_used (i));
}

/* What this process has asked of object stores; all 0 without one, so that a rate begins at 0. */
static void
add_object_stores (Page *page)
{
  MusterS3Metrics counts;
  muster_s3_metrics (&counts);
  const struct {
    const char *reason;
    guint64 n;
  } retries[] = {
      {"throttled", counts.retries_throttled}, {"failed", counts.retries_failed},
      {"lost", counts.retries_lost},           {"stalled", counts.retries_stalled},
      {"damaged", counts.retries_damaged},     {"expired", counts.retries_expired},
  };
  counter (page, "muster_s3_requests", "Number of requests to object stores, with retries.",
           (double)counts.requests);
  family (page, COUNTER, "muster_s3_retries", "", "Number of retries of such requests, by reason.");
  for (guint i = 0; i < G_N_ELEMENTS (retries); i++)
    sample (page, "_total", "reason", retries[i].reason, (double)retries[i].n);
  counter (page, "muster_s3_failures",
           "Number of requests to object stores that failed in the end.", (double)counts.failures);
  family (page, COUNTER, "muster_s3_sent_bytes", "bytes", "Bytes sent to object stores.");
  sample (page, "_total", NULL, NULL, (double)counts.bytes_sent);
  family (page, COUNTER, "muster_s3_received_bytes", "bytes", "Bytes received from object stores.");
  sample (page, "_total", NULL, NULL, (double)counts.bytes_received);
}

char *
muster_pages_metrics (MusterServer *server, gboolean open_metrics)
{
  Page page = {g_string_new (NULL), open_metrics, NULL};
  add_server (&page, server);
  add_steps (&page, server);
  add_histograms (&page, server);
  add_models (&page, server);
  add_members (&page, server);
  add_limits (&page, server);
  add_object_stores (&page);
  g_string_append (page.text, "# EOF\n");
  return g_string_free (page.text, FALSE);
}
