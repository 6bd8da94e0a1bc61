// SPDX-License-Identifier: Apache-2.0
#include "server/core/server_private.h"
#include "tests/doubles/heard.h"
#include "tests/rpc/certificates.h"
#include "tests/server/http_visit.h"

#include "engine/session/local_master.h"

/* Files as from `muster serve --tls-cert --tls-key --tls-ca --token-file`; each (nullable). */
static HttpFixture
start_with (const char *certificate, const char *ca, const char *tokens)
{
  g_autoptr (GError) error = NULL;
  const char *folder = muster_test_tmpdir ();
  g_autofree char *certificate_file = NULL, *key_file = NULL, *ca_file = NULL, *token_file = NULL;
  if (certificate != NULL) {
    certificates_make (folder);
    g_autofree char *key = g_strconcat (certificate, ".key", NULL);
    g_autofree char *pem = g_strconcat (certificate, ".pem", NULL);
    certificate_file = certificates_path (folder, pem);
    key_file = certificates_path (folder, key);
  }
  if (ca != NULL)
    ca_file = certificates_path (folder, ca);
  if (tokens != NULL)
    token_file = certificates_write (folder, "tokens", tokens);
  const MusterRpcSecurity security = {.certificate_file = certificate_file,
                                      .key_file = key_file,
                                      .ca_file = ca_file,
                                      .token_file = token_file,
                                      .serves = TRUE};
  g_autoptr (MusterRpcCredentials) credentials = muster_rpc_credentials_new (&security, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  const MusterServerOptions options = {.credentials = credentials};
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  HttpFixture f = {.server = muster_server_new (local, &options)};
  f.port = muster_server_listen_http (f.server, "localhost:0", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (f.server);
  return f;
}

static const char *const closed[] = {"/", "/api/status", "/api/events", "/metrics"};
static const char *const open[] = {"/healthz", "/readyz"};

/* --- tokens --- */

MUSTER_TEST (HttpAccess, needs_a_token_for_all_but_health_and_readiness)
{
  g_auto (HttpFixture) f = start_with (NULL, NULL, "read a-reader\nrun a-runner\nan-admin\n");
  for (guint i = 0; i < G_N_ELEMENTS (open); i++)
    EXPECT_ANSWER (&f, "GET", open[i], "200", "");
  for (guint i = 0; i < G_N_ELEMENTS (closed); i++) {
    g_autofree char *heard = http_ask (&f, "GET", closed[i]);
    EXPECT_RECEIVED (heard, "401", "WWW-Authenticate: Basic realm=\"muster\"");
    MUSTER_EXPECT_TRUE (strstr (heard, "a-reader") == NULL);
  }
}

MUSTER_TEST (HttpAccess, takes_each_token_as_bearer_or_as_a_browsers_password)
{
  static const struct {
    const char *authorization; /* {…}: in Base64 */
    const char *status;
  } cases[] = {
      {"Bearer a-reader", "200"},
      {"bearer a-runner", "200"},
      {"Bearer an-admin", "200"},
      {"Basic {anyone:a-reader}", "200"},
      {"Basic {:an-admin}", "200"},
      {"Bearer a-reade", "401"},
      {"Bearer a-reader2", "401"},
      {"Bearer ", "401"},
      {"Bearer", "401"},
      {"Basic {a-reader}", "401"},
      {"Basic {:}", "401"},
      {"Basic !!", "401"},
      {"Digest a-reader", "401"},
      {"", "401"},
  };
  g_auto (HttpFixture) f = start_with (NULL, NULL, "read a-reader\nrun a-runner\nan-admin\n");
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (GStrv) parts = g_strsplit_set (cases[i].authorization, "{}", 3);
    g_autofree char *encoded = parts[0] != NULL && parts[1] != NULL
                                   ? g_base64_encode ((const guchar *)parts[1], strlen (parts[1]))
                                   : g_strdup ("");
    g_autofree char *header =
        g_strdup_printf ("Authorization: %s%s\r\n", parts[0] != NULL ? parts[0] : "", encoded);
    g_autofree char *heard = http_ask_with (&f, "GET", "/metrics", header);
    MUSTER_TRACE ("%s: %s", header, heard);
    MUSTER_EXPECT_TRUE (strncmp (heard + strlen ("HTTP/1.1 "), cases[i].status, 3) == 0);
  }
}

/* A name that only this client knows, as Prometheus in a cluster. */
MUSTER_TEST (HttpAccess, answers_by_any_name_to_who_has_a_token)
{
  g_auto (HttpFixture) f = start_with (NULL, NULL, "read a-reader\n");
  g_autofree char *named =
      http_ask_with (&f, "GET", "/metrics", "X-Nothing: 1\r\nAuthorization: Bearer a-reader\r\n");
  g_autoptr (GSocketConnection) connection = http_visit (&f);
  http_say (connection, "GET /metrics HTTP/1.1\r\nHost: muster.prod.svc\r\n"
                        "Authorization: Bearer a-reader\r\n\r\n");
  g_autofree char *by_another = http_hear (connection);

  EXPECT_RECEIVED (named, "200", "muster_sessions 0");
  EXPECT_RECEIVED (by_another, "200", "muster_sessions 0");
}

/* One line for each, without a token in it. */
MUSTER_TEST (HttpAccess, logs_who_is_refused_and_why)
{
  g_auto (HttpFixture) f = start_with (NULL, NULL, "read a-reader\n");
  heard_begin (G_LOG_LEVEL_INFO);

  g_autofree char *heard =
      http_ask_with (&f, "GET", "/metrics", "Authorization: Bearer wrong-one\r\n");

  MUSTER_EXPECT_TRUE (heard_wait ("refused", "an HTTP request was refused (401): a token with*"));
  MUSTER_EXPECT_EQ (heard_count (NULL, "*wrong-one*"), 0u);
  g_autofree char *peer = heard_field ("refused", "MUSTER_PEER");
  MUSTER_EXPECT_TRUE (peer != NULL && g_str_has_prefix (peer, "127.0.0.1:"));
  heard_end ();
  EXPECT_RECEIVED (heard, "401", "");
}

/* --- TLS --- */

/* Asks by HTTPS: "STATUS SHA256-OF-THE-CERTIFICATE", or the error. */
static char *
ask_securely (HttpFixture *f, const char *path, const char *token, const char *ca)
{
  static const char script[] =
      "import hashlib, http.client, ssl, sys\n"
      "port, path, token, ca = sys.argv[1:]\n"
      "context = ssl.create_default_context(cafile=ca)\n"
      "connection = http.client.HTTPSConnection('localhost', int(port), context=context, "
      "timeout=30)\n"
      "try:\n"
      "    connection.connect()\n"
      "    certificate = connection.sock.getpeercert(True)\n"
      "    connection.request('GET', path, headers={'Authorization': 'Bearer ' + token})\n"
      "    print(connection.getresponse().status, hashlib.sha256(certificate).hexdigest())\n"
      "except Exception as error:\n"
      "    print(error)\n";
  g_autoptr (GError) error = NULL;
  g_autofree char *ca_path = certificates_path (muster_test_tmpdir (), ca);
  g_autofree char *port = g_strdup_printf ("%d", f->port);
  g_autoptr (GSubprocess) client =
      g_subprocess_new (G_SUBPROCESS_FLAGS_STDOUT_PIPE, &error, "/usr/bin/python3", "-c", script,
                        port, path, token, ca_path, NULL);
  char *said = NULL;
  if (client != NULL)
    g_subprocess_communicate_utf8 (client, NULL, NULL, &said, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return said != NULL ? said : g_strdup ("");
}

MUSTER_TEST (HttpAccess, speaks_tls_with_the_servers_certificate)
{
  g_auto (HttpFixture) f = start_with ("server", NULL, "read a-reader\n");
  g_autofree char *known = ask_securely (&f, "/metrics", "a-reader", "ca.pem");
  g_autofree char *unknown = ask_securely (&f, "/metrics", "another", "ca.pem");
  g_autofree char *healthy = ask_securely (&f, "/healthz", "", "ca.pem");
  g_autofree char *mistrusted = ask_securely (&f, "/metrics", "a-reader", "other_ca.pem");
  g_autofree char *plain = http_ask (&f, "GET", "/healthz");

  MUSTER_EXPECT_TRUE (g_str_has_prefix (known, "200 "));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (unknown, "401 "));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (healthy, "200 "));
  MUSTER_EXPECT_TRUE (strstr (mistrusted, "CERTIFICATE_VERIFY_FAILED") != NULL);
  MUSTER_EXPECT_FALSE (g_str_has_prefix (plain, "HTTP/1.1 200"));
}

/* Both files by a rename, as an agent that rotates certificates does. */
static void
replace (const char *name, const char *by)
{
  g_autofree char *from = certificates_path (muster_test_tmpdir (), by);
  g_autofree char *text = NULL;
  MUSTER_EXPECT_TRUE (g_file_get_contents (from, &text, NULL, NULL));
  g_autofree char *written = certificates_write (muster_test_tmpdir (), name, text);
}

MUSTER_TEST (HttpAccess, uses_a_new_certificate_without_a_restart)
{
  g_auto (HttpFixture) f = start_with ("server", NULL, NULL);
  g_autofree char *before = ask_securely (&f, "/healthz", "", "ca.pem");
  MUSTER_EXPECT_TRUE (g_str_has_prefix (before, "200 "));

  replace ("server.key", "other_server.key");
  replace ("server.pem", "other_server.pem");

  gint64 until_us = test_deadline ();
  gboolean is_new = FALSE;
  while (!is_new && muster_clock_now_us (muster_system_clock ()) < until_us) {
    g_autofree char *said = ask_securely (&f, "/healthz", "", "other_ca.pem");
    is_new = g_str_has_prefix (said, "200 ");
  }
  MUSTER_EXPECT_TRUE (is_new);
}

MUSTER_TEST (HttpAccess, says_that_http_needs_tokens_where_clients_need_certificates)
{
  g_auto (HttpFixture) f = start_with ("server", "ca.pem", NULL);
  g_autofree char *page = ask_securely (&f, "/", "", "ca.pem");
  g_autofree char *healthy = ask_securely (&f, "/healthz", "", "ca.pem");

  MUSTER_EXPECT_TRUE (g_str_has_prefix (page, "403 "));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (healthy, "200 "));
}
