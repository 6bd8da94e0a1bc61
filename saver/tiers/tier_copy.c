// SPDX-License-Identifier: Apache-2.0
/* Copies checkpoints from a fast tier to lower ones, on a thread of the saver at low priority.
 * One copy runs and one waits; a newer request replaces the waiting one, so a slow disk means fewer
 * copies, never a queue. */
#include "base/error.h"
#include "base/log_private.h"
#include "base/wait_private.h"
#include "checkpoint/format/bundle_place_private.h"
#include "checkpoint/format/bundle_publish_private.h"
#include "checkpoint/store/alive_mark_private.h"
#include "checkpoint/store/storage_private.h"
#include "saver/tiers/tiers_private.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Training and its saves have priority. */
#define NICE         10
#define IO_PRIORITY  ((2 << 13) | 7) /* best effort, the lowest */
#define IO_OF_THREAD 1

#define MOST_RESULTS 16
#define LEASE_US     (5 * MUSTER_SECOND)
/* A fast tier whose directory stays locked for longer is dropped. */
#define LOCK_US (30 * MUSTER_SECOND)

struct _MusterCopier {
  gatomicrefcount refs;
  MusterStorage *storage; /* (owned) */
  MusterClock *clock;     /* (owned) */
  GMutex lock;
  GCond changed;
  /* guarded by lock */
  MusterCopyRequest *waiting; /* (owned) (nullable) */
  GCancellable *running;      /* (owned) (nullable) of the copy that runs */
  GThread *thread;            /* (owned) (nullable) */
  gboolean is_shut;
  gboolean has_replaced; /* a waiting copy was replaced, at some time */
  GQueue results;        /* (owned) (element-type MusterTierCopied) */
  GError *failure;       /* (owned) (nullable) not reported yet */
  gint64 failed_step;
};

static void
request_free (MusterCopyRequest *self)
{
  if (self == NULL)
    return;
  muster_storage_unlock (self->tiers->storage, self->lock);
  g_free (self->prefix);
  g_free (self->run);
  g_clear_pointer (&self->metrics, g_array_unref);
  g_free (self->durable_directory);
  g_object_unref (self->owner); /* released last, because it keeps the tiers alive */
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterCopyRequest, request_free)

static void
copied_free (gpointer copied)
{
  g_boxed_free (MUSTER_TYPE_TIER_COPIED, copied);
}

MusterCopier *
muster_copier_new (MusterStorage *storage, MusterClock *clock)
{
  MusterCopier *self = g_new0 (MusterCopier, 1);
  g_atomic_ref_count_init (&self->refs);
  self->storage = g_object_ref (storage);
  self->clock = g_object_ref (clock);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_queue_init (&self->results);
  return self;
}

static void
copier_unref (MusterCopier *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_object_unref (self->storage);
  g_object_unref (self->clock);
  g_queue_clear_full (&self->results, copied_free);
  g_clear_error (&self->failure);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

/* --- one copy to one tier --- */

typedef struct {
  MusterCopier *copier;
  const MusterCopyRequest *request;
  guint tier;
  MusterCheckpointDirectory *to;
  const MusterFreeSpace *free_space;
  MusterLease *lease; /* (owned) (nullable) the directory's current lease, not that of the save */
  MusterNewCheckpoint made; /* its names are owned */
  MusterStorageLock *alive; /* (owned) (nullable) */
  MusterSpaceCheck space;
  gboolean is_source; /* the failure is the source's */
  gint64 began_us;
  GCancellable *cancellable;
} Copy;

static void
copy_clear (Copy *self)
{
  g_clear_object (&self->lease);
  g_free (self->made.prefix);
  g_free (self->made.directory);
  g_free (self->made.temporary);
  g_free (self->made.trouble);
  g_free (self->space.why);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Copy, copy_clear)

static void
name_files (Copy *self)
{
  const MusterCopyRequest *request = self->request;
  const gboolean is_fast = self->tier < request->tiers->n;
  g_autofree char *name = g_path_get_basename (request->prefix);
  const guint32 drawn = (guint32)(muster_clock_random (self->copier->clock) * G_MAXUINT32) ^
                        (guint32)getpid () * 2654435761u;
  const char *directory =
      is_fast ? request->tiers->fast[self->tier].rule.directory : request->durable_directory;
  const gboolean renames = muster_storage_can_rename (self->copier->storage, directory);
  g_autofree char *hidden = g_strdup_printf (
      "%s%08x-%s", renames ? MUSTER_SAVING_PREFIX : MUSTER_PLACING_PREFIX, drawn, name);

  self->made = (MusterNewCheckpoint){.directory = g_strdup (directory),
                                     .step = request->step,
                                     .is_here = TRUE,
                                     .is_verified = TRUE,
                                     .is_copy = TRUE,
                                     .run = request->run,
                                     .metrics = request->metrics};
  self->made.prefix = g_build_filename (self->made.directory, name, NULL);
  self->made.temporary = g_build_filename (self->made.directory, hidden, NULL);
  self->space.directory = self->made.directory;
}

static void
discard_quietly (Copy *self)
{
  g_autoptr (MusterStorage) storage = muster_storage_for_cleanup (self->copier->storage);
  if (!muster_storage_can_rename (storage, self->made.directory))
    muster_bundle_discard (storage, self->made.temporary);
  g_autofree char *name = g_path_get_basename (self->made.temporary);
  g_autofree char *start = g_strconcat (name, ".", NULL);
  g_auto (GStrv) all = muster_storage_list (storage, self->made.directory, NULL);

  for (char **file = all; file != NULL && *file != NULL; file++) {
    g_autofree char *path = g_build_filename (self->made.directory, *file, NULL);
    if (g_str_has_prefix (*file, start))
      (void)muster_storage_remove (storage, path, NULL);
  }
}

/* Returns FALSE if another chief holds the model. If the master is gone, the directory's side
 * file decides. */
static gboolean
check_lease (Copy *self, const MusterAnnouncement *what, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (self->lease == NULL)
    return TRUE;
  const gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (self->copier->clock), LEASE_US);
  if (muster_lease_announce (self->lease, what, deadline_us, self->cancellable, &failure) ||
      !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* The deadline for the directory's lock, set anew each time, because copying takes longer than
 * that. */
static gint64
lock_deadline (const Copy *self)
{
  return muster_deadline_after (muster_clock_now_us (self->copier->clock), LOCK_US);
}

static gboolean
begin (Copy *self, GError **error)
{
  g_autoptr (MusterStorage) storage = muster_storage_bound (
      self->copier->storage, lock_deadline (self), self->copier->clock, self->cancellable);
  guint64 bytes = 0;
  if (!muster_tier_measure (storage, self->request->prefix, &bytes, error)) {
    self->is_source = TRUE;
    return FALSE;
  }
  self->space.bytes =
      bytes + (self->to->meta_graph != NULL ? g_bytes_get_size (self->to->meta_graph) : 0);
  if (!muster_storage_make_directory (storage, self->made.directory, error) ||
      !muster_checkpoint_directory_claim (self->to, self->lease, self->made.directory,
                                          lock_deadline (self), self->cancellable, error))
    return FALSE;
  muster_checkpoint_directory_sweep_once (self->to, storage, self->made.directory);
  self->alive = muster_alive_mark (storage, self->made.temporary, NULL);
  return muster_free_space_find (self->free_space, &self->space, error);
}

/* Skips a checkpoint that is published already. */
static gboolean
transfer (Copy *self, GError **error)
{
  const MusterAnnouncement nothing = MUSTER_ANNOUNCEMENT_INIT;
  g_autoptr (MusterStorage) storage = muster_storage_bound (
      self->copier->storage, MUSTER_WAIT_FOREVER, self->copier->clock, self->cancellable);
  return (self->made.is_published ||
          muster_tier_copy_files (storage, self->request->prefix, self->made.temporary,
                                  &self->is_source, self->cancellable, error)) &&
         check_lease (self, &nothing, error) &&
         muster_checkpoint_directory_publish (self->to, self->lease, &self->made,
                                              lock_deadline (self), self->cancellable, error);
}

/* Repeats the transfer until it is done, is skipped for lack of space, or has failed. */
static gboolean
transfer_with_space (Copy *self, GError **error)
{
  for (;;) {
    GError *failure = NULL;
    if (self->space.why != NULL || transfer (self, &failure)) {
      if (self->made.is_stale)
        discard_quietly (self);
      return TRUE;
    }
    const gboolean was_full = muster_free_space_was_full (self->free_space, &self->space, failure);
    if (!self->made.is_published && !self->made.is_unsure)
      discard_quietly (self);
    if (!was_full) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    if (!muster_free_space_after_full (self->free_space, &self->space, failure, error))
      return FALSE;
  }
}

/* Announces copies in the durable tier, which alone count as durable for the master. */
static void
announce (Copy *self)
{
  MusterAnnouncement durable = MUSTER_ANNOUNCEMENT_INIT;
  if (self->space.why != NULL || self->tier < self->request->tiers->n || !self->made.is_published ||
      self->made.step < 0)
    return;
  durable.durable_step = self->made.step;
  durable.durable = self->made.prefix;
  (void)check_lease (self, &durable, NULL); /* the copy exists in any case */
}

static gboolean
copy_to_tier (Copy *self, GError **error)
{
  gboolean is_done = begin (self, error) && transfer_with_space (self, error);
  muster_alive_unmark (self->copier->storage, self->made.temporary, self->alive);
  if (is_done)
    announce (self);
  return is_done;
}

/* --- what becomes of it --- */

static void
note_result (Copy *self)
{
  MusterCopier *copier = self->copier;
  MusterTierCopied *copied = g_new (MusterTierCopied, 1);
  *copied = (MusterTierCopied){.tier = self->tier,
                               .prefix = g_strdup (self->made.prefix),
                               .step = self->made.step,
                               .bytes = self->made.bytes,
                               .took_us = muster_clock_now_us (copier->clock) - self->began_us,
                               .why = g_strdup (self->space.why)};
  g_mutex_lock (&copier->lock);
  g_queue_push_tail (&copier->results, copied);
  if (copier->results.length > MOST_RESULTS)
    copied_free (g_queue_pop_head (&copier->results));
  g_mutex_unlock (&copier->lock);
}

static void
note_failure (MusterCopier *self, gint64 step, const GError *failure)
{
  g_mutex_lock (&self->lock);
  g_clear_error (&self->failure);
  self->failure = g_error_copy (failure);
  self->failed_step = step;
  g_mutex_unlock (&self->lock);
}

/* Returns TRUE if the chief has created another session since the copy began: then another lease
 * of the same chief holds the directory, and makes its own copies. */
static gboolean
is_outlived (Copy *self)
{
  g_autoptr (MusterLease) now = muster_checkpoint_directory_lease (self->to);
  return now != self->lease;
}

/* Returns TRUE if the source is gone: without locks, retention may have removed it first. A
 * newer one follows. */
static gboolean
is_gone (const Copy *self, const GError *failure)
{
  return self->is_source && muster_error_to_wire (failure) == MUSTER_ERROR_NOT_FOUND;
}

/* Judges a failure. A fast tier that fails is dropped, at either end of the copy. A failure of
 * the durable tier is reported like that of a save, and so is the loss of the model to another
 * chief. */
static void
judge (Copy *self, GError *failure)
{
  const MusterCopyRequest *request = self->request;
  MusterTiers *tiers = request->tiers;
  const gboolean is_lost = muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION);
  if (g_cancellable_is_cancelled (self->cancellable) || (is_lost && is_outlived (self)) ||
      is_gone (self, failure))
    return;
  if (self->is_source && request->from < tiers->n)
    muster_tiers_drop (tiers, request->from, failure->message, request->durable_directory);
  else if (self->tier < tiers->n && !is_lost)
    muster_tiers_drop (tiers, self->tier, failure->message, request->durable_directory);
  else {
    g_prefix_error (&failure, "Copying '%s' to '%s': ", request->prefix, self->made.directory);
    note_failure (self->copier, request->step, failure);
  }
}

static void
copy_to (MusterCopier *self, const MusterCopyRequest *request, guint tier,
         GCancellable *cancellable)
{
  MusterTiers *tiers = request->tiers;
  const gboolean is_fast = tier < tiers->n;
  const gint64 now_us = muster_clock_now_us (self->clock);
  MusterCheckpointDirectory *to = is_fast ? &tiers->fast[tier].checkpoints : request->durable;
  g_auto (Copy) copy = {.copier = self,
                        .request = request,
                        .tier = tier,
                        .to = to,
                        .free_space = is_fast ? &tiers->free_space : request->free_space,
                        .lease = muster_checkpoint_directory_lease (to),
                        .space = {.home = to,
                                  .deadline_us = MUSTER_WAIT_FOREVER,
                                  .cancellable = cancellable,
                                  .started_us = now_us},
                        .began_us = now_us,
                        .cancellable = cancellable};
  g_autoptr (GError) failure = NULL;
  name_files (&copy);
  copy.space.made = &copy.made;
  copy.space.lease = copy.lease;
  if (!copy_to_tier (&copy, &failure))
    judge (&copy, failure);
  else if (!copy.made.is_stale)
    note_result (&copy);
}

static void
copy_all (MusterCopier *self, const MusterCopyRequest *request, GCancellable *cancellable)
{
  for (guint tier = 0; tier <= request->tiers->n; tier++)
    if ((request->to & muster_tiers_alive (request->tiers) & MUSTER_TIER_BIT (tier)) != 0 &&
        !g_cancellable_is_cancelled (cancellable))
      copy_to (self, request, tier, cancellable);
}

/* --- the thread --- */

/* With the lock held. */
static void
copy_next (MusterCopier *self)
{
  MusterCopyRequest *request = g_steal_pointer (&self->waiting);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  self->running = cancellable;
  g_mutex_unlock (&self->lock);
  copy_all (self, request, cancellable);
  g_mutex_lock (&self->lock);
  self->running = NULL;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  request_free (request); /* this may be the saver's last reference */
  g_mutex_lock (&self->lock);
}

static gpointer
run (gpointer data)
{
  MusterCopier *self = data;
  (void)setpriority (PRIO_PROCESS, 0, NICE); /* on Linux this affects only the calling thread */
  (void)syscall (SYS_ioprio_set, IO_OF_THREAD, 0, IO_PRIORITY);
  g_mutex_lock (&self->lock);
  for (;;) {
    if (self->waiting != NULL)
      copy_next (self);
    else if (self->is_shut)
      break;
    else
      g_cond_wait (&self->changed, &self->lock);
  }
  g_mutex_unlock (&self->lock);
  copier_unref (self);
  return NULL;
}

/* With the lock held. */
static void
start (MusterCopier *self)
{
  if (self->thread != NULL)
    return;
  g_atomic_ref_count_inc (&self->refs);
  self->thread = g_thread_new ("muster-copy", run, self);
}

/* With the lock held: takes over what the older request (nullable) was for, and frees it. */
static void
replace (MusterCopier *self, MusterCopyRequest *older, MusterCopyRequest *newer)
{
  if (older == NULL)
    return;
  newer->to |= older->to & ~MUSTER_TIER_BIT (newer->from);
  if (!self->has_replaced)
    muster_log (G_LOG_LEVEL_MESSAGE, "tier", "MESSAGE",
                "copies from '%s' take longer than the time between them: that of step "
                "%" G_GINT64_FORMAT " was left out for that of step %" G_GINT64_FORMAT
                ", and so will later ones be",
                older->prefix, older->step, newer->step);
  self->has_replaced = TRUE;
}

void
muster_copier_queue (MusterCopier *self, MusterCopyRequest *request)
{
  g_mutex_lock (&self->lock);
  g_autoptr (MusterCopyRequest) before = g_steal_pointer (&self->waiting);
  replace (self, before, request);
  self->waiting = request;
  start (self);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static gboolean
is_idle (gpointer data)
{
  const MusterCopier *self = data;
  return self->waiting == NULL && self->running == NULL;
}

gboolean
muster_copier_sync (MusterCopier *self, gint64 deadline_us, GCancellable *cancellable,
                    GError **error)
{
  GError *failure = NULL;
  g_mutex_lock (&self->lock);
  gboolean has_ended =
      muster_wait_for (&self->changed, &self->lock, is_idle, self, deadline_us, cancellable);
  if (has_ended)
    failure = g_steal_pointer (&self->failure);
  g_mutex_unlock (&self->lock);
  if (failure != NULL)
    g_propagate_error (error, failure);
  else if (!has_ended && !g_cancellable_set_error_if_cancelled (cancellable, error))
    muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                 "a copy to a lower tier hasn't finished in time");
  return has_ended && failure == NULL;
}

void
muster_copier_cancel (MusterCopier *self)
{
  g_mutex_lock (&self->lock);
  g_autoptr (MusterCopyRequest) waiting = g_steal_pointer (&self->waiting);
  g_autoptr (GCancellable) running = self->running != NULL ? g_object_ref (self->running) : NULL;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  if (running != NULL)
    g_cancellable_cancel (running);
}

void
muster_copier_free (MusterCopier *self)
{
  if (self == NULL)
    return;
  muster_copier_cancel (self);
  g_mutex_lock (&self->lock);
  self->is_shut = TRUE;
  g_autoptr (GThread) thread = g_steal_pointer (&self->thread);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  /* No request is left, since each holds the owner: the thread is about to end, unless it is
   * itself the one that frees the owner. */
  if (thread != NULL && thread != g_thread_self ())
    g_thread_join (g_steal_pointer (&thread));
  copier_unref (self);
}

gboolean
muster_copier_take (MusterCopier *self, MusterTierCopied *copied)
{
  g_mutex_lock (&self->lock);
  g_autofree MusterTierCopied *first = g_queue_pop_head (&self->results);
  g_mutex_unlock (&self->lock);
  if (first != NULL)
    *copied = *first;
  return first != NULL;
}

GError *
muster_copier_take_failure (MusterCopier *self, gint64 *step)
{
  g_mutex_lock (&self->lock);
  GError *failure = g_steal_pointer (&self->failure);
  if (failure != NULL && step != NULL)
    *step = self->failed_step;
  g_mutex_unlock (&self->lock);
  return failure;
}
