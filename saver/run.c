// SPDX-License-Identifier: Apache-2.0
#include "saver/run_private.h"

#include "base/require_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "saver/directory/free_space_private.h"
#include "saver/saver_private.h"
#include "saver/tiered.h"

/* The run that the model comes from: that of the restored checkpoint, or of the directory. */
static char *
resumed_run (MusterStorage *storage, const char *directory, const char *prefix, gint64 step)
{
  if (prefix != NULL)
    return muster_checkpoint_run (storage, prefix);
  return step >= 0 ? muster_directory_run (storage, directory) : NULL;
}

/* Drops a fast tier that can't note the run: checkpoints saved there wouldn't count. */
static gboolean
begin_in_fast_tiers (MusterSaver *self, MusterStorage *storage, MusterLease *lease,
                     const char *durable, const MusterRun *run, gint64 deadline_us,
                     GCancellable *cancellable, GError **error)
{
  g_autofree char *path = muster_path_for_master (self->storage, durable);
  MusterRun own = *run;

  own.durable_dir = path;
  for (guint i = 0; i < self->tiers->n; i++) {
    MusterFastTier *fast = &self->tiers->fast[i];
    g_autoptr (GError) failure = NULL;
    const gboolean is_in_use = (muster_tiers_alive (self->tiers) & MUSTER_TIER_BIT (i)) != 0;
    if (!is_in_use ||
        muster_checkpoint_directory_begin_run (&fast->checkpoints, lease, fast->rule.directory,
                                               &own, deadline_us, cancellable, &failure)) {
      if (is_in_use)
        (void)muster_checkpoint_directory_adopt (&fast->checkpoints, storage, fast->rule.directory,
                                                 0, NULL);
      continue;
    }
    if (muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION) ||
        g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
    muster_tiers_drop (self->tiers, i, failure->message, durable);
  }
  return TRUE;
}

/* On a disk without a free byte not even the claim can be written: what the next save would give up
 * goes before it. */
static gboolean
claim (MusterSaver *self, MusterLease *lease, const char *directory, const char *resumed_prefix,
       gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  GError *failure = NULL;
  if (muster_saver_claim_tiers (self, directory, deadline_us, cancellable, &failure))
    return TRUE;
  g_autofree char *record = g_build_filename (directory, MUSTER_RECORD_FILE, NULL);
  g_autofree char *restored = resumed_prefix != NULL ? g_path_get_basename (resumed_prefix) : NULL;
  const MusterNewCheckpoint made = {.directory = (char *)directory, .prefix = record, .step = -1};
  const MusterSpaceCheck space = {.home = &self->directory,
                                  .lease = lease,
                                  .made = &made,
                                  .directory = directory,
                                  .restored = restored,
                                  .deadline_us = deadline_us,
                                  .cancellable = cancellable};
  if (!muster_storage_failure_is_full (failure) ||
      !muster_checkpoint_directory_make_room (&self->directory, &space,
                                              muster_saver_estimate_bytes (self))) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  g_error_free (failure);
  return muster_saver_claim_tiers (self, directory, deadline_us, cancellable, error);
}

gboolean
muster_saver_begin_run (MusterSaver *self, const char *directory, const char *resumed_prefix,
                        gint64 resumed_step, gint64 deadline_us, GCancellable *cancellable,
                        GError **error)
{
  muster_require (error, FALSE, self, directory);

  if (!muster_saver_check_tiers (self, directory, error))
    return FALSE;
  if (self->is_empty)
    return TRUE;
  g_autoptr (MusterLease) lease = muster_checkpoint_directory_lease (&self->directory);
  g_autofree char *id = g_uuid_string_random ();
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, deadline_us, self->clock, cancellable);
  g_autofree char *from = resumed_run (storage, directory, resumed_prefix, resumed_step);
  const MusterRun run = {.run = id,
                         .resumed_run = from,
                         .resumed_step = resumed_prefix != NULL
                                             ? muster_checkpoint_step (resumed_prefix)
                                             : resumed_step};
  return claim (self, lease, directory, resumed_prefix, deadline_us, cancellable, error) &&
         muster_saver_check_restored (self, directory, resumed_prefix, deadline_us, cancellable,
                                      error) &&
         begin_in_fast_tiers (self, storage, lease, directory, &run, deadline_us, cancellable,
                              error) &&
         muster_checkpoint_directory_begin_run (&self->directory, lease, directory, &run,
                                                deadline_us, cancellable, error);
}

gint64
muster_saver_age_of (MusterSaver *self, const char *prefix)
{
  g_autoptr (MusterStorage) storage = muster_saver_bound_storage (self);
  const double saved = muster_checkpoint_time (storage, prefix);
  const double age = muster_checkpoint_record_now (self->clock) - saved;
  return saved > 0 ? (gint64)(CLAMP (age, 0, G_MAXINT32) * MUSTER_SECOND) : 0;
}

gboolean
muster_saver_end_run (MusterSaver *self, const char *directory, gint64 step, gint64 deadline_us,
                      GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, directory);

  if (self->is_empty)
    return TRUE;
  g_autoptr (MusterLease) lease = muster_checkpoint_directory_lease (&self->directory);
  return muster_checkpoint_directory_end_run (&self->directory, lease, directory, step, deadline_us,
                                              cancellable, error);
}
