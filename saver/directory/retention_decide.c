// SPDX-License-Identifier: Apache-2.0
/* Decides which checkpoints of a directory stay when a new one is published. It collects what
 * the record and the saver's list know, and asks the rules, which do no I/O
 * (checkpoint/state/keep_rules_private.h). */
#include "checkpoint/state/quarantine.h"
#include "saver/directory/retention_private.h"

#include <math.h>
#include <string.h>

static void
preserved_free (gpointer data)
{
  MusterPreserved *self = data;
  g_free (self->prefix);
  g_free (self->why);
  g_free (self);
}

void
muster_retention_change_init (MusterRetentionChange *self)
{
  *self = (MusterRetentionChange){
      .kept = g_ptr_array_new_with_free_func (muster_kept_free),
      .leaving = g_ptr_array_new_with_free_func (g_free),
      .preserved = g_ptr_array_new_with_free_func (preserved_free),
  };
}

void
muster_retention_change_clear (MusterRetentionChange *self)
{
  g_clear_pointer (&self->kept, g_ptr_array_unref);
  g_clear_pointer (&self->leaving, g_ptr_array_unref);
  g_clear_pointer (&self->preserved, g_ptr_array_unref);
  muster_keep_rules_clear (&self->rules);
}

MusterSideCheckpoint *
muster_retention_entry (MusterCheckpointRecord *record, const char *directory, const char *prefix)
{
  g_autofree char *own = g_path_get_dirname (prefix);
  return strcmp (own, directory) == 0 ? muster_checkpoint_record_find (record, prefix) : NULL;
}

void
muster_checkpoint_directory_rules (const MusterCheckpointDirectory *self,
                                   const MusterCheckpointRecord *record, MusterKeepRules *rules)
{
  muster_keep_rules_copy (&self->rules, rules);
  muster_keep_rules_inherit (rules, muster_checkpoint_record_rules (record, self->latest_filename));
}

static gboolean
is_one_of (const MusterCheckpointDirectory *self, const MusterSideCheckpoint *one)
{
  return one->bad == NULL && !one->pending_delete &&
         muster_checkpoint_directory_names (self, one->name) &&
         g_strcmp0 (one->state_file, self->latest_filename) == 0;
}

static gboolean
is_among_best (const MusterCheckpointDirectory *self, const MusterCheckpointRecord *record,
               const MusterSideCheckpoint *sought)
{
  g_auto (MusterKeepRules) rules = {0};
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (MusterKeepOne));
  double mark = 0;
  guint at = 0;
  muster_checkpoint_directory_rules (self, record, &rules);
  for (guint i = 0; i < record->checkpoints->len; i++) {
    const MusterSideCheckpoint *one = record->checkpoints->pdata[i];
    const MusterKeepOne added = {.value = muster_side_checkpoint_metric (one, rules.metric)};
    if (!is_one_of (self, one))
      continue;
    at = one == sought ? all->len : at;
    g_array_append_val (all, added);
  }
  muster_keep_decide (&rules, (MusterKeepOne *)(gpointer)all->data, all->len, &mark);
  return (g_array_index (all, MusterKeepOne, at).reasons & MUSTER_KEEP_FOR_BEST) != 0;
}

gboolean
muster_retention_would_lose (MusterCheckpointDirectory *self, MusterCheckpointRecord *record,
                             const char *prefix)
{
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (record, prefix);
  return muster_side_checkpoint_is_left (one, record) && is_one_of (self, one) &&
         (one->pinned || one->preserved || is_among_best (self, record, one));
}

/* One decision. Checkpoints that only the record knows come first, then the managed ones. */
typedef struct {
  MusterCheckpointDirectory *owner;
  MusterCheckpointRecord *record;
  const MusterNewCheckpoint *checkpoint;
  MusterRetentionChange *change;
  GArray *all; /* (owned) (element-type MusterKeepOne) */
  guint n_others;
} Decision;

/* Adds checkpoints that another saver wrote here, or that were preserved: they may be the best.
 * */
static void
add_others (Decision *self)
{
  g_autoptr (GHashTable) managed = g_hash_table_new (g_str_hash, g_str_equal);
  const char *metric = self->change->rules.metric;
  for (guint i = 0; i < self->change->kept->len; i++) {
    const MusterKept *kept = self->change->kept->pdata[i];
    const MusterSideCheckpoint *one =
        muster_retention_entry (self->record, self->checkpoint->directory, kept->prefix);
    if (one != NULL)
      g_hash_table_add (managed, one->name);
  }
  for (guint i = 0; i < self->record->checkpoints->len; i++) {
    const MusterSideCheckpoint *one = self->record->checkpoints->pdata[i];
    const MusterKeepOne other = {.standing = MUSTER_KEEP_UNMANAGED,
                                 .step = one->step,
                                 .time = one->time,
                                 .value = muster_side_checkpoint_metric (one, metric),
                                 .is_left = muster_side_checkpoint_is_left (one, self->record)};
    if (!g_hash_table_contains (managed, one->name) && is_one_of (self->owner, one))
      g_array_append_val (self->all, other);
  }
  self->n_others = self->all->len;
}

static double
value_of_new (const Decision *self)
{
  const GArray *metrics = self->checkpoint->metrics;
  for (guint i = 0; metrics != NULL && i < metrics->len; i++) {
    const MusterSideMetric *one = &g_array_index (metrics, MusterSideMetric, i);
    if (g_strcmp0 (one->name, self->change->rules.metric) == 0)
      return one->value;
  }
  return NAN;
}

/* The record of the directory in which the checkpoint lies, if that is another one. */
static MusterCheckpointRecord *
record_elsewhere (const Decision *self, const char *prefix)
{
  g_autofree char *directory = g_path_get_dirname (prefix);
  return strcmp (directory, self->checkpoint->directory) != 0
             ? muster_checkpoint_record_read (self->change->storage, directory, NULL)
             : NULL;
}

static gint64
step_of (const Decision *self, const MusterSideCheckpoint *one, const char *prefix)
{
  if (strcmp (prefix, self->checkpoint->prefix) == 0)
    return self->checkpoint->step;
  return one != NULL && one->step >= 0 ? one->step : muster_checkpoint_step (prefix);
}

static void
add_managed (Decision *self, const MusterKept *kept)
{
  const MusterSideCheckpoint *one =
      muster_retention_entry (self->record, self->checkpoint->directory, kept->prefix);
  const gboolean is_new = strcmp (kept->prefix, self->checkpoint->prefix) == 0;
  g_autoptr (MusterCheckpointRecord) elsewhere =
      one == NULL ? record_elsewhere (self, kept->prefix) : NULL;
  const MusterSideCheckpoint *its =
      elsewhere != NULL ? muster_checkpoint_record_find (elsewhere, kept->prefix) : one;
  const MusterKeepOne added = {
      .standing = its != NULL && its->pinned ? MUSTER_KEEP_PINNED : MUSTER_KEEP_MANAGED,
      .step = step_of (self, one, kept->prefix),
      .time = kept->time,
      .value = is_new ? value_of_new (self)
                      : muster_side_checkpoint_metric (one, self->change->rules.metric),
      .is_latest = is_new,
      .is_held =
          muster_side_checkpoint_is_held (its, muster_checkpoint_directory_now (self->owner)),
      .is_left = !is_new && muster_side_checkpoint_is_left (one, self->record)};

  g_array_append_val (self->all, added);
}

static void
preserve (Decision *self, const char *prefix, const MusterKeepOne *one)
{
  MusterPreserved *preserved = g_new0 (MusterPreserved, 1);
  preserved->prefix = g_strdup (prefix);
  preserved->why = muster_keep_explain_good (&self->change->rules, one);
  g_ptr_array_add (self->change->preserved, preserved);
}

static void
sort_out (Decision *self)
{
  g_autoptr (GPtrArray) before = g_steal_pointer (&self->change->kept);
  self->change->kept = g_ptr_array_new_with_free_func (muster_kept_free);
  for (guint i = 0; i < before->len; i++) {
    MusterKept *kept = before->pdata[i];
    const MusterKeepOne *one = &g_array_index (self->all, MusterKeepOne, self->n_others + i);
    if (muster_keep_is_for_good (one)) {
      preserve (self, kept->prefix, one);
    } else if (one->reasons == 0) {
      g_ptr_array_add (self->change->leaving, g_strdup (kept->prefix));
    } else {
      MusterKept *still = muster_kept_new (kept->prefix, kept->time);
      still->is_beside = !muster_keep_is_listed (one);
      g_ptr_array_add (self->change->kept, still);
    }
  }
}

void
muster_retention_decide (MusterCheckpointDirectory *self, MusterCheckpointRecord *record,
                         const MusterNewCheckpoint *checkpoint, MusterRetentionChange *change)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (MusterKeepOne));
  Decision decision = {
      .owner = self, .record = record, .checkpoint = checkpoint, .change = change, .all = all};
  muster_checkpoint_directory_rules (self, record, &change->rules);
  add_others (&decision);
  for (guint i = 0; i < change->kept->len; i++)
    add_managed (&decision, change->kept->pdata[i]);
  muster_keep_decide (&change->rules, (MusterKeepOne *)(gpointer)all->data, all->len,
                      &change->mark);
  sort_out (&decision);
}
