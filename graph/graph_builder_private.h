// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_builder.h"

G_BEGIN_DECLS

/* A builder of nodes that go into a graph of somebody else's making: without versions, so that that
 * graph keeps its own. */
MusterGraphBuilder *muster_graph_builder_new_extension (void);

G_END_DECLS
