// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

/* The op tables of this folder, each terminated by an entry without a name;
 * engine/session/op_tables.c lists them. */
extern const MusterOp muster_array_ops[];
extern const MusterOp muster_diagonal_ops[];
extern const MusterOp muster_gather_ops[];
extern const MusterOp muster_layout_ops[];
extern const MusterOp muster_nd_ops[];
extern const MusterOp muster_rearrange_ops[];
extern const MusterOp muster_segment_ops[];
extern const MusterOp muster_sets_ops[];
extern const MusterOp muster_shuffle_ops[];
extern const MusterOp muster_strided_slice_ops[];
extern const MusterOp muster_unique_ops[];
