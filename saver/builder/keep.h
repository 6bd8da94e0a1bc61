// SPDX-License-Identifier: Apache-2.0
#pragma once

/**
 * MUSTER_KEEP_ALL:
 *
 * max_to_keep in any options struct is the number of checkpoints in the list; each save beyond it
 * deletes the oldest. 0 is the default: the SaverDef's value, or 5 where a SaverDef is created.
 * This value deletes none. Lower values are `INVALID_ARGUMENT`. (In a SaverDef itself, as in
 * TensorFlow, 0 keeps all.)
 */
#define MUSTER_KEEP_ALL (-1)

/**
 * MusterKeepRule:
 * @MUSTER_KEEP_SAVER: as `tf.train.Saver`: one that is n hours after the mark; the mark then
 *   advances by n hours
 * @MUSTER_KEEP_MANAGER: as `tf.train.CheckpointManager`: one that is at least n hours newer than
 * the last preserved one; one that isn't newer is left alone
 *
 * Which checkpoints that leave the list are preserved, with keep_every_n_hours. The time of the
 * last preserved one is stored in the state file and so outlives the process.
 */
typedef enum {
  MUSTER_KEEP_SAVER,
  MUSTER_KEEP_MANAGER,
} MusterKeepRule;
