// SPDX-License-Identifier: Apache-2.0
#include "bundle/checkpoint_state.h"
#include "saver/saver_private.h"

static MusterKept *
kept_new (const char *prefix, double time)
{
  MusterKept *kept = g_new (MusterKept, 1);

  kept->prefix = g_strdup (prefix);
  kept->time = time;

  return kept;
}

static void
kept_free (gpointer data)
{
  g_free (((MusterKept *)data)->prefix);
  g_free (data);
}

static double
wall_seconds (MusterSaver *self)
{
  return (double)muster_clock_wall_us (self->clock) / (double)MUSTER_SECOND;
}

/* The list as it will be: prefix at its end, and nowhere else. */
static GPtrArray *
list_with (MusterSaver *self, const char *prefix)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (kept_free);

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->kept->len; i++) {
    const MusterKept *kept = self->kept->pdata[i];
    if (strcmp (kept->prefix, prefix) != 0)
      g_ptr_array_add (list, kept_new (kept->prefix, kept->time));
  }
  g_mutex_unlock (&self->lock);
  g_ptr_array_add (list, kept_new (prefix, wall_seconds (self)));

  return list;
}

/* Takes as many from the front as are too many (SAV.52, as muster does it): (transfer full). */
static GPtrArray *
trim (MusterSaver *self, GPtrArray *list)
{
  GPtrArray *leaving = g_ptr_array_new_with_free_func (g_free);

  while (self->max_to_keep > 0 && list->len > (guint)self->max_to_keep) {
    const MusterKept *oldest = list->pdata[0];
    g_ptr_array_add (leaving, g_strdup (oldest->prefix));
    g_ptr_array_remove_index (list, 0);
  }

  return leaving;
}

static gboolean
write_state (MusterSaver *self, const char *directory, const char *prefix, GPtrArray *list,
             GError **error)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();

  g_free (state->latest);
  state->latest = g_strdup (prefix);
  for (guint i = 0; i < list->len; i++) {
    const MusterKept *kept = list->pdata[i];
    g_ptr_array_add (state->all, g_strdup (kept->prefix));
    g_array_append_val (state->timestamps, kept->time);
  }

  return muster_checkpoint_state_write (self->storage, directory, state, error);
}

/* Removes what has left the list. One that can't be removed stays doomed until it can; the save
 * itself is well (SAV.55). */
static void
remove_doomed (MusterSaver *self, GPtrArray *leaving, const char *just_saved)
{
  g_mutex_lock (&self->lock);
  g_ptr_array_extend_and_steal (self->doomed, leaving);
  for (guint i = self->doomed->len; i-- > 0;) {
    const char *prefix = self->doomed->pdata[i];
    if (strcmp (prefix, just_saved) == 0 || muster_remove_checkpoint (self->storage, prefix, NULL))
      g_ptr_array_remove_index (self->doomed, i);
  }
  g_mutex_unlock (&self->lock);
}

gboolean
muster_saver_record (MusterSaver *self, const char *directory, const char *prefix, GError **error)
{
  g_autoptr (GPtrArray) list = list_with (self, prefix);
  GPtrArray *leaving = trim (self, list);

  if (!write_state (self, directory, prefix, list, error)) {
    g_ptr_array_unref (leaving);
    return FALSE;
  }

  g_mutex_lock (&self->lock);
  GPtrArray *before = self->kept;
  self->kept = g_steal_pointer (&list);
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (before);
  remove_doomed (self, leaving, prefix);

  return TRUE;
}

char **
muster_saver_last_checkpoints (MusterSaver *self)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->kept->len; i++)
    g_strv_builder_add (builder, ((const MusterKept *)self->kept->pdata[i])->prefix);
  g_mutex_unlock (&self->lock);

  return g_strv_builder_end (builder);
}

void
muster_saver_recover_last_checkpoints (MusterSaver *self, const char *const *prefixes)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (kept_free);

  for (const char *const *prefix = prefixes; *prefix; prefix++)
    if (muster_checkpoint_exists (self->storage, *prefix))
      g_ptr_array_add (list, kept_new (*prefix, wall_seconds (self)));

  g_mutex_lock (&self->lock);
  GPtrArray *before = self->kept;
  self->kept = list;
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (before);
}
