// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz.h"

#include "base/protowire_private.h"
#include "base/unpack_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/meta_graph_io.h"

#include <glib/gstdio.h>
#include <string.h>

/* A graph of more nodes is a slow seed. */
#define MAX_SEED_NODES 40

static const char *corpus; /* where seeds go; NULL where a run needs none */

/* The limits come first, so that the command line has the last word. 64 MiB at once and 1 GiB in
 * all are far beyond what an input and its tensors (16 MiB each, .bazelrc) may cost. */
static const char *const limits[] = {
    "-timeout=10",
    "-malloc_limit_mb=64",
    "-rss_limit_mb=1024",
    "-max_len=8192",
};

static void
add_test_arguments (GPtrArray *arguments)
{
  const char *outputs = g_getenv ("TEST_UNDECLARED_OUTPUTS_DIR");
  const gboolean is_long = g_getenv ("MUSTER_LONG") != NULL;
  corpus = g_build_filename (g_getenv ("TEST_TMPDIR"), "corpus", NULL);
  g_assert_cmpint (g_mkdir_with_parents (corpus, 0700), ==, 0);
  g_ptr_array_add (arguments, g_strdup_printf ("-max_total_time=%d", is_long ? 3600 : 5));
  g_ptr_array_add (arguments, g_strdup ("-print_final_stats=1"));
  if (outputs != NULL)
    g_ptr_array_add (arguments, g_strdup_printf ("-artifact_prefix=%s/", outputs));
  g_ptr_array_add (arguments, g_strdup (corpus));
}

/* libFuzzer calls this first of all. */
int LLVMFuzzerInitialize (int *argc, char ***argv);

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  GPtrArray *arguments = g_ptr_array_new (); /* libFuzzer's from here on */
  g_ptr_array_add (arguments, (*argv)[0]);
  for (gsize i = 0; i < G_N_ELEMENTS (limits); i++)
    g_ptr_array_add (arguments, (gpointer)limits[i]);
  for (int i = 1; i < *argc; i++) {
    g_ptr_array_add (arguments, (*argv)[i]);
    if (corpus == NULL && g_file_test ((*argv)[i], G_FILE_TEST_IS_DIR))
      corpus = (*argv)[i];
  }
  if (g_getenv ("TEST_TMPDIR") != NULL)
    add_test_arguments (arguments);
  *argc = (int)arguments->len;
  g_ptr_array_add (arguments, NULL);
  static char **kept;
  *argv = kept = (char **)g_ptr_array_free (arguments, FALSE);

  g_log_set_always_fatal (G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
  if (corpus != NULL)
    muster_fuzz_seeds ();
  return 0;
}

void
muster_fuzz_seed (const guint8 *pick, const void *data, gsize size)
{
  static guint n;
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) seed = g_byte_array_new ();
  g_autofree char *name = g_strdup_printf ("seed-%03u", n++);
  g_autofree char *path = g_build_filename (corpus, name, NULL);
  if (pick != NULL)
    g_byte_array_append (seed, pick, 1);
  g_byte_array_append (seed, data, (guint)size);
  g_file_set_contents (path, (const char *)seed->data, seed->len, &error);
  g_assert_no_error (error);
}

/* --- graphs --- */

/* Adds a node's index and those of all that it needs to nodes, its own first; FALSE when they
 * become too many. */
static gboolean
gather (MusterGraph *graph, gsize index, GPtrArray *nodes)
{
  const MusterNode *node = muster_graph_node (graph, index);
  if (g_ptr_array_find (nodes, GSIZE_TO_POINTER (index), NULL))
    return TRUE;
  if (nodes->len == MAX_SEED_NODES)
    return FALSE;
  g_ptr_array_add (nodes, GSIZE_TO_POINTER (index));
  for (gsize i = 0; i < node->n_input; i++)
    if (!gather (graph, muster_node_input (node, i, NULL), nodes))
      return FALSE;
  return TRUE;
}

static void
seed_graph (const guint8 *pick, const char *path, GHashTable *ops)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = muster_graph_load (path, &error);
  g_assert_no_error (error);
  g_autofree MusterNodeBytes *bytes = muster_graph_node_bytes (graph);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    g_autoptr (GPtrArray) nodes = g_ptr_array_new ();
    const char *op = muster_graph_node (graph, i)->kind->op;
    if (g_hash_table_contains (ops, op) || !gather (graph, i, nodes))
      continue;
    g_hash_table_add (ops, g_strdup (op));
    g_autoptr (GByteArray) packed = g_byte_array_new ();
    for (guint j = 0; j < nodes->len; j++) {
      const MusterNodeBytes *node = &bytes[GPOINTER_TO_SIZE (nodes->pdata[j])];
      muster_proto_put_bytes (packed, 1, node->data, node->size);
    }
    muster_fuzz_seed (pick, packed->data, packed->len);
  }
}

void
muster_fuzz_seed_graphs (const guint8 *pick)
{
  g_autoptr (GHashTable) ops = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  seed_graph (pick, "tests/fixtures/digits.meta", ops);
  seed_graph (pick, "tests/fixtures/mlp_adam_ref.meta", ops);
  seed_graph (pick, "tests/fixtures/mlp_ftrl_resource.meta", ops);
}
