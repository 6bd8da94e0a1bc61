// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* Checks a graph like TensorFlow's master before it creates a session, with its texts. */

/* The graph version that the engine supports: TensorFlow 2.21's. */
#define MUSTER_GRAPH_DEF_VERSION 2474

/* INVALID_ARGUMENT for a graph that needs a later version, and for invalid names of nodes and
 * devices. */
gboolean muster_graph_check (MusterGraph *graph, GError **error);

/* INVALID_ARGUMENT for a node on a device other than "CPU:0". Any job and task name is accepted. */
gboolean muster_graph_check_placement (MusterGraph *graph, GError **error);

G_END_DECLS
