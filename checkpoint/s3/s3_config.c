// SPDX-License-Identifier: Apache-2.0
/* The settings of a store, from AWS's environment variables and files, as its tools read them:
 * endpoint, region, profile, style of addresses. A bucket's URL follows from them. */
#include "checkpoint/s3/s3_config_private.h"

#include "base/error.h"
#include "base/files/read_file_private.h"
#include "checkpoint/s3/ini_private.h"
#include "checkpoint/s3/s3_uri_private.h"

#include <string.h>

#define STALL_US       (30 * MUSTER_SECOND)
#define RETRY_US       (60 * MUSTER_SECOND)
#define DEFAULT_REGION "us-east-1"

/* Maximum size of ~/.aws/config and ~/.aws/credentials. */
#define FILE_MAX ((gsize)1 << 20)

const char *
muster_s3_env (const char *name)
{
  const char *value = g_getenv (name);
  return value != NULL && *value != '\0' ? value : NULL;
}

const char *
muster_s3_setting (GHashTable *settings, const char *name)
{
  const char *value = g_hash_table_lookup (settings, name);
  return value != NULL && *value != '\0' ? value : NULL;
}

const char *
muster_s3_config_setting (const MusterS3Config *self, const char *name)
{
  return muster_s3_setting (self->settings, name);
}

/* The first that isn't NULL. */
#define FIRST(...)                                                                                 \
  first ((const char *const[]){__VA_ARGS__}, G_N_ELEMENTS (((const char *const[]){__VA_ARGS__})))

static const char *
first (const char *const values[], gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (values[i] != NULL && *values[i] != '\0')
      return values[i];
  return NULL;
}

/* Reads a file of settings. A missing file has none. */
static gboolean
read_file (const char *variable, const char *name, const char *section, GHashTable *settings)
{
  g_autofree char *standard = g_build_filename (g_get_home_dir (), ".aws", name, NULL);
  const char *path = FIRST (muster_s3_env (variable), standard);
  const MusterFile file = {path, NULL, FILE_MAX, FALSE};
  g_autofree char *text = NULL;
  gsize size;
  return muster_file_read (&file, &text, &size, NULL) &&
         muster_ini_read (text, size, section, settings);
}

/* The credentials file overrides the configuration. */
GHashTable *
muster_s3_config_read_settings (const MusterS3Config *self)
{
  g_autoptr (GHashTable) settings = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_autofree char *section = strcmp (self->profile, "default") == 0
                                 ? g_strdup ("default")
                                 : g_strconcat ("profile ", self->profile, NULL);
  const gboolean is_configured = read_file ("AWS_CONFIG_FILE", "config", section, settings);
  const gboolean has_keys =
      read_file ("AWS_SHARED_CREDENTIALS_FILE", "credentials", self->profile, settings);
  return is_configured || has_keys ? g_steal_pointer (&settings) : NULL;
}

static gboolean
read_profile (MusterS3Config *self, const MusterS3Options *options, GError **error)
{
  const char *named = FIRST (options->profile, muster_s3_env ("AWS_PROFILE"),
                             muster_s3_env ("AWS_DEFAULT_PROFILE"));
  self->profile = g_strdup (named != NULL ? named : "default");
  self->is_chosen = options->profile != NULL;
  self->settings = muster_s3_config_read_settings (self);
  if (self->settings != NULL)
    return TRUE;
  self->settings = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  return named == NULL ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "the AWS profile '%s' is neither in ~/.aws/config nor in ~/.aws/credentials; "
                      "fix AWS_PROFILE, or the files that AWS_CONFIG_FILE and "
                      "AWS_SHARED_CREDENTIALS_FILE name",
                      self->profile);
}

/* Refuses an endpoint with a user, a password or a query, which may contain a secret. */
static gboolean
set_endpoint (MusterS3Config *self, const char *endpoint, GError **error)
{
  if (endpoint == NULL)
    return TRUE;
  g_autoptr (GUri) uri =
      g_uri_parse (endpoint, G_URI_FLAGS_HAS_PASSWORD | G_URI_FLAGS_ENCODED, NULL);
  const char *scheme = uri != NULL ? g_uri_get_scheme (uri) : "";
  if (uri != NULL && g_uri_get_userinfo (uri) != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid endpoint: it holds a user name; give credentials as "
                        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  if (uri == NULL || (strcmp (scheme, "http") != 0 && strcmp (scheme, "https") != 0) ||
      g_uri_get_host (uri) == NULL || *g_uri_get_host (uri) == '\0' ||
      g_uri_get_query (uri) != NULL || g_uri_get_fragment (uri) != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid endpoint '%s' (use https://HOST, or http://HOST:PORT)", endpoint);
  self->endpoint = g_strdup (endpoint);
  for (gsize n = strlen (self->endpoint); n > 0 && self->endpoint[n - 1] == '/'; n--)
    self->endpoint[n - 1] = '\0';
  return TRUE;
}

/* A region becomes a part of a host's name and of a signature's scope. */
static gboolean
set_region (MusterS3Config *self, const char *region, GError **error)
{
  region = region != NULL ? region : DEFAULT_REGION;
  for (const char *at = region; *at != '\0'; at++)
    if (!g_ascii_isalnum (*at) && *at != '-')
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "invalid region '%s' (use one such as eu-central-1)", region);
  if (strlen (region) > 63)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "invalid region: it is too long");
  self->region = g_strdup (region);
  return TRUE;
}

MusterS3Config *
muster_s3_config_new (const MusterS3Options *options, GError **error)
{
  static const MusterS3Options defaults;
  options = options != NULL ? options : &defaults;
  g_autoptr (MusterS3Config) self = g_new0 (MusterS3Config, 1);
  self->stall_us = options->stall_us > 0 ? options->stall_us : STALL_US;
  self->retry_us = options->retry_us > 0 ? options->retry_us : RETRY_US;
  if (!read_profile (self, options, error))
    return NULL;
  self->authorities = g_strdup (
      FIRST (muster_s3_env ("AWS_CA_BUNDLE"), muster_s3_config_setting (self, "ca_bundle")));
  const char *endpoint =
      FIRST (options->endpoint_url, muster_s3_env ("AWS_ENDPOINT_URL_S3"),
             muster_s3_env ("AWS_ENDPOINT_URL"), muster_s3_config_setting (self, "endpoint_url"));
  const char *region =
      FIRST (options->region, muster_s3_env ("AWS_REGION"), muster_s3_env ("AWS_DEFAULT_REGION"),
             muster_s3_config_setting (self, "region"));
  return set_endpoint (self, endpoint, error) && set_region (self, region, error)
             ? g_steal_pointer (&self)
             : NULL;
}

void
muster_s3_config_free (MusterS3Config *self)
{
  if (self == NULL)
    return;
  g_free (self->endpoint);
  g_free (self->region);
  g_free (self->profile);
  g_clear_pointer (&self->settings, g_hash_table_unref);
  g_free (self->authorities);
  g_free (self);
}

/* AWS's certificate covers one name in front of its own. Therefore a bucket with dots, or one
 * that can't be a host's name, goes into the path, as with every other store. */
static gboolean
is_host_name (const char *bucket)
{
  for (const char *at = bucket; *at != '\0'; at++)
    if (!g_ascii_islower (*at) && !g_ascii_isdigit (*at) && *at != '-')
      return FALSE;
  return strlen (bucket) <= 63;
}

char *
muster_s3_config_url (const MusterS3Config *self, const char *bucket, const char *key,
                      const char *query)
{
  g_autofree char *name = muster_s3_encode (key, TRUE);
  const char *mark = query != NULL && *query != '\0' ? "?" : "";
  query = query != NULL ? query : "";
  if (self->endpoint != NULL)
    return g_strdup_printf ("%s/%s/%s%s%s", self->endpoint, bucket, name, mark, query);
  const char *domain =
      g_str_has_prefix (self->region, "cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  if (!is_host_name (bucket))
    return g_strdup_printf ("https://s3.%s.%s/%s/%s%s%s", self->region, domain, bucket, name, mark,
                            query);
  return g_strdup_printf ("https://%s.s3.%s.%s/%s%s%s", bucket, self->region, domain, name, mark,
                          query);
}

gboolean
muster_s3_config_is_encrypted (const MusterS3Config *self)
{
  return self->endpoint == NULL || g_str_has_prefix (self->endpoint, "https:");
}

char *
muster_s3_config_describe (const MusterS3Config *self)
{
  return self->endpoint != NULL ? g_strdup (self->endpoint)
                                : g_strdup_printf ("AWS in %s", self->region);
}
