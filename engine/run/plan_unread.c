// SPDX-License-Identifier: Apache-2.0
/* Nodes of a plan whose results nobody reads. TensorFlow's gradients make them: the gradient of a
 * layer's input is in the graph, even that of the first layer, and a control edge from it makes the
 * updates wait until all gradients are there. */
#include "engine/run/core_ops.h"
#include "engine/run/plan.h"

/* TRUE if the node does nothing but compute its outputs from its inputs. Reading a reference is an
 * effect: it fails if the variable has no value. Constants and placeholders aren't worth it; a
 * placeholder that isn't fed must say so. */
static gboolean
is_pure (const MusterPlan *self, const MusterPlanNode *node)
{
  const guint harmless = MUSTER_OP_FORWARD | MUSTER_OP_HANDLES | MUSTER_OP_PASSES_REF;
  if (((guint)node->op->flags & ~harmless) != 0 || node->n_inputs == 0 || node->n_outputs == 0)
    return FALSE;
  for (guint32 i = 0; i < node->n_inputs; i++)
    if (self->slot_dtypes[self->inputs[node->first_input + i].slot] > MUSTER_REF)
      return FALSE;
  return TRUE;
}

static gboolean
is_read (const MusterPlanNode *node, const guint8 *read)
{
  for (guint32 i = 0; i < node->n_outputs; i++)
    if (read[node->first_output + i])
      return TRUE;
  return FALSE;
}

void
muster_plan_skip_unread (MusterPlan *self)
{
  g_autofree guint8 *read = g_malloc0 (MAX (self->n_slots, 1)); /* by slot */
  for (guint32 i = 0; i < self->n_fetches; i++)
    read[self->fetches[i].slot] = TRUE;
  for (guint32 i = self->n_nodes; i > 0; i--) {
    MusterPlanNode *node = &self->nodes[i - 1];
    node->is_skipped = !node->is_target && !is_read (node, read) && is_pure (self, node);
    for (guint32 j = 0; !node->is_skipped && j < node->n_inputs; j++)
      read[self->inputs[node->first_input + j].slot] = TRUE;
  }
}
