// SPDX-License-Identifier: Apache-2.0
/* Builds a line of JSON, and prints it in ASCII where the locale isn't UTF-8. */
#include "status/json.h"

#include "base/clock.h"
#include "base/safe_text_private.h"

#include <float.h>
#include <math.h>
#include <string.h>

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
  case MUSTER_JSON_STRING: /* a protobuf string is never NULL */
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

/* --- as text --- */

/* json-glib writes all 17 digits. */
static void
append_double (GString *out, double value)
{
  char digits[G_ASCII_DTOSTR_BUF_SIZE], format[8];
  if (!isfinite (value)) {
    g_string_append (out, "null");
    return;
  }
  for (int precision = fabs (value) < DBL_MIN ? 1 : DBL_DIG; precision <= DBL_DECIMAL_DIG;
       precision++) {
    g_snprintf (format, sizeof format, "%%.%dg", precision);
    g_ascii_formatd (digits, sizeof digits, format, value);
    if (g_ascii_strtod (digits, NULL) == value)
      break;
  }
  g_string_append (out, digits);
  if (strpbrk (digits, ".e") == NULL) /* so that readers parse it as a double */
    g_string_append (out, ".0");
}

static void
append_unit (GString *out, guint unit)
{
  g_string_append_printf (out, "\\u%04x", unit);
}

static void
append_character (GString *out, gunichar c, gboolean is_ascii)
{
  const gboolean is_escaped = !muster_is_printable (c) || (is_ascii && c > 0x7f);
  if (c == '"' || c == '\\') {
    g_string_append_printf (out, "\\%c", (int)c);
  } else if (c == '\n' || c == '\t') {
    g_string_append (out, c == '\n' ? "\\n" : "\\t");
  } else if (is_escaped && c < 0x10000) {
    append_unit (out, c);
  } else if (is_escaped) {
    append_unit (out, 0xd800 + ((c - 0x10000) >> 10));
    append_unit (out, 0xdc00 + ((c - 0x10000) & 0x3ff));
  } else {
    g_string_append_unichar (out, c);
  }
}

static void
append_string (GString *out, const char *text)
{
  const gboolean is_ascii = !g_get_charset (NULL);
  g_string_append_c (out, '"');
  for (; *text != '\0'; text = g_utf8_next_char (text))
    append_character (out, g_utf8_get_char (text), is_ascii);
  g_string_append_c (out, '"');
}

static void append_node (GString *out, JsonNode *node);

static void
append_object (GString *out, JsonObject *object)
{
  JsonObjectIter iter;
  const char *name;
  JsonNode *node;
  const char *comma = "";
  g_string_append_c (out, '{');
  json_object_iter_init_ordered (&iter, object);
  while (json_object_iter_next_ordered (&iter, &name, &node)) {
    g_string_append (out, comma);
    append_string (out, name);
    g_string_append_c (out, ':');
    append_node (out, node);
    comma = ",";
  }
  g_string_append_c (out, '}');
}

static void
append_array (GString *out, JsonArray *array)
{
  const guint n = json_array_get_length (array);
  g_string_append_c (out, '[');
  for (guint i = 0; i < n; i++) {
    g_string_append (out, i > 0 ? "," : "");
    append_node (out, json_array_get_element (array, i));
  }
  g_string_append_c (out, ']');
}

static void
append_node (GString *out, JsonNode *node)
{
  const GType type = json_node_get_value_type (node);
  if (JSON_NODE_HOLDS_OBJECT (node))
    append_object (out, json_node_get_object (node));
  else if (JSON_NODE_HOLDS_ARRAY (node))
    append_array (out, json_node_get_array (node));
  else if (type == G_TYPE_STRING)
    append_string (out, json_node_get_string (node));
  else if (type == G_TYPE_INT64)
    g_string_append_printf (out, "%" G_GINT64_FORMAT, json_node_get_int (node));
  else if (type == G_TYPE_DOUBLE)
    append_double (out, json_node_get_double (node));
  else if (type == G_TYPE_BOOLEAN)
    g_string_append (out, json_node_get_boolean (node) ? "true" : "false");
  else
    g_string_append (out, "null");
}

char *
muster_json_end (JsonBuilder *builder)
{
  json_builder_end_object (builder);
  g_autoptr (JsonNode) root = json_builder_get_root (builder);
  GString *text = g_string_new (NULL);
  append_node (text, root);
  return g_string_free (text, FALSE);
}
