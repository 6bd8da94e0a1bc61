// SPDX-License-Identifier: Apache-2.0
/* What the tasks of a job's checkpoint do on a node: list names, save, stage, load, look whether
 * one exists. */
#include "checkpoint/format/bundle_reader.h"
#include "jobs/job_checkpoint_tasks_private.h"

/* --- errands --- */

static MusterJobCheckpointWork *
checkpoint_work_copy (const MusterJobCheckpointWork *work)
{
  MusterJobCheckpointWork *self = g_memdup2 (work, sizeof *work);
  g_object_ref (self->checkpoint);
  g_object_ref (self->storage);
  self->path = g_strdup (work->path);
  self->names = g_strdupv (work->names);
  self->mark = g_strdup (work->mark);
  return self;
}

static void
checkpoint_work_free (gpointer data)
{
  MusterJobCheckpointWork *self = data;
  g_object_unref (self->checkpoint);
  g_object_unref (self->storage);
  g_free (self->path);
  g_strfreev (self->names);
  g_free (self->mark);
  g_free (self);
}

static gboolean
start_timer (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
             GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  MusterJobCheckpointWork *self = data;
  self->started_us = muster_clock_now_us (self->clock);
  return TRUE;
}

static gboolean
set_span (MusterJobCheckpointWork *self, MusterJobOutput *span, GError **error)
{
  g_autoptr (MusterTensor) value =
      muster_tensor_new_int64 (muster_clock_now_us (self->clock) - self->started_us);
  return muster_job_output_set (span, &value, 1, error);
}

/* The output of a timer's work is the duration. */
static gboolean
stop_timer (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
            GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error)
{
  MusterJobCheckpointWork *self = data;
  return set_span (self, self->output, error);
}

/* Adds a timer to the task; the node's stats report it from now on. */
static void
add_timer (MusterJobTask *task, const MusterJobCheckpointWork *work)
{
  MusterJobEntry *entry = work->entry;
  MusterJobCheckpointWork *timer = checkpoint_work_copy (work);
  timer->output = muster_job_task_add_output (task, NULL, NULL);
  MusterJobStep init = {.name = entry->name, .func = start_timer, .user_data = timer};
  MusterJobStep exit = {
      .name = entry->name, .func = stop_timer, .user_data = timer, .destroy = checkpoint_work_free};
  g_autoptr (MusterJobSetup) setup = muster_job_setup_new (&init, &exit);
  muster_job_task_add_setup (task, setup, FALSE, NULL);
  g_set_object (&entry->span, timer->output);
  g_free (entry->path);
  entry->path = g_strdup (work->path);
  entry->epoch = work->epoch;
}

MusterJobTask *
muster_job_checkpoint_work_make (const MusterJobCheckpointWork *work, const char *name,
                                 const char *node, MusterJobFunc func, gboolean timed)
{
  MusterJobTask *task = muster_job_task_new (name, node, 1);
  MusterJobStep step = {
      .func = func, .user_data = checkpoint_work_copy (work), .destroy = checkpoint_work_free};
  muster_job_task_set_step (task, &step, NULL);
  if (timed)
    add_timer (task, work);
  return task;
}

MusterJobTask *
muster_job_checkpoint_work_make_with_output (MusterJobCheckpointWork work, const char *name,
                                             const char *node, MusterJobFunc func, gboolean timed,
                                             MusterJobOutput **output)
{
  MusterJobTask *task = muster_job_task_new (name, node, 1);
  work.output = muster_job_task_add_output (task, NULL, NULL);
  MusterJobStep step = {
      .func = func, .user_data = checkpoint_work_copy (&work), .destroy = checkpoint_work_free};
  muster_job_task_set_step (task, &step, NULL);
  if (timed)
    add_timer (task, &work);
  if (output != NULL)
    *output = work.output;
  return task;
}

/* --- what they do --- */

/* The store, for what isn't done by a saver, which takes the limits itself. */
static MusterStorage *
storage_within (const MusterJobCheckpointWork *self, gint64 deadline_us, GCancellable *cancellable)
{
  return muster_storage_bound (self->storage, deadline_us, NULL, cancellable);
}

gboolean
muster_job_checkpoint_work_list (MusterClusterNode *node, gint64 deadline_us,
                                 GCancellable *cancellable, gpointer data, GError **error)
{
  const MusterJobCheckpointWork *self = data;
  g_autoptr (MusterStorage) storage = storage_within (self, deadline_us, cancellable);
  MusterJobEntry *entry = self->entry;
  char *mark = NULL;
  char **names = self->epoch == MUSTER_NO_EPOCH
                     ? muster_job_saver_list_session (node, deadline_us, cancellable, error)
                     : muster_job_saver_list_file (storage, self->path, &mark, error);
  if (names == NULL)
    return FALSE;
  g_strfreev (entry->names);
  entry->names = names;
  g_free (entry->mark);
  entry->mark = mark;
  entry->listed_from = self->epoch;
  return TRUE;
}

/* The cached saver, if it is for these names in this session. */
static MusterJobSaver *
saver_for (MusterJobSaver **kept, MusterClusterNode *node, const char *const *names,
           gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  if (*kept != NULL && muster_job_saver_is_for (*kept, node, names))
    return *kept;
  g_clear_pointer (kept, muster_job_saver_free);
  *kept = muster_job_saver_new (node, names, deadline_us, cancellable, error);
  return *kept;
}

gboolean
muster_job_checkpoint_work_save (MusterClusterNode *node, gint64 deadline_us,
                                 GCancellable *cancellable, gpointer data, GError **error)
{
  const MusterJobCheckpointWork *self = data;
  MusterJobSaver *saver =
      saver_for (&self->entry->saver, node, (const char *const *)self->entry->names, deadline_us,
                 cancellable, error);
  return saver != NULL && muster_job_saver_save (saver, self->storage, self->path, self->mark,
                                                 deadline_us, cancellable, error);
}

gboolean
muster_job_checkpoint_work_stage (MusterClusterNode *node, gint64 deadline_us,
                                  GCancellable *cancellable, gpointer data, GError **error)
{
  const MusterJobCheckpointWork *self = data;
  self->entry->staged_from_us = muster_clock_now_us (self->clock);
  MusterJobSaver *saver =
      saver_for (&self->entry->saver, node, (const char *const *)self->entry->names, deadline_us,
                 cancellable, error);
  return saver != NULL && muster_job_saver_stage (saver, self->storage, self->path, self->mark,
                                                  deadline_us, cancellable, error);
}

gboolean
muster_job_checkpoint_work_load (MusterClusterNode *node, gint64 deadline_us,
                                 GCancellable *cancellable, gpointer data, GError **error)
{
  const MusterJobCheckpointWork *self = data;
  MusterJobSaver *saver =
      saver_for (&self->entry->saver, node, (const char *const *)self->entry->names, deadline_us,
                 cancellable, error);
  return saver != NULL &&
         muster_job_saver_load (saver, self->storage, self->path, deadline_us, cancellable, error);
}

/* Returns those of the names that the checkpoint has. */
static char **
names_in_file (const MusterJobCheckpointWork *self, MusterStorage *storage, GError **error)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, self->path, error);
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  if (reader == NULL)
    return NULL;
  for (char **name = self->names; *name; name++)
    if (muster_bundle_reader_find (reader, *name) != NULL)
      g_strv_builder_add (names, *name);
  return g_strv_builder_end (names);
}

gboolean
muster_job_checkpoint_work_load_some (MusterClusterNode *node, gint64 deadline_us,
                                      GCancellable *cancellable, gpointer data, GError **error)
{
  const MusterJobCheckpointWork *self = data;
  g_autoptr (MusterStorage) storage = storage_within (self, deadline_us, cancellable);
  g_auto (GStrv) names = names_in_file (self, storage, error);
  MusterJobSaver *saver =
      names != NULL ? saver_for (&self->entry->partial_saver, node, (const char *const *)names,
                                 deadline_us, cancellable, error)
                    : NULL;

  if (saver == NULL ||
      !muster_job_saver_load (saver, self->storage, self->path, deadline_us, cancellable, error))
    return FALSE;
  g_autoptr (MusterTensor) loaded = muster_tensor_new_strv ((const char *const *)names);
  return muster_job_output_set (self->output, &loaded, 1, error);
}

gboolean
muster_job_checkpoint_work_exists (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us,
                                   GCancellable *cancellable, gpointer data, GError **error)
{
  const MusterJobCheckpointWork *self = data;
  g_autoptr (MusterStorage) storage = storage_within (self, deadline_us, cancellable);
  g_autofree char *index = g_strconcat (self->path, ".index", NULL);
  g_autoptr (GError) why = NULL;
  MusterStorageInfo info;
  const gboolean is_there = muster_storage_stat (storage, index, &info, &why);

  if (!is_there && muster_error_to_wire (why) != MUSTER_ERROR_NOT_FOUND) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  g_autoptr (MusterTensor) value = muster_tensor_new_bool (is_there);
  return muster_job_output_set (self->output, &value, 1, error);
}
