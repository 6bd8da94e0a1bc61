// SPDX-License-Identifier: Apache-2.0
/* What is printed can't control the terminal: texts from the network and from files lose control
 * characters, and what the locale can't show. */
#include "cli/output/sanitise.h"

#include "base/safe_text_private.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_COLUMNS 80
#define INDENT          "    "
#define BAR_COLOUR      "\033[32m"
#define NO_COLOUR       "\033[0m"

static gboolean
is_utf8_locale (void)
{
  return g_get_charset (NULL);
}

/* (transfer full), of what is passed as well */
static char *
for_locale (char *utf8)
{
  if (is_utf8_locale ())
    return utf8;
  char *ascii = g_str_to_ascii (utf8, "C");
  g_free (utf8);
  return ascii;
}

char *
muster_cli_sanitise (const char *text)
{
  return for_locale (muster_safe_lines (text));
}

char *
muster_cli_one_line (const char *text)
{
  return for_locale (muster_safe_text (text, -1, 0));
}

char *
muster_cli_statement (const char *text)
{
  g_autofree char *sanitised = muster_cli_sanitise (text);
  gsize end = strlen (sanitised);
  while (end > 0 && sanitised[end - 1] == '\n')
    end--;
  GString *statement = g_string_sized_new (end);
  for (gsize i = 0; sanitised[i] != '\0'; i++) {
    g_string_append_c (statement, sanitised[i]);
    if (sanitised[i] == '\n' && i < end)
      g_string_append (statement, INDENT);
  }
  return g_string_free (statement, FALSE);
}

int
muster_cli_flush (FILE *stream)
{
  static gint failure; /* atomic */
  const gboolean is_written = fflush (stream) == 0 && !ferror (stream);
  if (!is_written && stream == stdout)
    (void)g_atomic_int_compare_and_exchange (&failure, 0, errno != 0 ? errno : EIO);
  return g_atomic_int_get (&failure);
}

void
muster_cli_say (FILE *stream, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_autofree char *statement = muster_cli_statement (text);
  fputs (statement, stream);
  (void)muster_cli_flush (stream);
}

void
muster_cli_put (FILE *stream, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_autofree char *sanitised = muster_cli_sanitise (text);
  fputs (sanitised, stream);
  (void)muster_cli_flush (stream);
}

guint
muster_cli_columns (const char *text)
{
  guint columns = 0;
  for (; *text != '\0'; text = g_utf8_next_char (text)) {
    const gunichar c = g_utf8_get_char (text);
    columns += g_unichar_iszerowidth (c) ? 0 : g_unichar_iswide (c) ? 2 : 1;
  }
  return columns;
}

guint
muster_cli_terminal_columns (FILE *stream)
{
  struct winsize size = {0};
  const int fd = fileno (stream);
  if (fd < 0 || !isatty (fd))
    return 0;
  return ioctl (fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : DEFAULT_COLUMNS;
}

void
muster_cli_append_bar (GString *text, double part, guint columns, gboolean coloured)
{
  const guint n_full = (guint)(part * columns);
  const char *full = is_utf8_locale () ? "█" : "#", *empty = is_utf8_locale () ? "░" : ".";
  g_string_append (text, coloured ? BAR_COLOUR : "");
  for (guint i = 0; i < columns; i++)
    g_string_append (text, i < n_full ? full : empty);
  g_string_append (text, coloured ? NO_COLOUR : "");
}

/* Wraps a paragraph at columns. */
static void
append_filled (GString *out, const char *paragraph, guint columns)
{
  g_auto (GStrv) words = g_strsplit_set (paragraph, " \n", -1);
  guint column = 0;
  for (char **word = words; *word != NULL; word++) {
    const guint n = muster_cli_columns (*word);
    if (n == 0)
      continue;
    if (column > 0)
      g_string_append_c (out, column + 1 + n > columns ? '\n' : ' ');
    column = column > 0 && column + 1 + n <= columns ? column + 1 + n : n;
    g_string_append (out, *word);
  }
  if (column > 0)
    g_string_append_c (out, '\n');
}

char *
muster_cli_wrap (const char *text, guint columns)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_autoptr (GString) paragraph = g_string_new (NULL);
  GString *out = g_string_new (NULL);
  for (char **line = lines; *line != NULL; line++) {
    const gboolean is_kept = **line == '\0' || g_str_has_prefix (*line, "  ");
    if (!is_kept)
      g_string_append_printf (paragraph, "%s%s", paragraph->len > 0 ? "\n" : "", *line);
    if (!is_kept && line[1] != NULL && columns > 0)
      continue;
    if (columns > 0)
      append_filled (out, paragraph->str, columns);
    else if (paragraph->len > 0)
      g_string_append_printf (out, "%s\n", paragraph->str);
    g_string_truncate (paragraph, 0);
    if (is_kept && (**line != '\0' || line[1] != NULL))
      g_string_append_printf (out, "%s\n", *line);
  }
  return g_string_free (out, FALSE);
}

/* A number and its unit stay together: "1.2 s", "133 KB". */
static gboolean
is_before_unit (const char *text, const char *blank)
{
  return blank > text && g_ascii_isdigit (blank[-1]) && g_ascii_isalpha (blank[1]) &&
         (!g_ascii_isalpha (blank[2]) || !g_ascii_isalpha (blank[3]));
}

/* Takes as much of *text as fits, up to a blank if there is one, and advances *text. */
static char *
take_line (const char **text, guint columns_left)
{
  const char *at = *text, *blank = NULL;
  for (guint column = 0; *at != '\0'; at = g_utf8_next_char (at)) {
    g_autofree char *one = g_strndup (at, (gsize)(g_utf8_next_char (at) - at));
    column += muster_cli_columns (one);
    if (*at == ' ' && !is_before_unit (*text, at))
      blank = at;
    if (column > columns_left && at > *text)
      break;
  }
  const char *end = *at == '\0' || blank == NULL || blank == *text ? at : blank;
  char *line = g_strndup (*text, (gsize)(end - *text));
  *text = end + (*end == ' ');
  return line;
}

void
muster_cli_append_wrapped (GString *out, const char *text, guint column, guint columns)
{
  const guint columns_left = columns > column ? columns - column : columns;
  const char *rest = text;
  while (columns > 0 && muster_cli_columns (rest) > columns_left) {
    g_autofree char *line = take_line (&rest, columns_left);
    g_string_append_printf (out, "%s\n%*s", line, (int)column, "");
  }
  g_string_append_printf (out, "%s\n", rest);
}
