// SPDX-License-Identifier: Apache-2.0
#include "rpc/proto/health.pb-c.h"
#include "server/core/server_private.h"
#include "server/services/health_service.h"
#include "tests/rpc/certificates.h"
#include "tests/server/served.h"

#include "engine/session/local_master.h"

#define NAME "a-token-of-the-test"

/* A server whose clients need a certificate of their own and a token. */
typedef struct {
  const char *folder; /* of the test's files */
  MusterServer *server;
  char *address;        /* (owned) */
  char *health_address; /* (owned) */
} Secured;

static MusterRpcCredentials *
credentials (Secured *f, const char *certificate, const char *key, const char *ca,
             const char *token)
{
  g_autoptr (GError) error = NULL;
  const char *const names[] = {certificate, key, ca, token};
  char *paths[4] = {NULL};
  for (int i = 0; i < 4; i++)
    paths[i] = names[i] != NULL ? certificates_path (f->folder, names[i]) : NULL;
  const MusterRpcSecurity security = {
      .certificate_file = paths[0],
      .key_file = paths[1],
      .ca_file = paths[2],
      .token_file = paths[3],
  };
  MusterRpcCredentials *made = muster_rpc_credentials_new (&security, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  for (int i = 0; i < 4; i++)
    g_free (paths[i]);
  return made;
}

static void
make_files (Secured *f)
{
  f->folder = muster_test_tmpdir ();
  certificates_make (f->folder);
  g_autofree char *token = certificates_write (f->folder, "token", NAME "\n");
}

static Secured
secured_start (void)
{
  g_autoptr (GError) error = NULL;
  Secured f = {0};
  make_files (&f);
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  g_autoptr (MusterRpcCredentials) own =
      credentials (&f, "server.pem", "server.key", "ca.pem", "token");
  const MusterServerOptions options = {.credentials = own};
  f.server = muster_server_new (local, &options);
  int port = muster_server_listen (f.server, "127.0.0.1:0", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  int health_port = muster_server_listen_health (f.server, "127.0.0.1:0", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  f.address = g_strdup_printf ("127.0.0.1:%d", port);
  f.health_address = g_strdup_printf ("127.0.0.1:%d", health_port);
  muster_server_start (f.server);
  return f;
}

static void
secured_clear (Secured *f)
{
  muster_server_free (f->server);
  g_free (f->address);
  g_free (f->health_address);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Secured, secured_clear)

static gboolean
call (const char *address, MusterRpcCredentials *shown, const char *method, GError **error)
{
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, shown);
  const MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (client, method, &request, &options, NULL, error);
  return answer != NULL;
}

#define CREATE "/tensorflow.MasterService/CreateSession"
#define CHECK  "/grpc.health.v1.Health/Check"

#define EXPECT_LET_IN(address, shown, method)                                                      \
  do {                                                                                             \
    g_autoptr (GError) error_ = NULL;                                                              \
    MUSTER_EXPECT_TRUE (call (address, shown, method, &error_));                                   \
    MUSTER_EXPECT_NO_ERROR (error_);                                                               \
  } while (0)

MUSTER_TEST (Secured, lets_in_who_shows_certificate_and_token)
{
  g_auto (Secured) f = secured_start ();
  g_autoptr (MusterRpcCredentials) shown =
      credentials (&f, "client.pem", "client.key", "ca.pem", "token");

  EXPECT_LET_IN (f.address, shown, CREATE);
}

MUSTER_TEST (Secured, refuses_who_lacks_the_token_but_reports_its_health)
{
  static const char *const methods[] = {
      CREATE,
      "/tensorflow.MasterService/RunStep",
      "/tensorflow.MasterService/Reset",
      "/muster.Readiness/CreateKnown",
      "/muster.Readiness/Watch",
      "/muster.Readiness/Status",
      "/muster.Readiness/Renew",
      "/muster.Readiness/Claim",
      "/muster.Readiness/Announce",
      "/muster.Readiness/Drain",
      "/muster.Files/Read",
      "/muster.Files/Hold",
  };
  g_auto (Secured) f = secured_start ();
  g_autoptr (MusterRpcCredentials) shown =
      credentials (&f, "client.pem", "client.key", "ca.pem", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (methods); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("%s", methods[i]);
    MUSTER_EXPECT_FALSE (call (f.address, shown, methods[i], &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAUTHENTICATED);
  }
  EXPECT_LET_IN (f.address, shown, CHECK);
}

MUSTER_TEST (Secured, refuses_who_lacks_a_certificate)
{
  g_auto (Secured) f = secured_start ();
  g_autoptr (MusterRpcCredentials) anonymous = credentials (&f, NULL, NULL, "ca.pem", "token");
  g_autoptr (MusterRpcCredentials) stranger =
      credentials (&f, "other_client.pem", "other_client.key", "ca.pem", "token");
  MusterRpcCredentials *const shown[] = {NULL, anonymous, stranger};
  for (guint i = 0; i < G_N_ELEMENTS (shown); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (call (f.address, shown[i], CREATE, &error));
    MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, NAME) == NULL);
  }
}

MUSTER_TEST (Secured, reports_its_health_to_all_on_a_port_of_its_own)
{
  g_auto (Secured) f = secured_start ();
  EXPECT_LET_IN (f.health_address, NULL, CHECK);
}

MUSTER_TEST (Secured, can_query_itself)
{
  g_autoptr (GError) error = NULL;
  g_auto (Secured) f = secured_start ();
  MUSTER_EXPECT_TRUE (muster_server_check (f.server, 30 * MUSTER_SECOND, &error));
  MUSTER_EXPECT_TRUE (muster_server_check (f.server, 30 * MUSTER_SECOND, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  muster_health_service_stop (f.server->health);
  MUSTER_EXPECT_FALSE (muster_server_check (f.server, 30 * MUSTER_SECOND, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
}

/* --- where a server may listen --- */

static int
try_listen (const char *address, const MusterServerOptions *options, GError **error)
{
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  g_autoptr (MusterServer) server = muster_server_new (local, options);
  return muster_server_listen (server, address, error);
}

MUSTER_TEST (Listening, beyond_this_machine_needs_tls_or_a_word)
{
  Secured f = {0};
  make_files (&f);
  g_autoptr (MusterRpcCredentials) token = credentials (&f, NULL, NULL, NULL, "token");
  g_autoptr (MusterRpcCredentials) tls = credentials (&f, "server.pem", "server.key", NULL, NULL);
  MusterRpcCredentials *const too_little[] = {NULL, token};
  for (guint i = 0; i < G_N_ELEMENTS (too_little); i++) {
    g_autoptr (GError) error = NULL;
    const MusterServerOptions options = {.credentials = too_little[i]};
    MUSTER_EXPECT_EQ (try_listen ("0.0.0.0:0", &options, &error), 0);
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_PERMISSION_DENIED, "--tls-cert");
    EXPECT_SAYS (error, "--insecure");
  }
  const MusterServerOptions enough[] = {{.credentials = tls}, {.insecure = TRUE}};
  for (guint i = 0; i < G_N_ELEMENTS (enough); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_NE (try_listen ("0.0.0.0:0", &enough[i], &error), 0);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

MUSTER_TEST (Listening, on_this_machine_needs_nothing)
{
  static const char *const addresses[] = {"localhost:0", "127.0.0.1:0", "127.1.2.3:0"};
  for (guint i = 0; i < G_N_ELEMENTS (addresses); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_NE (try_listen (addresses[i], NULL, &error), 0);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

MUSTER_TEST (Listening, for_health_is_open_to_probes_from_anywhere)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  g_autoptr (MusterServer) server = muster_server_new (local, NULL);
  MUSTER_EXPECT_NE (muster_server_listen_health (server, "0.0.0.0:0", &error), 0);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* --- a gateway --- */

MUSTER_TEST (Gateway, passes_on_that_its_master_lost_the_session)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) behind = served_start ();
  g_auto (Served) gateway = served_start_over (behind.remote);
  g_autoptr (MusterSession) session = served_session (&gateway, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));
  MUSTER_EXPECT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (muster_master_reset (behind.local, NULL, test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (served_run (session, "init", &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  g_autoptr (MusterSession) another = served_session (&gateway, NULL);
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (another != NULL && served_run (another, "init", &error));
  MUSTER_EXPECT_NO_ERROR (error);
}
