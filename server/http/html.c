// SPDX-License-Identifier: Apache-2.0
#include "server/http/html.h"

#include "base/safe_text_private.h"

void
muster_html_put (GString *out, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_markup_vprintf_escaped (format, arguments);
  va_end (arguments);
  g_string_append (out, text);
}

/* Escaping alone could read past a character that was cut off, and a line break would end an
 * event. */
void
muster_html_put_text (GString *out, const char *text)
{
  if (text == NULL)
    return;
  g_autofree char *safe = muster_safe_text (text, -1, 0);
  g_autofree char *escaped = g_markup_escape_text (safe, -1);
  g_string_append (out, escaped);
}

char *
muster_html_number (double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup (g_ascii_formatd (text, sizeof text, value >= 10 ? "%.0f" : "%.2g", value));
}
