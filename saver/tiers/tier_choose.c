// SPDX-License-Identifier: Apache-2.0
/* Chooses among the checkpoints of all tiers, newest first. The durable tier's side file names
 * the run; a checkpoint of a fast tier counts only if it is of that run or of its past
 * (docs/decisions/0023). */
#include "saver/tiers/tier_choose_private.h"

#include "base/error.h"
#include "checkpoint/state/quarantine.h"

#include <string.h>

static void
refused_free (gpointer data)
{
  MusterTierRefused *self = data;
  g_free (self->prefix);
  g_free (self->why);
  g_free (self);
}

void
muster_tier_choice_clear (MusterTierChoice *self)
{
  g_clear_pointer (&self->prefixes, g_ptr_array_unref);
  g_clear_pointer (&self->refused, g_ptr_array_unref);
}

static const MusterTierListing *
listing_at (const GPtrArray *listings, guint i)
{
  return listings->pdata[i];
}

static gboolean
has_run (const MusterTierListing *self)
{
  return self->record != NULL && self->record->run != NULL;
}

/* Returns TRUE if nothing in the tier tells which run is the job's. */
static gboolean
is_blank (const MusterTierListing *self)
{
  return !has_run (self) && (self->prefixes == NULL || self->prefixes->len == 0);
}

static gboolean
belongs (const MusterTierListing *self, const char *durable_path)
{
  return has_run (self) && g_strcmp0 (self->record->durable_dir, durable_path) == 0;
}

/* Returns the side file that tells which run is the job's: the durable tier's. If that has none,
 * that of the fast tier that was claimed last. (nullable) borrowed. */
static const MusterCheckpointRecord *
find_authority (const GPtrArray *listings, const char *durable_path)
{
  const MusterTierListing *durable = listing_at (listings, listings->len - 1);
  const MusterCheckpointRecord *found = NULL;
  if (!is_blank (durable))
    return has_run (durable) ? durable->record : NULL;
  for (guint i = 0; i + 1 < listings->len; i++) {
    const MusterTierListing *fast = listing_at (listings, i);
    if (belongs (fast, durable_path) && (found == NULL || fast->record->epoch > found->epoch))
      found = fast->record;
  }
  return found;
}

static char *
refuse_other_job (const MusterTierListing *fast, const char *durable_path)
{
  if (fast->record->durable_dir == NULL || belongs (fast, durable_path))
    return g_strdup ("another run saved it");
  return g_strdup_printf ("it belongs to the job in '%s'", fast->record->durable_dir);
}

/* Returns NULL if the checkpoint counts, else the reason (transfer full). */
static char *
refuse_by_run (const MusterTierListing *fast, const MusterCheckpointRecord *authority,
               const char *durable_path, const char *prefix)
{
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (fast->record, prefix);
  const char *run = one != NULL ? one->run : NULL;
  if (one == NULL)
    return g_strdup ("its save was cut off");
  if (run != NULL && strcmp (run, authority->run) == 0)
    return NULL;
  if (run == NULL || g_strcmp0 (run, authority->resumed_run) != 0)
    return refuse_other_job (fast, durable_path);
  return g_strdup_printf ("superseded: the job went on from step %" G_GINT64_FORMAT,
                          authority->resumed_step);
}

/* Returns TRUE for the checkpoint that the authority's run started from, and for those that led
 * there. They count even if the tier couldn't be claimed since, as when it is full. */
static gboolean
is_past (const MusterTierListing *fast, const MusterCheckpointRecord *authority, const char *prefix)
{
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (fast->record, prefix);
  return one != NULL && one->run != NULL && g_strcmp0 (one->run, authority->resumed_run) == 0 &&
         muster_checkpoint_step (prefix) <= authority->resumed_step;
}

static char *
refuse (const MusterTierListing *fast, const MusterTierListing *durable,
        const MusterCheckpointRecord *authority, const char *durable_path, const char *prefix)
{
  if (fast->record == NULL)
    return g_strdup ("the side file of its directory can't be read");
  if (is_blank (durable) && !belongs (fast, durable_path))
    return refuse_other_job (fast, durable_path);
  if (authority == NULL)
    return g_strdup ("the durable directory doesn't say which run it belongs to");
  if (is_past (fast, authority, prefix))
    return NULL;
  if (fast->record->epoch < authority->epoch)
    return g_strdup_printf ("behind: its directory was last claimed with epoch %" G_GINT64_FORMAT
                            ", and the job is at %" G_GINT64_FORMAT,
                            fast->record->epoch, authority->epoch);
  return refuse_by_run (fast, authority, durable_path, prefix);
}

/* Returns the checkpoints of a tier that count, in the tier's order. */
static GPtrArray *
filter (const GPtrArray *listings, guint i, const MusterCheckpointRecord *authority,
        const char *durable_path, GPtrArray *refused)
{
  const MusterTierListing *listing = listing_at (listings, i);
  const MusterTierListing *durable = listing_at (listings, listings->len - 1);
  GPtrArray *found = g_ptr_array_new ();
  for (guint j = 0; listing->prefixes != NULL && j < listing->prefixes->len; j++) {
    const char *prefix = listing->prefixes->pdata[j];
    char *why =
        listing != durable ? refuse (listing, durable, authority, durable_path, prefix) : NULL;
    if (why == NULL) {
      g_ptr_array_add (found, (gpointer)prefix);
      continue;
    }
    MusterTierRefused *one = g_new (MusterTierRefused, 1);
    *one = (MusterTierRefused){g_strdup (prefix), muster_checkpoint_step (prefix), why};
    g_ptr_array_add (refused, one);
  }
  return found;
}

/* Returns the tier whose next checkpoint is the newest; -1: none is left. Each tier keeps its
 * order, because its latest isn't always the one with the highest step. */
static int
newest (const GPtrArray *tiers, const guint *at)
{
  int best = -1;
  gint64 best_step = -1;
  for (guint i = 0; i < tiers->len; i++) {
    const GPtrArray *tier = tiers->pdata[i];
    if (at[i] >= tier->len)
      continue;
    const gint64 step = muster_checkpoint_step (tier->pdata[at[i]]);
    if (best < 0 || step > best_step) {
      best = (int)i;
      best_step = step;
    }
  }
  return best;
}

void
muster_tier_choose (const GPtrArray *listings, const char *durable_path, MusterTierChoice *choice)
{
  const MusterCheckpointRecord *authority = find_authority (listings, durable_path);
  g_autoptr (GPtrArray) tiers = g_ptr_array_new_with_free_func ((GDestroyNotify)g_ptr_array_unref);
  g_autofree guint *at = g_new0 (guint, listings->len);

  *choice = (MusterTierChoice){.prefixes = g_ptr_array_new_with_free_func (g_free),
                               .refused = g_ptr_array_new_with_free_func (refused_free)};
  for (guint i = 0; i < listings->len; i++)
    g_ptr_array_add (tiers, filter (listings, i, authority, durable_path, choice->refused));
  for (int i = newest (tiers, at); i >= 0; i = newest (tiers, at)) {
    const GPtrArray *tier = tiers->pdata[i];
    g_ptr_array_add (choice->prefixes, g_strdup (tier->pdata[at[i]++]));
  }
}
