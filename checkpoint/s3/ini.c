// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/ini_private.h"

#include <string.h>

/* More than any profile has. */
#define SETTINGS_MAX 256

/* The name in "[name]", with one space between its words; NULL if the line isn't a section's.
 * (transfer full) */
static char *
read_section (const char *line)
{
  const char *end = strrchr (line, ']');
  if (*line != '[' || end == NULL)
    return NULL;
  g_autofree char *inside = g_strndup (line + 1, (gsize)(end - line - 1));
  g_auto (GStrv) words = g_strsplit_set (inside, " \t", -1);
  GString *name = g_string_new (NULL);
  for (gsize i = 0; words[i] != NULL; i++)
    if (*words[i] != '\0')
      g_string_append_printf (name, "%s%s", name->len > 0 ? " " : "", words[i]);
  return g_string_free (name, FALSE);
}

static void
read_setting (const char *line, GHashTable *settings)
{
  const char *equals = strchr (line, '=');
  if (equals == NULL || equals == line)
    return;
  char *name = g_strstrip (g_strndup (line, (gsize)(equals - line)));
  char *value = g_strstrip (g_strdup (equals + 1));
  if (g_hash_table_size (settings) < SETTINGS_MAX)
    g_hash_table_replace (settings, name, value);
  else {
    g_free (name);
    g_free (value);
  }
}

static gboolean
is_ignored (const char *line)
{
  return *line == '\0' || g_ascii_isspace (*line) || *line == '#' || *line == ';';
}

gboolean
muster_ini_read (const char *text, gsize size, const char *section, GHashTable *settings)
{
  gboolean is_inside = FALSE, is_found = FALSE;
  for (const char *at = text, *end = text + size; at < end;) {
    const char *newline = memchr (at, '\n', (gsize)(end - at));
    const gsize n = newline != NULL ? (gsize)(newline - at) : (gsize)(end - at);
    g_autofree char *line = g_strchomp (g_strndup (at, n));
    g_autofree char *name = read_section (line);
    if (name != NULL) {
      is_inside = strcmp (name, section) == 0;
      is_found = is_found || is_inside;
    } else if (is_inside && !is_ignored (line))
      read_setting (line, settings);
    at += n + (newline != NULL ? 1 : 0);
  }
  return is_found;
}
