// SPDX-License-Identifier: Apache-2.0
#include "callbacks/bounds_private.h"

#include "base/check_time_private.h"

MusterBounds
muster_bounds (MusterStorage *storage, gint64 deadline_us, MusterClock *clock,
               GCancellable *cancellable)
{
  return (MusterBounds){deadline_us, cancellable,
                        muster_storage_bound (storage, deadline_us, clock, cancellable)};
}

void
muster_bounds_clear (MusterBounds *self)
{
  g_clear_object (&self->storage);
}

gboolean
muster_bounds_check (const MusterBounds *self, const char *operation, const char *what,
                     const char *directory, GError **error)
{
  g_autofree char *text = g_strdup_printf ("%s the %s in '%s'", operation, what, directory);
  return muster_check_time (text, self->deadline_us, self->cancellable, error);
}
