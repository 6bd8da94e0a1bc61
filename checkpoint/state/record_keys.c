// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/record_keys_private.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

#define PLAIN_IN_URI "!$&'()*+,:=@/"

char *
muster_record_escape (const char *name)
{
  return g_uri_escape_string (name, PLAIN_IN_URI, TRUE);
}

void
muster_record_set_uint64 (GKeyFile *file, const char *group, const char *key, guint64 value)
{
  g_key_file_set_uint64 (file, group, key, value);
}

void
muster_record_set_name (GKeyFile *file, const char *group, const char *key, const char *name)
{
  if (name == NULL)
    return;
  g_autofree char *escaped = muster_record_escape (name);
  g_key_file_set_value (file, group, key, escaped);
}

void
muster_record_set_words (GKeyFile *file, const char *group, const char *key, const char *words)
{
  if (words == NULL)
    return;
  g_autofree char *valid = g_utf8_make_valid (words, -1);
  g_key_file_set_string (file, group, key, valid);
}

void
muster_record_set_flag (GKeyFile *file, const char *group, const char *key, gboolean flag)
{
  if (flag)
    g_key_file_set_boolean (file, group, key, TRUE);
}

gboolean
muster_record_refuse (GError **error, const char *group, const char *key, const char *what)
{
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "in [%s], '%s' is %s", group, key, what);
}

static gboolean
has (GKeyFile *file, const char *group, const char *key)
{
  return g_key_file_has_key (file, group, key, NULL);
}

gboolean
muster_record_get_int64 (GKeyFile *file, const char *group, const char *key, gint64 least,
                         gint64 *value, GError **error)
{
  g_autofree char *text = g_key_file_get_value (file, group, key, NULL);
  return text == NULL ||
         g_ascii_string_to_signed (text, 10, least, MUSTER_RECORD_MAX_NUMBER, value, NULL) ||
         muster_record_refuse (error, group, key, "not a number");
}

gboolean
muster_record_get_uint64 (GKeyFile *file, const char *group, const char *key, guint64 most,
                          guint64 *value, GError **error)
{
  g_autofree char *text = g_key_file_get_value (file, group, key, NULL);
  return text == NULL || g_ascii_string_to_unsigned (text, 10, 0, most, value, NULL) ||
         muster_record_refuse (error, group, key, "not a count");
}

gboolean
muster_record_get_time (GKeyFile *file, const char *group, const char *key, double *value,
                        GError **error)
{
  if (!has (file, group, key))
    return TRUE;
  const double time = g_key_file_get_double (file, group, key, NULL);
  if (!isfinite (time) || time < 0)
    return muster_record_refuse (error, group, key, "not a time");
  *value = time;
  return TRUE;
}

gboolean
muster_record_get_flag (GKeyFile *file, const char *group, const char *key, gboolean *value,
                        GError **error)
{
  if (!has (file, group, key))
    return TRUE;
  g_autoptr (GError) why = NULL;
  *value = g_key_file_get_boolean (file, group, key, &why);
  return why == NULL || muster_record_refuse (error, group, key, "neither true nor false");
}

gboolean
muster_record_get_words (GKeyFile *file, const char *group, const char *key, char **value,
                         GError **error)
{
  if (!has (file, group, key))
    return TRUE;
  *value = g_key_file_get_string (file, group, key, NULL);
  return *value != NULL || muster_record_refuse (error, group, key, "not a string");
}

gboolean
muster_record_get_name (GKeyFile *file, const char *group, const char *key, char **value,
                        GError **error)
{
  g_autofree char *text = g_key_file_get_value (file, group, key, NULL);
  if (text == NULL)
    return TRUE;
  g_autofree char *name = g_uri_unescape_string (text, "/");
  if (name == NULL || *name == '\0' || strchr (name, '/') != NULL || strcmp (name, ".") == 0 ||
      strcmp (name, "..") == 0)
    return muster_record_refuse (error, group, key, "not a file name");
  *value = g_steal_pointer (&name);
  return TRUE;
}

gboolean
muster_record_get_path (GKeyFile *file, const char *group, const char *key, char **value,
                        GError **error)
{
  g_autofree char *text = g_key_file_get_value (file, group, key, NULL);
  if (text == NULL)
    return TRUE;
  *value = g_uri_unescape_string (text, NULL);
  return *value != NULL || muster_record_refuse (error, group, key, "not a path");
}
