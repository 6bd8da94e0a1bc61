// SPDX-License-Identifier: Apache-2.0
/* The metrics of the models, from their chiefs' announcements: state, saves, and the use of the
 * job's time. */
#include "server/http/metrics_models.h"

#include "server/core/server_private.h"
#include "server/http/pages.h"

#define PAST_AFTER_US (3600 * MUSTER_SECOND)

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
  return chief->durable_step >= 0 ? MUSTER_METRICS_SECONDS (chief->durable_age_us) : -1;
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
             ? MUSTER_METRICS_SECONDS (chief->saves->saving_age_us)
             : -1;
}

static double
save_interval_of (const MusterAnnouncement *chief)
{
  return chief->saves != NULL && chief->saves->interval_us > 0
             ? MUSTER_METRICS_SECONDS (chief->saves->interval_us)
             : -1;
}

static double
goodput_of (const MusterAnnouncement *chief)
{
  return chief->goodput != NULL ? muster_goodput_share (chief->goodput) : -1;
}

static double
restarts_of (const MusterAnnouncement *chief)
{
  return chief->goodput != NULL ? (double)chief->goodput->n_restarts : -1;
}

static double
failures_of (const MusterAnnouncement *chief)
{
  return chief->goodput != NULL ? (double)chief->goodput->n_failures : -1;
}

static double
steps_again_of (const MusterAnnouncement *chief)
{
  return chief->goodput != NULL ? (double)chief->goodput->steps_again : -1;
}

/* --- saves --- */

/* The saves of each model, from its chief's announcements; each writes one family. */

static void
add_save_steps (MusterMetrics *page, const char *model, const MusterSaveStatus *saves)
{
  for (guint i = 0; i < MUSTER_N_SAVE_STATES; i++)
    if (saves->step[i] >= 0)
      muster_metrics_sample_of (page, "", model, "state",
                                muster_save_state_name ((MusterSaveState)i),
                                (double)saves->step[i]);
}

static void
add_save_counts (MusterMetrics *page, const char *model, const MusterSaveStatus *saves)
{
  const guint64 counts[] = {saves->n_durable, saves->n_failed, saves->n_skipped, saves->n_replaced};
  for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
    muster_metrics_sample_of (page, "_total", model, "outcome",
                              muster_save_state_name ((MusterSaveState)(MUSTER_SAVE_DURABLE + i)),
                              (double)counts[i]);
}

static void
add_phases (MusterMetrics *page, const char *suffix, const char *model, const gint64 *phases_us)
{
  for (guint i = 0; i < MUSTER_N_SAVE_PHASES; i++)
    muster_metrics_sample_of (page, suffix, model, "phase",
                              muster_save_phase_name ((MusterSavePhase)i),
                              MUSTER_METRICS_SECONDS (phases_us[i]));
}

static void
add_save_times (MusterMetrics *page, const char *model, const MusterSaveStatus *saves)
{
  add_phases (page, "_total", model, saves->total_us);
}

static void
add_last_save_times (MusterMetrics *page, const char *model, const MusterSaveStatus *saves)
{
  if (saves->n_durable > 0)
    add_phases (page, "", model, saves->last_us);
}

static void
add_saves (MusterMetrics *page, GPtrArray *chiefs)
{
  static const struct {
    MusterMetricKind kind;
    const char *name, *unit, *help;
    void (*add) (MusterMetrics *page, const char *model, const MusterSaveStatus *saves);
  } families[] = {
      {MUSTER_METRIC_GAUGE, "muster_model_save_step", "",
       "The step of the last save that was requested, staged, written and durable.",
       add_save_steps},
      {MUSTER_METRIC_COUNTER, "muster_model_saves", "",
       "Number of saves of the current chief, by outcome.", add_save_counts},
      {MUSTER_METRIC_COUNTER, "muster_model_save_seconds", "seconds",
       "Time spent on durable saves; blocked: training was stopped.", add_save_times},
      {MUSTER_METRIC_GAUGE, "muster_model_last_save_seconds", "seconds",
       "Time spent on the last durable save.", add_last_save_times},
  };
  for (guint f = 0; f < G_N_ELEMENTS (families); f++) {
    muster_metrics_family (page, families[f].kind, families[f].name, families[f].unit,
                           families[f].help);
    for (guint i = 0; i < chiefs->len; i++) {
      const MusterAnnouncement *chief = chiefs->pdata[i];
      if (chief->saves != NULL)
        families[f].add (page, chief->model, chief->saves);
    }
  }
}

/* --- what the job's time is spent on --- */

/* A number of each model that knows it. */
typedef struct {
  const char *name, *unit, *help;
  double (*value) (const MusterAnnouncement *chief); /* below 0: unknown */
} Gauge;

static void
add_gauges (MusterMetrics *page, GPtrArray *chiefs, const Gauge *gauges, gsize n)
{
  for (gsize g = 0; g < n; g++) {
    muster_metrics_family (page, MUSTER_METRIC_GAUGE, gauges[g].name, gauges[g].unit,
                           gauges[g].help);
    for (guint i = 0; i < chiefs->len; i++) {
      const MusterAnnouncement *chief = chiefs->pdata[i];
      const double value = gauges[g].value (chief);
      if (value >= 0)
        muster_metrics_sample (page, "", "model", chief->model, value);
    }
  }
}

/* Gauges, because they can fall: a chief that finds no announcement of its predecessor continues
 * from what that wrote with its last checkpoint. */
static const Gauge goodput_gauges[] = {
    {"muster_model_restarts", "", "Number of restarts of the chief's process and of its session.",
     restarts_of},
    {"muster_model_failures", "",
     "Number of those restarts after a failure, without those on request.", failures_of},
    {"muster_model_steps_trained_again", "", "Number of steps trained again after a failure.",
     steps_again_of},
};

static void
add_goodput (MusterMetrics *page, GPtrArray *chiefs)
{
  muster_metrics_family (page, MUSTER_METRIC_GAUGE, "muster_model_time_seconds", "seconds",
                         "The job's time since its first start, across restarts, by use.");
  for (guint i = 0; i < chiefs->len; i++) {
    const MusterAnnouncement *chief = chiefs->pdata[i];
    for (guint use = 0; chief->goodput != NULL && use < MUSTER_N_TIMES; use++)
      muster_metrics_sample_of (page, "", chief->model, "use",
                                muster_time_use_name ((MusterTimeUse)use),
                                MUSTER_METRICS_SECONDS (chief->goodput->spent_us[use]));
  }
  add_gauges (page, chiefs, goodput_gauges, G_N_ELEMENTS (goodput_gauges));
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

static const Gauge model_gauges[] = {
    {"muster_model_ready", "", "Whether the model is prepared and its ready op reports it ready.",
     is_ready},
    {"muster_model_chief_alive", "", "Whether the model's chief holds its lease.", is_chief_alive},
    {"muster_model_step", "", "The global step that the chief last announced.", step_of},
    {"muster_model_durable_step", "", "The step of the last durable checkpoint.", durable_step_of},
    {"muster_model_durable_age_seconds", "seconds",
     "Age of the last durable checkpoint, also of one that was restored.", durable_age_of},
    {"muster_model_last_save_bytes", "bytes", "Size of the last durable checkpoint.",
     last_bytes_of},
    {"muster_model_saving_seconds", "seconds",
     "Time since the oldest save that hasn't ended was requested.", saving_age_of},
    {"muster_model_save_interval_seconds", "seconds",
     "Time between saves, if the job chooses it itself.", save_interval_of},
    {"muster_model_goodput_ratio", "ratio",
     "Share of the job's time, across restarts, in which steps were trained for the first time.",
     goodput_of},
};

void
muster_metrics_add_models (MusterMetrics *page, MusterServer *server)
{
  g_autoptr (GPtrArray) chiefs = list_present (server);
  add_gauges (page, chiefs, model_gauges, G_N_ELEMENTS (model_gauges));
  muster_metrics_family (page, MUSTER_METRIC_GAUGE, "muster_model_phase", "",
                         "1 for the phase of the model's chief.");
  for (guint i = 0; i < chiefs->len; i++) {
    const MusterAnnouncement *chief = chiefs->pdata[i];
    muster_metrics_sample_of (page, "", chief->model, "phase",
                              muster_chief_phase_name (chief->phase), 1);
  }
  add_saves (page, chiefs);
  add_goodput (page, chiefs);
}
