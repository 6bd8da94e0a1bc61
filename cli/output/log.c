// SPDX-License-Identifier: Apache-2.0
#include "cli/output/log.h"

#include "base/clock.h"
#include "base/error.h"
#include "cli/output/sanitise.h"
#include "status/json.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define PREFIX  "MUSTER_"
#define UNKNOWN "message" /* the event of a message that has none: another library's */

typedef enum {
  FORMAT_PLAIN, /* for a person who reads a command's report */
  FORMAT_TEXT,
  FORMAT_JSON,
  FORMAT_JOURNALD,
} Format;

/* The levels' names, the most severe first; syslog's priorities. */
static const struct {
  GLogLevelFlags level;
  const char *name, *priority;
} levels[] = {
    {G_LOG_LEVEL_ERROR, "error", "3"},     {G_LOG_LEVEL_CRITICAL, "error", "3"},
    {G_LOG_LEVEL_WARNING, "warning", "4"}, {G_LOG_LEVEL_MESSAGE, "notice", "5"},
    {G_LOG_LEVEL_INFO, "info", "6"},       {G_LOG_LEVEL_DEBUG, "debug", "7"},
};

/* The fields that are numbers in JSON. */
static const char *const numbers[] = {
    "bytes",   "count",    "epoch", "left_out", "max",  "pid",
    "seconds", "sessions", "step",  "steps",    "used",
};

static Format format; /* atomic */
static GMutex print_lock;
static MusterLogPrint print_by; /* (nullable) guarded by print_lock */
static gpointer print_data;
static guint n_dropped;  /* guarded by print_lock */
static gboolean is_torn; /* the last line lacks its end; guarded by print_lock */

/* --- one message --- */

typedef struct {
  GLogLevelFlags level;
  const GLogField *fields;
  gsize n_fields;
} Message;

static gsize
place_of (GLogLevelFlags level)
{
  for (gsize i = 0; i < G_N_ELEMENTS (levels); i++)
    if (level & levels[i].level)
      return i;
  return G_N_ELEMENTS (levels) - 1;
}

/* (transfer full) (nullable) */
static char *
text_of (const GLogField *field)
{
  if (field->value == NULL)
    return NULL;
  return field->length < 0 ? g_strdup (field->value)
                           : g_strndup (field->value, (gsize)field->length);
}

/* (transfer full) (nullable) */
static char *
find (const Message *message, const char *key)
{
  for (gsize i = 0; i < message->n_fields; i++)
    if (strcmp (message->fields[i].key, key) == 0)
      return text_of (&message->fields[i]);
  return NULL;
}

/* "model" of MUSTER_MODEL, and its value, unless it is empty or not a field of muster's. */
static gboolean
read_field (const GLogField *field, char **name, char **value)
{
  if (!g_str_has_prefix (field->key, PREFIX) || strcmp (field->key, "MUSTER_EVENT") == 0)
    return FALSE;
  g_autofree char *text = text_of (field);
  if (text == NULL || *text == '\0')
    return FALSE;
  *name = g_ascii_strdown (field->key + strlen (PREFIX), -1);
  *value = g_steal_pointer (&text);
  return TRUE;
}

/* "2026-11-23T03:17:10.123Z" (transfer full) */
static char *
now_as_text (void)
{
  const gint64 us = muster_clock_wall_us (muster_system_clock ());
  g_autoptr (GDateTime) now = g_date_time_new_from_unix_utc (us / MUSTER_SECOND);
  g_autofree char *seconds = g_date_time_format (now, "%Y-%m-%dT%H:%M:%S");
  return g_strdup_printf ("%s.%03dZ", seconds, (int)(us % MUSTER_SECOND / MUSTER_MILLISECOND));
}

/* --- as text --- */

/* A text in one line. (transfer full) */
static char *
one_line (const char *text)
{
  g_autofree char *sanitised = muster_cli_sanitise (text);
  return g_strdelimit (g_steal_pointer (&sanitised), "\n", ' ');
}

static void
append_value (GString *line, const char *value)
{
  g_autofree char *shown = one_line (value);
  if (strpbrk (shown, " \"=") == NULL) {
    g_string_append (line, shown);
    return;
  }
  g_string_append_c (line, '"');
  for (const char *at = shown; *at != '\0'; at++)
    g_string_append_printf (line, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
  g_string_append_c (line, '"');
}

static void
append_fields (GString *line, const Message *message)
{
  const char *space = "  ";
  for (gsize i = 0; i < message->n_fields; i++) {
    g_autofree char *name = NULL, *value = NULL;
    if (!read_field (&message->fields[i], &name, &value))
      continue;
    g_string_append_printf (line, "%s%s=", space, name);
    append_value (line, value);
    space = " ";
  }
}

/* (transfer full) */
static char *
as_text (const Message *message)
{
  g_autofree char *time = now_as_text ();
  g_autofree char *event = find (message, "MUSTER_EVENT");
  g_autofree char *text = find (message, "MESSAGE");
  g_autofree char *shown = one_line (text != NULL ? text : "");
  GString *line = g_string_new (NULL);
  g_string_printf (line, "%s %-7s %s  %s", time, levels[place_of (message->level)].name,
                   event != NULL ? event : UNKNOWN, shown);
  append_fields (line, message);
  return g_string_free (line, FALSE);
}

/* Just the message, for a person. (transfer full) */
static char *
as_plain (const Message *message, gboolean is_displayed)
{
  const gboolean is_warning = message->level < G_LOG_LEVEL_MESSAGE;
  g_autofree char *text = find (message, "MESSAGE");
  return g_strconcat (is_displayed ? "" : "muster: ", is_warning ? "warning: " : "",
                      text != NULL ? text : "", NULL);
}

/* --- as JSON --- */

static gboolean
is_number (const char *name)
{
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (strcmp (name, numbers[i]) == 0)
      return TRUE;
  return FALSE;
}

static void
add_field (JsonBuilder *builder, const char *name, const char *value)
{
  gint64 whole;
  char *end = NULL;
  json_builder_set_member_name (builder, name);
  if (is_number (name) &&
      g_ascii_string_to_signed (value, 10, G_MININT64, G_MAXINT64, &whole, NULL)) {
    json_builder_add_int_value (builder, whole);
    return;
  }
  const double real = g_ascii_strtod (value, &end);
  g_autofree char *valid = g_utf8_make_valid (value, -1);
  if (is_number (name) && *end == '\0')
    json_builder_add_double_value (builder, real);
  else
    json_builder_add_string_value (builder, valid);
}

/* (transfer full) */
static char *
as_json (const Message *message)
{
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  g_autofree char *time = now_as_text ();
  g_autofree char *event = find (message, "MUSTER_EVENT");
  g_autofree char *text = find (message, "MESSAGE");
  g_autofree char *domain = find (message, "GLIB_DOMAIN");
  muster_json_add_string (builder, "time", time);
  muster_json_add_string (builder, "level", levels[place_of (message->level)].name);
  muster_json_add_string (builder, "event", event != NULL ? event : UNKNOWN);
  muster_json_add_string (builder, "message", text != NULL ? text : "");
  if (event == NULL && domain != NULL)
    muster_json_add_string (builder, "domain", domain);
  for (gsize i = 0; i < message->n_fields; i++) {
    g_autofree char *name = NULL, *value = NULL;
    if (read_field (&message->fields[i], &name, &value))
      add_field (builder, name, value);
  }
  return muster_json_end (builder);
}

/* --- writing --- */

/* GLib gives a CRITICAL a warning's priority. */
static gboolean
write_to_journald (const Message *message)
{
  g_autofree GLogField *fields = g_memdup2 (message->fields, message->n_fields * sizeof *fields);
  for (gsize i = 0; i < message->n_fields; i++)
    if (strcmp (fields[i].key, "PRIORITY") == 0)
      fields[i] = (GLogField){"PRIORITY", levels[place_of (message->level)].priority, -1};
  return g_log_writer_journald (message->level, fields, message->n_fields, NULL) ==
         G_LOG_WRITER_HANDLED;
}

static char *
line_of (const Message *message, Format as)
{
  return as == FORMAT_JSON ? as_json (message) : as_text (message);
}

/* FALSE if a reader has stopped reading: a server doesn't wait for it. */
static gboolean
has_reader (void)
{
  struct pollfd log = {.fd = fileno (stderr), .events = POLLOUT};
  return poll (&log, 1, 0) != 0;
}

static void
write_part (const char *part, gsize size)
{
  fwrite (part, 1, size, stderr);
  fflush (stderr);
}

/* A pipe that has room takes PIPE_BUF bytes at once; a longer line would wait for the reader. With
 * the lock held. */
static void
write_line (const char *line)
{
  g_autofree char *ended = g_strconcat (is_torn ? "\n" : "", line, "\n", NULL);
  const gsize size = strlen (ended);
  gsize at = 0;
  while (at < size && has_reader ()) {
    const gsize n = MIN (size - at, PIPE_BUF);
    write_part (ended + at, n);
    at += n;
  }
  if (at > 0)
    is_torn = at < size;
  if (at < size)
    n_dropped++;
}

/* With the lock held, before the first line after those that were dropped. */
static void
say_dropped (Format as)
{
  char count[24];
  const GLogField fields[] = {{"GLIB_DOMAIN", MUSTER_LOG_DOMAIN, -1},
                              {"MUSTER_EVENT", "dropped", -1},
                              {"MUSTER_COUNT", muster_log_int (count, n_dropped), -1},
                              {"MESSAGE", "the log's reader didn't read; lines were dropped", -1}};
  g_autofree char *line =
      line_of (&(Message){G_LOG_LEVEL_WARNING, fields, G_N_ELEMENTS (fields)}, as);
  n_dropped = 0;
  write_line (line);
}

static void
print_plain (const Message *message)
{
  g_autofree char *line = as_plain (message, FALSE);
  g_autofree char *shown = muster_cli_sanitise (line);
  g_autofree char *ended = g_strconcat (shown, "\n", NULL);
  write_part (ended, strlen (ended));
}

/* With the lock held: a line is written at once, and after all of the line before it. */
static void
print_line (const Message *message, Format as)
{
  if (as == FORMAT_PLAIN && print_by == NULL) {
    print_plain (message);
    return;
  }
  g_autofree char *line = as == FORMAT_PLAIN ? as_plain (message, TRUE) : line_of (message, as);
  if (print_by != NULL) {
    print_by (line, print_data);
  } else {
    if (n_dropped > 0 && has_reader ())
      say_dropped (as);
    write_line (line);
  }
}

/* What other libraries say below WARNING is GLib's to decide (G_MESSAGES_DEBUG). */
static gboolean
is_dropped (const Message *message)
{
  g_autofree char *domain = find (message, "GLIB_DOMAIN");
  if (g_strcmp0 (domain, MUSTER_LOG_DOMAIN) == 0)
    return FALSE; /* muster_log () has asked */
  return message->level > G_LOG_LEVEL_MESSAGE &&
         g_log_writer_default_would_drop (message->level, domain);
}

static GLogWriterOutput
write_message (GLogLevelFlags level, const GLogField *fields, gsize n_fields,
               gpointer user_data G_GNUC_UNUSED)
{
  const Message message = {level & G_LOG_LEVEL_MASK, fields, n_fields};
  const Format as = (Format)g_atomic_int_get ((gint *)&format);
  if (is_dropped (&message) || (as == FORMAT_JOURNALD && write_to_journald (&message)))
    return G_LOG_WRITER_HANDLED;
  g_mutex_lock (&print_lock);
  print_line (&message, as);
  g_mutex_unlock (&print_lock);
  return G_LOG_WRITER_HANDLED;
}

void
muster_cli_log_begin (void)
{
  if (!muster_log_enabled (G_LOG_LEVEL_DEBUG)) /* else G_MESSAGES_DEBUG asks for all */
    muster_log_set_level (G_LOG_LEVEL_MESSAGE);
  g_log_set_writer_func (write_message, NULL, NULL);
}

/* --- the options --- */

static gboolean
read_level (const char *name, GLogLevelFlags *level, GError **error)
{
  for (gsize i = G_N_ELEMENTS (levels); i-- > 0;) {
    *level = levels[i].level;
    if (strcmp (name, levels[i].name) == 0)
      return TRUE;
  }
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --log-level '%s' (use error, warning, notice, info or debug)", name);
}

static gboolean
read_format (const char *name, Format *as, GError **error)
{
  static const char *const names[] = {NULL, "text", "json", "journald"};
  for (Format i = FORMAT_TEXT; i <= FORMAT_JOURNALD; i++) {
    *as = i;
    if (strcmp (name, names[i]) == 0)
      return TRUE;
  }
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --log-format '%s' (use text, json or journald)", name);
}

static Format
usual_format (void)
{
  return g_log_writer_is_journald (fileno (stderr)) ? FORMAT_JOURNALD : FORMAT_TEXT;
}

gboolean
muster_cli_log_set (const char *level, const char *as, MusterLogUse use, GError **error)
{
  GLogLevelFlags least = use == MUSTER_LOG_OF_SERVICE ? G_LOG_LEVEL_INFO : G_LOG_LEVEL_MESSAGE;
  const gboolean is_report = use == MUSTER_LOG_OF_COMMAND && level == NULL && as == NULL;
  Format chosen = is_report ? FORMAT_PLAIN : usual_format ();
  if ((level != NULL && !read_level (level, &least, error)) ||
      (as != NULL && !read_format (as, &chosen, error)))
    return FALSE;
  if (level != NULL || !muster_log_enabled (G_LOG_LEVEL_DEBUG))
    muster_log_set_level (least);
  g_atomic_int_set ((gint *)&format, (gint)chosen);
  return TRUE;
}

gboolean
muster_cli_log_is_parsed (void)
{
  return g_atomic_int_get ((gint *)&format) >= FORMAT_JSON;
}

void
muster_cli_log_print_by (MusterLogPrint print, gpointer user_data)
{
  g_mutex_lock (&print_lock);
  print_by = print;
  print_data = user_data;
  g_mutex_unlock (&print_lock);
}
