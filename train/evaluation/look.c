// SPDX-License-Identifier: Apache-2.0
/* What a directory has to evaluate: the checkpoints that its state file lists, but those that the
 * side file says are marked, are being removed or damaged. */
#include "train/evaluation/evaluation_private.h"

#include "base/error.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/store/storage_failure_private.h"

#include <string.h>

void
muster_look_clear (MusterLook *self)
{
  g_free (self->newest);
  g_free (self->next);
  g_clear_pointer (&self->values, g_array_unref);
  g_free (self->chief);
  g_free (self->run);
}

gboolean
muster_look_time (MusterStorage *storage, const char *prefix, gint64 *mtime_us, GError **error)
{
  g_autofree char *index = muster_bundle_index_path (prefix);
  g_autoptr (GError) why = NULL;
  MusterStorageInfo info = {0};
  const gboolean is_there = muster_storage_stat (storage, index, &info, &why);
  *mtime_us = is_there ? info.mtime_us : 0;
  if (is_there || muster_storage_failure_is_absent (why))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

char *
muster_look_version (const char *prefix, gint64 mtime_us)
{
  return g_strdup_printf ("%s %" G_GINT64_FORMAT, prefix, mtime_us);
}

/* The values of all names: (transfer full); NULL if it isn't marked with each. */
static GArray *
marks_of (const MusterSideCheckpoint *one, const char *const *names)
{
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (double));
  for (; one != NULL && *names != NULL; names++) {
    const MusterSideMetric *metric = muster_side_checkpoint_find_metric (one, *names);
    if (metric == NULL)
      return NULL;
    g_array_append_val (values, metric->value);
  }
  return one != NULL ? g_steal_pointer (&values) : NULL;
}

/* Also of one that isn't there any more. A store that doesn't answer gives nothing up. */
static gboolean
look_if_given_up (MusterStorage *storage, const char *prefix, GHashTable *given_up, gboolean *is,
                  GError **error)
{
  gint64 mtime_us;
  if (!muster_look_time (storage, prefix, &mtime_us, error))
    return FALSE;
  g_autofree char *version = muster_look_version (prefix, mtime_us);
  *is = mtime_us == 0 || g_hash_table_contains (given_up, version);
  return TRUE;
}

/* One of the list. */
static gboolean
consider (MusterLook *self, MusterStorage *storage, const char *prefix,
          const MusterCheckpointRecord *record, const char *const *names, GHashTable *given_up,
          GError **error)
{
  gboolean is_given_up;
  const MusterSideCheckpoint *one =
      record != NULL ? muster_checkpoint_record_find (record, prefix) : NULL;
  if (one != NULL && (one->pending_delete || one->bad != NULL))
    return TRUE;
  g_autoptr (GArray) values = marks_of (one, names);
  if (values != NULL && self->newest != NULL)
    return TRUE;
  if (!look_if_given_up (storage, prefix, given_up, &is_given_up, error))
    return FALSE;
  if (is_given_up)
    return TRUE;
  if (values == NULL)
    self->next = g_strdup (prefix);
  if (self->newest == NULL) {
    self->newest = g_strdup (prefix);
    self->values = g_steal_pointer (&values);
  }
  return TRUE;
}

/* What is damaged there counts as nothing: it is replaced with the first mark. */
static gboolean
read_record (MusterStorage *storage, const char *directory, MusterCheckpointRecord **record,
             GError **error)
{
  g_autoptr (GError) failure = NULL;
  *record = muster_checkpoint_record_read (storage, directory, &failure);
  if (*record != NULL || muster_error_is (failure, MUSTER_ERROR_DATA_LOSS))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* The side file is read first: where it says that the job is over, the list is complete. */
gboolean
muster_look (MusterLook *self, MusterStorage *storage, const char *directory,
             const char *const *names, GHashTable *given_up, GError **error)
{
  g_autoptr (MusterCheckpointRecord) record = NULL;
  g_autoptr (GError) failure = NULL;
  if (!read_record (storage, directory, &record, error))
    return FALSE;
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (storage, directory, &failure);
  if (failure != NULL) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  for (guint i = state != NULL ? state->all->len + 1 : 0; i-- > 0 && self->next == NULL;) {
    g_autofree char *prefix = muster_checkpoint_locate (
        storage, directory, i == state->all->len ? state->latest : state->all->pdata[i]);
    if (!consider (self, storage, prefix, record, names, given_up, error))
      return FALSE;
  }
  self->is_over = record != NULL && record->over;
  self->chief = record != NULL ? g_strdup (record->chief) : NULL;
  self->run = record != NULL ? g_strdup (record->run) : NULL;
  return TRUE;
}
