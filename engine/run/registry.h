// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"
#include "engine/run/signature.h"

G_BEGIN_DECLS

/* The ops that the engine has, each with its signature read once: a session's master registers the
 * kernels' tables (engine/session/op_tables.h), others add theirs. Any thread. */

typedef struct {
  const MusterOp *op;         /* (not owned) */
  MusterSignature *signature; /* (owned) */
} MusterOpEntry;

/* Adds a table, which must stay; entries end with a NULL name. An op of a name that is known takes
 * its place: for tests and embedders. */
void muster_op_register (const MusterOp *table);
/* The same, but an op that is known by that name stays: for the engine's own tables. */
void muster_op_register_default (const MusterOp *table);

/* Borrowed for good; NULL for an op that isn't known. */
const MusterOpEntry *muster_op_find_entry (const char *name);

/* (transfer container) all names, sorted. */
GPtrArray *muster_op_names (void);

G_END_DECLS
