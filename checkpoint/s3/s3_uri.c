// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/s3_uri_private.h"

#include "base/error.h"

#include <string.h>

/* S3's own limits. Buckets of other stores may have upper case, '_' and up to 255 bytes. */
#define KEY_MAX    1024
#define BUCKET_MIN 3
#define BUCKET_MAX 255

static gboolean
is_bucket (const char *name)
{
  const gsize n = strlen (name);
  if (n < BUCKET_MIN || n > BUCKET_MAX || !g_ascii_isalnum (name[0]) || strstr (name, "..") != NULL)
    return FALSE;
  for (const char *at = name; *at != '\0'; at++)
    if (!g_ascii_isalnum (*at) && strchr ("-._", *at) == NULL)
      return FALSE;
  return TRUE;
}

/* Returns what is wrong with a key, or NULL. */
static const char *
find_fault (const char *key)
{
  if (strlen (key) > KEY_MAX)
    return "the name in the bucket is longer than 1,024 bytes";
  if (!g_utf8_validate (key, -1, NULL))
    return "it isn't UTF-8";
  for (const char *at = key; *at != '\0'; at++)
    if (g_ascii_iscntrl (*at))
      return "it has control characters";
  g_auto (GStrv) names = g_strsplit (key, "/", -1);
  for (gsize i = 0; names[i] != NULL; i++)
    if (*names[i] == '\0' || strcmp (names[i], ".") == 0 || strcmp (names[i], "..") == 0)
      return "an object store has no empty names, '.' or '..' between slashes";
  return NULL;
}

gboolean
muster_s3_uri_parse (const char *path, MusterS3Uri *uri, GError **error)
{
  if (!g_str_has_prefix (path, MUSTER_S3_SCHEME))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid path '%s': use s3://BUCKET/NAME", path);
  const char *rest = path + strlen (MUSTER_S3_SCHEME);
  const char *slash = strchrnul (rest, '/');
  g_autofree char *bucket = g_strndup (rest, (gsize)(slash - rest));
  if (!is_bucket (bucket))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid path '%s': '%s' can't be a bucket; use s3://BUCKET/NAME", path,
                        bucket);
  g_autofree char *key = g_strdup (*slash == '/' ? slash + 1 : slash);
  const gsize n = strlen (key);
  if (n > 0 && key[n - 1] == '/')
    key[n - 1] = '\0'; /* a directory may be written that way */
  const char *fault = *key != '\0' ? find_fault (key) : NULL;
  if (fault != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "invalid path '%s': %s", path, fault);
  *uri = (MusterS3Uri){g_steal_pointer (&bucket), g_steal_pointer (&key)};
  return TRUE;
}

void
muster_s3_uri_clear (MusterS3Uri *uri)
{
  g_clear_pointer (&uri->bucket, g_free);
  g_clear_pointer (&uri->key, g_free);
}

char *
muster_s3_uri_prefix (const MusterS3Uri *uri)
{
  return *uri->key != '\0' ? g_strconcat (uri->key, "/", NULL) : g_strdup ("");
}

char *
muster_s3_encode (const char *text, gboolean is_path)
{
  GString *encoded = g_string_new (NULL);
  for (const char *at = text; *at != '\0'; at++)
    if (g_ascii_isalnum (*at) || strchr ("-._~", *at) != NULL || (is_path && *at == '/'))
      g_string_append_c (encoded, *at);
    else
      g_string_append_printf (encoded, "%%%02X", (guchar)*at);
  return g_string_free (encoded, FALSE);
}

char *
muster_s3_query (const char *const pairs[][2], gsize n)
{
  GString *query = g_string_new (NULL);
  for (gsize i = 0; i < n; i++) {
    if (pairs[i][1] == NULL)
      continue;
    g_autofree char *value = muster_s3_encode (pairs[i][1], FALSE);
    g_string_append_printf (query, "%s%s=%s", query->len > 0 ? "&" : "", pairs[i][0], value);
  }
  return g_string_free (query, FALSE);
}
