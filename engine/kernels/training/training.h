// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/dispatch.h"

G_BEGIN_DECLS

/* What optimizers share, for gradients of a whole variable or of some rows. */

enum { MUSTER_MAX_SLOTS = 4, MUSTER_MAX_SCALARS = 8 };

/* A formula for n elements. slots: the variable first. scalars: the other inputs except the
 * gradient and the indices, in order. */
typedef void (*MusterRule) (gint64 n, void *const *slots, const void *gradient,
                            const double *scalars, gboolean flag);

typedef struct {
  int n_slots, n_scalars;
  int gradient;            /* its input; a sparse op's indices are the next one */
  const MusterRule *rules; /* float, double */
  const char *flag;        /* (nullable) a bool attribute that the rule uses */
  gboolean flag_default;
  const char *names[MUSTER_MAX_SLOTS]; /* of the slots, for errors */
} MusterOptimizer;

/* The optimizers, with the formulas of TensorFlow's CPU kernels (training_rules.c). */
extern const MusterOptimizer muster_optimizer_descent, muster_optimizer_momentum,
    muster_optimizer_keras_momentum, muster_optimizer_adagrad, muster_optimizer_adagrad_v2,
    muster_optimizer_adagrad_da, muster_optimizer_proximal_descent,
    muster_optimizer_proximal_adagrad, muster_optimizer_add_sign, muster_optimizer_power_sign,
    muster_optimizer_amsgrad, muster_optimizer_adadelta, muster_optimizer_adam,
    muster_optimizer_ada_max, muster_optimizer_rms_prop, muster_optimizer_centered_rms_prop,
    muster_optimizer_ftrl, muster_optimizer_ftrl_v2;

/* Their variables in an op's signature, with type S. */
#define VAR(S)          "var:" S ", "
#define ACCUM(S)        VAR (S) "accum:" S ", "
#define ACCUM_UPDATE(S) ACCUM (S) "accum_update:" S ", "
#define LINEAR(S)       ACCUM (S) "linear:" S ", "
#define SUMS(S)         VAR (S) "gradient_accumulator:" S ", gradient_squared_accumulator:" S ", "
#define M(S)            VAR (S) "m:" S ", "
#define M_V(S)          M (S) "v:" S ", "
#define M_V_VHAT(S)     M_V (S) "vhat:" S ", "
#define MS_MOM(S)       VAR (S) "ms:" S ", mom:" S ", "
#define MG_MS_MOM(S)    VAR (S) "mg:" S ", ms:" S ", mom:" S ", "

/* A running update. */
typedef struct {
  MusterVariable *variables[MUSTER_MAX_SLOTS];
  void *data[MUSTER_MAX_SLOTS];
  const void *from[MUSTER_MAX_SLOTS]; /* (nullable) the old values, if they must be copied first */
  double scalars[MUSTER_MAX_SCALARS];
} MusterUpdate;

/* Reads the scalars and variables from the inputs; n_tensors is the number of other inputs. */
gboolean muster_update_begin (MusterKernel *k, const MusterOptimizer *o, int n_tensors,
                              MusterUpdate *u, GError **error);

/* The error for a slot without a value. Always returns FALSE. */
gboolean muster_update_fail (const MusterOptimizer *o, const MusterUpdate *u, GError **error);

/* With the locks held: TRUE if all slots have the variable's shape. */
gboolean muster_update_check_slots (const MusterOptimizer *o, const MusterUpdate *u,
                                    GError **error);

gboolean muster_update_flag (MusterKernel *k, const MusterOptimizer *o);

/* Unlocks; if is_done, passes on the variable's reference if that is an output. Returns is_done. */
gboolean muster_update_end (MusterKernel *k, const MusterOptimizer *o, MusterUpdate *u,
                            gboolean is_done);

/* Defines a kernel: apply with the optimizer. */
#define MUSTER_UPDATE_KERNEL(compute, apply, optimizer)                                            \
  static gboolean compute (MusterKernel *k, GError **error)                                        \
  {                                                                                                \
    return apply (k, &optimizer, error);                                                           \
  }

G_END_DECLS
