// SPDX-License-Identifier: Apache-2.0
/* Reference and resource variables: assign, read, count and scatter. */
#include "engine/kernels/array/gather.h"
#include "engine/kernels/math/arithmetic.h"
#include "engine/kernels/state/state_op_tables.h"

#include <string.h>

/* The value of the resource variable behind input i. */
static MusterTensor *
read_resource (MusterKernel *k, int i, GError **error)
{
  MusterVariable *variable = muster_kernel_variable (k, i);
  MusterTensor *value = muster_variable_read (variable);
  if (value == NULL)
    muster_variable_set_not_found (variable, error);
  return value;
}

static void
pass_reference (MusterKernel *k)
{
  if (muster_kernel_n_outputs (k) > 0)
    muster_kernel_forward_ref (k, 0, 0);
}

/* A variable's current or declared shape as text; NULL if it is unknown or equal to value's. */
static char *
other_shape (MusterVariable *variable, MusterTensor *value)
{
  g_autoptr (MusterTensor) old = muster_variable_read (variable);
  const gint64 *dims = NULL;
  int n_dims;
  if (old != NULL)
    return muster_same_shape (old, value) ? NULL : muster_shape_text (old);
  n_dims = muster_variable_shape (variable, &dims);
  if (n_dims < 0 || muster_shape_n_elements (n_dims, dims) < 0 ||
      (n_dims == muster_tensor_n_dims (value) &&
       (n_dims == 0 || memcmp (dims, muster_tensor_dims (value), n_dims * sizeof *dims) == 0)))
    return NULL;
  return muster_shape_to_string (n_dims, dims);
}

static gboolean
compute_assign (MusterKernel *k, GError **error)
{
  MusterVariable *variable = muster_kernel_variable (k, 0);
  MusterTensor *value = muster_kernel_input (k, 1);
  g_autofree char *a = other_shape (variable, value);

  if (a != NULL && muster_kernel_attr_bool (k, "validate_shape", TRUE)) {
    g_autofree char *b = muster_shape_text (value);
    return muster_invalid (
        error, "Assign requires shapes of both tensors to match. lhs shape= %s rhs shape= %s", a,
        b);
  }
  muster_variable_assign (variable, value);
  pass_reference (k);
  return TRUE;
}

static gboolean
compute_assign_variable (MusterKernel *k, GError **error)
{
  MusterVariable *variable = muster_kernel_variable (k, 0);
  MusterTensor *value = muster_kernel_input (k, 1);
  if (!muster_check_variable_dtype (variable, muster_tensor_dtype (value), error))
    return FALSE;
  if (muster_kernel_attr_bool (k, "validate_shape", FALSE)) {
    g_autoptr (MusterTensor) old = muster_variable_read (variable);
    if (old != NULL && !muster_same_shape (old, value)) {
      g_autofree char *a = muster_shape_text (old), *b = muster_shape_text (value);
      return muster_invalid (
          error, "Trying to assign to variable with tensor with wrong shape. Expected %s got %s", a,
          b);
    }
  }
  muster_variable_assign (variable, value);
  return TRUE;
}

/* Runs a loop over the whole variable, in place or from the old elements if a snapshot references
 * them. The step has a reference to the operand, so it doesn't change even if it is the variable's
 * own value. */
static gboolean
update (MusterKernel *k, const MusterLoop2 *loops, const char *op, GError **error)
{
  MusterVariable *variable = muster_kernel_variable (k, 0);
  MusterTensor *value = muster_kernel_input (k, 1);
  MusterDType dtype = muster_tensor_dtype (value);
  gboolean same;
  const void *from;
  void *data;
  if (!muster_check_variable_dtype (variable, dtype, error))
    return FALSE;
  if (!muster_check_loop2 (loops, dtype, error))
    return FALSE;
  data = muster_variable_begin_rewrite (variable, &from);
  if (data == NULL) {
    muster_variable_set_not_updated (variable, error);
    return FALSE;
  }
  same = muster_same_shape (muster_variable_peek (variable), value);
  if (same) {
    muster_run_loop2 (loops, dtype, dtype, muster_tensor_n_elements (value),
                      from != NULL ? from : data, 1, muster_tensor_data (value), 1, data);
  } else {
    if (from != NULL)
      memcpy (data, from, muster_tensor_n_bytes (muster_variable_peek (variable)));
    g_autofree char *a = muster_shape_text (muster_variable_peek (variable));
    g_autofree char *b = muster_shape_text (value);
    muster_invalid (error, "%s%s lhs shape= %s rhs shape= %s", op,
                    muster_kernel_n_outputs (k) > 0
                        ? " requires shapes of both tensors to match."
                        : ": Cannot update variable with shape of another value.",
                    a, b);
  }
  muster_variable_end_update (variable);
  if (same)
    pass_reference (k);
  return same;
}

static gboolean
compute_assign_add (MusterKernel *k, GError **error)
{
  return update (k, muster_add_loops, "AssignAdd", error);
}

static gboolean
compute_assign_sub (MusterKernel *k, GError **error)
{
  return update (k, muster_sub_loops, "AssignSub", error);
}

static gboolean
compute_read_variable (MusterKernel *k, GError **error)
{
  MusterVariable *variable = muster_kernel_variable (k, 0);
  g_autoptr (MusterTensor) value = muster_variable_read (variable);
  if (value == NULL)
    return muster_kernel_fail_uninitialized (k, 0, error);
  if (!muster_check_variable_dtype (variable, muster_kernel_output_dtype (k, 0), error))
    return FALSE;
  muster_kernel_set_output (k, 0, g_steal_pointer (&value));
  return TRUE;
}

static gboolean
compute_variable_shape (MusterKernel *k, GError **error)
{
  g_autoptr (MusterTensor) value = read_resource (k, 0, error);
  MusterTensor *out;
  gint64 n;
  if (value == NULL)
    return FALSE;
  n = muster_tensor_n_dims (value);
  out = muster_kernel_output (k, 0, 1, &n, error);
  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; i < n; i++)
    muster_put_int (out, i, muster_tensor_dims (value)[i]);
  return TRUE;
}

static gboolean
compute_destroy (MusterKernel *k, GError **error)
{
  const gboolean must_exist = !muster_kernel_attr_bool (k, "ignore_lookup_error", TRUE);
  if (muster_kernel_has_resource (k, 0))
    return muster_kernel_destroy_resource (k, 0, must_exist, error);
  MusterVariable *variable = muster_kernel_variable (k, 0);
  if (!muster_variable_is_initialized (variable) && must_exist) {
    return muster_fail (error, MUSTER_ERROR_NOT_FOUND, "Resource %s/%s/<unknown> does not exist.",
                        muster_variable_container (variable), muster_variable_name (variable));
  }
  muster_variable_assign (variable, NULL);
  return TRUE;
}

static gboolean
compute_is_initialized (MusterKernel *k, GError **error)
{
  MusterTensor *out = muster_kernel_output (k, 0, 0, NULL, error);
  if (out == NULL)
    return FALSE;
  *(guint8 *)muster_tensor_data_mutable (out) =
      muster_variable_is_initialized (muster_kernel_variable (k, 0)) != 0;
  return TRUE;
}

/* Increments a value below the limit; returns the previous value. */
static gboolean
count_up (gint64 *value, gint64 limit, GError **error)
{
  if (*value < limit) {
    (*value)++;
    return TRUE;
  }
  return muster_fail (error, MUSTER_ERROR_OUT_OF_RANGE, "Reached limit of %" G_GINT64_FORMAT,
                      limit);
}

static gboolean
compute_count_up_to (MusterKernel *k, GError **error)
{
  MusterVariable *variable = muster_kernel_variable (k, 0);
  MusterDType dtype = muster_kernel_output_dtype (k, 0);
  gint64 limit = muster_kernel_attr_int (k, "limit", 0), value, before;
  gboolean counted;
  MusterTensor *out;
  void *data;
  if (!muster_check_variable_dtype (variable, dtype, error))
    return FALSE;
  data = muster_variable_begin_update (variable);
  if (data == NULL) {
    muster_variable_set_not_updated (variable, error);
    return FALSE;
  }
  if (muster_tensor_n_elements (muster_variable_peek (variable)) != 1) {
    muster_variable_end_update (variable);
    return muster_invalid (error, "input is not a scalar");
  }
  value = before = muster_int_at (muster_variable_peek (variable), 0);
  counted = count_up (&value, limit, error);
  if (dtype == MUSTER_INT64)
    *(gint64 *)data = value;
  else
    *(gint32 *)data = (gint32)value;
  muster_variable_end_update (variable);
  if (!counted)
    return FALSE;
  out = muster_kernel_output (k, 0, 0, NULL, error);
  if (out == NULL)
    return FALSE;
  muster_put_int (out, 0, before);
  return TRUE;
}

static gboolean
compute_resource_gather (MusterKernel *k, GError **error)
{
  g_autoptr (MusterTensor) value = read_resource (k, 0, error);
  gint64 batch = muster_kernel_attr_int (k, "batch_dims", 0);
  if (value == NULL || !muster_check_variable_dtype (muster_kernel_variable (k, 0),
                                                     muster_kernel_output_dtype (k, 0), error))
    return FALSE;
  if (muster_tensor_n_dims (value) < 1)
    return muster_invalid (error, "params must be at least 1 dimensional");
  if (batch < 0 || batch >= muster_tensor_n_dims (value))
    return muster_invalid (error, "batch_dims (%" G_GINT64_FORMAT ") must be in [0, %d)", batch,
                           muster_tensor_n_dims (value));
  return muster_gather_batched (k, value, muster_kernel_input (k, 1), (int)batch, batch, error);
}

/* Scatter ops run a loop over each row that is selected by an index; without a loop (NULL) the row
 * is assigned. */

/* One update for all rows (a scalar), or one for each index. */
static gboolean
check_updates (MusterTensor *value, MusterTensor *indices, MusterTensor *updates, GError **error)
{
  int n_index = muster_tensor_n_dims (indices), n = muster_tensor_n_dims (value);
  gboolean fits = muster_tensor_n_dims (updates) == n_index + n - 1;
  g_autofree char *a = NULL, *b = NULL, *c = NULL;

  if (n < 1)
    return muster_invalid (error, "params must be at least 1-D");
  if (muster_tensor_n_dims (updates) == 0)
    return TRUE;
  for (int i = 0; fits && i < muster_tensor_n_dims (updates); i++)
    fits = muster_tensor_dims (updates)[i] == (i < n_index
                                                   ? muster_tensor_dims (indices)[i]
                                                   : muster_tensor_dims (value)[i - n_index + 1]);
  if (fits)
    return TRUE;
  a = muster_shape_text (updates);
  b = muster_shape_text (indices);
  c = muster_shape_text (value);
  return muster_invalid (error,
                         "Must have updates.shape = indices.shape + params.shape[1:] or "
                         "updates.shape = [], got updates.shape %s, indices.shape %s, params.shape "
                         "%s",
                         a, b, c);
}

static gboolean
scatter_rows (MusterTensor *value, guint8 *data, MusterTensor *indices, MusterTensor *updates,
              const MusterLoop2 *loops, GError **error)
{
  gint64 rows = muster_tensor_dims (value)[0], n = muster_tensor_n_elements (indices);
  MusterDType dtype = muster_tensor_dtype (value);
  gint64 step = muster_tensor_n_dims (updates) == 0 &&
                        muster_tensor_n_dims (value) + muster_tensor_n_dims (indices) > 1
                    ? 0
                    : 1;
  gint64 run = rows == 0 ? 0 : muster_tensor_n_elements (value) / rows;
  const MusterElements elements = muster_elements (updates);
  gsize size = elements.size;
  const guint8 *from = elements.data;
  for (gint64 i = 0; i < n; i++)
    if (!muster_check_index (muster_int_at (indices, i), rows, i, error))
      return FALSE;
  for (gint64 i = 0; i < n && run > 0; i++) {
    guint8 *row = data + muster_int_at (indices, i) * run * (gint64)size;
    const guint8 *change = from + i * step * run * (gint64)size;
    if (loops != NULL)
      muster_run_loop2 (loops, dtype, dtype, run, row, 1, change, step, row);
    else if (step == 1)
      memcpy (row, change, (gsize)run * size);
    else
      for (gint64 j = 0; j < run; j++)
        memcpy (row + j * (gint64)size, change, size);
  }
  return TRUE;
}

static gboolean
scatter_strings (MusterTensor *value, guint8 *strings, gpointer user_data, GError **error)
{
  MusterKernel *k = user_data;
  MusterTensor *indices = muster_kernel_input (k, 1), *updates = muster_kernel_input (k, 2);
  return check_updates (value, indices, updates, error) &&
         scatter_rows (value, strings, indices, updates, NULL, error);
}

static gboolean
scatter (MusterKernel *k, const MusterLoop2 *loops, GError **error)
{
  MusterVariable *variable = muster_kernel_variable (k, 0);
  MusterTensor *indices = muster_kernel_input (k, 1), *updates = muster_kernel_input (k, 2);
  MusterDType dtype = muster_tensor_dtype (updates);
  gboolean done;
  void *data;
  if (!muster_check_variable_dtype (variable, dtype, error))
    return FALSE;
  if (loops != NULL && !muster_check_loop2 (loops, dtype, error))
    return FALSE;
  if (loops == muster_div_loops && muster_has_zero_divisor (updates))
    return muster_invalid (error, "Integer division by zero");
  if (dtype == MUSTER_STRING) {
    done = muster_change_strings (k, variable, scatter_strings, k, error);
    if (done)
      pass_reference (k);
    return done;
  }
  data = muster_variable_begin_update (variable);
  if (data == NULL) {
    muster_variable_set_not_updated (variable, error);
    return FALSE;
  }
  done = check_updates (muster_variable_peek (variable), indices, updates, error) &&
         scatter_rows (muster_variable_peek (variable), data, indices, updates, loops, error);
  muster_variable_end_update (variable);
  if (done)
    pass_reference (k);
  return done;
}

#define SCATTER(name, loops)                                                                       \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    return scatter (k, loops, error);                                                              \
  }
SCATTER (compute_scatter_add, muster_add_loops)
SCATTER (compute_scatter_sub, muster_sub_loops)
SCATTER (compute_scatter_mul, muster_mul_loops)
SCATTER (compute_scatter_div, muster_div_loops)
SCATTER (compute_scatter_min, muster_min_loops)
SCATTER (compute_scatter_max, muster_max_loops)
SCATTER (compute_scatter_update, NULL)

#define S        MUSTER_OP_STATEFUL
#define R        MUSTER_OP_READER
#define ON_REF   "ref:&T, value:T -> output_ref:&T"
#define ON_VAR   "resource:resource, value:dtype ->"
#define REF_ROWS "ref:&T, indices:Tindices, updates:T -> output_ref:&T"
#define VAR_ROWS "resource:resource, indices:Tindices, updates:dtype ->"
#define REF_T    "T:number Tindices:int32|int64"
#define VAR_T    "dtype:number Tindices:int32|int64"

const MusterOp muster_state_ops[] = {
    {"Assign", ON_REF, "T:any validate_shape", compute_assign, S | MUSTER_OP_UNINITIALIZED},
    {"AssignAdd", ON_REF, "T:number", compute_assign_add, S},
    {"AssignSub", ON_REF, "T:number", compute_assign_sub, S},
    {"AssignVariableOp", ON_VAR, "dtype:any validate_shape", compute_assign_variable, S},
    {"AssignAddVariableOp", ON_VAR, "dtype:number", compute_assign_add, S},
    {"AssignSubVariableOp", ON_VAR, "dtype:number", compute_assign_sub, S},
    {"ReadVariableOp", "resource:resource -> value:dtype", "dtype:any", compute_read_variable, R},
    {"VariableShape", "input:resource -> output:out_type", "out_type:int32|int64",
     compute_variable_shape, R},
    {"DestroyResourceOp", "resource:resource ->", "ignore_lookup_error", compute_destroy,
     S | MUSTER_OP_RESOURCE},
    {"IsVariableInitialized", "ref:&dtype -> is_initialized:bool", "dtype:any",
     compute_is_initialized, R | MUSTER_OP_UNINITIALIZED},
    {"VarIsInitializedOp", "resource:resource -> is_initialized:bool", "", compute_is_initialized,
     R},
    {"CountUpTo", "ref:&T -> output:T", "T:int32|int64 limit", compute_count_up_to, S},
    {"ResourceCountUpTo", "resource:resource -> output:T", "T:int32|int64 limit",
     compute_count_up_to, S},
    {"ResourceGather", "resource:resource, indices:Tindices -> output:dtype",
     "dtype:any Tindices:int32|int64 batch_dims", compute_resource_gather, R},
    {"ScatterAdd", REF_ROWS, REF_T, compute_scatter_add, S},
    {"ScatterSub", REF_ROWS, REF_T, compute_scatter_sub, S},
    {"ScatterMul", REF_ROWS, REF_T, compute_scatter_mul, S},
    {"ScatterDiv", REF_ROWS, REF_T, compute_scatter_div, S},
    {"ScatterMin", REF_ROWS, REF_T, compute_scatter_min, S},
    {"ScatterMax", REF_ROWS, REF_T, compute_scatter_max, S},
    {"ScatterUpdate", REF_ROWS, "T:any Tindices:int32|int64", compute_scatter_update, S},
    {"ResourceScatterAdd", VAR_ROWS, VAR_T, compute_scatter_add, S},
    {"ResourceScatterSub", VAR_ROWS, VAR_T, compute_scatter_sub, S},
    {"ResourceScatterMul", VAR_ROWS, VAR_T, compute_scatter_mul, S},
    {"ResourceScatterDiv", VAR_ROWS, VAR_T, compute_scatter_div, S},
    {"ResourceScatterMin", VAR_ROWS, VAR_T, compute_scatter_min, S},
    {"ResourceScatterMax", VAR_ROWS, VAR_T, compute_scatter_max, S},
    {"ResourceScatterUpdate", VAR_ROWS, "dtype:any Tindices:int32|int64", compute_scatter_update,
     S},
    {NULL, NULL, NULL, NULL, 0},
};
