// SPDX-License-Identifier: Apache-2.0
/* One message of the log, as text, JSON or a journal entry. It is a copy of GLib's fields in one
 * block. */
#include "cli/output/log_message.h"

#include "base/clock.h"
#include "cli/output/sanitise.h"
#include "status/json.h"

#include <string.h>

#define PREFIX  "MUSTER_"
#define UNKNOWN "message" /* the event of a message that has none: another library's */

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

/* --- one message --- */

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

char *
muster_log_message_find (const MusterLogMessage *self, const char *key)
{
  for (gsize i = 0; i < self->n_fields; i++)
    if (strcmp (self->fields[i].key, key) == 0)
      return text_of (&self->fields[i]);
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
time_of (const MusterLogMessage *self)
{
  g_autoptr (GDateTime) time = g_date_time_new_from_unix_utc (self->wall_us / MUSTER_SECOND);
  g_autofree char *seconds = g_date_time_format (time, "%Y-%m-%dT%H:%M:%S");
  return g_strdup_printf ("%s.%03dZ", seconds,
                          (int)(self->wall_us % MUSTER_SECOND / MUSTER_MILLISECOND));
}

static gsize
size_of_value (const GLogField *field)
{
  if (field->value == NULL)
    return 0;
  return field->length < 0 ? strlen (field->value) + 1 : (gsize)field->length;
}

static gsize
size_of_copy (const MusterLogMessage *self)
{
  gsize size = sizeof *self + self->n_fields * sizeof *self->fields;
  for (gsize i = 0; i < self->n_fields; i++)
    size += strlen (self->fields[i].key) + 1 + size_of_value (&self->fields[i]);
  return size;
}

/* Copies to *at, which moves behind the copy. */
static gpointer
put (char **at, gconstpointer from, gsize size)
{
  char *copy = *at;
  if (size > 0)
    memcpy (copy, from, size);
  *at += size;
  return copy;
}

MusterLogMessage *
muster_log_message_copy (const MusterLogMessage *self, gsize *size)
{
  *size = size_of_copy (self);
  char *at = g_malloc (*size);
  MusterLogMessage *copy = put (&at, self, sizeof *self);
  GLogField *fields = put (&at, self->fields, self->n_fields * sizeof *self->fields);
  for (gsize i = 0; i < self->n_fields; i++) {
    fields[i].key = put (&at, fields[i].key, strlen (fields[i].key) + 1);
    if (fields[i].value != NULL)
      fields[i].value = put (&at, fields[i].value, size_of_value (&self->fields[i]));
  }
  copy->fields = fields;
  return copy;
}

/* --- as text --- */

static void
append_value (GString *line, const char *value)
{
  g_autofree char *shown = muster_cli_one_line (value);
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
append_fields (GString *line, const MusterLogMessage *self)
{
  const char *space = "  ";
  for (gsize i = 0; i < self->n_fields; i++) {
    g_autofree char *name = NULL, *value = NULL;
    if (!read_field (&self->fields[i], &name, &value))
      continue;
    g_string_append_printf (line, "%s%s=", space, name);
    append_value (line, value);
    space = " ";
  }
}

char *
muster_log_message_as_text (const MusterLogMessage *self)
{
  g_autofree char *time = time_of (self);
  g_autofree char *event = muster_log_message_find (self, "MUSTER_EVENT");
  g_autofree char *text = muster_log_message_find (self, "MESSAGE");
  g_autofree char *shown = muster_cli_one_line (text != NULL ? text : "");
  GString *line = g_string_new (NULL);
  g_string_printf (line, "%s %-7s %s  %s", time, levels[place_of (self->level)].name,
                   event != NULL ? event : UNKNOWN, shown);
  append_fields (line, self);
  return g_string_free (line, FALSE);
}

char *
muster_log_message_as_plain (const MusterLogMessage *self, gboolean is_displayed)
{
  const gboolean is_warning = self->level < G_LOG_LEVEL_MESSAGE;
  g_autofree char *text = muster_log_message_find (self, "MESSAGE");
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

char *
muster_log_message_as_json (const MusterLogMessage *self)
{
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  g_autofree char *time = time_of (self);
  g_autofree char *event = muster_log_message_find (self, "MUSTER_EVENT");
  g_autofree char *text = muster_log_message_find (self, "MESSAGE");
  g_autofree char *domain = muster_log_message_find (self, "GLIB_DOMAIN");
  muster_json_add_string (builder, "time", time);
  muster_json_add_string (builder, "level", levels[place_of (self->level)].name);
  muster_json_add_string (builder, "event", event != NULL ? event : UNKNOWN);
  muster_json_add_string (builder, "message", text != NULL ? text : "");
  if (event == NULL && domain != NULL)
    muster_json_add_string (builder, "domain", domain);
  for (gsize i = 0; i < self->n_fields; i++) {
    g_autofree char *name = NULL, *value = NULL;
    if (read_field (&self->fields[i], &name, &value))
      add_field (builder, name, value);
  }
  return muster_json_end (builder);
}

/* --- to the journal --- */

/* GLib gives a CRITICAL a warning's priority. */
gboolean
muster_log_message_to_journald (const MusterLogMessage *self)
{
  g_autofree GLogField *fields = g_memdup2 (self->fields, self->n_fields * sizeof *fields);
  for (gsize i = 0; i < self->n_fields; i++)
    if (strcmp (fields[i].key, "PRIORITY") == 0)
      fields[i] = (GLogField){"PRIORITY", levels[place_of (self->level)].priority, -1};
  return g_log_writer_journald (self->level, fields, self->n_fields, NULL) == G_LOG_WRITER_HANDLED;
}

GLogLevelFlags
muster_log_level_of (const char *name)
{
  for (gsize i = G_N_ELEMENTS (levels); i-- > 0;)
    if (strcmp (name, levels[i].name) == 0)
      return levels[i].level;
  return (GLogLevelFlags)0;
}
