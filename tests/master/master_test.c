// SPDX-License-Identifier: Apache-2.0
#include "master/master.h"
#include "master/remote/remote_master.h"
#include "master/remote/target.h"
#include "tests/gtest_shim.h"

#include <string.h>

static void
ignore (gpointer user_data G_GNUC_UNUSED)
{
}

/* --- a master whose class lacks every function, or whose functions do nothing --- */

typedef GObject MusterHalfMaster;
typedef GObjectClass MusterHalfMasterClass;

static void
muster_half_master_init (MusterHalfMaster *self G_GNUC_UNUSED)
{
}

static void
muster_half_master_class_init (MusterHalfMasterClass *klass G_GNUC_UNUSED)
{
}

static void
muster_half_master_master_init (MusterMasterInterface *iface G_GNUC_UNUSED)
{
}

static GType muster_half_master_get_type (void);
G_DEFINE_TYPE_WITH_CODE (MusterHalfMaster, muster_half_master, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (MUSTER_TYPE_MASTER, muster_half_master_master_init))

static const char *
no_target (MusterMaster *self G_GNUC_UNUSED)
{
  return NULL;
}

static MusterSession *
no_session (MusterMaster *self G_GNUC_UNUSED, MusterGraph *graph G_GNUC_UNUSED,
            GBytes *config G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
            GCancellable *cancellable G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  return NULL;
}

static gboolean
no_reset (MusterMaster *self G_GNUC_UNUSED, const char *const *containers G_GNUC_UNUSED,
          gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
          GError **error G_GNUC_UNUSED)
{
  return FALSE;
}

MUSTER_TEST (Master, that_implements_a_part_fails_in_the_rest)
{
  g_autoptr (GObject) half = g_object_new (muster_half_master_get_type (), NULL);
  MusterMaster *master = MUSTER_MASTER (half);
  MusterMasterInterface *iface = MUSTER_MASTER_GET_IFACE (master);
  g_autoptr (GBytes) nothing = g_bytes_new (NULL, 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (nothing);
  g_autoptr (GError) lacks = NULL, devices = NULL, reset = NULL, none = NULL, failed = NULL;
  MUSTER_EXPECT_STREQ (muster_master_target (master), "MusterHalfMaster");
  MUSTER_EXPECT_NULL (
      muster_master_create_session (master, graph, NULL, MUSTER_WAIT_FOREVER, NULL, &lacks));
  MUSTER_EXPECT_SAYS (lacks, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED,
                      "MusterHalfMaster implements no create_session ()");
  MUSTER_EXPECT_NULL (muster_master_list_devices (master, MUSTER_WAIT_FOREVER, NULL, &devices));
  MUSTER_EXPECT_ERROR (devices, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
  MUSTER_EXPECT_FALSE (muster_master_reset (master, NULL, MUSTER_WAIT_FOREVER, NULL, &reset));
  MUSTER_EXPECT_ERROR (reset, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
  iface->target = no_target;
  iface->create_session = no_session;
  iface->reset = no_reset;
  MUSTER_EXPECT_STREQ (muster_master_target (master), "MusterHalfMaster");
  MUSTER_EXPECT_NULL (
      muster_master_create_session (master, graph, NULL, MUSTER_WAIT_FOREVER, NULL, &none));
  MUSTER_EXPECT_SAYS (none, MUSTER_ERROR, MUSTER_ERROR_INTERNAL,
                      "MusterHalfMaster: create_session () failed without an error");
  MUSTER_EXPECT_FALSE (muster_master_reset (master, NULL, MUSTER_WAIT_FOREVER, NULL, &failed));
  MUSTER_EXPECT_ERROR (failed, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
}

MUSTER_TEST (Master, of_a_target_with_or_without_a_scheme_is_remote)
{
  static const char *const targets[] = {"grpc://localhost:2222", "localhost:2222"};
  for (int i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMaster) master = muster_master_new_for_target (targets[i], &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (MUSTER_IS_REMOTE_MASTER (master));
    MUSTER_EXPECT_STREQ (muster_master_target (master), "grpc://localhost:2222");
    MUSTER_EXPECT_EQ (muster_master_on_readiness_changed (master, ignore, NULL), 0u);
  }
}

MUSTER_TEST (Master, of_a_unix_socket_is_remote_and_has_no_tls)
{
  g_autoptr (GError) error = NULL, secured = NULL;
  g_autoptr (MusterMaster) master = muster_master_new_for_target ("unix:/run/m.sock", &error);
  g_autoptr (MusterRpcCredentials) tls =
      muster_rpc_credentials_new (&(MusterRpcSecurity){.tls = TRUE}, NULL);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (MUSTER_IS_REMOTE_MASTER (master));
  MUSTER_EXPECT_STREQ (muster_master_target (master), "unix:/run/m.sock");
  MUSTER_EXPECT_NULL (muster_master_new_secured ("unix:/run/m.sock", tls, &secured));
  MUSTER_EXPECT_SAYS (secured, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "without TLS");
}

MUSTER_TEST (Master, of_an_unknown_target_is_refused_with_what_is_known)
{
  static const char *const targets[] = {
      "",           "localhost", "http://a:1",   "grpc://", "grpc://a",
      "grpc://a:0", "a:70000",   "grpc://::1:5", "locally", "grpc://a:1/x",
      "grpc:a:1",   "unix:m",    "grpc://unix:m"};
  for (gsize i = 0; i < G_N_ELEMENTS (targets); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("'%s'", targets[i]);
    MUSTER_EXPECT_NULL (muster_master_new_for_target (targets[i], &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "grpc://HOST:PORT");
  }
}

MUSTER_TEST (Master, with_files_is_as_secured_as_its_scheme_says)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) trusting =
      muster_master_new_with_files ("grpcs://localhost:1", NULL, NULL, NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_master_target (trusting), "grpcs://localhost:1");

  MUSTER_EXPECT_NULL (muster_master_new_with_files ("grpcs://localhost:1", "/no/such.pem", NULL,
                                                    NULL, NULL, &error));
  MUSTER_EXPECT_TRUE (strstr (error->message, "/no/such.pem") != NULL);
}

static char *offered_target;

static MusterMaster *
make_stand_in (const char *target, GError **error)
{
  g_free (offered_target);
  offered_target = g_strdup (target);
  return muster_remote_master_new ("stand-in:1", error);
}

MUSTER_TEST (Master, of_an_offered_kind_is_made_by_the_program)
{
  g_autoptr (GError) error = NULL;
  muster_master_offer ("test-kind", make_stand_in);
  muster_master_offer ("test-kind", make_stand_in);

  g_autoptr (MusterMaster) plain = muster_master_new_for_target ("test-kind", &error);
  MUSTER_EXPECT_STREQ (offered_target, "test-kind");
  g_autoptr (MusterMaster) longer = muster_master_new_for_target ("test-kind://x", &error);
  MUSTER_EXPECT_STREQ (offered_target, "test-kind://x");
  g_autoptr (MusterMaster) of_path = muster_master_new_for_target ("test-kind:some/path", &error);
  MUSTER_EXPECT_STREQ (offered_target, "test-kind:some/path");
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_NULL (muster_master_new_for_target ("test-kind-not", &error));
  MUSTER_EXPECT_TRUE (strstr (error->message, "'test-kind'") != NULL);
  g_clear_pointer (&offered_target, g_free);
}

MUSTER_TEST (Master, of_an_offered_kinds_name_and_a_port_is_the_host_of_that_name)
{
  g_autoptr (GError) error = NULL;
  muster_master_offer ("test-kind", make_stand_in);
  MUSTER_EXPECT_TRUE (muster_master_is_offered ("test-kind"));
  MUSTER_EXPECT_TRUE (muster_master_is_offered ("test-kind:a"));
  MUSTER_EXPECT_FALSE (muster_master_is_offered ("test-kind:2222"));
  MUSTER_EXPECT_FALSE (muster_master_is_offered ("grpc://test-kind:2222"));

  g_autoptr (MusterMaster) host = muster_master_new_for_target ("test-kind:2222", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_master_target (host), "grpc://test-kind:2222");
}

MUSTER_TEST (Master, that_nobody_offers_is_refused_with_the_function_that_does)
{
  static const char *const targets[][2] = {
      {"local", "muster_local_master_offer ()"},
      {"tensorflow", "muster_tensorflow_master_offer ()"},
      {"tensorflow:/opt/venv", "muster_tensorflow_master_offer ()"}};
  for (gsize i = 0; i < G_N_ELEMENTS (targets); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("'%s'", targets[i][0]);
    MUSTER_EXPECT_NULL (muster_master_new_for_target (targets[i][0], &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, targets[i][1]);
  }
}

MUSTER_TEST (Master, needs_a_graph_for_a_session)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_remote_master_new ("localhost:2222", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_NULL (
      muster_master_create_session (master, NULL, NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "graph must not be NULL");
}

MUSTER_TEST (Master, refuses_a_duration_in_a_deadlines_place)
{
  g_autoptr (GError) creating = NULL, listing = NULL, resetting = NULL;
  g_autoptr (GBytes) nothing = g_bytes_new (NULL, 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (nothing);
  g_autoptr (MusterMaster) master = muster_remote_master_new ("localhost:2222", NULL);
  MUSTER_EXPECT_NULL (
      muster_master_create_session (master, graph, NULL, MUSTER_MILLISECOND, NULL, &creating));
  MUSTER_EXPECT_ERROR (creating, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_NULL (muster_master_list_devices (master, MUSTER_MILLISECOND, NULL, &listing));
  MUSTER_EXPECT_ERROR (listing, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_FALSE (muster_master_reset (master, NULL, -1, NULL, &resetting));
  MUSTER_EXPECT_ERROR (resetting, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (Session, that_is_not_there_is_closed_quietly)
{
  muster_session_close_quietly (NULL);
}
