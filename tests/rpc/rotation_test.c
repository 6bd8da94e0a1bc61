// SPDX-License-Identifier: Apache-2.0
/* What a caller may do, and secrets that are replaced while a server and its clients run. */
#include "cli/certs/issuer.h"
#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"
#include "tests/rpc/certificates.h"
#include "tests/rpc/echo.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK    "/test.Roles/Look"
#define STEP    "/test.Roles/Step"
#define RESET   "/test.Roles/Reset"
#define OPEN    "/test.Roles/Open"
#define NO_SUCH "/test.Roles/Nothing"

/* Files in a folder of their own, as an operator has them. */
typedef struct {
  MusterRpcServer *server;
  MusterRpcCredentials *credentials; /* the server's */
  char *address;
  GPtrArray *held; /* (element-type MusterRpcCall) streams that are open */
} Fixture;

/* Answers with the caller's role. */
static void
on_call (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  const char *role = muster_role_name (muster_rpc_call_role (call));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (muster_rpc_call_peer (call), "127.0.0.1:"));
  MUSTER_EXPECT_NULL (muster_rpc_call_header (call, "authorization"));
  g_auto (MusterRope) reply = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&reply), (const guint8 *)role, strlen (role));
  muster_rpc_call_reply (call, &reply);
}

/* Sends "a" and stays open. */
static void
on_stream (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  Fixture *f = data;
  g_auto (MusterRope) message = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&message), (const guint8 *)"a", 1);
  g_ptr_array_add (f->held, muster_rpc_call_ref (call));
  muster_rpc_call_send (call, &message);
}

static void
write_file (const char *name, const char *text)
{
  g_autofree char *path = certificates_write (muster_test_tmpdir (), name, text);
}

/* Puts a file in another's place, as atomic writers do. */
static void
replace (const char *name, const char *by)
{
  const char *folder = muster_test_tmpdir ();
  g_autofree char *to = certificates_path (folder, name);
  g_autofree char *from = certificates_path (folder, by);
  g_autofree char *text = NULL;
  MUSTER_ASSERT_TRUE (g_file_get_contents (from, &text, NULL, NULL));
  write_file (name, text);
}

/* A certificate and its key; while a look falls between the two, they don't fit together. */
static void
replace_pair (const char *name, const char *by)
{
  g_autofree char *pem = g_strconcat (name, ".pem", NULL);
  g_autofree char *key = g_strconcat (name, ".key", NULL);
  g_autofree char *by_pem = g_strconcat (by, ".pem", NULL);
  g_autofree char *by_key = g_strconcat (by, ".key", NULL);
  replace (pem, by_pem);
  replace (key, by_key);
}

static MusterRpcCredentials *
read_files (const char *own, const char *ca, const char *token, const char *const *roles,
            gboolean serves)
{
  const char *folder = muster_test_tmpdir ();
  g_autofree char *certificate = g_strdup_printf ("%s/%s.pem", folder, own);
  g_autofree char *key = g_strdup_printf ("%s/%s.key", folder, own);
  g_autofree char *ca_path = certificates_path (folder, ca != NULL ? ca : "");
  g_autofree char *token_path = certificates_path (folder, token != NULL ? token : "");
  const MusterRpcSecurity security = {
      .certificate_file = own != NULL ? certificate : NULL,
      .key_file = own != NULL ? key : NULL,
      .ca_file = ca != NULL ? ca_path : NULL,
      .token_file = token != NULL ? token_path : NULL,
      .serves = serves,
      .roles = roles,
  };
  g_autoptr (GError) error = NULL;
  MusterRpcCredentials *made = muster_rpc_credentials_new (&security, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return made;
}

/* A client's. */
static MusterRpcCredentials *
client_of (const char *own, const char *ca, const char *token)
{
  return read_files (own, ca, token, NULL, FALSE);
}

static void
start (Fixture *f, const char *own, const char *ca, const char *token, const char *const *roles)
{
  g_autoptr (GError) error = NULL;
  f->held = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_rpc_call_unref);
  f->credentials = read_files (own, ca, token, roles, TRUE);
  f->server = muster_rpc_server_new ();
  muster_rpc_server_add_method (f->server, LOOK, on_call, NULL);
  muster_rpc_server_add_method (f->server, STEP, on_call, NULL);
  muster_rpc_server_add_method (f->server, RESET, on_call, NULL);
  muster_rpc_server_add_method (f->server, "/test.Roles/Stream", on_stream, f);
  muster_rpc_server_add_open_method (f->server, OPEN, on_call, NULL);
  muster_rpc_server_require (f->server, LOOK, MUSTER_ROLE_READ);
  muster_rpc_server_require (f->server, RESET, MUSTER_ROLE_ADMIN);
  int port = muster_rpc_server_listen (f->server, "127.0.0.1:0", f->credentials, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  f->address = g_strdup_printf ("127.0.0.1:%d", port);
  muster_rpc_server_start (f->server);
}

static void
fixture_clear (Fixture *f)
{
  muster_rpc_server_stop (f->server, 0);
  g_ptr_array_unref (f->held);
  muster_rpc_server_free (f->server);
  muster_rpc_credentials_unref (f->credentials);
  g_free (f->address);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static GBytes *
call (MusterRpcClient *client, const char *method, GError **error)
{
  MusterRpcOptions options = echo_options ();
  return muster_rpc_client_call (client, method, NULL, &options, NULL, error);
}

/* The role that the call has on the server. */
static void
expect_role (MusterRpcClient *client, const char *method, MusterRole role)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) answer = call (client, method, &error);
  MUSTER_TRACE ("%s", method);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (answer, NULL), g_bytes_get_size (answer),
                       muster_role_name (role), strlen (muster_role_name (role)));
}

static void
expect_refused (MusterRpcClient *client, const char *method, MusterError code, const char *why)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) answer = call (client, method, &error);
  MUSTER_TRACE ("%s: %s", method, error != NULL ? error->message : "");
  MUSTER_EXPECT_NULL (answer);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, code, why);
}

static void
reload (MusterRpcCredentials *credentials)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_rpc_credentials_reload (credentials, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Roles, of_tokens_decide_which_methods_may_be_called)
{
  write_file ("tokens", "read looks\nrun works\nadmin rules\n");
  write_file ("looks", "looks\n");
  write_file ("works", "works\n");
  write_file ("rules", "rules\n");
  g_auto (Fixture) f = {0};
  start (&f, NULL, NULL, "tokens", NULL);
  g_autoptr (MusterRpcCredentials) looks = client_of (NULL, NULL, "looks");
  g_autoptr (MusterRpcCredentials) works = client_of (NULL, NULL, "works");
  g_autoptr (MusterRpcCredentials) rules = client_of (NULL, NULL, "rules");
  g_autoptr (MusterRpcClient) looker = muster_rpc_client_new (f.address, looks);
  g_autoptr (MusterRpcClient) worker = muster_rpc_client_new (f.address, works);
  g_autoptr (MusterRpcClient) ruler = muster_rpc_client_new (f.address, rules);
  g_autoptr (MusterRpcClient) nobody = muster_rpc_client_new (f.address, NULL);

  expect_role (looker, LOOK, MUSTER_ROLE_READ);
  expect_refused (looker, STEP, MUSTER_ERROR_PERMISSION_DENIED, "Step needs the role 'run'");
  expect_refused (looker, RESET, MUSTER_ERROR_PERMISSION_DENIED, "this token has 'read'");
  expect_role (worker, LOOK, MUSTER_ROLE_RUN);
  expect_role (worker, STEP, MUSTER_ROLE_RUN);
  expect_refused (worker, RESET, MUSTER_ERROR_PERMISSION_DENIED, "needs the role 'admin'");
  expect_role (ruler, RESET, MUSTER_ROLE_ADMIN);
  expect_refused (ruler, NO_SUCH, MUSTER_ERROR_UNIMPLEMENTED, "Nothing");
  expect_refused (nobody, LOOK, MUSTER_ERROR_UNAUTHENTICATED, "requires a token");
  expect_refused (nobody, NO_SUCH, MUSTER_ERROR_UNAUTHENTICATED, "requires a token");
  expect_role (nobody, OPEN, MUSTER_ROLE_NONE);
}

MUSTER_TEST (Roles, are_all_without_tokens)
{
  g_auto (Fixture) f = {0};
  start (&f, NULL, NULL, NULL, NULL);
  g_autoptr (MusterRpcClient) anybody = muster_rpc_client_new (f.address, NULL);

  expect_role (anybody, RESET, MUSTER_ROLE_ADMIN);
}

/* "client.pem" is of CN=client and DNS:worker. */
MUSTER_TEST (Roles, of_certificates_are_by_their_names)
{
  static const struct {
    const char *roles[3];
    MusterRole role;
  } cases[] = {
      {{NULL}, MUSTER_ROLE_ADMIN},
      {{"client=run", NULL}, MUSTER_ROLE_RUN},
      {{"worker=read", NULL}, MUSTER_ROLE_READ},
      {{"worker=read", "client=run", NULL}, MUSTER_ROLE_RUN},
      {{"another=admin", "*=read", NULL}, MUSTER_ROLE_READ},
      {{"another=admin", NULL}, MUSTER_ROLE_NONE},
  };
  certificates_make (muster_test_tmpdir ());
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Fixture) f = {0};
    start (&f, "server", "ca.pem", NULL, cases[i].roles);
    g_autoptr (MusterRpcCredentials) own = client_of ("client", "ca.pem", NULL);
    g_autoptr (MusterRpcClient) client = muster_rpc_client_new (f.address, own);
    if (cases[i].role == MUSTER_ROLE_NONE)
      expect_refused (client, LOOK, MUSTER_ERROR_PERMISSION_DENIED, "'client' has no role");
    else
      expect_role (client, LOOK, cases[i].role);
    if (cases[i].role < MUSTER_ROLE_RUN)
      expect_refused (client, STEP, MUSTER_ERROR_PERMISSION_DENIED, "needs the role 'run'");
  }
}

MUSTER_TEST (Roles, of_certificate_and_token_are_the_lower_one)
{
  static const char *const roles[] = {"client=run", NULL};
  certificates_make (muster_test_tmpdir ());
  write_file ("tokens", "read looks\nadmin rules\n");
  write_file ("looks", "looks");
  write_file ("rules", "rules");
  g_auto (Fixture) f = {0};
  start (&f, "server", "ca.pem", "tokens", roles);
  g_autoptr (MusterRpcCredentials) looks = client_of ("client", "ca.pem", "looks");
  g_autoptr (MusterRpcCredentials) rules = client_of ("client", "ca.pem", "rules");
  g_autoptr (MusterRpcClient) looker = muster_rpc_client_new (f.address, looks);
  g_autoptr (MusterRpcClient) ruler = muster_rpc_client_new (f.address, rules);

  expect_role (looker, LOOK, MUSTER_ROLE_READ);
  expect_refused (looker, STEP, MUSTER_ERROR_PERMISSION_DENIED, "run");
  expect_role (ruler, STEP, MUSTER_ROLE_RUN);
  expect_refused (ruler, RESET, MUSTER_ERROR_PERMISSION_DENIED, "admin");
}

/* A server with one token, which the client's file has too. */
static void
start_with_token (Fixture *f)
{
  write_file ("tokens", "run old\n");
  write_file ("token", "old\n");
  start (f, NULL, NULL, "tokens", NULL);
}

MUSTER_TEST (Rotation, of_a_token_fails_no_call)
{
  g_auto (Fixture) f = {0};
  start_with_token (&f);
  g_autoptr (MusterRpcCredentials) own = client_of (NULL, NULL, "token");
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (f.address, own);
  expect_role (client, STEP, MUSTER_ROLE_RUN);

  write_file ("tokens", "run old\nrun new\n");
  reload (f.credentials);
  expect_role (client, STEP, MUSTER_ROLE_RUN);
  write_file ("token", "new\n");
  reload (own);
  expect_role (client, STEP, MUSTER_ROLE_RUN);
  write_file ("tokens", "run new\n");
  reload (f.credentials);
  expect_role (client, STEP, MUSTER_ROLE_RUN);

  write_file ("token", "old\n");
  reload (own);
  expect_refused (client, STEP, MUSTER_ERROR_UNAUTHENTICATED, "wrong token");
}

/* The server hasn't looked at its file since: the interval of its looks isn't over. */
MUSTER_TEST (Rotation, to_a_token_that_was_just_added_fails_no_call)
{
  g_auto (Fixture) f = {0};
  start_with_token (&f);
  for (int i = 0; i < 20; i++) {
    g_autofree char *added = g_strdup_printf ("run new%d\n", i);
    g_autofree char *token = g_strdup_printf ("new%d\n", i);
    write_file ("tokens", added);
    write_file ("token", token);
    g_autoptr (MusterRpcCredentials) own = client_of (NULL, NULL, "token");
    g_autoptr (MusterRpcClient) client = muster_rpc_client_new (f.address, own);
    expect_role (client, STEP, MUSTER_ROLE_RUN);
  }
}

/* Neither side has looked at its file since. */
MUSTER_TEST (Rotation, of_a_token_on_both_sides_at_once_fails_no_call)
{
  g_auto (Fixture) f = {0};
  start_with_token (&f);
  g_autoptr (MusterRpcCredentials) own = client_of (NULL, NULL, "token");
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (f.address, own);
  expect_role (client, STEP, MUSTER_ROLE_RUN);
  for (int i = 0; i < 20; i++) {
    g_autofree char *added = g_strdup_printf ("run new%d\n", i);
    g_autofree char *token = g_strdup_printf ("new%d\n", i);
    write_file ("token", token);
    write_file ("tokens", added);
    reload (f.credentials);
    expect_role (client, STEP, MUSTER_ROLE_RUN);
  }
}

/* Of Kubernetes: the file is a link, by way of a folder that is swapped. */
MUSTER_TEST (Rotation, of_files_is_noticed_without_a_word)
{
  const char *folder = muster_test_tmpdir ();
  g_autofree char *first = certificates_path (folder, "first");
  g_autofree char *second = certificates_path (folder, "second");
  g_autofree char *data = certificates_path (folder, "data");
  g_autofree char *next = certificates_path (folder, "next");
  g_autofree char *link = certificates_path (folder, "tokens");
  g_mkdir (first, 0700);
  g_mkdir (second, 0700);
  write_file ("first/tokens", "run old\n");
  write_file ("second/tokens", "run new\n");
  MUSTER_ASSERT_EQ (symlink ("first", data), 0);
  MUSTER_ASSERT_EQ (symlink ("second", next), 0);
  MUSTER_ASSERT_EQ (symlink ("data/tokens", link), 0);
  write_file ("old", "old\n");
  write_file ("new", "new\n");
  g_auto (Fixture) f = {0};
  start (&f, NULL, NULL, "tokens", NULL);
  g_autoptr (MusterRpcCredentials) old = client_of (NULL, NULL, "old");
  g_autoptr (MusterRpcCredentials) new = client_of (NULL, NULL, "new");
  g_autoptr (MusterRpcClient) before = muster_rpc_client_new (f.address, old);
  g_autoptr (MusterRpcClient) after = muster_rpc_client_new (f.address, new);
  expect_role (before, STEP, MUSTER_ROLE_RUN);

  MUSTER_ASSERT_EQ (g_rename (next, data), 0);

  const gint64 deadline_us = echo_options ().deadline_us;
  gboolean is_let_in = FALSE;
  while (!is_let_in && muster_clock_now_us (muster_system_clock ()) < deadline_us) {
    g_autoptr (GBytes) answer = call (after, STEP, NULL);
    is_let_in = answer != NULL;
  }
  MUSTER_EXPECT_TRUE (is_let_in);
  expect_refused (before, STEP, MUSTER_ERROR_UNAUTHENTICATED, "wrong token");
}

/* The server's next certificate is of another authority: who trusts only that one can connect. The
 * open stream and its connection stay. */
MUSTER_TEST (Rotation, of_a_servers_certificate_counts_for_new_connections)
{
  certificates_make (muster_test_tmpdir ());
  replace ("own.pem", "server.pem");
  replace ("own.key", "server.key");
  g_auto (Fixture) f = {0};
  start (&f, "own", NULL, NULL, NULL);
  g_autoptr (MusterRpcCredentials) trusts = client_of (NULL, "ca.pem", NULL);
  g_autoptr (MusterRpcCredentials) trusts_other = client_of (NULL, "other_ca.pem", NULL);
  g_autoptr (MusterRpcClient) before = muster_rpc_client_new (f.address, trusts);
  g_autoptr (MusterRpcClient) refused = muster_rpc_client_new (f.address, trusts_other);
  expect_role (before, STEP, MUSTER_ROLE_ADMIN);
  expect_refused (refused, STEP, MUSTER_ERROR_UNAUTHENTICATED, "isn't trusted");
  g_clear_pointer (&refused, muster_rpc_client_unref); /* it would go on trying */

  replace ("own.pem", "other_server.pem");
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (muster_rpc_credentials_reload (f.credentials, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "is not the key");
  replace ("own.key", "other_server.key");
  reload (f.credentials);

  g_autoptr (MusterRpcClient) after = muster_rpc_client_new (f.address, trusts_other);
  expect_role (after, STEP, MUSTER_ROLE_ADMIN);
  expect_role (before, STEP, MUSTER_ROLE_ADMIN);
}

/* The server trusts the other authority from now on, too; the client's next certificate is that
 * one's. Its stream goes on over the connection that it has. */
MUSTER_TEST (Rotation, of_a_clients_certificate_fails_no_call)
{
  certificates_make (muster_test_tmpdir ());
  replace ("mine.pem", "client.pem");
  replace ("mine.key", "client.key");
  replace ("cas.pem", "ca.pem");
  static const char *const roles[] = {"client=run", "other_client=read", NULL};
  g_auto (Fixture) f = {0};
  start (&f, "server", "cas.pem", NULL, roles);
  g_autoptr (MusterRpcCredentials) own = client_of ("mine", "ca.pem", NULL);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (f.address, own);
  MusterRpcOptions options = echo_options ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcStream) stream =
      muster_rpc_client_open (client, "/test.Roles/Stream", NULL, &options, &error);
  g_autoptr (GBytes) first =
      muster_rpc_stream_next_until (stream, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (first != NULL);

  replace ("cas.pem", "other_ca.pem");
  reload (f.credentials);
  expect_role (client, LOOK, MUSTER_ROLE_RUN); /* over the connection that it has */
  replace ("mine.pem", "other_client.pem");
  replace ("mine.key", "other_client.key");
  reload (own);
  expect_role (client, LOOK, MUSTER_ROLE_READ);

  g_auto (MusterRope) message = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&message), (const guint8 *)"b", 1);
  muster_rpc_call_send (f.held->pdata[0], &message);
  g_autoptr (GBytes) second =
      muster_rpc_stream_next_until (stream, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (second != NULL);
  muster_rpc_call_finish (f.held->pdata[0], NULL);
}

#define N_CALLERS   4
#define N_ROTATIONS 12

typedef struct {
  MusterRpcClient *client;
  gint is_over; /* atomic */
  gint n_calls; /* atomic */
} Load;

/* Calls until it is over; NULL or the first failure. */
static gpointer
call_on (gpointer data)
{
  Load *load = data;
  GError *error = NULL;
  while (!g_atomic_int_get (&load->is_over) && error == NULL) {
    g_autoptr (GBytes) answer = call (load->client, STEP, &error);
    g_atomic_int_inc (&load->n_calls);
  }
  return error;
}

/* Waits until there were some calls more. */
static void
let_call (Load *load)
{
  const int before = g_atomic_int_get (&load->n_calls);
  const gint64 deadline_us = echo_options ().deadline_us;
  while (g_atomic_int_get (&load->n_calls) < before + 5 * N_CALLERS &&
         muster_clock_now_us (muster_system_clock ()) < deadline_us)
    g_thread_yield ();
}

/* Certificates of both sides and the token, from one to the other and back. */
MUSTER_TEST (Rotation, of_all_under_load_fails_no_call)
{
  static const char *const clients[] = {"client", "other_client"};
  static const char *const servers[] = {"server", "other_server"};
  static const char *const tokens[] = {"token0", "token1"};
  certificates_make (muster_test_tmpdir ());
  g_autofree char *ca_path = certificates_path (muster_test_tmpdir (), "ca.pem");
  g_autofree char *other_path = certificates_path (muster_test_tmpdir (), "other_ca.pem");
  g_autofree char *ca = NULL, *other_ca = NULL;
  g_file_get_contents (ca_path, &ca, NULL, NULL);
  g_file_get_contents (other_path, &other_ca, NULL, NULL);
  g_autofree char *both = g_strconcat (ca, other_ca, NULL);
  write_file ("cas.pem", both);
  write_file ("token0", "one\n");
  write_file ("token1", "another\n");
  write_file ("tokens", "run one\nrun another\n");
  replace_pair ("mine", "client");
  replace_pair ("own", "server");
  replace ("token", "token0");
  g_auto (Fixture) f = {0};
  start (&f, "own", "cas.pem", "tokens", NULL);
  g_autoptr (MusterRpcCredentials) mine = client_of ("mine", "cas.pem", "token");
  Load load = {.client = muster_rpc_client_new (f.address, mine)};
  GThread *threads[N_CALLERS];
  for (int i = 0; i < N_CALLERS; i++)
    threads[i] = g_thread_new ("caller", call_on, &load);

  for (int i = 1; i <= N_ROTATIONS; i++) {
    replace_pair ("own", servers[i % 2]);
    reload (f.credentials);
    let_call (&load);
    replace_pair ("mine", clients[i % 2]);
    replace ("token", tokens[i % 2]);
    reload (mine);
    let_call (&load);
  }

  g_atomic_int_set (&load.is_over, TRUE);
  for (int i = 0; i < N_CALLERS; i++) {
    g_autoptr (GError) error = g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (error);
  }
  muster_rpc_client_unref (load.client);
}

/* --- what the log has --- */

/* Looks at the files, as calls do, until the event is there. */
static gboolean
refresh_until (MusterRpcCredentials *credentials, const char *event, const char *pattern)
{
  const gint64 deadline_us = echo_options ().deadline_us;
  while (heard_count (event, pattern) == 0 &&
         muster_clock_now_us (muster_system_clock ()) < deadline_us) {
    muster_rpc_credentials_refresh (credentials);
    g_thread_yield ();
  }
  return heard_count (event, pattern) > 0;
}

MUSTER_TEST (Log, has_each_replacement_once_and_no_secret)
{
  certificates_make (muster_test_tmpdir ());
  replace ("own.pem", "server.pem");
  replace ("own.key", "server.key");
  write_file ("tokens", "run s3cret-old\n");
  g_autoptr (MusterRpcCredentials) own = read_files ("own", NULL, "tokens", NULL, TRUE);
  heard_begin (G_LOG_LEVEL_DEBUG);

  reload (own);
  MUSTER_EXPECT_EQ (heard_count ("reload", NULL), 0U); /* nothing is new */
  write_file ("tokens", "run s3cret-old\nread s3cret-new\n");
  MUSTER_EXPECT_TRUE (refresh_until (own, "reload", "the tokens of '*tokens' were replaced: 2"));
  replace ("own.pem", "other_server.pem");
  replace ("own.key", "other_server.key");
  MUSTER_EXPECT_TRUE (
      refresh_until (own, "reload", "the certificates of '*own.pem' were replaced*"));
  reload (own);

  MUSTER_EXPECT_EQ (heard_count ("reload", NULL), 2U);
  MUSTER_EXPECT_EQ (heard_count (NULL, "*s3cret*"), 0U);
  g_autofree char *until = heard_field ("reload", "MUSTER_UNTIL");
  MUSTER_EXPECT_TRUE (until != NULL && strlen (until) == strlen ("2126-01-01T00:00:00Z"));
  heard_end ();
}

MUSTER_TEST (Log, warns_once_of_a_file_that_stays_bad)
{
  write_file ("tokens", "run s3cret-old\n");
  g_autoptr (MusterRpcCredentials) own = read_files (NULL, NULL, "tokens", NULL, TRUE);
  heard_begin (G_LOG_LEVEL_INFO);

  write_file ("tokens", "s3cret-\anew\n");
  MUSTER_EXPECT_TRUE (refresh_until (own, "reload", "*in use are kept: *line 1*"));
  MUSTER_EXPECT_EQ (heard_level ("reload"), G_LOG_LEVEL_WARNING);
  MUSTER_EXPECT_EQ (muster_rpc_credentials_role (own, "s3cret-old", -1), MUSTER_ROLE_RUN);
  write_file ("tokens", "run s3cret-last\n");
  MUSTER_EXPECT_TRUE (refresh_until (own, "reload", "*were replaced: 1"));

  MUSTER_EXPECT_EQ (heard_count ("reload", NULL), 2U);
  MUSTER_EXPECT_EQ (heard_count (NULL, "*s3cret*"), 0U);
  heard_end ();
}

MUSTER_TEST (Log, has_refused_calls_and_counts_those_that_it_leaves_out)
{
  write_file ("tokens", "read looks\n");
  write_file ("looks", "looks\n");
  g_auto (Fixture) f = {0};
  start (&f, NULL, NULL, "tokens", NULL);
  g_autoptr (MusterRpcCredentials) looks = client_of (NULL, NULL, "looks");
  g_autoptr (MusterRpcClient) looker = muster_rpc_client_new (f.address, looks);
  g_autoptr (MusterRpcClient) nobody = muster_rpc_client_new (f.address, NULL);
  heard_begin (G_LOG_LEVEL_INFO);

  expect_refused (nobody, LOOK, MUSTER_ERROR_UNAUTHENTICATED, "token");
  expect_refused (looker, STEP, MUSTER_ERROR_PERMISSION_DENIED, "role");
  MUSTER_EXPECT_TRUE (heard_wait ("refused", "*requires a token*"));
  MUSTER_EXPECT_TRUE (heard_wait ("refused", "*Step needs the role 'run'*"));
  g_autofree char *method = heard_field ("refused", "MUSTER_METHOD");
  g_autofree char *role = heard_field ("refused", "MUSTER_ROLE");
  MUSTER_EXPECT_STREQ (method, STEP);
  MUSTER_EXPECT_STREQ (role, "read");
  for (int i = 0; i < 20; i++)
    expect_refused (nobody, LOOK, MUSTER_ERROR_UNAUTHENTICATED, "token");
  MUSTER_EXPECT_TRUE (heard_count ("refused", NULL) < 20);
  heard_end ();
}

MUSTER_TEST (Log, warns_of_a_certificate_that_has_expired)
{
  static const char *const hosts[] = {"localhost", NULL};
  g_auto (MusterIssued) ca = {0};
  g_auto (MusterIssued) expired = {0};
  g_auto (MusterIssued) valid = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterIssuer) issuer = muster_issuer_new ("test", 1, &ca, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_issuer_issue (issuer, "server", hosts, -1, &expired, &error));
  MUSTER_EXPECT_TRUE (muster_issuer_issue (issuer, "server", hosts, 1, &valid, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  write_file ("own.pem", valid.certificate);
  write_file ("own.key", valid.key.text);
  heard_begin (G_LOG_LEVEL_INFO);

  g_autoptr (MusterRpcCredentials) own = read_files ("own", NULL, NULL, NULL, TRUE);
  MUSTER_EXPECT_EQ (heard_count ("certificate", NULL), 0U);
  write_file ("own.pem", expired.certificate);
  write_file ("own.key", expired.key.text);
  reload (own);
  MUSTER_EXPECT_EQ (heard_count ("certificate", "*own.pem' expired at *; replace it"), 1U);
  g_autoptr (MusterRpcCredentials) again = read_files ("own", NULL, NULL, NULL, TRUE);
  MUSTER_EXPECT_EQ (heard_count ("certificate", NULL), 2U);
  heard_end ();
}
