// SPDX-License-Identifier: Apache-2.0
#include "cli/common/flags.h"

#include "cli/common/cli.h"

#include <string.h>

/* A number that nobody gives: the limits of 64 bits are given, to be refused. */
#define NOT_GIVEN (G_MININT64 + 0x6d75737465)

/* The flag of a field, as it was parsed. */
typedef struct {
  const MusterField *field;
  gpointer options; /* (not owned) the struct with the field */
  gboolean is_on;
  gint64 number;
  char *text; /* (owned) (nullable) */
} Flag;

struct _MusterFlags {
  const char *command;
  MusterConfigFile *file; /* (not owned) (nullable) */
  GArray *entries;        /* (element-type GOptionEntry) zero-terminated */
  GPtrArray *flags;       /* (element-type Flag) */
};

static void
flag_free (gpointer data)
{
  Flag *self = data;
  g_free (self->text);
  g_free (self);
}

MusterFlags *
muster_flags_new (const char *command)
{
  MusterFlags *self = g_new0 (MusterFlags, 1);
  self->command = command;
  self->entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  self->flags = g_ptr_array_new_with_free_func (flag_free);
  return self;
}

void
muster_flags_free (MusterFlags *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->entries);
  g_ptr_array_unref (self->flags);
  g_free (self);
}

/* --- the table --- */

/* Two structs of one command can't have the same flag: one of them wouldn't be set. */
static void
add_entry (MusterFlags *self, GOptionEntry entry)
{
  for (guint i = 0; i < self->entries->len; i++)
    if (strcmp (g_array_index (self->entries, GOptionEntry, i).long_name, entry.long_name) == 0)
      g_error ("muster %s has two options --%s", self->command, entry.long_name);
  g_array_append_val (self->entries, entry);
}

void
muster_flags_add (MusterFlags *self, const GOptionEntry *own, gpointer data)
{
  for (; own->long_name != NULL; own++) {
    GOptionEntry entry = *own;
    entry.arg_data = (char *)data + GPOINTER_TO_SIZE (own->arg_data);
    add_entry (self, entry);
  }
}

static gboolean
is_path (const MusterField *field)
{
  static const char *const paths[] = {"DIR", "FILE", "PREFIX", NULL};
  return field->flag->value != NULL && g_strv_contains (paths, field->flag->value);
}

static gboolean
is_time (const MusterField *field)
{
  return g_strcmp0 (field->flag->value, "TIME") == 0;
}

/* One of several words: an enumeration from 0. */
static gboolean
is_choice (const MusterField *field)
{
  return field->kind == MUSTER_FIELD_INT && strchr (field->flag->value, '|') != NULL;
}

static void
add_flag (MusterFlags *self, const MusterField *field, gpointer options)
{
  const MusterFieldFlag *flag = field->flag;
  Flag *parsed = g_new0 (Flag, 1);
  GOptionEntry entry = {flag->name,    0,          0,          G_OPTION_ARG_STRING,
                        &parsed->text, flag->help, flag->value};
  *parsed = (Flag){.field = field, .options = options, .number = NOT_GIVEN};
  if (field->kind == MUSTER_FIELD_BOOLEAN) {
    entry.arg = G_OPTION_ARG_NONE;
    entry.arg_data = &parsed->is_on;
  } else if (is_path (field)) {
    entry.arg = G_OPTION_ARG_FILENAME;
  } else if (field->kind < MUSTER_FIELD_DOUBLE && !is_time (field) && !is_choice (field)) {
    entry.arg = G_OPTION_ARG_INT64;
    entry.arg_data = &parsed->number;
  }
  add_entry (self, entry);
  g_ptr_array_add (self->flags, parsed);
}

static gboolean
is_for (const MusterFlags *self, const MusterFieldFlag *flag)
{
  if (flag->commands == NULL)
    return TRUE;
  g_auto (GStrv) commands = g_strsplit (flag->commands, ",", -1);
  return g_strv_contains ((const char *const *)commands, self->command);
}

void
muster_flags_add_fields (MusterFlags *self, const MusterFields *fields, gpointer options)
{
  for (gsize i = 0; i < fields->n; i++) {
    const MusterField *field = &fields->fields[i];
    if (field->flag != NULL && is_for (self, field->flag))
      add_flag (self, field, options);
  }
  for (gsize i = 0; i < fields->n; i++) {
    const MusterField *field = &fields->fields[i];
    if (field->kind == MUSTER_FIELD_VALUE)
      muster_flags_add_options (self, field->type (), G_STRUCT_MEMBER_P (options, field->offset));
  }
}

void
muster_flags_add_options (MusterFlags *self, GType type, gpointer options)
{
  const MusterFields *fields = muster_fields_of (type);
  if (fields != NULL)
    muster_flags_add_fields (self, fields, options);
}

const GOptionEntry *
muster_flags_entries (const MusterFlags *self)
{
  return (const GOptionEntry *)(gconstpointer)self->entries->data;
}

/* --- what was given --- */

void
muster_flags_set_file (MusterFlags *self, MusterConfigFile *file)
{
  self->file = file;
}

const char *
muster_flags_name (const MusterFlags *self, const char *name)
{
  const char *origin = self->file != NULL ? muster_config_file_origin (self->file, name) : NULL;
  if (origin != NULL)
    return origin;
  g_autofree char *flag = g_strconcat ("--", name, NULL);
  return g_intern_string (flag);
}

static gboolean
is_given (const Flag *self)
{
  return self->is_on || self->number != NOT_GIVEN || self->text != NULL;
}

gboolean
muster_flags_is_given (const MusterFlags *self, const char *name)
{
  for (guint i = 0; i < self->flags->len; i++) {
    const Flag *flag = self->flags->pdata[i];
    if (strcmp (flag->field->flag->name, name) == 0)
      return is_given (flag);
  }
  return FALSE;
}

/* "(use 1 to 9)", by what the field declares, or "" (transfer full). 0 is the default, and isn't
 * named. */
static char *
range_text (const MusterField *field)
{
  long double min, max;
  muster_field_range (field, &min, &max);
  const gboolean has_min = min == 0 || (field->has_range && field->min == min);
  if (field->has_range && field->max == max)
    return g_strdup_printf (" (use %.0Lf to %.0Lf)", min == 0 ? 1.0L : min, max);
  return has_min ? g_strdup_printf (" (use %.0Lf or more)", min == 0 ? 1.0L : min) : g_strdup ("");
}

/* In the struct 0 is the default; given on purpose it is as wrong as a number below it. */
static gboolean
is_zero_of_range (const MusterField *field, long double number)
{
  long double min, max;
  muster_field_range (field, &min, &max);
  return number == 0 && min == 0;
}

static gboolean
put (const MusterFlags *self, const Flag *flag, long double number, GError **error)
{
  if (!is_zero_of_range (flag->field, number) &&
      muster_field_put_number (flag->field, flag->options, number))
    return TRUE;
  g_autofree char *range = range_text (flag->field);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s=%.0Lf is out of range%s",
                      muster_flags_name (self, flag->field->flag->name), number, range);
}

static gboolean
put_time (const MusterFlags *self, const Flag *flag, GError **error)
{
  gint64 time_us;
  if (!muster_cli_duration (flag->text, &time_us, error))
    return FALSE;
  return time_us > 0 ? put (self, flag, time_us, error)
                     : muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s must be above 0",
                                    muster_flags_name (self, flag->field->flag->name));
}

/* "fail, skip or pause" of three words (transfer full) */
static char *
alternatives (char **words)
{
  const guint n = g_strv_length (words);
  GString *text = g_string_new (words[0]);
  for (guint i = 1; i < n; i++)
    g_string_append_printf (text, "%s%s", i + 1 < n ? ", " : " or ", words[i]);
  return g_string_free (text, FALSE);
}

static gboolean
put_choice (const MusterFlags *self, const Flag *flag, GError **error)
{
  g_auto (GStrv) words = g_strsplit (flag->field->flag->value, "|", -1);
  for (int i = 0; words[i] != NULL; i++)
    if (strcmp (words[i], flag->text) == 0)
      return put (self, flag, i, error);
  g_autofree char *use = alternatives (words);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "invalid %s '%s' (use %s)",
                      muster_flags_name (self, flag->field->flag->name), flag->text, use);
}

/* "1" and "1%" */
static gboolean
put_percentage (const MusterFlags *self, const Flag *flag, GError **error)
{
  char *end = NULL;
  const double percent = g_ascii_strtod (flag->text, &end);
  return (end != flag->text && (*end == '\0' || strcmp (end, "%") == 0) && percent > 0 &&
          percent < 100 && muster_field_put_number (flag->field, flag->options, percent / 100)) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid %s '%s' (use a percentage such as 1 or 0.5)",
                      muster_flags_name (self, flag->field->flag->name), flag->text);
}

static gboolean
put_text (const MusterFlags *self, const Flag *flag, GError **error)
{
  G_STRUCT_MEMBER (const char *, flag->options, flag->field->offset) = flag->text;
  const char *option = muster_flags_name (self, flag->field->flag->name);
  if (strcmp (flag->field->flag->value, "DIR") == 0)
    return muster_cli_check_directory (option, flag->text, error);
  return !is_path (flag->field) || muster_cli_check_path (option, flag->text, error);
}

static gboolean
apply (const MusterFlags *self, const Flag *flag, GError **error)
{
  if (flag->is_on || flag->text == NULL)
    return put (self, flag, flag->is_on ? 1 : flag->number, error);
  if (is_time (flag->field))
    return put_time (self, flag, error);
  if (is_choice (flag->field))
    return put_choice (self, flag, error);
  return flag->field->kind == MUSTER_FIELD_DOUBLE ? put_percentage (self, flag, error)
                                                  : put_text (self, flag, error);
}

gboolean
muster_flags_apply (MusterFlags *self, GError **error)
{
  for (guint i = 0; i < self->flags->len; i++) {
    const Flag *flag = self->flags->pdata[i];
    if (is_given (flag) && !apply (self, flag, error))
      return FALSE;
  }
  return TRUE;
}
