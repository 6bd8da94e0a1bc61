// SPDX-License-Identifier: Apache-2.0
#include "base/safe_text_private.h"

#include <string.h>

#define HIDDEN "(hidden)"

gboolean
muster_is_printable (gunichar c)
{
  switch (g_unichar_type (c)) {
  case G_UNICODE_CONTROL:
  case G_UNICODE_FORMAT:
  case G_UNICODE_SURROGATE:
  case G_UNICODE_LINE_SEPARATOR:
  case G_UNICODE_PARAGRAPH_SEPARATOR:
    return FALSE;
  default:
    return TRUE;
  }
}

/* "\r\n" is one line break. */
static char *
make_safe (const char *valid, gboolean keeps_lines)
{
  GString *safe = g_string_sized_new (strlen (valid));
  for (const char *at = valid; *at != '\0'; at = g_utf8_next_char (at)) {
    const gunichar c = g_utf8_get_char (at);
    if (c == '\r' && at[1] == '\n')
      continue;
    if (c == '\n')
      g_string_append_c (safe, keeps_lines ? '\n' : ' ');
    else if (c == '\t')
      g_string_append_c (safe, ' ');
    else
      g_string_append_unichar (safe, muster_is_printable (c) ? c : '?');
  }
  return g_string_free (safe, FALSE);
}

char *
muster_safe_text (const char *text, gssize size, gsize most)
{
  gsize length = size < 0 ? strlen (text) : strnlen (text, (gsize)size);
  const gboolean is_cut = most > 0 && length > most;
  if (is_cut) /* where a character begins */
    for (length = most; length > 0 && ((guchar)text[length] & 0xc0) == 0x80;)
      length--;
  g_autofree char *valid = g_utf8_make_valid (text, (gssize)length);
  g_autofree char *safe = make_safe (valid, FALSE);
  return is_cut ? g_strconcat (safe, "…", NULL) : g_steal_pointer (&safe);
}

char *
muster_safe_lines (const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  return make_safe (valid, TRUE);
}

gboolean
muster_is_secret (const char *text, gsize size)
{
  if (size == 0 || text[0] == ' ' || text[size - 1] == ' ')
    return FALSE;
  for (gsize i = 0; i < size; i++)
    if (!g_ascii_isprint (text[i]))
      return FALSE;
  return TRUE;
}

char *
muster_hide_secrets (const char *text, const char *const *secrets)
{
  GString *shown = g_string_new (text);
  for (; secrets != NULL && *secrets != NULL; secrets++)
    if (**secrets != '\0')
      g_string_replace (shown, *secrets, HIDDEN, 0);
  return g_string_free (shown, FALSE);
}
