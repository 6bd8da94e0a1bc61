// SPDX-License-Identifier: Apache-2.0
#include "rpc/credentials.h"
#include "tests/gtest_shim.h"
#include "tests/rpc/certificates.h"

#include <string.h>

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
  MusterRpcSecurity security = {certificate_path, key_path, ca_path, token_path, FALSE};
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
