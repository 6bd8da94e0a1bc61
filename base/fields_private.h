// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* What a struct that a header declares consists of: bazel/fields.py writes a table of each.
 *
 * The struct that a caller fills on its stack owns nothing. A copy owns everything that its fields
 * point to, so that it can be kept, and made in another language; functions and their data aren't
 * copied but shared, and have no row. */

typedef enum {
  MUSTER_FIELD_BOOLEAN,
  MUSTER_FIELD_INT,
  MUSTER_FIELD_UINT,
  MUSTER_FIELD_INT64,
  MUSTER_FIELD_UINT64,
  MUSTER_FIELD_DOUBLE,
  MUSTER_FIELD_STRING,
  MUSTER_FIELD_STRINGS,         /* NULL-terminated */
  MUSTER_FIELD_COUNTED_STRINGS, /* in a copy NULL-terminated, too */
  MUSTER_FIELD_POINTER,         /* to a boxed value or an object */
  MUSTER_FIELD_POINTERS,        /* a counted array of them */
  MUSTER_FIELD_VALUE,           /* a boxed value in the struct itself */
  MUSTER_FIELD_VALUES,          /* a counted array of boxed values */
} MusterFieldKind;

/* The option of the command that sets a field, from the field's line in the comment: its attributes
 * flag, of and arg, and the sentence. */
typedef struct {
  const char *name;     /* without "--" */
  const char *commands; /* (nullable) "prepare,train"; NULL: all that fill the struct */
  const char *value;    /* (nullable) what it is called in the help; NULL: it has none */
  const char *help;
} MusterFieldFlag;

typedef struct {
  const char *name;
  MusterFieldKind kind;
  gsize offset;
  GType (*type) (void); /* of pointers and values */
  gsize n_offset;       /* of counted ones: of a gsize */
  gsize size;           /* of one value */
  gboolean is_private;  /* not to be set by its name */
  gboolean has_range;
  long double min, max;
  const MusterFieldFlag *flag; /* (nullable) */
} MusterField;

typedef struct {
  const char *name; /* of the struct */
  gsize size;
  const MusterField *fields;
  gsize n;
} MusterFields;

/* A copy of a struct, from g_malloc (). */
gpointer muster_fields_copy (const MusterFields *fields, gconstpointer self);
void muster_fields_free (const MusterFields *fields, gpointer self); /* accepts NULL */

/* (nullable) The field of that name. */
const MusterField *muster_fields_find (const MusterFields *fields, const char *name);

/* Sets a field of a copy, not a number, to a copy of the value (nullable), and frees the one
 * before. To an array of pointers or values it adds one; NULL empties it. */
void muster_field_put (const MusterField *field, gpointer self, gconstpointer value);

/* Sets a number of a struct. FALSE if it isn't whole, and must be, or out of the field's range. */
gboolean muster_field_put_number (const MusterField *field, gpointer self, long double number);
void muster_field_range (const MusterField *field, long double *min, long double *max);

/* (nullable) The fields of a boxed type. */
const MusterFields *muster_fields_of (GType type);

/* Lets the fields of a boxed type be set by muster_options_set (). */
void muster_fields_register (GType type, const MusterFields *fields);

/* What a callback's data is owned by (transfer full), for a GBytes *…_owner of a copy: the last
 * reference calls destroy. NULL if destroy is: then nothing is owned. */
GBytes *muster_data_owner (gpointer user_data, GDestroyNotify destroy);

/* Sets such a field of a copy. */
void muster_own_data (GBytes **owner, gpointer user_data, GDestroyNotify destroy);

/* Lets an owner own this, too: of a struct with several functions. */
void muster_own_more (GBytes **owner, gpointer user_data, GDestroyNotify destroy);

/* Defines prefix_get_type () of copies made by functions of ours, prefix_copy () and prefix_free ()
 * of the same file, whose fields can be set by name. */
#define MUSTER_DEFINE_FIELDS(Type, prefix)                                                         \
  extern const MusterFields prefix##_fields;                                                       \
  static Type *prefix##_copy (const Type *self);                                                   \
  static void prefix##_free (Type *self);                                                          \
  G_DEFINE_BOXED_TYPE_WITH_CODE (Type, prefix, prefix##_copy, prefix##_free,                       \
                                 muster_fields_register (g_define_type_id, &prefix##_fields))

/* The same, with these functions, for a struct in a public header. Elsewhere g_boxed_copy () and
 * g_boxed_free () call them. */
#define MUSTER_DEFINE_OPTIONS(Type, prefix)                                                        \
  MUSTER_DEFINE_FIELDS (Type, prefix)                                                              \
  static Type *prefix##_copy (const Type *self)                                                    \
  {                                                                                                \
    return muster_fields_copy (&prefix##_fields, self);                                            \
  }                                                                                                \
  static void prefix##_free (Type *self)                                                           \
  {                                                                                                \
    muster_fields_free (&prefix##_fields, self);                                                   \
  }

/* The same for a struct that owns nothing. */
#define MUSTER_DEFINE_VALUE(Type, prefix)                                                          \
  static Type *prefix##_copy (const Type *self)                                                    \
  {                                                                                                \
    return g_memdup2 (self, sizeof *self);                                                         \
  }                                                                                                \
  static void prefix##_free (Type *self)                                                           \
  {                                                                                                \
    g_free (self);                                                                                 \
  }                                                                                                \
  G_DEFINE_BOXED_TYPE (Type, prefix, prefix##_copy, prefix##_free)

G_END_DECLS
