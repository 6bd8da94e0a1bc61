// SPDX-License-Identifier: Apache-2.0
#include "server/core/server_private.h"
#include "server/http/html.h"
#include "server/http/page_chart.h"
#include "tests/server/http_visit.h"

#include "engine/session/local_master.h"

/* --- the page --- */

MUSTER_TEST (HttpPage, page_reads_without_a_script)
{
  static const char *const words[] = {
      "<h2>digits</h2><span class=\"state warn\">waiting for tasks</span>",
      "step <b>120</b>",
      "<td>staged</td><td class=\"number\">110</td>",
      "<td>durable</td><td class=\"number\">–</td>",
      "goodput 75.0\u00a0%",
      "<h2>odd &quot;name&quot;\\of a model</h2><span class=\"state warn\">starting</span>",
      "<h2>&lt;script&gt;alert(1)&lt;/script&gt;</h2>",
      "<td>sessions</td>",
      "<th class=\"number\">time in job</th>",
      "steps per second over the last hour, at most ",
      "<h2>Tasks: 1</h2>",
      "<td>worker:&lt;1&gt;</td><td>digits</td><td class=\"why\">worker in slot 1, 0 "
      "batches/s</td>",
      " ago: left</td><td class=\"number\">0</td>",
      "<td>digits</td><td class=\"why\">waiting for tasks: 1 of at least 2</td><td></td><td></td>",
  };
  MusterMemberRequest member = {"digits", "worker:0", "host:7", -1, 4, 0, 0, 2, FALSE};
  g_auto (HttpFixture) f = http_start ();
  http_give_models (&f);
  (void)http_claim (&f, "<script>alert(1)</script>");
  guint slot;
  const guint64 gone = muster_member_registry_join (f.server->members, &member, &slot, NULL);
  member.task = "worker:<1>";
  (void)muster_member_registry_join (f.server->members, &member, &slot, NULL);
  (void)muster_member_registry_remove (f.server->members, gone, MUSTER_MEMBER_LEFT);
  muster_step_meter_add (f.server->steps, muster_clock_now_us (f.server->clock), 250000);

  g_autofree char *heard = http_ask (&f, "GET", "/");

  EXPECT_RECEIVED (heard, "200", "Content-Type: text/html; charset=utf-8\r\n");
  MUSTER_TRACE ("%s", heard);
  for (guint i = 0; i < G_N_ELEMENTS (words); i++) {
    MUSTER_TRACE ("without %s", words[i]);
    MUSTER_EXPECT_TRUE (strstr (heard, words[i]) != NULL);
  }
}

MUSTER_TEST (HttpPage, page_says_that_a_chief_is_lost_or_its_run_has_failed)
{
  g_auto (HttpFixture) f = http_start ();
  gint64 epoch = http_claim (&f, "digits");
  http_announce (&f, "digits", epoch, MUSTER_CHIEF_TRAINING, 7);
  muster_chief_registry_release (f.server->registry, "digits", epoch);
  EXPECT_ANSWER (&f, "GET", "/", "200", "<span class=\"state bad\">chief lost</span>");

  const MusterMemberRequest member = {
      .model = "digits", .task = "", .who = "host:7", .slot = -1, .n_slots = 4};
  guint slot;
  MUSTER_EXPECT_TRUE (muster_member_registry_join (f.server->members, &member, &slot, NULL) != 0);
  EXPECT_ANSWER (&f, "GET", "/", "200", "no chief: no checkpoints are written");
  EXPECT_ANSWER (&f, "GET", "/api/status", "200", "\"has_chief\":false");

  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)"letters";
  announced.epoch = http_claim (&f, "letters");
  announced.phase = MUSTER_CHIEF_PREPARED;
  announced.failed = TRUE;
  MUSTER_EXPECT_TRUE (muster_chief_registry_announce (f.server->registry, &announced, NULL));
  EXPECT_ANSWER (&f, "GET", "/", "200", "<span class=\"state bad\">failed</span>");
  announced.phase = MUSTER_CHIEF_TRAINING;
  MUSTER_EXPECT_TRUE (muster_chief_registry_announce (f.server->registry, &announced, NULL));
  muster_chief_registry_release (f.server->registry, "letters", announced.epoch);
  EXPECT_ANSWER (&f, "GET", "/", "200", ": failed ");
}

/* The style and script of the page, and nothing else; the hashes are those of what is sent. */
MUSTER_TEST (HttpPage, page_allows_only_its_own_style_and_script)
{
  static const char *const tags[] = {"style", "script"};
  g_auto (HttpFixture) f = http_start ();
  g_autofree char *heard = http_ask (&f, "GET", "/");

  MUSTER_EXPECT_TRUE (strstr (heard, "Content-Security-Policy: default-src 'none'; ") != NULL);
  MUSTER_EXPECT_TRUE (strstr (heard, "http://") == NULL && strstr (heard, "https://") == NULL);
  for (guint i = 0; i < G_N_ELEMENTS (tags); i++) {
    g_autofree char *begin = g_strdup_printf ("<%s>", tags[i]);
    g_autofree char *end = g_strdup_printf ("</%s>", tags[i]);
    const char *from = strstr (heard, begin) + strlen (begin);
    guint8 digest[32];
    gsize size = sizeof digest;
    g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
    g_checksum_update (checksum, (const guchar *)from, strstr (from, end) - from);
    g_checksum_get_digest (checksum, digest, &size);
    g_autofree char *text = g_base64_encode (digest, size);
    g_autofree char *allowed = g_strdup_printf ("%s-src 'sha256-%s'", tags[i], text);
    MUSTER_TRACE ("%s", allowed);
    MUSTER_EXPECT_TRUE (strstr (heard, allowed) != NULL);
  }
}

MUSTER_TEST (HttpPage, api_has_the_status)
{
  g_auto (HttpFixture) f = http_start ();
  http_give_models (&f);

  g_autofree char *heard = http_ask (&f, "GET", "/api/status");

  EXPECT_RECEIVED (heard, "200", "Content-Type: application/json\r\n");
  EXPECT_RECEIVED (heard, "200", "\"models\":[{\"state\":\"not ready\",\"phase\":\"training\",");
  EXPECT_RECEIVED (heard, "200", "{\"name\":\"sessions\",\"used\":0,\"limit\":20000,");
  MUSTER_EXPECT_TRUE (g_str_has_suffix (heard, "]}\n"));
}

MUSTER_TEST (HttpPage, events_tell_of_each_change)
{
  g_auto (HttpFixture) f = http_start ();
  g_autoptr (GSocketConnection) listener = http_visit (&f);
  http_say (listener, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  MUSTER_EXPECT_TRUE (http_hears (listener, "No chief has ever registered."));

  (void)http_claim (&f, "digits");

  MUSTER_EXPECT_TRUE (http_hears (listener, "<h2>digits</h2>"));
  (void)http_claim (&f, "letters");
  MUSTER_EXPECT_TRUE (http_hears (listener, "<h2>letters</h2>"));
  g_clear_pointer (&f.server, muster_server_free);
  MUSTER_EXPECT_FALSE (http_hears (listener, "no such words")); /* it ends */
}

MUSTER_TEST (HttpPage, listeners_leave_room_for_probes)
{
  enum { N = 16 };
  GSocketConnection *listeners[N];
  g_auto (HttpFixture) f = http_start ();
  for (int i = 0; i < N; i++) {
    listeners[i] = http_visit (&f);
    http_say (listeners[i], "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    MUSTER_EXPECT_TRUE (http_hears (listeners[i], "data: "));
  }

  EXPECT_ANSWER (&f, "GET", "/api/events", "503", "too many pages are open");
  EXPECT_ANSWER (&f, "GET", "/healthz", "200", "serving");

  for (int i = 0; i < N; i++)
    g_clear_object (&listeners[i]);
}

/* --- hosts --- */

/* A web page can have its name answered with 127.0.0.1, and then read what a server there tells. */
MUSTER_TEST (HttpPage, tells_nothing_to_the_page_of_another_name)
{
  static const struct {
    const char *host;
    gboolean is_own;
  } cases[] = {
      {"localhost", TRUE},
      {"LocalHost:2224", TRUE},
      {"localhost.", TRUE},
      {"127.0.0.1:80", TRUE},
      {"[::1]:2224", TRUE},
      {"10.1.2.3", TRUE},
      {"", TRUE},
      {"evil.example", FALSE},
      {"evil.example:2224", FALSE},
      {"localhost.evil", FALSE},
      {"127.0.0.1.evil.example", FALSE},
      {"[evil]", FALSE},
  };
  static const char *const paths[] = {"/", "/api/status", "/api/events", "/metrics"};
  g_auto (HttpFixture) f = http_start ();
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    MUSTER_TRACE ("%s", cases[i].host);
    g_autofree char *heard = http_ask_as (&f, "/metrics", cases[i].host);
    MUSTER_EXPECT_EQ (g_str_has_prefix (heard, "HTTP/1.1 421 ") ||
                          g_str_has_prefix (heard, "HTTP/1.0 421 "),
                      !cases[i].is_own);
  }
  for (guint i = 0; i < G_N_ELEMENTS (paths); i++) {
    g_autofree char *heard = http_ask_as (&f, paths[i], "evil.example");
    EXPECT_RECEIVED (heard, "421", "--http-host=NAME");
  }
  g_autofree char *healthy = http_ask_as (&f, "/healthz", "evil.example");
  EXPECT_RECEIVED (healthy, "200", "serving");
}

/* A kubelet, a service mesh or a proxy may ask by any name; a web page of somebody else that does
 * so learns no model's name. */
MUSTER_TEST (HttpPage, probes_get_their_code_by_any_name)
{
  g_auto (HttpFixture) f = http_start ();
  g_autofree char *ready = http_ask_as (&f, "/readyz", "muster.training.svc.cluster.local");
  (void)http_claim (&f, "secret");
  g_autofree char *unready = http_ask_as (&f, "/readyz", "muster.training.svc.cluster.local");
  g_autofree char *own = http_ask_as (&f, "/readyz", "localhost");

  EXPECT_RECEIVED (ready, "200", "ready\n");
  EXPECT_RECEIVED (unready, "503", "not ready; ");
  EXPECT_RECEIVED (own, "503", "secret: ");
  MUSTER_EXPECT_NULL (strstr (unready, "secret"));
}

MUSTER_TEST (HttpPage, answers_by_the_names_that_it_is_given)
{
  static const char *const names[] = {"muster.prod.svc", NULL};
  const MusterServerOptions options = {.http_hosts = names};
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  g_auto (HttpFixture) f = {.server = muster_server_new (local, &options)};
  f.port = muster_server_listen_http (f.server, "localhost:0", NULL);
  muster_server_start (f.server);

  g_autofree char *known = http_ask_as (&f, "/metrics", "Muster.Prod.Svc:2224");
  g_autofree char *unknown = http_ask_as (&f, "/metrics", "prod.svc");

  EXPECT_RECEIVED (known, "200", "muster_sessions 0");
  EXPECT_RECEIVED (unknown, "421", "");
}

MUSTER_TEST (HttpPage, shows_no_rate_above_the_charts_highest)
{
  MusterStepPeriod periods[MUSTER_STEP_PERIODS];
  for (guint i = 0; i < MUSTER_STEP_PERIODS; i++)
    periods[i] = (MusterStepPeriod){.length_us = MUSTER_STEP_PERIOD_US};
  periods[MUSTER_STEP_PERIODS - 1].n_steps = 381 * 30;
  g_autoptr (GString) calm = g_string_new (NULL), fast = g_string_new (NULL);
  muster_chart_rate (calm, periods, 200);
  muster_chart_rate (fast, periods, 1116);
  MUSTER_EXPECT_TRUE (strstr (calm->str, "max 381 steps/s") != NULL);
  MUSTER_EXPECT_TRUE (strstr (fast->str, "max 1116 steps/s") != NULL);
}

MUSTER_TEST (HttpPage, draws_the_only_period_with_steps_within_the_chart)
{
  MusterStepPeriod periods[MUSTER_STEP_PERIODS];
  for (guint i = 0; i < MUSTER_STEP_PERIODS; i++)
    periods[i] = (MusterStepPeriod){.length_us = MUSTER_STEP_PERIOD_US};
  periods[MUSTER_STEP_PERIODS - 1] = (MusterStepPeriod){
      .n_steps = 5, .length_us = MUSTER_STEP_PERIOD_US, .median_us = 1000, .p99_us = 2000};
  g_autoptr (GString) out = g_string_new (NULL);
  muster_chart_latency (out, periods);
  MUSTER_EXPECT_TRUE (strstr (out->str, "d=\"M596.0 50.0L600.0 50.0\"") != NULL);
}

MUSTER_TEST (HttpPage, writes_no_maximum_before_the_first_step)
{
  MusterStepPeriod periods[MUSTER_STEP_PERIODS];
  for (guint i = 0; i < MUSTER_STEP_PERIODS; i++)
    periods[i] = (MusterStepPeriod){.length_us = MUSTER_STEP_PERIOD_US};
  g_autoptr (GString) rate = g_string_new (NULL), latency = g_string_new (NULL);
  muster_chart_rate (rate, periods, 0);
  muster_chart_latency (latency, periods);
  MUSTER_EXPECT_NULL (strstr (rate->str, "max"));
  MUSTER_EXPECT_NULL (strstr (latency->str, "max"));
  MUSTER_EXPECT_TRUE (strstr (rate->str, "no steps in the last hour") != NULL);
}

MUSTER_TEST (HttpPage, keeps_a_number_and_its_unit_in_one_line)
{
  g_autoptr (GString) out = g_string_new (NULL);
  muster_html_put (out, "<p>%s of %d s</p>", "561 ms", 3);
  muster_html_put_text (out, "0.2 µs; 10 MB, 5 steps, 98 %, 2 sessions");
  MUSTER_EXPECT_STREQ (out->str, "<p>561\u00a0ms of 3\u00a0s</p>0.2\u00a0µs; 10\u00a0MB, "
                                 "5 steps, 98\u00a0%, 2 sessions");
}
