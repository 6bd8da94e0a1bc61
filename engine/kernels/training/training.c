// SPDX-License-Identifier: Apache-2.0
/* Optimizers: a variable and its slots updated in place from a gradient, all locked at once, with
 * the formulas of TensorFlow's CPU kernels. The reference and the resource op of a rule are one
 * kernel. */
#include "engine/kernels/training/training.h"
#include "engine/kernels/training/training_op_tables.h"

#include "engine/run/parallel.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <string.h>

/* Loops over elements are faster with -O3 than with the default -O2. */
#pragma GCC optimize("O3")

/* Elements in a block: one of each slot and of the gradient fit into the L1 cache. */
#define BLOCK 1024
/* Copies of at least this many bytes bypass the cache: with those of the other variables, they
 * wouldn't fit. */
#define STREAM_FROM ((gsize)1 << 20)
/* Of the cache, in bytes. */
#define LINE 64

static gboolean
read_scalars (MusterKernel *k, const MusterOptimizer *o, int n_tensors, MusterUpdate *u,
              GError **error)
{
  int n = 0;
  for (int i = o->n_slots; i < o->n_slots + o->n_scalars + n_tensors; i++) {
    MusterTensor *x = muster_kernel_input (k, i);
    if (i >= o->gradient && i < o->gradient + n_tensors)
      continue;
    if (muster_tensor_n_dims (x) != 0) {
      g_autofree char *shape = muster_shape_text (x);
      return muster_invalid (error, "input %d is not a scalar: %s", i, shape);
    }
    u->scalars[n++] = muster_kernel_input_double (k, i);
  }
  return TRUE;
}

gboolean
muster_update_begin (MusterKernel *k, const MusterOptimizer *o, int n_tensors, MusterUpdate *u,
                     GError **error)
{
  MusterDType dtype = muster_tensor_dtype (muster_kernel_input (k, o->gradient));
  if (!read_scalars (k, o, n_tensors, u, error))
    return FALSE;
  for (int i = 0; i < o->n_slots; i++) {
    u->variables[i] = muster_kernel_variable (k, i);
    if (!muster_check_variable_dtype (u->variables[i], dtype, error))
      return FALSE;
    for (int j = 0; j < i; j++)
      if (u->variables[i] == u->variables[j])
        return muster_invalid (error, "%s and %s are the same variable '%s'", o->names[j],
                               o->names[i], muster_variable_name (u->variables[i]));
  }
  return TRUE;
}

gboolean
muster_update_fail (const MusterOptimizer *o, const MusterUpdate *u, GError **error)
{
  for (int i = 0; i < o->n_slots; i++)
    if (!muster_variable_is_initialized (u->variables[i])) {
      muster_variable_set_invalid (u->variables[i], error);
      return FALSE;
    }
  if (muster_dtype_size (muster_variable_dtype (u->variables[0])) == 0)
    return muster_invalid (error, "A slot of '%s' can't be updated in place",
                           muster_variable_name (u->variables[0]));
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "not enough memory to update variable '%s': a value of it is in use, by a "
                      "snapshot or a fetch, and must be copied; raise --max-memory",
                      muster_variable_name (u->variables[0]));
}

static gboolean
check_shape (MusterTensor *var, MusterTensor *other, const char *name, GError **error)
{
  g_autofree char *a = NULL, *b = NULL;

  if (muster_same_shape (var, other))
    return TRUE;
  a = muster_shape_text (var);
  b = muster_shape_text (other);
  return muster_invalid (error, "var and %s do not have the same shape%s %s", name, a, b);
}

gboolean
muster_update_check_slots (const MusterOptimizer *o, const MusterUpdate *u, GError **error)
{
  MusterTensor *var = muster_variable_peek (u->variables[0]);
  for (int i = 1; i < o->n_slots; i++)
    if (!check_shape (var, muster_variable_peek (u->variables[i]), o->names[i], error))
      return FALSE;
  return TRUE;
}

gboolean
muster_update_flag (MusterKernel *k, const MusterOptimizer *o)
{
  return o->flag != NULL && muster_kernel_attr_bool (k, o->flag, o->flag_default);
}

gboolean
muster_update_end (MusterKernel *k, const MusterOptimizer *o, MusterUpdate *u, gboolean is_done)
{
  muster_variables_end_update (u->variables, o->n_slots);
  if (is_done && muster_kernel_n_outputs (k) > 0)
    muster_kernel_forward_ref (k, 0, 0);
  return is_done;
}

/* half and bfloat16: the slots as floats, and back. */
static gboolean
apply_narrow (MusterKernel *k, const MusterOptimizer *o, const MusterUpdate *u, MusterDType dtype,
              gint64 n, const void *gradient, gboolean flag, GError **error)
{
  g_autofree float *wide =
      muster_kernel_alloc (k, n, (gsize)(o->n_slots + 1) * sizeof (float), error);
  void *slots[MUSTER_MAX_SLOTS];

  if (wide == NULL)
    return FALSE;
  for (int i = 0; i < o->n_slots; i++) {
    slots[i] = wide + (gsize)n * (i + 1);
    muster_widen (dtype, u->data[i], n, slots[i]);
  }
  muster_widen (dtype, gradient, n, wide);
  o->rules[0](n, slots, wide, u->scalars, flag);
  for (int i = 0; i < o->n_slots; i++)
    muster_narrow (dtype, slots[i], n, u->data[i]);
  return TRUE;
}

/* The blocks being updated, one of each slot. */
typedef struct {
  _Alignas(LINE) guint8 bytes[MUSTER_MAX_SLOTS][BLOCK * sizeof (double)];
} Blocks;

/* Sets the pointers for the rule: to the slots in place, first copied if necessary, or to copies in
 * blocks (nullable). */
static void
begin_block (const MusterOptimizer *o, const MusterUpdate *u, Blocks *blocks, gsize start,
             gsize size, void **slots)
{
  for (int i = 0; i < o->n_slots; i++) {
    const gboolean is_copied = u->from[i] != NULL;
    slots[i] = is_copied && blocks != NULL ? blocks->bytes[i] : (guint8 *)u->data[i] + start;
    if (is_copied)
      memcpy (slots[i], (const guint8 *)u->from[i] + start, size);
  }
}

#ifdef __x86_64__
/* Writes past the cache: lines that are overwritten completely aren't read from memory first. */
static void
stream_in_quarters (void *to, const void *from, gsize size)
{
  const __m128i *in = from;
  __m128i *out = to;
  for (gsize i = 0; i < size / sizeof *in; i++)
    _mm_stream_si128 (&out[i], _mm_load_si128 (&in[i]));
}

/* A line with each instruction: its parts needn't be gathered, which takes a tenth longer. */
__attribute__ ((target ("avx512f"))) static void
stream_lines (void *to, const void *from, gsize size)
{
  const __m512i *in = from;
  __m512i *out = to;
  for (gsize i = 0; i < size / sizeof *in; i++)
    _mm512_stream_si512 (&out[i], _mm512_load_si512 (&in[i]));
}

static void
stream (void *to, const void *from, gsize size)
{
  const gsize done = size / LINE * LINE;
  (__builtin_cpu_supports ("avx512f") ? stream_lines : stream_in_quarters) (to, from, done);
  memcpy ((guint8 *)to + done, (const guint8 *)from + done, size - done);
}

static void
end_streams (void)
{
  _mm_sfence (); /* before other threads can see the value */
}
#else
static void
stream (void *to, const void *from, gsize size)
{
  memcpy (to, from, size);
}

static void
end_streams (void)
{
}
#endif

static void
end_block (const MusterOptimizer *o, const MusterUpdate *u, const Blocks *blocks, gsize start,
           gsize size)
{
  for (int i = 0; i < o->n_slots; i++)
    if (u->from[i] != NULL)
      stream ((guint8 *)u->data[i] + start, blocks->bytes[i], size);
}

static gboolean
copies (const MusterOptimizer *o, const MusterUpdate *u)
{
  for (int i = 0; i < o->n_slots; i++)
    if (u->from[i] != NULL)
      return TRUE;
  return FALSE;
}

/* A rule over all elements of the slots. */
typedef struct {
  const MusterOptimizer *optimizer;
  const MusterUpdate *update;
  MusterRule rule;
  gsize size;   /* bytes of an element */
  gint64 block; /* elements at a time */
  gboolean streams;
  const guint8 *gradient;
  gboolean flag;
} Rewrite;

static void
rewrite_piece (gint64 begin, gint64 end, gpointer data)
{
  const Rewrite *self = data;
  Blocks buffers, *blocks = self->streams ? &buffers : NULL;
  for (gint64 start = begin; start < end; start += self->block) {
    const gint64 count = MIN (self->block, end - start);
    const gsize at = (gsize)start * self->size, size = (gsize)count * self->size;
    void *slots[MUSTER_MAX_SLOTS];
    begin_block (self->optimizer, self->update, blocks, at, size, slots);
    self->rule (count, slots, self->gradient + at, self->update->scalars, self->flag);
    if (blocks != NULL)
      end_block (self->optimizer, self->update, blocks, at, size);
  }
  if (blocks != NULL)
    end_streams ();
}

/* If a snapshot references the values, processes them block by block: a block is copied into the
 * cache, updated there and written out, past the cache if the variable is large. */
static void
apply_wide (const MusterOptimizer *o, const MusterUpdate *u, MusterDType dtype, gint64 n,
            const void *gradient, gboolean flag)
{
  const gsize size = muster_dtype_size (dtype);
  const gint64 block = copies (o, u) ? BLOCK : MUSTER_PARALLEL_PIECE;
  Rewrite rewrite = {.optimizer = o,
                     .update = u,
                     .rule = o->rules[dtype == MUSTER_DOUBLE],
                     .size = size,
                     .block = block,
                     .streams = block < n && copies (o, u) && (gsize)n * size >= STREAM_FROM,
                     .gradient = gradient,
                     .flag = flag};
  muster_parallel_for (n, MUSTER_PARALLEL_PIECE, rewrite_piece, &rewrite);
}

/* Copies all slots without an update. Their sizes may differ. */
static void
copy_all (const MusterOptimizer *o, const MusterUpdate *u)
{
  for (int i = 0; i < o->n_slots; i++)
    if (u->from[i] != NULL)
      memcpy (u->data[i], u->from[i],
              muster_tensor_n_bytes (muster_variable_peek (u->variables[i])));
}

static gboolean
apply (MusterKernel *k, const MusterOptimizer *o, GError **error)
{
  MusterTensor *gradient = muster_kernel_input (k, o->gradient);
  MusterDType dtype = muster_tensor_dtype (gradient);
  gint64 n = muster_tensor_n_elements (gradient);
  gboolean flag = muster_update_flag (k, o), fits;
  MusterUpdate u;
  if (!muster_update_begin (k, o, 1, &u, error))
    return FALSE;
  if (!muster_variables_begin_rewrite (u.variables, o->n_slots, u.data, u.from))
    return muster_update_fail (o, &u, error);
  fits = muster_update_check_slots (o, &u, error) &&
         check_shape (muster_variable_peek (u.variables[0]), gradient, "grad", error);
  if (!fits || !muster_dtype_is_wide (dtype))
    copy_all (o, &u);
  if (fits && muster_dtype_is_wide (dtype))
    apply_wide (o, &u, dtype, n, muster_tensor_data (gradient), flag);
  else if (fits)
    fits = apply_narrow (k, o, &u, dtype, n, muster_tensor_data (gradient), flag, error);
  return muster_update_end (k, o, &u, fits);
}

MUSTER_UPDATE_KERNEL (compute_descent, apply, muster_optimizer_descent)
MUSTER_UPDATE_KERNEL (compute_momentum, apply, muster_optimizer_momentum)
MUSTER_UPDATE_KERNEL (compute_keras_momentum, apply, muster_optimizer_keras_momentum)
MUSTER_UPDATE_KERNEL (compute_adagrad, apply, muster_optimizer_adagrad)
MUSTER_UPDATE_KERNEL (compute_adagrad_v2, apply, muster_optimizer_adagrad_v2)
MUSTER_UPDATE_KERNEL (compute_adagrad_da, apply, muster_optimizer_adagrad_da)
MUSTER_UPDATE_KERNEL (compute_proximal_descent, apply, muster_optimizer_proximal_descent)
MUSTER_UPDATE_KERNEL (compute_proximal_adagrad, apply, muster_optimizer_proximal_adagrad)
MUSTER_UPDATE_KERNEL (compute_add_sign, apply, muster_optimizer_add_sign)
MUSTER_UPDATE_KERNEL (compute_power_sign, apply, muster_optimizer_power_sign)
MUSTER_UPDATE_KERNEL (compute_amsgrad, apply, muster_optimizer_amsgrad)
MUSTER_UPDATE_KERNEL (compute_adadelta, apply, muster_optimizer_adadelta)
MUSTER_UPDATE_KERNEL (compute_adam, apply, muster_optimizer_adam)
MUSTER_UPDATE_KERNEL (compute_ada_max, apply, muster_optimizer_ada_max)
MUSTER_UPDATE_KERNEL (compute_rms_prop, apply, muster_optimizer_rms_prop)
MUSTER_UPDATE_KERNEL (compute_centered_rms_prop, apply, muster_optimizer_centered_rms_prop)
MUSTER_UPDATE_KERNEL (compute_ftrl, apply, muster_optimizer_ftrl)
MUSTER_UPDATE_KERNEL (compute_ftrl_v2, apply, muster_optimizer_ftrl_v2)

/* clang-format off */
/* Both kinds of an op: SLOTS (S) writes its variables with type S, REST are the other inputs. */
#define BOTH_KINDS(name, SLOTS, rest, attrs, kernel)                                               \
  {"Apply" name, SLOTS ("&T") rest " -> out:&T", "T:float " attrs, kernel, MUSTER_OP_STATEFUL},    \
  ON_RESOURCE (name, SLOTS, rest, attrs, kernel)
#define ON_RESOURCE(name, SLOTS, rest, attrs, kernel)                                              \
  {                                                                                                \
    "ResourceApply" name, SLOTS ("resource") rest " ->", "T:float " attrs, kernel,                 \
    MUSTER_OP_STATEFUL                                                                             \
  }

const MusterOp muster_training_ops[] = {
  BOTH_KINDS ("GradientDescent", VAR, "alpha:T, delta:T", "", compute_descent),
  BOTH_KINDS ("Momentum", ACCUM, "lr:T, grad:T, momentum:T", "use_nesterov", compute_momentum),
  ON_RESOURCE ("KerasMomentum", ACCUM, "lr:T, grad:T, momentum:T", "use_nesterov",
               compute_keras_momentum),
  BOTH_KINDS ("Adagrad", ACCUM, "lr:T, grad:T", "update_slots", compute_adagrad),
  BOTH_KINDS ("AdagradV2", ACCUM, "lr:T, epsilon:T, grad:T", "update_slots", compute_adagrad_v2),
  BOTH_KINDS ("Adadelta", ACCUM_UPDATE, "lr:T, rho:T, epsilon:T, grad:T", "", compute_adadelta),
  BOTH_KINDS ("Adam", M_V,
              "beta1_power:T, beta2_power:T, lr:T, beta1:T, beta2:T, epsilon:T, grad:T",
              "use_nesterov", compute_adam),
  BOTH_KINDS ("AdaMax", M_V, "beta1_power:T, lr:T, beta1:T, beta2:T, epsilon:T, grad:T", "",
              compute_ada_max),
  BOTH_KINDS ("RMSProp", MS_MOM, "lr:T, rho:T, momentum:T, epsilon:T, grad:T", "", compute_rms_prop),
  BOTH_KINDS ("CenteredRMSProp", MG_MS_MOM, "lr:T, rho:T, momentum:T, epsilon:T, grad:T", "",
              compute_centered_rms_prop),
  BOTH_KINDS ("Ftrl", LINEAR, "grad:T, lr:T, l1:T, l2:T, lr_power:T", "multiply_linear_by_lr",
              compute_ftrl),
  BOTH_KINDS ("FtrlV2", LINEAR, "grad:T, lr:T, l1:T, l2:T, l2_shrinkage:T, lr_power:T",
              "multiply_linear_by_lr", compute_ftrl_v2),
  BOTH_KINDS ("AdagradDA", SUMS, "grad:T, lr:T, l1:T, l2:T, global_step:int64", "",
              compute_adagrad_da),
  BOTH_KINDS ("ProximalGradientDescent", VAR, "alpha:T, l1:T, l2:T, delta:T", "", compute_proximal_descent),
  BOTH_KINDS ("ProximalAdagrad", ACCUM, "lr:T, l1:T, l2:T, grad:T", "", compute_proximal_adagrad),
  BOTH_KINDS ("AddSign", M, "lr:T, alpha:T, sign_decay:T, beta:T, grad:T", "", compute_add_sign),
  BOTH_KINDS ("PowerSign", M, "lr:T, logbase:T, sign_decay:T, beta:T, grad:T", "", compute_power_sign),
  ON_RESOURCE ("AdamWithAmsgrad", M_V_VHAT,
               "beta1_power:T, beta2_power:T, lr:T, beta1:T, beta2:T, epsilon:T, grad:T", "",
               compute_amsgrad),
  {NULL, NULL, NULL, NULL, 0},
};
/* clang-format on */
