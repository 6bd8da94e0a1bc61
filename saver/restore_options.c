// SPDX-License-Identifier: Apache-2.0
#include "saver/restore_options.h"

#include "base/fields_private.h"

static const MusterField owned[] = {
    MUSTER_TYPED_FIELD (MusterRestoreOptions, names, g_hash_table_get_type),
    MUSTER_TYPED_FIELD (MusterRestoreOptions, needs, g_strv_get_type),
    MUSTER_TYPED_FIELD (MusterRestoreOptions, progress_owner, g_bytes_get_type),
    MUSTER_TYPED_FIELD (MusterRestoreOptions, may_lack, g_strv_get_type),
    MUSTER_STRING_FIELD (MusterRestoreOptions, prefix),
    MUSTER_STRING_FIELD (MusterRestoreOptions, directory),
};
MUSTER_DEFINE_OPTIONS (MusterRestoreOptions, muster_restore_options, owned)

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
  muster_fields_set (self, &owned[0], copy);
}

void
muster_restore_options_set_needs (MusterRestoreOptions *self, const char *const *needs)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[1], needs);
}

void
muster_restore_options_set_may_lack (MusterRestoreOptions *self, const char *const *may_lack)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[3], may_lack);
}

void
muster_restore_options_set_progress (MusterRestoreOptions *self, MusterRestoreProgress progress,
                                     gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->progress = progress;
  self->user_data = user_data;
  muster_fields_own (self, &owned[2], user_data, destroy);
}

static const MusterField restored_owned[] = {
    MUSTER_STRING_FIELD (MusterRestored, prefix),
    MUSTER_TYPED_FIELD (MusterRestored, initialised, g_strv_get_type),
    MUSTER_STRING_FIELD (MusterRestored, warning),
    MUSTER_STRING_FIELD (MusterRestored, passed_over),
};
MUSTER_DEFINE_OPTIONS (MusterRestored, muster_restored, restored_owned)

MusterRestored *
muster_restored_new (void)
{
  return g_new0 (MusterRestored, 1);
}

void
muster_restored_clear (MusterRestored *self)
{
  g_return_if_fail (self != NULL);
  g_clear_pointer (&self->prefix, g_free);
  g_clear_pointer (&self->initialised, g_strfreev);
  g_clear_pointer (&self->warning, g_free);
  g_clear_pointer (&self->passed_over, g_free);
}
