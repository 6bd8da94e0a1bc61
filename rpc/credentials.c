// SPDX-License-Identifier: Apache-2.0
/* Tokens and certificates of a client or server, read from files. The files are looked at again
 * at intervals, so that a new certificate or token takes effect without a restart. */
#include "rpc/credentials_private.h"

#include "base/clock.h"
#include "base/log_private.h"
#include "base/require_private.h"
#include "base/wait_private.h"
#include "rpc/grpc_private.h"
#include "rpc/pem_private.h"
#include "rpc/roles_private.h"
#include "rpc/tokens_private.h"

#include <grpc/grpc_security_constants.h>
#include <string.h>

/* Four times the size of a system's bundle of authorities. */
#define MAX_PEM ((gsize)1 << 20)

/* The minimum interval of looks at the files. */
#define LOOK_INTERVAL_US MUSTER_SECOND
/* How long others wait for a look. */
#define PATIENCE_US (5 * MUSTER_SECOND)

static const char scheme[] = "Bearer ";

/* What was read from the files. */
typedef struct {
  MusterSecret certificate, key, ca; /* text is NULL where there is none */
  MusterTokens *tokens;              /* (owned) (nullable) */
  gboolean has_authorization;        /* a client with a token */
  grpc_slice authorization;          /* "Bearer TOKEN" */
} Material;

enum { CERTIFICATE, KEY, CA, TOKEN, N_FILES };

struct _MusterRpcCredentials {
  gatomicrefcount refs;
  char *paths[N_FILES]; /* (owned) (nullable) */
  gboolean has_tls, has_token, serves, has_roles;
  GHashTable *roles; /* (owned) (element-type utf8 MusterRole) */
  gint64 looked_us;  /* atomic: last look at the files */

  /* Files are read on a thread of its own, one look at a time. */
  GMutex look_lock; /* guards what follows, up to lock */
  GCond looked;     /* of is_looking */
  gboolean is_looking;
  gint64 look_began_us;
  GError *look_error;   /* (owned) (nullable) of the last look */
  gboolean is_asked;    /* atomic; it reads whether they changed or not, and who asked reports */
  gboolean is_in_doubt; /* of the looking thread: refused once, warned about if they stay so */

  GMutex lock; /* guards all below */
  Material material;
  guint version;                 /* of certificate, key and ca; also read without the lock */
  guint token_version;           /* the same of the tokens */
  MusterFileMark marks[N_FILES]; /* of the files that were read or refused last */
  /* (nullable) One for all clients, which thus can share connections; from the first channel on,
   * since it starts gRPC. */
  grpc_channel_credentials *channel;
};

G_DEFINE_BOXED_TYPE (MusterRpcCredentials, muster_rpc_credentials, muster_rpc_credentials_ref,
                     muster_rpc_credentials_unref)

/* --- what is read from files --- */

static void
material_clear (Material *self)
{
  muster_secret_clear (&self->certificate);
  muster_secret_clear (&self->key);
  muster_secret_clear (&self->ca);
  g_clear_pointer (&self->tokens, muster_tokens_unref);
  if (self->has_authorization)
    grpc_slice_unref (self->authorization);
  self->has_authorization = FALSE;
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Material, material_clear)

static gboolean
fail_credentials (GError **error, const char *text)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", text);
}

static gboolean
read_certificates (MusterSecret *pem, const char *path, const char *what, GError **error)
{
  const MusterSecretFile file = {path, what, MAX_PEM, FALSE};
  return path == NULL || (muster_secret_read (pem, &file, error) &&
                          muster_pem_check_certificates (pem, path, error));
}

static gboolean
read_pems (Material *self, char *const *paths, GError **error)
{
  const MusterSecretFile key = {paths[KEY], "the key file", MAX_PEM, TRUE};
  if (paths[CERTIFICATE] == NULL && paths[KEY] != NULL)
    return fail_credentials (error, "the key has no certificate; set both files");
  if (paths[CERTIFICATE] != NULL && paths[KEY] == NULL)
    return fail_credentials (error, "the certificate has no key; set both files");
  if (!read_certificates (&self->ca, paths[CA], "the CA file", error) ||
      !read_certificates (&self->certificate, paths[CERTIFICATE], "the certificate file", error))
    return FALSE;
  return key.path == NULL || (muster_secret_read (&self->key, &key, error) &&
                              muster_pem_check_key (&self->key, key.path, &self->certificate,
                                                    paths[CERTIFICATE], error));
}

static void
wipe (void *text, size_t size)
{
  explicit_bzero (text, size);
  g_free (text);
}

static gboolean
read_token (Material *self, const char *path, gboolean serves, GError **error)
{
  g_auto (MusterSecret) token = {0};
  if (path == NULL)
    return TRUE;
  self->tokens = muster_tokens_read (path, serves ? NULL : &token, error);
  if (self->tokens == NULL || serves)
    return self->tokens != NULL;
  gsize head = strlen (scheme);
  char *text = g_malloc (head + token.size);
  memcpy (text, scheme, head);
  memcpy (text + head, token.text, token.size);
  self->authorization = grpc_slice_new_with_len (text, head + token.size, wipe);
  self->has_authorization = TRUE;
  return TRUE;
}

static gboolean
read_material (const MusterRpcCredentials *self, Material *material, GError **error)
{
  return read_pems (material, self->paths, error) &&
         read_token (material, self->paths[TOKEN], self->serves, error);
}

static gboolean
has_same_pems (const Material *one, const Material *another)
{
  return muster_secret_equal (&one->certificate, &another->certificate) &&
         muster_secret_equal (&one->key, &another->key) &&
         muster_secret_equal (&one->ca, &another->ca);
}

/* --- credentials --- */

static grpc_channel_credentials *
make_channel_credentials (const MusterRpcCredentials *self)
{
  const Material *material = &self->material;
  if (!self->has_tls)
    return grpc_insecure_credentials_create ();
  grpc_ssl_pem_key_cert_pair own = {material->key.text, material->certificate.text};
  return grpc_ssl_credentials_create_ex (material->ca.text,
                                         material->key.text != NULL ? &own : NULL, NULL, NULL);
}

/* Of seconds since 1970; NULL for 0. (transfer full) */
static char *
instant_of (gint64 unix_s)
{
  g_autoptr (GDateTime) instant = unix_s > 0 ? g_date_time_new_from_unix_utc (unix_s) : NULL;
  return instant != NULL ? g_date_time_format_iso8601 (instant) : NULL;
}

/* The other side refuses it, and says only that it doesn't trust it. */
static void
warn_if_expired (const char *file, const MusterSecret *certificate)
{
  if (certificate->text == NULL || !muster_pem_has_expired (certificate))
    return;
  g_autofree char *until = instant_of (muster_pem_expiry (certificate));
  muster_log (G_LOG_LEVEL_WARNING, "certificate", "MUSTER_FILE", file, "MUSTER_UNTIL", until,
              "MESSAGE", "the certificate in '%s' expired at %s; replace it", file, until);
}

static void
look_at_files (const MusterRpcCredentials *self, MusterFileMark marks[N_FILES])
{
  for (int i = 0; i < N_FILES; i++)
    marks[i] = muster_file_mark (self->paths[i]);
}

static gboolean
read_first (MusterRpcCredentials *self, const MusterRpcSecurity *security, GError **error)
{
  static const char *const none[] = {NULL};
  self->roles = muster_roles_read (security->roles != NULL ? security->roles : none, error);
  if (self->roles == NULL)
    return FALSE;
  self->has_roles = g_hash_table_size (self->roles) > 0;
  if (self->has_roles && self->paths[CA] == NULL)
    return fail_credentials (error, "roles are given to client certificates; set the CA file that "
                                    "they are signed by");
  look_at_files (self, self->marks);
  return read_material (self, &self->material, error);
}

MusterRpcCredentials *
muster_rpc_credentials_new (const MusterRpcSecurity *security, GError **error)
{
  muster_require (error, NULL, security);
  muster_openssl_init ();
  g_autoptr (MusterRpcCredentials) self = g_new0 (MusterRpcCredentials, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  g_mutex_init (&self->look_lock);
  g_cond_init (&self->looked);
  self->paths[CERTIFICATE] = g_strdup (security->certificate_file);
  self->paths[KEY] = g_strdup (security->key_file);
  self->paths[CA] = g_strdup (security->ca_file);
  self->paths[TOKEN] = g_strdup (security->token_file);
  self->serves = security->serves;
  self->version = 1;
  self->looked_us = muster_clock_now_us (muster_system_clock ());
  if (!read_first (self, security, error))
    return NULL;
  self->has_tls = security->tls || self->paths[CERTIFICATE] != NULL || self->paths[CA] != NULL;
  self->has_token = self->paths[TOKEN] != NULL;
  warn_if_expired (self->paths[CERTIFICATE], &self->material.certificate);
  return g_steal_pointer (&self);
}

MusterRpcCredentials *
muster_rpc_credentials_ref (MusterRpcCredentials *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_rpc_credentials_unref (MusterRpcCredentials *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  material_clear (&self->material);
  g_clear_pointer (&self->channel, grpc_channel_credentials_release);
  g_clear_pointer (&self->roles, g_hash_table_unref);
  for (int i = 0; i < N_FILES; i++)
    g_free (self->paths[i]);
  g_clear_error (&self->look_error);
  g_mutex_clear (&self->lock);
  g_mutex_clear (&self->look_lock);
  g_cond_clear (&self->looked);
  g_free (self);
}

gboolean
muster_rpc_credentials_has_tls (const MusterRpcCredentials *self)
{
  return self != NULL && self->has_tls;
}

gboolean
muster_rpc_credentials_has_token (const MusterRpcCredentials *self)
{
  return self != NULL && self->has_token;
}

gboolean
muster_rpc_credentials_has_certificate (const MusterRpcCredentials *self)
{
  return self != NULL && self->paths[CERTIFICATE] != NULL;
}

gboolean
muster_rpc_credentials_has_ca (const MusterRpcCredentials *self)
{
  return self != NULL && self->paths[CA] != NULL;
}

gboolean
muster_rpc_credentials_has_guard (const MusterRpcCredentials *self)
{
  return self != NULL && (self->has_token || self->has_roles);
}

/* --- reading the files again --- */

/* What became of it, for the log. */
typedef struct {
  gboolean is_read, has_new_pems, has_new_tokens;
  gint64 end_s; /* of the certificate's validity, since 1970; 0: there is none */
  gsize n_tokens;
  GError *error; /* (owned) (nullable) */
} Outcome;

/* Call with the lock held. */
static void
take_over (MusterRpcCredentials *self, Material *material, Outcome *outcome)
{
  outcome->has_new_pems = !has_same_pems (&self->material, material);
  outcome->has_new_tokens = !muster_tokens_equal (self->material.tokens, material->tokens);
  if (outcome->has_new_pems) {
    g_clear_pointer (&self->channel, grpc_channel_credentials_release);
    g_atomic_int_inc (&self->version);
  }
  if (outcome->has_new_tokens)
    g_atomic_int_inc (&self->token_version);
  if (outcome->has_new_pems && material->certificate.text != NULL)
    outcome->end_s = muster_pem_expiry (&material->certificate);
  if (outcome->has_new_pems)
    warn_if_expired (self->paths[CERTIFICATE], &material->certificate);
  if (material->tokens != NULL)
    outcome->n_tokens = muster_tokens_size (material->tokens);
  Material before = self->material;
  self->material = *material;
  *material = before; /* wiped by the caller */
}

/* Reads all files; what is in use is replaced only if all of them are good. On the looking thread.
 */
static void
read_again (MusterRpcCredentials *self, Outcome *outcome)
{
  g_auto (Material) material = {0};
  MusterFileMark marks[N_FILES];
  look_at_files (self, marks);
  outcome->is_read = read_material (self, &material, &outcome->error);
  g_mutex_lock (&self->lock);
  memcpy (self->marks, marks, sizeof marks);
  if (outcome->is_read)
    take_over (self, &material, outcome);
  g_mutex_unlock (&self->lock);
}

static void
log_pems (const MusterRpcCredentials *self, const Outcome *outcome)
{
  const char *file = self->paths[CERTIFICATE] != NULL ? self->paths[CERTIFICATE] : self->paths[CA];
  g_autofree char *until = instant_of (outcome->end_s);
  muster_log (G_LOG_LEVEL_INFO, "reload", "MUSTER_FILE", file, "MUSTER_UNTIL", until, "MESSAGE",
              "the certificates of '%s' were replaced, for new connections%s%s", file,
              until != NULL ? "; valid until " : "", until != NULL ? until : "");
}

static void
log_outcome (const MusterRpcCredentials *self, const Outcome *outcome)
{
  if (!outcome->is_read)
    muster_log (G_LOG_LEVEL_WARNING, "reload", "MESSAGE",
                "the certificates and tokens in use are kept: %s", outcome->error->message);
  if (outcome->has_new_pems)
    log_pems (self, outcome);
  if (outcome->has_new_tokens)
    muster_log (G_LOG_LEVEL_INFO, "reload", "MUSTER_FILE", self->paths[TOKEN], "MUSTER_COUNT",
                MUSTER_LOG_INT (outcome->n_tokens), "MESSAGE",
                "the tokens of '%s' were replaced: %" G_GSIZE_FORMAT, self->paths[TOKEN],
                outcome->n_tokens);
}

/* FALSE if nothing has changed, or not for good: two files are never replaced at once, so that a
 * pair that doesn't fit is reported when it is still there at the next look. */
static gboolean
read_changed (MusterRpcCredentials *self, Outcome *outcome)
{
  MusterFileMark marks[N_FILES];
  gboolean has_changed = FALSE;
  look_at_files (self, marks);
  g_mutex_lock (&self->lock);
  for (int i = 0; i < N_FILES; i++)
    has_changed = has_changed || !muster_file_mark_equal (&marks[i], &self->marks[i]);
  const gboolean was_in_doubt = self->is_in_doubt;
  g_mutex_unlock (&self->lock);
  if (!has_changed && !was_in_doubt)
    return FALSE;
  read_again (self, outcome);
  self->is_in_doubt = !outcome->is_read && has_changed;
  return !self->is_in_doubt;
}

/* --- the looking thread --- */

static gpointer
look (gpointer data)
{
  MusterRpcCredentials *self = data;
  Outcome outcome = {0};
  gboolean is_news = TRUE;
  if (g_atomic_int_get (&self->is_asked)) {
    read_again (self, &outcome);
    self->is_in_doubt = FALSE;
  } else {
    is_news = read_changed (self, &outcome);
  }
  if (is_news && (outcome.is_read || !g_atomic_int_get (&self->is_asked)))
    log_outcome (self, &outcome);
  g_mutex_lock (&self->look_lock);
  g_clear_error (&self->look_error);
  self->look_error = outcome.error;
  self->is_looking = FALSE;
  g_cond_broadcast (&self->looked);
  g_mutex_unlock (&self->look_lock);
  muster_rpc_credentials_unref (self);
  return NULL;
}

/* Waits for the end of the look that has begun, as long as a disk may take. Call with look_lock. */
static gboolean
await_look (MusterRpcCredentials *self)
{
  const gint64 until_us = muster_deadline_after (self->look_began_us, PATIENCE_US);
  while (self->is_looking)
    if (!muster_wait_change (&self->looked, &self->look_lock, until_us))
      return FALSE;
  return TRUE;
}

/* A file system that hangs holds up this thread, and those that serve for PATIENCE_US once. Call
 * with look_lock. */
static void
begin_look (MusterRpcCredentials *self, gboolean is_asked)
{
  self->is_looking = TRUE;
  g_atomic_int_set (&self->is_asked, is_asked);
  self->look_began_us = muster_clock_now_us (muster_system_clock ());
  GThread *thread =
      g_thread_try_new ("muster-files", look, muster_rpc_credentials_ref (self), NULL);
  if (thread != NULL) {
    g_thread_unref (thread);
    return;
  }
  self->is_looking = FALSE; /* no more threads: at the next look */
  g_atomic_ref_count_dec (&self->refs);
}

gboolean
muster_rpc_credentials_reload (MusterRpcCredentials *self, GError **error)
{
  muster_require (error, FALSE, self);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->look_lock);
  gboolean is_done = await_look (self);
  if (is_done) {
    begin_look (self, TRUE);
    is_done = await_look (self);
  }
  if (!is_done)
    return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                        "the files of certificates and tokens can't be read in 5 s; their file "
                        "system doesn't answer");
  if (self->look_error != NULL && error != NULL)
    *error = g_error_copy (self->look_error);
  return self->look_error == NULL;
}

static void
look_now (MusterRpcCredentials *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->look_lock);
  if (!await_look (self)) /* that one may have begun before the files changed */
    return;
  begin_look (self, FALSE);
  (void)await_look (self);
}

void
muster_rpc_credentials_refresh (MusterRpcCredentials *self)
{
  if (self == NULL)
    return;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  gint64 looked_us = __atomic_load_n (&self->looked_us, __ATOMIC_RELAXED);
  if (now_us - looked_us >= LOOK_INTERVAL_US &&
      __atomic_compare_exchange_n (&self->looked_us, &looked_us, now_us, FALSE, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED))
    look_now (self);
}

/* --- a client's --- */

guint
muster_rpc_credentials_token_version (MusterRpcCredentials *self)
{
  return self != NULL ? (guint)g_atomic_int_get (&self->token_version) : 0;
}

gboolean
muster_rpc_credentials_has_newer_token (MusterRpcCredentials *self, guint version)
{
  if (self == NULL || !self->has_token)
    return FALSE;
  look_now (self);
  return muster_rpc_credentials_token_version (self) != version;
}

guint
muster_rpc_credentials_version (MusterRpcCredentials *self)
{
  return self != NULL ? (guint)g_atomic_int_get (&self->version) : 0;
}

gboolean
muster_rpc_credentials_authorization (MusterRpcCredentials *self, grpc_slice *authorization)
{
  if (!muster_rpc_credentials_has_token (self))
    return FALSE;
  g_mutex_lock (&self->lock);
  gboolean has_token = self->material.has_authorization;
  if (has_token)
    *authorization = grpc_slice_ref (self->material.authorization);
  g_mutex_unlock (&self->lock);
  return has_token;
}

grpc_channel *
muster_rpc_credentials_open_channel (MusterRpcCredentials *self, const char *target,
                                     const grpc_channel_args *args, guint *version)
{
  if (self == NULL) {
    g_autoptr (grpc_channel_credentials) plain = grpc_insecure_credentials_create ();
    *version = 0;
    return grpc_channel_create (target, plain, args);
  }
  g_mutex_lock (&self->lock);
  if (self->channel == NULL)
    self->channel = make_channel_credentials (self);
  *version = self->version;
  grpc_channel *channel = grpc_channel_create (target, self->channel, args);
  g_mutex_unlock (&self->lock);
  return channel;
}

/* --- a server's --- */

grpc_ssl_server_certificate_config *
muster_rpc_credentials_server_config (MusterRpcCredentials *self, guint *version)
{
  g_mutex_lock (&self->lock);
  grpc_ssl_pem_key_cert_pair own = {self->material.key.text, self->material.certificate.text};
  /* gRPC ends the process if there are no authorities, even where they aren't used. */
  const char *ca = self->material.ca.text != NULL ? self->material.ca.text : own.cert_chain;
  grpc_ssl_server_certificate_config *config =
      grpc_ssl_server_certificate_config_create (ca, &own, 1);
  *version = self->version;
  g_mutex_unlock (&self->lock);
  return config;
}

gboolean
muster_rpc_credentials_pems (MusterRpcCredentials *self, MusterRpcPems *pems)
{
  if (!muster_rpc_credentials_has_certificate (self))
    return FALSE;
  g_mutex_lock (&self->lock);
  const Material *now = &self->material;
  *pems = (MusterRpcPems){
      .certificate = {g_strndup (now->certificate.text, now->certificate.size),
                      now->certificate.size},
      .key = {g_strndup (now->key.text, now->key.size), now->key.size},
      .version = self->version,
  };
  if (now->ca.text != NULL)
    pems->ca = (MusterSecret){g_strndup (now->ca.text, now->ca.size), now->ca.size};
  g_mutex_unlock (&self->lock);
  return TRUE;
}

gint64
muster_rpc_credentials_expiry (MusterRpcCredentials *self)
{
  if (self == NULL || !muster_rpc_credentials_has_certificate (self))
    return 0;
  g_mutex_lock (&self->lock);
  const gint64 end_s = muster_pem_expiry (&self->material.certificate);
  g_mutex_unlock (&self->lock);
  return end_s;
}

void
muster_rpc_pems_clear (MusterRpcPems *self)
{
  muster_secret_clear (&self->certificate);
  muster_secret_clear (&self->key);
  muster_secret_clear (&self->ca);
}

static MusterTokens *
hold_tokens (MusterRpcCredentials *self)
{
  g_mutex_lock (&self->lock);
  MusterTokens *tokens = muster_tokens_ref (self->material.tokens);
  g_mutex_unlock (&self->lock);
  return tokens;
}

static MusterRole
find_token (MusterRpcCredentials *self, const char *token, gsize size, guint *line, guint64 *mark)
{
  g_autoptr (MusterTokens) tokens = hold_tokens (self);
  return muster_tokens_find (tokens, token, size, line, mark);
}

/* A client may send a new token before the next look at the file that it was added to. */
static MusterRole
role_of (MusterRpcCredentials *self, const char *token, gsize size, guint *line, guint64 *mark)
{
  MusterRole role = find_token (self, token, size, line, mark);
  if (role != MUSTER_ROLE_NONE)
    return role;
  look_now (self);
  return find_token (self, token, size, line, mark);
}

/* shown (nullable) is "Bearer TOKEN". */
static void
identify_token (MusterRpcCredentials *self, const grpc_slice *shown, MusterRpcCaller *caller)
{
  gsize head = strlen (scheme);
  caller->role = MUSTER_ROLE_NONE;
  caller->lacks_token = shown == NULL;
  if (shown == NULL)
    return;
  const char *text = (const char *)GRPC_SLICE_START_PTR (*shown);
  gsize size = GRPC_SLICE_LENGTH (*shown);
  if (size > head && memcmp (text, scheme, head) == 0)
    caller->role =
        role_of (self, text + head, size - head, &caller->token_line, &caller->token_mark);
  caller->is_unknown = caller->role == MUSTER_ROLE_NONE;
}

void
muster_rpc_credentials_identify (MusterRpcCredentials *self, const grpc_auth_context *context,
                                 const grpc_slice *authorization, MusterRpcCaller *caller)
{
  *caller = (MusterRpcCaller){.role = MUSTER_ROLE_ADMIN};
  if (muster_rpc_credentials_has_token (self))
    identify_token (self, authorization, caller);
  if (!muster_rpc_credentials_has_ca (self))
    return;
  MusterRole role = context != NULL
                        ? muster_roles_of (self->roles, context, caller->name, sizeof caller->name)
                        : MUSTER_ROLE_NONE;
  if (self->has_roles)
    caller->role = MIN (caller->role, role);
}

MusterRole
muster_rpc_credentials_role (MusterRpcCredentials *self, const char *token, gssize size)
{
  if (self == NULL)
    return MUSTER_ROLE_ADMIN;
  if (!self->has_token)
    return muster_rpc_credentials_has_ca (self) ? MUSTER_ROLE_NONE : MUSTER_ROLE_ADMIN;
  if (token == NULL)
    return MUSTER_ROLE_NONE;
  return role_of (self, token, size >= 0 ? (gsize)size : strlen (token), NULL, NULL);
}
