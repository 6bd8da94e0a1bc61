// SPDX-License-Identifier: Apache-2.0
/* What passes a value on, perhaps after a look at it. */
#include "engine/kernels/dispatch.h"

#include <math.h>
#include <string.h>

static gboolean
compute_pass (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  for (int i = 0; i < muster_kernel_n_outputs (k); i++)
    muster_kernel_set_output (k, i, muster_tensor_ref (muster_kernel_input (k, i)));
  return TRUE;
}

/* A tensor as Assert prints it: values apart by a blank, in brackets. */
static void
append_values (GString *text, MusterTensor *x, gint64 limit)
{
  gint64 n = muster_tensor_n_elements (x);

  if (muster_tensor_dtype (x) != MUSTER_STRING) {
    g_autoptr (MusterTensor) flat = muster_tensor_reshape (x, 1, &n);
    g_autofree char *values = muster_tensor_to_string (flat, limit);
    g_auto (GStrv) parts = g_strsplit (values, ", ", -1);
    g_autofree char *joined = g_strjoinv (" ", parts);
    g_autoptr (GString) list = g_string_new (joined);
    g_string_replace (list, " …", "...", 1);
    g_string_append_printf (text, " %s", list->str);
    return;
  }
  g_string_append (text, " [");
  for (gint64 i = 0; i < MIN (n, limit); i++) {
    MusterString s = muster_tensor_string (x, i);
    g_autofree char *valid = g_utf8_make_valid (s.data != NULL ? s.data : "", (gssize)s.size);
    g_string_append_printf (text, "%s%s", i > 0 ? " " : "", valid);
  }
  g_string_append (text, n > limit ? "...]" : "]");
}

static gboolean
compute_assert (MusterKernel *k, GError **error)
{
  gint64 limit = muster_kernel_attr_int (k, "summarize", 3);
  MusterTensor *condition = muster_kernel_input (k, 0);
  g_autoptr (GString) text = NULL;

  if (!muster_check_scalar (k, 0, "In[0] should be a scalar: condition", error))
    return FALSE;
  if (*(const guint8 *)muster_tensor_data (condition) != 0)
    return TRUE;
  text = g_string_new ("assertion failed:");
  for (int i = 1; i < muster_kernel_n_inputs (k); i++)
    append_values (text, muster_kernel_input (k, i), limit < 0 ? G_MAXINT64 : limit);
  return muster_invalid (error, "%s", text->str);
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
    {"PreventGradient", "input:T -> output:T", "T:any", compute_pass, 0},
    {"CheckNumerics", "tensor:T -> output:T", "T:float", compute_check_numerics, 0},
    {"EnsureShape", "input:T -> output:T", "T:any", compute_ensure_shape, 0},
    {"Assert", "condition:bool, data:*T ->", "", compute_assert, MUSTER_OP_STATEFUL},
    {"DisableCopyOnRead", "resource:resource ->", "", compute_nothing, MUSTER_OP_STATEFUL},
    {NULL, NULL, NULL, NULL, 0},
};
