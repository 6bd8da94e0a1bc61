// SPDX-License-Identifier: Apache-2.0
/* Why a directory's checkpoints stay, by the rules of retention: for `list`, which shows the
 * reasons, and `prune`, which acts on them. */
#include "cli/checkpoint/checkpoint_keep.h"

#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "cli/checkpoint/checkpoint_open.h"

#include <math.h>
#include <string.h>

GPtrArray *
muster_cli_state_files (const MusterCheckpointRecord *record)
{
  GPtrArray *files = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (files, g_strdup ("checkpoint"));
  for (guint i = 0; i < record->checkpoints->len; i++) {
    const MusterSideCheckpoint *known = record->checkpoints->pdata[i];
    if (known->state_file != NULL &&
        !g_ptr_array_find_with_equal_func (files, known->state_file, g_str_equal, NULL))
      g_ptr_array_add (files, g_strdup (known->state_file));
  }
  return files;
}

static gboolean
is_named (const MusterListed *listed, const char *prefix)
{
  g_autofree char *name = g_path_get_basename (prefix);
  return strcmp (listed->name, name) == 0;
}

static void
take_state (GPtrArray *listed, const MusterCheckpointState *state)
{
  for (guint i = 0; i < listed->len; i++) {
    MusterListed *it = listed->pdata[i];
    it->is_head = it->is_head || (state->latest != NULL && is_named (it, state->latest));
    for (guint j = 0; j < state->all->len && !it->is_in_state; j++)
      it->is_in_state = is_named (it, state->all->pdata[j]);
  }
}

gboolean
muster_listed_read_states (GPtrArray *listed, const char *directory, const GPtrArray *state_files,
                           GError **error)
{
  for (guint i = 0; i < state_files->len; i++) {
    g_autoptr (GError) failure = NULL;
    g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_read_named (
        muster_cli_storage (), directory, state_files->pdata[i], &failure);
    if (failure != NULL) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
    if (state != NULL)
      take_state (listed, state);
  }
  return TRUE;
}

/* --- the decision, for those of one name --- */

typedef struct {
  const MusterCheckpointRecord *record;
  GPtrArray *listed; /* (owned) (element-type MusterListed) oldest first */
  MusterKeepRules rules;
  gboolean is_prune; /* all of them are managed */
} Group;

static void
group_clear (Group *self)
{
  g_clear_pointer (&self->listed, g_ptr_array_unref);
  muster_keep_rules_clear (&self->rules);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Group, group_clear)

static const MusterSideCheckpoint *
known_of (const Group *self, guint i)
{
  const MusterListed *it = self->listed->pdata[i];
  return muster_checkpoint_record_find (self->record, it->name);
}

/* The rules of the state file of the newest one that the record knows. */
static const MusterKeepRules *
recorded_rules (const Group *self)
{
  for (guint i = self->listed->len; i-- > 0;) {
    const MusterSideCheckpoint *known = known_of (self, i);
    if (known != NULL && known->files->len > 0)
      return muster_checkpoint_record_rules (self->record, known->state_file);
  }
  return NULL;
}

static MusterKeepStanding
standing_of (const Group *self, guint i)
{
  const MusterListed *it = self->listed->pdata[i];
  const MusterSideCheckpoint *known = known_of (self, i);
  if (known != NULL && known->pinned)
    return MUSTER_KEEP_PINNED;
  if (known != NULL && known->preserved)
    return MUSTER_KEEP_PRESERVED;
  const gboolean is_managed = it->is_in_state || (known != NULL && known->files->len > 0);
  return self->is_prune || is_managed ? MUSTER_KEEP_MANAGED : MUSTER_KEEP_UNMANAGED;
}

static MusterKeepOne
one_of (const Group *self, guint i)
{
  const MusterListed *it = self->listed->pdata[i];
  const MusterSideCheckpoint *known = known_of (self, i);
  return (MusterKeepOne){
      .standing = standing_of (self, i),
      .step = it->step,
      .time = (double)it->when_us / (double)MUSTER_SECOND,
      .value = muster_side_checkpoint_metric (known, self->rules.metric),
      .is_latest = it->is_head,
      .is_held = muster_side_checkpoint_is_held (
          known, muster_checkpoint_record_now (muster_system_clock ())),
      .is_left = muster_side_checkpoint_is_left (known, self->record),
  };
}

static void
decide (Group *self)
{
  const guint n = self->listed->len;
  g_autofree MusterKeepOne *all = g_new0 (MusterKeepOne, n);
  double mark = -INFINITY;
  for (guint i = 0; i < n; i++)
    all[i] = one_of (self, i);
  muster_keep_decide (&self->rules, all, n, &mark);
  for (guint i = 0; i < n; i++) {
    MusterListed *it = self->listed->pdata[i];
    const MusterSideCheckpoint *known = known_of (self, i);
    it->reasons = all[i].reasons;
    g_strfreev (it->kept_for);
    it->kept_for =
        muster_keep_explain (&self->rules, &all[i], known != NULL ? known->pinned_for : NULL,
                             known != NULL ? known->preserved_for : NULL);
  }
}

/* "model.ckpt" of "model.ckpt-1200" */
static char *
base_of (const MusterListed *listed)
{
  char *base = g_strdup (listed->name);
  char *dash = strrchr (base, '-');
  if (muster_checkpoint_step (listed->name) >= 0 && dash != NULL)
    *dash = '\0';
  return base;
}

/* By name; listed may be in any order of them. Quarantined ones are nobody's to remove. */
static GHashTable *
by_base (GPtrArray *listed)
{
  GHashTable *groups =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
  for (guint i = 0; i < listed->len; i++) {
    const MusterListed *it = listed->pdata[i];
    g_autofree char *base = base_of (it);
    if (muster_checkpoint_is_quarantined (it->name))
      continue;
    GPtrArray *group = g_hash_table_lookup (groups, base);
    if (group == NULL) {
      group = g_ptr_array_new ();
      g_hash_table_insert (groups, g_steal_pointer (&base), group);
    }
    g_ptr_array_add (group, (gpointer)it);
  }
  return groups;
}

static int
oldest_first (gconstpointer a, gconstpointer b)
{
  const MusterListed *x = *(MusterListed *const *)a, *y = *(MusterListed *const *)b;
  if (x->step != y->step)
    return x->step > y->step ? 1 : -1;
  return x->when_us > y->when_us ? 1 : x->when_us < y->when_us ? -1 : 0;
}

/* Of a directory whose saver recorded no rules, as an older muster or TensorFlow: the list. */
static void
explain_by_list (Group *self)
{
  for (guint i = 0; i < self->listed->len; i++)
    self->rules.newest += ((const MusterListed *)self->listed->pdata[i])->is_in_state;
  self->rules.newest = MAX (self->rules.newest, 1);
}

static void
take_rules (Group *self, const MusterKeepRules *given)
{
  const MusterKeepRules *recorded = recorded_rules (self);
  if (given != NULL) {
    muster_keep_rules_copy (given, &self->rules);
    muster_keep_rules_inherit (&self->rules, recorded);
    return;
  }
  if (recorded == NULL) {
    explain_by_list (self);
    return;
  }
  muster_keep_rules_copy (recorded, &self->rules);
  self->rules.every_s = 0; /* a saver has decided that, and recorded it */
}

static void
decide_all (GPtrArray *listed, const MusterCheckpointRecord *record, const MusterKeepRules *rules)
{
  g_autoptr (GHashTable) groups = by_base (listed);
  GHashTableIter iter;
  gpointer group;
  g_hash_table_iter_init (&iter, groups);
  while (g_hash_table_iter_next (&iter, NULL, &group)) {
    g_auto (Group)
        self = {.record = record, .listed = g_ptr_array_ref (group), .is_prune = rules != NULL};
    g_ptr_array_sort (self.listed, oldest_first);
    take_rules (&self, rules);
    decide (&self);
  }
}

void
muster_listed_explain (GPtrArray *listed, const MusterCheckpointRecord *record)
{
  decide_all (listed, record, NULL);
}

void
muster_listed_decide (GPtrArray *listed, const MusterCheckpointRecord *record,
                      const MusterKeepRules *rules)
{
  decide_all (listed, record, rules);
}
