// SPDX-License-Identifier: Apache-2.0
/* Each optimizer, in both kinds of variables, makes of five steps what TensorFlow makes of them:
 * tests/fixtures/record_digits.py recorded the models, the batches and the weights after them. */
#include "checkpoint/format/bundle_reader.h"
#include "engine/session/local_master.h"
#include "graph/meta_graph/meta_graph.h"
#include "graph/npy.h"
#include "master/master.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"

#define FIXTURES  "tests/fixtures/"
#define N_STEPS   5
#define TOLERANCE 1e-4 /* relative */

/* A model in a session of a master of its own. */
typedef struct {
  MusterMaster *master;
  MusterMetaGraph *meta_graph;
  MusterSession *session;
  MusterTensor *x, *y; /* all steps' rows */
} Model;

static void
model_clear (Model *self)
{
  if (self->session != NULL)
    muster_session_close_quietly (self->session);
  g_clear_object (&self->session);
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  g_clear_object (&self->master);
  g_clear_pointer (&self->x, muster_tensor_unref);
  g_clear_pointer (&self->y, muster_tensor_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Model, model_clear)

static gboolean
model_open (Model *self, const char *name, GError **error)
{
  g_autofree char *path = g_strdup_printf (FIXTURES "%s.meta", name);
  self->master = muster_local_master_new ();
  self->meta_graph = muster_meta_graph_load (path, error);
  if (self->meta_graph == NULL)
    return FALSE;
  self->x = muster_npy_load (FIXTURES "mlp_x.npy", error);
  if (self->x == NULL)
    return FALSE;
  self->y = muster_npy_load (FIXTURES "mlp_y.npy", error);
  if (self->y == NULL)
    return FALSE;
  self->session =
      muster_master_create_session (self->master, muster_meta_graph_graph (self->meta_graph), NULL,
                                    test_deadline (), NULL, error);
  return self->session != NULL &&
         muster_session_run_op (self->session, muster_meta_graph_op (self->meta_graph, "init_op"),
                                test_deadline (), NULL, error);
}

/* The rows of one step. */
static MusterTensor *
rows_of_step (MusterTensor *all, int step, GError **error)
{
  gint64 dims[2] = {muster_tensor_dims (all)[0] / N_STEPS, 0};
  if (muster_tensor_n_dims (all) == 2)
    dims[1] = muster_tensor_dims (all)[1];
  gsize size = muster_tensor_n_bytes (all) / N_STEPS;
  const char *data = muster_tensor_data (all);
  return muster_tensor_new_from_data (muster_tensor_dtype (all), muster_tensor_n_dims (all), dims,
                                      data + (gsize)step * size, size, error);
}

static gboolean
model_train (Model *self, GError **error)
{
  const char *const targets[] = {"train"};
  for (int i = 0; i < N_STEPS; i++) {
    g_autoptr (MusterTensor) x = rows_of_step (self->x, i, error);
    g_autoptr (MusterTensor) y = x != NULL ? rows_of_step (self->y, i, error) : NULL;
    if (y == NULL)
      return FALSE;
    const MusterFeed feeds[] = {{"x:0", x}, {"y:0", y}};
    const MusterStep step = {.feeds = feeds,
                             .n_feeds = G_N_ELEMENTS (feeds),
                             .targets = targets,
                             .n_targets = G_N_ELEMENTS (targets),
                             .deadline_us = test_deadline ()};
    if (!muster_session_run (self->session, &step, NULL, NULL, NULL, error))
      return FALSE;
  }
  return TRUE;
}

/* Relative, and absolute where the value is next to nothing. */
static gboolean
is_close (double value, double wanted)
{
  return ABS (value - wanted) <= TOLERANCE * ABS (wanted) + 1e-7;
}

static void
expect_close (const char *name, const MusterTensor *value, const MusterTensor *wanted)
{
  muster_test_trace (__FILE__, __LINE__, "variable '%s'", name);
  MUSTER_ASSERT_EQ (muster_tensor_dtype (value), muster_tensor_dtype (wanted));
  MUSTER_ASSERT_EQ (muster_tensor_n_bytes (value), muster_tensor_n_bytes (wanted));
  if (muster_tensor_dtype (wanted) != MUSTER_FLOAT) {
    MUSTER_EXPECT_TRUE (muster_tensor_equal (value, wanted));
    return;
  }
  const float *a = muster_tensor_data (value), *b = muster_tensor_data (wanted);
  for (gint64 i = 0; i < muster_tensor_n_elements (wanted); i++)
    if (!is_close (a[i], b[i]))
      muster_test_fail (__FILE__, __LINE__, "element %d is %.9g, TensorFlow's is %.9g", (int)i,
                        (double)a[i], (double)b[i]);
}

static void
expect_recorded_weights (Model *self, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = g_strdup_printf (FIXTURES "%s.after5", name);
  g_autoptr (MusterBundleReader) recorded = muster_bundle_reader_open (NULL, prefix, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  gsize n_variables = 0;
  const MusterVariableInfo *variables =
      muster_meta_graph_variables (self->meta_graph, &n_variables);
  MUSTER_ASSERT_EQ (n_variables, muster_bundle_reader_n_entries (recorded));
  for (gsize i = 0; i < n_variables; i++) {
    g_autoptr (MusterTensor) wanted =
        muster_bundle_reader_read (recorded, variables[i].name, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (MusterTensor) value =
        muster_session_fetch (self->session, variables[i].snapshot, test_deadline (), NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    expect_close (variables[i].name, value, wanted);
  }
}

static void
expect_what_tensorflow_learns (const char *name)
{
  g_autoptr (GError) error = NULL;
  g_auto (Model) model = {0};
  (void)model_open (&model, name, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  (void)model_train (&model, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  expect_recorded_weights (&model, name);
}

#define OPTIMIZER(kind)                                                                            \
  MUSTER_TEST (optimizers, kind##_learns_what_tensorflow_learns_in_reference_variables)            \
  {                                                                                                \
    expect_what_tensorflow_learns ("mlp_" #kind "_ref");                                           \
  }                                                                                                \
  MUSTER_TEST (optimizers, kind##_learns_what_tensorflow_learns_in_resource_variables)             \
  {                                                                                                \
    expect_what_tensorflow_learns ("mlp_" #kind "_resource");                                      \
  }

OPTIMIZER (sgd)
OPTIMIZER (momentum)
OPTIMIZER (adam)
OPTIMIZER (adagrad)
OPTIMIZER (rms)
OPTIMIZER (ftrl)
