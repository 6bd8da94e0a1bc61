// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/state.h"

G_BEGIN_DECLS

/* What optimizers share, whether their gradient is for all of a variable or for some rows of it. */

enum { MUSTER_MAX_SLOTS = 4, MUSTER_MAX_SCALARS = 8 };

/* One formula over n elements. slots: the variable first. scalars: the other inputs but the
 * gradient and the indices, in their order. */
typedef void (*MusterRule) (gint64 n, void *const *slots, const void *gradient,
                            const double *scalars, gboolean flag);

typedef struct {
  int n_slots, n_scalars;
  int gradient;            /* which input; in a sparse op the indices are the next */
  const MusterRule *rules; /* float, double */
  const char *flag;        /* (nullable) a bool attribute that the rule knows */
  gboolean flag_default;
  const char *names[MUSTER_MAX_SLOTS]; /* of the slots, for errors */
} MusterOptimizer;

/* The formulas, of TensorFlow's CPU kernels; each for float and double (training_rules.c). */
extern const MusterRule muster_rule_descent[], muster_rule_momentum[], muster_rule_keras_momentum[],
    muster_rule_adagrad[], muster_rule_adagrad_v2[], muster_rule_adagrad_da[],
    muster_rule_adadelta[], muster_rule_adam[], muster_rule_amsgrad[], muster_rule_ada_max[],
    muster_rule_rms_prop[], muster_rule_centered_rms_prop[], muster_rule_ftrl[],
    muster_rule_ftrl_v2[], muster_rule_proximal_descent[], muster_rule_proximal_adagrad[],
    muster_rule_add_sign[], muster_rule_power_sign[];

/* One update under way. */
typedef struct {
  MusterVariable *variables[MUSTER_MAX_SLOTS];
  void *data[MUSTER_MAX_SLOTS];
  const void *from[MUSTER_MAX_SLOTS]; /* (nullable) what has to be copied there first */
  double scalars[MUSTER_MAX_SCALARS];
} MusterUpdate;

/* The scalars and the variables from the inputs; n_tensors of those that aren't slots are none. */
gboolean muster_update_begin (MusterKernel *k, const MusterOptimizer *o, int n_tensors,
                              MusterUpdate *u, GError **error);

/* The error where a slot has no value; always FALSE. */
gboolean muster_update_fail (const MusterOptimizer *o, const MusterUpdate *u, GError **error);

/* Under the locks: all slots have the variable's shape. */
gboolean muster_update_check_slots (const MusterOptimizer *o, const MusterUpdate *u,
                                    GError **error);

gboolean muster_update_flag (MusterKernel *k, const MusterOptimizer *o);

G_END_DECLS
