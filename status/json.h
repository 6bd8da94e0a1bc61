// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* Writes JSON in one line: structs by a table of their fields, and single members. Unknown and
 * absent values are null. */

typedef enum {
  MUSTER_JSON_STRING,  /* char *; null if NULL or empty */
  MUSTER_JSON_BOOLEAN, /* gboolean */
  MUSTER_JSON_INT,     /* gint */
  MUSTER_JSON_UINT,    /* guint */
  MUSTER_JSON_INT64,   /* gint64 */
  MUSTER_JSON_STEP,    /* gint64; null below 0 */
  MUSTER_JSON_SECONDS, /* gint64 in microseconds */
  MUSTER_JSON_DOUBLE,  /* double */
  MUSTER_JSON_STRINGS, /* char ** */
} MusterJsonKind;

typedef struct {
  const char *name;
  MusterJsonKind kind;
  gsize offset;
} MusterJsonField;

#define MUSTER_JSON_FIELD(type, member, kind, name)                                                \
  {                                                                                                \
    name, MUSTER_JSON_##kind, G_STRUCT_OFFSET (type, member)                                       \
  }

/* Adds a struct's fields to the current object. */
void muster_json_add_fields (JsonBuilder *builder, const MusterJsonField *fields, gsize n,
                             gconstpointer from);

/* Adds an array of objects, one for each of n structs, to the current object. */
void muster_json_add_list (JsonBuilder *builder, const char *name, const MusterJsonField *fields,
                           gsize n_fields, gpointer const *items, gsize n);

/* Add a member to the current object. */
void muster_json_add_string (JsonBuilder *builder, const char *name, const char *value);
void muster_json_add_int (JsonBuilder *builder, const char *name, gint64 value);
void muster_json_add_step (JsonBuilder *builder, const char *name, gint64 step);
void muster_json_add_seconds (JsonBuilder *builder, const char *name, gint64 duration_us);
void muster_json_add_boolean (JsonBuilder *builder, const char *name, gboolean value);

/* Starts an object. Free the builder after its end. */
JsonBuilder *muster_json_new_line (void);
/* Ends the object and returns its text in one line. Doubles have the fewest digits that read back
 * the same; NaN and infinities are null. In a locale that isn't UTF-8 the text is ASCII. (transfer
 * full) */
char *muster_json_end (JsonBuilder *builder);

G_END_DECLS
