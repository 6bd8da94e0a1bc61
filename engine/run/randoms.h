// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/philox.h"
#include "engine/run/types.h"

G_BEGIN_DECLS

/* Random generators by node, for the duration of a session. */
MusterRandoms *muster_randoms_new (void);
void muster_randoms_free (MusterRandoms *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRandoms, muster_randoms_free)
/* A random seed. */
guint64 muster_randoms_chance (void);

/* The node's generator, advanced for n outputs like TensorFlow's kernels do, or by n_blocks of four
 * words. */
MusterPhilox muster_randoms_take (MusterRandoms *self, const MusterPlanNode *node, guint64 n);
MusterPhilox muster_randoms_take_blocks (MusterRandoms *self, const MusterPlanNode *node,
                                         guint64 n_blocks);

G_END_DECLS
