// SPDX-License-Identifier: Apache-2.0
#include "cli/plain.h"

#include <string.h>

char *
muster_cli_plain (const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  GString *plain = g_string_sized_new (strlen (valid));
  for (const char *at = valid; *at != '\0'; at = g_utf8_next_char (at)) {
    gunichar c = g_utf8_get_char (at);
    GUnicodeType type = g_unichar_type (c);
    gboolean is_odd = type == G_UNICODE_CONTROL || type == G_UNICODE_FORMAT;
    g_string_append_unichar (plain, is_odd && c != '\n' ? '?' : c);
  }
  return g_string_free (plain, FALSE);
}

void
muster_cli_say (FILE *stream, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_autofree char *plain = muster_cli_plain (text);
  fputs (plain, stream);
  fflush (stream);
}
