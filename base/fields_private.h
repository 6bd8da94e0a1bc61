// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* What a struct of options owns. The struct that a caller fills on its stack owns nothing. A copy
 * owns everything that the fields in its type's table point to, so that it can be kept, and made in
 * another language; callbacks and their data aren't copied but shared. */

typedef struct {
  gsize offset;
  GType (*type) (void); /* of a boxed type, a class or an interface; NULL: a string */
  gssize n_offset;      /* of an array that isn't NULL-terminated: its gsize of elements; else -1.
                           g_strv_get_type: of strings; else of pointers to that type */
} MusterField;

#define MUSTER_STRING_FIELD(Type, name)                                                            \
  {                                                                                                \
    G_STRUCT_OFFSET (Type, name), NULL, -1                                                         \
  }
/* Of a type with this get_type function; g_strv_get_type: NULL-terminated strings. */
#define MUSTER_TYPED_FIELD(Type, name, get_type)                                                   \
  {                                                                                                \
    G_STRUCT_OFFSET (Type, name), get_type, -1                                                     \
  }
#define MUSTER_STRINGS_FIELD(Type, name, n_name)                                                   \
  {                                                                                                \
    G_STRUCT_OFFSET (Type, name), g_strv_get_type, G_STRUCT_OFFSET (Type, n_name)                  \
  }

/* Of an array of n_name pointers to objects or boxed values. */
#define MUSTER_OBJECTS_FIELD(Type, name, n_name, get_type)                                         \
  {                                                                                                \
    G_STRUCT_OFFSET (Type, name), get_type, G_STRUCT_OFFSET (Type, n_name)                         \
  }

/* A copy of a struct of that size, from g_malloc (). */
gpointer muster_fields_copy (gconstpointer self, gsize size, const MusterField *fields, gsize n);
void muster_fields_free (gpointer self, const MusterField *fields, gsize n); /* accepts NULL */

/* Sets a field of a copy to a copy of the value (nullable), and frees the one before. Strings are
 * NULL-terminated; their number is set, too. */
void muster_fields_set (gpointer self, const MusterField *field, gconstpointer value);

/* Adds a copy of the value to an array of objects in a copy. */
void muster_fields_append (gpointer self, const MusterField *field, gconstpointer value);

/* What a callback's data is owned by (transfer full), for a field of that type (g_bytes_get_type):
 * the last reference calls destroy. NULL if destroy is: then nothing is owned. */
GBytes *muster_data_owner (gpointer user_data, GDestroyNotify destroy);

/* Sets such a field of a copy. */
void muster_fields_own (gpointer self, const MusterField *field, gpointer user_data,
                        GDestroyNotify destroy);

/* Defines prefix_copy (), prefix_free () and prefix_get_type () from a table of the fields. */
#define MUSTER_DEFINE_OPTIONS(Type, prefix, fields)                                                \
  Type *prefix##_copy (const Type *self)                                                           \
  {                                                                                                \
    g_return_val_if_fail (self != NULL, NULL);                                                     \
    return muster_fields_copy (self, sizeof *self, fields, G_N_ELEMENTS (fields));                 \
  }                                                                                                \
  void prefix##_free (Type *self)                                                                  \
  {                                                                                                \
    muster_fields_free (self, fields, G_N_ELEMENTS (fields));                                      \
  }                                                                                                \
  G_DEFINE_BOXED_TYPE (Type, prefix, prefix##_copy, prefix##_free)

/* The same for a struct that owns nothing. */
#define MUSTER_DEFINE_VALUE(Type, prefix)                                                          \
  Type *prefix##_copy (const Type *self)                                                           \
  {                                                                                                \
    g_return_val_if_fail (self != NULL, NULL);                                                     \
    return g_memdup2 (self, sizeof *self);                                                         \
  }                                                                                                \
  void prefix##_free (Type *self)                                                                  \
  {                                                                                                \
    g_free (self);                                                                                 \
  }                                                                                                \
  G_DEFINE_BOXED_TYPE (Type, prefix, prefix##_copy, prefix##_free)

G_END_DECLS
