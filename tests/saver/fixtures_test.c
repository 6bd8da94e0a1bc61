// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/bundle_writer.h"
#include "saver/saver.h"
#include "tests/gtest_shim.h"

/* Graphs and checkpoints that TensorFlow wrote: both kinds of variables, whose savers differ. */

static const char *const models[] = {
    "mlp_adagrad_ref",  "mlp_adagrad_resource",  "mlp_adam_ref", "mlp_adam_resource",
    "mlp_ftrl_ref",     "mlp_ftrl_resource",     "mlp_rms_ref",  "mlp_rms_resource",
    "mlp_momentum_ref", "mlp_momentum_resource", "mlp_sgd_ref",  "mlp_sgd_resource",
};

static MusterSaver *
saver_for (const char *model)
{
  g_autofree char *path = g_strdup_printf ("tests/fixtures/%s.meta", model);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_load (path, &error);
  MusterSaver *saver = meta_graph != NULL ? muster_saver_new (meta_graph, NULL, &error) : NULL;

  MUSTER_EXPECT_NO_ERROR (error);
  return saver;
}

MUSTER_TEST (SaverFixtures, fit_their_own_checkpoints)
{
  for (gsize i = 0; i < G_N_ELEMENTS (models); i++) {
    g_autoptr (MusterSaver) saver = saver_for (models[i]);
    g_autofree char *prefix = g_strdup_printf ("tests/fixtures/%s.after5", models[i]);
    g_autoptr (GError) error = NULL;
    MUSTER_ASSERT_TRUE (saver != NULL);
    muster_saver_check_compatible (saver, prefix, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

MUSTER_TEST (SaverFixtures, miss_the_slots_of_another_optimizer)
{
  static const char *const adams[] = {"mlp_adam_ref", "mlp_adam_resource"};
  for (gsize i = 0; i < G_N_ELEMENTS (adams); i++) {
    g_autoptr (MusterSaver) saver = saver_for (adams[i]);
    g_autoptr (GError) error = NULL;
    MUSTER_ASSERT_TRUE (saver != NULL);
    MUSTER_EXPECT_FALSE (
        muster_saver_check_compatible (saver, "tests/fixtures/mlp_sgd_ref.after5", NULL, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_ASSERT_TRUE (error != NULL);
    MUSTER_EXPECT_TRUE (strstr (error->message, "\n  beta1_power "));
    MUSTER_EXPECT_TRUE (strstr (error->message, " not found in checkpoint"));
  }
}

/* A copy in which every matrix has become a vector; says how many. */
static guint
flatten_matrices (const char *from, const char *to)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, from, NULL);
  g_autoptr (MusterBundleWriter) writer =
      muster_bundle_writer_new (muster_local_storage (), to, NULL);
  guint n = 0;

  for (gsize i = 0; reader != NULL && writer != NULL && i < muster_bundle_reader_n_entries (reader);
       i++) {
    const MusterBundleEntry *entry = muster_bundle_reader_entry (reader, i);
    g_autoptr (MusterTensor) tensor = muster_bundle_reader_read (reader, entry->name, NULL);
    gint64 size = muster_tensor_n_elements (tensor);
    g_autoptr (MusterTensor) flat = muster_tensor_reshape (tensor, 1, &size);
    n += entry->n_dims == 2;
    muster_bundle_writer_add (writer, entry->name, entry->n_dims == 2 ? flat : tensor, NULL);
  }
  muster_bundle_writer_finish (writer, NULL);
  return n;
}

/* TensorFlow itself restores a wrong shape into a resource variable. */
MUSTER_TEST (SaverFixtures, know_the_shapes_of_both_kinds_of_variables)
{
  static const char *const adams[] = {"mlp_adam_ref", "mlp_adam_resource"};
  for (gsize i = 0; i < G_N_ELEMENTS (adams); i++) {
    g_autoptr (MusterSaver) saver = saver_for (adams[i]);
    g_autofree char *from = g_strdup_printf ("tests/fixtures/%s.after5", adams[i]);
    g_autofree char *to = g_build_filename (muster_test_tmpdir (), adams[i], NULL);
    g_autoptr (GError) error = NULL;
    guint n = flatten_matrices (from, to);
    MUSTER_EXPECT_GT (n, 0u);
    MUSTER_EXPECT_FALSE (muster_saver_check_compatible (saver, to, NULL, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_ASSERT_TRUE (error != NULL);
    g_autofree char *count = g_strdup_printf ("does not fit the graph: %u of ", n);
    MUSTER_EXPECT_TRUE (strstr (error->message, count));
  }
}
