// SPDX-License-Identifier: Apache-2.0
/* The fast tiers of a saver and their state: which are in use, which were dropped and why, and
 * what a restore noted about them. */
#include "saver/tiers/tiers_private.h"

#include "base/error.h"
#include "base/fields_private.h"
#include "base/log_private.h"
#include "checkpoint/stores/default_storage.h"
#include "saver/builder/keep_private.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_KEEP 2
#define DEFAULT_US   (10 * MUSTER_SECOND)

MUSTER_DEFINE_OPTIONS (MusterTier, muster_tier)

MusterTier *
muster_tier_new (const char *directory)
{
  g_return_val_if_fail (directory != NULL, NULL);
  MusterTier *self = g_new0 (MusterTier, 1);
  self->directory = g_strdup (directory);
  return self;
}

MUSTER_DEFINE_OPTIONS (MusterTierCopied, muster_tier_copied)

void
muster_tier_copied_clear (MusterTierCopied *self)
{
  g_return_if_fail (self != NULL);
  g_clear_pointer (&self->prefix, g_free);
  g_clear_pointer (&self->why, g_free);
}

/* Follows symbolic links as far as the path exists. */
static char *
resolve (const char *path)
{
  char *real = realpath (path, NULL);
  if (real != NULL || strcmp (path, "/") == 0 || strcmp (path, ".") == 0)
    return real != NULL ? real : g_strdup (path);
  g_autofree char *parent = g_path_get_dirname (path);
  g_autofree char *name = g_path_get_basename (path);
  g_autofree char *resolved = resolve (parent);
  return g_build_filename (resolved, name, NULL);
}

gboolean
muster_tiers_are_same (MusterStorage *storage, const char *a, const char *b)
{
  g_autofree char *first = muster_path_for_master (storage, a);
  g_autofree char *second = muster_path_for_master (storage, b);

  if (strcmp (first, second) == 0 || !muster_storage_is_local (storage, a) ||
      !muster_storage_is_local (storage, b))
    return strcmp (first, second) == 0;
  g_autofree char *real_first = resolve (first);
  g_autofree char *real_second = resolve (second);
  return strcmp (real_first, real_second) == 0;
}

static gboolean
check_tier (const MusterTier *tiers, gsize i, MusterStorage *storage, GError **error)
{
  const MusterTier *tier = &tiers[i];
  if (!muster_storage_check_path (storage, "fast tier", tier->directory, error) ||
      !muster_check_max_to_keep (tier->max_to_keep, error))
    return FALSE;
  if (tier->save_steps < 0 || tier->save_us < 0 || (tier->save_steps > 0 && tier->save_us > 0))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "the fast tier '%s' needs an interval in steps or in seconds, above 0",
                        tier->directory);
  for (gsize j = 0; j < i; j++)
    if (muster_tiers_are_same (storage, tier->directory, tiers[j].directory))
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "'%s' is given twice as a fast tier", tier->directory);
  return TRUE;
}

static gboolean
check_tiers (const MusterTier *tiers, gsize n, MusterStorage *storage, GError **error)
{
  if (n > MUSTER_MAX_FAST_TIERS)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%" G_GSIZE_FORMAT " fast tiers are too many (use %d at most)", n,
                        MUSTER_MAX_FAST_TIERS);
  for (gsize i = 0; i < n; i++)
    if (!check_tier (tiers, i, storage, error))
      return FALSE;
  return TRUE;
}

/* A fast tier keeps no best checkpoints and preserves none: the durable tier does. */
static void
open_tier (MusterFastTier *self, const MusterTier *rule, const MusterCheckpointDirectory *durable)
{
  MusterCheckpointDirectory *own = &self->checkpoints;
  self->rule = *rule;
  self->rule.directory = muster_path_without_slash (rule->directory);
  if (rule->save_steps == 0 && rule->save_us == 0)
    self->rule.save_us = DEFAULT_US;
  muster_checkpoint_directory_init (own);
  own->base_name = g_strdup (durable->base_name);
  own->latest_filename = g_strdup (durable->latest_filename);
  own->rules.newest = muster_max_to_keep_or (rule->max_to_keep, DEFAULT_KEEP);
  own->rules.by_last_kept = durable->rules.by_last_kept;
  own->rules.best = -1;
  own->rules.every_steps = -1;
  own->meta_graph = durable->meta_graph != NULL ? g_bytes_ref (durable->meta_graph) : NULL;
  own->absolute_paths = durable->absolute_paths;
  own->unlisted = durable->unlisted;
  own->adopt_unknown = durable->adopt_unknown;
  own->needs_record = TRUE;
  muster_checkpoint_directory_open (own, durable->storage, durable->clock);
}

MusterTiers *
muster_tiers_new (const MusterTier *tiers, gsize n, const MusterCheckpointDirectory *durable,
                  GError **error)
{
  if (!check_tiers (tiers, n, durable->storage, error))
    return NULL;
  MusterTiers *self = g_new0 (MusterTiers, 1);
  self->storage = g_object_ref (durable->storage);
  self->clock = g_object_ref (durable->clock);
  self->n = (guint)n;
  self->fast = g_new0 (MusterFastTier, MAX (n, 1));
  self->copier = muster_copier_new (self->storage, self->clock);
  self->free_space = (MusterFreeSpace){.storage = self->storage, .clock = self->clock};
  g_mutex_init (&self->lock);
  for (gsize i = 0; i < n; i++)
    open_tier (&self->fast[i], &tiers[i], durable);
  return self;
}

void
muster_tiers_free (MusterTiers *self)
{
  if (self == NULL)
    return;
  muster_copier_free (self->copier);
  for (guint i = 0; i < self->n; i++) {
    g_free ((char *)self->fast[i].rule.directory);
    muster_checkpoint_directory_clear (&self->fast[i].checkpoints);
  }
  g_free (self->fast);
  g_object_unref (self->storage);
  g_object_unref (self->clock);
  g_free (self->doubtful);
  g_mutex_clear (&self->lock);
  g_free (self);
}

MusterTierSet
muster_tiers_alive (MusterTiers *self)
{
  MusterTierSet alive = MUSTER_TIER_BIT (self->n);
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->n; i++)
    if (!self->fast[i].is_dropped)
      alive |= MUSTER_TIER_BIT (i);
  g_mutex_unlock (&self->lock);
  return alive;
}

guint
muster_tiers_fastest (MusterTiers *self)
{
  const MusterTierSet alive = muster_tiers_alive (self);
  guint i = 0;
  while ((alive & MUSTER_TIER_BIT (i)) == 0)
    i++;
  return i;
}

guint
muster_tiers_of (MusterTiers *self, const char *prefix)
{
  g_autofree char *directory = g_path_get_dirname (prefix);
  guint i = 0;

  while (i < self->n && strcmp (self->fast[i].rule.directory, directory) != 0)
    i++;
  return i;
}

void
muster_tiers_drop (MusterTiers *self, guint tier, const char *why, const char *durable)
{
  g_return_if_fail (tier < self->n);

  MusterFastTier *fast = &self->fast[tier];
  g_mutex_lock (&self->lock);
  gboolean was_dropped = fast->is_dropped;
  fast->is_dropped = TRUE;
  g_mutex_unlock (&self->lock);
  if (was_dropped)
    return;
  const guint next = muster_tiers_fastest (self);
  g_auto (GStrv) lines =
      g_strsplit (why, "\n", 2); /* a master adds the place of its op in further lines */
  muster_log (G_LOG_LEVEL_WARNING, "tier", "MESSAGE",
              "the fast tier '%s' isn't used any more: %s. Training goes on; checkpoints are saved "
              "in '%s' at its own interval, so a failure costs the steps since the last one there. "
              "The tier is tried again when the next session begins",
              fast->rule.directory, lines[0],
              next < self->n ? self->fast[next].rule.directory : durable);
}

void
muster_tiers_revive (MusterTiers *self)
{
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->n; i++)
    self->fast[i].is_dropped = self->fast[i].is_silent;
  g_mutex_unlock (&self->lock);
}

void
muster_tiers_note_silent (MusterTiers *self, guint tier, gboolean is_silent)
{
  MusterFastTier *fast = &self->fast[tier];
  g_mutex_lock (&self->lock);
  fast->is_silent = is_silent;
  fast->is_dropped = fast->is_dropped || is_silent;
  g_mutex_unlock (&self->lock);
}

void
muster_tiers_note_restored (MusterTiers *self, const char *prefix, gboolean is_doubtful)
{
  g_mutex_lock (&self->lock);
  g_free (self->doubtful);
  self->doubtful = is_doubtful ? g_strdup (prefix) : NULL;
  g_mutex_unlock (&self->lock);
}

gboolean
muster_tiers_is_doubtful (MusterTiers *self, const char *prefix)
{
  g_mutex_lock (&self->lock);
  gboolean is_doubtful = self->doubtful != NULL && g_strcmp0 (self->doubtful, prefix) == 0;
  g_mutex_unlock (&self->lock);
  return is_doubtful;
}

gboolean
muster_tier_is_at_fault (const GError *failure)
{
  static const MusterError others[] = {
      MUSTER_ERROR_CANCELLED,           MUSTER_ERROR_INVALID_ARGUMENT,
      MUSTER_ERROR_DEADLINE_EXCEEDED,   MUSTER_ERROR_ALREADY_EXISTS,
      MUSTER_ERROR_OUT_OF_RANGE,        MUSTER_ERROR_ABORTED,
      MUSTER_ERROR_FAILED_PRECONDITION, MUSTER_ERROR_UNIMPLEMENTED,
      MUSTER_ERROR_UNAUTHENTICATED,     MUSTER_ERROR_UNAVAILABLE};
  if (g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++)
    if (muster_error_is (failure, others[i]))
      return FALSE;
  return TRUE;
}
