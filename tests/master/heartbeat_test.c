// SPDX-License-Identifier: Apache-2.0
#include "master/lease.h"
#include "master/remote/remote_private.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"
#include "tests/master/tiny_master.h"

#include <string.h>

/* Renewals come every few milliseconds, and two that are unanswered for so long mean silence: of a
 * master that is to answer, no pause of the machine does. */
static void
start_with (TinyMaster *f, gint64 answer_us)
{
  MusterHeartbeatPace pace = {
      .renew_us = 20 * MUSTER_MILLISECOND, .answer_us = answer_us, .n_unanswered = 2};
  tiny_master_start (f);
  muster_remote_master_set_pace (MUSTER_REMOTE_MASTER (f->master), &pace);
}

static void
start (TinyMaster *f)
{
  start_with (f, 30 * MUSTER_SECOND);
}

static MusterSession *
create_session (TinyMaster *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  MusterSession *session =
      muster_master_create_session (f->master, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

static char *
pop (GAsyncQueue *queue)
{
  return g_async_queue_timeout_pop (queue, 30 * MUSTER_SECOND);
}

/* The next that isn't like these. */
static char *
pop_other_than (GAsyncQueue *queue, const char *these)
{
  char *next = pop (queue);
  while (g_strcmp0 (next, these) == 0) {
    g_free (next);
    next = pop (queue);
  }
  return next;
}

/* A watch that has told all it has to tell, and stays open. */
static MusterWatch *
open_watch (MusterSession *session)
{
  g_autoptr (GError) error = NULL;
  MusterWatch *watch = muster_session_watch (session, &(MusterWatchFor){.ready_op = "open"},
                                             test_deadline (), &error);
  for (int i = 0; i < 2; i++) {
    g_auto (MusterReadiness) readiness = {0};
    MUSTER_EXPECT_TRUE (muster_watch_next (watch, &readiness, NULL, &error));
  }
  MUSTER_EXPECT_NO_ERROR (error);
  return watch;
}

static void
expect_end (MusterWatch *watch, int code, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterReadiness) readiness = {0};
  MUSTER_EXPECT_FALSE (muster_watch_next (watch, &readiness, NULL, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, code, text);
}

MUSTER_TEST (Heartbeat, is_asked_for_by_each_session)
{
  g_auto (TinyMaster) f = {0};
  start (&f);

  g_autoptr (MusterSession) session = create_session (&f);

  g_autoptr (GMutexLocker) locked = g_mutex_locker_new (&f.lock);
  MUSTER_EXPECT_STREQ (f.lease, "60");
}

MUSTER_TEST (Heartbeat, reports_all_open_sessions_again_and_again)
{
  g_auto (TinyMaster) f = {0};
  start (&f);
  g_autoptr (MusterSession) first = create_session (&f);
  g_autoptr (MusterSession) second = create_session (&f);

  g_autofree char *both = pop_other_than (f.renewed, "tiny"); /* from before the second */
  MUSTER_EXPECT_STREQ (both, "tiny tiny");
  muster_session_close_quietly (first);
  g_autofree char *next = pop_other_than (f.renewed, "tiny tiny"); /* from before the close */
  MUSTER_EXPECT_STREQ (next, "tiny");
}

MUSTER_TEST (Heartbeat, ends_the_watch_of_a_session_that_is_gone)
{
  g_auto (TinyMaster) f = {0};
  start (&f);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (MusterWatch) watch = open_watch (session);

  g_atomic_int_set (&f.renew_answer, TINY_GONE);

  expect_end (watch, MUSTER_ERROR_ABORTED, "no longer knows the session 'tiny'");
}

MUSTER_TEST (Heartbeat, ends_watches_when_the_server_falls_silent)
{
  g_auto (TinyMaster) f = {0};
  start_with (&f, 500 * MUSTER_MILLISECOND);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autoptr (MusterWatch) watch = open_watch (session);
  g_autoptr (MusterWatch) another = open_watch (session);

  g_atomic_int_set (&f.renew_answer, TINY_SILENT);

  expect_end (watch, MUSTER_ERROR_UNAVAILABLE, "has been silent for 1.0 s");
  expect_end (another, MUSTER_ERROR_UNAVAILABLE, "has been silent for 1.0 s");
}

/* The lease's renewals, on the same thread, are the clock here. */
MUSTER_TEST (Heartbeat, that_waits_for_its_answer_delays_no_lease)
{
  g_auto (TinyMaster) f = {0};
  g_autoptr (GError) error = NULL;
  start_with (&f, 3600 * MUSTER_SECOND);
  g_atomic_int_set (&f.renew_answer, TINY_SILENT);
  f.registry.lease_us = 60 * MUSTER_MILLISECOND;
  g_autoptr (MusterSession) session = create_session (&f);
  g_autofree char *renewed = pop (f.renewed);
  MUSTER_EXPECT_STREQ (renewed, "tiny");

  const MusterClaim claim = {.model = "digits"};
  g_autoptr (MusterLease) lease =
      muster_session_claim (session, &claim, NULL, test_deadline (), NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  for (int i = 0; i < 3; i++) {
    g_autofree char *announced = tiny_registry_pop (f.registry.announced);
    MUSTER_EXPECT_TRUE (announced != NULL);
  }
}

MUSTER_TEST (Heartbeat, is_not_asked_for_again_where_it_is_unknown)
{
  g_auto (TinyMaster) f = {0};
  start (&f);
  g_autoptr (GError) error = NULL;
  f.registry.lease_us = 90 * MUSTER_MILLISECOND;
  g_atomic_int_set (&f.renew_answer, MUSTER_ERROR_UNIMPLEMENTED);
  g_autoptr (MusterSession) session = create_session (&f);
  g_autofree char *once = pop (f.renewed);
  MusterClaim claim = {.model = "digits"};
  g_autoptr (MusterLease) lease =
      muster_session_claim (session, &claim, NULL, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  for (int i = 0; i < 3; i++)
    g_free (pop (f.registry.announced));

  MUSTER_EXPECT_EQ (g_async_queue_length (f.renewed), 0);
}

MUSTER_TEST (Heartbeat, goes_on_after_an_error)
{
  g_auto (TinyMaster) f = {0};
  start (&f);
  g_atomic_int_set (&f.renew_answer, MUSTER_ERROR_UNAVAILABLE);
  g_autoptr (MusterSession) session = create_session (&f);

  g_free (pop (f.renewed));
  g_free (pop (f.renewed));
  g_atomic_int_set (&f.renew_answer, 0);

  g_autofree char *next = pop (f.renewed);
  MUSTER_EXPECT_STREQ (next, "tiny");
}

MUSTER_TEST (Heartbeat, ends_with_the_master_though_it_is_under_way)
{
  g_auto (TinyMaster) f = {0};
  start (&f);
  g_atomic_int_set (&f.renew_answer, TINY_SILENT);
  MusterSession *session = create_session (&f);
  g_free (pop (f.renewed));

  g_object_unref (session);
  g_clear_object (&f.master);

  g_autofree char *closed = pop (f.closed);
  MUSTER_EXPECT_STREQ (closed, "tiny");
}
