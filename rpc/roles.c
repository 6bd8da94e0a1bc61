// SPDX-License-Identifier: Apache-2.0
#include "rpc/roles_private.h"

#include <grpc/grpc_security_constants.h>
#include <string.h>

static const char *const names[] = {"none", "read", "run", "admin"};

const char *
muster_role_name (MusterRole role)
{
  g_return_val_if_fail ((guint)role < G_N_ELEMENTS (names), names[0]);
  return names[role];
}

gboolean
muster_role_parse (const char *name, MusterRole *role, GError **error)
{
  for (guint i = MUSTER_ROLE_READ; name != NULL && i < G_N_ELEMENTS (names); i++) {
    if (!g_str_equal (name, names[i]))
      continue;
    *role = (MusterRole)i;
    return TRUE;
  }
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid role '%s' (use read, run or admin)", name != NULL ? name : "");
}

GHashTable *
muster_roles_read (const char *const *roles, GError **error)
{
  g_autoptr (GHashTable) read = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (; *roles != NULL; roles++) {
    const char *equals = strrchr (*roles, '=');
    MusterRole role;
    if (equals == NULL || equals == *roles) {
      muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "invalid role '%s' (use NAME=ROLE)",
                   *roles);
      return NULL;
    }
    if (!muster_role_parse (equals + 1, &role, error))
      return NULL;
    g_hash_table_insert (read, g_strndup (*roles, (gsize)(equals - *roles)),
                         GINT_TO_POINTER (role));
  }
  return g_steal_pointer (&read);
}

/* Raises *role to the highest of the context's properties with this key. */
static void
look_at (GHashTable *roles, const grpc_auth_context *context, const char *key, MusterRole *role,
         char *name, gsize name_size)
{
  grpc_auth_property_iterator all = grpc_auth_context_find_properties_by_name (context, key);
  const grpc_auth_property *property;
  while ((property = grpc_auth_property_iterator_next (&all)) != NULL) {
    if (memchr (property->value, '\0', property->value_length) != NULL)
      continue;
    MusterRole given = GPOINTER_TO_INT (g_hash_table_lookup (roles, property->value));
    if (given > *role || *name == '\0')
      g_strlcpy (name, property->value, name_size);
    *role = MAX (*role, given);
  }
}

MusterRole
muster_roles_of (GHashTable *roles, const grpc_auth_context *context, char *name, gsize name_size)
{
  MusterRole role = MUSTER_ROLE_NONE;
  look_at (roles, context, GRPC_X509_CN_PROPERTY_NAME, &role, name, name_size);
  look_at (roles, context, GRPC_X509_SAN_PROPERTY_NAME, &role, name, name_size);
  if (role == MUSTER_ROLE_NONE)
    role = GPOINTER_TO_INT (g_hash_table_lookup (roles, "*"));
  return role;
}
