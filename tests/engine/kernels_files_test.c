// SPDX-License-Identifier: Apache-2.0
/* Operations that read a file by a name that a client gave, on a master with data directories. */
#include "tests/checkpoint/bundle_fixture.h"
#include "tests/engine/fixture.h"

#include <glib/gstdio.h>

static MusterMaster *
master_within (const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = in_tmpdir (name);
  MUSTER_EXPECT_EQ (g_mkdir (directory, 0755), 0);
  g_autoptr (MusterStorage) storage =
      muster_local_storage_new_within ((const char *const[]){directory, NULL}, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return muster_local_master_new_with (storage, 0);
}

/* "init" fills a table of words and line numbers from the file, whose size "size" is. */
static MusterGraphBuilder *
table_of (const char *path)
{
  MusterGraphBuilder *b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) filename = muster_tensor_new_string (path);
  muster_graph_builder_constant (b, "filename", filename);
  muster_graph_builder_node (b, "HashTableV2", "table");
  muster_graph_builder_attr_type (b, "key_dtype", MUSTER_STRING);
  muster_graph_builder_attr_type (b, "value_dtype", MUSTER_INT64);
  muster_graph_builder_attr_string (b, "shared_name", "words");
  muster_graph_builder_node (b, "InitializeTableFromTextFileV2", "init");
  muster_graph_builder_input (b, "table");
  muster_graph_builder_input (b, "filename");
  muster_graph_builder_attr_int (b, "key_index", -2);
  muster_graph_builder_attr_int (b, "value_index", -1);
  muster_graph_builder_node (b, "LookupTableSizeV2", "size");
  muster_graph_builder_input (b, "table");
  muster_graph_builder_input (b, "^init");
  return b;
}

/* Draws from a file of weights. */
static MusterGraphBuilder *
sampler_of (const char *path)
{
  MusterGraphBuilder *b = muster_graph_builder_new ();
  static const gint64 one = 0, dims[] = {1, 1};
  g_autoptr (MusterTensor) classes =
      muster_tensor_new_from_data (MUSTER_INT64, 2, dims, &one, sizeof one, NULL);
  muster_graph_builder_constant (b, "classes", classes);
  muster_graph_builder_node (b, "FixedUnigramCandidateSampler", "size");
  muster_graph_builder_input (b, "classes");
  muster_graph_builder_attr_int (b, "num_true", 1);
  muster_graph_builder_attr_int (b, "num_sampled", 2);
  muster_graph_builder_attr_bool (b, "unique", FALSE);
  muster_graph_builder_attr_int (b, "range_max", 2);
  muster_graph_builder_attr_string (b, "vocab_file", path);
  return b;
}

static void
expect_confined (MusterGraphBuilder *(*graph_of) (const char *path))
{
  g_autoptr (MusterMaster) master = master_within ("data");
  g_autofree char *inside = in_tmpdir ("data/words"), *outside = in_tmpdir ("secret");
  g_autoptr (GError) of_inside = NULL, of_outside = NULL;
  put_file ("data/words", "a,1\nb,2\n", 8);
  put_file ("secret", "a,1\nb,2\n", 8);
  MUSTER_ASSERT_EQ (g_chmod (outside, 0600), 0);

  g_autoptr (MusterGraphBuilder) bad = graph_of (outside), good = graph_of (inside);
  g_autoptr (MusterSession) refused = open_session (master, bad);
  g_autoptr (MusterSession) session = open_session (master, good);
  g_autoptr (MusterTensor) stolen = run_one (refused, NULL, NULL, "size:0", &of_outside);
  EXPECT_SAYS (of_outside, MUSTER_ERROR_PERMISSION_DENIED, outside);
  MUSTER_EXPECT_NULL (stolen);
  g_autoptr (MusterTensor) size = run_one (session, NULL, NULL, "size:0", &of_inside);
  MUSTER_EXPECT_NO_ERROR (of_inside);
  MUSTER_EXPECT_TRUE (size != NULL);
}

MUSTER_TEST (kernels, fill_tables_only_from_the_data_directories)
{
  expect_confined (table_of);
}

MUSTER_TEST (kernels, draw_candidates_only_by_files_of_the_data_directories)
{
  expect_confined (sampler_of);
}
