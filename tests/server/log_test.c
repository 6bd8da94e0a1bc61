// SPDX-License-Identifier: Apache-2.0
/* What a server's log says. Of processes: tests/cli/log_test.py. */
#include "tests/doubles/heard.h"
#include "tests/server/served.h"

#include "base/protowire_private.h"

#include <string.h>

MUSTER_TEST (ServerLog, names_a_limit_and_does_not_repeat_it_for_each_client)
{
  g_auto (Served) f = served_start_with (NULL, &(MusterServerOptions){.limits = {.sessions = 1}});
  g_autoptr (MusterSession) only = served_session (&f, NULL);
  heard_begin (G_LOG_LEVEL_MESSAGE);

  for (guint i = 0; i < 50; i++) {
    g_autofree char *none = served_bare_session (&f, NULL, NULL);
    MUSTER_EXPECT_NULL (none);
  }

  const guint n = heard_count ("limit", "refused a client: the limit of sessions is reached*");
  MUSTER_EXPECT_GE (n, 1U);
  MUSTER_EXPECT_LE (n, 25U); /* five in ten seconds, on a slow machine */
  g_autofree char *limit = heard_field ("limit", "MUSTER_LIMIT");
  g_autofree char *max = heard_field ("limit", "MUSTER_MAX");
  MUSTER_EXPECT_STREQ (limit, "sessions");
  MUSTER_EXPECT_STREQ (max, "1");
  heard_end ();
}

MUSTER_TEST (ServerLog, says_why_a_call_was_refused)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (GBytes) nonsense = g_bytes_new_static ("\xff\xff\xff", 3);
  heard_begin (G_LOG_LEVEL_INFO);

  g_autoptr (GBytes) answer = served_call (&f, "CloseSession", nonsense, &error);

  MUSTER_EXPECT_NULL (answer);
  g_autofree char *method = heard_field ("refused", "MUSTER_METHOD");
  g_autofree char *peer = heard_field ("refused", "MUSTER_PEER");
  MUSTER_EXPECT_STREQ (method, "/tensorflow.MasterService/CloseSession");
  MUSTER_EXPECT_TRUE (peer != NULL && strstr (peer, "127.0.0.1") != NULL);
  heard_end ();
}

MUSTER_TEST (ServerLog, tells_of_a_reset_and_whom_it_ended)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) one = served_session (&f, NULL);
  g_autoptr (MusterSession) two = served_session (&f, NULL);
  heard_begin (G_LOG_LEVEL_MESSAGE);

  MUSTER_EXPECT_TRUE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, &error));

  g_autofree char *sessions = heard_field ("reset", "MUSTER_SESSIONS");
  MUSTER_EXPECT_STREQ (sessions, "2");
  heard_end ();
}

/* The number of a step is the same at both ends. */
static void
expect_followed (Served *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = served_session (f, NULL);
  heard_begin (G_LOG_LEVEL_DEBUG);
  g_autoptr (MusterTensor) sum = served_fetch (session, "sum:0", 1, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *sent =
      heard_field ("step-done", "MUSTER_REQUEST"); /* the client's is the last */
  MUSTER_ASSERT_NOT_NULL (sent);
  MUSTER_EXPECT_TRUE (strcmp (sent, "0") != 0);
}

MUSTER_TEST (ServerLog, follows_a_step)
{
  g_auto (Served) f = served_start ();
  expect_followed (&f);

  MUSTER_EXPECT_EQ (heard_count ("step", "RunStep is sent"), 1U);
  MUSTER_EXPECT_EQ (heard_count ("step", "RunStep begins"), 1U);
  MUSTER_EXPECT_EQ (heard_count ("step-done", "RunStep has ended"), 1U);
  MUSTER_EXPECT_EQ (heard_count ("step-done", "RunStep was answered"), 1U);
  heard_end ();
}

MUSTER_TEST (ServerLog, follows_a_step_through_a_gateway)
{
  g_auto (Served) behind = served_start ();
  g_auto (Served) f = served_start_over (behind.remote);
  expect_followed (&f);

  MUSTER_EXPECT_EQ (heard_count ("step", NULL), 3U); /* the client's, the gateway's, the master's */
  MUSTER_EXPECT_EQ (heard_count ("step", "passed on to the master"), 1U);
  MUSTER_EXPECT_EQ (heard_count ("step-done", "the master has answered"), 1U);
  heard_end ();
}

/* A bare call with a name of its own. */
MUSTER_TEST (ServerLog, keeps_the_name_of_a_request_through_a_gateway)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) behind = served_start ();
  g_auto (Served) f = served_start_over (behind.remote);
  g_autofree char *handle = served_bare_session (&f, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterRpcHeader name = {MUSTER_REQUEST_HEADER, "job-7"};
  const MusterRpcOptions options = {
      .deadline_us = test_deadline (), .headers = &name, .n_headers = 1};
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  GByteArray *tail = muster_rope_tail (&request);
  muster_proto_put_string (tail, 1, handle);
  muster_proto_put_string (tail, 4, "none"); /* a target of that graph */
  heard_begin (G_LOG_LEVEL_DEBUG);

  g_autoptr (GBytes) answer = muster_rpc_client_call (f.bare, "/tensorflow.MasterService/RunStep",
                                                      &request, &options, NULL, &error);

  MUSTER_EXPECT_TRUE (answer == NULL && error != NULL); /* no such target: that's for the master */
  static const char came[] = "/tensorflow.MasterService/RunStep came"; /* the last at the master */
  MUSTER_EXPECT_EQ (heard_count ("call", came), 2U);
  g_autofree char *named = heard_field_like ("call", came, "MUSTER_X_REQUEST_ID");
  MUSTER_EXPECT_STREQ (named, "job-7");
  heard_end ();
}
