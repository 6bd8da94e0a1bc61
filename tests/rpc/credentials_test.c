// SPDX-License-Identifier: Apache-2.0
#include "rpc/credentials.h"
#include "tests/gtest_shim.h"
#include "tests/rpc/certificates.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Credentials of these files of the folder (nullable); those that aren't wanted fail the test. */
static MusterRpcCredentials *
make (const char *certificate, const char *key, const char *ca, const char *token, GError **error)
{
  const char *folder = muster_test_tmpdir ();
  g_autofree char *certificate_path =
      certificate != NULL ? certificates_path (folder, certificate) : NULL;
  g_autofree char *key_path = key != NULL ? certificates_path (folder, key) : NULL;
  g_autofree char *ca_path = ca != NULL ? certificates_path (folder, ca) : NULL;
  g_autofree char *token_path = token != NULL ? certificates_path (folder, token) : NULL;
  MusterRpcSecurity security = {
      .certificate_file = certificate_path,
      .key_file = key_path,
      .ca_file = ca_path,
      .token_file = token_path,
  };
  return muster_rpc_credentials_new (&security, error);
}

static void
expect_refused (const char *certificate, const char *key, const char *ca, const char *token,
                const char *file, const char *why)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcCredentials) made = make (certificate, key, ca, token, &error);
  MUSTER_TRACE ("%s: %s", file, why);
  MUSTER_EXPECT_NULL (made);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, file);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, why) != NULL);
}

static void
write_file (const char *name, const char *text)
{
  g_autofree char *path = certificates_write (muster_test_tmpdir (), name, text);
}

static void
set_mode (const char *name, int mode)
{
  g_autofree char *path = certificates_path (muster_test_tmpdir (), name);
  MUSTER_EXPECT_EQ (g_chmod (path, mode), 0);
}

/* Of a server, by its token file. */
static MusterRpcCredentials *
make_server (const char *tokens, GError **error)
{
  g_autofree char *path = certificates_write (muster_test_tmpdir (), "tokens", tokens);
  MusterRpcSecurity security = {.token_file = path, .serves = TRUE};
  return muster_rpc_credentials_new (&security, error);
}

static void
expect_bad_tokens (const char *tokens, const char *why)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcCredentials) made = make_server (tokens, &error);
  MUSTER_TRACE ("%s", why);
  MUSTER_EXPECT_NULL (made);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, why);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "s3cret") == NULL);
}

static MusterRole
role_of (MusterRpcCredentials *credentials, const char *token)
{
  return muster_rpc_credentials_role (credentials, token, -1);
}

MUSTER_TEST (Credentials, of_nothing_are_plain_text)
{
  g_autoptr (GError) error = NULL;
  MusterRpcSecurity security = {0};
  g_autoptr (MusterRpcCredentials) plain = muster_rpc_credentials_new (&security, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_rpc_credentials_has_tls (plain));
  MUSTER_EXPECT_FALSE (muster_rpc_credentials_has_token (plain));
  MUSTER_EXPECT_FALSE (muster_rpc_credentials_has_tls (NULL));
  MUSTER_EXPECT_FALSE (muster_rpc_credentials_has_token (NULL));
}

MUSTER_TEST (Credentials, use_tls_when_asked_to_or_given_a_file)
{
  certificates_make (muster_test_tmpdir ());
  MusterRpcSecurity asked = {.tls = TRUE};

  g_autoptr (MusterRpcCredentials) by_word = muster_rpc_credentials_new (&asked, NULL);
  g_autoptr (MusterRpcCredentials) by_ca = make (NULL, NULL, "ca.pem", NULL, NULL);
  g_autoptr (MusterRpcCredentials) by_own = make ("client.pem", "client.key", NULL, NULL, NULL);

  MUSTER_EXPECT_TRUE (muster_rpc_credentials_has_tls (by_word));
  MUSTER_EXPECT_TRUE (muster_rpc_credentials_has_tls (by_ca));
  MUSTER_EXPECT_TRUE (muster_rpc_credentials_has_tls (by_own));
}

MUSTER_TEST (Credentials, name_the_file_that_is_wrong)
{
  const char *folder = muster_test_tmpdir ();
  certificates_make (folder);
  write_file ("text", "no PEM at all\n");
  write_file ("empty", "");
  g_autofree char *ca_path = certificates_path (folder, "ca.pem");
  g_autofree char *ca = NULL;
  g_file_get_contents (ca_path, &ca, NULL, NULL);
  g_autofree char *broken = g_strdup_printf ("%s-----BEGIN CERTIFICATE-----\nAAAA\n", ca);
  write_file ("broken", broken);

  expect_refused (NULL, NULL, "absent", NULL, "absent", "No such file");
  expect_refused (NULL, NULL, "text", NULL, "text", "contains no certificate");
  expect_refused (NULL, NULL, "empty", NULL, "empty", "contains no certificate");
  expect_refused (NULL, NULL, "broken", NULL, "broken", "invalid certificate");
  expect_refused (NULL, NULL, "ca.key", NULL, "ca.key", "contains no certificate");
  expect_refused ("text", "client.key", NULL, NULL, "text", "contains no certificate");
  set_mode ("client.pem", 0600);
  expect_refused ("client.pem", "text", NULL, NULL, "text", "contains no private key");
  expect_refused ("client.pem", "client.pem", NULL, NULL, "client.pem", "contains no private key");
  expect_refused ("client.pem", "server.key", NULL, NULL, "server.key", "client.pem");
  expect_refused ("client.pem", NULL, NULL, NULL, "", "the certificate has no key");
  expect_refused (NULL, "client.key", NULL, NULL, "", "the key has no certificate");
}

MUSTER_TEST (Credentials, refuse_a_key_with_a_password_without_asking_for_it)
{
  const char *folder = muster_test_tmpdir ();
  certificates_make (folder);
  g_autofree char *key = certificates_path (folder, "client.key");
  g_autofree char *locked = certificates_path (folder, "locked.key");
  const char *const command[] = {"openssl",  "ec",           "-in",  key,    "-aes128",
                                 "-passout", "pass:unknown", "-out", locked, NULL};
  g_autoptr (GError) error = NULL;
  g_spawn_sync (NULL, (char **)command, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL,
                NULL, NULL, NULL, NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  expect_refused ("client.pem", "locked.key", NULL, NULL, "locked.key", "without a password");
}

MUSTER_TEST (Credentials, take_a_token_without_what_an_editor_leaves_behind_it)
{
  write_file ("token", "s3cret-token \r\n\n");
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterRpcCredentials) made = make (NULL, NULL, NULL, "token", &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_rpc_credentials_has_token (made));
  MUSTER_EXPECT_FALSE (muster_rpc_credentials_has_tls (made));
}

MUSTER_TEST (Credentials, refuse_what_is_no_token_and_never_show_it)
{
  g_autofree char *just_too_long = g_strnfill (4097, 'x');
  g_autofree char *far_too_long = g_strnfill (100000, 'x');
  write_file ("blank", " \n\n");
  write_file ("two_lines", "s3cret\ns3cret\n");
  write_file ("bell", "s3cret\a");
  write_file ("umlaut", "s3cr\u00ebt");
  write_file ("longer", just_too_long);
  write_file ("longest", far_too_long);

  expect_refused (NULL, NULL, NULL, "absent", "absent", "No such file");
  expect_refused (NULL, NULL, NULL, "blank", "blank", "is empty");
  expect_refused (NULL, NULL, NULL, "two_lines", "two_lines", "one line");
  expect_refused (NULL, NULL, NULL, "bell", "bell", "printable");
  expect_refused (NULL, NULL, NULL, "umlaut", "umlaut", "printable");
  expect_refused (NULL, NULL, NULL, "longer", "longer", "too long");
  expect_refused (NULL, NULL, NULL, "longest", "longest", "too long");
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (make (NULL, NULL, NULL, "two_lines", &error));
  MUSTER_EXPECT_TRUE (strstr (error->message, "s3cret") == NULL);
}

MUSTER_TEST (Credentials, take_the_longest_token)
{
  g_autofree char *longest = g_strnfill (4096, 'x');
  g_autofree char *line = g_strconcat (longest, "\n", NULL);
  write_file ("token", line);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterRpcCredentials) made = make (NULL, NULL, NULL, "token", &error);

  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Credentials, refuse_secrets_that_other_users_can_read)
{
  static const int open_modes[] = {0604, 0640, 0620, 0610, 0666, 0644};
  certificates_make (muster_test_tmpdir ());
  write_file ("token", "s3cret-token\n");
  for (gsize i = 0; i < G_N_ELEMENTS (open_modes); i++) {
    set_mode ("token", open_modes[i]);
    set_mode ("client.key", open_modes[i]);
    if (geteuid () == 0 && open_modes[i] == 0640)
      continue; /* root's files may be read by their group */
    expect_refused (NULL, NULL, NULL, "token", "token", "chmod 600");
    expect_refused ("client.pem", "client.key", NULL, NULL, "client.key", "chmod 600");
  }
  set_mode ("token", 0400);
  set_mode ("client.key", 0600);
  set_mode ("client.pem", 0644);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcCredentials) made =
      make ("client.pem", "client.key", "ca.pem", "token", &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Tokens, have_roles_and_any_number_counts)
{
  g_autoptr (GError) error = NULL;
  /* printf '%s' hashed-token | sha256sum */
  g_autoptr (MusterRpcCredentials) served =
      make_server ("# two for the rotation\n\n"
                   "run first-token\n  run\tsecond-token  \r\n"
                   "read sha256:550643F45E135491C47BEA94823B37278D5DD91375B285D44001D005D1603A33\n"
                   "the-oldest-form\nadministrator",
                   &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (role_of (served, "first-token"), MUSTER_ROLE_RUN);
  MUSTER_EXPECT_EQ (role_of (served, "second-token"), MUSTER_ROLE_RUN);
  MUSTER_EXPECT_EQ (role_of (served, "hashed-token"), MUSTER_ROLE_READ);
  MUSTER_EXPECT_EQ (role_of (served, "the-oldest-form"), MUSTER_ROLE_ADMIN);
  MUSTER_EXPECT_EQ (role_of (served, "administrator"), MUSTER_ROLE_ADMIN);
  MUSTER_EXPECT_EQ (role_of (served, "run first-token"), MUSTER_ROLE_NONE);
  MUSTER_EXPECT_EQ (role_of (served, "first-toke"), MUSTER_ROLE_NONE);
  MUSTER_EXPECT_EQ (role_of (served, ""), MUSTER_ROLE_NONE);
  MUSTER_EXPECT_EQ (role_of (served, NULL), MUSTER_ROLE_NONE);
  MUSTER_EXPECT_EQ (muster_rpc_credentials_role (served, "first-token2", 11), MUSTER_ROLE_RUN);
}

MUSTER_TEST (Tokens, of_a_server_that_are_bad_are_named_by_line_and_never_shown)
{
  g_autofree char *too_long = g_strnfill (4097, 's');
  g_autofree char *long_line = g_strdup_printf ("read first\nrun %s\n", too_long);
  expect_bad_tokens ("# nothing\n\n", "is empty");
  expect_bad_tokens ("one\nrun\n", "line 2, has a role without a token");
  expect_bad_tokens ("read s3cr\u00ebt", "line 1, must be printable");
  expect_bad_tokens ("one\nrun sha256:07e25c\n", "line 2, is invalid");
  expect_bad_tokens (long_line, "line 2, is too long");
}

/* A line of one word is an administrator's token, so no misspelling may become one. */
MUSTER_TEST (Tokens, with_a_misspelt_role_or_hash_make_no_administrator)
{
  static const char *const unknown[] = {"Read s3cret",   "root s3cret",   "READ\ts3cret",
                                        "reader s3cret", "admin: s3cret", "run, s3cret"};
  static const char *const blanks[] = {"read s3cret token", "run s3cret\ttoken",
                                       "admin s3cret # the chief's"};
  static const char *const hashes[] = {"read SHA256:550643F45E", "run Sha256:550643f45e",
                                       "sha-256:550643f45e",     "admin sha512:550643f45e",
                                       "run sha256=550643f45e",  "sha256-VQZD9F4="};
  for (gsize i = 0; i < G_N_ELEMENTS (unknown); i++)
    expect_bad_tokens (unknown[i], "line 1, has an unknown role before the blank");
  for (gsize i = 0; i < G_N_ELEMENTS (blanks); i++)
    expect_bad_tokens (blanks[i], "line 1, must be printable ASCII without blanks");
  for (gsize i = 0; i < G_N_ELEMENTS (hashes); i++)
    expect_bad_tokens (hashes[i], "line 1, looks like a hash");
  expect_bad_tokens ("Admin", "line 1, has a role without a token");
  expect_bad_tokens ("read sha256: 550643f45e", "line 1, is invalid");

  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcCredentials) served = make_server ("shadow\nSHA256abc\nsha-ft:1\n", &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* A server that opens one at SIGHUP must not wait for its writer. */
MUSTER_TEST (Credentials, are_read_from_regular_files_alone)
{
  g_autofree char *huge = certificates_path (muster_test_tmpdir (), "huge");
  g_autofree char *pipe = certificates_path (muster_test_tmpdir (), "pipe");
  certificates_make (muster_test_tmpdir ());
  MUSTER_ASSERT_EQ (mkfifo (pipe, 0600), 0);
  write_file ("huge", "");
  MUSTER_ASSERT_EQ (truncate (huge, (off_t)1 << 40), 0);
  g_autofree char *zero = certificates_path (muster_test_tmpdir (), "zero");
  MUSTER_ASSERT_EQ (symlink ("/dev/zero", zero), 0);
  const char *const files[][2] = {{"pipe", "it is a pipe"},
                                  {"zero", "it is a device"},
                                  {".", "it is a directory"},
                                  {"huge", "is too large"}};
  for (gsize i = 0; i < G_N_ELEMENTS (files); i++) {
    expect_refused (NULL, NULL, NULL, files[i][0], "the token file", files[i][1]);
    expect_refused (NULL, NULL, files[i][0], NULL, "the CA file", files[i][1]);
    expect_refused (files[i][0], "client.key", NULL, NULL, "the certificate file", files[i][1]);
    expect_refused ("client.pem", files[i][0], NULL, NULL, "the key file", files[i][1]);
  }
}

MUSTER_TEST (Tokens, of_a_client_may_have_a_role_but_are_one_and_no_hash)
{
  write_file ("with_role", "# the training's\nrun s3cret-token\n");
  write_file ("hash", "sha256:550643f45e135491c47bea94823b37278d5dd91375b285d44001d005d1603a33\n");
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterRpcCredentials) made = make (NULL, NULL, NULL, "with_role", &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (role_of (made, "s3cret-token"), MUSTER_ROLE_RUN);
  expect_refused (NULL, NULL, NULL, "hash", "hash", "a client needs the token itself");
}

MUSTER_TEST (Roles, are_those_of_who_shows_no_certificate)
{
  certificates_make (muster_test_tmpdir ());
  g_autoptr (MusterRpcCredentials) tls = make ("server.pem", "server.key", NULL, NULL, NULL);
  g_autoptr (MusterRpcCredentials) mutual = make ("server.pem", "server.key", "ca.pem", NULL, NULL);

  MUSTER_EXPECT_EQ (role_of (NULL, NULL), MUSTER_ROLE_ADMIN);
  MUSTER_EXPECT_EQ (role_of (tls, NULL), MUSTER_ROLE_ADMIN);
  MUSTER_EXPECT_EQ (role_of (mutual, "any"), MUSTER_ROLE_NONE);
}

MUSTER_TEST (Roles, that_are_bad_are_refused)
{
  certificates_make (muster_test_tmpdir ());
  static const char *const bad[] = {"worker", "=read", "worker=none", "worker=root", "worker="};
  g_autofree char *ca = certificates_path (muster_test_tmpdir (), "ca.pem");
  const char *roles[] = {"worker=run", NULL, NULL};
  g_autoptr (GError) error = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) refused = NULL;
    roles[1] = bad[i];
    MusterRpcSecurity security = {.ca_file = ca, .roles = roles};
    MUSTER_TRACE ("%s", bad[i]);
    MUSTER_EXPECT_NULL (muster_rpc_credentials_new (&security, &refused));
    MUSTER_EXPECT_SAYS (refused, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "invalid role");
  }
  roles[1] = NULL;
  MusterRpcSecurity without_ca = {.roles = roles};
  MUSTER_EXPECT_NULL (muster_rpc_credentials_new (&without_ca, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "CA file");
}

/* --- files that change --- */

MUSTER_TEST (Reload, takes_tokens_that_were_added_and_drops_those_that_were_removed)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcCredentials) served = make_server ("run old\n", &error);
  MUSTER_ASSERT_NO_ERROR (error);

  write_file ("tokens", "run old\nread new\n");
  MUSTER_EXPECT_TRUE (muster_rpc_credentials_reload (served, &error));
  MUSTER_EXPECT_EQ (role_of (served, "old"), MUSTER_ROLE_RUN);
  MUSTER_EXPECT_EQ (role_of (served, "new"), MUSTER_ROLE_READ);

  write_file ("tokens", "read new\n");
  MUSTER_EXPECT_TRUE (muster_rpc_credentials_reload (served, &error));
  MUSTER_EXPECT_EQ (role_of (served, "old"), MUSTER_ROLE_NONE);
  MUSTER_EXPECT_EQ (role_of (served, "new"), MUSTER_ROLE_READ);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Reload, keeps_what_it_has_if_a_file_is_bad)
{
  g_autoptr (MusterRpcCredentials) served = make_server ("run old\n", NULL);
  static const char *const bad[] = {"", "run\n", "read \a\n"};
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;
    write_file ("tokens", bad[i]);
    MUSTER_EXPECT_FALSE (muster_rpc_credentials_reload (served, &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "tokens");
    MUSTER_EXPECT_EQ (role_of (served, "old"), MUSTER_ROLE_RUN);
  }
  g_autoptr (GError) error = NULL;
  write_file ("tokens", "run new\n");
  set_mode ("tokens", 0644);
  MUSTER_EXPECT_FALSE (muster_rpc_credentials_reload (served, &error));
  MUSTER_EXPECT_EQ (role_of (served, "new"), MUSTER_ROLE_NONE);
  set_mode ("tokens", 0600);
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (muster_rpc_credentials_reload (served, &error));
  MUSTER_EXPECT_EQ (role_of (served, "new"), MUSTER_ROLE_RUN);
}
