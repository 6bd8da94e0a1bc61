// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/step.h"

G_BEGIN_DECLS

/* A step that feeds this placeholder trains a batch and counts it in the model
 * (train/position/position.h), once as begun and once as done. If it were cancelled in between,
 * only a checkpoint could repair that. Servers therefore run it to its end, even if its caller is
 * gone.
 */
#define MUSTER_POSITION_PLACEHOLDER "muster/position"

/* Whether a feed's name, of size bytes, is that placeholder's or its output's. */
gboolean muster_feeds_position (const char *name, gsize size);

gboolean muster_step_is_positioned (const MusterStep *step);

/* Scalars that aren't the model's, which has them nowhere but as nodes: they have no value at
 * first, and no saver or ready op knows them (train/position/position_private.h). */
#define MUSTER_POSITION_RESTORING "muster/restoring"
#define MUSTER_POSITION_MARK      "muster/mark"
gboolean muster_is_positions_own (const char *variable);

G_END_DECLS
