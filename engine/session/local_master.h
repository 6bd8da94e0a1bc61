// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "master/master.h"

G_BEGIN_DECLS

/**
 * MusterLocalMaster:
 *
 * The local master: the engine in this process. Sessions share its variables by container and name;
 * graphs with the same bytes are parsed once and share their compiled steps.
 * muster_local_master_check_ops () tests whether it has a graph's operations; others are left to
 * TensorFlow (docs/decisions/0014). It doesn't push readiness: a wait polls it. Why it is a
 * separate library: docs/decisions/0017.
 */

#define MUSTER_TYPE_LOCAL_MASTER (muster_local_master_get_type ())
G_DECLARE_FINAL_TYPE (MusterLocalMaster, muster_local_master, MUSTER, LOCAL_MASTER, GObject)

/**
 * muster_local_master_new:
 *
 * Creates an engine of its own. Each shares nothing with the others, so two nodes of a
 * cluster in one process have one each.
 *
 * Returns: (transfer full): a new master
 */
MusterMaster *muster_local_master_new (void);

/**
 * muster_local_master_new_with:
 * @storage: (nullable): for save, restore and merge ops; %NULL: local files
 * @max_op_bytes: maximum memory that one operation allocates; 0: half of the machine's memory, or
 *   of the control group's limit. Its outputs and temporary data count, in bytes. Beyond it the
 *   step fails with RESOURCE_EXHAUSTED
 *
 * Creates an engine of its own with another store or limit.
 *
 * Returns: (transfer full): a new master
 */
MusterMaster *muster_local_master_new_with (MusterStorage *storage, guint64 max_op_bytes);

/**
 * muster_local_master_check_ops:
 * @graph: a graph
 * @names: (array zero-terminated=1): the ops and tensors to run; those that the graph lacks are
 *   ignored
 *
 * Looks whether the engine has all operations that these need, before anything is run.
 * UNIMPLEMENTED lists the missing ones with the number of their nodes.
 *
 * Returns: %TRUE if it has
 */
gboolean muster_local_master_check_ops (MusterGraph *graph, const char *const *names,
                                        GError **error);

/**
 * muster_local_master_offer:
 *
 * Offers "local" to Muster.Master.new_for_target: all such targets are the same master.
 */
void muster_local_master_offer (void);

G_END_DECLS
