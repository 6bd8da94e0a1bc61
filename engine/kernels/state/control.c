// SPDX-License-Identifier: Apache-2.0
/* Ops that forward a value, some after a check. */
#include "engine/kernels/common/dispatch.h"
#include "engine/kernels/state/state_op_tables.h"

#include <math.h>
#include <string.h>

static gboolean
compute_pass (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  for (int i = 0; i < muster_kernel_n_outputs (k); i++)
    muster_kernel_set_output (k, i, muster_tensor_ref (muster_kernel_input (k, i)));
  return TRUE;
}

static gboolean
compute_check_numerics (MusterKernel *k, GError **error)
{
  const Tensorflow__AttrValue *message = muster_kernel_attr (k, "message");
  g_autoptr (MusterTensor) x = muster_wide_input (k, 0, error);
  gboolean has_nan = FALSE, has_inf = FALSE;
  g_autofree char *words = NULL;

  if (x == NULL)
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    double value = muster_tensor_dtype (x) == MUSTER_FLOAT
                       ? ((const float *)muster_tensor_data (x))[i]
                       : ((const double *)muster_tensor_data (x))[i];
    has_nan |= isnan (value) != 0;
    has_inf |= isinf (value) != 0;
  }
  if (!has_nan && !has_inf)
    return compute_pass (k, error);
  if (message != NULL && message->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S &&
      message->s.len > 0)
    words = g_utf8_make_valid ((const char *)message->s.data, (gssize)message->s.len);
  return muster_invalid (error, "%s : Tensor had %s values", words != NULL ? words : "",
                         has_nan && has_inf ? "NaN and Inf"
                         : has_nan          ? "NaN"
                                            : "Inf");
}

static gboolean
compute_ensure_shape (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gint64 dims[MUSTER_MAX_DIMS];
  int n = muster_node_shape (muster_kernel_node (k), "shape", dims, MUSTER_MAX_DIMS);
  gboolean fits = n < 0 || n == muster_tensor_n_dims (x);
  for (int i = 0; fits && i < n; i++)
    fits = dims[i] < 0 || dims[i] == muster_tensor_dims (x)[i];
  if (!fits) {
    g_autofree char *given = muster_shape_text (x);
    g_autofree char *wanted = muster_shape_to_string (n, dims);
    return muster_invalid (error, "Shape of tensor %s is not compatible with expected shape %s",
                           given, wanted);
  }
  return compute_pass (k, error);
}

static gboolean
compute_nothing (MusterKernel *k G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

const MusterOp muster_control_ops[] = {
    {"StopGradient", "input:T -> output:T", "T:any", compute_pass, 0},
    {"PreventGradient", "input:T -> output:T", "T:any message", compute_pass, 0},
    {"GuaranteeConst", "input:T -> output:T", "T:any", compute_pass, MUSTER_OP_READER},
    {"CheckNumericsV2", "tensor:T -> output:T", "T:float message", compute_check_numerics,
     MUSTER_OP_READER},
    {"CheckNumerics", "tensor:T -> output:T", "T:float message", compute_check_numerics,
     MUSTER_OP_READER},
    {"EnsureShape", "input:T -> output:T", "T:any shape", compute_ensure_shape, 0},
    {"DisableCopyOnRead", "resource:resource ->", "", compute_nothing, MUSTER_OP_READER},
    {NULL, NULL, NULL, NULL, 0},
};
