// SPDX-License-Identifier: Apache-2.0
#include "cli/common/config_file.h"

#include "base/files/read_file_private.h"
#include "cli/common/nearest.h"

#include <string.h>

#define MAX_FILE ((gsize)1 << 20)

struct _MusterConfigFile {
  char *path;
  char *group;
  GKeyFile *keys;
  GHashTable *lines;   /* (element-type utf8 uint) the line of each key */
  GHashTable *origins; /* (element-type utf8 utf8) of the options that it sets */
};

void
muster_config_file_free (MusterConfigFile *self)
{
  if (self == NULL)
    return;
  g_free (self->path);
  g_free (self->group);
  g_key_file_unref (self->keys);
  g_hash_table_unref (self->lines);
  g_hash_table_unref (self->origins);
  g_free (self);
}

/* --- reading --- */

static gboolean
note_group (MusterConfigFile *self, const char *line, guint number, GError **error)
{
  g_autofree char *wanted = g_strdup_printf ("[%s]", self->group);
  if (g_str_equal (line, wanted))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s:%u: unknown group (use %s)",
                      self->path, number, wanted);
}

static gboolean
note_key (MusterConfigFile *self, const char *line, guint number, GError **error)
{
  const char *equals = strchr (line, '=');
  if (equals == NULL || equals == line) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%s:%u: this line isn't a setting (use NAME=VALUE)", self->path, number);
  }
  g_autofree char *key = g_strchomp (g_strndup (line, (gsize)(equals - line)));
  guint before = GPOINTER_TO_UINT (g_hash_table_lookup (self->lines, key));
  if (before != 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%s:%u: '%s' is already set in line %u", self->path, number, key, before);
  }
  g_hash_table_insert (self->lines, g_steal_pointer (&key), GUINT_TO_POINTER (number));
  return TRUE;
}

/* GLib's key file knows no lines, and takes the last of two values. */
static gboolean
note_lines (MusterConfigFile *self, const char *text, GError **error)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  gboolean in_group = FALSE;
  for (guint i = 0; lines[i] != NULL; i++) {
    const char *line = g_strstrip (lines[i]);
    if (*line == '\0' || *line == '#')
      continue;
    if (*line != '[' && !in_group) {
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "%s:%u: this line is before the line '[%s]'", self->path, i + 1,
                          self->group);
    }
    if (*line == '[' ? !note_group (self, line, i + 1, error)
                     : !note_key (self, line, i + 1, error))
      return FALSE;
    in_group = TRUE;
  }
  return TRUE;
}

MusterConfigFile *
muster_config_file_load (const char *path, const char *group, GError **error)
{
  const MusterFile file = {path, NULL, MAX_FILE, FALSE};
  g_autofree char *text = NULL;
  gsize size;
  if (!muster_file_read (&file, &text, &size, error)) {
    g_prefix_error (error, "--config: ");
    return NULL;
  }
  if (!g_utf8_validate (text, (gssize)size, NULL)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "'%s' isn't UTF-8 text", path);
    return NULL;
  }
  g_autoptr (MusterConfigFile) self = g_new0 (MusterConfigFile, 1);
  self->path = g_strdup (path);
  self->group = g_strdup (group);
  self->keys = g_key_file_new ();
  self->lines = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->origins = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  if (!note_lines (self, text, error))
    return NULL;
  if (size > 0 && !g_key_file_load_from_data (self->keys, text, size, G_KEY_FILE_NONE, error)) {
    g_prefix_error (error, "%s: ", path);
    return NULL;
  }
  return g_steal_pointer (&self);
}

/* --- names --- */

static const GOptionEntry *
find_entry (const GOptionEntry *entries, const char *name)
{
  for (; entries->long_name != NULL; entries++)
    if (g_str_equal (entries->long_name, name))
      return entries;
  return NULL;
}

static gboolean
fail_for_unknown (MusterConfigFile *self, const GOptionEntry *entries, const char *key,
                  GError **error)
{
  MusterNearest nearest;
  muster_nearest_begin (&nearest, key);
  for (const GOptionEntry *it = entries; it->long_name != NULL; it++)
    muster_nearest_try (&nearest, it->long_name);
  g_autofree char *meant = muster_nearest_text (&nearest, "");
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s:%u: unknown option '%s'%s",
                      self->path, GPOINTER_TO_UINT (g_hash_table_lookup (self->lines, key)), key,
                      meant);
}

/* --- values --- */

static gboolean
fail_for_value (const char *origin, const char *value, const char *what_to_use, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s: invalid value '%s' (use %s)",
                      origin, value, what_to_use);
}

static void
add_argument (GPtrArray *arguments, const char *key, const char *value)
{
  g_ptr_array_add (arguments, value != NULL ? g_strdup_printf ("--%s=%s", key, value)
                                            : g_strdup_printf ("--%s", key));
}

static gboolean
add_switch (GPtrArray *arguments, const char *key, const char *origin, const char *value,
            GError **error)
{
  if (g_str_equal (value, "true"))
    add_argument (arguments, key, NULL);
  else if (!g_str_equal (value, "false"))
    return fail_for_value (origin, value, "true or false", error);
  return TRUE;
}

static gboolean
add_list (MusterConfigFile *self, GPtrArray *arguments, const char *key, const char *origin,
          GError **error)
{
  gsize n;
  g_auto (GStrv) values = g_key_file_get_string_list (self->keys, self->group, key, &n, error);
  for (gsize i = 0; values != NULL && i < n; i++) {
    if (*g_strstrip (values[i]) == '\0')
      return fail_for_value (origin, "", "a value in each place of the list", error);
    add_argument (arguments, key, values[i]);
  }
  return values != NULL &&
         (n > 0 || fail_for_value (origin, "", "a value, or remove the line", error));
}

static gboolean
add_values (MusterConfigFile *self, GPtrArray *arguments, const GOptionEntry *entry,
            const char *origin, GError **error)
{
  const char *key = entry->long_name;
  if (entry->arg == G_OPTION_ARG_STRING_ARRAY || entry->arg == G_OPTION_ARG_FILENAME_ARRAY)
    return add_list (self, arguments, key, origin, error);
  g_autofree char *value = g_key_file_get_string (self->keys, self->group, key, error);
  if (value == NULL)
    return FALSE;
  g_strchomp (value);
  if (entry->arg == G_OPTION_ARG_NONE)
    return add_switch (arguments, key, origin, value, error);
  if (*value == '\0')
    return fail_for_value (origin, value, "a value, or remove the line", error);
  gboolean is_number = entry->arg == G_OPTION_ARG_INT64 || entry->arg == G_OPTION_ARG_INT;
  if (is_number && !g_ascii_string_to_signed (value, 10, G_MININT64, G_MAXINT64, NULL, NULL))
    return fail_for_value (origin, value, "a number", error);
  add_argument (arguments, key, value);
  return TRUE;
}

/* --- the command line --- */

static gboolean
is_given (char *const *argv, const char *name)
{
  gsize n = strlen (name);
  for (; *argv != NULL && strcmp (*argv, "--") != 0; argv++)
    if (g_str_has_prefix (*argv, "--") && strncmp (*argv + 2, name, n) == 0 &&
        ((*argv)[2 + n] == '\0' || (*argv)[2 + n] == '='))
      return TRUE;
  return FALSE;
}

static gboolean
add_key (MusterConfigFile *self, GPtrArray *arguments, const GOptionEntry *entries,
         char *const *argv, const char *key, GError **error)
{
  const GOptionEntry *entry = find_entry (entries, key);
  if (entry == NULL)
    return fail_for_unknown (self, entries, key, error);
  g_autofree char *origin = g_strdup_printf (
      "%s:%u: %s", self->path, GPOINTER_TO_UINT (g_hash_table_lookup (self->lines, key)), key);
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GError) failure = NULL;
  if (!add_values (self, found, entry, origin, &failure)) {
    if (failure->domain == G_KEY_FILE_ERROR) /* an invalid escape: without line */
      g_prefix_error (&failure, "%s: ", origin);
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  if (is_given (argv, key)) /* replaced, but checked */
    return TRUE;
  g_hash_table_insert (self->origins, g_strdup (key), g_steal_pointer (&origin));
  g_ptr_array_extend_and_steal (arguments, g_steal_pointer (&found));
  return TRUE;
}

char **
muster_config_file_merge (MusterConfigFile *self, const GOptionEntry *entries, char *const *argv,
                          GError **error)
{
  g_autoptr (GPtrArray) merged = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) keys = g_key_file_get_keys (self->keys, self->group, NULL, NULL);
  g_ptr_array_add (merged, g_strdup (argv[0]));
  for (gsize i = 0; keys != NULL && keys[i] != NULL; i++)
    if (!add_key (self, merged, entries, argv, keys[i], error))
      return NULL;
  for (gsize i = 1; argv[i] != NULL; i++)
    g_ptr_array_add (merged, g_strdup (argv[i]));
  g_ptr_array_add (merged, NULL);
  return (char **)g_ptr_array_free (g_steal_pointer (&merged), FALSE);
}

const char *
muster_config_file_origin (MusterConfigFile *self, const char *name)
{
  return g_hash_table_lookup (self->origins, name);
}
