// SPDX-License-Identifier: Apache-2.0
/* The keys of a store: where they come from (environment, profile, a service), and when they are
 * replaced. One thread replaces them early, while the others use the old ones; keys that the store
 * refuses are fetched again. Keys are hidden in every text. */
#include "base/error.h"
#include "base/safe_text_private.h"
#include "base/wait_private.h"
#include "checkpoint/s3/credential_services_private.h"

#include <string.h>

/* Temporary keys are replaced this long before they expire. */
#define REPLACED_BEFORE (5 * 60 * MUSTER_SECOND)

/* Lifetime of keys whose date can't be read: the shortest that AWS issues. */
#define UNREAD_DATE (15 * 60 * MUSTER_SECOND)

/* Shorter values are no secrets; hiding them would blank out words. */
#define SECRET_MIN 6

typedef enum {
  SOURCE_NONE,
  SOURCE_ENVIRONMENT,
  SOURCE_WEB_IDENTITY,
  SOURCE_PROFILE_WEB_IDENTITY,
  SOURCE_PROFILE,
  SOURCE_CONTAINER,
  SOURCE_MACHINE,
} Source;

struct _MusterS3Credentials {
  const MusterS3Config *config;
  Source source;
  GMutex lock;
  GCond changed;
  gboolean is_fetching; /* guarded by lock */
  gboolean has_keys;    /* guarded by lock */
  gboolean is_refused;  /* guarded by lock: the store says that they have expired */
  MusterS3Keys keys;    /* guarded by lock */
};

static void
wipe (char *text)
{
  if (text != NULL)
    explicit_bzero (text, strlen (text));
  g_free (text);
}

void
muster_s3_keys_clear (MusterS3Keys *self)
{
  g_clear_pointer (&self->id, g_free);
  g_clear_pointer (&self->secret, wipe);
  g_clear_pointer (&self->token, wipe);
}

static void
copy_keys (const MusterS3Keys *self, MusterS3Keys *copy)
{
  *copy = (MusterS3Keys){g_strdup (self->id), g_strdup (self->secret), g_strdup (self->token),
                         self->expires_us};
}

/* Returns NULL for a shorter value, which would be hidden in words, too. */
static const char *
hidden (const char *secret)
{
  return secret != NULL && strlen (secret) >= SECRET_MIN ? secret : "";
}

char *
muster_s3_keys_hide (const MusterS3Keys *self, const char *text)
{
  if (self == NULL)
    return g_strdup (text);
  return muster_hide_secrets (
      text, (const char *const[]){hidden (self->secret), hidden (self->token), NULL});
}

/* Refuses blanks: a header is one line, and a key has none. */
static gboolean
can_be_key (const char *text)
{
  for (const char *at = text; *at != '\0'; at++)
    if (!g_ascii_isgraph (*at))
      return FALSE;
  return TRUE;
}

gboolean
muster_s3_keys_set (const char *what, const char *id, const char *secret, const char *token,
                    gint64 expires_us, MusterS3Keys *keys, GError **error)
{
  const char *const values[] = {id, secret, token};
  static const char *const names[] = {"access key ID", "secret access key", "session token"};
  for (gsize i = 0; i < G_N_ELEMENTS (values); i++) {
    if (i < 2 && (values[i] == NULL || *values[i] == '\0'))
      return muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED, "%s has no %s", what, names[i]);
    if (values[i] != NULL && !can_be_key (values[i]))
      return muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED,
                          "%s has a %s with a blank, a line break or a character that isn't ASCII; "
                          "remove it",
                          what, names[i]);
  }
  const gboolean has_token = token != NULL && *token != '\0';
  *keys = (MusterS3Keys){g_strdup (id), g_strdup (secret), has_token ? g_strdup (token) : NULL,
                         expires_us};
  return TRUE;
}

static gboolean
profile_has_keys (const MusterS3Config *config)
{
  return muster_s3_config_setting (config, "aws_access_key_id") != NULL &&
         muster_s3_config_setting (config, "aws_secret_access_key") != NULL;
}

static Source
choose_source (const MusterS3Config *config)
{
  if (!config->is_chosen && muster_s3_env ("AWS_ACCESS_KEY_ID") != NULL)
    return SOURCE_ENVIRONMENT;
  if (!config->is_chosen && muster_s3_env ("AWS_WEB_IDENTITY_TOKEN_FILE") != NULL)
    return SOURCE_WEB_IDENTITY;
  if (muster_s3_config_setting (config, "web_identity_token_file") != NULL)
    return SOURCE_PROFILE_WEB_IDENTITY;
  if (profile_has_keys (config))
    return SOURCE_PROFILE;
  if (muster_s3_env ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != NULL ||
      muster_s3_env ("AWS_CONTAINER_CREDENTIALS_FULL_URI") != NULL)
    return SOURCE_CONTAINER;
  const char *disabled = muster_s3_env ("AWS_EC2_METADATA_DISABLED");
  return disabled != NULL && g_ascii_strcasecmp (disabled, "true") == 0 ? SOURCE_NONE
                                                                        : SOURCE_MACHINE;
}

MusterS3Credentials *
muster_s3_credentials_new (const MusterS3Config *config)
{
  MusterS3Credentials *self = g_new0 (MusterS3Credentials, 1);
  self->config = config;
  self->source = choose_source (config);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  return self;
}

void
muster_s3_credentials_free (MusterS3Credentials *self)
{
  muster_s3_keys_clear (&self->keys);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* Refuses profiles whose keys come in ways that aren't supported: from a program of the user's,
 * a browser, a second role. */
static gboolean
check_profile (const MusterS3Config *config, GError **error)
{
  static const char *const others[] = {"role_arn", "credential_process", "sso_session",
                                       "sso_start_url", "login_session"};
  const gsize n = profile_has_keys (config) ? 1 : G_N_ELEMENTS (others);
  for (gsize i = 0; i < n; i++)
    if (muster_s3_config_setting (config, others[i]) != NULL)
      return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                          "the AWS profile '%s' has '%s', which muster can't use; run `eval "
                          "\"$(aws configure export-credentials --profile %s --format env)\"` "
                          "first",
                          config->profile, others[i], config->profile);
  return TRUE;
}

static gboolean
fetch_from_environment (MusterS3Keys *keys, GError **error)
{
  return muster_s3_keys_set ("the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)",
                             muster_s3_env ("AWS_ACCESS_KEY_ID"),
                             muster_s3_env ("AWS_SECRET_ACCESS_KEY"),
                             muster_s3_env ("AWS_SESSION_TOKEN"), G_MAXINT64, keys, error);
}

/* Reads the profile anew, since a script may have replaced its keys. (transfer full) */
static GHashTable *
read_profile (const MusterS3Config *config, GError **error)
{
  GHashTable *settings = muster_s3_config_read_settings (config);
  if (settings == NULL)
    muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED,
                 "the AWS profile '%s' isn't in its files any more", config->profile);
  return settings;
}

static gboolean
fetch_from_profile (const MusterS3Config *config, MusterS3Keys *keys, GError **error)
{
  g_autoptr (GHashTable) settings = read_profile (config, error);
  g_autofree char *what = g_strdup_printf ("the AWS profile '%s'", config->profile);
  return settings != NULL &&
         muster_s3_keys_set (what, muster_s3_setting (settings, "aws_access_key_id"),
                             muster_s3_setting (settings, "aws_secret_access_key"),
                             muster_s3_setting (settings, "aws_session_token"), G_MAXINT64, keys,
                             error);
}

static gboolean
fetch_from_profile_identity (const MusterS3Config *config, const MusterS3Bound *bound,
                             MusterS3Keys *keys, GError **error)
{
  g_autoptr (GHashTable) settings = read_profile (config, error);
  const char *file =
      settings != NULL ? muster_s3_setting (settings, "web_identity_token_file") : NULL;
  if (settings != NULL && file == NULL)
    return muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED,
                        "the AWS profile '%s' has no web_identity_token_file any more",
                        config->profile);
  return settings != NULL &&
         muster_s3_keys_from_web_identity (config, file, muster_s3_setting (settings, "role_arn"),
                                           muster_s3_setting (settings, "role_session_name"), bound,
                                           keys, error);
}

static gboolean
fetch (MusterS3Credentials *self, const MusterS3Bound *bound, MusterS3Keys *keys, GError **error)
{
  const MusterS3Config *config = self->config;
  if (self->source >= SOURCE_PROFILE && !check_profile (config, error))
    return FALSE;
  switch (self->source) {
  case SOURCE_ENVIRONMENT:
    return fetch_from_environment (keys, error);
  case SOURCE_WEB_IDENTITY:
    return muster_s3_keys_from_web_identity (
        config, muster_s3_env ("AWS_WEB_IDENTITY_TOKEN_FILE"), muster_s3_env ("AWS_ROLE_ARN"),
        muster_s3_env ("AWS_ROLE_SESSION_NAME"), bound, keys, error);
  case SOURCE_PROFILE_WEB_IDENTITY:
    return fetch_from_profile_identity (config, bound, keys, error);
  case SOURCE_PROFILE:
    return fetch_from_profile (config, keys, error);
  case SOURCE_CONTAINER:
    return muster_s3_keys_from_container (config, bound, keys, error);
  case SOURCE_MACHINE:
    return muster_s3_keys_from_machine (config, bound, keys, error);
  default:
    return check_profile (config, error) &&
           muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED,
                        "no credentials for the object store; set AWS_ACCESS_KEY_ID and "
                        "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE");
  }
}

/* With lock held. */
static gboolean
is_usable (MusterS3Credentials *self, gint64 wall_us)
{
  return self->has_keys && !self->is_refused && self->keys.expires_us > wall_us;
}

static gboolean
is_not_fetching (gpointer data)
{
  return !((MusterS3Credentials *)data)->is_fetching;
}

/* With lock held: TRUE for the one thread that replaces keys early, while the others use the old
 * ones. */
static gboolean
must_fetch (MusterS3Credentials *self, gint64 wall_us)
{
  const gboolean is_old = self->has_keys && self->keys.expires_us < G_MAXINT64 - REPLACED_BEFORE &&
                          self->keys.expires_us - REPLACED_BEFORE <= wall_us;
  return !is_usable (self, wall_us) || (is_old && !self->is_fetching);
}

/* With lock held, which it releases while it fetches. */
static gboolean
replace_keys (MusterS3Credentials *self, const MusterS3Bound *bound, GError **error)
{
  MusterS3Keys fresh = {0};
  g_autoptr (GError) why = NULL;
  self->is_fetching = TRUE;
  g_mutex_unlock (&self->lock);
  const gboolean is_fetched = fetch (self, bound, &fresh, &why);
  g_mutex_lock (&self->lock);
  self->is_fetching = FALSE;
  g_cond_broadcast (&self->changed);
  if (is_fetched && fresh.expires_us == 0)
    fresh.expires_us = muster_clock_wall_us (bound->clock) + UNREAD_DATE;
  if (is_fetched) {
    muster_s3_keys_clear (&self->keys);
    self->keys = fresh;
    self->has_keys = TRUE;
    self->is_refused = FALSE;
  } else if (!is_usable (self, muster_clock_wall_us (bound->clock))) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  return TRUE; /* the old keys are still valid */
}

gboolean
muster_s3_credentials_get (MusterS3Credentials *self, const MusterS3Bound *bound,
                           MusterS3Keys *keys, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const gint64 wall_us = muster_clock_wall_us (bound->clock);
  while (self->is_fetching && !is_usable (self, wall_us))
    if (!muster_wait_for (&self->changed, &self->lock, is_not_fetching, self, bound->deadline_us,
                          muster_s3_cancellable (bound))) {
      if (g_cancellable_set_error_if_cancelled (muster_s3_cancellable (bound), error))
        return FALSE;
      return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                          "the deadline passed while credentials were fetched");
    }
  if (must_fetch (self, wall_us) && !replace_keys (self, bound, error))
    return FALSE;
  copy_keys (&self->keys, keys);
  return TRUE;
}

static gboolean
are_same (const MusterS3Keys *a, const MusterS3Keys *b)
{
  return g_strcmp0 (a->id, b->id) == 0 && g_strcmp0 (a->secret, b->secret) == 0 &&
         g_strcmp0 (a->token, b->token) == 0;
}

/* Returns TRUE if another fetch may give other keys: a file or a service may change at any time,
 * the environment only if this process changes it. */
static gboolean
may_have_others (MusterS3Credentials *self, const MusterS3Keys *keys)
{
  g_auto (MusterS3Keys) now = {0};
  return self->source != SOURCE_ENVIRONMENT ||
         (fetch_from_environment (&now, NULL) && !are_same (&now, keys));
}

gboolean
muster_s3_credentials_expire (MusterS3Credentials *self, const MusterS3Keys *keys)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const gboolean is_current = self->has_keys && are_same (&self->keys, keys);
  if (!is_current)
    return TRUE; /* another thread has fetched other keys */
  self->is_refused = may_have_others (self, keys);
  return self->is_refused;
}

char *
muster_s3_credentials_describe (MusterS3Credentials *self)
{
  switch (self->source) {
  case SOURCE_ENVIRONMENT:
    return g_strdup ("the environment");
  case SOURCE_WEB_IDENTITY:
  case SOURCE_PROFILE_WEB_IDENTITY:
    return g_strdup ("web identity");
  case SOURCE_PROFILE:
    return g_strdup_printf ("the AWS profile '%s'", self->config->profile);
  case SOURCE_CONTAINER:
    return g_strdup ("the container's credentials service");
  case SOURCE_MACHINE:
    return g_strdup ("the machine's metadata service");
  default:
    return g_strdup ("nowhere");
  }
}
