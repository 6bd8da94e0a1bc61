// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* Is the model ready, and if not, why. A verdict is data: text and JSON are both drawn from it
 * (docs/decisions/0008). The rules of the ready op are TensorFlow's (B002.55 to B002.61), and stand
 * in one function. */

typedef struct {
  gboolean is_ready;
  char **missing; /* (owned) (nullable) variables without a value, as the op named them, in one
                     block */
  char *
      why_not; /* (owned) (nullable) "Variables not initialized: a, b", or the master's own words */
} MusterReadyOpResult;

void muster_ready_op_result_clear (MusterReadyOpResult *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterReadyOpResult, muster_ready_op_result_clear)

/* Judges the outcome of one run of a ready op: one of value (nullable) and failure (nullable) is
 * given, or neither (an op without an output). Ready: no value, int32 whatever the numbers, no
 * elements. Not ready: a vector of names; or FAILED_PRECONDITION with "uninitialized" in its text.
 * FALSE with *error: any other failure (passed on), or INVALID_ARGUMENT for an odd result. */
gboolean muster_ready_op_judge (const char *op, const MusterTensor *value, const GError *failure,
                                MusterReadyOpResult *readiness, GError **error);

/* Runs op (nullable) in session and judges. NULL: ready, nothing is run. An op without outputs
 * ("init", or "init:0" that yields nothing) is run as a target. */
gboolean muster_ready_op_probe (MusterSession *session, const char *op, gint64 deadline_us,
                                GCancellable *cancellable, MusterReadyOpResult *readiness,
                                GError **error);

/* Both questions at once, as a turn: gate_op (nullable), and if the gate is open ready_op
 * (nullable). */
gboolean muster_readiness_probe (MusterSession *session, const char *gate_op, const char *ready_op,
                                 gint64 deadline_us, GCancellable *cancellable,
                                 MusterReadiness *readiness, GError **error);

G_END_DECLS
