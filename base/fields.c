// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"

#include "base/options.h"
#include "base/require_private.h"

#include <math.h>
#include <string.h>

static gboolean
is_object (GType type)
{
  return G_TYPE_IS_OBJECT (type) || G_TYPE_IS_INTERFACE (type);
}

static gpointer
copy_pointer (GType type, gconstpointer value)
{
  if (value == NULL)
    return NULL;
  return is_object (type) ? g_object_ref ((gpointer)value) : g_boxed_copy (type, value);
}

static void
free_pointer (GType type, gpointer value)
{
  if (value != NULL && is_object (type))
    g_object_unref (value);
  else if (value != NULL)
    g_boxed_free (type, value);
}

/* Makes a value its own copy, where it is. */
static void
copy_value (const MusterField *field, gpointer at)
{
  g_autofree gpointer own = g_boxed_copy (field->type (), at);
  memcpy (at, own, field->size);
}

static void
free_value (const MusterField *field, gconstpointer at)
{
  g_boxed_free (field->type (), g_memdup2 (at, field->size));
}

/* Of an array with a count: NULL-terminated, in the copy, so that it frees as others do. */
static char **
copy_strings (const char *const *strings, gsize n)
{
  char **copy = g_new0 (char *, n + 1);
  for (gsize i = 0; i < n; i++)
    copy[i] = g_strdup (strings[i]);
  return copy;
}

static gpointer *
copy_pointers (GType type, const gconstpointer *values, gsize n)
{
  gpointer *copy = g_new0 (gpointer, n + 1);
  for (gsize i = 0; i < n; i++)
    copy[i] = copy_pointer (type, values[i]);
  return copy;
}

static gpointer
copy_values (const MusterField *field, gconstpointer values, gsize n)
{
  char *copy = g_memdup2 (values, n * field->size);
  for (gsize i = 0; i < n; i++)
    copy_value (field, copy + i * field->size);
  return copy;
}

static gsize
count_of (const MusterField *field, gconstpointer self)
{
  return *(const gsize *)G_STRUCT_MEMBER_P (self, field->n_offset);
}

/* Makes a field of a struct that was copied byte by byte its own. */
static void
copy_field (const MusterField *field, gpointer self)
{
  gpointer *at = G_STRUCT_MEMBER_P (self, field->offset);
  switch (field->kind) {
  case MUSTER_FIELD_STRING:
    *at = g_strdup (*at);
    break;
  case MUSTER_FIELD_STRINGS:
    *at = g_strdupv (*at);
    break;
  case MUSTER_FIELD_COUNTED_STRINGS:
    *at = *at != NULL ? copy_strings (*at, count_of (field, self)) : NULL;
    break;
  case MUSTER_FIELD_POINTER:
    *at = copy_pointer (field->type (), *at);
    break;
  case MUSTER_FIELD_POINTERS:
    *at = *at != NULL ? copy_pointers (field->type (), *at, count_of (field, self)) : NULL;
    break;
  case MUSTER_FIELD_VALUE:
    copy_value (field, at);
    break;
  case MUSTER_FIELD_VALUES:
    *at = *at != NULL ? copy_values (field, *at, count_of (field, self)) : NULL;
    break;
  default: /* a number */
    break;
  }
}

/* Frees what a field of a copy owns, which the caller overwrites. */
static void
free_field (const MusterField *field, gpointer self)
{
  gpointer *at = G_STRUCT_MEMBER_P (self, field->offset);
  switch (field->kind) {
  case MUSTER_FIELD_STRING:
    g_free (*at);
    break;
  case MUSTER_FIELD_STRINGS:
  case MUSTER_FIELD_COUNTED_STRINGS:
    g_strfreev (*at);
    break;
  case MUSTER_FIELD_POINTER:
    free_pointer (field->type (), *at);
    break;
  case MUSTER_FIELD_POINTERS:
    for (gsize i = 0; *at != NULL && i < count_of (field, self); i++)
      free_pointer (field->type (), ((gpointer *)*at)[i]);
    g_free (*at);
    break;
  case MUSTER_FIELD_VALUE:
    free_value (field, at);
    break;
  case MUSTER_FIELD_VALUES:
    for (gsize i = 0; *at != NULL && i < count_of (field, self); i++)
      free_value (field, (char *)*at + i * field->size);
    g_free (*at);
    break;
  default: /* a number */
    break;
  }
}

gpointer
muster_fields_copy (const MusterFields *fields, gconstpointer self)
{
  gpointer copy = g_memdup2 (self, fields->size);
  for (gsize i = 0; i < fields->n; i++)
    copy_field (&fields->fields[i], copy);
  return copy;
}

void
muster_fields_free (const MusterFields *fields, gpointer self)
{
  for (gsize i = 0; self != NULL && i < fields->n; i++)
    free_field (&fields->fields[i], self);
  g_free (self);
}

const MusterField *
muster_fields_find (const MusterFields *fields, const char *name)
{
  for (gsize i = 0; i < fields->n; i++)
    if (g_str_equal (fields->fields[i].name, name))
      return &fields->fields[i];
  return NULL;
}

static void
clear_field (const MusterField *field, gpointer self)
{
  free_field (field, self);
  memset (G_STRUCT_MEMBER_P (self, field->offset), 0,
          field->kind == MUSTER_FIELD_VALUE ? field->size : sizeof (gpointer));
  if (field->n_offset != 0)
    G_STRUCT_MEMBER (gsize, self, field->n_offset) = 0;
}

/* Makes room for one more, and for the NULL behind pointers. */
static gpointer
grow (const MusterField *field, gpointer self, gsize size)
{
  gpointer *at = G_STRUCT_MEMBER_P (self, field->offset);
  gsize *n = G_STRUCT_MEMBER_P (self, field->n_offset);
  *at = g_realloc_n (*at, *n + 2, size);
  memset ((char *)*at + *n * size, 0, 2 * size);
  return (char *)*at + (*n)++ * size;
}

static void
put_value (const MusterField *field, gpointer at, gconstpointer value)
{
  memcpy (at, value, field->size);
  copy_value (field, at);
}

static void
replace (const MusterField *field, gpointer self, gpointer own)
{
  clear_field (field, self);
  G_STRUCT_MEMBER (gpointer, self, field->offset) = own;
  if (field->n_offset != 0)
    G_STRUCT_MEMBER (gsize, self, field->n_offset) = g_strv_length (own);
}

void
muster_field_put (const MusterField *field, gpointer self, gconstpointer value)
{
  if (value == NULL)
    clear_field (field, self);
  else if (field->kind == MUSTER_FIELD_STRING)
    replace (field, self, g_strdup (value));
  else if (field->kind == MUSTER_FIELD_STRINGS || field->kind == MUSTER_FIELD_COUNTED_STRINGS)
    replace (field, self, g_strdupv ((char **)value));
  else if (field->kind == MUSTER_FIELD_POINTER)
    replace (field, self, copy_pointer (field->type (), value));
  else if (field->kind == MUSTER_FIELD_POINTERS)
    *(gpointer *)grow (field, self, sizeof (gpointer)) = copy_pointer (field->type (), value);
  else if (field->kind == MUSTER_FIELD_VALUES)
    put_value (field, grow (field, self, field->size), value);
  else {
    clear_field (field, self);
    put_value (field, G_STRUCT_MEMBER_P (self, field->offset), value);
  }
}

GBytes *
muster_data_owner (gpointer user_data, GDestroyNotify destroy)
{
  return destroy != NULL ? g_bytes_new_with_free_func ("", 0, destroy, user_data) : NULL;
}

void
muster_own_data (GBytes **owner, gpointer user_data, GDestroyNotify destroy)
{
  g_clear_pointer (owner, g_bytes_unref);
  *owner = muster_data_owner (user_data, destroy);
}

typedef struct {
  GBytes *before, *more; /* (owned) */
} Owners;

static void
owners_free (gpointer data)
{
  Owners *self = data;
  g_bytes_unref (self->more);
  g_bytes_unref (self->before);
  g_free (self);
}

void
muster_own_more (GBytes **owner, gpointer user_data, GDestroyNotify destroy)
{
  GBytes *more = muster_data_owner (user_data, destroy);
  if (more == NULL || *owner == NULL) {
    *owner = *owner != NULL ? *owner : more;
    return;
  }
  Owners *both = g_new (Owners, 1);
  *both = (Owners){*owner, more};
  *owner = muster_data_owner (both, owners_free);
}

/* --- set by name --- */

static GQuark
fields_quark (void)
{
  return g_quark_from_static_string ("muster-fields");
}

void
muster_fields_register (GType type, const MusterFields *fields)
{
  g_type_set_qdata (type, fields_quark (), (gpointer)fields);
}

const MusterFields *
muster_fields_of (GType type)
{
  return g_type_get_qdata (type, fields_quark ());
}

static const MusterField *
find (const MusterFields *fields, const char *name, GError **error)
{
  const MusterField *field = muster_fields_find (fields, name);
  if (field != NULL && !field->is_private)
    return field;
  g_autoptr (GString) names = g_string_new (NULL);
  for (gsize i = 0; i < fields->n; i++)
    if (!fields->fields[i].is_private)
      g_string_append_printf (names, "%s%s", names->len > 0 ? ", " : "", fields->fields[i].name);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s has no field '%s' (use one of %s)",
               fields->name, name, names->str);
  return NULL;
}

/* Goes on to the struct in a struct that a path names before its last dot. */
static gboolean
enter (const MusterFields **fields, gpointer *self, const char **name, GError **error)
{
  for (const char *dot; (dot = strchr (*name, '.')) != NULL; *name = dot + 1) {
    g_autofree char *first = g_strndup (*name, (gsize)(dot - *name));
    const MusterField *field = find (*fields, first, error);
    if (field == NULL)
      return FALSE;
    const MusterFields *inner =
        field->kind == MUSTER_FIELD_VALUE ? muster_fields_of (field->type ()) : NULL;
    if (inner == NULL)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "%s of %s has no fields; set all of it", first, (*fields)->name);
    *self = G_STRUCT_MEMBER_P (*self, field->offset);
    *fields = inner;
  }
  return TRUE;
}

/* --- numbers --- */

static gboolean
get_number (const GValue *value, long double *number)
{
  switch (G_TYPE_FUNDAMENTAL (G_VALUE_TYPE (value))) {
  case G_TYPE_BOOLEAN:
    *number = g_value_get_boolean (value) ? 1 : 0;
    return TRUE;
  case G_TYPE_INT:
    *number = g_value_get_int (value);
    return TRUE;
  case G_TYPE_UINT:
    *number = g_value_get_uint (value);
    return TRUE;
  case G_TYPE_LONG:
    *number = g_value_get_long (value);
    return TRUE;
  case G_TYPE_ULONG:
    *number = g_value_get_ulong (value);
    return TRUE;
  case G_TYPE_INT64:
    *number = g_value_get_int64 (value);
    return TRUE;
  case G_TYPE_UINT64:
    *number = g_value_get_uint64 (value);
    return TRUE;
  case G_TYPE_FLOAT:
    *number = g_value_get_float (value);
    return TRUE;
  case G_TYPE_DOUBLE:
    *number = g_value_get_double (value);
    return TRUE;
  default:
    return FALSE;
  }
}

/* What a kind of number can hold. */
typedef struct {
  long double min, max;
} MusterLimits;

static const MusterLimits limits[] = {
    [MUSTER_FIELD_BOOLEAN] = {0, 1},          [MUSTER_FIELD_INT] = {G_MININT, G_MAXINT},
    [MUSTER_FIELD_UINT] = {0, G_MAXUINT},     [MUSTER_FIELD_INT64] = {G_MININT64, G_MAXINT64},
    [MUSTER_FIELD_UINT64] = {0, G_MAXUINT64}, [MUSTER_FIELD_DOUBLE] = {-INFINITY, INFINITY},
};

static void
put_number (const MusterField *field, gpointer self, long double number)
{
  gpointer at = G_STRUCT_MEMBER_P (self, field->offset);
  if (field->kind == MUSTER_FIELD_INT64)
    *(gint64 *)at = (gint64)number;
  else if (field->kind == MUSTER_FIELD_UINT64)
    *(guint64 *)at = (guint64)number;
  else if (field->kind == MUSTER_FIELD_DOUBLE)
    *(double *)at = (double)number;
  else if (field->kind == MUSTER_FIELD_UINT)
    *(guint *)at = (guint)number;
  else
    *(int *)at = (int)number;
}

static char *
text_of (long double number)
{
  return g_strdup_printf (number == floorl (number) ? "%.20Lg" : "%.15Lg", number);
}

void
muster_field_range (const MusterField *field, long double *min, long double *max)
{
  const MusterLimits *limit = &limits[field->kind];
  *min = field->has_range ? MAX (limit->min, field->min) : limit->min;
  *max = field->has_range ? MIN (limit->max, field->max) : limit->max;
}

gboolean
muster_field_put_number (const MusterField *field, gpointer self, long double number)
{
  long double min, max;
  muster_field_range (field, &min, &max);
  if (!(number >= min && number <= max) ||
      (field->kind != MUSTER_FIELD_DOUBLE && number != floorl (number)))
    return FALSE;
  put_number (field, self, number);
  return TRUE;
}

static gboolean
set_number (const MusterFields *fields, const MusterField *field, gpointer self, long double number,
            GError **error)
{
  long double min, max;
  if (muster_field_put_number (field, self, number))
    return TRUE;
  muster_field_range (field, &min, &max);
  g_autofree char *given = text_of (number), *least = text_of (min), *most = text_of (max);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid %s %s of %s (use a %snumber from %s to %s)", field->name, given,
                      fields->name, field->kind != MUSTER_FIELD_DOUBLE ? "whole " : "", least,
                      most);
}

/* --- the rest --- */

static GType
type_of (const MusterField *field)
{
  switch (field->kind) {
  case MUSTER_FIELD_STRING:
    return G_TYPE_STRING;
  case MUSTER_FIELD_STRINGS:
  case MUSTER_FIELD_COUNTED_STRINGS:
    return G_TYPE_STRV;
  default:
    return field->type ();
  }
}

static gboolean
is_null (const GValue *value)
{
  return g_value_fits_pointer (value) && g_value_peek_pointer (value) == NULL;
}

static gboolean
refuse_type (const MusterFields *fields, const MusterField *field, const char *wanted,
             const GValue *value, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid %s of %s: it is %s%s (use a %s)", field->name, fields->name,
                      is_null (value) ? "" : "a ",
                      is_null (value) ? "NULL" : G_VALUE_TYPE_NAME (value), wanted);
}

static gboolean
set_pointer (const MusterFields *fields, const MusterField *field, gpointer self,
             const GValue *value, GError **error)
{
  if (!is_null (value) && !G_VALUE_HOLDS (value, type_of (field)))
    return refuse_type (fields, field, g_type_name (type_of (field)), value, error);
  muster_field_put (field, self, is_null (value) ? NULL : g_value_peek_pointer (value));
  return TRUE;
}

gboolean
muster_options_set (GValue *options, const char *name, const GValue *value, GError **error)
{
  muster_require (error, FALSE, options, name, value);
  const MusterFields *fields =
      G_IS_VALUE (options) ? muster_fields_of (G_VALUE_TYPE (options)) : NULL;
  if (fields == NULL)
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT, "a %s has no fields to be set by name",
        G_IS_VALUE (options) ? G_VALUE_TYPE_NAME (options) : "value without a type");
  gpointer self = g_value_get_boxed (options);
  if (self == NULL || !G_IS_VALUE (value))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        self == NULL ? "invalid options: the %s is NULL"
                                     : "invalid value for a field of %s: it has no type",
                        fields->name);

  if (!enter (&fields, &self, &name, error))
    return FALSE;
  const MusterField *field = find (fields, name, error);
  if (field == NULL)
    return FALSE;
  long double number;
  if (field->kind > MUSTER_FIELD_DOUBLE)
    return set_pointer (fields, field, self, value, error);
  return get_number (value, &number) ? set_number (fields, field, self, number, error)
                                     : refuse_type (fields, field, "number", value, error);
}
