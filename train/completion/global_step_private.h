// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* The variable that is the global step, or NULL. */
const MusterVariableInfo *muster_global_step_of (MusterMetaGraph *meta_graph);

G_END_DECLS
