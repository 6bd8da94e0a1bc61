// SPDX-License-Identifier: Apache-2.0
#include "saver/saver.h"

#include "bundle/bundle_writer.h"
#include "graph/graph_nodes.h"
#include "saver/saver_private.h"

#define DEFAULT_BASE_NAME "model.ckpt"
#define STATE_FILE        "checkpoint"

/* That a checkpoint is durable is told within this time, or not. */
#define TELL_US (5 * MUSTER_SECOND)

G_DEFINE_FINAL_TYPE (MusterSaver, muster_saver, G_TYPE_OBJECT)

static gboolean
check_info (const MusterSaverInfo *info, GError **error)
{
  if (!info) {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                         "The meta graph has no SaverDef: export it with a Saver");
    return FALSE;
  }
  if (info->filename_tensor && *info->filename_tensor && info->save_tensor && *info->save_tensor &&
      info->restore_op && *info->restore_op)
    return TRUE;
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                       "saver_def must specify the filename_tensor_name, save_tensor_name and "
                       "restore_op_name");

  return FALSE;
}

static gboolean
check_base_name (const char *name, GError **error)
{
  if (*name && !strchr (name, '/'))
    return TRUE;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "'%s' can't be the base name of checkpoints: give a name without a '/'", name);

  return FALSE;
}

MusterSaver *
muster_saver_new (MusterMetaGraph *meta_graph, const MusterSaverOptions *options, GError **error)
{
  static const MusterSaverOptions defaults;
  const MusterSaverInfo *info = muster_meta_graph_saver (meta_graph);

  if (!options)
    options = &defaults;
  const char *base_name = options->base_name ? options->base_name : DEFAULT_BASE_NAME;
  if (!check_info (info, error) || !check_base_name (base_name, error))
    return NULL;

  MusterSaver *self = g_object_new (MUSTER_TYPE_SAVER, NULL);
  self->meta_graph = muster_meta_graph_ref (meta_graph);
  self->info = *info;
  self->max_to_keep = MAX (options->max_to_keep ? options->max_to_keep : info->max_to_keep, 0);
  self->base_name = g_strdup (base_name);
  self->with_meta_graph = !options->no_meta_graph;
  self->no_probe = options->no_probe;
  self->storage = g_object_ref (options->storage ? options->storage : muster_local_storage ());
  self->clock = g_object_ref (options->clock ? options->clock : muster_system_clock ());

  return self;
}

char *
muster_saver_path_for_master (MusterSaver *self, const char *path)
{
  return self->storage == muster_local_storage () ? g_canonicalize_filename (path, NULL)
                                                  : g_strdup (path);
}

void
muster_saver_set_lease (MusterSaver *self, MusterLease *lease)
{
  g_mutex_lock (&self->lock);
  g_autoptr (MusterLease) before = self->lease;
  self->lease = lease ? g_object_ref (lease) : NULL;
  g_mutex_unlock (&self->lock);
}

/* Asks the master, by an announcement that says nothing new. */
static gboolean
check_lease (MusterLease *lease, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterAnnouncement nothing = MUSTER_ANNOUNCEMENT_INIT;

  return !lease || muster_lease_announce (lease, &nothing, deadline_us, cancellable, error);
}

/* The checkpoint is there, whether or not the master hears of it; only a lease that is lost
 * counts. */
static gboolean
announce_durable (MusterSaver *self, MusterLease *lease, const char *prefix, gint64 step,
                  gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterAnnouncement durable = MUSTER_ANNOUNCEMENT_INIT;
  g_autoptr (GError) failure = NULL;
  gint64 soon_us = muster_deadline_after (muster_clock_now_us (self->clock), TELL_US);

  if (!lease || step < 0)
    return TRUE;
  durable.durable_step = step;
  durable.durable = (char *)prefix;
  if (muster_lease_announce (lease, &durable, MIN (deadline_us, soon_us), cancellable, &failure) ||
      !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));

  return FALSE;
}

/* Runs the save op with the prefix fed: its tensor depends on the files being there. */
static gboolean
run_save (MusterSaver *self, MusterSession *session, const char *prefix, const MusterSaveHow *how,
          gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autofree char *path = muster_saver_path_for_master (self, prefix);
  g_autoptr (MusterTensor) name = muster_tensor_new_string (path);
  g_autoptr (MusterTensor) written = NULL;
  const char *save_tensor = how->save_tensor ? how->save_tensor : self->info.save_tensor;
  MusterFeed feed = {self->info.filename_tensor, name};
  gboolean is_tensor = strchr (save_tensor, ':') != NULL;
  MusterStep step = {.feeds = &feed,
                     .n_feeds = 1,
                     .fetches = &save_tensor,
                     .n_fetches = is_tensor ? 1 : 0,
                     .targets = &save_tensor,
                     .n_targets = is_tensor ? 0 : 1,
                     .deadline_us = deadline_us};

  return muster_session_run (session, &step, &written, NULL, cancellable, error);
}

/* Beside the checkpoint to be, so that a rename is enough; hidden from those who list checkpoints.
 */
static char *
temporary_for (MusterSaver *self, const char *prefix)
{
  g_autofree char *directory = g_path_get_dirname (prefix);
  g_autofree char *name = g_path_get_basename (prefix);
  g_autofree char *temporary = g_strdup_printf (
      ".saving-%08x-%s", (guint32)(muster_clock_random (self->clock) * G_MAXUINT32), name);

  return g_build_filename (directory, temporary, NULL);
}

/* What the master holds, and what lies outside the graph beside it: two parts of one checkpoint. */
static gboolean
write_files (MusterSaver *self, MusterSession *session, const char *temporary,
             const MusterSaveHow *how, gint64 deadline_us, GCancellable *cancellable,
             GError **error)
{
  if (!how->tensors || how->tensors->len == 0)
    return run_save (self, session, temporary, how, deadline_us, cancellable, error);
  g_autofree char *masters = g_strconcat (temporary, ".master", NULL);
  g_autofree char *chiefs = g_strconcat (temporary, ".chief", NULL);
  const char *parts[] = {masters, chiefs, NULL};

  return run_save (self, session, masters, how, deadline_us, cancellable, error) &&
         muster_named_tensors_write (how->tensors, self->storage, chiefs, error) &&
         muster_bundle_merge (self->storage, parts, temporary, error);
}

static gboolean
write_checkpoint (MusterSaver *self, MusterSession *session, MusterLease *lease, const char *prefix,
                  const MusterSaveHow *how, gint64 deadline_us, GCancellable *cancellable,
                  GError **error)
{
  g_autofree char *temporary = temporary_for (self, prefix);

  if (write_files (self, session, temporary, how, deadline_us, cancellable, error)) {
    if (how->written)
      how->written (how->written_data);
    if (check_lease (lease, deadline_us, cancellable, error) &&
        muster_saver_publish (self, temporary, prefix, error))
      return TRUE;
  }
  muster_saver_discard_quietly (self, temporary);

  return FALSE;
}

static char *
name_for (MusterSaver *self, gint64 step, GError **error)
{
  if (step >= 0)
    return g_strdup_printf ("%s-%" G_GINT64_FORMAT, self->base_name, step);
  if (strcmp (self->base_name, STATE_FILE) != 0)
    return g_strdup (self->base_name);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "'latest_filename' collides with 'save_path': '%s' and '%s'", STATE_FILE,
               self->base_name);

  return NULL;
}

char *
muster_saver_prefix_for (MusterSaver *self, const char *directory, gint64 step, GError **error)
{
  g_autofree char *name = name_for (self, step, error);

  return name ? g_build_filename (directory, name, NULL) : NULL;
}

/* With the turn. */
static gboolean
save_in_turn (MusterSaver *self, MusterSession *session, MusterLease *lease, const char *prefix,
              gint64 step, const MusterSaveHow *how, gint64 deadline_us, GCancellable *cancellable,
              GError **error)
{
  g_autofree char *directory = g_path_get_dirname (prefix);

  if (!check_lease (lease, deadline_us, cancellable, error) ||
      !muster_saver_probe_once (self, session, directory, deadline_us, cancellable, error) ||
      !muster_storage_make_directory (self->storage, directory, error) ||
      !write_checkpoint (self, session, lease, prefix, how, deadline_us, cancellable, error))
    return FALSE;

  return how->unlisted ||
         (muster_saver_record (self, directory, prefix, error) &&
          announce_durable (self, lease, prefix, step, deadline_us, cancellable, error));
}

gboolean
muster_saver_save_how (MusterSaver *self, MusterSession *session, const char *prefix, gint64 step,
                       const MusterSaveHow *how, gint64 deadline_us, GCancellable *cancellable,
                       GError **error)
{
  g_mutex_lock (&self->lock);
  g_autoptr (MusterLease) lease = self->lease ? g_object_ref (self->lease) : NULL;
  g_mutex_unlock (&self->lock);
  g_mutex_lock (&self->saving);
  gboolean saved =
      save_in_turn (self, session, lease, prefix, step, how, deadline_us, cancellable, error);
  g_mutex_unlock (&self->saving);
  if (!saved)
    g_prefix_error (error, "Saving '%s': ", prefix);

  return saved;
}

char *
muster_saver_save (MusterSaver *self, MusterSession *session, const char *directory, gint64 step,
                   gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self) && MUSTER_IS_SESSION (session), NULL);

  g_autofree char *prefix = muster_saver_prefix_for (self, directory, step, error);
  g_autoptr (GPtrArray) tensors =
      prefix ? muster_saveables_copy (self->saveables, NULL, error) : NULL;
  if (!tensors)
    return NULL;
  MusterSaveHow how = {.tensors = tensors};

  return muster_saver_save_how (self, session, prefix, step, &how, deadline_us, cancellable, error)
             ? g_steal_pointer (&prefix)
             : NULL;
}

MusterStorage *
muster_saver_storage (MusterSaver *self)
{
  return self->storage;
}

gboolean
muster_saver_add_saveable (MusterSaver *self, const char *name, MusterSaveable *saveable,
                           MusterSaveableFlags flags, GError **error)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self) && MUSTER_IS_SAVEABLE (saveable), FALSE);

  return muster_saveables_add (self->saveables, name, saveable, flags, error);
}

static void
kept_free (gpointer data)
{
  g_free (((MusterKept *)data)->prefix);
  g_free (data);
}

static void
muster_saver_finalize (GObject *object)
{
  MusterSaver *self = MUSTER_SAVER (object);

  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  g_free (self->base_name);
  g_clear_object (&self->storage);
  g_clear_object (&self->clock);
  g_clear_object (&self->lease);
  g_free (self->life_directory);
  g_free (self->life);
  g_ptr_array_unref (self->kept);
  g_ptr_array_unref (self->doomed);
  muster_saveables_free (self->saveables);
  muster_probe_free (self->probe);
  g_mutex_clear (&self->saving);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_saver_parent_class)->finalize (object);
}

static void
muster_saver_class_init (MusterSaverClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_saver_finalize;
}

static void
muster_saver_init (MusterSaver *self)
{
  self->probe = muster_probe_new ();
  g_mutex_init (&self->saving);
  g_mutex_init (&self->lock);
  self->kept = g_ptr_array_new_with_free_func (kept_free);
  self->doomed = g_ptr_array_new_with_free_func (g_free);
  self->saveables = muster_saveables_new ();
}
