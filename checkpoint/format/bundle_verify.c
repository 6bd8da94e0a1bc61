// SPDX-License-Identifier: Apache-2.0
/* Whether every bit of a checkpoint's files is as it was written. A byte is a tensor's, under its
 * checksum, or lies in a gap, and then it is zero: programs that align tensors fill up with zeros,
 * behind the last one too. The index is sound where it was opened without a flaw. */
#include "base/error.h"
#include "base/require.h"
#include "checkpoint/format/bundle_pieces.h"
#include "checkpoint/format/bundle_reader_private.h"

static gboolean
check_index (MusterBundleReader *self, GError **error)
{
  if (self->index->flaw == NULL)
    return TRUE;
  g_autofree char *path = muster_bundle_index_path (self->prefix);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS,
               "The checkpoint index '%s' is damaged: %s", path, self->index->flaw);
  return FALSE;
}

/* The slices of a sliced tensor are entries of their own: here it is asked whether they are all. */
static gboolean
check_slices (MusterBundleReader *self, const MusterIndexEntry *entry, GError **error)
{
  MusterExtent wanted[MUSTER_MAX_DIMS];
  muster_index_entry_box (entry, wanted);
  g_autoptr (GArray) pieces =
      muster_bundle_find_pieces (self->index, self->data, entry, wanted, error);
  return pieces != NULL;
}

static GArray *
entries_as_spans (MusterBundleReader *self, GError **error)
{
  const GArray *entries = self->index->entries;
  g_autoptr (GArray) spans =
      g_array_sized_new (FALSE, FALSE, sizeof (MusterDataSpan), entries->len);
  for (guint i = 0; i < entries->len; i++) {
    const MusterIndexEntry *entry = &g_array_index (entries, MusterIndexEntry, i);
    if (entry->entry.is_sliced) {
      if (!check_slices (self, entry, error))
        return NULL;
      continue;
    }
    if (!muster_bundle_data_check_place (self->data, entry, error))
      return NULL;
    const MusterDataSpan span = muster_data_span (entry, NULL);
    g_array_append_val (spans, span);
  }
  g_array_sort (spans, muster_data_span_compare);
  return g_steal_pointer (&spans);
}

/* Adds what lies behind one span and before the next, or the file's end. */
static gboolean
add_gap (MusterBundleReader *self, GArray *gaps, gint32 shard, guint64 start,
         const MusterDataSpan *next, GError **error)
{
  guint64 end;
  if (next != NULL && next->shard == shard) {
    end = next->offset;
  } else {
    g_autoptr (MusterDataFile) file = muster_bundle_data_open (self->data, shard, error);
    if (file == NULL)
      return FALSE;
    end = file->size;
  }
  if (end > start) {
    const MusterDataSpan gap = {.shard = shard, .offset = start, .size = end - start};
    g_array_append_val (gaps, gap);
  }
  return TRUE;
}

/* A data file that no entry points into isn't looked at: nothing in it can matter. */
static gboolean
add_gaps (MusterBundleReader *self, GArray *spans, GError **error)
{
  g_autoptr (GArray) gaps = g_array_new (FALSE, FALSE, sizeof (MusterDataSpan));
  const MusterDataSpan *before = NULL;
  guint64 end = 0;
  for (guint i = 0; i < spans->len; i++) {
    const MusterDataSpan *span = &g_array_index (spans, MusterDataSpan, i);
    const MusterDataSpan *next =
        i + 1 < spans->len ? &g_array_index (spans, MusterDataSpan, i + 1) : NULL;
    if (before == NULL || before->shard != span->shard) {
      end = 0;
      if (!add_gap (self, gaps, span->shard, 0, span, error))
        return FALSE;
    }
    if (span->size > 0 && span->offset < end)
      return muster_bundle_data_damaged (self->data, span->entry, "lies over another tensor",
                                         error);
    end = MAX (end, span->offset + span->size);
    if (!add_gap (self, gaps, span->shard, end, next, error))
      return FALSE;
    before = span;
  }
  g_array_append_vals (spans, gaps->data, gaps->len);
  return TRUE;
}

gboolean
muster_bundle_reader_verify (MusterBundleReader *self, MusterBundleProgress progress,
                             gpointer user_data, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);
  const MusterDataLoad how = {
      .progress = progress, .user_data = user_data, .cancellable = cancellable};
  if (!check_index (self, error))
    return FALSE;
  g_autoptr (GArray) spans = entries_as_spans (self, error);
  return spans != NULL && add_gaps (self, spans, error) &&
         muster_bundle_data_load (self->data, (MusterDataSpan *)spans->data, spans->len, &how,
                                  error);
}
