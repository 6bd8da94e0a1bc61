// SPDX-License-Identifier: Apache-2.0
#include "server/http/html.h"

#include "base/safe_text_private.h"

#include <string.h>

#define NO_BREAK_SPACE "\u00a0"

static gboolean
begins_with_unit (const char *text)
{
  static const char *const units[] = {"µs", "ms", "s",  "B",  "KB", "MB",
                                      "GB", "TB", "PB", "EB", "%"};
  for (guint i = 0; i < G_N_ELEMENTS (units); i++)
    if (g_str_has_prefix (text, units[i]) && !g_ascii_isalnum (text[strlen (units[i])]))
      return TRUE;
  return FALSE;
}

/* Keeps a number and its unit in one line. */
static void
append_escaped (GString *out, const char *text)
{
  for (const char *at = text; *at != '\0'; at++)
    if (at > text && *at == ' ' && g_ascii_isdigit (at[-1]) && begins_with_unit (at + 1))
      g_string_append (out, NO_BREAK_SPACE);
    else
      g_string_append_c (out, *at);
}

void
muster_html_put (GString *out, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_markup_vprintf_escaped (format, arguments);
  va_end (arguments);
  append_escaped (out, text);
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
  append_escaped (out, escaped);
}

char *
muster_html_number (double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup (g_ascii_formatd (text, sizeof text, value >= 10 ? "%.0f" : "%.2g", value));
}
