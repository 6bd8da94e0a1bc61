// SPDX-License-Identifier: Apache-2.0
#include "base/log_private.h"
#include "checkpoint/stores/default_storage.h"
#include "graph/meta_graph/meta_graph_io.h"
#include "train/hooks/hooks_private.h"

void
muster_hook_print_graph (MusterScaffold *scaffold, const char *directory)
{
  g_autofree char *path = g_build_filename (directory, "graph.pbtxt", NULL);
  g_autoptr (GError) failure = NULL;
  g_autoptr (GString) text = muster_graph_print (muster_scaffold_graph (scaffold), &failure);

  if (text == NULL ||
      !muster_storage_make_directory (muster_default_storage (), directory, &failure) ||
      !muster_storage_publish (muster_default_storage (), path, text->str, text->len, &failure))
    muster_log (G_LOG_LEVEL_INFO, "summary", "MESSAGE", "can't write graph.pbtxt: %s",
                failure->message);
}

gboolean
muster_hook_log_graphs (MusterScaffold *scaffold, MusterEventWriter *writer, gint64 step,
                        GError **error)
{
  return writer == NULL ||
         (muster_event_writer_add_graph (
              writer, muster_graph_bytes (muster_scaffold_graph (scaffold)), error) &&
          muster_event_writer_add_meta_graph (
              writer, muster_meta_graph_bytes (muster_scaffold_meta_graph (scaffold)), step,
              error));
}
