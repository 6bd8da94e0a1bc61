// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_publish.h"
#include "checkpoint/store/directory_lock.h"
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

gboolean
muster_saver_sync_written (MusterSaver *self, MusterSession *session, const char *temporary,
                           GError **error)
{
  g_autofree char *directory = g_path_get_dirname (temporary);
  g_auto (GStrv) written = list_written (self, temporary, error);

  if (!written || !has_index (self, temporary, written, error))
    return FALSE;
  for (char **file = written; *file && !muster_session_is_here (session); file++) {
    g_autofree char *path = g_build_filename (directory, *file, NULL);
    if (!muster_storage_sync_directory (self->storage, path, error))
      return FALSE;
  }

  return TRUE;
}

gboolean
muster_saver_write_meta_graph (MusterSaver *self, const char *prefix, GError **error)
{
  g_autofree char *path = g_strconcat (prefix, ".meta", NULL);
  gsize size;
  const void *data = g_bytes_get_data (muster_meta_graph_bytes (self->meta_graph), &size);

  return !self->with_meta_graph || muster_storage_publish (self->storage, path, data, size, error);
}

gboolean
muster_saver_publish (MusterSaver *self, MusterSession *session, const char *temporary,
                      const char *prefix, gboolean *published, GError **error)
{
  if (!*published)
    *published = muster_session_is_here (session)
                     ? muster_bundle_publish_own (self->storage, temporary, prefix, error)
                     : muster_bundle_publish (self->storage, temporary, prefix, error);

  return *published && muster_saver_write_meta_graph (self, prefix, error);
}

/* A sharded save's parts lie in a directory of their own, TEMPORARY_temp_UNIQUE. */
static void
remove_quietly (MusterSaver *self, const char *path, const char *rest)
{
  g_auto (GStrv) parts =
      strstr (rest, "_temp_") ? muster_storage_list (self->storage, path, NULL) : NULL;

  for (char **part = parts; part && *part; part++) {
    g_autofree char *inside = g_build_filename (path, *part, NULL);
    (void)muster_storage_remove (self->storage, inside, NULL);
  }
  (void)muster_storage_remove (self->storage, path, NULL);
}

void
muster_saver_discard_quietly (MusterSaver *self, const char *temporary)
{
  g_autofree char *directory = g_path_get_dirname (temporary);
  g_autofree char *name = g_path_get_basename (temporary);
  g_auto (GStrv) all = muster_storage_list (self->storage, directory, NULL);

  for (char **file = all; file && *file; file++) {
    const char *rest = g_str_has_prefix (*file, name) ? *file + strlen (name) : "";
    g_autofree char *path = g_build_filename (directory, *file, NULL);
    if (*rest == '.' || g_str_has_prefix (rest, "_temp_"))
      remove_quietly (self, path, rest);
  }
}
