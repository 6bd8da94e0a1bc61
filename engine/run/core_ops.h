// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* Const, Placeholder, Identity, VariableV2 and others that deal in slots. */
extern const MusterOp muster_core_ops[];

/* Added to MusterOpFlags by the core ops: a reference goes through to the output as a reference,
 * to be read late (docs/decisions/0015). */
#define MUSTER_OP_PASSES_REF (1 << 16)
/* Gives dead outputs: steps with such a node look for dead values. */
#define MUSTER_OP_SWITCHES (1 << 17)
/* Runs as long as one input is alive, whatever its control inputs are. */
#define MUSTER_OP_MERGES (1 << 18)

G_END_DECLS
