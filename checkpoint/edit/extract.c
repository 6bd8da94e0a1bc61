// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/edit/selection_private.h"

typedef struct {
  MusterEditWork work;
  MusterEditTarget target;
  MusterStoredReader reader;
  MusterStoredWriter writer;
  GArray *selected; /* (owned) (nullable) */
} Extract;

static void
extract_clear (Extract *self)
{
  muster_stored_writer_clear (&self->writer);
  g_clear_pointer (&self->selected, g_array_unref);
  muster_stored_reader_clear (&self->reader);
  muster_edit_target_clear (&self->target);
  muster_edit_work_clear (&self->work);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Extract, extract_clear)

static const MusterIndexEntry *
selected_at (const Extract *self, guint i)
{
  return g_array_index (self->selected, MusterSelected, i).entry;
}

static gboolean
extract (Extract *self, const char *from, const char *const *patterns, const char *to,
         const MusterEditOptions *options, GError **error)
{
  if (!muster_stored_reader_open (&self->reader, &self->work, from, error))
    return FALSE;
  self->selected = muster_selection_new (&self->reader, from, patterns, error);
  if (self->selected == NULL)
    return FALSE;
  for (guint i = 0; i < self->selected->len; i++)
    self->work.total += muster_stored_size (&self->reader, selected_at (self, i));
  self->work.total *= muster_edit_reads_back (&self->work, options, to) ? 2 : 1;
  if (!muster_edit_target_begin (&self->target, &self->work, to,
                                 muster_selection_id (from, patterns),
                                 options != NULL && options->replaces, FALSE, error) ||
      !muster_stored_writer_open (&self->writer, &self->work, self->target.temporary, error))
    return FALSE;
  for (guint i = 0; i < self->selected->len; i++)
    if (!muster_stored_copy_whole (&self->reader, selected_at (self, i), &self->writer, error))
      return FALSE;
  muster_stored_reader_release (&self->reader);
  return muster_stored_writer_finish (&self->writer, error) &&
         muster_edit_target_finish (&self->target, options, error);
}

gboolean
muster_checkpoint_extract (const char *from, const char *const *patterns, const char *to,
                           const MusterEditOptions *options, MusterEditReport *report,
                           MusterBundleProgress progress, gpointer user_data, gint64 deadline_us,
                           GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, from, patterns, to);
  g_auto (Extract) self = {0};
  MusterStorage *storage = muster_edit_storage (options);
  if (!muster_storage_check_path (storage, "checkpoint", from, error) ||
      !muster_storage_check_path (storage, "extracted checkpoint", to, error) ||
      !muster_edit_work_begin (&self.work, options, progress, user_data, deadline_us, cancellable,
                               error))
    return FALSE;
  if (extract (&self, from, patterns, to, options, error)) {
    const MusterEditReport made = {.n_tensors = self.selected->len, .bytes = self.writer.bytes};
    muster_edit_report (&self.work, &made, report);
    return TRUE;
  }
  g_prefix_error (error, "Extracting from the checkpoint '%s': ", from);
  return FALSE;
}
