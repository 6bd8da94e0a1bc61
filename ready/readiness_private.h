// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* Whether a model is ready, and if not, why: data from which text and JSON are produced
 * (docs/decisions/0008). One function implements TensorFlow's rules for the ready op (B002.55 to
 * B002.61). */

typedef struct {
  gboolean is_ready;
  char **missing; /* (owned) (nullable) variables without a value, as reported by the op, in one
                     block */
  char *why_not;  /* (owned) (nullable) "Variables not initialized: a, b", or the master's text */
} MusterReadyOpResult;

void muster_ready_op_result_clear (MusterReadyOpResult *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterReadyOpResult, muster_ready_op_result_clear)

/* Evaluates one run of a ready op: either value (nullable) or failure (nullable) is set, or neither
 * (an op without an output). Ready: no value, an int32 of any value, or no elements. Not ready: a
 * vector of names, or FAILED_PRECONDITION with "uninitialized" in its text. FALSE with *error: any
 * other failure (passed on), or INVALID_ARGUMENT for an unexpected value. */
gboolean muster_ready_op_judge (const char *op, const MusterTensor *value, const GError *failure,
                                MusterReadyOpResult *readiness, GError **error);

/* How an op is run, determined once: it is fetched or, without an output, run as a target. A plain
 * struct. */
typedef struct {
  char *name;        /* (owned) (nullable) as given; NULL: no op */
  char *fetch;       /* (owned) (nullable) "ready:0"; NULL: it has no output */
  char *target;      /* (owned) (nullable) "ready" */
  gboolean is_known; /* by the graph; otherwise determined by running it */
} MusterReadyOp;

/* op (nullable) in graph (nullable: only the master has it); parses the graph. An op without
 * outputs is "init", or "init:0" without a value. */
void muster_ready_op_find (MusterReadyOp *self, const char *op, MusterGraph *graph);
void muster_ready_op_clear (MusterReadyOp *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterReadyOp, muster_ready_op_clear)

/* Runs op in session and evaluates it. No op: ready, without a run. */
gboolean muster_ready_op_run (MusterSession *session, const MusterReadyOp *op, gint64 deadline_us,
                              GCancellable *cancellable, MusterReadyOpResult *readiness,
                              GError **error);
/* The same for op (nullable), looked up in the session's graph. */
gboolean muster_ready_op_probe (MusterSession *session, const char *op, gint64 deadline_us,
                                GCancellable *cancellable, MusterReadyOpResult *readiness,
                                GError **error);

/* Runs gate and, if it is open, ready. */
gboolean muster_readiness_probe (MusterSession *session, const MusterReadyOp *gate,
                                 const MusterReadyOp *ready, gint64 deadline_us,
                                 GCancellable *cancellable, MusterReadiness *readiness,
                                 GError **error);

G_END_DECLS
