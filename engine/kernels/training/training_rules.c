// SPDX-License-Identifier: Apache-2.0
/* The formulas of optimizers, as in TensorFlow's CPU kernels. */
#include "engine/kernels/training/training.h"

#include <tgmath.h>

/* Loops over elements are faster with -O3 than with the default -O2. */
#pragma GCC optimize("O3")

#define RULE(name, suffix, T, ...)                                                                 \
  static void name##_##suffix (gint64 n, void *const *slots, const void *gradient,                 \
                               const double *scalars, gboolean flag G_GNUC_UNUSED)                 \
  {                                                                                                \
    typedef T type G_GNUC_UNUSED;                                                                  \
    T *var = slots[0];                                                                             \
    const T *grad = gradient;                                                                      \
    __VA_ARGS__                                                                                    \
  }
#define EACH for (gint64 i = 0; i < n; i++)
#define RULES(name, ...)                                                                           \
  RULE (name, f32, float, __VA_ARGS__)                                                             \
  RULE (name, f64, double, __VA_ARGS__)                                                            \
  static const MusterRule name##_rules[] = {name##_f32, name##_f64};
#define SLOT(name, index)   type *name = slots[index];
#define SCALAR(name, index) const type name = (type)scalars[index];

#define SIGN(x) ((type)((x) > 0) - (type)((x) < 0))
/* Moves x towards zero by rate × l1 if l1 is positive. */
#define SHRINK(x, rate, l1)                                                                        \
  ((l1) > 0 ? SIGN (x) * (fabs (x) > (rate) * (l1) ? fabs (x) - (rate) * (l1) : 0) : (x))

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

/* With multiply_linear_by_lr (flag), linear, l1 and l2 are multiplied by the rate. */
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
RULES (amsgrad,
  SLOT (m, 1) SLOT (v, 2) SLOT (largest, 3)
  SCALAR (beta1_power, 0) SCALAR (beta2_power, 1) SCALAR (rate, 2)
  SCALAR (beta1, 3) SCALAR (beta2, 4) SCALAR (epsilon, 5)
  const type alpha = rate * sqrt (1 - beta2_power) / (1 - beta1_power);
  MUSTER_IVDEP EACH {
    const type g = grad[i];
    const type new_m = m[i] + (g - m[i]) * (1 - beta1);
    const type new_v = v[i] + (g * g - v[i]) * (1 - beta2);
    const type bound = new_v > largest[i] ? new_v : largest[i];
    m[i] = new_m;
    v[i] = new_v;
    largest[i] = bound;
    var[i] -= new_m * alpha / (sqrt (bound) + epsilon);
  }
)

RULES (adagrad_da,
  SLOT (sum, 1) SLOT (squares, 2)
  SCALAR (rate, 0) SCALAR (l1, 1) SCALAR (l2, 2) SCALAR (step, 3)
  EACH {
    const type g = sum[i] + grad[i];
    const type gg = squares[i] + grad[i] * grad[i];
    const type over = fabs (g) - step * l1;
    const type shrunk = l1 > 0 ? SIGN (g) * (over > 0 ? over : 0) : g;
    sum[i] = g;
    squares[i] = gg;
    var[i] = -rate * shrunk / (l2 * step * rate + sqrt (gg));
  }
)

RULES (proximal_descent,
  SCALAR (rate, 0) SCALAR (l1, 1) SCALAR (l2, 2)
  EACH {
    const type x = var[i] - grad[i] * rate;
    var[i] = SHRINK (x, rate, l1) / (1 + l2 * rate);
  }
)

RULES (proximal_adagrad,
  SLOT (accum, 1)
  SCALAR (start_rate, 0) SCALAR (l1, 1) SCALAR (l2, 2)
  EACH {
    const type a = accum[i] + grad[i] * grad[i];
    const type rate = start_rate / sqrt (a);
    const type x = var[i] - grad[i] * rate;
    accum[i] = a;
    var[i] = SHRINK (x, rate, l1) / (1 + l2 * rate);
  }
)

RULES (add_sign,
  SLOT (m, 1)
  SCALAR (rate, 0) SCALAR (alpha, 1) SCALAR (decay, 2) SCALAR (beta, 3)
  EACH {
    const type new_m = m[i] * beta + grad[i] * (1 - beta);
    m[i] = new_m;
    var[i] -= rate * (alpha + decay * SIGN (grad[i]) * SIGN (new_m)) * grad[i];
  }
)

RULES (power_sign,
  SLOT (m, 1)
  SCALAR (rate, 0) SCALAR (log_base, 1) SCALAR (decay, 2) SCALAR (beta, 3)
  EACH {
    const type new_m = m[i] * beta + grad[i] * (1 - beta);
    m[i] = new_m;
    var[i] -= rate * exp (log_base * decay * SIGN (grad[i]) * SIGN (new_m)) * grad[i];
  }
)
/* clang-format on */

#define OPTIMIZER(name, ...) const MusterOptimizer name = {__VA_ARGS__};

OPTIMIZER (muster_optimizer_descent, 1, 1, 2, descent_rules, NULL, FALSE, {"var"})
OPTIMIZER (muster_optimizer_momentum, 2, 2, 3, momentum_rules, "use_nesterov", FALSE,
           {"var", "accum"})
OPTIMIZER (muster_optimizer_keras_momentum, 2, 2, 3, keras_momentum_rules, "use_nesterov", FALSE,
           {"var", "accum"})
OPTIMIZER (muster_optimizer_adagrad, 2, 1, 3, adagrad_rules, "update_slots", TRUE, {"var", "accum"})
OPTIMIZER (muster_optimizer_adagrad_v2, 2, 2, 4, adagrad_v2_rules, "update_slots", TRUE,
           {"var", "accum"})
OPTIMIZER (muster_optimizer_adagrad_da, 3, 4, 3, adagrad_da_rules, NULL, FALSE,
           {"var", "gradient_accumulator", "gradient_squared_accumulator"})
OPTIMIZER (muster_optimizer_proximal_descent, 1, 3, 4, proximal_descent_rules, NULL, FALSE, {"var"})
OPTIMIZER (muster_optimizer_proximal_adagrad, 2, 3, 5, proximal_adagrad_rules, NULL, FALSE,
           {"var", "accum"})
OPTIMIZER (muster_optimizer_add_sign, 2, 4, 6, add_sign_rules, NULL, FALSE, {"var", "m"})
OPTIMIZER (muster_optimizer_power_sign, 2, 4, 6, power_sign_rules, NULL, FALSE, {"var", "m"})
OPTIMIZER (muster_optimizer_amsgrad, 4, 6, 10, amsgrad_rules, NULL, FALSE,
           {"var", "m", "v", "vhat"})
OPTIMIZER (muster_optimizer_adadelta, 3, 3, 6, adadelta_rules, NULL, FALSE,
           {"var", "accum", "accum_update"})
OPTIMIZER (muster_optimizer_adam, 3, 6, 9, adam_rules, "use_nesterov", FALSE, {"var", "m", "v"})
OPTIMIZER (muster_optimizer_ada_max, 3, 5, 8, ada_max_rules, NULL, FALSE, {"var", "m", "v"})
OPTIMIZER (muster_optimizer_rms_prop, 3, 4, 7, rms_prop_rules, NULL, FALSE, {"var", "ms", "mom"})
OPTIMIZER (muster_optimizer_centered_rms_prop, 4, 4, 8, centered_rms_prop_rules, NULL, FALSE,
           {"var", "mg", "ms", "mom"})
OPTIMIZER (muster_optimizer_ftrl, 3, 4, 3, ftrl_rules, "multiply_linear_by_lr", FALSE,
           {"var", "accum", "linear"})
OPTIMIZER (muster_optimizer_ftrl_v2, 3, 5, 3, ftrl_v2_rules, "multiply_linear_by_lr", FALSE,
           {"var", "accum", "linear"})
