// SPDX-License-Identifier: Apache-2.0
/* Variables that last for one step: no other step sees them, and no reset clears them. */
#include "engine/kernels/common/dispatch.h"
#include "engine/kernels/state/state_op_tables.h"
#include "engine/resources/variable_private.h"
#include "engine/run/slots.h"

#include <string.h>

#define CONTAINER "__per_step"

/* The attribute var_name (transfer full), or the node's own name. */
static char *
name_of (const MusterNode *node)
{
  char *name = muster_node_string (node, "var_name");
  if (name != NULL && name[0] != '\0')
    return name;
  g_free (name);
  return g_strdup (node->name);
}

/* Zeroed; TensorFlow leaves the memory uninitialised. */
static MusterTensor *
new_value (MusterKernel *k, MusterDType dtype, int n_dims, const gint64 *dims, GError **error)
{
  g_auto (MusterResult) result = {0};
  return muster_result_begin (&result, k, dtype, n_dims, dims, error)
             ? muster_result_end_tensor (&result, k, error)
             : NULL;
}

/* The step has a variable of this name, which it hasn't destroyed. */
static gboolean
is_taken (const MusterKernel *k, const char *name)
{
  for (guint32 i = 0; i < k->run->plan->n_slots; i++) {
    const MusterSlot *slot = &k->run->slots[i];
    if (slot->kind == MUSTER_SLOT_REF &&
        g_str_equal (muster_variable_container (slot->value), CONTAINER) &&
        g_str_equal (muster_variable_name (slot->value), name))
      return TRUE;
  }
  return FALSE;
}

static gboolean
compute_temporary (MusterKernel *k, GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const MusterNode *node = muster_kernel_node (k);
  const MusterDType dtype = muster_kernel_output_dtype (k, 0);
  const int n_dims = muster_node_shape (node, "shape", dims, MUSTER_MAX_DIMS);
  gboolean is_known = n_dims >= 0 && n_dims <= MUSTER_MAX_DIMS;
  for (int i = 0; is_known && i < n_dims; i++)
    is_known = dims[i] >= 0;
  if (!is_known) {
    g_autofree char *shape = n_dims >= 0 && n_dims <= MUSTER_MAX_DIMS
                                 ? muster_shape_to_string (n_dims, dims)
                                 : g_strdup ("<unknown>");
    return muster_invalid (error, "Shape %s is not fully defined", shape);
  }
  g_autoptr (MusterTensor) value = new_value (k, dtype, n_dims, dims, error);
  if (value == NULL)
    return FALSE;
  g_autofree char *name = name_of (node);
  if (is_taken (k, name))
    return muster_fail (error, MUSTER_ERROR_ALREADY_EXISTS, "Resource %s/%s already exists.",
                        CONTAINER, name);
  MusterVariable *variable = muster_variable_new (CONTAINER, name, dtype, FALSE, n_dims, dims);
  muster_variable_begin_with (variable, value);
  MusterSlot *slot = muster_kernel_output_slot (k, 0);
  muster_slot_clear (slot);
  *slot = (MusterSlot){.kind = MUSTER_SLOT_REF, .value = variable};
  return TRUE;
}

static gboolean
compute_destroy (MusterKernel *k, GError **error)
{
  g_autofree char *given = muster_node_string (muster_kernel_node (k), "var_name");
  if (given == NULL || given[0] == '\0')
    return muster_invalid (error, "Missing var_name attribute");
  g_autofree char *name = name_of (muster_kernel_node (k));
  MusterVariable *variable = muster_kernel_variable (k, 0);
  if (g_str_equal (muster_variable_container (variable), CONTAINER) &&
      g_str_equal (muster_variable_name (variable), name)) {
    muster_kernel_set_output (k, 0, muster_tensor_ref (muster_kernel_input (k, 0)));
    return TRUE;
  }
  return muster_fail (error, MUSTER_ERROR_NOT_FOUND, "Resource %s/%s does not exist.", CONTAINER,
                      name);
}

const MusterOp muster_temporary_ops[] = {
    {"TemporaryVariable", " -> ref:&dtype", "dtype:any shape var_name", compute_temporary,
     MUSTER_OP_STATEFUL},
    {"DestroyTemporaryVariable", "ref:&T -> value:T", "T:any var_name", compute_destroy,
     MUSTER_OP_STATEFUL},
    {NULL, NULL, NULL, NULL, 0},
};
