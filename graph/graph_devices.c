// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_devices_private.h"

#include "base/unpack_private.h"
#include "graph/device_name_private.h"
#include "graph/proto/graph.pb-c.h"

#include <string.h>

static gboolean
is_bound (const char *device)
{
  MusterDeviceName name;
  return muster_device_name_parse (device, &name) &&
         (name.job != NULL || name.replica >= 0 || name.task >= 0);
}

/* Most graphs name no task, and needn't be parsed. */
static gboolean
may_be_bound (const void *data, gsize size)
{
  static const char *const parts[] = {"/job:", "/replica:", "/task:"};
  for (gsize i = 0; i < G_N_ELEMENTS (parts); i++)
    if (memmem (data, size, parts[i], strlen (parts[i])) != NULL)
      return TRUE;
  return FALSE;
}

MusterGraph *
muster_graph_of_any_task (MusterGraph *self, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GStringChunk) names = g_string_chunk_new (64);
  gsize size;
  const void *data = g_bytes_get_data (muster_graph_bytes (self), &size);
  if (!may_be_bound (data, size))
    return muster_graph_ref (self);
  Tensorflow__GraphDef *graph =
      muster_unpack (&tensorflow__graph_def__descriptor, data, size, arena, "graph", error);
  gboolean is_changed = FALSE;
  if (graph == NULL)
    return NULL;
  for (gsize i = 0; i < graph->n_node; i++) {
    if (!is_bound (graph->node[i]->device))
      continue;
    g_autofree char *device = muster_device_of_any_task (graph->node[i]->device);
    graph->node[i]->device = g_string_chunk_insert_const (names, device);
    is_changed = TRUE;
  }
  if (!is_changed)
    return muster_graph_ref (self);
  g_autoptr (GBytes) bytes = muster_pack (&graph->base);
  return muster_graph_new (bytes);
}
