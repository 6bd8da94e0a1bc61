// SPDX-License-Identifier: Apache-2.0
#include "engine/run/graph_check.h"

#include "base/error.h"
#include "engine/run/types.h"
#include "graph/device_name_private.h"
#include "graph/graph_nodes_private.h"

static gboolean
check_versions (MusterGraph *graph, GError **error)
{
  const MusterGraphVersions versions = muster_graph_versions (graph, MUSTER_GRAPH_DEF_VERSION);
  if (versions.producer < 0)
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "GraphDef producer version %d below min producer 0 supported by muster's own "
        "engine.  Please regenerate your graph.",
        versions.producer);
  if (versions.min_consumer > MUSTER_GRAPH_DEF_VERSION)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "GraphDef min consumer version %d above current version %d of muster's own "
                        "engine.  Please upgrade muster, or use TensorFlow's runtime "
                        "(--master=tensorflow).",
                        versions.min_consumer, MUSTER_GRAPH_DEF_VERSION);
  return !versions.is_bad ||
         muster_fail (
             error, MUSTER_ERROR_INVALID_ARGUMENT,
             "GraphDef disallows consumer version %d.  Please upgrade muster: this version is "
             "likely buggy.",
             MUSTER_GRAPH_DEF_VERSION);
}

static gboolean
is_name (const char *name)
{
  if (!g_ascii_isalnum (*name) && *name != '.' && *name != '_')
    return FALSE;
  for (; *name != '\0'; name++)
    if (!g_ascii_isalnum (*name) && strchr ("_.\\/>-", *name) == NULL)
      return FALSE;
  return TRUE;
}

static gboolean
check_node (const MusterNode *node, gboolean same_device, GError **error)
{
  MusterDeviceName device;
  if (!is_name (node->name))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Illegal op name '%s'\n\t [[{{node %s}}]]", node->name, node->name);
  return same_device || muster_device_name_parse (node->kind->device, &device) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Malformed device specification '%s' in node: {{node %s}}\n\t [[%s]]",
                      node->kind->device, node->name, node->name);
}

/* Compares with the previous node's device first: most nodes have the same one. */
static gboolean
is_on (const MusterNode *node, const char *device)
{
  return device != NULL && strcmp (node->kind->device, device) == 0;
}

gboolean
muster_graph_check (MusterGraph *graph, GError **error)
{
  if (!check_versions (graph, error))
    return FALSE;
  const gsize n = muster_graph_n_nodes (graph);
  const char *device = NULL;
  for (gsize i = 0; i < n; i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    if (!check_node (node, is_on (node, device), error))
      return FALSE;
    device = node->kind->device;
  }
  return TRUE;
}

static gboolean
is_ours (const char *text)
{
  MusterDeviceName device;
  return muster_device_name_parse (text, &device) && device.id <= 0 &&
         (device.type[0] == '\0' || strcmp (device.type, "CPU") == 0);
}

/* TensorFlow places sources (no inputs, one output) last and reports the first node that it can't
 * place; sources are therefore reported only if no other node is misplaced. */
static gboolean
is_source (const MusterNode *node)
{
  return strcmp (node->kind->op, "Const") == 0 || strcmp (node->kind->op, "VarHandleOp") == 0 ||
         g_str_has_prefix (node->kind->op, "Placeholder");
}

static gboolean
check_placement_of (MusterGraph *graph, gboolean sources, GError **error)
{
  const gsize n = muster_graph_n_nodes (graph);
  const char *device = NULL;
  for (gsize i = 0; i < n; i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    if (is_source (node) != sources)
      continue;
    if (!is_on (node, device) && !is_ours (node->kind->device))
      return muster_fail (
          error, MUSTER_ERROR_INVALID_ARGUMENT,
          "Cannot assign a device for operation %s: {{node %s}} was explicitly assigned "
          "to %s but available devices are [ " MUSTER_LOCAL_DEVICE
          " ]. Make sure the device specification refers to a valid device. muster's "
          "own engine has only this CPU: set allow_soft_placement to place the node there, or "
          "use TensorFlow's runtime (--master=tensorflow).\n\t [[%s]]",
          node->name, node->name, node->kind->device, node->name);
    device = node->kind->device;
  }
  return TRUE;
}

gboolean
muster_graph_check_placement (MusterGraph *graph, GError **error)
{
  return check_placement_of (graph, FALSE, error) && check_placement_of (graph, TRUE, error);
}
