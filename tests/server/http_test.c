// SPDX-License-Identifier: Apache-2.0
#include "server/core/server_private.h"
#include "server/http/pages.h"
#include "tests/server/served.h"

#include "engine/session/local_master.h"

#define PROMTOOL "/usr/bin/promtool"

typedef struct {
  MusterServer *server; /* (owned) */
  int port;
} Fixture;

static Fixture
fixture_start (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  Fixture f = {.server = muster_server_new (local, NULL)};
  f.port = muster_server_listen_http (f.server, "127.0.0.1:0", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (f.server);
  return f;
}

static void
fixture_clear (Fixture *f)
{
  g_clear_pointer (&f->server, muster_server_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static GSocketConnection *
visit (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GSocketClient) client = g_socket_client_new ();
  g_socket_client_set_timeout (client, 30);
  g_socket_client_set_enable_proxy (client, FALSE);
  GSocketConnection *connection =
      g_socket_client_connect_to_host (client, "127.0.0.1", (guint16)f->port, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return connection;
}

/* All that is answered until the other side closes. What can't be sent any more or is cut off is
 * no failure here. */
static char *
hear (GSocketConnection *connection)
{
  GInputStream *in = g_io_stream_get_input_stream (G_IO_STREAM (connection));
  g_autoptr (GString) answer = g_string_new (NULL);
  char part[4096];
  for (gssize n; (n = g_input_stream_read (in, part, sizeof part, NULL, NULL)) > 0;)
    g_string_append_len (answer, part, n);
  return g_strdup (answer->str);
}

static void
say (GSocketConnection *connection, const char *text)
{
  GOutputStream *out = g_io_stream_get_output_stream (G_IO_STREAM (connection));
  (void)g_output_stream_write_all (out, text, strlen (text), NULL, NULL, NULL);
}

static char *
ask_with (Fixture *f, const char *method, const char *path, const char *headers)
{
  g_autoptr (GSocketConnection) connection = visit (f);
  if (connection == NULL)
    return NULL;
  g_autofree char *request =
      g_strdup_printf ("%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", method, path, headers);
  say (connection, request);
  return hear (connection);
}

static char *
ask (Fixture *f, const char *method, const char *path)
{
  return ask_with (f, method, path, "");
}

#define EXPECT_RECEIVED(heard, status, words)                                                      \
  do {                                                                                             \
    MUSTER_EXPECT_TRUE (g_str_has_prefix (heard, "HTTP/1.1 " status " "));                         \
    MUSTER_EXPECT_TRUE (strstr (heard, words) != NULL);                                            \
  } while (0)
#define EXPECT_ANSWER(f, method, path, status, words)                                              \
  do {                                                                                             \
    g_autofree char *heard_ = ask (f, method, path);                                               \
    MUSTER_TRACE ("%s %s: %s", method, path, heard_);                                              \
    EXPECT_RECEIVED (heard_, status, words);                                                       \
  } while (0)

MUSTER_TEST (Http, reports_that_the_server_serves)
{
  g_auto (Fixture) f = fixture_start ();

  EXPECT_ANSWER (&f, "GET", "/healthz", "200", "\r\n\r\nserving\n");
  EXPECT_ANSWER (&f, "GET", "/healthz?verbose=1", "200", "\r\n\r\nserving\n");
}

MUSTER_TEST (Http, has_three_pages_and_one_method)
{
  g_auto (Fixture) f = fixture_start ();

  EXPECT_ANSWER (&f, "GET", "/", "404", "/healthz, /readyz or /metrics");
  EXPECT_ANSWER (&f, "GET", "/healthz/x", "404", "/metrics");
  EXPECT_ANSWER (&f, "POST", "/healthz", "405", "Allow: GET");
  EXPECT_ANSWER (&f, "DELETE", "/metrics", "405", "Allow: GET");
  EXPECT_ANSWER (&f, "HEAD", "/readyz", "405", "Allow: GET");
  EXPECT_ANSWER (&f, "NONSENSE", "/readyz", "405", "Allow: GET");
}

static void
announce (Fixture *f, const char *model, gint64 epoch, MusterChiefPhase phase, gint64 step)
{
  g_autoptr (GError) error = NULL;
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)model;
  announced.epoch = epoch;
  announced.phase = phase;
  announced.step = step;
  MUSTER_EXPECT_TRUE (muster_chief_registry_announce (f->server->registry, &announced, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

static gint64
claim (Fixture *f, const char *model)
{
  g_autoptr (GError) error = NULL;
  const MusterClaim wanted = {.model = model, .task = "worker:0"};
  gint64 epoch =
      muster_chief_registry_claim (f->server->registry, &wanted, "host:1", NULL, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return epoch;
}

MUSTER_TEST (Http, reports_each_model_that_is_not_ready_why)
{
  g_auto (Fixture) f = fixture_start ();
  EXPECT_ANSWER (&f, "GET", "/readyz", "200", "\r\n\r\nready: 0 of 0 models\n");

  gint64 epoch = claim (&f, "digits");
  announce (&f, "digits", epoch, MUSTER_CHIEF_RESTORING, -1);
  EXPECT_ANSWER (&f, "GET", "/readyz", "503",
                 "digits: not prepared yet; chief worker:0 (host:1), restoring for ");
  announce (&f, "digits", epoch, MUSTER_CHIEF_PREPARED, -1);
  EXPECT_ANSWER (&f, "GET", "/readyz", "503",
                 "digits: its ready op reports it not ready; chief worker:0");
  muster_chief_registry_set_ready (f.server->registry, "digits", epoch, TRUE);
  EXPECT_ANSWER (&f, "GET", "/readyz", "200", "ready: 1 of 1 models\n");
  announce (&f, "digits", epoch, MUSTER_CHIEF_OVER, 20000);
  EXPECT_ANSWER (&f, "GET", "/readyz", "200", "ready: 1 of 1 models\n");
  (void)claim (&f, "letters");
  EXPECT_ANSWER (&f, "GET", "/readyz", "503", "\r\n\r\nletters: not prepared yet; ");
  muster_chief_registry_reset (f.server->registry,
                               muster_chief_registry_n_claims (f.server->registry));
  EXPECT_ANSWER (&f, "GET", "/readyz", "503", "digits: not prepared yet; ");
}

/* --- metrics --- */

static void
give_models (Fixture *f)
{
  gint64 epoch = claim (f, "digits");
  announce (f, "digits", epoch, MUSTER_CHIEF_PREPARED, -1);
  announce (f, "digits", epoch, MUSTER_CHIEF_TRAINING, 120);
  MusterSaveStatus saves = {.step = {110, 110, 100, -1},
                            .last_us = {2000, 1000, 500000, 250000},
                            .total_us = {4000, 2000, 1000000, 500000},
                            .last_bytes = 12345,
                            .n_durable = 2,
                            .n_failed = 1,
                            .saving = (char *)"run/model.ckpt-110",
                            .saving_step = 110};
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)"digits";
  announced.epoch = epoch;
  announced.saves = &saves;
  MusterGoodput goodput = {
      .began_us = 1,
      .spent_us = {[MUSTER_TIME_TRAINING] = 3 * MUSTER_SECOND, [MUSTER_TIME_DOWN] = MUSTER_SECOND},
      .n_restarts = 2,
      .steps_again = 5};
  announced.goodput = &goodput;
  MUSTER_EXPECT_TRUE (muster_chief_registry_announce (f->server->registry, &announced, NULL));
  (void)claim (f, "odd \"name\"\\of a model");
}

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
      "\nmuster_model_steps_trained_again{model=\"digits\"} 5\n",
      "\nmuster_limit{limit=\"sessions\"} 20000\n",
      "\nmuster_limit_used{limit=\"sessions\"} 0\n",
      "\nmuster_limit_refused_total{limit=\"sessions\"} 0\n",
  };
  g_auto (Fixture) f = fixture_start ();
  give_models (&f);
  muster_step_meter_add (f.server->steps, muster_clock_now_us (f.server->clock), 250000);

  g_autofree char *heard = ask (&f, "GET", "/metrics");

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
  g_auto (Fixture) f = fixture_start ();
  give_models (&f);
  g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (f.server->registry, "digits");
  muster_chief_registry_release (f.server->registry, "digits", chief->epoch);

  g_autofree char *page = muster_pages_metrics (f.server, FALSE);

  MUSTER_EXPECT_TRUE (strstr (page, "\nmuster_model_chief_alive{model=\"digits\"} 0\n") != NULL);
  MUSTER_EXPECT_TRUE (strstr (page, "\nmuster_model_saving_seconds{") == NULL);
  MUSTER_EXPECT_TRUE (strstr (page, "\nmuster_model_last_save_bytes{") != NULL);
}

MUSTER_TEST (Http, metrics_are_open_metrics_for_those_who_ask)
{
  g_auto (Fixture) f = fixture_start ();

  g_autofree char *heard =
      ask_with (&f, "GET", "/metrics",
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
  g_auto (Fixture) f = fixture_start ();
  give_models (&f);
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
  g_auto (Fixture) f = fixture_start ();
  give_models (&f);
  muster_step_meter_add (f.server->steps, muster_clock_now_us (f.server->clock), 250000);
  g_autofree char *heard = ask_with (
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

MUSTER_TEST (Http, refuses_who_comes_when_it_is_full)
{
  enum { N = 64 };
  GSocketConnection *idle[N];
  g_auto (Fixture) f = fixture_start ();
  for (int i = 0; i < N; i++)
    idle[i] = visit (&f);

  g_autoptr (GSocketConnection) one_more = visit (&f);
  g_autofree char *nothing = hear (one_more); /* else it would wait for its time to be up */
  MUSTER_EXPECT_STREQ (nothing, "");

  for (int i = 0; i < N; i++)
    g_clear_object (&idle[i]);
  gint64 until_us = test_deadline ();
  gboolean is_answered = FALSE;
  while (!is_answered && muster_clock_now_us (muster_system_clock ()) < until_us) {
    g_autofree char *heard = ask (&f, "GET", "/healthz");
    is_answered = g_str_has_prefix (heard, "HTTP/1.1 200");
  }
  MUSTER_EXPECT_TRUE (is_answered);
}

MUSTER_TEST (Http, ends_with_guests_in_the_house)
{
  g_auto (Fixture) f = fixture_start ();
  g_autoptr (GSocketConnection) idle = visit (&f);
  g_autoptr (GSocketConnection) half = visit (&f);
  say (half, "GET /healthz HTTP/1.1\r\nHost: ");
  EXPECT_ANSWER (&f, "GET", "/healthz", "200", "serving"); /* they have been taken in */

  g_clear_pointer (&f.server, muster_server_free);

  g_autofree char *nothing = hear (idle);
  MUSTER_EXPECT_STREQ (nothing, "");
}

MUSTER_TEST (Http, keeps_no_body_and_survives_nonsense)
{
  static const char *const nonsense[] = {
      "\r\n\r\n\r\n",
      "GET\r\n\r\n",
      "GET /healthz HTTP/9.9\r\n\r\n",
      "GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
      "POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01",
  };
  g_auto (Fixture) f = fixture_start ();
  for (guint i = 0; i < G_N_ELEMENTS (nonsense); i++) {
    g_autoptr (GSocketConnection) connection = visit (&f);
    say (connection, nonsense[i]);
    g_socket_shutdown (g_socket_connection_get_socket (connection), FALSE, TRUE, NULL);
    g_autofree char *answer = hear (connection);
    MUSTER_EXPECT_FALSE (g_str_has_prefix (answer, "HTTP/1.1 5"));
  }
  g_autofree char *body = g_strnfill (1 << 20, 'x');
  g_autofree char *post = g_strdup_printf (
      "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", 1 << 20, body);
  g_autoptr (GSocketConnection) connection = visit (&f);
  say (connection, post);
  g_autofree char *heard = hear (connection);
  EXPECT_RECEIVED (heard, "405", "Allow: GET");
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

MUSTER_TEST (Http, costs_a_server_without_it_no_thread)
{
  g_auto (Served) without = served_start ();
  MUSTER_EXPECT_EQ (count_threads ("muster-http"), 0u);
  MUSTER_EXPECT_EQ (count_threads ("muster-collecto"), 0u);

  g_auto (Fixture) with = fixture_start ();
  EXPECT_ANSWER (&with, "GET", "/healthz", "200", "serving"); /* by now the thread has its name */
  MUSTER_EXPECT_EQ (count_threads ("muster-http"), 1u);
}

MUSTER_TEST (Http, says_why_it_can_not_listen)
{
  g_auto (Fixture) f = fixture_start ();
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
