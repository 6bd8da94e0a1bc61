// SPDX-License-Identifier: Apache-2.0
/* A saver's tiers: claims on all their directories, the tiers that a save uses, and copies to
 * lower tiers. A tier that fails is dropped, since it is only an optimisation; the durable tier,
 * the last one, never is (docs/decisions/0023). */
#include "saver/tiered.h"

#include "base/require_private.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/store/storage_failure_private.h"
#include "saver/probe_private.h"
#include "saver/saver_private.h"

/* How often a claim is repeated, while other chiefs claim one of the directories. */
#define MOST_CLAIMS 5
/* A fast tier whose directory stays locked for longer is dropped. */
#define LOCK_US (30 * MUSTER_SECOND)
/* How often a tier that another process holds is asked for. */
#define HOLD_AGAIN_US (500 * MUSTER_MILLISECOND)

MusterCheckpointDirectory *
muster_saver_tier (MusterSaver *self, guint tier, const char **directory,
                   const MusterFreeSpace **free_space)
{
  MusterTiers *tiers = self->tiers;
  const gboolean is_fast = tier < tiers->n;
  if (is_fast)
    *directory = tiers->fast[tier].rule.directory;
  *free_space = is_fast ? &tiers->free_space : &self->free_space;
  return is_fast ? &tiers->fast[tier].checkpoints : &self->directory;
}

const char *
muster_saver_place (MusterSaver *self, const char *directory, MusterTierSet due)
{
  const MusterFreeSpace *unused;
  if (due != 0)
    (void)muster_saver_tier (self, muster_tiers_fastest (self->tiers), &directory, &unused);
  return directory;
}

static gboolean
is_in_use (MusterSaver *self, guint tier)
{
  return (muster_tiers_alive (self->tiers) & MUSTER_TIER_BIT (tier)) != 0;
}

guint64
muster_saver_last_bytes (MusterSaver *self)
{
  guint64 most = 0;
  for (guint i = 0; i <= self->tiers->n; i++) {
    MusterCheckpointDirectory *one =
        i < self->tiers->n ? &self->tiers->fast[i].checkpoints : &self->directory;
    g_mutex_lock (&one->lock);
    most = MAX (most, one->last_bytes);
    g_mutex_unlock (&one->lock);
  }
  return most;
}

/* --- claims --- */

static void
raise_epochs (MusterSaver *self, MusterStorage *storage, MusterLease *lease, const char *durable)
{
  const MusterFreeSpace *unused;
  gint64 epoch = 0;
  for (guint i = 0; i <= self->tiers->n; i++) {
    const char *directory = durable;
    MusterCheckpointDirectory *tier = muster_saver_tier (self, i, &directory, &unused);
    if (is_in_use (self, i))
      epoch = MAX (epoch, muster_checkpoint_directory_next_epoch (tier, storage, lease, directory));
  }
  for (guint i = 0; i <= self->tiers->n; i++) {
    const char *directory = durable;
    muster_checkpoint_directory_raise_epoch (muster_saver_tier (self, i, &directory, &unused),
                                             epoch);
  }
}

/* A tier that another chief holds isn't at fault itself. */
static gboolean
may_go_on_without (MusterSaver *self, guint tier, const char *durable, GError *failure,
                   GError **error)
{
  if (tier == self->tiers->n || muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION) ||
      g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  muster_tiers_drop (self->tiers, tier, failure->message, durable);
  g_error_free (failure);
  return TRUE;
}

static gint64
bound_for (MusterSaver *self, guint tier, gint64 deadline_us)
{
  return tier == self->tiers->n
             ? deadline_us
             : MIN (deadline_us,
                    muster_deadline_after (muster_clock_now_us (self->clock), LOCK_US));
}

/* A tier in another server's memory is one process's, as long as that lives. One that was killed
 * leaves it within this time. A chief with a lease doesn't wait for one that hangs: the epoch
 * decides between them. */
static gboolean
hold_one (MusterSaver *self, MusterStorage *storage, guint tier, MusterLease *lease,
          const char *directory, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterCheckpointDirectory *home = &self->tiers->fast[tier].checkpoints;
  if (muster_storage_can_rename (storage, directory) ||
      muster_checkpoint_directory_is_held (home, directory))
    return TRUE;
  for (;;) {
    GError *failure = NULL;
    if (muster_checkpoint_directory_hold (home, storage, NULL, directory, &failure))
      return TRUE;
    const gint64 again_us = muster_clock_now_us (self->clock) + HOLD_AGAIN_US;
    if (!muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION) || again_us > deadline_us ||
        !muster_clock_wait_until (self->clock, again_us, cancellable, NULL)) {
      if (lease == NULL || !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION)) {
        g_propagate_error (error, failure);
        return FALSE;
      }
      g_error_free (failure);
      return TRUE;
    }
    g_error_free (failure);
  }
}

/* Creates a missing directory. */
static gboolean
claim_one (MusterCheckpointDirectory *tier, MusterStorage *storage, MusterLease *lease,
           const char *directory, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  GError *failure = NULL;
  if (muster_checkpoint_directory_claim (tier, lease, directory, deadline_us, cancellable,
                                         &failure))
    return TRUE;
  if (!muster_storage_failure_is_absent (failure)) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  g_error_free (failure);
  return muster_storage_make_directory (storage, directory, error) &&
         muster_checkpoint_directory_claim (tier, lease, directory, deadline_us, cancellable,
                                            error);
}

/* Claims the fastest tier first and the durable one last, so that a chief that dies in between
 * never leaves a fast tier behind the durable one. */
static gboolean
claim_each (MusterSaver *self, MusterStorage *storage, MusterLease *lease, const char *durable,
            gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  const MusterFreeSpace *unused;
  for (guint i = 0; i <= self->tiers->n; i++) {
    const char *directory = durable;
    MusterCheckpointDirectory *tier = muster_saver_tier (self, i, &directory, &unused);
    GError *failure = NULL;
    const gint64 bound_us = bound_for (self, i, deadline_us);
    if (is_in_use (self, i) &&
        !((i == self->tiers->n ||
           hold_one (self, storage, i, lease, directory, bound_us, cancellable, &failure)) &&
          claim_one (tier, storage, lease, directory, bound_us, cancellable, &failure)) &&
        !may_go_on_without (self, i, durable, failure, error))
      return FALSE;
  }
  return TRUE;
}

/* Returns TRUE if a fast tier in use has a lower epoch than the durable one, which another chief
 * has held in the meantime. */
static gboolean
is_any_behind (MusterSaver *self, const char *durable)
{
  const gint64 epoch = muster_checkpoint_directory_claimed_epoch (&self->directory, durable);
  for (guint i = 0; i < self->tiers->n; i++) {
    const MusterFastTier *fast = &self->tiers->fast[i];
    if (is_in_use (self, i) && muster_checkpoint_directory_claimed_epoch (
                                   &self->tiers->fast[i].checkpoints, fast->rule.directory) < epoch)
      return TRUE;
  }
  return FALSE;
}

static void
begin_jobs (MusterSaver *self)
{
  muster_checkpoint_directory_begin_job (&self->directory);
  for (guint i = 0; i < self->tiers->n; i++)
    muster_checkpoint_directory_begin_job (&self->tiers->fast[i].checkpoints);
}

gboolean
muster_saver_claim_tiers (MusterSaver *self, const char *directory, gint64 deadline_us,
                          GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterLease) lease = muster_checkpoint_directory_lease (&self->directory);
  const gboolean is_new =
      muster_checkpoint_directory_claimed_epoch (&self->directory, directory) == 0;

  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, deadline_us, self->clock, cancellable);
  begin_jobs (self);
  for (int i = 0; i < MOST_CLAIMS; i++) {
    if (self->tiers->n > 0)
      raise_epochs (self, storage, lease, directory);
    if (!claim_each (self, storage, lease, directory, deadline_us, cancellable, error))
      return FALSE;
    if (!is_any_behind (self, directory))
      break;
  }
  if (is_new && lease != NULL)
    muster_checkpoint_directory_announce (&self->directory, lease, directory, deadline_us,
                                          cancellable);
  return TRUE;
}

/* With a lease, or where the disk is full, begin_run () makes the claim. Until then the directory's
 * record tells whether the model on the master is its own. */
gboolean
muster_saver_take_directory (MusterSaver *self, MusterLease *lease, const char *directory,
                             gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, directory);

  if (!muster_saver_check_tiers (self, directory, error))
    return FALSE;
  if (self->is_empty)
    return TRUE;
  muster_saver_set_lease (self, lease);
  if (lease == NULL) {
    g_autoptr (GError) failure = NULL;
    if (muster_saver_claim_tiers (self, directory, deadline_us, cancellable, &failure) ||
        muster_storage_failure_is_full (failure))
      return TRUE;
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, deadline_us, self->clock, cancellable);
  return muster_storage_make_directory (storage, directory, error) &&
         muster_checkpoint_directory_hold (&self->directory, storage, lease, directory, error);
}

void
muster_saver_release_directory (MusterSaver *self, const char *directory, gint64 deadline_us,
                                GCancellable *cancellable)
{
  const MusterFreeSpace *unused;
  g_return_if_fail (MUSTER_IS_SAVER (self) && directory != NULL);
  for (guint i = 0; i <= self->tiers->n; i++) {
    const char *where = directory;
    MusterCheckpointDirectory *tier = muster_saver_tier (self, i, &where, &unused);
    muster_checkpoint_directory_release (tier, where, deadline_us, cancellable);
  }
}

gboolean
muster_saver_adopt_tiers (MusterSaver *self, const char *directory, MusterAdoptFlags flags,
                          gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, deadline_us, self->clock, cancellable);

  for (guint i = 0; i < self->tiers->n; i++) {
    MusterFastTier *fast = &self->tiers->fast[i];
    if (is_in_use (self, i))
      (void)muster_checkpoint_directory_adopt (&fast->checkpoints, storage, fast->rule.directory, 0,
                                               NULL);
  }
  return muster_checkpoint_directory_adopt (&self->directory, storage, directory, flags, error);
}

/* --- for those who save --- */

guint
muster_saver_n_fast_tiers (MusterSaver *self)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self), 0);
  return self->is_empty ? 0 : self->tiers->n;
}

const MusterTier *
muster_saver_fast_tier (MusterSaver *self, guint tier)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self), NULL);
  return tier < self->tiers->n ? &self->tiers->fast[tier].rule : NULL;
}

MusterTierSet
muster_saver_tiers_in_use (MusterSaver *self)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self), 0);
  return muster_tiers_alive (self->tiers);
}

gboolean
muster_saver_check_tiers (MusterSaver *self, const char *directory, GError **error)
{
  muster_require (error, FALSE, self, directory);

  if (!muster_saver_check_directory (self, directory, error))
    return FALSE;
  for (guint i = 0; i < self->tiers->n; i++) {
    const char *fast = self->tiers->fast[i].rule.directory;
    if (muster_tiers_are_same (self->storage, fast, directory))
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "'%s' can't be both a fast tier and the checkpoint directory", fast);
  }
  return TRUE;
}

guint
muster_saver_tier_of (MusterSaver *self, const char *prefix)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self) && prefix != NULL, 0);
  return muster_tiers_of (self->tiers, prefix);
}

static gboolean
probe_one (MusterSaver *self, MusterSession *session, guint tier, const char *durable,
           gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  const MusterFreeSpace *unused;
  const char *directory = durable;
  GError *failure = NULL;
  (void)muster_saver_tier (self, tier, &directory, &unused);
  if (muster_saver_probe_once (self, session, directory, deadline_us, cancellable, &failure))
    return TRUE;
  if (muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION)) { /* saves are gathered there */
    g_error_free (failure);
    return TRUE;
  }
  if (muster_tier_is_at_fault (failure))
    return may_go_on_without (self, tier, durable, failure, error);
  g_propagate_error (error, failure);
  return FALSE;
}

gboolean
muster_saver_open_tiers (MusterSaver *self, MusterSession *session, const char *directory,
                         gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, session, directory);

  if (!muster_saver_check_directory (self, directory, error))
    return FALSE;
  muster_tiers_revive (self->tiers);
  if (self->is_empty || self->tiers->n == 0 || muster_session_is_here (session))
    return TRUE;
  for (guint i = 0; i <= self->tiers->n; i++)
    if (!probe_one (self, session, i, directory, deadline_us, cancellable, error))
      return FALSE;
  return TRUE;
}

/* --- copies --- */

/* Holds a checkpoint from now on, so that retention doesn't remove it. */
static MusterStorageLock *
hold (MusterStorage *storage, const char *prefix)
{
  g_autofree char *path = muster_bundle_index_path (prefix);
  return muster_storage_lock (storage, path, MUSTER_LOCK_SHARED, NULL);
}

void
muster_saver_queue_copies (MusterSaver *self, MusterStorage *storage, const char *directory,
                           const char *prefix, gint64 step, MusterTierSet to)
{
  const guint from = muster_tiers_of (self->tiers, prefix);
  to &= muster_tiers_alive (self->tiers) & ~(MUSTER_TIER_BIT (from + 1) - 1);
  if (from == self->tiers->n || to == 0)
    return;
  MusterCopyRequest *request = g_new (MusterCopyRequest, 1);
  *request = (MusterCopyRequest){.owner = g_object_ref (G_OBJECT (self)),
                                 .tiers = self->tiers,
                                 .durable = &self->directory,
                                 .free_space = &self->free_space,
                                 .durable_directory = g_strdup (directory),
                                 .prefix = g_strdup (prefix),
                                 .step = step,
                                 .from = from,
                                 .to = to,
                                 .run = muster_checkpoint_run (storage, prefix),
                                 .metrics = muster_checkpoint_metrics (storage, prefix),
                                 .lock = hold (storage, prefix)};
  muster_copier_queue (self->tiers->copier, request);
}

/* Returns TRUE if a tier has the same checkpoint, by name and by the run that saved it. */
static gboolean
has_it (MusterStorage *storage, const char *directory, const char *prefix, const char *run)
{
  g_autofree char *name = g_path_get_basename (prefix);
  g_autofree char *there = g_build_filename (directory, name, NULL);
  g_autofree char *its = muster_checkpoint_run (storage, there);

  return muster_checkpoint_exists (storage, there) && g_strcmp0 (its, run) == 0;
}

void
muster_saver_copy_down (MusterSaver *self, const char *directory, const char *prefix)
{
  g_return_if_fail (MUSTER_IS_SAVER (self) && directory != NULL && prefix != NULL);

  const MusterFreeSpace *unused;
  g_autoptr (MusterStorage) storage = muster_saver_bound_storage (self);
  g_autofree char *run = muster_checkpoint_run (storage, prefix);
  MusterTierSet to = 0;

  for (guint i = muster_tiers_of (self->tiers, prefix) + 1; i <= self->tiers->n; i++) {
    const char *where = directory;
    (void)muster_saver_tier (self, i, &where, &unused);
    if (!has_it (storage, where, prefix, run))
      to |= MUSTER_TIER_BIT (i);
  }
  if (to != 0)
    muster_saver_queue_copies (self, storage, directory, prefix, muster_checkpoint_step (prefix),
                               to);
}

gboolean
muster_saver_take_copied (MusterSaver *self, MusterTierCopied *copied)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self) && copied != NULL, FALSE);
  return muster_copier_take (self->tiers->copier, copied);
}

GError *
muster_saver_take_copy_failure (MusterSaver *self, gint64 *step)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self), NULL);
  return muster_copier_take_failure (self->tiers->copier, step);
}

gboolean
muster_saver_sync_copies (MusterSaver *self, gint64 deadline_us, GCancellable *cancellable,
                          GError **error)
{
  muster_require (error, FALSE, self);
  return muster_copier_sync (self->tiers->copier, deadline_us, cancellable, error);
}

void
muster_saver_cancel_copies (MusterSaver *self)
{
  g_return_if_fail (MUSTER_IS_SAVER (self));
  muster_copier_cancel (self->tiers->copier);
}
