// SPDX-License-Identifier: Apache-2.0
/* Lists the checkpoints of a tier, newest first: those that the state file names, then those
 * that the side file says the saver published, then, if wanted, all other files. Several tiers are
 * listed at the same time, each on a thread of its own, so that one that hangs costs only its share
 * of the time. */
#include "base/error.h"
#include "base/wait_private.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "saver/directory/checkpoint_directory_private.h"
#include "saver/tiers/tier_choose_private.h"

void
muster_tier_listing_free (MusterTierListing *self)
{
  if (self == NULL)
    return;
  g_free (self->directory);
  g_clear_pointer (&self->prefixes, g_ptr_array_unref);
  g_clear_pointer (&self->record, muster_checkpoint_record_free);
  g_clear_error (&self->error);
  g_free (self->warning);
  g_free (self);
}

static void
add (MusterStorage *storage, const char *directory, const char *named, GPtrArray *found,
     GHashTable *seen)
{
  g_autofree char *prefix = muster_checkpoint_locate (storage, directory, named);

  /* The first entry stays in its place. */
  if (g_hash_table_contains (seen, prefix))
    return;
  g_hash_table_add (seen, prefix);
  g_ptr_array_add (found, g_steal_pointer (&prefix));
}

/* Returns the checkpoints that the state names, newest first, each once. */
static GPtrArray *
listed (MusterStorage *storage, const char *directory, const MusterCheckpointState *state)
{
  GPtrArray *found = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  if (state != NULL)
    add (storage, directory, state->latest, found, seen);
  for (guint i = state != NULL && state->all != NULL ? state->all->len : 0; i-- > 0;)
    add (storage, directory, state->all->pdata[i], found, seen);
  return found;
}

static GHashTable *
set_of (const GPtrArray *prefixes)
{
  GHashTable *set = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < prefixes->len; i++)
    g_hash_table_add (set, prefixes->pdata[i]);
  return set;
}

/* Adds those that the side file says the saver published, the last one first. If the state file
 * is missing or names only missing ones, these are what is left of the job. */
static gboolean
add_published (const MusterTierLook *self, const char *directory,
               const MusterCheckpointRecord *record, GPtrArray *found, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autoptr (GHashTable) seen = set_of (found);
  g_auto (GStrv) files = NULL;
  for (guint i = record != NULL ? record->checkpoints->len : 0; i-- > 0;) {
    const MusterSideCheckpoint *one = record->checkpoints->pdata[i];
    g_autofree char *prefix = g_build_filename (directory, one->name, NULL);
    g_autofree char *index = muster_bundle_index_path (one->name);
    if (one->pending_delete || g_hash_table_contains (seen, prefix) ||
        !muster_checkpoint_is_published_by (one, self->base_name, self->latest_filename))
      continue;
    if (files == NULL)
      files = muster_storage_list (self->storage, directory, &failure);
    if (files == NULL) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
    if (g_strv_contains ((const char *const *)files, index))
      add (self->storage, directory, prefix, found, seen);
  }
  return TRUE;
}

/* Adds the remaining files of the directory. */
static gboolean
add_files (MusterStorage *storage, const char *directory, GPtrArray *found, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_auto (GStrv) prefixes = muster_checkpoint_list (storage, directory, &failure);
  g_autoptr (GHashTable) seen = set_of (found);
  if (prefixes == NULL && muster_error_to_wire (failure) != MUSTER_ERROR_NOT_FOUND) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  for (guint i = prefixes != NULL ? g_strv_length (prefixes) : 0; i-- > 0;)
    add (storage, directory, prefixes[i], found, seen);
  return TRUE;
}

/* Fails if the state can't be read, unless the files may replace it: an unreadable state must
 * not look like none. */
static GPtrArray *
find_prefixes (const MusterTierLook *self, const char *directory,
               const MusterCheckpointRecord *record, char **warning, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_read_named (
      self->storage, directory, self->latest_filename, &failure);
  if (failure != NULL && !(self->from_files && muster_error_is (failure, MUSTER_ERROR_DATA_LOSS))) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return NULL;
  }
  g_autoptr (GPtrArray) prefixes = listed (self->storage, directory, state);
  if (!add_published (self, directory, record, prefixes, error) ||
      (self->from_files && !add_files (self->storage, directory, prefixes, error)))
    return NULL;
  if (failure != NULL && prefixes->len == 0) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return NULL;
  }
  if (failure != NULL)
    *warning = g_strdup (failure->message);
  return g_steal_pointer (&prefixes);
}

MusterTierListing *
muster_tier_list (const MusterTierLook *self, const char *directory)
{
  MusterTierListing *listing = g_new0 (MusterTierListing, 1);
  g_autoptr (GError) failure = NULL;
  listing->directory = g_strdup (directory);
  listing->record = muster_checkpoint_record_read (self->storage, directory, &failure);
  listing->prefixes =
      find_prefixes (self, directory, listing->record, &listing->warning, &listing->error);
  /* A side file that can't be read now may name checkpoints. */
  if (failure != NULL && !muster_error_is (failure, MUSTER_ERROR_DATA_LOSS) &&
      listing->prefixes != NULL && listing->prefixes->len == 0) {
    g_clear_pointer (&listing->prefixes, g_ptr_array_unref);
    listing->error = g_steal_pointer (&failure);
  }
  return listing;
}

/* --- several at the same time --- */

/* Shared with the threads, which may be stuck in a directory and outlive the call. */
typedef struct {
  gatomicrefcount refs;
  MusterStorage *storage; /* (owned) */
  char *base_name;        /* (owned) */
  char *latest_filename;  /* (owned) (nullable) */
  gboolean from_files;
  gsize n;
  GMutex lock;
  GCond changed;
  /* guarded by lock */
  gsize n_left;
  MusterTierListing **listings; /* (owned) (array length=n), each nullable */
} Looks;

typedef struct {
  Looks *looks;    /* (owned) */
  char *directory; /* (owned) */
  gsize i;
} Look;

static void
looks_unref (Looks *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  for (gsize i = 0; i < self->n; i++)
    muster_tier_listing_free (self->listings[i]);
  g_free (self->listings);
  g_object_unref (self->storage);
  g_free (self->base_name);
  g_free (self->latest_filename);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

static gpointer
look (gpointer data)
{
  Look *self = data;
  Looks *looks = self->looks;
  const MusterTierLook how = {looks->storage, looks->base_name, looks->latest_filename,
                              looks->from_files};
  MusterTierListing *listing = muster_tier_list (&how, self->directory);
  g_mutex_lock (&looks->lock);
  looks->listings[self->i] = listing;
  looks->n_left--;
  g_cond_broadcast (&looks->changed);
  g_mutex_unlock (&looks->lock);
  looks_unref (looks);
  g_free (self->directory);
  g_free (self);
  return NULL;
}

static void
start (Looks *self, const char *directory, gsize i)
{
  Look *one = g_new (Look, 1);
  *one = (Look){self, g_strdup (directory), i};
  g_atomic_ref_count_inc (&self->refs);
  g_thread_unref (g_thread_new ("muster-tier", look, one));
}

static gboolean
has_all (gpointer data)
{
  return ((Looks *)data)->n_left == 0;
}

static MusterTierListing *
silent (const char *directory, gint64 limit_us)
{
  MusterTierListing *listing = g_new0 (MusterTierListing, 1);
  g_autofree char *limit = muster_format_duration (limit_us);

  listing->directory = g_strdup (directory);
  muster_fail (&listing->error, MUSTER_ERROR_DEADLINE_EXCEEDED, "'%s' didn't answer within %s",
               directory, limit);
  return listing;
}

/* With the lock held: returns what has been found so far. */
static GPtrArray *
gather (Looks *self, const char *const *directories, gint64 limit_us)
{
  GPtrArray *all = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tier_listing_free);
  for (gsize i = 0; i < self->n; i++) {
    MusterTierListing *found = g_steal_pointer (&self->listings[i]);
    g_ptr_array_add (all, found != NULL ? found : silent (directories[i], limit_us));
  }
  return all;
}

GPtrArray *
muster_tier_list_all (const MusterTierLook *self, const char *const *directories, gsize n,
                      gint64 limit_us)
{
  const gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), limit_us);
  Looks *looks = g_new0 (Looks, 1);

  g_atomic_ref_count_init (&looks->refs);
  looks->storage = muster_storage_bound (self->storage, deadline_us, NULL, NULL);
  looks->base_name = g_strdup (self->base_name);
  looks->latest_filename = g_strdup (self->latest_filename);
  looks->from_files = self->from_files;
  looks->n = looks->n_left = n;
  looks->listings = g_new0 (MusterTierListing *, n);
  g_mutex_init (&looks->lock);
  g_cond_init (&looks->changed);
  for (gsize i = 0; i < n; i++)
    start (looks, directories[i], i);
  g_mutex_lock (&looks->lock);
  (void)muster_wait_for (&looks->changed, &looks->lock, has_all, looks, deadline_us, NULL);
  GPtrArray *all = gather (looks, directories, limit_us);
  g_mutex_unlock (&looks->lock);
  looks_unref (looks);
  return all;
}
