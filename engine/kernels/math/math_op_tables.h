// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

/* The op tables of this folder, each terminated by an entry without a name;
 * engine/session/op_tables.c lists them. */
extern const MusterOp muster_binary_ops[];
extern const MusterOp muster_bits_ops[];
extern const MusterOp muster_complex_ops[];
extern const MusterOp muster_einsum_ops[];
extern const MusterOp muster_linalg_ops[];
extern const MusterOp muster_matmul_ops[];
extern const MusterOp muster_order_ops[];
extern const MusterOp muster_reduce_ops[];
extern const MusterOp muster_scan_ops[];
extern const MusterOp muster_unary_ops[];
