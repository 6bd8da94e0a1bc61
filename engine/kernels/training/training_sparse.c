// SPDX-License-Identifier: Apache-2.0
/* Optimizers with a gradient for some rows of the variable: embeddings. The formulas are those of
 * training_rules.c, over one row for each index, in order, so that a row may come more than once.
 */
#include "engine/kernels/training/training.h"
#include "engine/kernels/training/training_op_tables.h"
#include "engine/run/parallel.h"

#include <string.h>

/* Each reads all indices. */
#define MAX_PARTS 16
/* Of a row. */
#define MAX_PREFETCH 512
#define CACHE_LINE   64

/* With the locks held: checks that the gradient has a row of the variable for each index. */
static gboolean
check_rows (MusterTensor *var, MusterTensor *gradient, MusterTensor *indices, GError **error)
{
  int n = muster_tensor_n_dims (var);
  if (n < 1)
    return muster_invalid (error, "var must be at least 1 dimensional");
  if (muster_tensor_n_dims (indices) != 1)
    return muster_invalid (error, "indices must be one-dimensional");
  if (muster_tensor_n_dims (gradient) != n) {
    g_autofree char *a = muster_shape_text (var), *b = muster_shape_text (gradient);
    return muster_invalid (error, "var and grad must have the same rank: %s and %s", a, b);
  }
  for (int d = 1; d < n; d++)
    if (muster_tensor_dims (var)[d] != muster_tensor_dims (gradient)[d])
      return muster_invalid (error, "var and grad must match in dimension %d", d);
  if (muster_tensor_dims (gradient)[0] != muster_tensor_dims (indices)[0])
    return muster_invalid (error, "grad must be the same size as indices in the first dimension.");
  const MusterInts ints = muster_ints (indices);
  for (gint64 i = 0; i < muster_tensor_n_elements (indices); i++) {
    gint64 index = muster_ints_at (&ints, i);
    if (index < 0 || index >= muster_tensor_dims (var)[0])
      return muster_invalid (error,
                             "Index %" G_GINT64_FORMAT " at offset %" G_GINT64_FORMAT
                             " in indices is out of range",
                             index, i);
  }
  return TRUE;
}

/* A rule over rows of the slots. Part p of n_parts, a power of two, has the rows whose index modulo
 * n_parts is p: what comes more than once is in one part, where it stays in order. */
typedef struct {
  const MusterOptimizer *optimizer;
  const MusterUpdate *update;
  MusterRule rule;
  MusterInts indices;
  gint64 n_indices, row;
  gsize size; /* bytes of a row */
  const guint8 *gradient;
  gboolean flag;
  gint64 n_parts;
} Rows;

/* The slots' rows for index i are on their way to the cache when they are needed. */
static inline void
prefetch_rows (const Rows *self, gint64 index)
{
  for (int s = 0; s < self->optimizer->n_slots; s++) {
    const guint8 *at = (const guint8 *)self->update->data[s] + (gsize)index * self->size;
    for (gsize line = 0; line < MIN (self->size, MAX_PREFETCH); line += CACHE_LINE)
      __builtin_prefetch (at + line, 1);
  }
}

static void
apply_part (gint64 begin, gint64 end G_GNUC_UNUSED, gpointer data)
{
  const Rows *self = data;
  const gint64 mask = self->n_parts - 1, ahead = 4 * self->n_parts;
  for (gint64 i = 0; i < self->n_indices; i++) {
    const gint64 index = muster_ints_at (&self->indices, i);
    const gint64 later = muster_ints_at (&self->indices, MIN (i + ahead, self->n_indices - 1));
    void *slots[MUSTER_MAX_SLOTS];
    if ((later & mask) == begin)
      prefetch_rows (self, later);
    if ((index & mask) != begin)
      continue;
    for (int s = 0; s < self->optimizer->n_slots; s++)
      slots[s] = (guint8 *)self->update->data[s] + (gsize)index * self->size;
    self->rule (self->row, slots, self->gradient + (gsize)i * self->size, self->update->scalars,
                self->flag);
  }
}

static void
apply_wide_rows (const MusterOptimizer *o, const MusterUpdate *u, MusterTensor *gradient,
                 MusterTensor *indices, gint64 row, gboolean flag)
{
  const MusterDType dtype = muster_tensor_dtype (gradient);
  Rows rows = {.optimizer = o,
               .update = u,
               .rule = o->rules[dtype == MUSTER_DOUBLE],
               .indices = muster_ints (indices),
               .n_indices = muster_tensor_n_elements (indices),
               .row = row,
               .size = (gsize)row * muster_dtype_size (dtype),
               .gradient = muster_tensor_data (gradient),
               .flag = flag,
               .n_parts = 1};
  while (rows.n_parts < MAX_PARTS &&
         rows.n_parts * MUSTER_PARALLEL_PIECE < muster_tensor_n_elements (gradient))
    rows.n_parts *= 2;
  muster_parallel_for (rows.n_parts, 1, apply_part, &rows);
}

/* half and bfloat16: converts a row of each slot to floats and back. */
static gboolean
apply_narrow_rows (MusterKernel *k, const MusterOptimizer *o, const MusterUpdate *u,
                   MusterTensor *gradient, MusterTensor *indices, gint64 row, gboolean flag,
                   GError **error)
{
  const MusterDType dtype = muster_tensor_dtype (gradient);
  const gsize size = (gsize)row * muster_dtype_size (dtype);
  const guint8 *grad = muster_tensor_data (gradient);
  g_autofree float *wide =
      muster_kernel_alloc (k, row, (gsize)(o->n_slots + 1) * sizeof (float), error);
  void *slots[MUSTER_MAX_SLOTS];

  if (wide == NULL)
    return FALSE;
  for (int s = 0; s < o->n_slots; s++)
    slots[s] = wide + (gsize)row * (s + 1);
  for (gint64 i = 0; i < muster_tensor_n_elements (indices); i++) {
    const gsize at = (gsize)muster_int_at (indices, i) * size;
    for (int s = 0; s < o->n_slots; s++)
      muster_widen (dtype, (guint8 *)u->data[s] + at, row, slots[s]);
    muster_widen (dtype, grad + (gsize)i * size, row, wide);
    o->rules[0](row, slots, wide, u->scalars, flag);
    for (int s = 0; s < o->n_slots; s++)
      muster_narrow (dtype, slots[s], row, (guint8 *)u->data[s] + at);
  }
  return TRUE;
}

static gboolean
apply (MusterKernel *k, const MusterOptimizer *o, GError **error)
{
  MusterTensor *gradient = muster_kernel_input (k, o->gradient);
  MusterTensor *indices = muster_kernel_input (k, o->gradient + 1), *var;
  gboolean flag = muster_update_flag (k, o), fits;
  MusterUpdate u;
  if (!muster_update_begin (k, o, 2, &u, error))
    return FALSE;
  if (!muster_variables_begin_update (u.variables, o->n_slots, u.data))
    return muster_update_fail (o, &u, error);
  var = muster_variable_peek (u.variables[0]);
  fits = muster_update_check_slots (o, &u, error) && check_rows (var, gradient, indices, error);
  if (fits && muster_tensor_n_elements (gradient) > 0) {
    gint64 row = muster_dims_product (muster_tensor_dims (var), 1, muster_tensor_n_dims (var));
    if (muster_dtype_is_wide (muster_tensor_dtype (gradient)))
      apply_wide_rows (o, &u, gradient, indices, row, flag);
    else
      fits = apply_narrow_rows (k, o, &u, gradient, indices, row, flag, error);
  }
  return muster_update_end (k, o, &u, fits);
}

MUSTER_UPDATE_KERNEL (compute_momentum, apply, muster_optimizer_momentum)
MUSTER_UPDATE_KERNEL (compute_keras_momentum, apply, muster_optimizer_keras_momentum)
MUSTER_UPDATE_KERNEL (compute_adagrad, apply, muster_optimizer_adagrad)
MUSTER_UPDATE_KERNEL (compute_adagrad_v2, apply, muster_optimizer_adagrad_v2)
MUSTER_UPDATE_KERNEL (compute_adagrad_da, apply, muster_optimizer_adagrad_da)
MUSTER_UPDATE_KERNEL (compute_adadelta, apply, muster_optimizer_adadelta)
MUSTER_UPDATE_KERNEL (compute_rms_prop, apply, muster_optimizer_rms_prop)
MUSTER_UPDATE_KERNEL (compute_centered_rms_prop, apply, muster_optimizer_centered_rms_prop)
MUSTER_UPDATE_KERNEL (compute_ftrl, apply, muster_optimizer_ftrl)
MUSTER_UPDATE_KERNEL (compute_ftrl_v2, apply, muster_optimizer_ftrl_v2)
MUSTER_UPDATE_KERNEL (compute_proximal_descent, apply, muster_optimizer_proximal_descent)
MUSTER_UPDATE_KERNEL (compute_proximal_adagrad, apply, muster_optimizer_proximal_adagrad)

/* clang-format off */
#define ROWS  "grad:T, indices:Tindices"
#define TYPES "T:float Tindices:int32|int64 "
/* Both kinds of an op: SLOTS (S) writes its variables with type S, rest are the other inputs. */
#define BOTH_KINDS(name, SLOTS, rest, attrs, kernel)                                               \
  {"SparseApply" name, SLOTS ("&T") rest " -> out:&T", TYPES attrs, kernel, MUSTER_OP_STATEFUL},   \
  ON_RESOURCE (name, SLOTS, rest, attrs, kernel)
#define ON_RESOURCE(name, SLOTS, rest, attrs, kernel)                                              \
  {                                                                                                \
    "ResourceSparseApply" name, SLOTS ("resource") rest " ->", TYPES attrs, kernel,                \
    MUSTER_OP_STATEFUL                                                                             \
  }

const MusterOp muster_training_sparse_ops[] = {
  BOTH_KINDS ("Momentum", ACCUM, "lr:T, " ROWS ", momentum:T", "use_nesterov", compute_momentum),
  ON_RESOURCE ("KerasMomentum", ACCUM, "lr:T, " ROWS ", momentum:T", "use_nesterov",
               compute_keras_momentum),
  BOTH_KINDS ("Adagrad", ACCUM, "lr:T, " ROWS, "update_slots", compute_adagrad),
  BOTH_KINDS ("AdagradV2", ACCUM, "lr:T, epsilon:T, " ROWS, "update_slots", compute_adagrad_v2),
  BOTH_KINDS ("AdagradDA", SUMS, ROWS ", lr:T, l1:T, l2:T, global_step:int64", "",
              compute_adagrad_da),
  BOTH_KINDS ("Adadelta", ACCUM_UPDATE, "lr:T, rho:T, epsilon:T, " ROWS, "", compute_adadelta),
  BOTH_KINDS ("RMSProp", MS_MOM, "lr:T, rho:T, momentum:T, epsilon:T, " ROWS, "", compute_rms_prop),
  BOTH_KINDS ("CenteredRMSProp", MG_MS_MOM, "lr:T, rho:T, momentum:T, epsilon:T, " ROWS, "",
              compute_centered_rms_prop),
  BOTH_KINDS ("Ftrl", LINEAR, ROWS ", lr:T, l1:T, l2:T, lr_power:T", "multiply_linear_by_lr",
              compute_ftrl),
  BOTH_KINDS ("FtrlV2", LINEAR, ROWS ", lr:T, l1:T, l2:T, l2_shrinkage:T, lr_power:T",
              "multiply_linear_by_lr", compute_ftrl_v2),
  BOTH_KINDS ("ProximalGradientDescent", VAR, "alpha:T, l1:T, l2:T, " ROWS, "",
              compute_proximal_descent),
  BOTH_KINDS ("ProximalAdagrad", ACCUM, "lr:T, l1:T, l2:T, " ROWS, "", compute_proximal_adagrad),
  {NULL, NULL, NULL, NULL, 0},
};
/* clang-format on */
