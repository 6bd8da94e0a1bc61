// SPDX-License-Identifier: Apache-2.0
#pragma once

/* max_to_keep, wherever it is an option: the number of checkpoints that are listed; the oldest is
 * deleted when one more is saved. 0 is the default: what the meta graph's SaverDef says, and 5
 * where a SaverDef is made. MUSTER_KEEP_ALL: none is deleted. INVALID_ARGUMENT below that. (In a
 * SaverDef itself, as TensorFlow writes it, 0 keeps all.) */
#define MUSTER_KEEP_ALL (-1)

/* What becomes of a checkpoint that leaves the list, where every so many hours one is kept for
 * good. The mark that it goes by is stored in the state file, and so outlives the process. */
typedef enum {
  MUSTER_KEEP_SAVER,   /* as tf.train.Saver: one after the mark and so many hours; the mark moves on
                          by so many hours */
  MUSTER_KEEP_MANAGER, /* as CheckpointManager: one so many hours or more after the last one kept;
                          what isn't newer than that one is left alone */
} MusterKeepRule;
