// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "master/master.h"

G_BEGIN_DECLS

/* The local master: the engine in this process. Sessions share its variables by container and name;
 * graphs with the same bytes are parsed once and share their compiled steps. What it computes, and
 * what is left to TensorFlow: docs/decisions/0014. Why it is a separate library:
 * docs/decisions/0017. */

#define MUSTER_TYPE_LOCAL_MASTER (muster_local_master_get_type ())
G_DECLARE_FINAL_TYPE (MusterLocalMaster, muster_local_master, MUSTER, LOCAL_MASTER, GObject)

/**
 * muster_local_master_new:
 *
 * Returns: (transfer full): a new master
 */
MusterMaster *muster_local_master_new (void);

/**
 * MusterLocalMasterOptions: (skip)
 */
typedef struct {
  MusterStorage *storage; /* (nullable) for save, restore and merge ops; NULL: local files */
  guint64 max_op_bytes;   /* maximum memory of one operation of a step, for outputs and temporary
                             data; 0: half of the process's memory. Beyond it the step fails with
                             RESOURCE_EXHAUSTED */
} MusterLocalMasterOptions;

/**
 * muster_local_master_new_with_options: (skip)
 *
 * Returns: (transfer full): a new master
 */
MusterMaster *muster_local_master_new_with_options (const MusterLocalMasterOptions *options);

/* Offers "local" to muster_master_new_for_target (): all such targets are the same master. */
void muster_local_master_offer (void);

G_END_DECLS
