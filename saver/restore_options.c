// SPDX-License-Identifier: Apache-2.0
#include "saver/restore_options.h"

G_DEFINE_BOXED_TYPE (MusterRestoreOptions, muster_restore_options, muster_restore_options_copy,
                     muster_restore_options_free)

MusterRestoreOptions *
muster_restore_options_new (const char *prefix, const char *directory)
{
  const MusterRestoreOptions options = {.prefix = prefix, .directory = directory};
  return muster_restore_options_copy (&options);
}

MusterRestoreOptions *
muster_restore_options_copy (const MusterRestoreOptions *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  MusterRestoreOptions *copy = g_memdup2 (self, sizeof *self);

  copy->prefix = g_strdup (self->prefix);
  copy->directory = g_strdup (self->directory);
  copy->names = self->names != NULL ? g_hash_table_ref (self->names) : NULL;
  copy->needs = (const char *const *)g_strdupv ((char **)self->needs);
  return copy;
}

void
muster_restore_options_free (MusterRestoreOptions *self)
{
  if (self == NULL)
    return;
  g_free ((char *)self->prefix);
  g_free ((char *)self->directory);
  g_clear_pointer (&self->names, g_hash_table_unref);
  g_strfreev ((char **)self->needs);
  g_free (self);
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
