// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

/* The op tables of this folder, each terminated by an entry without a name;
 * engine/session/op_tables.c lists them. */
extern const MusterOp muster_sparse_cross_ops[];
extern const MusterOp muster_sparse_map_ops[];
extern const MusterOp muster_sparse_math_ops[];
extern const MusterOp muster_sparse_merge_ops[];
extern const MusterOp muster_sparse_ops[];
extern const MusterOp muster_sparse_reduce_ops[];
extern const MusterOp muster_sparse_slice_ops[];
