// SPDX-License-Identifier: Apache-2.0
#include "base/require.h"
#include "saver/saver_private.h"

/* The run that a model started as comes from: that of the checkpoint, or of the directory. */
static char *
resumed_run (MusterSaver *self, const char *directory, const char *prefix, gint64 step)
{
  if (prefix != NULL)
    return muster_checkpoint_run (self->storage, prefix);
  return step >= 0 ? muster_directory_run (self->storage, directory) : NULL;
}

gboolean
muster_saver_begin_run (MusterSaver *self, const char *directory, const char *resumed_prefix,
                        gint64 resumed_step, gint64 deadline_us, GCancellable *cancellable,
                        GError **error)
{
  muster_require (error, FALSE, self, directory);

  if (!muster_saver_check_directory (self, directory, error))
    return FALSE;
  if (self->is_empty)
    return TRUE;
  g_autoptr (MusterLease) lease = muster_checkpoint_directory_lease (&self->directory);
  g_autofree char *id = g_uuid_string_random ();
  g_autofree char *from = resumed_run (self, directory, resumed_prefix, resumed_step);
  const MusterRun run = {.run = id,
                         .resumed_run = from,
                         .resumed_step = resumed_prefix != NULL
                                             ? muster_checkpoint_step (resumed_prefix)
                                             : resumed_step};
  const gboolean is_new =
      muster_checkpoint_directory_claimed_epoch (&self->directory, directory) == 0;
  if (!muster_checkpoint_directory_begin_run (&self->directory, lease, directory, &run, deadline_us,
                                              cancellable, error))
    return FALSE;
  if (lease != NULL && is_new)
    muster_checkpoint_directory_announce (&self->directory, lease, directory, deadline_us,
                                          cancellable);
  return TRUE;
}
