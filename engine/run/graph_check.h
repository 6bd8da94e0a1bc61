// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* What TensorFlow's master asks of a graph before it makes a session over it, in its words. */

/* The version of graphs that the engine reads: TensorFlow 2.21's. */
#define MUSTER_GRAPH_DEF_VERSION 2474

/* INVALID_ARGUMENT for a graph that wants a later runtime, and for names of nodes and devices that
 * are none. */
gboolean muster_graph_check (MusterGraph *graph, GError **error);

/* INVALID_ARGUMENT for a node on a device that no task of the engine's has: all but "CPU:0". The
 * engine stands for all jobs and tasks, whatever they are called. */
gboolean muster_graph_check_placement (MusterGraph *graph, GError **error);

G_END_DECLS
