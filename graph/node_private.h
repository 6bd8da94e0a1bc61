// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/proto/graph.pb-c.h"

#include <glib.h>

G_BEGIN_DECLS

/* A node of a graph (graph/graph_nodes_private.h): a few words, as there may be very many. */

/* What a node's op is, where it runs and its attributes, but for TensorFlow's internal ones, whose
 * names begin with an underscore ("_class"). Nodes that have the same share it. */
typedef struct {
  const char *op;
  const char *device; /* "": none */
  gsize n_attr;
  Tensorflow__NodeDef__AttrEntry *const *attr;
} MusterNodeKind;

typedef struct {
  guint32 node;  /* the index of the node that it comes from */
  gint32 output; /* its number, MUSTER_NODE_CONTROL or MUSTER_NODE_ZERO */
} MusterNodeInput;
enum { MUSTER_NODE_CONTROL = -1, MUSTER_NODE_ZERO = -2 /* "x:0", where "x" would do */ };

typedef struct {
  const char *name;
  const MusterNodeKind *kind;
  gsize n_input;
  MusterNodeInput *inputs;
} MusterNode;

/* The index of the node that input i of a node comes from. i must exist. *output (nullable) is
 * below 0 for a control input. */
static inline gsize
muster_node_input (const MusterNode *node, gsize i, int *output)
{
  const MusterNodeInput *input = &node->inputs[i];
  if (output != NULL)
    *output = input->output == MUSTER_NODE_ZERO ? 0 : input->output;
  return input->node;
}

static inline gboolean
muster_node_input_is_control (const MusterNode *node, gsize i)
{
  return node->inputs[i].output == MUSTER_NODE_CONTROL;
}

G_END_DECLS
