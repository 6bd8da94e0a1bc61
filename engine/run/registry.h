// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"
#include "engine/run/signature.h"

G_BEGIN_DECLS

/* The engine's ops, each with its parsed signature. A session's master registers the kernels'
 * tables (engine/session/op_tables.h); others may add theirs. Any thread. */

typedef struct {
  const MusterOp *op;         /* (not owned) */
  MusterSignature *signature; /* (owned) */
} MusterOpEntry;

/* Adds a table, which must stay valid; it ends with a NULL name. An op with an existing name
 * replaces it, for tests and embedders. */
void muster_op_register (const MusterOp *table);
/* The same without replacing existing ops, for the engine's own tables. */
void muster_op_register_default (const MusterOp *table);

/* Borrowed, valid forever; NULL for an unknown op. */
const MusterOpEntry *muster_op_find_entry (const char *name);

/* The ops of a parsed graph that are unknown here, each once, up to some 8 KiB of names. (transfer
 * full) */
char **muster_op_lacking (MusterGraph *graph);

/* (transfer container) all names, sorted. */
GPtrArray *muster_op_names (void);

G_END_DECLS
