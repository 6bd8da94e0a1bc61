// SPDX-License-Identifier: Apache-2.0
#include "rpc/client/diagnose.h"
#include "rpc/grpc_private.h"
#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"
#include "tests/rpc/certificates.h"
#include "tests/rpc/echo.h"

#include <openssl/ssl.h>
#include <string.h>

static const char ECHO[] = "/test.Echo/Echo";
static const char HEALTH[] = "/test.Echo/Health";
static const char TOKEN[] = "s3cret-token";

/* A server with an address of its own, and what its clients are secured by. */
typedef struct {
  MusterRpcServer *server;
  char *address;
} Secured;

static void
on_echo (MusterRpcCall *call, GBytes *request, gpointer data G_GNUC_UNUSED)
{
  MUSTER_EXPECT_NULL (muster_rpc_call_header (call, "authorization"));
  g_auto (MusterRope) reply = MUSTER_ROPE_INIT;
  muster_rope_append (&reply, request);
  muster_rpc_call_reply (call, &reply);
}

static void
on_count (MusterRpcCall *call, GBytes *request, gpointer data G_GNUC_UNUSED)
{
  g_auto (MusterRope) message = MUSTER_ROPE_INIT;
  muster_rope_append (&message, request);
  muster_rpc_call_send (call, &message);
  muster_rpc_call_finish (call, NULL);
}

static void
secured_start (Secured *self, MusterRpcCredentials *credentials)
{
  g_autoptr (GError) error = NULL;
  self->server = muster_rpc_server_new ();
  muster_rpc_server_add_method (self->server, ECHO, on_echo, NULL);
  muster_rpc_server_add_method (self->server, "/test.Echo/Stream", on_count, NULL);
  muster_rpc_server_add_open_method (self->server, HEALTH, on_echo, NULL);
  int port = muster_rpc_server_listen (self->server, "127.0.0.1:0", credentials, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  self->address = g_strdup_printf ("127.0.0.1:%d", port);
  muster_rpc_server_start (self->server);
}

static void
secured_clear (Secured *self)
{
  muster_rpc_server_free (self->server);
  g_free (self->address);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Secured, secured_clear)

/* Of the test's files; NULL for what isn't used. Each has a token file of its own, which nobody
 * changes. */
static MusterRpcCredentials *
credentials_of (const char *own, const char *ca, const char *token)
{
  const char *folder = muster_test_tmpdir ();
  g_autofree char *certificate_name = g_strconcat (own != NULL ? own : "", ".pem", NULL);
  g_autofree char *key_name = g_strconcat (own != NULL ? own : "", ".key", NULL);
  g_autofree char *certificate = certificates_path (folder, certificate_name);
  g_autofree char *key = certificates_path (folder, key_name);
  g_autofree char *ca_path = ca != NULL ? certificates_path (folder, ca) : NULL;
  static int n_tokens;
  g_autofree char *token_name = g_strdup_printf ("token%d", n_tokens++);
  g_autofree char *token_path =
      token != NULL ? certificates_write (folder, token_name, token) : NULL;
  MusterRpcSecurity security = {
      .certificate_file = own != NULL ? certificate : NULL,
      .key_file = own != NULL ? key : NULL,
      .ca_file = ca_path,
      .token_file = token_path,
  };
  g_autoptr (GError) error = NULL;
  MusterRpcCredentials *made = muster_rpc_credentials_new (&security, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return made;
}

static GBytes *
call_at (const char *address, MusterRpcCredentials *credentials, const char *method, GError **error)
{
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, credentials);
  MusterRpcOptions options = echo_options ();
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&request), (const guint8 *)"hello", 5);
  return muster_rpc_client_call (client, method, &request, &options, NULL, error);
}

static void
expect_answer (const char *address, MusterRpcCredentials *credentials, const char *method)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) answer = call_at (address, credentials, method, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (answer, NULL), g_bytes_get_size (answer), "hello", 5);
}

static void
expect_refused (const char *address, MusterRpcCredentials *credentials, const char *method,
                MusterError code, const char *why)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) answer = call_at (address, credentials, method, &error);
  MUSTER_EXPECT_NULL (answer);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, code);
  MUSTER_TRACE ("%s", error != NULL ? error->message : "");
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, why) != NULL);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, TOKEN) == NULL);
}

/* Each kept 33 KB while it was idle. */
MUSTER_TEST (Tls, an_idle_connection_keeps_no_buffers)
{
  muster_grpc_init ();
  SSL_CTX *context = SSL_CTX_new (TLS_method ());
  SSL *connection = SSL_new (context);

  MUSTER_EXPECT_TRUE ((SSL_get_mode (connection) & SSL_MODE_RELEASE_BUFFERS) != 0);

  SSL_free (connection);
  SSL_CTX_free (context);
}

MUSTER_TEST (Tls, carries_calls_of_a_client_that_trusts_the_ca)
{
  certificates_make (muster_test_tmpdir ());
  g_autoptr (MusterRpcCredentials) served = credentials_of ("server", NULL, NULL);
  g_autoptr (MusterRpcCredentials) trusted = credentials_of (NULL, "ca.pem", NULL);
  g_auto (Secured) f = {0};
  secured_start (&f, served);

  expect_answer (f.address, trusted, ECHO);

  g_autofree char *by_name = g_strdup_printf ("localhost%s", strchr (f.address, ':'));
  expect_answer (by_name, trusted, ECHO);
}

MUSTER_TEST (Tls, carries_calls_over_ipv6)
{
  certificates_make (muster_test_tmpdir ());
  g_autoptr (MusterRpcCredentials) served = credentials_of ("server", NULL, NULL);
  g_autoptr (MusterRpcCredentials) trusted = credentials_of (NULL, "ca.pem", NULL);
  g_autoptr (MusterRpcServer) server = muster_rpc_server_new ();
  muster_rpc_server_add_method (server, ECHO, on_echo, NULL);
  int port = muster_rpc_server_listen (server, "[::1]:0", served, NULL);
  if (port == 0)
    MUSTER_SKIP ("no IPv6 here");
  muster_rpc_server_start (server);
  g_autofree char *address = g_strdup_printf ("[::1]:%d", port);

  expect_answer (address, trusted, ECHO);
}

MUSTER_TEST (Tls, refuses_a_server_that_the_ca_did_not_sign)
{
  certificates_make (muster_test_tmpdir ());
  g_autoptr (MusterRpcCredentials) served = credentials_of ("server", NULL, NULL);
  g_autoptr (MusterRpcCredentials) other = credentials_of (NULL, "other_ca.pem", NULL);
  MusterRpcSecurity systems = {.tls = TRUE};
  g_autoptr (MusterRpcCredentials) system = muster_rpc_credentials_new (&systems, NULL);
  g_auto (Secured) f = {0};
  secured_start (&f, served);

  expect_refused (
      f.address, other, ECHO, MUSTER_ERROR_UNAUTHENTICATED,
      "isn't trusted: the CA of --tls-ca didn't sign it, or one of the two has expired");
  expect_refused (f.address, system, ECHO, MUSTER_ERROR_UNAUTHENTICATED,
                  "isn't trusted; set --tls-ca to the CA that signed it");
}

MUSTER_TEST (Tls, refuses_a_server_of_another_name)
{
  certificates_make (muster_test_tmpdir ());
  g_autoptr (MusterRpcCredentials) served = credentials_of ("elsewhere", NULL, NULL);
  g_autoptr (MusterRpcCredentials) trusted = credentials_of (NULL, "ca.pem", NULL);
  g_auto (Secured) f = {0};
  secured_start (&f, served);

  expect_refused (f.address, trusted, ECHO, MUSTER_ERROR_UNAUTHENTICATED, "another host name");
}

MUSTER_TEST (Tls, between_both_demands_a_certificate_of_the_client)
{
  certificates_make (muster_test_tmpdir ());
  heard_begin (G_LOG_LEVEL_INFO);
  g_autoptr (MusterRpcCredentials) served = credentials_of ("server", "ca.pem", NULL);
  g_autoptr (MusterRpcCredentials) known = credentials_of ("client", "ca.pem", NULL);
  g_autoptr (MusterRpcCredentials) without = credentials_of (NULL, "ca.pem", NULL);
  g_autoptr (MusterRpcCredentials) stranger = credentials_of ("other_client", "ca.pem", NULL);
  g_auto (Secured) f = {0};
  secured_start (&f, served);

  expect_answer (f.address, known, ECHO);
  expect_refused (f.address, without, ECHO, MUSTER_ERROR_UNAVAILABLE, "if it requires a client");
  expect_refused (f.address, stranger, ECHO, MUSTER_ERROR_UNAVAILABLE, "trusts the CA");
  MUSTER_EXPECT_TRUE (heard_wait ("handshake-failed", "*peer did not return a certificate*"));
  heard_end ();
}

MUSTER_TEST (Tls, needs_a_certificate_on_a_server)
{
  certificates_make (muster_test_tmpdir ());
  g_autoptr (MusterRpcCredentials) incomplete = credentials_of (NULL, "ca.pem", NULL);
  g_autoptr (MusterRpcServer) server = muster_rpc_server_new ();
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_EQ (muster_rpc_server_listen (server, "127.0.0.1:0", incomplete, &error), 0);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* Says something to the port, and waits until the server ends it. */
static void
disturb (const char *address, const char *bytes, gsize size)
{
  g_autoptr (GSocketClient) client = g_socket_client_new ();
  g_socket_client_set_enable_proxy (client, FALSE);
  g_autoptr (GError) error = NULL;
  g_autoptr (GSocketConnection) connection =
      g_socket_client_connect_to_host (client, address, 0, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_socket_set_timeout (g_socket_connection_get_socket (connection), 30);
  g_output_stream_write_all (g_io_stream_get_output_stream (G_IO_STREAM (connection)), bytes, size,
                             NULL, NULL, NULL);
  g_socket_shutdown (g_socket_connection_get_socket (connection), FALSE, TRUE, NULL);
  char got[256];
  GInputStream *in = g_io_stream_get_input_stream (G_IO_STREAM (connection));
  gssize n;
  while ((n = g_input_stream_read (in, got, sizeof got, NULL, &error)) > 0)
    ;
  MUSTER_EXPECT_FALSE (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT));
}

MUSTER_TEST (Tls, port_survives_what_is_no_tls)
{
  certificates_make (muster_test_tmpdir ());
  g_autoptr (MusterRpcCredentials) served = credentials_of ("server", "ca.pem", TOKEN);
  g_autoptr (MusterRpcCredentials) known = credentials_of ("client", "ca.pem", TOKEN);
  g_auto (Secured) f = {0};
  secured_start (&f, served);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (f.address, known);
  MusterRpcOptions options = echo_options ();
  g_autoptr (GRand) random = g_rand_new_with_seed (4);
  char noise[4096];
  for (gsize i = 0; i < sizeof noise; i++)
    noise[i] = (char)g_rand_int (random);
  static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
  static const char hello[] = "\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03";

  for (int round = 0; round < 8; round++) {
    g_autoptr (GError) error = NULL;
    disturb (f.address, "", 0);
    disturb (f.address, preface, sizeof preface - 1);
    disturb (f.address, hello, sizeof hello - 1);
    disturb (f.address, "GET / HTTP/1.1\r\n\r\n", 18);
    disturb (f.address, noise, sizeof noise);
    g_autoptr (GBytes) answer = muster_rpc_client_call (client, ECHO, NULL, &options, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
  expect_answer (f.address, known, ECHO);
}

MUSTER_TEST (Tls, on_one_end_only_says_so)
{
  certificates_make (muster_test_tmpdir ());
  g_autoptr (MusterRpcCredentials) served = credentials_of ("server", NULL, NULL);
  g_autoptr (MusterRpcCredentials) trusted = credentials_of (NULL, "ca.pem", NULL);
  g_auto (Secured) secured = {0};
  secured_start (&secured, served);
  g_auto (Secured) plain = {0};
  secured_start (&plain, NULL);
  g_auto (MusterDiagnosis) found = {0};

  expect_refused (plain.address, trusted, ECHO, MUSTER_ERROR_UNAVAILABLE, "TLS handshake failed");
  expect_refused (secured.address, NULL, ECHO, MUSTER_ERROR_UNAVAILABLE, "if it speaks TLS");
  muster_diagnose (secured.address, FALSE, echo_options ().deadline_us, NULL, &found);
  MUSTER_TRACE ("%s", found.text);
  MUSTER_EXPECT_TRUE (strstr (found.text, "grpcs://") != NULL);
}

MUSTER_TEST (Token, is_demanded_with_every_call)
{
  g_autoptr (MusterRpcCredentials) right = credentials_of (NULL, NULL, TOKEN);
  g_autoptr (MusterRpcCredentials) wrong = credentials_of (NULL, NULL, "s3cret-tokem");
  g_autoptr (MusterRpcCredentials) shorter = credentials_of (NULL, NULL, "s3cret-toke");
  g_autoptr (MusterRpcCredentials) longer = credentials_of (NULL, NULL, "s3cret-token2");
  g_auto (Secured) f = {0};
  secured_start (&f, right);

  expect_answer (f.address, right, ECHO);
  expect_refused (f.address, NULL, ECHO, MUSTER_ERROR_UNAUTHENTICATED, "--token-file");
  expect_refused (f.address, wrong, ECHO, MUSTER_ERROR_UNAUTHENTICATED, "wrong token");
  expect_refused (f.address, shorter, ECHO, MUSTER_ERROR_UNAUTHENTICATED, "wrong token");
  expect_refused (f.address, longer, ECHO, MUSTER_ERROR_UNAUTHENTICATED, "wrong token");
  /* Who has no token doesn't learn what there is, either. */
  expect_refused (f.address, NULL, "/test.Echo/Nothing", MUSTER_ERROR_UNAUTHENTICATED, "token");
  expect_refused (f.address, right, "/test.Echo/Nothing", MUSTER_ERROR_UNIMPLEMENTED, "Nothing");
}

MUSTER_TEST (Token, is_not_demanded_for_an_open_method)
{
  g_autoptr (MusterRpcCredentials) right = credentials_of (NULL, NULL, TOKEN);
  g_autoptr (MusterRpcCredentials) wrong = credentials_of (NULL, NULL, "another");
  g_auto (Secured) f = {0};
  secured_start (&f, right);

  expect_answer (f.address, NULL, HEALTH);
  expect_answer (f.address, right, HEALTH);
  expect_answer (f.address, wrong, HEALTH);
}

MUSTER_TEST (Token, goes_with_streams_and_forgotten_calls)
{
  g_autoptr (MusterRpcCredentials) right = credentials_of (NULL, NULL, TOKEN);
  g_auto (Secured) f = {0};
  secured_start (&f, right);
  g_autoptr (MusterRpcClient) knows = muster_rpc_client_new (f.address, right);
  g_autoptr (MusterRpcClient) stranger = muster_rpc_client_new (f.address, NULL);
  MusterRpcOptions options = echo_options ();
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterRpcStream) stream =
      muster_rpc_client_open (knows, "/test.Echo/Stream", NULL, &options, &error);
  g_autoptr (GBytes) message =
      muster_rpc_stream_next_until (stream, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (message != NULL);
  g_autoptr (MusterRpcStream) refused =
      muster_rpc_client_open (stranger, "/test.Echo/Stream", NULL, &options, &error);
  MUSTER_EXPECT_NULL (muster_rpc_stream_next_until (refused, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAUTHENTICATED);
}

MUSTER_TEST (Token, goes_over_tls)
{
  certificates_make (muster_test_tmpdir ());
  g_autoptr (MusterRpcCredentials) served = credentials_of ("server", NULL, TOKEN);
  g_autoptr (MusterRpcCredentials) known = credentials_of (NULL, "ca.pem", TOKEN);
  g_autoptr (MusterRpcCredentials) without = credentials_of (NULL, "ca.pem", NULL);
  g_auto (Secured) f = {0};
  secured_start (&f, served);

  expect_answer (f.address, known, ECHO);
  expect_answer (f.address, without, HEALTH);
  expect_refused (f.address, without, ECHO, MUSTER_ERROR_UNAUTHENTICATED, "--token-file");
}

MUSTER_TEST (Token, of_the_greatest_length_fits_beside_the_headers)
{
  g_autofree char *longest = g_strnfill (4096, 'x');
  g_autoptr (MusterRpcCredentials) right = credentials_of (NULL, NULL, longest);
  g_auto (Secured) f = {0};
  secured_start (&f, right);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (f.address, right);
  g_autofree char *value = g_strnfill (4090, 'y');
  MusterRpcHeader header = {"a-key", value};
  MusterRpcOptions options = echo_options ();
  options.headers = &header;
  options.n_headers = 1;
  g_autoptr (GError) error = NULL;

  g_autoptr (GBytes) answer = muster_rpc_client_call (client, ECHO, NULL, &options, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Token, is_never_sent_in_plain_text_beyond_loopback)
{
  g_autoptr (MusterRpcCredentials) right = credentials_of (NULL, NULL, TOKEN);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new ("192.0.2.1:2222", right);
  MusterRpcOptions options = echo_options ();
  g_autoptr (GError) error = NULL;
  expect_refused ("192.0.2.1:2222", right, ECHO, MUSTER_ERROR_INVALID_ARGUMENT, "plain text");
  expect_refused ("chief:2222", right, ECHO, MUSTER_ERROR_INVALID_ARGUMENT, "grpcs://chief:2222");
  MUSTER_EXPECT_NULL (muster_rpc_client_open (client, ECHO, NULL, &options, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (Token, is_for_the_address_it_was_given_for)
{
  g_autoptr (MusterRpcCredentials) right = credentials_of (NULL, NULL, TOKEN);
  g_autoptr (MusterRpcServer) server = muster_rpc_server_new ();
  muster_rpc_server_add_method (server, ECHO, on_echo, NULL);
  int guarded = muster_rpc_server_listen (server, "127.0.0.1:0", right, NULL);
  int open = muster_rpc_server_listen (server, "127.0.0.1:0", NULL, NULL);
  muster_rpc_server_start (server);
  g_autofree char *guarded_at = g_strdup_printf ("127.0.0.1:%d", guarded);
  g_autofree char *open_at = g_strdup_printf ("127.0.0.1:%d", open);

  expect_answer (open_at, NULL, ECHO);
  expect_refused (guarded_at, NULL, ECHO, MUSTER_ERROR_UNAUTHENTICATED, "--token-file");
}
