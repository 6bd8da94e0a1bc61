// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/seen_model.h"

#include "engine/session/local_master.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* What a traced step of the model says (transfer full). */
static GBytes *
trace_step (MusterMetaGraph *model, GError **error)
{
  static const guint8 full_trace[] = {8, 3};
  const gint64 batch = MUSTER_SEEN_BATCH;
  const char *init = "init", *train = "train";
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_meta_graph_graph (model), NULL, test_deadline (), NULL, error);
  g_autoptr (GBytes) options = g_bytes_new_static (full_trace, sizeof full_trace);
  g_autoptr (MusterTensor) rows = muster_tensor_new (MUSTER_INT64, 1, &batch);
  const MusterFeed feed = {"rows:0", rows};
  const MusterStep first = {.targets = &init, .n_targets = 1, .deadline_us = test_deadline ()};
  const MusterStep step = {.feeds = &feed,
                           .n_feeds = 1,
                           .targets = &train,
                           .n_targets = 1,
                           .options = options,
                           .deadline_us = test_deadline ()};
  GBytes *metadata = NULL;
  memset (muster_tensor_data_mutable (rows), 0, muster_tensor_n_bytes (rows));
  if (session != NULL && muster_session_run (session, &first, NULL, NULL, NULL, error))
    (void)muster_session_run (session, &step, NULL, &metadata, NULL, error);
  return metadata;
}

static int
count_products (GBytes *metadata)
{
  static const char label[] = " = MatMul(";
  gsize size;
  const char *data = g_bytes_get_data (metadata, &size), *end = data + size;
  int n = 0;
  for (const char *at = data; (at = memmem (at, (gsize)(end - at), label, strlen (label))) != NULL;
       at++)
    n++;
  return n;
}

/* Else its steps take no time, and nothing that tests do meets one midway. */
MUSTER_TEST (SeenModel, works_between_its_writes)
{
  for (int resources = 0; resources < 2; resources++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMetaGraph) model =
        muster_seen_model_new (&(MusterSeenModel){.resources = resources, .work = 3});
    g_autoptr (GBytes) metadata = trace_step (model, &error);

    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (count_products (metadata), 2);
  }
}
