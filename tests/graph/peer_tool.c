// SPDX-License-Identifier: Apache-2.0
/* What tensorflow_test.py needs of muster: tensors read and written again, and graphs written.
 *
 *   peer_tool copy FILE...         each TensorProto to FILE.out
 *   peer_tool ready META OUT       META's graph with a ready op
 *   peer_tool built OUT            a graph of the builder's */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_builder.h"
#include "graph/meta_graph/ready_op.h"
#include "graph/tensor_proto_private.h"

static void
give_up_on (const GError *error)
{
  if (error == NULL)
    return;
  fprintf (stderr, "%s\n", error->message);
  exit (1);
}

static void
save (const char *path, GBytes *bytes)
{
  g_autoptr (GError) error = NULL;
  g_file_set_contents (path, g_bytes_get_data (bytes, NULL), (gssize)g_bytes_get_size (bytes),
                       &error);
  give_up_on (error);
}

static void
copy (const char *path)
{
  g_autoptr (GError) error = NULL;
  char *contents;
  gsize size;
  g_file_get_contents (path, &contents, &size, &error);
  give_up_on (error);
  g_autoptr (GBytes) bytes = g_bytes_new_take (contents, size);
  g_autoptr (MusterTensor) tensor = muster_tensor_proto_read (contents, size, bytes, &error);
  give_up_on (error);
  g_autoptr (GBytes) out = muster_tensor_proto_write (tensor);
  g_autofree char *out_path = g_strconcat (path, ".out", NULL);
  save (out_path, out);
}

static void
ready (const char *meta_path, const char *out)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *op = NULL;
  g_autoptr (MusterMetaGraph) meta = muster_meta_graph_load (meta_path, &error);
  give_up_on (error);
  g_autoptr (MusterGraph) graph = muster_graph_with_ready_op (meta, TRUE, &op, &error);
  give_up_on (error);
  save (out, muster_graph_bytes (graph));
  puts (op);
}

static void
built (const char *out)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  const gint64 dims[] = {2, 3};
  const float values[] = {0, 1, 2, 3, 4, 5};
  g_autoptr (MusterTensor) initial =
      muster_tensor_new_from_data (MUSTER_FLOAT, 2, dims, values, sizeof values, &error);
  give_up_on (error);
  muster_graph_builder_variable (builder, "w", initial);
  muster_graph_builder_placeholder (builder, "x", MUSTER_FLOAT, 2, (const gint64[]){-1, 3});
  muster_graph_builder_node (builder, "AddV2", "y");
  muster_graph_builder_input (builder, "x");
  muster_graph_builder_input (builder, "w/read");
  muster_graph_builder_attr_type (builder, "T", MUSTER_FLOAT);
  muster_graph_builder_group (builder, "init", (const char *[]){"w/Assign", NULL});
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  give_up_on (error);
  save (out, muster_graph_bytes (graph));
}

int
main (int argc, char **argv)
{
  if (argc >= 2 && strcmp (argv[1], "copy") == 0) {
    for (int i = 2; i < argc; i++)
      copy (argv[i]);
  } else if (argc == 4 && strcmp (argv[1], "ready") == 0) {
    ready (argv[2], argv[3]);
  } else if (argc == 3 && strcmp (argv[1], "built") == 0) {
    built (argv[2]);
  } else {
    return 2;
  }
  return 0;
}
