// SPDX-License-Identifier: Apache-2.0
#include "base/log_private.h"
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "saver/directory/retention_private.h"

/* Maximum number of failures in one go, so that a save doesn't wait for all of them where
 * nothing can be removed. The next removal begins with those that weren't tried. */
#define MOST_FAILURES 16

void
muster_retention_forget_gone (MusterCheckpointDirectory *self, MusterStorage *storage,
                              MusterCheckpointRecord *record, const char *directory)
{
  for (guint i = record->checkpoints->len; i-- > 0;) {
    const MusterSideCheckpoint *one = record->checkpoints->pdata[i];
    if (!one->pending_delete)
      continue;
    g_autofree char *prefix = g_build_filename (directory, one->name, NULL);
    g_mutex_lock (&self->lock);
    gboolean waits =
        g_ptr_array_find_with_equal_func (self->pending_deletes, prefix, g_str_equal, NULL);
    g_mutex_unlock (&self->lock);
    if (!waits && muster_checkpoint_is_gone (storage, prefix))
      muster_checkpoint_record_forget (record, one->name);
  }
}

/* Returns TRUE for the first failure of its cause since everything was removed. */
static gboolean
is_new_cause (MusterCheckpointDirectory *self, const GError *why)
{
  char *cause = g_strdup_printf ("%s %d", g_quark_to_string (why->domain), why->code);
  g_mutex_lock (&self->lock);
  const gboolean is_new = g_hash_table_add (self->causes, cause);
  g_mutex_unlock (&self->lock);
  return is_new;
}

/* Reports a failure. A checkpoint that is being read is no failure: it is removed later. */
static void
report (MusterCheckpointDirectory *self, const GError *why)
{
  if (!g_error_matches (why, G_IO_ERROR, G_IO_ERROR_BUSY) && is_new_cause (self, why))
    muster_log (G_LOG_LEVEL_WARNING, "retention", "MESSAGE",
                "can't remove an old checkpoint: %s; later saves try again", why->message);
}

static GPtrArray *
take_pending (MusterCheckpointDirectory *self, const GPtrArray *leaving)
{
  g_mutex_lock (&self->lock);
  GPtrArray *pending = g_steal_pointer (&self->pending_deletes);
  self->pending_deletes = g_ptr_array_new_with_free_func (g_free);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < leaving->len; i++)
    g_ptr_array_add (pending, g_strdup (leaving->pdata[i]));
  return pending;
}

static void
put_back (MusterCheckpointDirectory *self, GPtrArray *remaining)
{
  g_mutex_lock (&self->lock);
  if (remaining->len == 0)
    g_hash_table_remove_all (self->causes);
  g_ptr_array_extend_and_steal (self->pending_deletes, remaining);
  g_mutex_unlock (&self->lock);
}

guint
muster_retention_remove (MusterCheckpointDirectory *self, MusterStorage *storage,
                         const GPtrArray *leaving, const char *just_saved)
{
  g_autoptr (GPtrArray) pending = take_pending (self, leaving);
  g_autoptr (GPtrArray) failed = g_ptr_array_new_with_free_func (g_free);
  GPtrArray *remaining = g_ptr_array_new_with_free_func (g_free);
  guint n_removed = 0;
  for (guint i = 0; i < pending->len; i++) {
    const char *prefix = pending->pdata[i];
    g_autoptr (GError) why = NULL;
    if (g_strcmp0 (prefix, just_saved) == 0)
      continue;
    if (failed->len >= MOST_FAILURES) {
      g_ptr_array_add (remaining, g_strdup (prefix));
    } else if (muster_remove_checkpoint (storage, prefix, &why)) {
      n_removed++;
    } else {
      report (self, why);
      g_ptr_array_add (failed, g_strdup (prefix));
    }
  }
  g_ptr_array_extend_and_steal (remaining, g_steal_pointer (&failed));
  put_back (self, remaining);
  return n_removed;
}
