// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/hook_metric_private.h"

#include "base/error.h"
#include "graph/graph_nodes_private.h"

void
muster_hook_metric_find (MusterHookMetric *self, MusterSaver *saver, MusterScaffold *scaffold)
{
  const char *name = muster_saver_metric (saver);
  g_autofree char *op = NULL;

  muster_hook_metric_clear (self);
  const int output = name != NULL ? muster_graph_split_input (name, &op) : -1;
  if (output >= 0 && muster_graph_has_node (muster_scaffold_graph (scaffold), op))
    self->tensor = g_strdup_printf ("%s:%d", op, output);
}

void
muster_hook_metric_clear (MusterHookMetric *self)
{
  g_clear_pointer (&self->tensor, g_free);
}

void
muster_hook_metric_fetch (MusterHookMetric *self, MusterRunContext *context)
{
  if (self->tensor != NULL)
    self->at = muster_run_context_fetch (context, self->tensor);
}

gboolean
muster_hook_metric_take (const MusterHookMetric *self, MusterSaver *saver,
                         MusterRunContext *context, GError **error)
{
  double value;
  if (self->tensor == NULL)
    return TRUE;
  if (!muster_tensor_get_double (muster_run_context_value (context, self->at), &value, error)) {
    g_prefix_error (error, "The metric '%s': ", self->tensor);
    return FALSE;
  }
  muster_saver_set_metric (saver, value);
  return TRUE;
}
