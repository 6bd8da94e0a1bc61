// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/fixture.h"

#include "base/protowire_private.h"

/* tensorflow.ConfigProto */
enum { DEVICE_FILTERS = 4, SOFT_PLACEMENT = 7, CLUSTER_DEF = 14, ISOLATE = 15 };

static GBytes *
config_with (guint32 number, guint64 value)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  muster_proto_put_uint (bytes, number, value);
  return g_bytes_new (bytes->data, bytes->len);
}

static GBytes *
config_saying (guint32 number, const char *text)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  muster_proto_put_string (bytes, number, text);
  return g_bytes_new (bytes->data, bytes->len);
}

/* A session over a variable "v" whose node is on that device, with that config. */
static MusterSession *
open_on (MusterMaster *master, const char *device, GBytes *config, GError **error)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_variable (b, "v", 5);
  muster_graph_builder_node (b, "NoOp", "n");
  muster_graph_builder_device (b, device);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (b, error);
  return graph != NULL
             ? muster_master_create_session (master, graph, config, test_deadline (), NULL, error)
             : NULL;
}

MUSTER_TEST (SessionConfig, places_nodes_on_the_one_cpu_of_any_task)
{
  static const char *const good[] = {"",           "/",
                                     "/cpu:0",     "/device:CPU:0",
                                     "/job:ps",    "/job:worker/replica:0/task:3/device:CPU:0",
                                     "/task:*",    "/device:CPU:*",
                                     "/device:*:*"};
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (GBytes) hard = g_bytes_new_static ("", 0);
  for (gsize i = 0; i < G_N_ELEMENTS (good); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterSession) session = open_on (master, good[i], hard, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

MUSTER_TEST (SessionConfig, refuses_other_devices_unless_placement_is_soft)
{
  static const char *const others[] = {"/gpu:0", "/device:CPU:1", "/job:ps/device:TPU:0"};
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (GBytes) hard = g_bytes_new_static ("", 0);
  g_autoptr (GBytes) soft = config_with (SOFT_PLACEMENT, TRUE);
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++) {
    g_autoptr (GError) error = NULL, none = NULL;
    g_autoptr (MusterSession) refused = open_on (master, others[i], hard, &error);
    g_autoptr (MusterSession) placed = open_on (master, others[i], soft, &none);
    g_autoptr (MusterSession) own = open_on (master, others[i], NULL, &none);
    MUSTER_EXPECT_NULL (refused);
    EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Cannot assign a device for operation n: {{node n}} was explicitly assigned to");
    EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, others[i]);
    MUSTER_EXPECT_NO_ERROR (none);
  }
}

MUSTER_TEST (SessionConfig, refuses_what_is_no_devices_name)
{
  static const char *const bad[] = {"cpu:0", "/job:", "/job:1x", "/device:CPU:x", "/job:a/b"};
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterSession) session = open_on (master, bad[i], NULL, &error);
    MUSTER_EXPECT_NULL (session);
    EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "Malformed device specification");
  }
}

MUSTER_TEST (SessionConfig, keeps_an_isolated_sessions_variables_apart)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (GBytes) isolated = config_with (ISOLATE, TRUE);
  g_autoptr (MusterSession) shared = open_on (master, "", NULL, &error);
  g_autoptr (MusterSession) one = open_on (master, "", isolated, &error);
  g_autoptr (MusterSession) two = open_on (master, "", isolated, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (muster_session_run_op (one, "v/Assign", MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_EQ (fetch_float (one, "v"), 5.0f);
  MUSTER_ASSERT_NO_ERROR (error);

  MusterSession *const others[] = {shared, two};
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++) {
    g_autoptr (GError) missing = NULL;
    g_autoptr (MusterTensor) none = run_one (others[i], NULL, NULL, "v/read", &missing);
    EXPECT_SAYS (missing, MUSTER_ERROR_FAILED_PRECONDITION, "uninitialized value v");
  }
}

MUSTER_TEST (SessionConfig, refuses_what_the_engine_cannot_do)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (GBytes) cluster = config_saying (CLUSTER_DEF, "\x0a\x03\x0a\x01w");
  g_autoptr (GBytes) filter = config_saying (DEVICE_FILTERS, "ps");
  g_autoptr (GBytes) cut = g_bytes_new_static ("\x22\x09", 2);
  const struct {
    GBytes *config;
    const char *text;
  } cases[] = {
      {cluster, "cluster_def"}, {filter, "the device filter 'ps'"}, {cut, "in the middle"}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterSession) session = open_on (master, "", cases[i].config, &error);
    MUSTER_EXPECT_NULL (session);
    EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, cases[i].text);
  }
}
