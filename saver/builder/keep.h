// SPDX-License-Identifier: Apache-2.0
#pragma once

/* max_to_keep, wherever it is an option: the number of checkpoints that are listed; the oldest is
 * deleted when one more is saved. 0 is the default: what the meta graph's SaverDef says, and 5
 * where a SaverDef is made. MUSTER_KEEP_ALL: none is deleted. INVALID_ARGUMENT below that. (In a
 * SaverDef itself, as TensorFlow writes it, 0 keeps all.) */
#define MUSTER_KEEP_ALL (-1)
