// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* Whether a completed meta graph can be trained to a step (until_step) or to its input's end.
 * INVALID_ARGUMENT says what it lacks. */
gboolean muster_trainable_check (MusterMetaGraph *meta_graph, GError **error);

G_END_DECLS
