// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

/* The op tables of this folder, each terminated by an entry without a name;
 * engine/session/op_tables.c lists them. */
extern const MusterOp muster_batch_norm_ops[];
extern const MusterOp muster_nn_ops[];
