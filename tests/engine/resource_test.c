// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/resource.h"

#include "engine/run/registry.h"
#include "tests/engine/fixture.h"

/* A resource of the test's own: a box that counts what is put into it. */
typedef struct {
  gint64 size;
  gint64 n;   /* of one thread at a time */
  char *name; /* (owned) */
} Box;

static guint n_boxes, n_cancelled;

static gpointer
make_box (const char *name, gpointer k, GError **error)
{
  const gint64 size = muster_kernel_attr_int (k, "size", 1);
  if (size < 0) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "no box is so small");
    return NULL;
  }
  Box *box = g_new0 (Box, 1);
  box->size = size;
  box->name = g_strdup (name);
  n_boxes++;
  return box;
}

static gboolean
box_fits (gpointer data, const MusterNode *node, GError **error)
{
  const Box *box = data;
  if (muster_node_int (node, "size", 1) == box->size)
    return TRUE;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "box '%s' has another size",
               box->name);
  return FALSE;
}

static void
box_cancel (gpointer box G_GNUC_UNUSED)
{
  n_cancelled++;
}

static void
box_free (gpointer data)
{
  Box *box = data;
  n_boxes--;
  g_free (box->name);
  g_free (box);
}

static const MusterResourceType box_type = {
    .kind = "test::Box", .fits = box_fits, .cancel = box_cancel, .free = box_free};
static const MusterResourceType jar_type = {
    .kind = "test::Jar", .named_by_node = TRUE, .free = box_free};

static gboolean
open_box (MusterKernel *k, GError **error)
{
  return muster_kernel_output_resource (k, 0, &box_type, make_box, error);
}

static gboolean
open_jar (MusterKernel *k, GError **error)
{
  return muster_kernel_output_resource (k, 0, &jar_type, make_box, error);
}

/* Gives how often something was put into it. */
static gboolean
put (MusterKernel *k, const MusterResourceType *type, GError **error)
{
  Box *box = muster_kernel_resource (k, 0, type, error);
  if (box == NULL)
    return FALSE;
  muster_kernel_set_output (k, 0, muster_tensor_new_float ((float)++box->n));
  return TRUE;
}

static gboolean
put_into_box (MusterKernel *k, GError **error)
{
  return put (k, &box_type, error);
}

static gboolean
put_into_jar (MusterKernel *k, GError **error)
{
  return put (k, &jar_type, error);
}

static const MusterOp box_ops[] = {
    {"TestBox", " -> handle:&string", "container shared_name size", open_box, MUSTER_OP_RESOURCE},
    {"TestBoxV2", " -> handle:resource", "container shared_name size", open_box,
     MUSTER_OP_RESOURCE},
    {"TestJar", " -> handle:resource", "container shared_name size", open_jar, MUSTER_OP_RESOURCE},
    {"TestPut", "handle:&string -> n:float", "", put_into_box, MUSTER_OP_RESOURCE},
    {"TestPutV2", "handle:resource -> n:float", "", put_into_box, MUSTER_OP_RESOURCE},
    {"TestPutJar", "handle:resource -> n:float", "", put_into_jar, MUSTER_OP_RESOURCE},
    {0},
};

static void
add_box (MusterGraphBuilder *b, const char *op, const char *name, const char *shared_name,
         gint64 size)
{
  static gsize registered;
  if (g_once_init_enter (&registered)) {
    muster_op_register (box_ops);
    g_once_init_leave (&registered, 1);
  }
  muster_graph_builder_node (b, op, name);
  muster_graph_builder_attr_string (b, "container", "");
  muster_graph_builder_attr_string (b, "shared_name", shared_name);
  muster_graph_builder_attr_int (b, "size", size);
}

static void
add_put (MusterGraphBuilder *b, const char *op, const char *name, const char *handle)
{
  muster_graph_builder_node (b, op, name);
  muster_graph_builder_input (b, handle);
}

/* "box" and "put" into it. */
static MusterSession *
open_with_box (MusterMaster *master, const char *op, const char *put_op, const char *shared_name,
               gint64 size)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_box (b, op, "box", shared_name, size);
  add_put (b, put_op, "put", "box");
  return open_session (master, b);
}

static GError *
error_of (MusterSession *session, const char *fetch)
{
  GError *error = NULL;
  MUSTER_EXPECT_NULL (run_one (session, NULL, NULL, fetch, &error));
  return error;
}

MUSTER_TEST (Resource, is_shared_by_its_shared_name_and_outlives_a_session)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) first = open_with_box (master, "TestBoxV2", "TestPutV2", "b", 1);
  g_autoptr (MusterSession) second = open_with_box (master, "TestBox", "TestPut", "b", 1);
  MUSTER_EXPECT_EQ (fetch_float (first, "put"), 1);
  MUSTER_EXPECT_EQ (fetch_float (first, "put"), 2);
  MUSTER_EXPECT_EQ (fetch_float (second, "put"), 3);
  MUSTER_EXPECT_TRUE (muster_session_close (first, test_deadline (), NULL, NULL));
  MUSTER_EXPECT_EQ (fetch_float (second, "put"), 4);
  MUSTER_EXPECT_EQ (n_boxes, 1);
}

MUSTER_TEST (Resource, without_a_shared_name_is_the_sessions_own_and_ends_with_it)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) first = open_with_box (master, "TestBoxV2", "TestPutV2", "", 1);
  g_autoptr (MusterSession) second = open_with_box (master, "TestBoxV2", "TestPutV2", "", 1);
  n_cancelled = 0;
  MUSTER_EXPECT_EQ (fetch_float (first, "put"), 1);
  MUSTER_EXPECT_EQ (fetch_float (second, "put"), 1);
  MUSTER_EXPECT_EQ (fetch_float (first, "put"), 2);
  MUSTER_EXPECT_EQ (n_boxes, 2);
  MUSTER_EXPECT_TRUE (muster_session_close (first, test_deadline (), NULL, NULL));
  MUSTER_EXPECT_EQ (n_boxes, 1);
  MUSTER_EXPECT_EQ (n_cancelled, 1);
}

MUSTER_TEST (Resource, named_by_its_node_is_shared_without_a_shared_name)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) first = open_with_box (master, "TestJar", "TestPutJar", "", 1);
  g_autoptr (MusterSession) second = open_with_box (master, "TestJar", "TestPutJar", "", 1);
  MUSTER_EXPECT_EQ (fetch_float (first, "put"), 1);
  MUSTER_EXPECT_EQ (fetch_float (second, "put"), 2);
}

MUSTER_TEST (Resource, is_dropped_and_cancelled_by_a_reset)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) first = open_with_box (master, "TestBoxV2", "TestPutV2", "b", 1);
  const char *const other[] = {"elsewhere", NULL};
  const char *const its_own[] = {"localhost", NULL};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_EQ (fetch_float (first, "put"), 1);
  n_cancelled = 0;
  MUSTER_EXPECT_TRUE (muster_master_reset (master, other, test_deadline (), NULL, &error));
  MUSTER_EXPECT_EQ (n_boxes, 1);
  MUSTER_EXPECT_TRUE (muster_master_reset (master, its_own, test_deadline (), NULL, &error));
  MUSTER_EXPECT_EQ (n_boxes, 0);
  MUSTER_EXPECT_EQ (n_cancelled, 1);
  /* The same nodes again, with what they remembered of the first box. */
  g_autoptr (MusterSession) second = open_with_box (master, "TestBoxV2", "TestPutV2", "b", 1);
  MUSTER_EXPECT_EQ (fetch_float (second, "put"), 1);
}

MUSTER_TEST (Resource, that_is_destroyed_is_made_anew)
{
  static const char *const names[] = {"b", ""};
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
    const char *const target = "destroy";
    g_autoptr (GError) error = NULL;
    const MusterStep step = {.targets = &target, .n_targets = 1, .deadline_us = test_deadline ()};
    add_box (b, "TestBoxV2", "box", names[i], 1);
    add_put (b, "TestPutV2", "put", "box");
    add_put (b, "DestroyResourceOp", target, "box");
    g_autoptr (MusterSession) session = open_session (NULL, b);
    MUSTER_EXPECT_EQ (fetch_float (session, "put"), 1);
    MUSTER_EXPECT_EQ (fetch_float (session, "put"), 2);
    MUSTER_EXPECT_TRUE (muster_session_run (session, &step, NULL, NULL, NULL, &error));
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (n_boxes, 0);
    MUSTER_EXPECT_EQ (fetch_float (session, "put"), 1);
  }
}

MUSTER_TEST (Resource, says_which_resource_two_nodes_want_differently)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) first = open_with_box (master, "TestBoxV2", "TestPutV2", "b", 1);
  g_autoptr (MusterSession) second = open_with_box (master, "TestBoxV2", "TestPutV2", "b", 2);
  g_autoptr (MusterSession) third = open_with_box (master, "TestBoxV2", "TestPutV2", "c", -1);
  MUSTER_EXPECT_EQ (fetch_float (first, "put"), 1);
  g_autoptr (GError) error = error_of (second, "put");
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "box 'b' has another size");
  g_autoptr (GError) small = error_of (third, "put");
  EXPECT_SAYS (small, MUSTER_ERROR_INVALID_ARGUMENT, "no box is so small");
}

MUSTER_TEST (Resource, is_taken_only_by_what_it_is)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_box (b, "TestBoxV2", "box", "b", 1);
  add_box (b, "TestBox", "old", "b", 1);
  add_put (b, "TestPutJar", "as_jar", "box");
  muster_graph_builder_node (b, "VarHandleOp", "v");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_string (b, "shared_name", "v");
  add_put (b, "TestPutV2", "into_variable", "v");
  add_put (b, "ReadVariableOp", "read", "box");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  add_put (b, "IsVariableInitialized", "initialized", "old");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_STRING);
  g_autoptr (MusterSession) session = open_session (NULL, b);

  g_autoptr (GError) as_jar = error_of (session, "as_jar");
  EXPECT_SAYS (as_jar, MUSTER_ERROR_INVALID_ARGUMENT,
               "The handle points to a resource (name 'b') of type 'test::Box' but you are trying "
               "to access the resource as type 'test::Jar'");
  g_autoptr (GError) variable = error_of (session, "into_variable");
  EXPECT_SAYS (variable, MUSTER_ERROR_INVALID_ARGUMENT,
               "(name 'v') of type 'tensorflow::Var' but you are trying to access the resource as "
               "type 'test::Box'");
  g_autoptr (GError) read = error_of (session, "read");
  EXPECT_SAYS (read, MUSTER_ERROR_INVALID_ARGUMENT, "which op 'ReadVariableOp' doesn't take");
  g_autoptr (GError) initialized = error_of (session, "initialized");
  EXPECT_SAYS (initialized, MUSTER_ERROR_INVALID_ARGUMENT, "which op 'IsVariableInitialized'");
  g_autoptr (GError) fetched = error_of (session, "box");
  EXPECT_SAYS (fetched, MUSTER_ERROR_UNIMPLEMENTED, "fetch an op that reads it");
}

/* A handle is no value: what takes any dtype doesn't take that. */
MUSTER_TEST (Resource, is_no_value_to_compute_with)
{
  static const char *const ops[] = {"ZerosLike", "Snapshot", "Identity"};
  for (gsize i = 0; i < G_N_ELEMENTS (ops); i++)
    for (int of_variable = 0; of_variable < 2; of_variable++) {
      g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
      if (of_variable) {
        muster_graph_builder_node (b, "VarHandleOp", "handle");
        muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
      } else {
        add_box (b, "TestBoxV2", "handle", "b", 1);
      }
      add_put (b, ops[i], "y", "handle");
      muster_graph_builder_attr_type (b, "T", MUSTER_RESOURCE);
      g_autoptr (MusterSession) session = open_session (NULL, b);
      g_autoptr (GError) error = error_of (session, "y");
      EXPECT_SAYS (error, i == 2 ? MUSTER_ERROR_UNIMPLEMENTED : MUSTER_ERROR_INVALID_ARGUMENT,
                   i == 2 ? "can't be fetched; fetch an op that reads it"
                          : "not in the list of allowed values");
    }
}

MUSTER_TEST (Resource, refuses_the_names_that_TensorFlow_refuses)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_box (b, "TestBox", "private", "_b", 1);
  add_box (b, "TestBox", "place", "b", 1);
  muster_graph_builder_attr_string (b, "container", "no place");
  g_autoptr (MusterSession) session = open_session (NULL, b);
  g_autoptr (GError) private = error_of (session, "private");
  EXPECT_SAYS (private, MUSTER_ERROR_INVALID_ARGUMENT, "shared_name cannot start with '_':_b");
  g_autoptr (GError) place = error_of (session, "place");
  EXPECT_SAYS (place, MUSTER_ERROR_INVALID_ARGUMENT,
               "container contains invalid characters: no place");
}

/* An op of the first generation: what it gives is also a value. */
MUSTER_TEST (Resource, of_the_first_generation_is_two_strings_to_all_others)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_box (b, "TestBox", "box", "b", 1);
  add_put (b, "Snapshot", "copy", "box");
  muster_graph_builder_attr_type (b, "T", MUSTER_STRING);
  add_put (b, "Identity", "same", "box");
  muster_graph_builder_attr_type (b, "T", MUSTER_STRING);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  const char *const fetches[] = {"box", "copy", "same"};
  for (gsize i = 0; i < G_N_ELEMENTS (fetches); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) text = run_one (session, NULL, NULL, fetches[i], &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (muster_tensor_n_elements (text), 2);
    const MusterString name = muster_tensor_string (text, 1);
    MUSTER_EXPECT_MEMEQ (name.data, name.size, "b", 1);
  }
}
