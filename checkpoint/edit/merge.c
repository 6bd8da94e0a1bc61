// SPDX-License-Identifier: Apache-2.0
/* Averages checkpoints of one model. It first checks that names, types, shapes and slices agree,
 * then averages entry by entry in blocks of doubles, rounded once at the end. */
#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/edit/average_private.h"
#include "checkpoint/edit/stored_private.h"

#include <string.h>

/* Number of real numbers that are averaged at a time. */
#define BLOCK ((gsize)32 * 1024)

typedef struct {
  MusterEditWork work;
  MusterEditTarget target;
  const char *const *from;
  guint n;
  MusterStoredReader *readers; /* (owned) (array length=n) */
  MusterStoredWriter writer;
  double *sums;    /* (owned) BLOCK of them */
  double *numbers; /* (owned) as many, of any type */
} Merge;

static void
merge_clear (Merge *self)
{
  for (guint i = 0; self->readers != NULL && i < self->n; i++)
    muster_stored_reader_clear (&self->readers[i]);
  g_clear_pointer (&self->readers, g_free);
  muster_stored_writer_clear (&self->writer);
  muster_edit_target_clear (&self->target);
  g_clear_pointer (&self->sums, g_free);
  g_clear_pointer (&self->numbers, g_free);
  muster_edit_work_clear (&self->work);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Merge, merge_clear)

/* --- are they of one model? --- */

static gboolean
lacks (const char *name, const char *without, const char *with, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' has no tensor '%s', which '%s' has", without, name, with);
}

static gboolean
differs (const Merge *self, guint i, const char *name, const char *what, const char *a,
         const char *b, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "the tensor '%s' has the %s %s in '%s', but %s in '%s'", name, what, a,
                      self->from[0], b, self->from[i]);
}

static gboolean
have_same_slices (Merge *self, guint i, const MusterIndexEntry *a, const MusterIndexEntry *b)
{
  if (a->entry.is_sliced != b->entry.is_sliced || a->n_slices != b->n_slices)
    return FALSE;
  for (gsize k = 0; k < a->n_slices; k++) {
    const MusterIndexEntry *part = muster_stored_reader_part (&self->readers[0], a, k);
    if (muster_bundle_index_find (self->readers[i].index, part->key, part->key_size) == NULL)
      return FALSE;
  }
  return TRUE;
}

/* Compares the entry of checkpoint i with the first one's. */
static gboolean
check_pair (Merge *self, guint i, const MusterIndexEntry *a, const MusterIndexEntry *b,
            GError **error)
{
  const MusterBundleEntry *x = &a->entry, *y = &b->entry;
  if (x->dtype != y->dtype)
    return differs (self, i, x->name, "type", muster_dtype_name (x->dtype),
                    muster_dtype_name (y->dtype), error);
  if (x->n_dims != y->n_dims ||
      memcmp (x->dims, y->dims, (gsize)x->n_dims * sizeof *x->dims) != 0) {
    g_autofree char *one = muster_shape_to_string (x->n_dims, x->dims);
    g_autofree char *other = muster_shape_to_string (y->n_dims, y->dims);
    return differs (self, i, x->name, "shape", one, other, error);
  }
  if (have_same_slices (self, i, a, b))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "the tensor '%s' is partitioned differently in '%s' than in '%s'", x->name,
                      self->from[0], self->from[i]);
}

/* Compares all entries; both indexes are in the order of names. */
static gboolean
check_alike (Merge *self, guint i, GError **error)
{
  const MusterBundleIndex *first = self->readers[0].index, *other = self->readers[i].index;
  for (guint a = first->n_parts, b = other->n_parts;
       a < first->entries->len || b < other->entries->len; a++, b++) {
    const MusterIndexEntry *x =
        a < first->entries->len ? &g_array_index (first->entries, MusterIndexEntry, a) : NULL;
    const MusterIndexEntry *y =
        b < other->entries->len ? &g_array_index (other->entries, MusterIndexEntry, b) : NULL;
    const int order = x == NULL ? 1 : y == NULL ? -1 : strcmp (x->entry.name, y->entry.name);
    if (order < 0)
      return lacks (x->entry.name, self->from[i], self->from[0], error);
    if (order > 0)
      return lacks (y->entry.name, self->from[0], self->from[i], error);
    if (!check_pair (self, i, x, y, error))
      return FALSE;
  }
  return TRUE;
}

/* --- averages --- */

/* Begins the entry with that key in each checkpoint. */
static gboolean
begin_all (Merge *self, const MusterIndexEntry *like, GError **error)
{
  for (guint i = 0; i < self->n; i++) {
    MusterStoredReader *reader = &self->readers[i];
    const MusterIndexEntry *entry =
        muster_bundle_index_find (reader->index, like->key, like->key_size);
    if (!muster_stored_reader_begin (reader, entry, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
add_next (Merge *self, MusterDType dtype, gsize n, GError **error)
{
  memset (self->sums, 0, n * sizeof *self->sums);
  for (guint i = 0; i < self->n; i++) {
    const guint8 *bytes;
    gsize n_bytes;
    if (!muster_stored_reader_next (&self->readers[i], n * muster_average_size (dtype), &bytes,
                                    &n_bytes, error))
      return FALSE;
    muster_average_add (dtype, bytes, n, self->sums);
  }
  return TRUE;
}

/* Averages one entry. The indexes were checked, so each entry has the size of its shape. Each
 * reader checks its checksum when it is asked for more. */
static gboolean
average (Merge *self, const MusterIndexEntry *like, GError **error)
{
  const MusterDType dtype = like->entry.dtype;
  guint32 crc = 0;
  gsize left = (gsize)like->entry.size / muster_average_size (dtype);
  if (!begin_all (self, like, error) || !muster_stored_writer_begin (&self->writer, like, error))
    return FALSE;
  for (; left > 0; left -= MIN (left, BLOCK)) {
    const gsize n = MIN (left, BLOCK), size = n * muster_average_size (dtype);
    if (!add_next (self, dtype, n, error))
      return FALSE;
    muster_average_round (dtype, self->sums, n, self->n, self->numbers);
    crc = muster_crc32c_extend (crc, (const guint8 *)self->numbers, size);
    if (!muster_stored_writer_append (&self->writer, self->numbers, size, error))
      return FALSE;
  }
  muster_stored_writer_end (&self->writer, muster_crc32c_mask (crc));
  return add_next (self, dtype, 0, error);
}

/* Writes a tensor, or a slice of one. */
static gboolean
merge_stored (Merge *self, const MusterIndexEntry *entry, GError **error)
{
  return muster_average_has (entry->entry.dtype)
             ? average (self, entry, error)
             : muster_stored_copy (&self->readers[self->n - 1], entry, &self->writer, error);
}

static gboolean
merge_whole (Merge *self, const MusterIndexEntry *whole, GError **error)
{
  MusterStoredReader *last = &self->readers[self->n - 1];
  if (!whole->entry.is_sliced)
    return merge_stored (self, whole, error);
  for (gsize i = 0; i < whole->n_slices; i++)
    if (!merge_stored (self, muster_stored_reader_part (last, whole, i), error))
      return FALSE;
  return muster_stored_writer_begin (&self->writer, whole, error);
}

static gboolean
open_all (Merge *self, GError **error)
{
  for (guint i = 0; i < self->n; i++)
    if (!muster_stored_reader_open (&self->readers[i], &self->work, self->from[i], error) ||
        (i > 0 && !check_alike (self, i, error)))
      return FALSE;
  return TRUE;
}

static void
measure (Merge *self, gboolean reads_back)
{
  MusterStoredReader *last = &self->readers[self->n - 1];
  for (guint i = last->index->n_parts; i < last->index->entries->len; i++) {
    const MusterIndexEntry *whole = &g_array_index (last->index->entries, MusterIndexEntry, i);
    const guint64 n = muster_average_has (whole->entry.dtype) ? self->n : 1;
    self->work.total += muster_stored_size (last, whole) * (n + (reads_back ? 1 : 0));
  }
}

/* Identifies the work in its hidden name. */
static guint32
id_of (const Merge *self)
{
  guint32 id = muster_crc32c_extend (0, (const guint8 *)"merge", 6);
  for (guint i = 0; i < self->n; i++)
    id = muster_crc32c_extend (id, (const guint8 *)self->from[i], strlen (self->from[i]) + 1);
  return id;
}

static gboolean
merge (Merge *self, const char *to, const MusterEditOptions *options, GError **error)
{
  if (!open_all (self, error))
    return FALSE;
  const MusterBundleIndex *last = self->readers[self->n - 1].index;
  measure (self, muster_edit_reads_back (&self->work, options, to));
  if (!muster_edit_target_begin (&self->target, &self->work, to, id_of (self),
                                 options != NULL && options->replaces, FALSE, error) ||
      !muster_stored_writer_open (&self->writer, &self->work, self->target.temporary, error))
    return FALSE;
  for (guint i = last->n_parts; i < last->entries->len; i++)
    if (!merge_whole (self, &g_array_index (last->entries, MusterIndexEntry, i), error))
      return FALSE;
  for (guint i = 0; i < self->n; i++)
    muster_stored_reader_release (&self->readers[i]);
  return muster_stored_writer_finish (&self->writer, error) &&
         muster_edit_target_finish (&self->target, options, error);
}

gboolean
muster_checkpoint_merge (const char *const *from, const char *to, const MusterEditOptions *options,
                         MusterEditReport *report, MusterBundleProgress progress,
                         gpointer user_data, gint64 deadline_us, GCancellable *cancellable,
                         GError **error)
{
  muster_require (error, FALSE, from, to);
  g_auto (Merge) self = {.from = from, .n = g_strv_length ((char **)from)};
  MusterStorage *storage = muster_edit_storage (options);
  if (self.n == 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "no checkpoints to merge");
  for (guint i = 0; i < self.n; i++)
    if (!muster_storage_check_path (storage, "checkpoint", from[i], error))
      return FALSE;
  if (!muster_storage_check_path (storage, "merged checkpoint", to, error) ||
      !muster_edit_work_begin (&self.work, options, progress, user_data, deadline_us, cancellable,
                               error))
    return FALSE;
  self.readers = g_new0 (MusterStoredReader, self.n);
  self.sums = g_new (double, BLOCK);
  self.numbers = g_new (double, BLOCK);
  if (merge (&self, to, options, error)) {
    const MusterEditReport made = {.n_tensors =
                                       self.writer.index->entries->len - self.writer.index->n_parts,
                                   .bytes = self.writer.bytes};
    muster_edit_report (&self.work, &made, report);
    return TRUE;
  }
  g_prefix_error (error, "Merging into '%s': ", to);
  return FALSE;
}
