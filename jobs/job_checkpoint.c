// SPDX-License-Identifier: Apache-2.0
/* The checkpoints of a job: one for each node and epoch, of one save together. It makes the
 * groups of tasks that list, save, stage and load. */
#include "jobs/job_checkpoint.h"

#include "base/require_private.h"
#include "checkpoint/stores/default_storage.h"
#include "jobs/job_checkpoint_private.h"
#include "jobs/job_checkpoint_tasks_private.h"

G_DEFINE_FINAL_TYPE (MusterJobCheckpoint, muster_job_checkpoint, G_TYPE_OBJECT)

static gboolean
refuse_checkpoint (GError **error, MusterError code, const char *words)
{
  return muster_fail (error, code, "%s", words);
}

/* --- making one --- */

static void
entry_free (gpointer data)
{
  MusterJobEntry *self = data;
  muster_job_saver_free (self->saver);
  muster_job_saver_free (self->partial_saver);
  g_clear_object (&self->span);
  g_strfreev (self->names);
  g_free (self->mark);
  g_free (self->path);
  g_free (self->node);
  g_free (self->name);
  g_free (self);
}

static MusterJobEntry *
entry_new (const char *node, const char *name)
{
  MusterJobEntry *self = g_new0 (MusterJobEntry, 1);
  self->node = g_strdup (node);
  self->name = g_strdup (name);
  self->listed_from = MUSTER_NO_EPOCH;
  return self;
}

MusterJobCheckpoint *
muster_job_checkpoint_new (const char *directory, MusterStorage *storage,
                           MusterJobMetadata *metadata, MusterClock *clock)
{
  g_return_val_if_fail (directory != NULL, NULL);

  MusterJobCheckpoint *self = g_object_new (MUSTER_TYPE_JOB_CHECKPOINT, NULL);
  self->directory = g_strdup (directory);
  self->storage = g_object_ref (storage != NULL ? storage : muster_default_storage ());
  self->metadata = metadata != NULL ? g_object_ref (metadata) : NULL;
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  return self;
}

MusterJobCheckpoint *
muster_job_checkpoint_new_for_node (const char *directory, const char *name, MusterStorage *storage,
                                    MusterJobMetadata *metadata, MusterClock *clock)
{
  g_return_val_if_fail (directory != NULL && name != NULL, NULL);

  MusterJobCheckpoint *self = muster_job_checkpoint_new (directory, storage, metadata, clock);
  self->own_name = g_strdup (name);
  return self;
}

/* --- names --- */

char *
muster_job_checkpoint_path (const char *directory, const char *path_prefix, const char *node,
                            gint64 epoch)
{
  g_return_val_if_fail (directory != NULL && node != NULL, NULL);

  g_autofree char *name = g_strdup_printf ("%s.%" G_GINT64_FORMAT, node, epoch);

  if (path_prefix != NULL && *path_prefix)
    return g_strconcat (path_prefix, name, NULL);
  if (!*directory)
    return g_steal_pointer (&name);
  return g_strconcat (directory, g_str_has_suffix (directory, "/") ? "" : "/", name, NULL);
}

static MusterJobEntry *
find_entry (MusterJobCheckpoint *self, const char *node)
{
  if (self->own_name != NULL && self->entries != NULL)
    return self->entries->pdata[0];
  for (guint i = 0; self->entries != NULL && node != NULL && i < self->entries->len; i++) {
    MusterJobEntry *entry = self->entries->pdata[i];
    if (g_str_equal (entry->node, node))
      return entry;
  }
  return NULL;
}

char *
muster_job_checkpoint_db_name (MusterJobCheckpoint *self, const char *node, gint64 epoch)
{
  g_return_val_if_fail (self != NULL, NULL);

  const MusterJobEntry *entry = find_entry (self, node);
  const char *name = entry != NULL ? entry->name : self->own_name;
  return name != NULL ? muster_job_checkpoint_path (self->directory, NULL, name, epoch) : NULL;
}

/* The path to load an entry's checkpoint of an epoch from: the call's, or the default. */
static char *
load_path (MusterJobCheckpoint *self, const MusterJobEntry *entry, const MusterJobPath *path,
           gint64 epoch)
{
  const char *prefix =
      path != NULL && path->prefix != NULL && *path->prefix ? path->prefix : self->path_prefix;
  return muster_job_checkpoint_path (self->directory, prefix, entry->name, epoch);
}

static MusterStorage *
load_storage (MusterJobCheckpoint *self, const MusterJobPath *path)
{
  if (path != NULL && path->storage != NULL)
    return path->storage;
  return self->path_storage != NULL ? self->path_storage : self->storage;
}

/* --- which nodes --- */

static gboolean
same_nodes (MusterJobCheckpoint *self, const char *const *nodes)
{
  if (g_strv_length ((char **)nodes) != self->entries->len)
    return FALSE;
  for (guint i = 0; i < self->entries->len; i++)
    if (!g_str_equal (((MusterJobEntry *)self->entries->pdata[i])->node, nodes[i]))
      return FALSE;
  return TRUE;
}

gboolean
muster_job_checkpoint_know_nodes (MusterJobCheckpoint *self, const char *const *nodes,
                                  GError **error)
{
  const char *const own[] = {self->own_name, NULL};
  const gsize n = nodes != NULL ? g_strv_length ((char **)nodes) : 0;
  if (*self->directory &&
      !muster_storage_check_path (self->storage, "checkpoint directory", self->directory, error))
    return FALSE;
  if (self->own_name != NULL && nodes != NULL && n != 1)
    return refuse_checkpoint (error, MUSTER_ERROR_INVALID_ARGUMENT,
                              "CheckpointManager only supports single node.");
  if (self->own_name == NULL && n == 0)
    return refuse_checkpoint (error, MUSTER_ERROR_INVALID_ARGUMENT,
                              "no nodes to checkpoint; set nodes, or add tasks to the init group");
  if (nodes == NULL && self->entries != NULL)
    return TRUE;
  if (nodes == NULL)
    nodes = own;
  if (self->entries != NULL)
    return same_nodes (self, nodes) ||
           refuse_checkpoint (
               error, MUSTER_ERROR_FAILED_PRECONDITION,
               "the checkpoint manager has other nodes, or a different order of nodes");
  self->entries = g_ptr_array_new_with_free_func (entry_free);
  for (gsize i = 0; nodes[i]; i++)
    g_ptr_array_add (self->entries,
                     entry_new (nodes[i], self->own_name != NULL ? self->own_name : nodes[i]));
  return TRUE;
}

gboolean
muster_job_checkpoint_set_params (MusterJobCheckpoint *self, const char *const *nodes,
                                  const MusterJobPath *path, GError **error)
{
  muster_require (error, FALSE, self, nodes);

  const char *const own[] = {self->own_name, NULL};
  const char *const none[] = {NULL};
  if (path != NULL && path->prefix != NULL && *path->prefix) {
    g_free (self->path_prefix);
    self->path_prefix = g_strdup (path->prefix);
  }
  if (path != NULL && path->storage != NULL)
    g_set_object (&self->path_storage, path->storage);
  const MusterJobParams params = {.directory = self->directory,
                                  .storage = self->storage,
                                  .nodes = self->own_name != NULL ? own
                                           : nodes != NULL        ? nodes
                                                                  : none,
                                  .path_prefix = self->path_prefix,
                                  .path_storage = self->path_storage};
  return self->metadata == NULL || muster_job_metadata_set_params (self->metadata, &params, error);
}

/* --- groups --- */

static MusterJobCheckpointWork
checkpoint_work_to_load (MusterJobCheckpoint *self, MusterJobEntry *entry,
                         const MusterJobPath *path, gint64 epoch)
{
  return (MusterJobCheckpointWork){
      .checkpoint = G_OBJECT (self),
      .entry = entry,
      .clock = self->clock,
      .storage = load_storage (self, path),
      .path = epoch == MUSTER_NO_EPOCH ? NULL : load_path (self, entry, path, epoch),
      .epoch = epoch};
}

static void
add_checkpoint_work (MusterJobGroup *group, MusterJobCheckpointWork *work, const char *name,
                     MusterJobFunc func, gboolean timed)
{
  g_autoptr (MusterJobTask) task =
      muster_job_checkpoint_work_make (work, name, work->entry->node, func, timed);

  muster_job_group_add (group, task, NULL);
  g_clear_pointer (&work->path, g_free);
}

static gboolean
check_epoch (gint64 epoch, GError **error)
{
  if (epoch < 0)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "invalid epoch %" G_GINT64_FORMAT, epoch);
  return epoch >= 0;
}

MusterJobGroup *
muster_job_checkpoint_init_group (MusterJobCheckpoint *self, const char *const *nodes,
                                  gint64 resume_epoch, const MusterJobPath *path, GError **error)
{
  muster_require (error, NULL, self);

  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  if ((resume_epoch != MUSTER_NO_EPOCH && !check_epoch (resume_epoch, error)) ||
      !muster_job_checkpoint_know_nodes (self, nodes, error))
    return NULL;
  self->is_inited = TRUE;
  for (guint i = 0; i < self->entries->len; i++) {
    MusterJobEntry *entry = self->entries->pdata[i];
    if (entry->names != NULL && entry->listed_from == resume_epoch && self->own_name == NULL)
      continue;
    MusterJobCheckpointWork work = checkpoint_work_to_load (self, entry, path, resume_epoch);
    add_checkpoint_work (group, &work, "checkpoint_init", muster_job_checkpoint_work_list, FALSE);
  }
  return g_steal_pointer (&group);
}

const char *const *
muster_job_checkpoint_names (MusterJobCheckpoint *self, const char *node, GError **error)
{
  muster_require (error, NULL, self);

  const MusterJobEntry *entry = find_entry (self, node);
  if (entry != NULL && entry->names != NULL)
    return (const char *const *)entry->names;
  if (!self->is_inited)
    refuse_checkpoint (error, MUSTER_ERROR_FAILED_PRECONDITION, "init must be called first.");
  else if (entry == NULL)
    muster_fail (error, MUSTER_ERROR_NOT_FOUND, "'%s' isn't one of the nodes to checkpoint",
                 node != NULL ? node : "");
  else
    refuse_checkpoint (error, MUSTER_ERROR_FAILED_PRECONDITION,
                       "Cannot fetch value for this output.");
  return NULL;
}

/* Every node's names must be known before a save or a load. */
static gboolean
check_listed (MusterJobCheckpoint *self, gint64 epoch, GError **error)
{
  if (!check_epoch (epoch, error))
    return FALSE;
  if (!self->is_inited)
    return refuse_checkpoint (error, MUSTER_ERROR_FAILED_PRECONDITION,
                              "init must be called first.");
  for (guint i = 0; i < self->entries->len; i++) {
    const MusterJobEntry *entry = self->entries->pdata[i];
    if (muster_job_checkpoint_names (self, entry->node, error) == NULL)
      return FALSE;
  }
  return TRUE;
}

/* A unique identifier of a save. */
static char *
new_mark (MusterJobCheckpoint *self)
{
  const guint32 drawn = (guint32)(muster_clock_random (muster_system_clock ()) * G_MAXUINT32);
  return g_strdup_printf ("%" G_GINT64_MODIFIER "x-%08x", muster_clock_wall_us (self->clock),
                          drawn);
}

static MusterJobGroup *
group_that_saves (MusterJobCheckpoint *self, gint64 epoch, MusterJobFunc func, GError **error)
{
  if (!check_listed (self, epoch, error))
    return NULL;
  MusterJobGroup *group = muster_job_group_new ();
  g_autofree char *mark = new_mark (self);
  for (guint i = 0; i < self->entries->len; i++) {
    MusterJobEntry *entry = self->entries->pdata[i];
    MusterJobCheckpointWork work = {
        .checkpoint = G_OBJECT (self),
        .entry = entry,
        .clock = self->clock,
        .storage = self->storage,
        .path = muster_job_checkpoint_path (self->directory, NULL, entry->name, epoch),
        .mark = mark,
        .epoch = epoch};
    add_checkpoint_work (group, &work, "checkpoint_save", func, TRUE);
  }
  return group;
}

MusterJobGroup *
muster_job_checkpoint_save_group (MusterJobCheckpoint *self, gint64 epoch, GError **error)
{
  muster_require (error, NULL, self);
  return group_that_saves (self, epoch, muster_job_checkpoint_work_save, error);
}

MusterJobGroup *
muster_job_checkpoint_stage_group (MusterJobCheckpoint *self, gint64 epoch, GError **error)
{
  return group_that_saves (self, epoch, muster_job_checkpoint_work_stage, error);
}

/* A save counts as long as from its staging until it is durable. */
static gboolean
finish_entry (MusterJobCheckpoint *self, MusterJobEntry *entry, gint64 deadline_us,
              GCancellable *cancellable, GError **error)
{
  if (entry->saver == NULL)
    return TRUE;
  if (!muster_job_saver_finish (entry->saver, deadline_us, cancellable, error)) {
    g_prefix_error (error, "saving: Node '%s': ", entry->node);
    return FALSE;
  }
  g_autoptr (MusterTensor) span =
      muster_tensor_new_int64 (muster_clock_now_us (self->clock) - entry->staged_from_us);
  return muster_job_output_set (entry->span, &span, 1, error);
}

gboolean
muster_job_checkpoint_finish (MusterJobCheckpoint *self, gint64 deadline_us,
                              GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) first = NULL;
  for (guint i = 0; self->entries != NULL && i < self->entries->len; i++)
    (void)finish_entry (self, self->entries->pdata[i], deadline_us, cancellable,
                        first == NULL ? &first : NULL);
  if (first == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&first));
  return FALSE;
}

/* Refuses checkpoints of an epoch from different saves: they never existed at the same time. One
 * run saved them all, and a later one was killed while it saved them again. */
static gboolean
check_marks (MusterJobCheckpoint *self, gint64 epoch, GError **error)
{
  const MusterJobEntry *first = self->entries->pdata[0];
  for (guint i = 1; i < self->entries->len; i++) {
    const MusterJobEntry *entry = self->entries->pdata[i];
    if (first->listed_from != epoch || entry->listed_from != epoch ||
        g_strcmp0 (first->mark, entry->mark) == 0)
      continue;
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                        "The checkpoints of epoch %" G_GINT64_FORMAT
                        " of nodes '%s' and '%s' are of different saves",
                        epoch, first->node, entry->node);
  }
  return TRUE;
}

MusterJobGroup *
muster_job_checkpoint_load_group (MusterJobCheckpoint *self, gint64 epoch,
                                  const MusterJobPath *path, GError **error)
{
  muster_require (error, NULL, self);

  if (!check_listed (self, epoch, error) || !check_marks (self, epoch, error))
    return NULL;
  MusterJobGroup *group = muster_job_group_new ();
  for (guint i = 0; i < self->entries->len; i++) {
    MusterJobCheckpointWork work =
        checkpoint_work_to_load (self, self->entries->pdata[i], path, epoch);
    add_checkpoint_work (group, &work, "checkpoint_load", muster_job_checkpoint_work_load, TRUE);
  }
  return group;
}

/* --- single tasks --- */

static MusterJobEntry *
entry_for_task (MusterJobCheckpoint *self, const char *node, gint64 epoch, GError **error)
{
  if (!check_epoch (epoch, error) ||
      (self->own_name != NULL && !muster_job_checkpoint_know_nodes (self, NULL, error)))
    return NULL;
  MusterJobEntry *entry = find_entry (self, node);
  if (entry == NULL)
    muster_fail (error, MUSTER_ERROR_NOT_FOUND, "'%s' isn't one of the nodes to checkpoint",
                 node != NULL ? node : "");
  return entry;
}

MusterJobTask *
muster_job_checkpoint_partial_load_task (MusterJobCheckpoint *self, const char *node,
                                         const char *const *names, gint64 epoch, const char *on,
                                         MusterJobOutput **loaded, GError **error)
{
  muster_require (error, NULL, self, names);

  MusterJobEntry *entry = entry_for_task (self, node, epoch, error);
  if (entry == NULL)
    return NULL;
  MusterJobCheckpointWork work = checkpoint_work_to_load (self, entry, NULL, epoch);
  g_autofree char *path = work.path;
  work.names = (char **)names;
  return muster_job_checkpoint_work_make_with_output (
      work, "checkpoint_partial_load", on != NULL ? on : entry->node,
      muster_job_checkpoint_work_load_some, TRUE, loaded);
}

MusterJobTask *
muster_job_checkpoint_exists_task (MusterJobCheckpoint *self, const char *node, gint64 epoch,
                                   MusterJobOutput **exists, GError **error)
{
  muster_require (error, NULL, self, exists);

  MusterJobEntry *entry = entry_for_task (self, node, epoch, error);
  if (entry == NULL)
    return NULL;
  MusterJobCheckpointWork work = checkpoint_work_to_load (self, entry, NULL, epoch);
  g_autofree char *path = work.path;
  return muster_job_checkpoint_work_make_with_output (
      work, "check_db_exists", entry->node, muster_job_checkpoint_work_exists, FALSE, exists);
}

static void
muster_job_checkpoint_finalize (GObject *object)
{
  MusterJobCheckpoint *self = MUSTER_JOB_CHECKPOINT (object);
  g_clear_pointer (&self->entries, g_ptr_array_unref);
  g_clear_object (&self->storage);
  g_clear_object (&self->metadata);
  g_clear_object (&self->clock);
  g_clear_object (&self->path_storage);
  g_free (self->path_prefix);
  g_free (self->own_name);
  g_free (self->directory);
  G_OBJECT_CLASS (muster_job_checkpoint_parent_class)->finalize (object);
}

static void
muster_job_checkpoint_init (MusterJobCheckpoint *self G_GNUC_UNUSED)
{
}

static void
muster_job_checkpoint_class_init (MusterJobCheckpointClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_job_checkpoint_finalize;
}
