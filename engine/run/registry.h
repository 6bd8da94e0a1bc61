// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"
#include "engine/run/signature.h"

G_BEGIN_DECLS

/* The ops that the engine has: the kernels' tables and what was registered, each with its signature
 * read once. Any thread. */

typedef struct {
  const MusterOp *op;         /* (not owned) */
  MusterSignature *signature; /* (owned) */
} MusterOpEntry;

/* Const, Placeholder, Identity, VariableV2 and others that deal in slots: engine/run/core_ops.c. */
extern const MusterOp muster_core_ops[];

/* Borrowed for good; NULL for an op that isn't known. */
const MusterOpEntry *muster_op_find_entry (const char *name);

/* (transfer container) all names, sorted. */
GPtrArray *muster_op_names (void);

G_END_DECLS
