// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/heard.h"
#include "tests/server/served.h"
#include "tests/server/stuck_master.h"

#include "base/unpack_private.h"
#include "rpc/proto/muster.pb-c.h"

/* A server whose leases don't run out while a test lasts. */
static Served
start_patient (MusterMaster *master)
{
  MusterServerOptions options = {.chief_lease_us = 3600 * MUSTER_SECOND};
  return served_start_with (master, &options);
}

/* --- chiefs, on bare calls --- */

static MusterRpcStream *
send_claim (Served *f, const Muster__ClaimRequest *request)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&request->base);
  muster_rope_append (&rope, packed);
  /* It is open for long: ten thousand other claims may come before its end. */
  MusterRpcOptions options = {.deadline_us = test_deadline_in (120 * MUSTER_SECOND)};
  MusterRpcStream *stream =
      muster_rpc_client_open (f->bare, "/muster.Readiness/Claim", &rope, &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return stream;
}

static Muster__ClaimRequest
claim_of (MusterSession *session, const char *model, const char *who)
{
  Muster__ClaimRequest request = MUSTER__CLAIM_REQUEST__INIT;
  request.model = (char *)model;
  request.task = (char *)"worker:0";
  request.who = (char *)who;
  request.session_handle = (char *)muster_session_handle (session);
  return request;
}

static MusterRpcStream *
claim_model (Served *f, MusterSession *session, const char *model, const char *who, gint64 epoch,
             gboolean take_over)
{
  Muster__ClaimRequest request = claim_of (session, model, who);
  request.epoch = epoch;
  request.take_over = take_over;
  return send_claim (f, &request);
}

static MusterRpcStream *
claim_as (Served *f, MusterSession *session, const char *who, gint64 epoch, gboolean take_over)
{
  return claim_model (f, session, "digits", who, epoch, take_over);
}

static MusterRpcStream *
claim (Served *f, MusterSession *session, const char *who)
{
  return claim_as (f, session, who, 0, FALSE);
}

/* The grant in words: "epoch 2 after host:1", or NULL with an error. */
static char *
next_grant (MusterRpcStream *stream, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GBytes) bytes =
      muster_rpc_stream_next_until (stream, MUSTER_WAIT_FOREVER, NULL, error);
  if (bytes == NULL)
    return NULL;
  const Muster__ClaimResponse *response =
      muster_unpack (&muster__claim_response__descriptor, g_bytes_get_data (bytes, NULL),
                     g_bytes_get_size (bytes), arena, "ClaimResponse", error);
  return g_strdup_printf ("epoch %d after %s", (int)response->epoch,
                          response->before != NULL ? response->before->who : "nobody");
}

#define EXPECT_GRANT(stream, words)                                                                \
  do {                                                                                             \
    g_autoptr (GError) error_ = NULL;                                                              \
    g_autofree char *grant_ = next_grant (stream, &error_);                                        \
    MUSTER_EXPECT_NO_ERROR (error_);                                                               \
    MUSTER_EXPECT_STREQ (grant_, words);                                                           \
  } while (0)

static void
expect_end (MusterRpcStream *stream, MusterError code, const char *words)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *grant = next_grant (stream, &error);
  MUSTER_EXPECT_NULL (grant);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, code, words);
}

static gboolean
announce (Served *f, gint64 epoch, MusterChiefPhase phase, gint64 step, GError **error)
{
  Muster__Announcement announced = MUSTER__ANNOUNCEMENT__INIT;
  announced.model = (char *)"digits";
  announced.epoch = epoch;
  announced.phase = (Muster__Phase)phase;
  announced.step = step;
  announced.durable_step = -1;
  Muster__AnnounceRequest request = MUSTER__ANNOUNCE_REQUEST__INIT;
  request.announcement = &announced;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (&rope, packed);
  MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (f->bare, "/muster.Readiness/Announce", &rope, &options, NULL, error);
  return answer != NULL;
}

#define EXPECT_ANNOUNCED(f, epoch, phase, step)                                                    \
  do {                                                                                             \
    g_autoptr (GError) error_ = NULL;                                                              \
    MUSTER_EXPECT_TRUE (announce (f, epoch, phase, step, &error_));                                \
    MUSTER_EXPECT_NO_ERROR (error_);                                                               \
  } while (0)

static void
expect_refused (Served *f, gint64 epoch, MusterError code, const char *words)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (announce (f, epoch, MUSTER_CHIEF_TRAINING, 1, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, code, words);
}

MUSTER_TEST (Claim, is_granted_to_the_first_chief)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);

  g_autoptr (MusterRpcStream) lease = claim (&f, session, "host:1");

  EXPECT_GRANT (lease, "epoch 1 after nobody");
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_INITIALISING, -1);
}

MUSTER_TEST (Claim, for_an_unknown_session_is_aborted)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_ASSERT_TRUE (muster_session_close (session, test_deadline (), NULL, NULL));

  g_autoptr (MusterRpcStream) lease = claim (&f, session, "host:1");

  expect_end (lease, MUSTER_ERROR_ABORTED, "is not found");
}

static MusterRpcStream *
claim_apart (Served *f, const char *proof, gint64 epoch, gboolean again)
{
  g_autoptr (GError) error = NULL;
  Muster__ClaimRequest request = MUSTER__CLAIM_REQUEST__INIT;
  request.model = (char *)"digits";
  request.who = (char *)proof;
  request.proof = (char *)proof;
  request.epoch = epoch;
  request.take_over = request.again = again;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (&rope, packed);
  MusterRpcOptions options = {.deadline_us = test_deadline ()};
  MusterRpcStream *stream =
      muster_rpc_client_open (f->bare, "/muster.Readiness/Claim", &rope, &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return stream;
}

/* At a coordinator that was restarted, whose epochs begin anew. */
MUSTER_TEST (Claim, that_is_made_again_takes_over_from_itself_alone)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterRpcStream) first = claim_apart (&f, "old", 5, TRUE);
  EXPECT_GRANT (first, "epoch 5 after nobody");
  g_autoptr (MusterRpcStream) same = claim_apart (&f, "old", 5, TRUE);
  EXPECT_GRANT (same, "epoch 5 after old");

  g_autoptr (MusterRpcStream) other = claim_apart (&f, "new", 9, TRUE);

  expect_end (other, MUSTER_ERROR_FAILED_PRECONDITION, "its chief is old");
}

MUSTER_TEST (Claim, is_refused_while_another_chief_is_alive)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) one = served_session (&f, NULL);
  g_autoptr (MusterSession) other = served_session (&f, NULL);
  g_autoptr (MusterRpcStream) lease = claim (&f, one, "host:1");
  EXPECT_GRANT (lease, "epoch 1 after nobody");

  g_autoptr (MusterRpcStream) refused = claim (&f, other, "host:2");

  expect_end (refused, MUSTER_ERROR_FAILED_PRECONDITION, "worker:0 (host:1), starting");
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 5);
}

MUSTER_TEST (Claim, by_a_higher_epoch_ends_the_lease_and_the_session_of_the_one_before)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) old = served_session (&f, NULL);
  g_autoptr (MusterSession) new = served_session (&f, NULL);
  g_autoptr (MusterRpcStream) loser = claim_as (&f, old, "host:1", 3, FALSE);
  EXPECT_GRANT (loser, "epoch 3 after nobody");
  MUSTER_EXPECT_TRUE (served_run (old, "init", &error));

  g_autoptr (MusterRpcStream) winner = claim_as (&f, new, "host:2", 4, FALSE);

  EXPECT_GRANT (winner, "epoch 4 after host:1");
  MUSTER_EXPECT_FALSE (served_run (old, "init", &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  expect_end (loser, MUSTER_ERROR_FAILED_PRECONDITION, "worker:0 (host:2)");
  expect_refused (&f, 3, MUSTER_ERROR_FAILED_PRECONDITION, "host:2");
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (served_run (new, "init", &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

static gpointer
get_stuck (gpointer session)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) got =
      muster_session_fetch (session, "stuck", test_deadline (), NULL, &error);
  MUSTER_EXPECT_NULL (got);
  return GINT_TO_POINTER (error != NULL ? error->code : 0);
}

MUSTER_TEST (Claim, by_a_higher_epoch_cancels_what_the_one_before_runs)
{
  g_autoptr (MusterStuckMaster) master = stuck_master_new ();
  g_auto (Served) f = start_patient (MUSTER_MASTER (master));
  g_autoptr (MusterSession) old = served_session (&f, NULL);
  g_autoptr (MusterSession) new = served_session (&f, NULL);
  g_autoptr (MusterRpcStream) loser = claim (&f, old, "host:1");
  EXPECT_GRANT (loser, "epoch 1 after nobody");
  GThread *step = g_thread_new ("step", get_stuck, old);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (master, 1));

  g_autoptr (MusterRpcStream) winner = claim_as (&f, new, "host:2", 2, FALSE);

  EXPECT_GRANT (winner, "epoch 2 after host:1");
  MUSTER_EXPECT_EQ (GPOINTER_TO_INT (g_thread_join (step)), MUSTER_ERROR_CANCELLED);
}

static gpointer
train_batch (gpointer session)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) position = muster_tensor_new_int64 (0);
  g_autoptr (MusterTensor) got = NULL;
  const MusterFeed feed = {"muster/position:0", position};
  const char *fetch = "stuck:0";
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
  muster_session_run (session, &step, &got, NULL, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return NULL;
}

/* Else a batch would be half trained, which only a checkpoint repairs. */
MUSTER_TEST (Claim, by_a_higher_epoch_waits_for_the_batch_that_the_one_before_trains)
{
  g_autoptr (MusterStuckMaster) master = stuck_master_new ();
  g_auto (Served) f = start_patient (MUSTER_MASTER (master));
  g_autoptr (MusterSession) old = served_session (&f, NULL);
  g_autoptr (MusterSession) new = served_session (&f, NULL);
  g_autoptr (MusterRpcStream) loser = claim (&f, old, "host:1");
  EXPECT_GRANT (loser, "epoch 1 after nobody");
  GThread *step = g_thread_new ("step", train_batch, old);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (master, 1));

  g_autoptr (MusterRpcStream) winner = claim_as (&f, new, "host:2", 2, FALSE);
  expect_end (loser, MUSTER_ERROR_FAILED_PRECONDITION, "host:2");
  for (int i = 0; i < 30; i++) { /* the claim has its time to go on too early */
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_TRUE (served_run (new, "quick", &error));
  }
  stuck_master_let_go (master);

  EXPECT_GRANT (winner, "epoch 2 after host:1");
  g_thread_join (step);
  MUSTER_EXPECT_EQ (stuck_master_n_whole (master), 1U);
}

MUSTER_TEST (Claim, in_the_same_session_does_not_end_it)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  g_autoptr (MusterRpcStream) first = claim (&f, session, "host:1");
  EXPECT_GRANT (first, "epoch 1 after nobody");

  g_autoptr (MusterRpcStream) second = claim_as (&f, session, "host:1", 0, TRUE);

  EXPECT_GRANT (second, "epoch 2 after host:1");
  expect_end (first, MUSTER_ERROR_FAILED_PRECONDITION, "epoch 2");
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* The server notices in its own time that a caller has gone. */
static void
expect_claimed (Served *f, MusterSession *session, gint64 epoch, const char *words)
{
  g_autofree char *grant = NULL;
  gint64 until = test_deadline ();
  while (grant == NULL && muster_clock_now_us (muster_system_clock ()) < until) {
    g_autoptr (MusterRpcStream) lease = claim_as (f, session, "host:2", epoch, FALSE);
    grant = next_grant (lease, NULL);
  }
  MUSTER_EXPECT_STREQ (grant, words);
}

MUSTER_TEST (Claim, holds_as_long_as_its_stream)
{
  g_auto (Served) f = start_patient (NULL);
  g_autoptr (MusterSession) one = served_session (&f, NULL);
  g_autoptr (MusterSession) other = served_session (&f, NULL);
  MusterRpcStream *lease = claim (&f, one, "host:1");
  EXPECT_GRANT (lease, "epoch 1 after nobody");

  muster_rpc_stream_free (lease);

  expect_claimed (&f, other, 1, "epoch 1 after host:1");
}

MUSTER_TEST (Claim, outlasts_its_session)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) one = served_session (&f, NULL);
  g_autoptr (MusterSession) other = served_session (&f, NULL);
  g_autoptr (MusterRpcStream) lease = claim (&f, one, "host:1");
  EXPECT_GRANT (lease, "epoch 1 after nobody");

  MUSTER_EXPECT_TRUE (muster_session_close (one, test_deadline (), NULL, NULL));

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 5);
  g_autoptr (MusterRpcStream) refused = claim (&f, other, "host:2");
  expect_end (refused, MUSTER_ERROR_FAILED_PRECONDITION, "host:1");
}

MUSTER_TEST (Claim, of_a_job_that_is_over_is_out_of_range)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) one = served_session (&f, NULL);
  g_autoptr (MusterSession) other = served_session (&f, NULL);
  g_autoptr (MusterRpcStream) lease = claim (&f, one, "host:1");
  EXPECT_GRANT (lease, "epoch 1 after nobody");
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_OVER, 1000);

  g_autoptr (MusterRpcStream) late = claim (&f, other, "host:2");
  expect_end (late, MUSTER_ERROR_OUT_OF_RANGE, "at step 1000");

  g_autoptr (MusterRpcStream) bold = claim_as (&f, other, "host:2", 0, TRUE);
  EXPECT_GRANT (bold, "epoch 2 after host:1");
}

MUSTER_TEST (Claim, is_given_up_when_the_server_stops)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  g_autoptr (MusterRpcStream) lease = claim (&f, session, "host:1");
  EXPECT_GRANT (lease, "epoch 1 after nobody");

  muster_server_stop (f.server, 10 * MUSTER_SECOND);

  expect_end (lease, MUSTER_ERROR_CANCELLED, "stopping");
}

MUSTER_TEST (Claim, of_a_silent_chief_runs_out)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  muster_fake_clock_hold (clock);
  MusterServerOptions options = {.clock = MUSTER_CLOCK (clock), .chief_lease_us = MUSTER_SECOND};
  g_auto (Served) f = served_start_with (NULL, &options);
  g_autoptr (MusterSession) one = served_session (&f, NULL);
  muster_fake_clock_set_random (clock, 0.25); /* chance is in the session's handle */
  g_autoptr (MusterSession) other = served_session (&f, NULL);
  g_autoptr (MusterRpcStream) lease = claim (&f, one, "host:1");
  EXPECT_GRANT (lease, "epoch 1 after nobody");

  heard_begin (G_LOG_LEVEL_MESSAGE);
  muster_fake_clock_pass (clock, MUSTER_SECOND - MUSTER_SECOND / 10);
  g_autoptr (MusterRpcStream) early = claim_as (&f, other, "host:2", 1, FALSE);
  expect_end (early, MUSTER_ERROR_FAILED_PRECONDITION, "its chief is worker:0 (host:1)");
  muster_fake_clock_pass (clock, MUSTER_SECOND / 10);
  g_autoptr (MusterRpcStream) next = claim_as (&f, other, "host:2", 1, FALSE);

  EXPECT_GRANT (next, "epoch 1 after host:1");
  MUSTER_EXPECT_EQ (heard_count ("chief-lost", "the chief of 'digits' is lost: *"), 1U);
  heard_end ();
  expect_end (lease, MUSTER_ERROR_FAILED_PRECONDITION, "host:2");
}

/* gRPC ends a connection on which many calls are cancelled. */
static gboolean
claim_and_leave (Served *f, MusterSession *session, const char *model)
{
  const gint64 until_us = test_deadline ();
  for (;;) {
    g_autoptr (MusterRpcStream) stream = claim_model (f, session, model, "host:2", 0, FALSE);
    g_autofree char *grant = next_grant (stream, NULL);
    if (grant != NULL || muster_clock_now_us (muster_system_clock ()) >= until_us)
      return grant != NULL;
  }
}

/* The registry's limit of models is the service's, too. */
MUSTER_TEST (Claim, on_a_forgotten_model_ends)
{
  const int limit = 10000;
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  muster_fake_clock_hold (clock);
  MusterServerOptions options = {.clock = MUSTER_CLOCK (clock), .chief_lease_us = MUSTER_SECOND};
  g_auto (Served) f = served_start_with (NULL, &options);
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  /* Under another name, so that it has a connection of its own. */
  g_autofree char *by_name =
      g_strconcat ("localhost", strrchr (muster_rpc_client_address (f.bare), ':'), NULL);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (by_name, NULL);
  Served apart = {.bare = client};
  g_autoptr (MusterRpcStream) lease = claim (&apart, session, "host:1");
  EXPECT_GRANT (lease, "epoch 1 after nobody");
  muster_fake_clock_pass (clock, MUSTER_SECOND - MUSTER_SECOND / 10);
  expect_refused (&f, 7, MUSTER_ERROR_FAILED_PRECONDITION, "lost the lease"); /* a first look */
  muster_fake_clock_pass (clock, MUSTER_SECOND);

  for (int i = 0; i < limit; i++) {
    g_autofree char *model = g_strdup_printf ("another %d", i);
    MUSTER_ASSERT_TRUE (claim_and_leave (&f, session, model));
  }

  expect_end (lease, MUSTER_ERROR_CANCELLED, "the model was forgotten");
  expect_refused (&f, 1, MUSTER_ERROR_FAILED_PRECONDITION, "is not claimed on this server");
}

MUSTER_TEST (Claim, with_a_hostile_name_is_refused)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  g_autofree char *endless = g_strnfill (100000, 'w');

  g_autoptr (MusterRpcStream) lease = claim (&f, session, endless);

  expect_end (lease, MUSTER_ERROR_INVALID_ARGUMENT, "process");
}

MUSTER_TEST (Claim, with_a_text_that_would_fill_the_memory_is_refused)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  g_autofree char *endless = g_strnfill (100000, 'w');
  Muster__ClaimRequest with_op = claim_of (session, "digits", "host:1"), with_proof = with_op;
  with_op.ready_op = with_proof.proof = endless;

  g_autoptr (MusterRpcStream) by_op = send_claim (&f, &with_op);
  g_autoptr (MusterRpcStream) by_proof = send_claim (&f, &with_proof);

  expect_end (by_op, MUSTER_ERROR_INVALID_ARGUMENT, "the ready op has 100000 bytes");
  expect_end (by_proof, MUSTER_ERROR_INVALID_ARGUMENT, "the claim's secret has 100000 bytes");
}

MUSTER_TEST (Announce, of_what_nobody_claimed_is_refused)
{
  g_auto (Served) f = served_start ();
  expect_refused (&f, 1, MUSTER_ERROR_FAILED_PRECONDITION, "is not claimed on this server");
}

MUSTER_TEST (Announce, after_a_reset_is_still_the_chiefs_right)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  g_autoptr (MusterRpcStream) lease = claim (&f, session, "host:1");
  EXPECT_GRANT (lease, "epoch 1 after nobody");

  MUSTER_ASSERT_TRUE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, NULL));

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_RESTORING, -1);
}

static gboolean
announce_in_turn (Served *f, gint64 turn, Muster__Phase phase, GError **error)
{
  Muster__Announcement announcement = MUSTER__ANNOUNCEMENT__INIT;
  Muster__AnnounceRequest request = MUSTER__ANNOUNCE_REQUEST__INIT;
  announcement.model = (char *)"digits";
  announcement.epoch = 1;
  announcement.phase = phase;
  announcement.step = -1;
  request.announcement = &announcement;
  request.turn = turn;
  g_autoptr (GBytes) answer =
      served_ask (f, "/muster.Readiness/Announce", &request.base, NULL, error);
  return answer != NULL;
}

static int
phase_of_digits (Served *f)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__StatusResponse *status = served_status (f, arena);
  return status != NULL && status->n_models == 1 ? (int)status->models[0]->phase : -1;
}

/* The chief didn't wait for its answer. */
MUSTER_TEST (Announce, that_is_handled_after_a_later_one_changes_nothing)
{
  g_auto (Served) f = start_patient (NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  g_autoptr (MusterRpcStream) lease = claim (&f, session, "host:1");
  EXPECT_GRANT (lease, "epoch 1 after nobody");
  MUSTER_EXPECT_TRUE (announce_in_turn (&f, 20, MUSTER__PHASE__TRAINING, &error));
  MUSTER_EXPECT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (announce_in_turn (&f, 10, MUSTER__PHASE__RESTORING, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_EQ (phase_of_digits (&f), (int)MUSTER__PHASE__TRAINING);
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (announce_in_turn (&f, 0, MUSTER__PHASE__RESTORING, &error)); /* of before */
  MUSTER_EXPECT_TRUE (announce_in_turn (&f, 30, MUSTER__PHASE__TRAINING, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* Chiefs fight over one model: whoever is granted it is told when another has it. */
typedef struct {
  Served *f;
  int n_granted;
} Rival;

static gpointer
claim_again_and_again (gpointer data)
{
  Rival *self = data;
  for (int i = 0; i < 25; i++) {
    g_autoptr (MusterSession) session = served_session (self->f, NULL);
    g_autoptr (MusterRpcStream) lease =
        session != NULL ? claim_as (self->f, session, "host:1", 0, TRUE) : NULL;
    if (lease == NULL)
      return NULL;
    g_autoptr (GError) error = NULL;
    g_autofree char *grant = next_grant (lease, &error);
    if (grant != NULL)
      self->n_granted++;
    else
      MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  }
  return NULL;
}

MUSTER_TEST (Claim, may_be_fought_over)
{
  g_auto (Served) f = served_start ();
  Rival rivals[4] = {{&f, 0}, {&f, 0}, {&f, 0}, {&f, 0}};
  GThread *threads[G_N_ELEMENTS (rivals)];
  int n_granted = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (rivals); i++)
    threads[i] = g_thread_new ("rival", claim_again_and_again, &rivals[i]);
  for (gsize i = 0; i < G_N_ELEMENTS (rivals); i++) {
    g_thread_join (threads[i]);
    n_granted += rivals[i].n_granted;
  }
  MUSTER_EXPECT_GT (n_granted, 0);
}
