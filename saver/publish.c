// SPDX-License-Identifier: Apache-2.0
#include "bundle/checkpoint_state.h"
#include "graph/graph_nodes.h"
#include "saver/saver_private.h"

/* The files "TEMPORARY.*", as names in its directory. */
static char **
list_written (MusterSaver *self, const char *temporary, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (temporary);
  g_autofree char *name = g_path_get_basename (temporary);
  g_autofree char *start = g_strconcat (name, ".", NULL);
  g_auto (GStrv) all = muster_storage_list (self->storage, directory, error);
  g_autoptr (GStrvBuilder) written = g_strv_builder_new ();

  if (!all)
    return NULL;
  for (char **file = all; *file; file++)
    if (g_str_has_prefix (*file, start))
      g_strv_builder_add (written, *file);

  return g_strv_builder_end (written);
}

static const char *
device_that_wrote (MusterSaver *self)
{
  g_autofree char *name = NULL;

  muster_graph_split_input (self->info.save_tensor, &name);
  const Tensorflow__NodeDef *node =
      muster_graph_find_node (muster_meta_graph_graph (self->meta_graph), name);

  return node && node->device && *node->device ? node->device : "its default device";
}

static gboolean
refuse_unseen (MusterSaver *self, const char *temporary, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (temporary);

  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
               "The master saved, on %s, and host '%s' sees nothing of it in '%s': the directory "
               "isn't shared between them. Give one that both see",
               device_that_wrote (self), g_get_host_name (), directory);

  return FALSE;
}

static gboolean
has_index (MusterSaver *self, const char *temporary, char **written, GError **error)
{
  for (char **file = written; *file; file++)
    if (g_str_has_suffix (*file, ".index"))
      return TRUE;

  return refuse_unseen (self, temporary, error);
}

/* Makes durable what another process wrote: TensorFlow doesn't. */
static gboolean
sync_written (MusterSaver *self, const char *directory, char **written, GError **error)
{
  for (char **file = written; *file; file++) {
    g_autofree char *path = g_build_filename (directory, *file, NULL);
    if (!muster_storage_sync_directory (self->storage, path, error))
      return FALSE;
  }

  return TRUE;
}

/* Renames those files whose name ends (or doesn't) in ".index". */
static gboolean
rename_written (MusterSaver *self, const char *temporary, const char *prefix, char **written,
                gboolean index, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (temporary);
  g_autofree char *name = g_path_get_basename (temporary);

  for (char **file = written; *file; file++) {
    g_autofree char *from = g_build_filename (directory, *file, NULL);
    g_autofree char *to = g_strconcat (prefix, *file + strlen (name), NULL);
    if (g_str_has_suffix (*file, ".index") == index &&
        !muster_storage_rename (self->storage, from, to, error))
      return FALSE;
  }

  return TRUE;
}

/* A checkpoint of that name from before goes first: its index must not stand beside new data. */
static gboolean
make_room (MusterSaver *self, const char *prefix, GError **error)
{
  if (!muster_checkpoint_exists (self->storage, prefix))
    return TRUE;

  return muster_remove_checkpoint (self->storage, prefix, error);
}

static gboolean
write_meta_graph (MusterSaver *self, const char *prefix, GError **error)
{
  g_autofree char *path = g_strconcat (prefix, ".meta", NULL);
  gsize size;
  const void *data = g_bytes_get_data (muster_meta_graph_bytes (self->meta_graph), &size);

  return !self->with_meta_graph || muster_storage_publish (self->storage, path, data, size, error);
}

gboolean
muster_saver_publish (MusterSaver *self, const char *temporary, const char *prefix, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (temporary);
  g_auto (GStrv) written = list_written (self, temporary, error);

  return written && has_index (self, temporary, written, error) &&
         sync_written (self, directory, written, error) && make_room (self, prefix, error) &&
         rename_written (self, temporary, prefix, written, FALSE, error) &&
         muster_storage_sync_directory (self->storage, directory, error) &&
         rename_written (self, temporary, prefix, written, TRUE, error) &&
         muster_storage_sync_directory (self->storage, directory, error) &&
         write_meta_graph (self, prefix, error);
}

void
muster_saver_discard_quietly (MusterSaver *self, const char *temporary)
{
  g_autofree char *directory = g_path_get_dirname (temporary);
  g_auto (GStrv) written = list_written (self, temporary, NULL);

  for (char **file = written; file && *file; file++) {
    g_autofree char *path = g_build_filename (directory, *file, NULL);
    (void)muster_storage_remove (self->storage, path, NULL); /* the save's own error counts */
  }
}
