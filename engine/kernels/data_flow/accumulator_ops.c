// SPDX-License-Identifier: Apache-2.0
/* Conditional accumulators, dense and sparse, which SyncReplicasOptimizer uses to collect
 * gradients. */
#include "engine/kernels/common/dispatch.h"
#include "engine/kernels/data_flow/data_flow_op_tables.h"
#include "engine/resources/accumulator.h"

#include <string.h>

static gboolean
is_sparse (const MusterNode *node)
{
  return g_str_has_prefix (node->kind->op, "Sparse");
}

static gboolean
accumulator_fits (gpointer data, const MusterNode *node, GError **error)
{
  const MusterAccumulator *accumulator = data;
  const MusterDType dtype = muster_node_dtype (node, "dtype", MUSTER_INVALID);
  const gboolean sparse = muster_accumulator_is_sparse (accumulator);
  if (dtype == muster_accumulator_dtype (accumulator) && sparse == is_sparse (node))
    return TRUE;
  g_autofree char *name = muster_node_string (node, "shared_name");
  return muster_invalid (
      error, "Accumulator '%s' takes %s gradients of %s, but %s ones of %s are requested",
      name != NULL && *name != '\0' ? name : node->name, sparse ? "sparse" : "dense",
      muster_dtype_name (muster_accumulator_dtype (accumulator)),
      is_sparse (node) ? "sparse" : "dense", muster_dtype_name (dtype));
}

static void
accumulator_cancel (gpointer data)
{
  muster_accumulator_cancel (data, NULL);
}

static void
accumulator_free (gpointer data)
{
  muster_accumulator_free (data);
}

static const MusterResourceType accumulator_type = {.kind =
                                                        "tensorflow::ConditionalAccumulatorBase",
                                                    .fits = accumulator_fits,
                                                    .cancel = accumulator_cancel,
                                                    .free = accumulator_free};

static gpointer
make_accumulator (const char *name G_GNUC_UNUSED, gpointer k, GError **error)
{
  const MusterNode *node = muster_kernel_node (k);
  g_autofree char *reduction = muster_node_string (node, "reduction_type");
  MusterAccumulatorKind kind = {.dtype = muster_node_dtype (node, "dtype", MUSTER_INVALID),
                                .is_sparse = is_sparse (node)};
  if (kind.dtype != MUSTER_FLOAT && kind.dtype != MUSTER_DOUBLE && kind.dtype != MUSTER_HALF) {
    g_autofree char *dtype = g_ascii_strup (muster_dtype_name (kind.dtype), -1);
    muster_invalid (error,
                    "No OpKernel was registered to support Op '%s' used by {{node %s}} with these "
                    "attrs: [dtype=DT_%s]",
                    node->kind->op, node->name, dtype);
    return NULL;
  }
  kind.is_sum = reduction != NULL && g_str_equal (reduction, "SUM");
  if (reduction != NULL && !kind.is_sum && !g_str_equal (reduction, "MEAN")) {
    muster_invalid (error,
                    "Value for attr 'reduction_type' of \"%s\" is not in the list of allowed "
                    "values: \"MEAN\", \"SUM\"",
                    reduction);
    return NULL;
  }
  kind.n_dims = muster_node_shape (node, "shape", kind.dims, MUSTER_MAX_DIMS);
  if (kind.n_dims > MUSTER_MAX_DIMS)
    kind.n_dims = -1;
  return muster_accumulator_new (&kind);
}

static gboolean
compute_accumulator (MusterKernel *k, GError **error)
{
  return muster_kernel_output_resource (k, 0, &accumulator_type, make_accumulator, error);
}

/* The accumulator behind input 0, dense or sparse, for gradients of dtype. */
static MusterAccumulator *
accumulator_of (MusterKernel *k, MusterDType dtype, GError **error)
{
  MusterAccumulator *accumulator = muster_kernel_resource (k, 0, &accumulator_type, error);
  const MusterNode *node = muster_kernel_node (k);
  if (accumulator == NULL)
    return NULL;
  if (muster_accumulator_dtype (accumulator) == dtype &&
      muster_accumulator_is_sparse (accumulator) == is_sparse (node))
    return accumulator;
  muster_invalid (error,
                  "Signature mismatch, have: %s gradients of %s expected: %s gradients of %s",
                  is_sparse (node) ? "sparse" : "dense", muster_dtype_name (dtype),
                  muster_accumulator_is_sparse (accumulator) ? "sparse" : "dense",
                  muster_dtype_name (muster_accumulator_dtype (accumulator)));
  return NULL;
}

static gboolean
check_argument (MusterKernel *k, int i, const char *name, GError **error)
{
  if (muster_tensor_n_dims (muster_kernel_input (k, i)) == 0)
    return TRUE;
  g_autofree char *shape = muster_shape_text (muster_kernel_input (k, i));
  return muster_invalid (error, "Argument %s must be scalar, but had bad shape %s", name, shape);
}

static gboolean
compute_apply (MusterKernel *k, GError **error)
{
  MusterTensor *gradient = muster_kernel_input (k, 2);
  MusterAccumulator *accumulator = accumulator_of (k, muster_tensor_dtype (gradient), error);
  return accumulator != NULL && check_argument (k, 1, "local_step", error) &&
         muster_accumulator_apply (accumulator, muster_kernel_input_int (k, 1), gradient, error);
}

static gboolean
compute_apply_rows (MusterKernel *k, GError **error)
{
  MusterTensor *values = muster_kernel_input (k, 3);
  MusterAccumulator *accumulator = accumulator_of (k, muster_tensor_dtype (values), error);
  MusterTensor *shape =
      muster_kernel_attr_bool (k, "has_known_shape", FALSE) ? muster_kernel_input (k, 4) : NULL;
  return accumulator != NULL && check_argument (k, 1, "local_step", error) &&
         muster_accumulator_apply_rows (accumulator, muster_kernel_input_int (k, 1),
                                        muster_kernel_input (k, 2), values, shape, error);
}

static gboolean
compute_n_accumulated (MusterKernel *k, GError **error)
{
  MusterAccumulator *accumulator = muster_kernel_resource (k, 0, &accumulator_type, error);
  if (accumulator == NULL)
    return FALSE;
  muster_kernel_set_output (
      k, 0, muster_tensor_new_int32 (muster_accumulator_n_accumulated (accumulator)));
  return TRUE;
}

static gboolean
compute_set_global_step (MusterKernel *k, GError **error)
{
  MusterAccumulator *accumulator = muster_kernel_resource (k, 0, &accumulator_type, error);
  if (accumulator == NULL || !check_argument (k, 1, "new_global_step", error))
    return FALSE;
  muster_accumulator_set_global_step (accumulator, muster_kernel_input_int (k, 1));
  return TRUE;
}

static void
set_outputs (MusterKernel *k, MusterAccumulated *taken)
{
  for (int i = 0; i < muster_kernel_n_outputs (k); i++)
    muster_kernel_set_output (k, i, g_steal_pointer (&taken->parts[i]));
}

/* MusterAccumulatorFunc, of a kernel that was suspended. */
static void
on_taken (gpointer k, MusterAccumulated *taken, GError *error)
{
  if (taken != NULL)
    set_outputs (k, taken);
  muster_kernel_resume (k, error);
}

static void
on_cancelled (MusterKernel *k, gpointer accumulator)
{
  muster_accumulator_cancel (accumulator, k);
}

static gboolean
compute_take (MusterKernel *k, GError **error)
{
  const int values = muster_kernel_n_outputs (k) > 1 ? 1 : 0;
  MusterAccumulator *accumulator =
      accumulator_of (k, muster_kernel_output_dtype (k, values), error);
  g_autoptr (GError) own = NULL;
  MusterAccumulated taken;
  if (accumulator == NULL || !check_argument (k, 1, "num_required", error))
    return FALSE;
  const gint32 n_required = (gint32)muster_kernel_input_int (k, 1);
  if (n_required <= 0)
    return muster_invalid (error, "Argument num_required must be positive, but was %d", n_required);
  if (muster_accumulator_try_take (accumulator, n_required, &taken, &own)) {
    set_outputs (k, &taken);
    return TRUE;
  }
  if (own != NULL) {
    g_propagate_error (error, g_steal_pointer (&own));
    return FALSE;
  }
  muster_kernel_suspend (k, on_cancelled, accumulator);
  muster_accumulator_take (accumulator, n_required, k, on_taken);
  return TRUE;
}

#define S      (MUSTER_OP_STATEFUL | MUSTER_OP_RESOURCE)
#define R      (MUSTER_OP_READER | MUSTER_OP_RESOURCE)
#define REF    "handle:&string"
#define HANDLE "handle:resource"
#define APPLY  ", local_step:int64, gradient:dtype ->"
#define ROWS                                                                                       \
  ", local_step:int64, gradient_indices:int64, gradient_values:dtype, gradient_shape:int64 ->"
#define COUNT     "-> num_accumulated:int32"
#define STEP      ", new_global_step:int64 ->"
#define TAKE      ", num_required:int32 -> average:dtype"
#define TAKE_ROWS ", num_required:int32 -> indices:int64, values:dtype, shape:int64"
#define NUMBER    "dtype:number"
#define KIND      "dtype shape container shared_name reduction_type"

const MusterOp muster_accumulator_ops[] = {
    {"ConditionalAccumulator", " -> " REF, KIND, compute_accumulator, R},
    {"ResourceConditionalAccumulator", " -> " HANDLE, KIND, compute_accumulator, R},
    {"SparseConditionalAccumulator", " -> " REF, KIND, compute_accumulator, R},
    {"AccumulatorApplyGradient", REF APPLY, NUMBER, compute_apply, S},
    {"ResourceAccumulatorApplyGradient", HANDLE APPLY, NUMBER, compute_apply, S},
    {"SparseAccumulatorApplyGradient", REF ROWS, NUMBER " has_known_shape", compute_apply_rows, S},
    {"AccumulatorNumAccumulated", REF COUNT, "", compute_n_accumulated, R},
    {"ResourceAccumulatorNumAccumulated", HANDLE COUNT, "", compute_n_accumulated, R},
    {"AccumulatorSetGlobalStep", REF STEP, "", compute_set_global_step, S},
    {"ResourceAccumulatorSetGlobalStep", HANDLE STEP, "", compute_set_global_step, S},
    {"AccumulatorTakeGradient", REF TAKE, NUMBER, compute_take, S},
    {"ResourceAccumulatorTakeGradient", HANDLE TAKE, NUMBER, compute_take, S},
    {"SparseAccumulatorTakeGradient", REF TAKE_ROWS, NUMBER, compute_take, S},
    {NULL, NULL, NULL, NULL, 0},
};
