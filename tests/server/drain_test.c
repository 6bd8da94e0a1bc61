// SPDX-License-Identifier: Apache-2.0
/* A server that is about to stop: whom it refuses, whom it tells, for whom it waits. And one that
 * is only asked to have its chiefs save, by Drain. */
#include "rpc/proto/health.pb-c.h"
#include "tests/server/served.h"

#define NAME_OF(status) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##status

static gboolean
announce (MusterLease *lease, MusterChiefDrain drain)
{
  g_autoptr (GError) error = NULL;
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  announcement.drain = drain;
  gboolean is_told = muster_lease_announce (lease, &announcement, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return is_told;
}

static gboolean
hears (MusterLease *lease, gint64 *until_us)
{
  gint64 deadline_us = test_deadline ();
  while (!muster_lease_is_draining (lease, until_us)) {
    if (muster_clock_now_us (muster_system_clock ()) >= deadline_us)
      return FALSE;
    g_usleep (1000);
  }
  return TRUE;
}

static guint
health (Served *s)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  const MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_autoptr (GBytes) bytes = muster_rpc_client_call (s->bare, "/grpc.health.v1.Health/Check",
                                                     &request, &options, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (bytes == NULL)
    return 0;
  const Grpc__Health__V1__HealthCheckResponse *response = muster_unpack (
      &grpc__health__v1__health_check_response__descriptor, g_bytes_get_data (bytes, NULL),
      g_bytes_get_size (bytes), arena, "health", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return response != NULL ? response->status : 0;
}

MUSTER_TEST (Drain, refuses_new_sessions_and_claims_and_runs_the_steps_of_those_that_are)
{
  g_auto (Served) s = served_start ();
  g_autoptr (GError) refused = NULL, unclaimed = NULL, error = NULL;
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  g_autoptr (MusterSession) session = served_session (&s, NULL);
  const MusterClaim claim = {.model = "digits", .task = "chief:0"};
  MUSTER_EXPECT_EQ (health (&s), NAME_OF (SERVING));

  muster_server_drain (s.server, 20 * MUSTER_SECOND);

  MUSTER_EXPECT_EQ (health (&s), NAME_OF (NOT_SERVING));
  MUSTER_EXPECT_TRUE (muster_server_is_drained (s.server, NULL));
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterSession) another =
      muster_master_create_session (s.remote, graph, NULL, test_deadline (), NULL, &refused);
  MUSTER_EXPECT_TRUE (another == NULL);
  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  EXPECT_SAYS (refused, "the server is stopping");
  g_autoptr (MusterLease) lease =
      muster_session_claim (session, &claim, NULL, test_deadline (), NULL, &unclaimed);
  MUSTER_EXPECT_TRUE (lease == NULL);
  MUSTER_EXPECT_ERROR (unclaimed, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
}

MUSTER_TEST (Drain, tells_chiefs_and_waits_for_those_that_save)
{
  g_auto (Served) s = served_start ();
  g_autoptr (MusterSession) session = served_session (&s, NULL);
  g_autoptr (MusterLease) lease = served_claim (session, NULL);
  g_autofree char *awaited = NULL;
  gint64 until_us = 0;
  MUSTER_EXPECT_FALSE (muster_lease_is_draining (lease, &until_us));
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_DRAIN_OFFERED));

  gint64 before_us = muster_clock_now_us (muster_system_clock ());
  muster_server_drain (s.server, 20 * MUSTER_SECOND);

  MUSTER_EXPECT_TRUE (hears (lease, &until_us));
  MUSTER_EXPECT_GT (until_us, before_us);
  MUSTER_EXPECT_FALSE (muster_server_is_drained (s.server, &awaited));
  MUSTER_EXPECT_TRUE (awaited != NULL && g_str_has_prefix (awaited, "'digits', worker:0 ("));
  MUSTER_EXPECT_TRUE (awaited != NULL && g_str_has_suffix (awaited, "),"));
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Muster__StatusResponse *status = served_status (&s, arena);
  MUSTER_EXPECT_TRUE (status != NULL && status->draining_us > 0 &&
                      status->draining_us <= 20 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_DRAIN_SAVED));
  MUSTER_EXPECT_TRUE (muster_server_is_drained (s.server, NULL));
}

MUSTER_TEST (Drain, waits_for_no_chief_that_has_left_or_offers_nothing)
{
  g_auto (Served) s = served_start ();
  g_autoptr (MusterSession) session = served_session (&s, NULL);
  g_autoptr (MusterLease) lease = served_claim (session, NULL);
  MUSTER_EXPECT_TRUE (muster_server_is_drained (s.server, NULL));
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_DRAIN_OFFERED));
  MUSTER_EXPECT_FALSE (muster_server_is_drained (s.server, NULL));
  g_clear_object (&lease);
  gint64 deadline_us = test_deadline ();
  while (!muster_server_is_drained (s.server, NULL) &&
         muster_clock_now_us (muster_system_clock ()) < deadline_us)
    g_usleep (1000);
  MUSTER_EXPECT_TRUE (muster_server_is_drained (s.server, NULL));
}

/* A chief may keep its lease for long after its training. */
MUSTER_TEST (Drain, waits_for_no_chief_whose_training_has_ended)
{
  g_auto (Served) s = served_start ();
  g_autoptr (MusterSession) session = served_session (&s, NULL);
  g_autoptr (MusterLease) lease = served_claim (session, NULL);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_DRAIN_OFFERED));
  MUSTER_EXPECT_FALSE (muster_server_is_drained (s.server, NULL));
  MUSTER_EXPECT_TRUE (
      muster_lease_announce_phase (lease, MUSTER_CHIEF_OVER, test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (muster_server_is_drained (s.server, NULL));
}

/* --- on request --- */

#define METHOD "/muster.Readiness/Drain"

/* FALSE with an error if it is refused. */
static gboolean
ask (Served *s, const char *model, gint64 within_us, GError **error)
{
  Muster__DrainRequest request = MUSTER__DRAIN_REQUEST__INIT;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  request.model = (char *)model;
  request.within_us = within_us;
  g_autoptr (GBytes) bytes = served_ask (s, METHOD, &request.base, NULL, error);
  if (bytes == NULL)
    return FALSE;
  const Muster__DrainResponse *response =
      muster_unpack (&muster__drain_response__descriptor, g_bytes_get_data (bytes, NULL),
                     g_bytes_get_size (bytes), arena, "drain", error);
  MUSTER_EXPECT_TRUE (response != NULL && response->n_models == 1 &&
                      g_str_equal (response->models[0], "digits"));
  return response != NULL;
}

MUSTER_TEST (Drain, on_request_is_told_to_chiefs_of_a_server_that_goes_on)
{
  g_auto (Served) s = served_start ();
  g_autoptr (MusterSession) session = served_session (&s, NULL);
  g_autoptr (MusterLease) lease = served_claim (session, NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  gint64 until_us = 0, later_us = 0;

  MUSTER_EXPECT_TRUE (ask (&s, "", 20 * MUSTER_SECOND, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (hears (lease, &until_us));
  MUSTER_EXPECT_EQ (health (&s), NAME_OF (SERVING));
  MUSTER_EXPECT_TRUE (served_status (&s, arena)->draining_us == 0);
  g_autoptr (MusterSession) another = served_session (&s, NULL);
  MUSTER_EXPECT_TRUE (another != NULL);

  MUSTER_EXPECT_TRUE (ask (&s, "digits", 300 * MUSTER_SECOND, &error));
  const gint64 deadline_us = test_deadline ();
  do {
    MUSTER_EXPECT_TRUE (muster_lease_is_draining (lease, &later_us));
    g_usleep (1000);
  } while (later_us < until_us + 100 * MUSTER_SECOND && g_get_monotonic_time () < deadline_us);
  MUSTER_EXPECT_GT (later_us, until_us + 100 * MUSTER_SECOND);
}

MUSTER_TEST (Drain, on_request_names_a_model_that_has_no_chief)
{
  g_auto (Served) s = served_start ();
  g_autoptr (MusterSession) session = served_session (&s, NULL);
  g_autoptr (MusterLease) lease = served_claim (session, NULL);
  g_autoptr (GError) other = NULL, over = NULL;

  MUSTER_EXPECT_FALSE (ask (&s, "letters", MUSTER_SECOND, &other));
  MUSTER_EXPECT_SAYS (other, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                      "no chief of letters trains");
  MUSTER_EXPECT_FALSE (muster_lease_is_draining (lease, NULL));

  MUSTER_EXPECT_TRUE (
      muster_lease_announce_phase (lease, MUSTER_CHIEF_OVER, test_deadline (), NULL, NULL));
  MUSTER_EXPECT_FALSE (ask (&s, "", MUSTER_SECOND, &over));
  MUSTER_EXPECT_ERROR (over, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

/* Its tasks train no step for a while, as they were asked to. */
MUSTER_TEST (Drain, is_in_the_status_and_no_stall)
{
  g_auto (Served) s = served_start ();
  g_autoptr (MusterSession) session = served_session (&s, NULL);
  g_autoptr (MusterLease) lease = served_claim (session, NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) before = muster_arena_new (), after = muster_arena_new ();
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));
  MUSTER_EXPECT_TRUE (
      muster_lease_announce_phase (lease, MUSTER_CHIEF_TRAINING, test_deadline (), NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  const Muster__StatusResponse *status = served_status (&s, before);
  MUSTER_EXPECT_EQ (status->models[0]->drain_left_us, (gint64)0);

  MUSTER_EXPECT_TRUE (ask (&s, "", 300 * MUSTER_SECOND, &error));
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_DRAIN_SAVED));
  g_usleep (1000);

  status = served_status (&s, after);
  MUSTER_EXPECT_GT (status->models[0]->drain_left_us, (gint64)0);
  MUSTER_EXPECT_EQ (status->stalled_us, (gint64)0);
}

/* Is the next chief asked, too? */
static gboolean
is_next_asked (MusterChiefDrain drain)
{
  g_auto (Served) s = served_start ();
  g_autoptr (MusterSession) one = served_session (&s, NULL);
  g_autoptr (MusterSession) two = served_session (&s, NULL);
  g_autoptr (MusterLease) first = served_claim (one, NULL);
  g_autoptr (GError) error = NULL;
  gint64 until_us;
  MUSTER_EXPECT_TRUE (announce (first, MUSTER_DRAIN_OFFERED));
  MUSTER_EXPECT_TRUE (ask (&s, "", 300 * MUSTER_SECOND, &error));
  MUSTER_EXPECT_TRUE (hears (first, &until_us));
  MUSTER_EXPECT_TRUE (announce (first, drain));
  const MusterClaim claim = {.model = "digits", .task = "worker:1", .epoch = 9};
  g_autoptr (MusterLease) second =
      muster_session_claim (two, &claim, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return second != NULL && muster_lease_is_draining (second, &until_us);
}

MUSTER_TEST (Drain, on_request_is_the_next_chiefs_where_the_one_before_has_not_saved)
{
  MUSTER_EXPECT_TRUE (is_next_asked (MUSTER_DRAIN_OFFERED));
  MUSTER_EXPECT_FALSE (is_next_asked (MUSTER_DRAIN_SAVED));
}
