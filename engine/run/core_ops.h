// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* Const, Placeholder, Identity, VariableV2 and other ops that work on slots. */
extern const MusterOp muster_core_ops[];

/* For the core ops, in addition to MUSTER_OP_…: a reference is passed to the output as a
 * reference, to be read later (docs/decisions/0015). */
#define MUSTER_OP_PASSES_REF (1 << 16)
/* Has dead outputs: steps with such a node check for dead values. */
#define MUSTER_OP_SWITCHES (1 << 17)
/* Runs if any input is alive, whatever its control inputs are. */
#define MUSTER_OP_MERGES (1 << 18)

G_END_DECLS
