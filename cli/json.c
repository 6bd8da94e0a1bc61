// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

#include "base/clock.h"

#include <stdio.h>

static void
add_text (JsonBuilder *builder, const char *value)
{
  if (value == NULL) {
    json_builder_add_null_value (builder);
    return;
  }
  g_autofree char *valid = g_utf8_make_valid (value, -1);
  json_builder_add_string_value (builder, valid);
}

static void
add_strings (JsonBuilder *builder, char *const *values)
{
  if (values == NULL) {
    json_builder_add_null_value (builder);
    return;
  }
  json_builder_begin_array (builder);
  for (; *values != NULL; values++)
    add_text (builder, *values);
  json_builder_end_array (builder);
}

static void
add_step (JsonBuilder *builder, gint64 step)
{
  if (step < 0)
    json_builder_add_null_value (builder);
  else
    json_builder_add_int_value (builder, step);
}

static void
add_seconds (JsonBuilder *builder, gint64 duration_us)
{
  json_builder_add_double_value (builder, (double)duration_us / MUSTER_SECOND);
}

static void
add_value (JsonBuilder *builder, MusterJsonKind kind, gconstpointer at)
{
  const char *text;
  switch (kind) {
  case MUSTER_JSON_STRING: /* a message's is never NULL */
    text = *(char *const *)at;
    add_text (builder, text != NULL && *text != '\0' ? text : NULL);
    return;
  case MUSTER_JSON_BOOLEAN:
    json_builder_add_boolean_value (builder, *(const gboolean *)at);
    return;
  case MUSTER_JSON_INT:
    json_builder_add_int_value (builder, *(const gint *)at);
    return;
  case MUSTER_JSON_UINT:
    json_builder_add_int_value (builder, *(const guint *)at);
    return;
  case MUSTER_JSON_INT64:
    json_builder_add_int_value (builder, *(const gint64 *)at);
    return;
  case MUSTER_JSON_STEP:
    add_step (builder, *(const gint64 *)at);
    return;
  case MUSTER_JSON_SECONDS:
    add_seconds (builder, *(const gint64 *)at);
    return;
  case MUSTER_JSON_DOUBLE:
    json_builder_add_double_value (builder, *(const double *)at);
    return;
  case MUSTER_JSON_STRINGS:
    add_strings (builder, *(char **const *)at);
    return;
  }
}

void
muster_json_add_fields (JsonBuilder *builder, const MusterJsonField *fields, gsize n,
                        gconstpointer from)
{
  for (gsize i = 0; i < n; i++) {
    json_builder_set_member_name (builder, fields[i].name);
    add_value (builder, fields[i].kind, (const guint8 *)from + fields[i].offset);
  }
}

void
muster_json_add_list (JsonBuilder *builder, const char *name, const MusterJsonField *fields,
                      gsize n_fields, gpointer const *items, gsize n)
{
  json_builder_set_member_name (builder, name);
  json_builder_begin_array (builder);
  for (gsize i = 0; i < n; i++) {
    json_builder_begin_object (builder);
    muster_json_add_fields (builder, fields, n_fields, items[i]);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

void
muster_json_add_string (JsonBuilder *builder, const char *name, const char *value)
{
  json_builder_set_member_name (builder, name);
  add_text (builder, value);
}

void
muster_json_add_int (JsonBuilder *builder, const char *name, gint64 value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_int_value (builder, value);
}

void
muster_json_add_step (JsonBuilder *builder, const char *name, gint64 step)
{
  json_builder_set_member_name (builder, name);
  add_step (builder, step);
}

void
muster_json_add_seconds (JsonBuilder *builder, const char *name, gint64 duration_us)
{
  json_builder_set_member_name (builder, name);
  add_seconds (builder, duration_us);
}

void
muster_json_add_boolean (JsonBuilder *builder, const char *name, gboolean value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_boolean_value (builder, value);
}

JsonBuilder *
muster_json_new_line (void)
{
  JsonBuilder *builder = json_builder_new ();
  json_builder_begin_object (builder);
  return builder;
}

void
muster_json_print_line (JsonBuilder *builder)
{
  json_builder_end_object (builder);
  g_autoptr (JsonGenerator) generator = json_generator_new ();
  g_autoptr (JsonNode) root = json_builder_get_root (builder);
  json_generator_set_root (generator, root);
  g_autofree char *data = json_generator_to_data (generator, NULL);
  g_autoptr (GString) line = g_string_new (data);
  g_string_replace (line, "\x1f", "\\u001f",
                    0); /* the one control character that it lets through */
  printf ("%s\n", line->str);
  fflush (stdout);
}
