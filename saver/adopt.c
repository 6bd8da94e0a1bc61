// SPDX-License-Identifier: Apache-2.0
#include "base/require.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/store/directory_lock.h"
#include "saver/saver_private.h"

/* What a saver of a new process finds in a directory. */
typedef struct {
  MusterSaver *saver;
  const char *directory;
  MusterCheckpointState *state;   /* (owned) (nullable) */
  MusterCheckpointRecord *record; /* (owned) */
  GHashTable *seen;               /* (owned) (element-type utf8) prefixes */
  GPtrArray *list;                /* (owned) (element-type MusterKept) */
  GPtrArray *doomed;              /* (owned) (element-type utf8) */
  double now;
  double mark;
} Adoption;

static void
adoption_clear (Adoption *self)
{
  g_clear_pointer (&self->state, muster_checkpoint_state_free);
  g_clear_pointer (&self->record, muster_checkpoint_record_free);
  g_clear_pointer (&self->seen, g_hash_table_unref);
  g_clear_pointer (&self->list, g_ptr_array_unref);
  g_clear_pointer (&self->doomed, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Adoption, adoption_clear)

/* SAV.85: with a clock behind the mark nobody knows how old anything is. */
static void
find_mark (Adoption *self)
{
  double mark = self->state ? self->state->last_preserved : 0;

  self->mark = mark > 0 ? mark : self->record->last_preserved;
  if (self->mark <= 0) {
    g_mutex_lock (&self->saver->lock);
    self->mark = self->saver->mark;
    g_mutex_unlock (&self->saver->lock);
  } else if (self->saver->keep_seconds > 0 && self->mark > self->now) {
    g_warning ("'%s': this host's clock is behind the last preserved checkpoint timestamp (%.0f s "
               "before it): what is there already is left alone",
               self->directory, self->mark - self->now);
    self->mark = self->now;
  }
}

static double
time_of (const Adoption *self, const char *prefix, double told)
{
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (self->record, prefix);
  const char *list[] = {prefix, NULL};

  if (told > 0)
    return MIN (told, self->now);
  if (one && one->time > 0)
    return MIN (one->time, self->now);
  g_autoptr (GArray) times = muster_checkpoint_mtimes (self->saver->storage, list);

  return times->len > 0 ? MIN (g_array_index (times, double, 0), self->now) : self->now;
}

/* What isn't newer than the mark of CheckpointManager's rule was kept for good, or may have been.
 */
static void
add (Adoption *self, const char *prefix, double time)
{
  const MusterSaver *saver = self->saver;

  if (saver->keep_seconds > 0 && saver->keep_rule == MUSTER_KEEP_MANAGER && time <= self->mark)
    return;
  g_ptr_array_add (self->list, muster_kept_new (prefix, time));
}

/* "model.ckpt" or "model.ckpt-STEP" */
static gboolean
is_named_as_ours (const Adoption *self, const char *prefix)
{
  g_autofree char *name = g_path_get_basename (prefix);
  const gsize n = strlen (self->saver->base_name);

  return strncmp (name, self->saver->base_name, n) == 0 &&
         (name[n] == '\0' || (name[n] == '-' && name[n + 1] != '\0' &&
                              strspn (name + n + 1, "0123456789") == strlen (name + n + 1)));
}

/* One that the state names, unless its files are gone, or it is another saver's: two of one
 * directory may share a state file, which names what was saved last, by whichever. */
static void
add_listed (Adoption *self, const char *named, double told)
{
  MusterStorage *storage = self->saver->storage;
  g_autofree char *prefix = muster_checkpoint_locate (storage, self->directory, named);

  if (g_hash_table_contains (self->seen, prefix) || !is_named_as_ours (self, prefix) ||
      !muster_checkpoint_exists (storage, prefix))
    return;
  /* The manager's rule goes by the state's times alone. */
  if (told <= 0 && self->saver->keep_rule == MUSTER_KEEP_MANAGER)
    add (self, prefix, MIN (self->mark, self->now));
  else
    add (self, prefix, time_of (self, prefix, told));
  g_hash_table_add (self->seen, g_steal_pointer (&prefix));
}

/* Of this saver's state file as well, as the record tells. */
static gboolean
is_ours (const Adoption *self, const char *prefix)
{
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (self->record, prefix);

  return is_named_as_ours (self, prefix) &&
         (!one || g_strcmp0 (one->state_file, self->saver->latest_filename) == 0);
}

/* Files that the state doesn't name: where the record says that they are a muster's, or the caller
 * does. What nobody knows is nobody's to delete. */
static GPtrArray *
find_unlisted (Adoption *self, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_auto (GStrv) files = muster_checkpoint_list (self->saver->storage, self->directory, &failure);
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (muster_kept_free);

  if (!files && !g_error_matches (failure, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return NULL;
  }
  for (char **file = files; file && *file; file++) {
    const MusterSideCheckpoint *one = muster_checkpoint_record_find (self->record, *file);
    if (g_hash_table_contains (self->seen, *file) || !is_ours (self, *file))
      continue;
    if (one ? !one->preserved && !one->doomed : self->saver->adopt_unknown)
      g_ptr_array_add (found, muster_kept_new (*file, time_of (self, *file, 0)));
  }

  return g_steal_pointer (&found);
}

/* Puts them where their steps belong: before the first listed one that is further. */
static void
merge (Adoption *self, GPtrArray *unlisted)
{
  g_autoptr (GPtrArray) listed = g_steal_pointer (&self->list);
  guint next = 0;

  self->list = g_ptr_array_new_with_free_func (muster_kept_free);
  for (guint i = 0; i < listed->len; i++) {
    const MusterKept *kept = listed->pdata[i];
    for (; next < unlisted->len; next++) {
      const MusterKept *other = unlisted->pdata[next];
      if (muster_checkpoint_step (other->prefix) >= muster_checkpoint_step (kept->prefix))
        break;
      add (self, other->prefix, other->time);
    }
    g_ptr_array_add (self->list, muster_kept_new (kept->prefix, kept->time));
  }
  for (; next < unlisted->len; next++) {
    const MusterKept *other = unlisted->pdata[next];
    add (self, other->prefix, other->time);
  }
}

/* What another life could not remove, whole or in part. */
static void
find_doomed (Adoption *self)
{
  for (guint i = 0; i < self->record->checkpoints->len; i++) {
    const MusterSideCheckpoint *one = self->record->checkpoints->pdata[i];
    g_autofree char *prefix = g_build_filename (self->directory, one->name, NULL);
    if (one->doomed && !one->preserved && is_ours (self, prefix) &&
        !g_hash_table_contains (self->seen, prefix))
      g_ptr_array_add (self->doomed, g_steal_pointer (&prefix));
  }
}

static gboolean
look_around (Adoption *self, GError **error)
{
  const MusterCheckpointState *state = self->state;

  find_mark (self);
  for (guint i = 0; state && i < state->all->len; i++)
    if (strcmp (state->all->pdata[i], state->latest) != 0)
      add_listed (self, state->all->pdata[i],
                  i < state->timestamps->len ? g_array_index (state->timestamps, double, i) : 0);
  for (guint i = state ? state->all->len : 0; i-- > 0;)
    if (strcmp (state->all->pdata[i], state->latest) == 0)
      add_listed (self, state->latest,
                  i < state->timestamps->len ? g_array_index (state->timestamps, double, i) : 0);
  if (state)
    add_listed (self, state->latest, 0); /* where it isn't among them */
  g_autoptr (GPtrArray) unlisted = find_unlisted (self, error);
  if (!unlisted)
    return FALSE;
  merge (self, unlisted);
  find_doomed (self);

  return TRUE;
}

static void
take_over (Adoption *self)
{
  MusterSaver *saver = self->saver;

  g_mutex_lock (&saver->lock);
  g_autoptr (GPtrArray) before = saver->kept, doomed = saver->doomed;
  saver->kept = g_steal_pointer (&self->list);
  saver->doomed = g_steal_pointer (&self->doomed);
  saver->mark = self->mark;
  g_mutex_unlock (&saver->lock);
}

gboolean
muster_saver_adopt_directory (MusterSaver *self, const char *directory, GError **error)
{
  muster_require (error, FALSE, self, directory);

  g_autoptr (GError) failure = NULL;

  if (!muster_saver_check_directory (self, directory, error))
    return FALSE;
  if (self->unlisted)
    return TRUE;
  g_auto (Adoption) adoption = {
      .saver = self,
      .directory = directory,
      .seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
      .list = g_ptr_array_new_with_free_func (muster_kept_free),
      .doomed = g_ptr_array_new_with_free_func (g_free),
      .now = muster_saver_wall_seconds (self),
  };
  adoption.state = muster_checkpoint_state_read_named (self->storage, directory,
                                                       self->latest_filename, &failure);
  if (failure) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  /* One that is damaged says nothing; who writes it next sets it aside. */
  adoption.record = muster_checkpoint_record_read (self->storage, directory, NULL);
  if (!adoption.record)
    adoption.record = muster_checkpoint_record_new ();
  if (!look_around (&adoption, error))
    return FALSE;
  take_over (&adoption);
  (void)muster_saver_sweep_quietly (self, directory);

  return TRUE;
}
