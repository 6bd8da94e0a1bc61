// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/resources.h"
#include "engine/resources/variable.h"
#include "tests/engine/fixture.h"

static const MusterNodeKind kind = {.op = "VariableV2", .device = ""};
static const MusterNode node = {.name = "v", .kind = &kind};

static MusterVariable *
find (MusterResources *resources, const char *name, gboolean is_resource, MusterDType dtype,
      GError **error)
{
  const MusterVariableRequest wanted = {.container = "localhost",
                                        .name = name,
                                        .is_resource = is_resource,
                                        .dtype = dtype,
                                        .def = &node};
  return muster_resources_variable (resources, &wanted, error);
}

/* A cached variable is found without a look-up, as long as it is there. */
MUSTER_TEST (Variable, one_that_was_cached_is_found_anew_once_it_was_removed)
{
  MusterResourceCache cache = {0};
  MusterVariableRequest wanted = {
      .container = "localhost", .name = "v", .dtype = MUSTER_FLOAT, .def = &node, .cache = &cache};
  g_autoptr (MusterResources) resources = muster_resources_new ();
  g_autoptr (MusterResources) others = muster_resources_new ();
  g_autoptr (MusterVariable) first = muster_resources_variable (resources, &wanted, NULL);
  g_autoptr (MusterVariable) again = muster_resources_variable (resources, &wanted, NULL);
  MUSTER_EXPECT_TRUE (first == again && cache.what == first);

  g_autoptr (MusterVariable) other = muster_resources_variable (others, &wanted, NULL);
  MUSTER_EXPECT_TRUE (other != first);

  muster_resources_clear (resources, NULL);
  g_autoptr (MusterVariable) fresh = muster_resources_variable (resources, &wanted, NULL);
  MUSTER_EXPECT_TRUE (fresh != first);

  /* One without a value makes way for another dtype. */
  wanted.dtype = MUSTER_INT32;
  wanted.cache = NULL;
  g_autoptr (MusterVariable) number = muster_resources_variable (resources, &wanted, NULL);
  wanted.dtype = MUSTER_FLOAT;
  wanted.cache = &cache;
  g_autoptr (MusterVariable) last = muster_resources_variable (resources, &wanted, NULL);
  MUSTER_EXPECT_TRUE (last != fresh && muster_variable_dtype (last) == MUSTER_FLOAT);
}

MUSTER_TEST (Variable, an_update_leaves_a_snapshot_alone)
{
  g_autoptr (MusterResources) resources = muster_resources_new ();
  g_autoptr (MusterVariable) v = find (resources, "v", FALSE, MUSTER_FLOAT, NULL);
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  muster_variable_assign (v, one);
  g_autoptr (MusterTensor) snapshot = muster_variable_read (v);

  float *data = muster_variable_begin_update (v);
  data[0] = 2;
  muster_variable_end_update (v);

  g_autoptr (MusterTensor) now = muster_variable_read (v);
  MUSTER_EXPECT_EQ (float_of (snapshot), 1.0f);
  MUSTER_EXPECT_EQ (float_of (now), 2.0f);
}

/* What nobody holds is there already; what a snapshot holds is told, and stays until the end. */
MUSTER_TEST (Variable, a_rewrite_says_what_is_to_be_copied)
{
  const void *from;
  g_autoptr (MusterResources) resources = muster_resources_new ();
  g_autoptr (MusterVariable) v = find (resources, "v", FALSE, MUSTER_FLOAT, NULL);
  MusterTensor *one = muster_tensor_new_float (1);
  muster_variable_assign (v, one);

  float *data = muster_variable_begin_rewrite (v, &from); /* held by us */
  MUSTER_ASSERT_TRUE (data != NULL && from != NULL);
  MUSTER_EXPECT_PTR_EQ (from, muster_tensor_data (one));
  muster_tensor_unref (one);
  data[0] = *(const float *)from + 1;
  muster_variable_end_update (v);
  g_autoptr (MusterTensor) now = muster_variable_read (v);
  MUSTER_EXPECT_EQ (float_of (now), 2.0f);
  g_clear_pointer (&now, muster_tensor_unref);

  MUSTER_ASSERT_TRUE (muster_variable_begin_rewrite (v, &from) != NULL);
  MUSTER_EXPECT_NULL (from);
  muster_variable_end_update (v);
}

/* A model of two variables and a gradient, of a length that no block divides. */
#define LONG_N 20001

static MusterTensor *
numbered (float scale)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_FLOAT, 1, (const gint64[]){LONG_N});
  for (gsize i = 0; i < LONG_N; i++)
    ((float *)muster_tensor_data_mutable (tensor))[i] = scale * (float)i;
  return tensor;
}

static MusterSession *
open_long_model (MusterMaster *master)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) v = numbered (1), a = numbered (2), gradient = numbered (3);
  g_autoptr (MusterTensor) wrong = muster_tensor_new_float (1);
  muster_graph_builder_variable (b, "v", v);
  muster_graph_builder_variable (b, "a", a);
  muster_graph_builder_constant (b, "gradient", gradient);
  muster_graph_builder_constant (b, "wrong", wrong);
  add_constant (b, "rate", 0.5f);
  muster_graph_builder_node (b, "ApplyMomentum", "train");
  for (const char *const *input = (const char *const[]){"v", "a", "rate", "gradient", "rate", NULL};
       *input != NULL; input++)
    muster_graph_builder_input (b, *input);
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  add_binary (b, "AssignAdd", "add", "v", "gradient");
  add_binary (b, "AssignAdd", "misfit", "v", "wrong");
  add_binary (b, "ApplyGradientDescent", "mistrain", "v", "rate");
  muster_graph_builder_input (b, "wrong");
  MusterSession *session = open_session (master, b);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_session_run_op (session, "v/Assign", test_deadline (), NULL, &error) &&
                      muster_session_run_op (session, "a/Assign", test_deadline (), NULL, &error));
  return session;
}

/* The same, whether or not somebody holds what is updated; and what is held stays. */
MUSTER_TEST (Variable, an_update_out_of_a_snapshot_is_as_one_in_place)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) held_master = muster_local_master_new ();
  g_autoptr (MusterMaster) free_master = muster_local_master_new ();
  g_autoptr (MusterSession) held = open_long_model (held_master);
  g_autoptr (MusterSession) free = open_long_model (free_master);
  g_autoptr (MusterTensor) before = numbered (1);
  const char *ops[] = {"train", "add", "train"};
  for (gsize i = 0; i < G_N_ELEMENTS (ops); i++) {
    g_autoptr (MusterTensor) v = run_one (held, NULL, NULL, "v", &error);
    g_autoptr (MusterTensor) a = run_one (held, NULL, NULL, "a", &error);
    MUSTER_ASSERT_TRUE (v != NULL && a != NULL);
    muster_session_run_op (held, ops[i], test_deadline (), NULL, &error);
    muster_session_run_op (free, ops[i], test_deadline (), NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (muster_tensor_equal (v, before), i == 0);
  }

  for (const char *const *name = (const char *const[]){"v", "a", NULL}; *name != NULL; name++) {
    g_autoptr (MusterTensor) one = run_one (held, NULL, NULL, *name, &error);
    g_autoptr (MusterTensor) other = run_one (free, NULL, NULL, *name, &error);
    MUSTER_EXPECT_TRUE (muster_tensor_equal (one, other));
  }
}

MUSTER_TEST (Variable, an_update_that_is_refused_leaves_what_a_snapshot_holds)
{
  g_autoptr (MusterSession) session = open_long_model (NULL);
  g_autoptr (MusterTensor) held = run_one (session, NULL, NULL, "v", NULL);
  for (const char *const *op = (const char *const[]){"misfit", "mistrain", NULL}; *op != NULL;
       op++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (muster_session_run_op (session, *op, test_deadline (), NULL, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    g_autoptr (MusterTensor) now = run_one (session, NULL, NULL, "v", NULL);
    MUSTER_EXPECT_TRUE (muster_tensor_equal (held, now));
  }
}

MUSTER_TEST (Variable, an_update_of_a_value_nobody_holds_is_in_place)
{
  g_autoptr (MusterResources) resources = muster_resources_new ();
  g_autoptr (MusterVariable) v = find (resources, "v", FALSE, MUSTER_FLOAT, NULL);
  MusterTensor *one = muster_tensor_new_float (1);
  muster_variable_assign (v, one);
  muster_tensor_unref (one);

  void *first = muster_variable_begin_update (v);
  muster_variable_end_update (v);
  void *second = muster_variable_begin_update (v);
  muster_variable_end_update (v);

  MUSTER_EXPECT_PTR_EQ (first, second);
}

MUSTER_TEST (Variable, updating_several_takes_each_lock_once_and_needs_all_values)
{
  void *data[3];
  g_autoptr (MusterResources) resources = muster_resources_new ();
  g_autoptr (MusterVariable) a = find (resources, "a", TRUE, MUSTER_FLOAT, NULL);
  g_autoptr (MusterVariable) b = find (resources, "b", TRUE, MUSTER_FLOAT, NULL);
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  muster_variable_assign (a, one);

  MUSTER_EXPECT_FALSE (muster_variables_begin_update ((MusterVariable *[]){b, a, b}, 3, data));
  muster_variable_assign (b, one);
  MUSTER_ASSERT_TRUE (muster_variables_begin_update ((MusterVariable *[]){b, a, b}, 3, data));
  MUSTER_EXPECT_PTR_EQ (data[0], data[2]);
  muster_variables_end_update ((MusterVariable *[]){b, a, b}, 3);
}

MUSTER_TEST (Variable, is_found_by_container_name_and_kind)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterResources) resources = muster_resources_new ();
  g_autoptr (MusterVariable) reference = find (resources, "v", FALSE, MUSTER_FLOAT, NULL);
  g_autoptr (MusterVariable) handle = find (resources, "v", TRUE, MUSTER_FLOAT, NULL);
  g_autoptr (MusterVariable) again = find (resources, "v", FALSE, MUSTER_FLOAT, NULL);
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  muster_variable_assign (reference, one);

  g_autoptr (MusterVariable) other = find (resources, "v", FALSE, MUSTER_INT32, &error);

  MUSTER_EXPECT_PTR_EQ (reference, again);
  MUSTER_EXPECT_TRUE (handle != reference);
  MUSTER_EXPECT_NULL (other);
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "holds float, but is wanted as int32");
}

MUSTER_TEST (Variable, clearing_one_container_keeps_the_others)
{
  g_autoptr (MusterResources) resources = muster_resources_new ();
  g_autoptr (MusterVariable) v = find (resources, "v", FALSE, MUSTER_FLOAT, NULL);
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  muster_variable_assign (v, one);

  MUSTER_EXPECT_FALSE (muster_resources_clear (resources, (const char *[]){"other", NULL}));
  g_autoptr (MusterVariable) kept = find (resources, "v", FALSE, MUSTER_FLOAT, NULL);
  MUSTER_EXPECT_TRUE (muster_resources_clear (resources, (const char *[]){"localhost", NULL}));
  g_autoptr (MusterVariable) fresh = find (resources, "v", FALSE, MUSTER_FLOAT, NULL);

  MUSTER_EXPECT_PTR_EQ (kept, v);
  MUSTER_EXPECT_FALSE (muster_variable_is_initialized (fresh));
}

MUSTER_TEST (Variable, an_update_of_no_elements_is_one)
{
  const gint64 dims[] = {0, 3};
  void *data[2];
  g_autoptr (MusterResources) resources = muster_resources_new ();
  g_autoptr (MusterVariable) v = find (resources, "v", FALSE, MUSTER_FLOAT, NULL);
  g_autoptr (MusterVariable) w = find (resources, "w", FALSE, MUSTER_FLOAT, NULL);
  g_autoptr (GBytes) none = g_bytes_new_static (NULL, 0);
  g_autoptr (MusterTensor) held = muster_tensor_new (MUSTER_FLOAT, 2, dims);
  g_autoptr (MusterTensor) borrowed =
      muster_tensor_new_from_bytes (MUSTER_FLOAT, 2, dims, none, NULL);
  MUSTER_ASSERT_TRUE (borrowed != NULL);
  muster_variable_assign (v, held);
  muster_variable_assign (w, borrowed);

  MUSTER_ASSERT_TRUE (muster_variable_begin_update (v) != NULL); /* held by us too */
  muster_variable_end_update (v);
  MUSTER_ASSERT_TRUE (muster_variable_begin_update (v) != NULL); /* the variable's alone */
  muster_variable_end_update (v);
  MUSTER_ASSERT_TRUE (muster_variable_begin_update (w) != NULL);
  muster_variable_end_update (w);
  MUSTER_ASSERT_TRUE (muster_variables_begin_update ((MusterVariable *[]){v, w}, 2, data));
  muster_variables_end_update ((MusterVariable *[]){v, w}, 2);
}

MUSTER_TEST (Variable, an_optimizer_takes_a_variable_of_no_elements)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) none = muster_tensor_new (MUSTER_FLOAT, 1, (const gint64[]){0});
  muster_graph_builder_variable (b, "v", none);
  muster_graph_builder_constant (b, "gradient", none);
  add_constant (b, "rate", 0.5f);
  add_binary (b, "ApplyGradientDescent", "train", "v", "rate");
  muster_graph_builder_input (b, "gradient");
  add_binary (b, "AssignAdd", "add", "v", "gradient");
  g_autoptr (MusterSession) session = open_session (NULL, b);

  g_autoptr (MusterTensor) set = run_one (session, NULL, NULL, "v/Assign", &error);
  MUSTER_ASSERT_TRUE (set != NULL);
  g_autoptr (MusterTensor) trained = run_one (session, NULL, NULL, "train", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterTensor) added = run_one (session, NULL, NULL, "add", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (trained != NULL && muster_tensor_n_elements (trained) == 0);
  MUSTER_EXPECT_TRUE (added != NULL && muster_tensor_n_elements (added) == 0);
}

/* More than a cache holds, and no whole number of blocks. */
#define N_LARGE 2100003

static void
add_large (MusterGraphBuilder *b, const char *name, const char *value)
{
  const gint64 n = N_LARGE;
  g_autofree char *filled = g_strconcat (name, "/filled", NULL);
  g_autofree char *assign = g_strconcat (name, "/Assign", NULL);
  muster_graph_builder_node (b, "VariableV2", name);
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (b, "shape", 1, &n);
  muster_graph_builder_node (b, "Fill", filled);
  muster_graph_builder_input (b, "n");
  muster_graph_builder_input (b, value);
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, "index_type", MUSTER_INT32);
  muster_graph_builder_node (b, "Assign", assign);
  muster_graph_builder_input (b, name);
  muster_graph_builder_input (b, filled);
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
}

static MusterSession *
open_large (void)
{
  static const gint32 size = N_LARGE;
  static const gint64 one_dim = 1;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) n =
      muster_tensor_new_from_data (MUSTER_INT32, 1, &one_dim, &size, sizeof size, NULL);
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  g_autoptr (MusterTensor) half = muster_tensor_new_float (0.5f);
  muster_graph_builder_constant (b, "n", n);
  muster_graph_builder_constant (b, "one", one);
  muster_graph_builder_constant (b, "half", half);
  add_large (b, "v", "one");
  add_large (b, "accum", "half");
  add_large (b, "gradient", "one");
  muster_graph_builder_node (b, "ApplyMomentum", "train");
  for (int i = 0; i < 5; i++)
    muster_graph_builder_input (b, (const char *[]){"v", "accum", "half", "gradient", "half"}[i]);
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  return open_session (NULL, b);
}

static gboolean
all_are (MusterTensor *tensor, float value)
{
  const float *data = muster_tensor_data (tensor);
  gboolean all = muster_tensor_n_elements (tensor) == N_LARGE;
  for (gint64 i = 0; all && i < N_LARGE; i++)
    all = data[i] == value;
  return all;
}

/* accum = 0.5 * 0.5 + 1; v = 1 - 0.5 * accum. Of the slots, one is held at first, then the other,
 * then both. */
MUSTER_TEST (Variable, a_large_one_is_trained_out_of_a_snapshot_to_its_last_element)
{
  static const char *const inits[] = {"v/Assign", "accum/Assign", "gradient/Assign"};
  g_autoptr (MusterSession) session = open_large ();
  for (int held = 1; held < 4; held++) {
    g_autoptr (GError) error = NULL;
    for (int i = 0; i < 3; i++)
      muster_session_run_op (session, inits[i], test_deadline (), NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (MusterTensor) v = held & 1 ? run_one (session, NULL, NULL, "v:0", &error) : NULL;
    g_autoptr (MusterTensor) accum =
        held & 2 ? run_one (session, NULL, NULL, "accum:0", &error) : NULL;
    muster_session_run_op (session, "train", test_deadline (), NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (MusterTensor) new_v = run_one (session, NULL, NULL, "v:0", &error);
    g_autoptr (MusterTensor) new_accum = run_one (session, NULL, NULL, "accum:0", &error);
    MUSTER_EXPECT_TRUE (all_are (new_v, 0.375f) && all_are (new_accum, 1.25f));
    MUSTER_EXPECT_TRUE (v == NULL || all_are (v, 1));
    MUSTER_EXPECT_TRUE (accum == NULL || all_are (accum, 0.5f));
  }
}
