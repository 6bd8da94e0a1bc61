// SPDX-License-Identifier: Apache-2.0
/* Optimizers: a variable and its slots updated in place from a gradient, all locked at once, with
 * the formulas of TensorFlow's CPU kernels. The reference and the resource op of a rule are one
 * kernel. */
#include "engine/kernels/state.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <string.h>
#include <tgmath.h>

/* Loops over elements: worth more than the room's -O2. */
#pragma GCC optimize("O3")

enum { MAX_SLOTS = 4, MAX_SCALARS = 8 };

/* Elements: a block of each slot and of the gradient fit into the first cache. */
#define BLOCK 1024
/* Bytes: a copy as large as that wouldn't stay in a cache anyway. */
#define STREAM_FROM ((gsize)8 << 20)

/* slots: the variable first. scalars: the other inputs but the gradient, in their order. */
typedef void (*Rule) (gint64 n, void *const *slots, const void *gradient, const double *scalars,
                      gboolean flag);

typedef struct {
  int n_slots, n_scalars;
  int gradient;     /* which input */
  Rule rules[2];    /* float, double */
  const char *flag; /* (nullable) a bool attribute that the rule knows */
  gboolean flag_default;
  const char *names[MAX_SLOTS]; /* of the slots, for errors */
} Optimizer;

#define RULE(name, suffix, T, ...)                                                                 \
  static void name##_##suffix (gint64 n, void *const *slots, const void *gradient,                 \
                               const double *scalars, gboolean flag G_GNUC_UNUSED)                 \
  {                                                                                                \
    typedef T type G_GNUC_UNUSED;                                                                  \
    T *var = slots[0];                                                                             \
    const T *grad = gradient;                                                                      \
    __VA_ARGS__                                                                                    \
  }
#define EACH                for (gint64 i = 0; i < n; i++)
#define RULES(name, ...)    RULE (name, f32, float, __VA_ARGS__) RULE (name, f64, double, __VA_ARGS__)
#define SLOT(name, index)   type *name = slots[index];
#define SCALAR(name, index) const type name = (type)scalars[index];

/* clang-format off */
RULES (descent,
  SCALAR (rate, 0)
  MUSTER_IVDEP EACH var[i] -= grad[i] * rate;
)

RULES (momentum,
  SLOT (accum, 1) SCALAR (rate, 0) SCALAR (momentum, 1)
  MUSTER_IVDEP EACH {
    const type a = accum[i] * momentum + grad[i];
    accum[i] = a;
    var[i] -= flag ? grad[i] * rate + a * momentum * rate : a * rate;
  }
)

RULES (keras_momentum,
  SLOT (accum, 1) SCALAR (rate, 0) SCALAR (momentum, 1)
  MUSTER_IVDEP EACH {
    const type a = accum[i] * momentum - grad[i] * rate;
    accum[i] = a;
    var[i] += flag ? a * momentum - grad[i] * rate : a;
  }
)

RULES (adagrad,
  SLOT (accum, 1) SCALAR (rate, 0)
  MUSTER_IVDEP EACH {
    const type a = flag ? accum[i] + grad[i] * grad[i] : accum[i];
    accum[i] = a;
    var[i] -= grad[i] * rate / sqrt (a);
  }
)

RULES (adagrad_v2,
  SLOT (accum, 1) SCALAR (rate, 0) SCALAR (epsilon, 1)
  MUSTER_IVDEP EACH {
    const type a = flag ? accum[i] + grad[i] * grad[i] : accum[i];
    accum[i] = a;
    var[i] -= grad[i] * rate / (sqrt (a) + epsilon);
  }
)

RULES (adadelta,
  SLOT (accum, 1) SLOT (accum_update, 2)
  SCALAR (rate, 0) SCALAR (rho, 1) SCALAR (epsilon, 2)
  MUSTER_IVDEP EACH {
    const type a = accum[i] * rho + grad[i] * grad[i] * (1 - rho);
    const type step = sqrt (accum_update[i] + epsilon) / sqrt (a + epsilon) * grad[i];
    accum[i] = a;
    accum_update[i] = accum_update[i] * rho + step * step * (1 - rho);
    var[i] -= step * rate;
  }
)

RULES (adam,
  SLOT (m, 1) SLOT (v, 2)
  SCALAR (beta1_power, 0) SCALAR (beta2_power, 1) SCALAR (rate, 2)
  SCALAR (beta1, 3) SCALAR (beta2, 4) SCALAR (epsilon, 5)
  const type alpha = rate * sqrt (1 - beta2_power) / (1 - beta1_power);
  MUSTER_IVDEP EACH {
    const type g = grad[i];
    const type new_m = m[i] + (g - m[i]) * (1 - beta1);
    const type new_v = v[i] + (g * g - v[i]) * (1 - beta2);
    m[i] = new_m;
    v[i] = new_v;
    var[i] -= (flag ? g * (1 - beta1) + beta1 * new_m : new_m) * alpha / (sqrt (new_v) + epsilon);
  }
)

RULES (ada_max,
  SLOT (m, 1) SLOT (v, 2)
  SCALAR (beta1_power, 0) SCALAR (rate, 1) SCALAR (beta1, 2) SCALAR (beta2, 3) SCALAR (epsilon, 4)
  MUSTER_IVDEP EACH {
    const type new_m = m[i] + (grad[i] - m[i]) * (1 - beta1);
    const type decayed = beta2 * v[i];
    const type size = fabs (grad[i]);
    const type new_v = decayed > size ? decayed : size;
    m[i] = new_m;
    v[i] = new_v;
    var[i] -= rate / (1 - beta1_power) * (new_m / (new_v + epsilon));
  }
)

RULES (rms_prop,
  SLOT (ms, 1) SLOT (mom, 2)
  SCALAR (rate, 0) SCALAR (rho, 1) SCALAR (momentum, 2) SCALAR (epsilon, 3)
  MUSTER_IVDEP EACH {
    const type new_ms = ms[i] + (grad[i] * grad[i] - ms[i]) * (1 - rho);
    const type new_mom = mom[i] * momentum + grad[i] * rate / sqrt (new_ms + epsilon);
    ms[i] = new_ms;
    mom[i] = new_mom;
    var[i] -= new_mom;
  }
)

RULES (centered_rms_prop,
  SLOT (mg, 1) SLOT (ms, 2) SLOT (mom, 3)
  SCALAR (rate, 0) SCALAR (rho, 1) SCALAR (momentum, 2) SCALAR (epsilon, 3)
  MUSTER_IVDEP EACH {
    const type new_ms = ms[i] + (grad[i] * grad[i] - ms[i]) * (1 - rho);
    const type new_mg = mg[i] + (grad[i] - mg[i]) * (1 - rho);
    const type denominator = new_ms - new_mg * new_mg + epsilon;
    const type new_mom = mom[i] * momentum + grad[i] * rate / sqrt (denominator);
    ms[i] = new_ms;
    mg[i] = new_mg;
    mom[i] = new_mom;
    var[i] -= new_mom;
  }
)

/* With multiply_linear_by_lr (flag) linear is kept multiplied by the rate, and so are l1 and l2. */
#define FTRL_BODY(SHRINKAGE, POWER)                                                                \
  SLOT (accum, 1) SLOT (linear, 2)                                                                 \
  SCALAR (rate, 0) SCALAR (l1, 1) SCALAR (l2, 2) SCALAR (power, POWER)                             \
  const type scale = flag ? rate : 1;                                                              \
  const type divisor = flag ? 1 : rate;                                                            \
  EACH {                                                                                           \
    const type g = grad[i], x = var[i];                                                            \
    const type new_accum = accum[i] + g * g;                                                       \
    const type old_root = power == (type)-0.5 ? sqrt (accum[i]) : pow (accum[i], -power);          \
    const type new_root = power == (type)-0.5 ? sqrt (new_accum) : pow (new_accum, -power);        \
    const type z = linear[i] + (SHRINKAGE) * scale - (new_root - old_root) / divisor * x;          \
    const type edge = l1 * scale;                                                                  \
    const type quadratic = new_root / divisor + 2 * l2 * scale;                                    \
    linear[i] = z;                                                                                 \
    accum[i] = new_accum;                                                                          \
    var[i] = fabs (z) > edge ? ((z > 0 ? edge : -edge) - z) / quadratic : 0;                       \
  }
RULES (ftrl, FTRL_BODY (g, 3))
RULES (ftrl_v2, SCALAR (shrinkage, 3) FTRL_BODY (g + 2 * shrinkage * x, 4))
/* clang-format on */

#define BOTH(name)                                                                                 \
  {                                                                                                \
    name##_f32, name##_f64                                                                         \
  }

/* One update under way. */
typedef struct {
  MusterVariable *variables[MAX_SLOTS];
  void *data[MAX_SLOTS];
  const void *from[MAX_SLOTS]; /* (nullable) what has to be copied there first */
  double scalars[MAX_SCALARS];
} Update;

static gboolean
read_scalars (MusterKernel *k, const Optimizer *o, Update *u, GError **error)
{
  int n = 0;

  for (int i = o->n_slots; i < o->n_slots + o->n_scalars + 1; i++) {
    MusterTensor *x = muster_kernel_input (k, i);
    if (i == o->gradient)
      continue;
    if (muster_tensor_n_dims (x) != 0) {
      g_autofree char *shape = muster_shape_text (x);
      return muster_invalid (error, "input %d is not a scalar: %s", i, shape);
    }
    u->scalars[n++] = muster_kernel_input_double (k, i);
  }
  return TRUE;
}

static gboolean
take_variables (MusterKernel *k, const Optimizer *o, Update *u, MusterDType dtype, GError **error)
{
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

/* Under the locks: all slots and the gradient have the variable's shape. */
static gboolean
check_shapes (const Optimizer *o, const Update *u, MusterTensor *gradient, GError **error)
{
  MusterTensor *var = muster_variable_peek (u->variables[0]);

  for (int i = 1; i <= o->n_slots; i++) {
    MusterTensor *other = i == o->n_slots ? gradient : muster_variable_peek (u->variables[i]);
    g_autofree char *a = NULL, *b = NULL;
    if (muster_same_shape (var, other))
      continue;
    a = muster_shape_text (var);
    b = muster_shape_text (other);
    return muster_invalid (error, "var and %s do not have the same shape%s %s",
                           i == o->n_slots ? "grad" : o->names[i], a, b);
  }
  return TRUE;
}

/* half and bfloat16: the slots as floats, and back. */
static void
apply_narrow (const Optimizer *o, const Update *u, MusterDType dtype, gint64 n,
              const void *gradient, gboolean flag)
{
  g_autofree float *wide = g_new (float, MAX ((gsize)n, 1) * (o->n_slots + 1));
  void *slots[MAX_SLOTS];

  for (int i = 0; i < o->n_slots; i++) {
    slots[i] = wide + (gsize)n * (i + 1);
    muster_widen (dtype, u->data[i], n, slots[i]);
  }
  muster_widen (dtype, gradient, n, wide);
  o->rules[0](n, slots, wide, u->scalars, flag);
  for (int i = 0; i < o->n_slots; i++)
    muster_narrow (dtype, slots[i], n, u->data[i]);
}

/* A block of each slot, while it is updated. */
typedef struct {
  _Alignas(64) guint8 bytes[MAX_SLOTS][BLOCK * sizeof (double)];
} Blocks;

/* Where the rule finds the slots: as they lie, or copied there or into blocks (nullable). */
static void
begin_block (const Optimizer *o, const Update *u, Blocks *blocks, gsize start, gsize size,
             void **slots)
{
  for (int i = 0; i < o->n_slots; i++) {
    const gboolean is_copied = u->from[i] != NULL;
    slots[i] = is_copied && blocks != NULL ? blocks->bytes[i] : (guint8 *)u->data[i] + start;
    if (is_copied)
      memcpy (slots[i], (const guint8 *)u->from[i] + start, size);
  }
}

#ifdef __SSE2__
/* Past the cache: what is overwritten whole isn't read from memory first. */
static void
stream (void *to, const void *from, gsize size)
{
  const __m128i *in = from;
  __m128i *out = to;
  for (gsize i = 0; i + 4 <= size / sizeof *in; i += 4)
    for (gsize j = i; j < i + 4; j++)
      _mm_stream_si128 (&out[j], _mm_load_si128 (&in[j]));
  const gsize done = size / (4 * sizeof *in) * (4 * sizeof *in);
  memcpy ((guint8 *)to + done, (const guint8 *)from + done, size - done);
}

static void
end_streams (void)
{
  _mm_sfence (); /* before anybody learns that it is there */
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
end_block (const Optimizer *o, const Update *u, const Blocks *blocks, gsize start, gsize size)
{
  for (int i = 0; i < o->n_slots; i++)
    if (u->from[i] != NULL)
      stream ((guint8 *)u->data[i] + start, blocks->bytes[i], size);
}

static gboolean
copies (const Optimizer *o, const Update *u)
{
  for (int i = 0; i < o->n_slots; i++)
    if (u->from[i] != NULL)
      return TRUE;
  return FALSE;
}

/* Block by block where a snapshot holds what is to be updated, so that each is copied into the
 * cache and updated there. A large variable's blocks go straight from there to memory. */
static void
apply_wide (const Optimizer *o, const Update *u, MusterDType dtype, gint64 n, const void *gradient,
            gboolean flag)
{
  const Rule rule = o->rules[dtype == MUSTER_DOUBLE];
  const gint64 block = copies (o, u) ? BLOCK : n;
  const gsize size = muster_dtype_size (dtype);
  Blocks buffers, *blocks = block < n && (gsize)n * size >= STREAM_FROM ? &buffers : NULL;

  for (gint64 start = 0; start < n; start += block) {
    const gint64 count = MIN (block, n - start);
    void *slots[MAX_SLOTS];
    begin_block (o, u, blocks, (gsize)start * size, (gsize)count * size, slots);
    rule (count, slots, (const char *)gradient + (gsize)start * size, u->scalars, flag);
    if (blocks != NULL)
      end_block (o, u, blocks, (gsize)start * size, (gsize)count * size);
  }
  if (blocks != NULL)
    end_streams ();
}

/* All of it: where nothing is to be updated after all, slots may differ in size. */
static void
copy_all (const Optimizer *o, const Update *u)
{
  for (int i = 0; i < o->n_slots; i++)
    if (u->from[i] != NULL)
      memcpy (u->data[i], u->from[i],
              muster_tensor_n_bytes (muster_variable_peek (u->variables[i])));
}

static gboolean
apply (MusterKernel *k, const Optimizer *o, GError **error)
{
  MusterTensor *gradient = muster_kernel_input (k, o->gradient);
  MusterDType dtype = muster_tensor_dtype (gradient);
  gint64 n = muster_tensor_n_elements (gradient);
  gboolean flag = o->flag != NULL ? muster_kernel_attr_bool (k, o->flag, o->flag_default) : FALSE;
  gboolean fits;
  Update u;

  if (!read_scalars (k, o, &u, error) || !take_variables (k, o, &u, dtype, error))
    return FALSE;
  if (!muster_variables_begin_rewrite (u.variables, o->n_slots, u.data, u.from)) {
    for (int i = 0; i < o->n_slots; i++)
      if (!muster_variable_is_initialized (u.variables[i])) {
        muster_variable_set_uninitialized (u.variables[i], error);
        return FALSE;
      }
    return muster_invalid (error, "A slot of '%s' can't be updated in place",
                           muster_variable_name (u.variables[0]));
  }
  fits = check_shapes (o, &u, gradient, error);
  if (!fits || !muster_dtype_is_wide (dtype))
    copy_all (o, &u);
  if (fits && muster_dtype_is_wide (dtype))
    apply_wide (o, &u, dtype, n, muster_tensor_data (gradient), flag);
  else if (fits)
    apply_narrow (o, &u, dtype, n, muster_tensor_data (gradient), flag);
  muster_variables_end_update (u.variables, o->n_slots);
  if (fits && muster_kernel_n_outputs (k) > 0)
    muster_kernel_forward_ref (k, 0, 0);
  return fits;
}

#define OPTIMIZER(name, ...)                                                                       \
  static gboolean compute_##name (MusterKernel *k, GError **error)                                 \
  {                                                                                                \
    static const Optimizer optimizer = {__VA_ARGS__};                                              \
    return apply (k, &optimizer, error);                                                           \
  }

OPTIMIZER (descent, 1, 1, 2, BOTH (descent), NULL, FALSE, {"var"})
OPTIMIZER (momentum, 2, 2, 3, BOTH (momentum), "use_nesterov", FALSE, {"var", "accum"})
OPTIMIZER (keras_momentum, 2, 2, 3, BOTH (keras_momentum), "use_nesterov", FALSE, {"var", "accum"})
OPTIMIZER (adagrad, 2, 1, 3, BOTH (adagrad), "update_slots", TRUE, {"var", "accum"})
OPTIMIZER (adagrad_v2, 2, 2, 4, BOTH (adagrad_v2), "update_slots", TRUE, {"var", "accum"})
OPTIMIZER (adadelta, 3, 3, 6, BOTH (adadelta), NULL, FALSE, {"var", "accum", "accum_update"})
OPTIMIZER (adam, 3, 6, 9, BOTH (adam), "use_nesterov", FALSE, {"var", "m", "v"})
OPTIMIZER (ada_max, 3, 5, 8, BOTH (ada_max), NULL, FALSE, {"var", "m", "v"})
OPTIMIZER (rms_prop, 3, 4, 7, BOTH (rms_prop), NULL, FALSE, {"var", "ms", "mom"})
OPTIMIZER (centered_rms_prop, 4, 4, 8, BOTH (centered_rms_prop), NULL, FALSE,
           {"var", "mg", "ms", "mom"})
OPTIMIZER (ftrl, 3, 4, 3, BOTH (ftrl), "multiply_linear_by_lr", FALSE, {"var", "accum", "linear"})
OPTIMIZER (ftrl_v2, 3, 5, 3, BOTH (ftrl_v2), "multiply_linear_by_lr", FALSE,
           {"var", "accum", "linear"})

/* Both kinds of an op: SLOTS (S) writes its variables with type S, REST are the other inputs. */
#define BOTH_KINDS(name, SLOTS, rest, kernel)                                                      \
  {"Apply" name, SLOTS ("&T") rest " -> out:&T", "T:float", kernel, MUSTER_OP_STATEFUL},           \
  {                                                                                                \
    "ResourceApply" name, SLOTS ("resource") rest " ->", "T:float", kernel, MUSTER_OP_STATEFUL     \
  }
#define VAR(S)          "var:" S ", "
#define ACCUM(S)        VAR (S) "accum:" S ", "
#define LINEAR(S)       ACCUM (S) "linear:" S ", "
#define ACCUM_UPDATE(S) ACCUM (S) "accum_update:" S ", "
#define M_V(S)          VAR (S) "m:" S ", v:" S ", "
#define MS_MOM(S)       VAR (S) "ms:" S ", mom:" S ", "
#define MG_MS_MOM(S)    VAR (S) "mg:" S ", ms:" S ", mom:" S ", "

/* clang-format off */
const MusterOp muster_training_ops[] = {
  BOTH_KINDS ("GradientDescent", VAR, "alpha:T, delta:T", compute_descent),
  BOTH_KINDS ("Momentum", ACCUM, "lr:T, grad:T, momentum:T", compute_momentum),
  BOTH_KINDS ("KerasMomentum", ACCUM, "lr:T, grad:T, momentum:T", compute_keras_momentum),
  BOTH_KINDS ("Adagrad", ACCUM, "lr:T, grad:T", compute_adagrad),
  BOTH_KINDS ("AdagradV2", ACCUM, "lr:T, epsilon:T, grad:T", compute_adagrad_v2),
  BOTH_KINDS ("Adadelta", ACCUM_UPDATE, "lr:T, rho:T, epsilon:T, grad:T", compute_adadelta),
  BOTH_KINDS ("Adam", M_V,
              "beta1_power:T, beta2_power:T, lr:T, beta1:T, beta2:T, epsilon:T, grad:T",
              compute_adam),
  BOTH_KINDS ("AdaMax", M_V, "beta1_power:T, lr:T, beta1:T, beta2:T, epsilon:T, grad:T",
              compute_ada_max),
  BOTH_KINDS ("RMSProp", MS_MOM, "lr:T, rho:T, momentum:T, epsilon:T, grad:T", compute_rms_prop),
  BOTH_KINDS ("CenteredRMSProp", MG_MS_MOM, "lr:T, rho:T, momentum:T, epsilon:T, grad:T",
              compute_centered_rms_prop),
  BOTH_KINDS ("Ftrl", LINEAR, "grad:T, lr:T, l1:T, l2:T, lr_power:T", compute_ftrl),
  BOTH_KINDS ("FtrlV2", LINEAR, "grad:T, lr:T, l1:T, l2:T, l2_shrinkage:T, lr_power:T",
              compute_ftrl_v2),
  {NULL, NULL, NULL, NULL, 0},
};
/* clang-format on */
