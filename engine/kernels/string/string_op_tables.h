// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

/* The op tables of this folder, each terminated by an entry without a name;
 * engine/session/op_tables.c lists them. */
extern const MusterOp muster_csv_ops[];
extern const MusterOp muster_string_edit_ops[];
extern const MusterOp muster_string_hash_ops[];
extern const MusterOp muster_string_number_ops[];
extern const MusterOp muster_string_ops[];
extern const MusterOp muster_string_split_ops[];
