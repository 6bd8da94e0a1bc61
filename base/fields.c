// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"

/* Of an array with a count: NULL-terminated, in the copy, so that it frees as others do. */
static char **
copy_strings (const char *const *strings, gsize n)
{
  char **copy = g_new0 (char *, n + 1);
  for (gsize i = 0; i < n; i++)
    copy[i] = g_strdup (strings[i]);
  return copy;
}

static gboolean
is_array (const MusterField *field)
{
  return field->n_offset >= 0 && field->type () != G_TYPE_STRV;
}

static gpointer
copy_value (const MusterField *field, gconstpointer value)
{
  if (value == NULL)
    return NULL;
  if (field->type == NULL)
    return g_strdup (value);
  GType type = field->type ();
  return G_TYPE_IS_OBJECT (type) || G_TYPE_IS_INTERFACE (type) ? g_object_ref ((gpointer)value)
                                                               : g_boxed_copy (type, value);
}

/* NULL-terminated, too. */
static gpointer *
copy_values (const MusterField *field, const gconstpointer *values, gsize n)
{
  gpointer *copy = g_new0 (gpointer, n + 1);
  for (gsize i = 0; i < n; i++)
    copy[i] = copy_value (field, values[i]);
  return copy;
}

static void
free_value (const MusterField *field, gpointer value)
{
  if (value == NULL)
    return;
  if (field->type == NULL) {
    g_free (value);
    return;
  }
  GType type = field->type ();
  if (G_TYPE_IS_OBJECT (type) || G_TYPE_IS_INTERFACE (type))
    g_object_unref (value);
  else
    g_boxed_free (type, value);
}

static void
free_field (gpointer self, const MusterField *field)
{
  gpointer value = G_STRUCT_MEMBER (gpointer, self, field->offset);
  if (value == NULL || !is_array (field)) {
    free_value (field, value);
    return;
  }
  for (gpointer *element = value; *element != NULL; element++)
    free_value (field, *element);
  g_free (value);
}

gpointer
muster_fields_copy (gconstpointer self, gsize size, const MusterField *fields, gsize n)
{
  gpointer copy = g_memdup2 (self, size);
  for (gsize i = 0; i < n; i++) {
    const MusterField *field = &fields[i];
    gpointer *at = G_STRUCT_MEMBER_P (copy, field->offset);
    if (*at != NULL && is_array (field))
      *at = copy_values (field, *at, G_STRUCT_MEMBER (gsize, copy, field->n_offset));
    else if (*at != NULL && field->n_offset >= 0)
      *at = copy_strings (*at, G_STRUCT_MEMBER (gsize, copy, field->n_offset));
    else
      *at = copy_value (field, *at);
  }
  return copy;
}

void
muster_fields_free (gpointer self, const MusterField *fields, gsize n)
{
  if (self == NULL)
    return;
  for (gsize i = 0; i < n; i++)
    free_field (self, &fields[i]);
  g_free (self);
}

void
muster_fields_set (gpointer self, const MusterField *field, gconstpointer value)
{
  gpointer *at = G_STRUCT_MEMBER_P (self, field->offset);
  gpointer before = *at;
  *at = copy_value (field, value);
  if (field->n_offset >= 0)
    G_STRUCT_MEMBER (gsize, self, field->n_offset) = value != NULL ? g_strv_length (*at) : 0;
  free_value (field, before);
}

void
muster_fields_append (gpointer self, const MusterField *field, gconstpointer value)
{
  gpointer *at = G_STRUCT_MEMBER_P (self, field->offset);
  gsize *n = G_STRUCT_MEMBER_P (self, field->n_offset);
  gpointer *values = g_renew (gpointer, *at, *n + 2);
  values[*n] = copy_value (field, value);
  values[++*n] = NULL;
  *at = values;
}

GBytes *
muster_data_owner (gpointer user_data, GDestroyNotify destroy)
{
  return destroy != NULL ? g_bytes_new_with_free_func ("", 0, destroy, user_data) : NULL;
}

void
muster_fields_own (gpointer self, const MusterField *field, gpointer user_data,
                   GDestroyNotify destroy)
{
  g_autoptr (GBytes) owner = muster_data_owner (user_data, destroy);
  muster_fields_set (self, field, owner);
}
