// SPDX-License-Identifier: Apache-2.0
#include "engine/run/core_ops.h"

#include "base/error.h"
#include "engine/run/slots.h"
#include "graph/graph_nodes_private.h"

/* Ops that work on slots instead of tensors: constants, placeholders, variables, ops that forward
 * their input, and the two ends of a conditional. */

static gboolean
constant (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  muster_kernel_set_output (k, 0, muster_tensor_ref (k->node->constant));
  return TRUE;
}

static gboolean
placeholder (MusterKernel *k, GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const MusterNode *def = k->node->def;
  const int n_dims = MIN (muster_node_shape (def, "shape", dims, MUSTER_MAX_DIMS), MUSTER_MAX_DIMS);
  g_autofree char *shape = n_dims > 0 ? muster_shape_to_string (n_dims, dims) : NULL;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "You must feed a value for placeholder tensor '%s' with dtype %s%s%s",
                      def->name, muster_dtype_name (muster_kernel_output_dtype (k, 0)),
                      shape != NULL ? " and shape " : "", shape != NULL ? shape : "");
}

/* Forwards an input of any kind. A reference stays one, so that the variable is read by the op that
 * uses it. */
static void
pass (MusterKernel *k, int output, int input)
{
  if (muster_kernel_input_slot (k, input)->kind == MUSTER_SLOT_TENSOR)
    muster_kernel_set_output (k, output, muster_tensor_ref (muster_kernel_input (k, input)));
  else
    muster_kernel_forward_ref (k, output, input);
}

static gboolean
identity (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  pass (k, 0, 0);
  return TRUE;
}

static gboolean
identities (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  for (int i = 0; i < muster_kernel_n_outputs (k); i++)
    pass (k, i, i);
  return TRUE;
}

/* Later updates of the variable don't change the value: tensors are immutable, so a reference is
 * enough. */
static gboolean
snapshot (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  muster_kernel_set_output (k, 0, muster_tensor_ref (muster_kernel_input (k, 0)));
  return TRUE;
}

/* Forwards the input to the output that pred selects; the other one is dead. */
static gboolean
switch_branch (MusterKernel *k, GError **error)
{
  const MusterTensor *pred = muster_kernel_input (k, 1);
  if (pred == NULL)
    return muster_kernel_fail_uninitialized (k, 1, error);
  if (muster_tensor_n_dims (pred) != 0) {
    g_autofree char *shape =
        muster_shape_to_string (muster_tensor_n_dims (pred), muster_tensor_dims (pred));
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "The second input must be a scalar, but it has shape %s", shape);
  }
  const int taken = *(const guint8 *)muster_tensor_data (pred) != 0;
  pass (k, taken, 0);
  *muster_kernel_output_slot (k, !taken) = (MusterSlot){.kind = MUSTER_SLOT_DEAD};
  return TRUE;
}

/* Forwards the first input that isn't dead, with its index. The executor has checked that there is
 * one. */
static gboolean
merge_branches (MusterKernel *k, GError **error)
{
  const int n = muster_kernel_n_inputs (k);
  int i = 0;
  while (i < n && muster_kernel_input_slot (k, i)->kind == MUSTER_SLOT_DEAD)
    i++;
  if (i == n) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "There is nothing to merge");
  }
  pass (k, 0, i);
  muster_kernel_set_output (k, 1, muster_tensor_new_int32 (i));
  return TRUE;
}

static gboolean
nothing (MusterKernel *k G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static gboolean
output_variable (MusterKernel *k, gboolean is_resource, GError **error)
{
  MusterPlanResource *resource = k->node->resource;
  const MusterVariableRequest wanted = {
      .container = resource->container,
      .name = resource->name,
      .is_resource = is_resource,
      .hash = resource->hash,
      /* A reference's dtype is in the plan; the node is memory that a step doesn't touch
       * otherwise. */
      .dtype = is_resource ? muster_node_dtype (k->node->def, "dtype", MUSTER_INVALID)
                           : muster_kernel_output_dtype (k, 0),
      .def = k->node->def,
      .cache = &resource->cache};
  if (!muster_dtype_is_supported (wanted.dtype)) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Variables of dtype %s aren't supported", muster_dtype_name (wanted.dtype));
  }
  MusterVariable *variable = muster_resources_variable (k->run->context.resources, &wanted, error);
  if (variable == NULL)
    return FALSE;
  *muster_kernel_output_slot (k, 0) =
      (MusterSlot){.kind = is_resource ? MUSTER_SLOT_RESOURCE : MUSTER_SLOT_REF, .value = variable};
  return TRUE;
}

static gboolean
reference_variable (MusterKernel *k, GError **error)
{
  return output_variable (k, FALSE, error);
}

static gboolean
variable_handle (MusterKernel *k, GError **error)
{
  return output_variable (k, TRUE, error);
}

const MusterOp muster_core_ops[] = {
    {"Const", " -> output:dtype", "dtype:any value", constant, 0},
    {"Placeholder", " -> output:dtype", "dtype:any shape", placeholder, 0},
    {"PlaceholderV2", " -> output:dtype", "dtype:any shape", placeholder, 0},
    {"PlaceholderWithDefault", "input:dtype -> output:dtype", "dtype:all shape", identity,
     MUSTER_OP_PASSES_REF},
    {"Identity", "input:T -> output:T", "T:all", identity, MUSTER_OP_PASSES_REF},
    {"IdentityN", "input:*T -> output:*T", "T:all", identities, MUSTER_OP_PASSES_REF},
    {"Snapshot", "input:T -> output:T", "T:any", snapshot, 0},
    {"Switch", "data:T, pred:bool -> output_false:T, output_true:T", "T:all", switch_branch,
     MUSTER_OP_PASSES_REF | MUSTER_OP_SWITCHES},
    {"RefSwitch", "data:&T, pred:bool -> output_false:&T, output_true:&T", "T:any", switch_branch,
     MUSTER_OP_UNINITIALIZED | MUSTER_OP_RESOURCE | MUSTER_OP_SWITCHES},
    {"Merge", "inputs:N*T -> output:T, value_index:int32", "T:all", merge_branches,
     MUSTER_OP_PASSES_REF | MUSTER_OP_MERGES},
    {"RefMerge", "inputs:N*&T -> output:&T, value_index:int32", "T:any", merge_branches,
     MUSTER_OP_RESOURCE | MUSTER_OP_MERGES},
    {"NoOp", " -> ", "", nothing, 0},
    {"Variable", " -> ref:&dtype", "dtype:any shape container shared_name", reference_variable,
     MUSTER_OP_READER},
    {"VariableV2", " -> ref:&dtype", "dtype:any shape container shared_name", reference_variable,
     MUSTER_OP_READER},
    {"VarHandleOp", " -> resource:resource", "container shared_name dtype shape", variable_handle,
     MUSTER_OP_READER},
    {0},
};
