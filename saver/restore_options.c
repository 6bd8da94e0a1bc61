// SPDX-License-Identifier: Apache-2.0
#include "saver/restore_options.h"

#include "base/fields_private.h"

MUSTER_DEFINE_OPTIONS (MusterRestoreOptions, muster_restore_options)

MusterRestoreOptions *
muster_restore_options_new (const char *prefix, const char *directory)
{
  const MusterRestoreOptions options = {.prefix = prefix, .directory = directory};
  return muster_restore_options_copy (&options);
}

/* Copies the table, because the caller's may borrow its strings. */
void
muster_restore_options_set_names (MusterRestoreOptions *self, GHashTable *names)
{
  g_return_if_fail (self != NULL);
  g_autoptr (GHashTable) copy = NULL;
  if (names != NULL) {
    GHashTableIter iter;
    gpointer key, value;
    copy = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
    g_hash_table_iter_init (&iter, names);
    while (g_hash_table_iter_next (&iter, &key, &value))
      g_hash_table_insert (copy, g_strdup (key), g_strdup (value));
  }
  g_clear_pointer (&self->names, g_hash_table_unref);
  self->names = g_steal_pointer (&copy);
}

void
muster_restore_options_set_progress (MusterRestoreOptions *self, MusterBundleProgress progress,
                                     gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->progress = progress;
  self->user_data = user_data;
  muster_own_data (&self->progress_owner, user_data, destroy);
}

MUSTER_DEFINE_OPTIONS (MusterRestored, muster_restored)

void
muster_restored_clear (MusterRestored *self)
{
  g_return_if_fail (self != NULL);
  g_clear_pointer (&self->prefix, g_free);
  g_clear_pointer (&self->initialised, g_strfreev);
  g_clear_pointer (&self->warning, g_free);
  g_clear_pointer (&self->passed_over, g_free);
}
