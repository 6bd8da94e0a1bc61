// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/s3_metrics_private.h"
#include "server/core/server_private.h"
#include "server/http/pages.h"
#include "tests/doubles/fake_clock.h"
#include "tests/server/http_visit.h"
#include "tests/server/served.h"

#include "engine/session/local_master.h"

#define PROMTOOL "/usr/bin/promtool"

MUSTER_TEST (Http, reports_that_the_server_serves)
{
  g_auto (HttpFixture) f = http_start ();
  EXPECT_ANSWER (&f, "GET", "/healthz", "200", "\r\n\r\nserving\n");
  EXPECT_ANSWER (&f, "GET", "/healthz?verbose=1", "200", "\r\n\r\nserving\n");
}

MUSTER_TEST (Http, has_few_pages_and_only_reads)
{
  g_auto (HttpFixture) f = http_start ();
  EXPECT_ANSWER (&f, "GET", "/index.html", "404", "/readyz and /healthz");
  EXPECT_ANSWER (&f, "GET", "/healthz/x", "404", "/metrics");
  EXPECT_ANSWER (&f, "POST", "/healthz", "405", "Allow: GET, HEAD");
  EXPECT_ANSWER (&f, "DELETE", "/metrics", "405", "Allow: GET, HEAD");
  EXPECT_ANSWER (&f, "NONSENSE", "/readyz", "405", "Allow: GET, HEAD");
}

MUSTER_TEST (Http, answers_head_without_a_body)
{
  g_auto (HttpFixture) f = http_start ();
  g_autofree char *heard = http_ask (&f, "HEAD", "/healthz");

  EXPECT_RECEIVED (heard, "200", "Content-Length: 8\r\n");
  MUSTER_EXPECT_TRUE (g_str_has_suffix (heard, "\r\n\r\n"));
  g_autofree char *of_events = http_ask (&f, "HEAD", "/api/events");
  EXPECT_RECEIVED (of_events, "200", "Content-Type: text/event-stream\r\n");
  MUSTER_EXPECT_STREQ (strstr (of_events, "\r\n\r\n"), "\r\n\r\n"); /* nor an end of chunks */
}

MUSTER_TEST (Http, answers_a_target_with_scheme_and_host)
{
  g_auto (HttpFixture) f = http_start ();
  EXPECT_ANSWER (&f, "GET", "http://localhost/healthz", "200", "\r\n\r\nserving\n");
  EXPECT_ANSWER (&f, "GET", "https://any.name:80/readyz?x=http://y/", "200", "ready: 0 of 0");
  EXPECT_ANSWER (&f, "GET", "http://localhost", "200", "<!DOCTYPE html>");
  EXPECT_ANSWER (&f, "GET", "ftp://localhost/healthz", "404", "/metrics");
}

MUSTER_TEST (Http, reports_each_model_that_is_not_ready_why)
{
  g_auto (HttpFixture) f = http_start ();
  EXPECT_ANSWER (&f, "GET", "/readyz", "200", "\r\n\r\nready: 0 of 0 models\n");

  gint64 epoch = http_claim (&f, "digits");
  http_announce (&f, "digits", epoch, MUSTER_CHIEF_RESTORING, -1);
  EXPECT_ANSWER (&f, "GET", "/readyz", "503",
                 "digits: not prepared yet; chief worker:0 (host:1), restoring for ");
  http_announce (&f, "digits", epoch, MUSTER_CHIEF_PREPARED, -1);
  EXPECT_ANSWER (&f, "GET", "/readyz", "503",
                 "digits: its ready op reports it not ready; chief worker:0");
  muster_chief_registry_set_ready (f.server->registry, "digits", epoch, TRUE);
  EXPECT_ANSWER (&f, "GET", "/readyz", "200", "ready: 1 of 1 models\n");
  http_announce (&f, "digits", epoch, MUSTER_CHIEF_OVER, 20000);
  EXPECT_ANSWER (&f, "GET", "/readyz", "200", "ready: 1 of 1 models\n");
  (void)http_claim (&f, "letters");
  EXPECT_ANSWER (&f, "GET", "/readyz", "503", "\r\n\r\nletters: not prepared yet; ");
  muster_chief_registry_reset (f.server->registry,
                               muster_chief_registry_n_claims (f.server->registry), NULL);
  EXPECT_ANSWER (&f, "GET", "/readyz", "503", "digits: not prepared yet; ");
}

MUSTER_TEST (Http, is_not_ready_while_a_job_waits_for_tasks)
{
  const MusterMemberRequest request = {
      .model = "digits", .task = "", .who = "host:1", .slot = -1, .n_slots = 4, .min_tasks = 2};
  guint slot;
  g_auto (HttpFixture) f = http_start ();
  const gint64 epoch = http_claim (&f, "digits");
  http_announce (&f, "digits", epoch, MUSTER_CHIEF_TRAINING, 7);
  muster_chief_registry_set_ready (f.server->registry, "digits", epoch, TRUE);
  EXPECT_ANSWER (&f, "GET", "/readyz", "200", "ready: 1 of 1 models\n");

  MUSTER_EXPECT_NE (muster_member_registry_join (f.server->members, &request, &slot, NULL), 0u);
  EXPECT_ANSWER (&f, "GET", "/readyz", "503", "digits: waiting for tasks: 1 of at least 2; chief ");
  MUSTER_EXPECT_NE (muster_member_registry_join (f.server->members, &request, &slot, NULL), 0u);
  EXPECT_ANSWER (&f, "GET", "/readyz", "200", "ready: 1 of 1 models\n");
}

/* --- metrics --- */

MUSTER_TEST (Http, metrics_report_what_goes_on)
{
  static const char *const lines[] = {
      "\nmuster_sessions 0\n",
      "\nmuster_watchers 0\n",
      "\nmuster_steps_total 1\n",
      "\nmuster_step_duration_seconds{quantile=\"0.5\"} 0.25\n",
      "\nmuster_step_duration_seconds_sum 0.25\n",
      "\nmuster_step_duration_seconds_count 1\n",
      "\nmuster_sessions_expired_total 0\n",
      "\nmuster_model_ready{model=\"digits\"} 0\n",
      "\nmuster_model_ready{model=\"odd \\\"name\\\"\\\\of a model\"} 0\n",
      "\nmuster_model_chief_alive{model=\"digits\"} 1\n",
      "\nmuster_model_step{model=\"digits\"} 120\n",
      "\nmuster_model_save_step{model=\"digits\",state=\"staged\"} 110\n",
      "\nmuster_model_save_step{model=\"digits\",state=\"written\"} 100\n",
      "\nmuster_model_saves_total{model=\"digits\",outcome=\"durable\"} 2\n",
      "\nmuster_model_saves_total{model=\"digits\",outcome=\"failed\"} 1\n",
      "\nmuster_model_saves_total{model=\"digits\",outcome=\"skipped\"} 0\n",
      "\nmuster_model_save_seconds_total{model=\"digits\",phase=\"blocked\"} 0.004\n",
      "\nmuster_model_last_save_seconds{model=\"digits\",phase=\"publishing\"} 0.25\n",
      "\nmuster_model_last_save_bytes{model=\"digits\"} 12345\n",
      "\nmuster_model_saving_seconds{model=\"digits\"} ",
      "\nmuster_model_goodput_ratio{model=\"digits\"} 0.75\n",
      "\nmuster_model_time_seconds{model=\"digits\",use=\"training\"} 3\n",
      "\nmuster_model_time_seconds{model=\"digits\",use=\"down\"} 1\n",
      "\nmuster_model_restarts{model=\"digits\"} 2\n",
      "\nmuster_model_phase{model=\"digits\",phase=\"training\"} 1\n",
      "\nmuster_watch_latency_seconds_bucket{le=\"0.001\"} 0\n",
      "\nmuster_watch_latency_seconds_bucket{le=\"0.002\"} 1\n",
      "\nmuster_watch_latency_seconds_bucket{le=\"+Inf\"} 2\n",
      "\nmuster_watch_latency_seconds_sum 200.0015\n",
      "\nmuster_watch_latency_seconds_count 2\n",
      "\nmuster_restore_duration_seconds_count 0\n",
      "\nmuster_model_steps_trained_again{model=\"digits\"} 5\n",
      "\nmuster_limit{limit=\"sessions\"} 20000\n",
      "\nmuster_limit_used{limit=\"sessions\"} 0\n",
      "\nmuster_limit_refused_total{limit=\"sessions\"} 0\n",
      "\nmuster_s3_requests_total 3\n",
      "\nmuster_s3_retries_total{reason=\"throttled\"} 2\n",
      "\nmuster_s3_retries_total{reason=\"stalled\"} 0\n",
      "\nmuster_s3_failures_total 1\n",
      "\nmuster_s3_sent_bytes_total 4096\n",
      "\nmuster_s3_received_bytes_total 0\n",
      "\nmuster_members{model=\"digits\"} 1\n",
      "\nmuster_members_joined_total 2\n",
      "\nmuster_members_left_total{reason=\"left\"} 1\n",
      "\nmuster_members_left_total{reason=\"silent\"} 0\n",
  };
  const MusterMemberRequest member = {
      .model = "digits", .task = "worker:0", .who = "host:1", .slot = -1, .n_slots = 4};
  g_auto (HttpFixture) f = http_start ();
  http_give_models (&f);
  guint slot;
  const guint64 gone = muster_member_registry_join (f.server->members, &member, &slot, NULL);
  (void)muster_member_registry_join (f.server->members, &member, &slot, NULL);
  (void)muster_member_registry_remove (f.server->members, gone, MUSTER_MEMBER_LEFT);
  muster_step_meter_add (f.server->steps, muster_clock_now_us (f.server->clock), 250000);

  muster_histogram_add (&f.server->watch_latency, 1500);
  muster_histogram_add (&f.server->watch_latency, 200 * MUSTER_SECOND);

  MUSTER_S3_COUNT (requests, 3);
  MUSTER_S3_COUNT (retries_throttled, 2);
  MUSTER_S3_COUNT (failures, 1);
  MUSTER_S3_COUNT (bytes_sent, 4096);

  g_autofree char *heard = http_ask (&f, "GET", "/metrics");

  EXPECT_RECEIVED (heard, "200", "Content-Type: text/plain; version=0.0.4");
  MUSTER_TRACE ("%s", heard);
  for (guint i = 0; i < G_N_ELEMENTS (lines); i++) {
    MUSTER_TRACE ("without%s", lines[i]);
    MUSTER_EXPECT_TRUE (strstr (heard, lines[i]) != NULL);
  }
  MUSTER_EXPECT_TRUE (strstr (heard, "muster_model_durable_step{") == NULL); /* unknown */
  MUSTER_EXPECT_TRUE (strstr (heard, "muster_model_durable_age_seconds{") == NULL);
  MUSTER_EXPECT_TRUE (strstr (heard, "state=\"durable\"") == NULL);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (heard, "\n# EOF\n"));
}

/* Its last save will never end: nobody needs to be woken for it. */
MUSTER_TEST (Http, metrics_of_a_lost_chief_have_no_save_under_way)
{
  g_auto (HttpFixture) f = http_start ();
  http_give_models (&f);
  g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (f.server->registry, "digits");
  muster_chief_registry_release (f.server->registry, "digits", chief->epoch);

  g_autofree char *page = muster_pages_metrics (f.server, FALSE);

  MUSTER_EXPECT_TRUE (strstr (page, "\nmuster_model_chief_alive{model=\"digits\"} 0\n") != NULL);
  MUSTER_EXPECT_TRUE (strstr (page, "\nmuster_model_saving_seconds{") == NULL);
  MUSTER_EXPECT_TRUE (strstr (page, "\nmuster_model_last_save_bytes{") != NULL);
}

static gboolean
has_model (MusterServer *server, const char *model)
{
  g_autofree char *page = muster_pages_metrics (server, FALSE);
  g_autofree char *sample = g_strdup_printf ("\nmuster_model_ready{model=\"%s\"}", model);
  return strstr (page, sample) != NULL;
}

MUSTER_TEST (Http, metrics_forget_an_unused_model_an_hour_after_its_chief)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  muster_fake_clock_hold (clock);
  const MusterServerOptions options = {.clock = MUSTER_CLOCK (clock)};
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  g_auto (HttpFixture) f = {.server = muster_server_new (local, &options)};
  gint64 over = http_claim (&f, "over"), lost = http_claim (&f, "lost");
  gint64 used = http_claim (&f, "used");
  http_announce (&f, "over", over, MUSTER_CHIEF_OVER, 7);
  http_announce (&f, "lost", lost, MUSTER_CHIEF_RESTORING, -1);
  http_announce (&f, "used", used, MUSTER_CHIEF_PREPARED, -1);
  muster_chief_registry_set_ready (f.server->registry, "used", used, TRUE);
  muster_chief_registry_release (f.server->registry, "over", over);
  muster_chief_registry_release (f.server->registry, "lost", lost);
  muster_chief_registry_release (f.server->registry, "used", used);

  muster_fake_clock_pass (clock, 3599 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (has_model (f.server, "over"));
  MUSTER_EXPECT_TRUE (has_model (f.server, "lost"));
  muster_fake_clock_pass (clock, MUSTER_SECOND);

  MUSTER_EXPECT_FALSE (has_model (f.server, "over"));
  MUSTER_EXPECT_FALSE (has_model (f.server, "lost"));
  MUSTER_EXPECT_TRUE (has_model (f.server, "used")); /* a chief that only prepared it */
  (void)http_claim (&f, "lost");
  MUSTER_EXPECT_TRUE (has_model (f.server, "lost"));
}

MUSTER_TEST (Http, metrics_are_open_metrics_for_those_who_ask)
{
  g_auto (HttpFixture) f = http_start ();
  g_autofree char *heard = http_ask_with (
      &f, "GET", "/metrics",
      "Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1\r\n");

  EXPECT_RECEIVED (heard, "200",
                   "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8");
  MUSTER_EXPECT_TRUE (strstr (heard, "\n# TYPE muster_steps counter\n") != NULL);
  MUSTER_EXPECT_TRUE (strstr (heard, "\nmuster_steps_total 0\n") != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (heard, "\n# EOF\n"));
}

/* The rules of OpenMetrics that the older format lacks: each sample stands in its family's block,
 * under a name that the family's type allows, and a unit ends the family's name. */
MUSTER_TEST (Http, metrics_keep_families_together)
{
  g_auto (HttpFixture) f = http_start ();
  http_give_models (&f);
  g_autofree char *page = muster_pages_metrics (f.server, TRUE);
  g_auto (GStrv) lines = g_strsplit (page, "\n", -1);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autofree char *family = g_strdup ("");
  g_autofree char *type = g_strdup ("");
  for (guint i = 0; strcmp (lines[i], "# EOF") != 0; i++) {
    g_auto (GStrv) words = g_strsplit (lines[i], " ", 4);
    MUSTER_TRACE ("line %u: %s", i, lines[i]);
    if (strcmp (words[0], "#") != 0) {
      gsize n = strcspn (lines[i], "{ ");
      g_autofree char *suffix = g_strndup (lines[i] + strlen (family), n - strlen (family));
      MUSTER_ASSERT_TRUE (g_str_has_prefix (lines[i], family));
      MUSTER_EXPECT_EQ (strcmp (suffix, "_total") == 0, strcmp (type, "counter") == 0);
    } else if (strcmp (words[1], "TYPE") == 0) {
      g_free (family);
      g_free (type);
      family = g_strdup (words[2]);
      type = g_strdup (words[3]);
      MUSTER_EXPECT_TRUE (g_hash_table_add (seen, g_strdup (family)));
    } else {
      MUSTER_EXPECT_STREQ (words[2], family);
      MUSTER_EXPECT_TRUE (strcmp (words[1], "UNIT") != 0 || g_str_has_suffix (family, words[3]));
    }
  }
}

/* Has a program judge the metrics, which is to end with 0 and to say nothing. FALSE: it can't be
 * had (EXIT_ABSENT). */
#define EXIT_ABSENT 77

static gboolean
have_judged (gboolean open_metrics, const char *const *program)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *said = NULL;
  g_auto (HttpFixture) f = http_start ();
  http_give_models (&f);
  muster_step_meter_add (f.server->steps, muster_clock_now_us (f.server->clock), 250000);
  g_autofree char *heard = http_ask_with (
      &f, "GET", "/metrics", open_metrics ? "Accept: application/openmetrics-text\r\n" : "");
  const char *page = strstr (heard, "\r\n\r\n");
  MUSTER_EXPECT_TRUE (page != NULL);

  g_autoptr (GSubprocess) judge =
      g_subprocess_newv (program,
                         G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE |
                             G_SUBPROCESS_FLAGS_STDERR_MERGE,
                         &error);
  if (judge != NULL && page != NULL)
    g_subprocess_communicate_utf8 (judge, page + 4, NULL, &said, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (error != NULL || page == NULL)
    return TRUE;
  int status = g_subprocess_get_exit_status (judge);
  if (status == EXIT_ABSENT)
    return FALSE;
  MUSTER_EXPECT_STREQ (said, "");
  MUSTER_EXPECT_EQ (status, 0);
  return TRUE;
}

/* promtool reads the format from before OpenMetrics, and has an eye for names and units. */
MUSTER_TEST (Http, metrics_please_promtool)
{
  if (!g_file_test (PROMTOOL, G_FILE_TEST_IS_EXECUTABLE))
    MUSTER_SKIP (PROMTOOL " isn't installed: Debian has it in the package prometheus");

  have_judged (FALSE, (const char *const[]){PROMTOOL, "check", "metrics", NULL});
}

MUSTER_TEST (Http, metrics_please_a_parser_of_open_metrics)
{
  static const char parse[] =
      "import sys\n"
      "try:\n"
      "    from prometheus_client.openmetrics import parser\n"
      "except ImportError:\n"
      "    sys.exit(" G_STRINGIFY (
          EXIT_ABSENT) ")\n"
                       "families = list(parser.text_string_to_metric_families(sys.stdin.read()))\n"
                       "assert 'muster_steps' in [family.name for family in families], families\n";

  if (!have_judged (TRUE, (const char *const[]){"/usr/bin/python3", "-c", parse, NULL}))
    MUSTER_SKIP ("python3-prometheus-client isn't installed: run bazel/setup --tests");
}

/* --- guests --- */

/* More of them than it holds, of which some have begun a request. */
MUSTER_TEST (Http, answers_a_probe_among_silent_guests)
{
  enum { N = 100 };
  GSocketConnection *silent[N];
  g_auto (HttpFixture) f = http_start ();
  for (int i = 0; i < N; i++) {
    silent[i] = http_visit (&f);
    if (i % 2 == 0)
      http_say (silent[i], "GET /healthz HTTP/1.1\r\nHost: ");
  }

  EXPECT_ANSWER (&f, "GET", "/healthz", "200", "serving");
  g_autofree char *nothing = http_hear (silent[0]); /* the oldest have made room */
  MUSTER_EXPECT_STREQ (nothing, "");

  for (int i = 0; i < N; i++)
    g_clear_object (&silent[i]);
}

MUSTER_TEST (Http, ends_with_guests_in_the_house)
{
  g_auto (HttpFixture) f = http_start ();
  g_autoptr (GSocketConnection) idle = http_visit (&f);
  g_autoptr (GSocketConnection) half = http_visit (&f);
  http_say (half, "GET /healthz HTTP/1.1\r\nHost: ");
  EXPECT_ANSWER (&f, "GET", "/healthz", "200", "serving"); /* they have been taken in */

  g_clear_pointer (&f.server, muster_server_free);

  g_autofree char *nothing = http_hear (idle);
  MUSTER_EXPECT_STREQ (nothing, "");
}

MUSTER_TEST (Http, keeps_no_body_and_survives_nonsense)
{
  static const char *const nonsense[] = {
      "GET\r\n\r\n",
      "GET /healthz HTTP/9.9\r\n\r\n",
      "GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
      "POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  };
  g_auto (HttpFixture) f = http_start ();
  g_autoptr (GSocketConnection) secure = http_visit (&f);
  http_say (secure, "\x16\x03\x01\x02"); /* TLS, which it doesn't speak */
  for (guint i = 0; i < G_N_ELEMENTS (nonsense); i++) {
    g_autoptr (GSocketConnection) connection = http_visit (&f);
    http_say (connection, nonsense[i]);
    g_autofree char *answer = http_hear (connection);
    MUSTER_TRACE ("%s: %s", nonsense[i], answer);
    MUSTER_EXPECT_TRUE (!g_str_has_prefix (answer, "HTTP/1.1 5") ||
                        g_str_has_prefix (answer, "HTTP/1.1 505 ")); /* unknown version */
  }
  g_autofree char *body = g_strnfill (1 << 20, 'x');
  g_autofree char *post = g_strdup_printf (
      "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", 1 << 20, body);
  g_autoptr (GSocketConnection) connection = http_visit (&f);
  http_say (connection, post);
  g_autofree char *heard = http_hear (connection);
  EXPECT_RECEIVED (heard, "405", "Allow: GET, HEAD");
  EXPECT_ANSWER (&f, "GET", "/healthz", "200", "serving");
}

static guint
count_threads (const char *name)
{
  g_autoptr (GDir) tasks = g_dir_open ("/proc/self/task", 0, NULL);
  guint n = 0;
  for (const char *task; (task = g_dir_read_name (tasks)) != NULL;) {
    g_autofree char *path = g_build_filename ("/proc/self/task", task, "comm", NULL);
    g_autofree char *comm = NULL;
    if (g_file_get_contents (path, &comm, NULL, NULL))
      n += strcmp (g_strstrip (comm), name) == 0;
  }
  return n;
}

/* The kernel lists a thread for a moment after it was joined. */
static void
expect_threads (const char *name, guint n)
{
  const gint64 until_us = test_deadline ();
  while (count_threads (name) != n && muster_clock_now_us (muster_system_clock ()) < until_us)
    g_thread_yield ();
  MUSTER_EXPECT_EQ (count_threads (name), n);
}

MUSTER_TEST (Http, costs_a_server_without_it_no_thread)
{
  g_auto (Served) without = served_start ();
  expect_threads ("muster-http", 0);
  expect_threads ("muster-collecto", 0);

  g_auto (HttpFixture) with = http_start ();
  EXPECT_ANSWER (&with, "GET", "/healthz", "200", "serving"); /* by now the thread has its name */
  expect_threads ("muster-http", 1);
}

MUSTER_TEST (Http, says_why_it_can_not_listen)
{
  g_auto (HttpFixture) f = http_start ();
  g_autofree char *taken = g_strdup_printf ("127.0.0.1:%d", f.port);
  g_autofree char *half_taken = g_strdup_printf ("localhost:%d", f.port); /* [::1] is free */
  const struct {
    const char *address;
    MusterError code;
    const char *words;
  } cases[] = {
      {"nonsense", MUSTER_ERROR_INVALID_ARGUMENT, "nonsense"},
      {taken, MUSTER_ERROR_UNAVAILABLE, ": address already in use; "},
      {half_taken, MUSTER_ERROR_UNAVAILABLE, ": address already in use; "},
      {"0.0.0.0:0", MUSTER_ERROR_PERMISSION_DENIED, "--insecure"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMaster) local = muster_local_master_new ();
    g_autoptr (MusterServer) server = muster_server_new (local, NULL);
    MUSTER_EXPECT_EQ (muster_server_listen_http (server, cases[i].address, &error), 0);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, cases[i].code);
    EXPECT_SAYS (error, cases[i].words);
  }
}
