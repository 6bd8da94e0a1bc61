// SPDX-License-Identifier: Apache-2.0
/* The page /metrics: the server's counters, in families. The models' are in metrics_models.c. */
#include "base/memory_account_private.h"
#include "base/version.h"
#include "checkpoint/s3/s3_metrics.h"
#include "rpc/credentials_private.h"
#include "server/core/server_private.h"
#include "server/http/metrics_models.h"
#include "server/http/pages.h"
#include "server/services/readiness_service.h"
#include "server/services/status_service.h"

#include <string.h>

/* The longest waiting are counted. */
#define MOST_WAITING 10000

static void
add_server (MusterMetrics *page, MusterServer *server)
{
  gint64 now_us = muster_clock_now_us (server->clock);
  muster_metrics_family (page, MUSTER_METRIC_GAUGE, "muster_build_info", "",
                         "Version of the server.");
  muster_metrics_sample (page, "", "version", MUSTER_VERSION, 1);
  muster_metrics_gauge (page, "muster_uptime_seconds", "seconds", "Time since the server started.",
                        MUSTER_METRICS_SECONDS (now_us - server->started_us));
  muster_metrics_gauge (page, "muster_resident_memory_bytes", "bytes",
                        "Resident memory of the process.", (double)muster_server_resident_bytes ());
  muster_metrics_gauge (page, "muster_sessions", "", "Number of open sessions.",
                        muster_sessions_size (server->sessions));
  muster_metrics_gauge (page, "muster_watchers", "", "Number of open watches.",
                        muster_readiness_service_n_watchers (server->readiness));
  muster_metrics_counter (page, "muster_sessions_expired",
                          "Sessions closed because they were not renewed or used.",
                          (double)muster_session_reaper_n_expired (server->reaper));
}

/* When the server's certificate ends, if it has one, as it is now. */
static void
add_certificate (MusterMetrics *page, MusterServer *server)
{
  const gint64 end_s = muster_rpc_credentials_expiry (server->credentials);
  if (end_s > 0)
    muster_metrics_gauge (page, "muster_certificate_expiry_timestamp_seconds", "seconds",
                          "End of the server certificate's validity, in seconds since 1970.",
                          (double)end_s);
}

/* Clients that wait for a model, whether it has a chief or not. */
static void
add_waiting (MusterMetrics *page, MusterServer *server)
{
  g_autoptr (GPtrArray) clients =
      muster_readiness_service_waiters (server->readiness, MOST_WAITING);
  g_autoptr (GTree) counts = g_tree_new ((GCompareFunc)strcmp); /* borrows the names */
  for (guint i = 0; i < clients->len; i++) {
    const MusterWaiting *client = clients->pdata[i];
    const guint n = GPOINTER_TO_UINT (g_tree_lookup (counts, client->model)) + 1;
    if (*client->model != '\0' && *client->waits_for != '\0')
      g_tree_insert (counts, client->model, GUINT_TO_POINTER (n));
  }
  muster_metrics_family (page, MUSTER_METRIC_GAUGE, "muster_model_waiting", "",
                         "Number of clients that wait for the model.");
  for (GTreeNode *node = g_tree_node_first (counts); node != NULL; node = g_tree_node_next (node))
    muster_metrics_sample (page, "", "model", g_tree_node_key (node),
                           GPOINTER_TO_UINT (g_tree_node_value (node)));
}

static void
add_steps (MusterMetrics *page, MusterServer *server)
{
  static const double quantiles[] = {0.5, 0.9, 0.99};
  static const char *const names[] = {"0.5", "0.9", "0.99"};
  gint64 durations_us[G_N_ELEMENTS (quantiles)];
  guint64 n_steps = muster_step_meter_n_steps (server->steps);
  muster_step_meter_quantiles (server->steps, quantiles, G_N_ELEMENTS (quantiles), durations_us);
  muster_metrics_counter (page, "muster_steps", "Number of finished steps.", (double)n_steps);
  muster_metrics_family (page, MUSTER_METRIC_SUMMARY, "muster_step_duration_seconds", "seconds",
                         "Duration of steps; quantiles of the last 1000 steps.");
  for (guint i = 0; n_steps > 0 && i < G_N_ELEMENTS (quantiles); i++)
    muster_metrics_sample (page, "", "quantile", names[i],
                           MUSTER_METRICS_SECONDS (durations_us[i]));
  muster_metrics_sample (page, "_sum", NULL, NULL,
                         MUSTER_METRICS_SECONDS (muster_step_meter_total_us (server->steps)));
  muster_metrics_sample (page, "_count", NULL, NULL, (double)n_steps);
}

static void
add_stall (MusterMetrics *page, MusterServer *server)
{
  muster_metrics_gauge (page, "muster_step_stalled_seconds", "seconds",
                        "Time for which no step has ended, while steps run or a chief trains.",
                        MUSTER_METRICS_SECONDS (muster_server_stalled_us (server)));
}

static void
add_histograms (MusterMetrics *page, MusterServer *server)
{
  muster_metrics_histogram (
      page, "muster_watch_latency_seconds",
      "Time from a change of a model's readiness to the message to a waiting client.",
      &server->watch_latency);
  muster_metrics_histogram (page, "muster_restore_duration_seconds",
                            "Time that chiefs spent restoring.", &server->restores);
}

static void
add_members (MusterMetrics *page, MusterServer *server)
{
  g_autoptr (GPtrArray) jobs = muster_member_registry_list (server->members, 0);
  muster_metrics_family (page, MUSTER_METRIC_GAUGE, "muster_members", "",
                         "Number of tasks that are members of a model's job.");
  for (guint i = 0; i < jobs->len; i++) {
    const MusterMembers *job = jobs->pdata[i];
    muster_metrics_sample (page, "", "model", job->model, job->n_members);
  }
  muster_metrics_family (page, MUSTER_METRIC_GAUGE, "muster_members_needed", "",
                         "Minimum number of tasks: with fewer, the job waits.");
  for (guint i = 0; i < jobs->len; i++) {
    const MusterMembers *job = jobs->pdata[i];
    muster_metrics_sample (page, "", "model", job->model, job->min_tasks);
  }
  muster_metrics_counter (page, "muster_members_joined", "Number of tasks that joined a job.",
                          (double)muster_member_registry_n_joined (server->members));
  muster_metrics_family (page, MUSTER_METRIC_COUNTER, "muster_members_left", "",
                         "Number of tasks that left a job, by reason.");
  for (guint end = MUSTER_MEMBER_LEFT; end < MUSTER_N_MEMBER_ENDS; end++)
    muster_metrics_sample (page, "_total", "reason", muster_member_end_name (end),
                           (double)muster_member_registry_n_left (server->members, end));
}

static void
add_limits (MusterMetrics *page, MusterServer *server)
{
  MusterLimitUse usages[MUSTER_N_LIMITS];
  for (guint i = 0; i < MUSTER_N_LIMITS; i++)
    muster_limits_read (server->limits, i, &usages[i]);
  muster_metrics_family (page, MUSTER_METRIC_GAUGE, "muster_limit_used", "",
                         "Amount of a limit in use.");
  for (guint i = 0; i < MUSTER_N_LIMITS; i++)
    muster_metrics_sample (page, "", "limit", usages[i].name, (double)usages[i].used);
  muster_metrics_family (page, MUSTER_METRIC_GAUGE, "muster_limit", "", "Value of a limit.");
  for (guint i = 0; i < MUSTER_N_LIMITS; i++)
    muster_metrics_sample (page, "", "limit", usages[i].name, (double)usages[i].max);
  muster_metrics_family (page, MUSTER_METRIC_COUNTER, "muster_limit_refused", "",
                         "Number of requests refused because of a limit.");
  for (guint i = 0; i < MUSTER_N_LIMITS; i++)
    muster_metrics_sample (page, "_total", "limit", usages[i].name, (double)usages[i].refused);
  muster_metrics_family (page, MUSTER_METRIC_GAUGE, "muster_memory_bytes", "bytes",
                         "Memory held for clients, which --max-memory limits, by use.");
  for (guint i = 0; i < MUSTER_N_MEMORY_USES; i++)
    muster_metrics_sample (page, "", "use", muster_memory_use_name (i),
                           (double)muster_memory_used (i));
}

/* Adds what this process has requested of object stores. Without a store all are 0, so that a
 * rate begins at 0. */
static void
add_object_stores (MusterMetrics *page)
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
  muster_metrics_counter (page, "muster_s3_requests",
                          "Number of requests to object stores, with retries.",
                          (double)counts.requests);
  muster_metrics_family (page, MUSTER_METRIC_COUNTER, "muster_s3_retries", "",
                         "Number of retries of such requests, by reason.");
  for (guint i = 0; i < G_N_ELEMENTS (retries); i++)
    muster_metrics_sample (page, "_total", "reason", retries[i].reason, (double)retries[i].n);
  muster_metrics_counter (page, "muster_s3_failures",
                          "Number of requests to object stores that failed in the end.",
                          (double)counts.failures);
  muster_metrics_family (page, MUSTER_METRIC_COUNTER, "muster_s3_sent_bytes", "bytes",
                         "Bytes sent to object stores.");
  muster_metrics_sample (page, "_total", NULL, NULL, (double)counts.bytes_sent);
  muster_metrics_family (page, MUSTER_METRIC_COUNTER, "muster_s3_received_bytes", "bytes",
                         "Bytes received from object stores.");
  muster_metrics_sample (page, "_total", NULL, NULL, (double)counts.bytes_received);
}

char *
muster_pages_metrics (MusterServer *server, gboolean open_metrics)
{
  MusterMetrics page = {g_string_new (NULL), open_metrics, NULL};
  add_server (&page, server);
  add_certificate (&page, server);
  add_waiting (&page, server);
  add_steps (&page, server);
  add_stall (&page, server);
  add_histograms (&page, server);
  muster_metrics_add_models (&page, server);
  add_members (&page, server);
  add_limits (&page, server);
  add_object_stores (&page);
  g_string_append (page.text, "# EOF\n");
  return g_string_free (page.text, FALSE);
}
