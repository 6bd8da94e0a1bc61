// SPDX-License-Identifier: Apache-2.0
/* What a caller's role allows at a server. */
#include "tests/doubles/heard.h"
#include "tests/rpc/certificates.h"
#include "tests/server/served.h"

#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "master/remote/remote_master.h"
#include "server/core/service.h"

#include <string.h>

typedef struct {
  MusterServer *server;
  MusterServer *gateway; /* (nullable) */
  char *address;
} Fixture;

static MusterRpcCredentials *
read_token (const char *name, const char *text, gboolean serves)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = certificates_write (muster_test_tmpdir (), name, text);
  const MusterRpcSecurity security = {.token_file = path, .serves = serves};
  MusterRpcCredentials *made = muster_rpc_credentials_new (&security, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return made;
}

static MusterServer *
serve (MusterMaster *master, char **address)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcCredentials) own =
      read_token ("tokens", "run works\nread looks\nadmin rules\nrun attacks\n", TRUE);
  const MusterServerOptions options = {.credentials = own};
  MusterServer *server = muster_server_new (master, &options);
  int port = muster_server_listen (server, "127.0.0.1:0", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  *address = g_strdup_printf ("127.0.0.1:%d", port);
  muster_server_start (server);
  return server;
}

static MusterMaster *
connect_to (const char *address, const char *token)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *target = g_strconcat ("grpc://", address, NULL);
  g_autoptr (MusterRpcCredentials) own = read_token (token, token, FALSE);
  MusterMaster *master = muster_remote_master_new_secured (target, own, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return master;
}

/* The server itself, or a gateway to it that has the same tokens. */
static void
fixture_start (Fixture *f, gboolean by_gateway)
{
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  f->server = serve (local, &f->address);
  if (!by_gateway)
    return;
  g_autoptr (MusterMaster) remote = connect_to (f->address, "rules");
  g_free (f->address);
  f->gateway = serve (remote, &f->address);
}

static void
fixture_clear (Fixture *f)
{
  muster_server_free (f->gateway);
  muster_server_free (f->server);
  g_free (f->address);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static MusterSession *
new_session (MusterMaster *master, GError **error)
{
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  return muster_master_create_session (master, graph, NULL, test_deadline (), NULL, error);
}

/* Of a model that shares no variable with that one. */
static MusterSession *
new_session_of_letters (MusterMaster *master, GError **error)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  muster_graph_builder_variable (b, "letters/v", one);
  muster_graph_builder_group (b, "init", (const char *const[]){"letters/v/Assign", NULL});
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (b, error);
  return graph != NULL
             ? muster_master_create_session (master, graph, NULL, test_deadline (), NULL, error)
             : NULL;
}

static MusterLease *
claim (MusterSession *session, const char *model, gboolean take_over, GError **error)
{
  const MusterClaim claim = {.model = model, .task = "worker:0", .take_over = take_over};
  return muster_session_claim (session, &claim, NULL, test_deadline (), NULL, error);
}

static gboolean
reset (MusterMaster *master, GError **error)
{
  return muster_master_reset (master, NULL, test_deadline (), NULL, error);
}

static void
expect_refused (const GError *error, const char *why)
{
  MUSTER_TRACE ("%s", error != NULL ? error->message : "no error");
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_PERMISSION_DENIED, why);
}

static void
readers_look_only (gboolean by_gateway)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f, by_gateway);
  g_autoptr (MusterMaster) reader = connect_to (f.address, "looks");
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) no_session = NULL;
  g_autoptr (GError) no_reset = NULL;

  g_autoptr (GPtrArray) devices =
      muster_master_list_devices (reader, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (devices != NULL);
  MUSTER_EXPECT_NULL (new_session (reader, &no_session));
  expect_refused (no_session, "CreateSession needs the role 'run', and this token has 'read'");
  MUSTER_EXPECT_FALSE (reset (reader, &no_reset));
  expect_refused (no_reset, "Reset needs the role 'run'");
}

MUSTER_TEST (Roles, readers_look_only)
{
  readers_look_only (FALSE);
}

MUSTER_TEST (Roles, readers_look_only_at_a_gateway)
{
  readers_look_only (TRUE);
}

/* What the gateway shows its master, its clients can't change. */
MUSTER_TEST (Roles, a_gateway_says_that_it_is_refused_itself)
{
  static const struct {
    const char *token, *why;
    MusterError code;
  } cases[] = {
      {"looks",
       "': CreateSession needs the role 'run', and this token has 'read'; give the gateway another "
       "--master-token-file",
       MUSTER_ERROR_PERMISSION_DENIED},
      {"stale", "': wrong token; set the gateway's --master-token-file to the server's token",
       MUSTER_ERROR_UNAUTHENTICATED},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Fixture) f = {0};
    fixture_start (&f, FALSE);
    g_autofree char *behind = g_steal_pointer (&f.address);
    g_autoptr (MusterMaster) remote = connect_to (behind, cases[i].token);
    f.gateway = serve (remote, &f.address);
    g_autoptr (MusterMaster) client = connect_to (f.address, "rules");
    heard_begin (G_LOG_LEVEL_WARNING);
    g_autoptr (GError) error = NULL;

    MUSTER_EXPECT_NULL (new_session (client, &error));

    g_autofree char *words =
        g_strconcat ("the gateway is refused by its master '", behind, cases[i].why, NULL);
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, cases[i].code, words);
    MUSTER_EXPECT_EQ (heard_count ("master-refuses", NULL), 1u);
    g_autofree char *failure = muster_server_master_failure (f.gateway);
    MUSTER_EXPECT_TRUE (strstr (failure, "CloseSession needs the role 'run'") != NULL ||
                        strstr (failure, "wrong token; set the gateway's") != NULL);
    heard_end ();
  }
}

static void
a_chief_resets_its_own_model (gboolean by_gateway)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f, by_gateway);
  g_autoptr (MusterMaster) chief = connect_to (f.address, "works");
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) refused = NULL;
  g_autoptr (MusterSession) session = new_session (chief, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (reset (chief, &refused));
  expect_refused (refused, "or the lease on the model");
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));
  g_autoptr (MusterLease) lease = claim (session, "digits", FALSE, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (reset (chief, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Roles, a_chief_resets_its_own_model)
{
  a_chief_resets_its_own_model (FALSE);
}

MUSTER_TEST (Roles, a_chief_resets_its_own_model_behind_a_gateway)
{
  a_chief_resets_its_own_model (TRUE);
}

typedef struct {
  MusterMaster *master;   /* (owned), as the rest */
  MusterSession *session; /* another one than the other chief's, by a connection of its own */
  MusterLease *lease;
} Chief;

static void
chief_clear (Chief *self)
{
  g_clear_object (&self->lease);
  g_clear_object (&self->session);
  g_clear_object (&self->master);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Chief, chief_clear)

/* Two chiefs of models that share no variable. */
static void
chiefs_start (const Fixture *f, const char *token, Chief *digits, Chief *letters, GError **error)
{
  /* Under another name, so that gRPC doesn't share the connection within this process. */
  g_autofree char *by_name = g_strconcat ("localhost", strchr (f->address, ':'), NULL);
  digits->master = connect_to (f->address, token);
  letters->master = connect_to (by_name, token);
  digits->session = new_session (digits->master, error);
  letters->session =
      digits->session != NULL ? new_session_of_letters (letters->master, error) : NULL;
  if (letters->session == NULL)
    return;
  digits->lease = claim (digits->session, "digits", FALSE, error);
  if (digits->lease != NULL)
    letters->lease = claim (letters->session, "letters", FALSE, error);
}

/* Without tokens everybody is an administrator. */
MUSTER_TEST (Roles, no_chief_resets_a_model_that_another_one_trains)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f, FALSE);
  g_auto (Chief) digits = {0};
  g_auto (Chief) letters = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) refused = NULL;
  chiefs_start (&f, "rules", &digits, &letters, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (reset (digits.master, &refused));
  MUSTER_EXPECT_SAYS (refused, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                      "Reset also ends 'letters', whose chief is worker:0 (");
  MUSTER_EXPECT_TRUE (served_run (letters.session, "init", &error));
  g_clear_object (&letters.lease); /* the chief has ended: the server hears it soon */
  const gint64 deadline_us = test_deadline ();
  gboolean is_reset = FALSE;
  while (!is_reset && muster_clock_now_us (muster_system_clock ()) < deadline_us)
    is_reset = reset (digits.master, NULL);
  MUSTER_EXPECT_TRUE (is_reset);
}

MUSTER_TEST (Roles, a_chief_does_not_reset_anothers_model)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f, FALSE);
  g_auto (Chief) digits = {0};
  g_auto (Chief) letters = {0};
  g_autoptr (MusterMaster) ruler = connect_to (f.address, "rules");
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) refused = NULL;
  chiefs_start (&f, "works", &digits, &letters, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  heard_begin (G_LOG_LEVEL_INFO);
  MUSTER_EXPECT_FALSE (reset (digits.master, &refused));
  expect_refused (refused, "Reset also ends 'letters'");
  MUSTER_EXPECT_TRUE (
      heard_wait ("audit", "Reset by 127.0.0.1:*, token of line 1: Reset also ends*"));
  MUSTER_EXPECT_TRUE (served_run (letters.session, "init", &error));
  MUSTER_EXPECT_TRUE (reset (ruler, &error));
  MUSTER_EXPECT_TRUE (heard_wait ("audit", "Reset by 127.0.0.1:*, token of line 3: done"));
  heard_end ();
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (served_run (letters.session, "init", NULL));
}

/* `muster finish` and --overwrite. In one process both chiefs have one name: the model's chief is
 * another one by a bare call. */
static gboolean
take_over_as (const char *address, const char *token, const char *proof, GError **error)
{
  g_autoptr (MusterRpcCredentials) own = read_token (token, token, FALSE);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, own);
  g_autoptr (MusterMaster) master = connect_to (address, token);
  g_autoptr (MusterSession) session = new_session (master, error);
  if (session == NULL)
    return FALSE;
  Muster__ClaimRequest request = MUSTER__CLAIM_REQUEST__INIT;
  request.model = (char *)"digits";
  request.task = (char *)"chief:0";
  request.who = (char *)"host:1"; /* as `muster status` shows it */
  request.take_over = TRUE;
  request.proof = (char *)proof;
  request.session_handle = (char *)muster_session_handle (session);
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (&rope, packed);
  const MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_autoptr (MusterRpcStream) stream =
      muster_rpc_client_open (client, "/muster.Readiness/Claim", &rope, &options, error);
  if (stream == NULL)
    return FALSE;
  g_autoptr (GBytes) grant =
      muster_rpc_stream_next_until (stream, MUSTER_WAIT_FOREVER, NULL, error);
  return grant != NULL;
}

MUSTER_TEST (Roles, only_an_administrator_takes_a_model_from_another_chief)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f, FALSE);
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) refused = NULL;

  MUSTER_EXPECT_TRUE (take_over_as (f.address, "works", "its own", &error)); /* nobody's yet */
  MUSTER_EXPECT_TRUE (take_over_as (f.address, "works", "its own", &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (take_over_as (f.address, "works", "", NULL));
  heard_begin (G_LOG_LEVEL_INFO);
  MUSTER_EXPECT_FALSE (take_over_as (f.address, "works", "another", &refused));
  expect_refused (refused, "taking 'digits' from its chief");
  MUSTER_EXPECT_TRUE (heard_wait ("audit", "Claim of digits by *: taking 'digits' from*"));
  MUSTER_EXPECT_TRUE (take_over_as (f.address, "rules", "another", &error));
  MUSTER_EXPECT_TRUE (heard_wait ("audit", "Claim of digits by *, token of line 3: done"));
  g_autofree char *role = heard_field ("audit", "MUSTER_ROLE");
  MUSTER_EXPECT_STREQ (role, "admin");
  heard_end ();
  MUSTER_EXPECT_NO_ERROR (error);
}

/* Of a job whose steps are elsewhere. */
static MusterRpcStream *
claim_apart (MusterRpcClient *client, gboolean take_over, const char *proof)
{
  g_autoptr (GError) error = NULL;
  Muster__ClaimRequest request = MUSTER__CLAIM_REQUEST__INIT;
  request.model = (char *)"digits";
  request.who = (char *)proof;
  request.proof = (char *)proof;
  request.take_over = request.spares_living = take_over;
  request.again = !take_over;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (&rope, packed);
  const MusterRpcOptions options = {.deadline_us = test_deadline ()};
  MusterRpcStream *stream =
      muster_rpc_client_open (client, "/muster.Readiness/Claim", &rope, &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return stream;
}

static gboolean
end_job (MusterRpcClient *client, const char *proof, GError **error)
{
  Muster__AnnounceRequest request = MUSTER__ANNOUNCE_REQUEST__INIT;
  Muster__Announcement over = MUSTER__ANNOUNCEMENT__INIT;
  over.model = (char *)"digits";
  over.epoch = 1;
  over.phase = MUSTER__PHASE__OVER;
  request.announcement = &over;
  request.proof = (char *)proof;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (&rope, packed);
  const MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (client, "/muster.Readiness/Announce", &rope, &options, NULL, error);
  return answer != NULL;
}

/* After its start the server waits with the claim of a model that it doesn't know. */
MUSTER_TEST (Roles, who_claims_while_another_claim_waits_is_not_taken_from)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f, FALSE);
  g_autoptr (MusterRpcCredentials) own = read_token ("works", "works", FALSE);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (f.address, own);
  g_autoptr (GError) error = NULL, refused = NULL;
  g_autoptr (MusterRpcStream) waiting = claim_apart (client, TRUE, "one");
  g_autoptr (MusterRpcStream) chief = claim_apart (client, FALSE, "another");
  g_autoptr (GBytes) granted =
      muster_rpc_stream_next_until (chief, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (end_job (client, "another", &error));
  MUSTER_EXPECT_NO_ERROR (error);

  g_autoptr (GBytes) taken =
      muster_rpc_stream_next_until (waiting, MUSTER_WAIT_FOREVER, NULL, &refused);
  MUSTER_EXPECT_NULL (taken);
  expect_refused (refused, "taking 'digits' from its chief");
}

static gboolean
drain_as (const char *address, const char *token, GError **error)
{
  g_autoptr (MusterRpcCredentials) own = read_token (token, token, FALSE);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, own);
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  const MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (client, "/muster.Readiness/Drain", &rope, &options, NULL, error);
  return answer != NULL;
}

MUSTER_TEST (Roles, only_an_administrator_drains)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f, FALSE);
  g_autoptr (GError) error = NULL, refused = NULL;

  heard_begin (G_LOG_LEVEL_INFO);
  MUSTER_EXPECT_FALSE (drain_as (f.address, "works", &refused));
  expect_refused (refused, "Drain needs the role 'admin'");
  MUSTER_EXPECT_FALSE (drain_as (f.address, "rules", &error)); /* there is no chief */
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (heard_wait ("audit", "Drain by *, token of line 3: no chief of any model*"));
  heard_end ();
}

static MusterLease *
claim_epoch (MusterSession *session, gint64 epoch, GError **error)
{
  const MusterClaim claim = {.model = "digits", .task = "worker:0", .epoch = epoch};
  return muster_session_claim (session, &claim, NULL, test_deadline (), NULL, error);
}

/* A higher epoch wins the model, but not what a reset would take from others. */
static void
an_ouster_does_not_reset (gboolean by_gateway)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f, by_gateway);
  g_autoptr (MusterMaster) victim = connect_to (f.address, "works");
  g_autoptr (MusterMaster) attacker = connect_to (f.address, "attacks");
  g_autoptr (GError) error = NULL, refused = NULL, again = NULL;
  g_autoptr (MusterSession) session = new_session (victim, &error);
  g_autoptr (MusterSession) hostile = new_session (attacker, &error);
  g_autoptr (MusterLease) lease = claim (session, "digits", FALSE, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  heard_begin (G_LOG_LEVEL_INFO);
  MusterLease *taken = claim_epoch (hostile, 7, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (heard_wait ("audit", "Claim of digits by *, token of line 4: done"));
  heard_end ();
  MUSTER_EXPECT_FALSE (reset (attacker, &refused));
  expect_refused (refused, "Reset also ends 'digits'");

  /* nor after it has claimed what nobody holds any more */
  g_object_unref (taken);
  g_autoptr (MusterLease) later = claim_epoch (hostile, 8, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (reset (attacker, &again));
  expect_refused (again, "Reset also ends 'digits'");

  /* the chief that was ousted comes back, and may */
  g_autoptr (MusterSession) next = new_session (victim, &error);
  g_autoptr (MusterLease) back = claim_epoch (next, 9, &error);
  MUSTER_ASSERT_NO_ERROR (error);
}

MUSTER_TEST (Roles, who_ousts_anothers_living_chief_does_not_reset)
{
  an_ouster_does_not_reset (FALSE);
}

MUSTER_TEST (Roles, who_ousts_anothers_living_chief_does_not_reset_at_a_gateway)
{
  an_ouster_does_not_reset (TRUE);
}

/* What names a chief is in every status: it must not be enough to end its job. */
MUSTER_TEST (Roles, nobody_announces_for_anothers_chief)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f, FALSE);
  g_autoptr (MusterMaster) victim = connect_to (f.address, "works");
  g_autoptr (MusterRpcCredentials) own = read_token ("attacks", "attacks", FALSE);
  g_autoptr (MusterRpcClient) attacker = muster_rpc_client_new (f.address, own);
  g_autoptr (GError) error = NULL, refused = NULL;
  g_autoptr (MusterSession) session = new_session (victim, &error);
  g_autoptr (MusterLease) lease = claim (session, "digits", FALSE, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  Muster__AnnounceRequest request = MUSTER__ANNOUNCE_REQUEST__INIT;
  Muster__Announcement announcement = MUSTER__ANNOUNCEMENT__INIT;
  announcement.model = (char *)"digits";
  announcement.epoch = muster_lease_epoch (lease);
  announcement.phase = MUSTER__PHASE__OVER;
  request.announcement = &announcement;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (&rope, packed);
  const MusterRpcOptions options = {.deadline_us = test_deadline ()};

  g_autoptr (GBytes) answer = muster_rpc_client_call (attacker, "/muster.Readiness/Announce", &rope,
                                                      &options, NULL, &refused);

  MUSTER_EXPECT_NULL (answer);
  expect_refused (refused, "announcing for the chief of 'digits'");
  g_auto (MusterAnnouncement) mine = MUSTER_ANNOUNCEMENT_INIT;
  mine.phase = MUSTER_CHIEF_PREPARED;
  MUSTER_EXPECT_TRUE (muster_lease_announce (lease, &mine, test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}
