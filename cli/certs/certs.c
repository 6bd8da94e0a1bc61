// SPDX-License-Identifier: Apache-2.0
/* `muster certs`: makes an authority, certificates for servers and clients, and tokens, as files
 * in a directory, and prints the options that use them. */
#include "cli/certs/certs.h"

#include "base/files/read_file_private.h"
#include "cli/certs/issuer.h"
#include "cli/common/cli.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <openssl/rand.h>
#include <string.h>

#define DEFAULT_DAYS 365
#define MOST_DAYS    36500
#define CA_DAYS      3650
#define TOKEN_BYTES  32
#define MAX_TOKENS   ((gsize)1 << 20) /* bytes of the file */

static const char summary[] =
    "Makes in DIR what a secured server and its clients need, and keeps what exists already: a\n"
    "certificate authority (ca.pem, ca.key), certificates with keys for the server (server.pem,\n"
    "server.key) and a client (client.pem, client.key), and a token for each role (admin.token,\n"
    "run.token, read.token), with their hashes for the server (tokens).\n\n"
    "  muster serve --listen=0.0.0.0:2222 --tls-cert=DIR/server.pem --tls-key=DIR/server.key \\\n"
    "      --token-file=DIR/tokens\n"
    "  muster status grpcs://HOST:2222 --tls-ca=DIR/ca.pem --token-file=DIR/read.token\n\n"
    "Give each machine only what it needs: ca.key and *.token are secrets, and no machine needs\n"
    "ca.key. With --tls-ca=DIR/ca.pem the server requires a client certificate as well.";

typedef struct {
  char *folder;            /* (owned) */
  char **hosts, **clients; /* (owned) (nullable) */
  gint64 days;
  gboolean renew, renew_tokens;
} Certs;

static void
certs_clear (Certs *self)
{
  g_free (self->folder);
  g_strfreev (self->hosts);
  g_strfreev (self->clients);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Certs, certs_clear)

/* --- files --- */

static char *
path_of (const Certs *self, const char *name, const char *suffix)
{
  g_autofree char *file = g_strconcat (name, suffix, NULL);
  return g_build_filename (self->folder, file, NULL);
}

/* In the old one's place as a whole, so that a server never reads half of it. */
static gboolean
write_file (const char *path, const char *text, gsize size, int mode, GError **error)
{
  return g_file_set_contents_full (path, text, (gssize)size,
                                   G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE,
                                   mode, error);
}

/* The key first: a server that reads both between the two keeps what it has, and reads them again.
 */
static gboolean
write_pair (const Certs *self, const char *name, const MusterIssued *issued, GError **error)
{
  g_autofree char *certificate = path_of (self, name, ".pem");
  g_autofree char *key = path_of (self, name, ".key");
  if (!write_file (key, issued->key.text, issued->key.size, 0600, error) ||
      !write_file (certificate, issued->certificate, strlen (issued->certificate), 0644, error))
    return FALSE;
  muster_cli_say (stdout, "made %s, %s\n", certificate, key);
  return TRUE;
}

/* --- certificates --- */

static MusterIssuer *
take_authority (const Certs *self, GError **error)
{
  g_autofree char *certificate = path_of (self, "ca", ".pem");
  g_autofree char *key = path_of (self, "ca", ".key");
  if (g_file_test (certificate, G_FILE_TEST_EXISTS) || g_file_test (key, G_FILE_TEST_EXISTS))
    return muster_issuer_load (certificate, key, error);
  g_auto (MusterIssued) issued = {0};
  g_autofree char *name = g_strdup_printf ("muster %08x", g_random_int ());
  g_autoptr (MusterIssuer) made =
      muster_issuer_new (name, (int)MAX (self->days, CA_DAYS), &issued, error);
  if (made == NULL || !write_pair (self, "ca", &issued, error))
    return NULL;
  return g_steal_pointer (&made);
}

/* hosts (nullable): a client's. */
static gboolean
make_certificate (const Certs *self, MusterIssuer *authority, const char *name,
                  const char *const *hosts, GError **error)
{
  g_autofree char *path = path_of (self, name, ".pem");
  if (!self->renew && g_file_test (path, G_FILE_TEST_EXISTS)) {
    muster_cli_say (stdout, "kept %s; --renew makes it again\n", path);
    return TRUE;
  }
  g_auto (MusterIssued) issued = {0};
  return muster_issuer_issue (authority, name, hosts, (int)self->days, &issued, error) &&
         write_pair (self, name, &issued, error);
}

static gboolean
make_certificates (const Certs *self, GError **error)
{
  static const char *const own[] = {"localhost", "127.0.0.1", "::1"};
  static const char *const one_client[] = {"client", NULL};
  g_autoptr (MusterIssuer) authority = take_authority (self, error);
  g_autoptr (GPtrArray) hosts = g_ptr_array_new ();
  for (char **host = self->hosts; host != NULL && *host != NULL; host++)
    g_ptr_array_add (hosts, *host);
  for (gsize i = 0; i < G_N_ELEMENTS (own); i++)
    g_ptr_array_add (hosts, (gpointer)own[i]);
  g_ptr_array_add (hosts, NULL);
  if (authority == NULL ||
      !make_certificate (self, authority, "server", (const char *const *)hosts->pdata, error))
    return FALSE;
  const char *const *clients =
      self->clients != NULL ? (const char *const *)self->clients : one_client;
  for (; *clients != NULL; clients++)
    if (!make_certificate (self, authority, *clients, NULL, error))
      return FALSE;
  return TRUE;
}

/* --- tokens --- */

/* A new token in its file, and its line for the server. */
static gboolean
make_token (const Certs *self, const char *role, GString *lines, GError **error)
{
  guint8 bytes[TOKEN_BYTES];
  char token[2 * TOKEN_BYTES + 2] = "";
  if (RAND_bytes (bytes, sizeof bytes) != 1)
    return muster_fail (error, MUSTER_ERROR_INTERNAL, "no random numbers for a token");
  for (gsize i = 0; i < TOKEN_BYTES; i++)
    g_snprintf (token + 2 * i, 3, "%02x", bytes[i]);
  g_autofree char *hash = g_compute_checksum_for_string (G_CHECKSUM_SHA256, token, -1);
  g_autofree char *path = path_of (self, role, ".token");
  gsize size = strlen (token);
  token[size] = '\n';
  gboolean is_written = write_file (path, token, size + 1, 0600, error);
  explicit_bzero (token, sizeof token);
  explicit_bzero (bytes, sizeof bytes);
  if (is_written) {
    g_string_append_printf (lines, "%s sha256:%s\n", role, hash);
    muster_cli_say (stdout, "made %s\n", path);
  }
  return is_written;
}

/* Older tokens stay valid, until their lines are removed: clients change theirs one by one. */
static gboolean
make_tokens (const Certs *self, GError **error)
{
  static const char *const roles[] = {"admin", "run", "read"};
  g_autofree char *path = path_of (self, "tokens", "");
  g_autofree char *before = NULL;
  if (g_file_test (path, G_FILE_TEST_EXISTS) && !self->renew_tokens) {
    muster_cli_say (stdout, "kept %s; --renew-tokens adds new ones\n", path);
    return TRUE;
  }
  const MusterFile file = {path, "the tokens", MAX_TOKENS, FALSE};
  if (g_file_test (path, G_FILE_TEST_EXISTS) && !muster_file_read (&file, &before, NULL, error))
    return FALSE;
  g_autoptr (GString) lines = g_string_new (NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (roles); i++)
    if (!make_token (self, roles[i], lines, error))
      return FALSE;
  if (before != NULL)
    g_string_append_printf (lines, "# before the last --renew-tokens\n%s", before);
  if (!write_file (path, lines->str, lines->len, 0600, error))
    return FALSE;
  muster_cli_say (stdout, "made %s\n", path);
  return TRUE;
}

/* --- the command --- */

static gboolean
parse (Certs *self, int argc, char **argv, GError **error)
{
  g_auto (MusterCliOptions) none = {0};
  g_auto (GStrv) rest = NULL;
  const GOptionEntry entries[] = {
      {"host", 0, 0, G_OPTION_ARG_STRING_ARRAY, &self->hosts,
       "host name or IP address of the server, besides localhost; may be repeated (default: none)",
       "HOST"},
      {"client", 0, 0, G_OPTION_ARG_STRING_ARRAY, &self->clients,
       "name of a client, and of its files; may be repeated (default: client)", "NAME"},
      {"days", 0, 0, G_OPTION_ARG_INT64, &self->days,
       "days for which the certificates are valid (default: 365; the authority's 3650)", "N"},
      {"renew", 0, 0, G_OPTION_ARG_NONE, &self->renew,
       "make new certificates for the server and the clients, signed by the same authority", NULL},
      {"renew-tokens", 0, 0, G_OPTION_ARG_NONE, &self->renew_tokens,
       "make new tokens; the hashes of the old ones stay in the file tokens until you remove them",
       NULL},
      {NULL}};
  self->days = DEFAULT_DAYS;
  if (!muster_cli_parse (argc, argv, "DIR", summary, entries, 0, &none, &rest, error))
    return FALSE;
  if (g_strv_length (rest) != 1)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "certs needs DIR; see `muster help certs`");
  if (self->days < 1 || self->days > MOST_DAYS)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid --days=%" G_GINT64_FORMAT " (use 1 to %d)", self->days, MOST_DAYS);
  for (char **host = self->hosts; host != NULL && *host != NULL; host++)
    if (!muster_issuer_check_host (*host, error))
      return FALSE;
  for (char **name = self->clients; name != NULL && *name != NULL; name++) {
    if (!muster_issuer_check_name (*name, error))
      return FALSE;
    if (g_str_equal (*name, "ca") || g_str_equal (*name, "server"))
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "invalid --client=%s: the files of that name aren't a client's", *name);
  }
  self->folder = g_strdup (rest[0]);
  return TRUE;
}

int
muster_cli_certs (int argc, char **argv)
{
  g_auto (Certs) self = {0};
  g_autoptr (GError) error = NULL;
  if (!parse (&self, argc, argv, &error))
    return muster_cli_fail (error);
  if (g_mkdir_with_parents (self.folder, 0700) != 0) {
    muster_fail (&error, MUSTER_ERROR_INVALID_ARGUMENT, "can't create '%s': %s", self.folder,
                 g_strerror (errno));
    return muster_cli_fail (error);
  }
  if (!make_certificates (&self, &error) || !make_tokens (&self, &error))
    return muster_cli_fail (error);
  return MUSTER_EXIT_DONE;
}
