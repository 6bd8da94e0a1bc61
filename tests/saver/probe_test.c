// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "saver/builder/saver_builder.h"
#include "saver/probe_private.h"
#include "tests/deadline.h"
#include "tests/doubles/crash_storage.h"
#include "tests/gtest_shim.h"

/* A session as a remote one looks to the saver: it hands on to the engine's, counts, and fails as
 * it is told. */
#define MUSTER_TYPE_TEST_SESSION (muster_test_session_get_type ())
G_DECLARE_FINAL_TYPE (MusterTestSession, muster_test_session, MUSTER, TEST_SESSION, MusterSession)

struct _MusterTestSession {
  MusterSession parent;
  MusterSession *inner; /* (owned) */
  guint n_extends, n_runs;
  MusterError extend_fails; /* 0: it doesn't */
  const char *run_fails;    /* (nullable) with PERMISSION_DENIED */
};

G_DEFINE_FINAL_TYPE (MusterTestSession, muster_test_session, MUSTER_TYPE_SESSION)

static gboolean
test_session_run (MusterSession *session, const MusterStep *step, MusterTensor **fetched,
                  GBytes **metadata, GCancellable *cancellable, GError **error)
{
  MusterTestSession *self = MUSTER_TEST_SESSION (session);
  self->n_runs++;
  if (self->run_fails != NULL) {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_PERMISSION_DENIED, self->run_fails);
    return FALSE;
  }
  return muster_session_run (self->inner, step, fetched, metadata, cancellable, error);
}

static gboolean
test_session_extend (MusterSession *session, MusterGraph *graph, gint64 deadline_us,
                     GCancellable *cancellable, GError **error)
{
  MusterTestSession *self = MUSTER_TEST_SESSION (session);
  self->n_extends++;
  if (self->extend_fails) {
    g_set_error_literal (error, MUSTER_ERROR, self->extend_fails, "as told");
    return FALSE;
  }
  return muster_session_extend (self->inner, graph, deadline_us, cancellable, error);
}

static gboolean
test_session_close (MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
                    GError **error)
{
  return muster_session_close (MUSTER_TEST_SESSION (session)->inner, deadline_us, cancellable,
                               error);
}

static void
test_session_finalize (GObject *object)
{
  g_object_unref (MUSTER_TEST_SESSION (object)->inner);
  G_OBJECT_CLASS (muster_test_session_parent_class)->finalize (object);
}

static void
muster_test_session_class_init (MusterTestSessionClass *klass)
{
  MusterSessionClass *session = MUSTER_SESSION_CLASS (klass);
  session->run = test_session_run;
  session->extend = test_session_extend;
  session->close = test_session_close;
  G_OBJECT_CLASS (klass)->finalize = test_session_finalize;
}

static void
muster_test_session_init (MusterTestSession *self G_GNUC_UNUSED)
{
}

/* --- a model on two tasks --- */

static void
add_variable (MusterGraphBuilder *builder, const char *name, const char *device)
{
  g_autofree char *initial = g_strconcat (name, "/initial_value", NULL);
  g_autofree char *assign = g_strconcat (name, "/Assign", NULL);
  g_autoptr (MusterTensor) seven = muster_tensor_new_int32 (7);

  muster_graph_builder_constant (builder, initial, seven);
  muster_graph_builder_node (builder, "VariableV2", name);
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT32);
  muster_graph_builder_attr_shape (builder, "shape", 0, NULL);
  muster_graph_builder_device (builder, device);
  muster_graph_builder_node (builder, "Assign", assign);
  muster_graph_builder_input (builder, name);
  muster_graph_builder_input (builder, initial);
  muster_graph_builder_attr_type (builder, "T", MUSTER_INT32);
  muster_graph_builder_device (builder, device);
}

static MusterMetaGraph *
new_model (gboolean sharded)
{
  const MusterSaverBuild how = {.sharded = sharded};
  const char *const init[] = {"v/Assign", "w/Assign", NULL};
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (GError) error = NULL;
  add_variable (builder, "v", "/job:ps/task:0");
  add_variable (builder, "w", "/job:ps/task:1/cpu:0");
  muster_graph_builder_group (builder, "init", init);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  g_autoptr (MusterMetaGraph) plain = muster_meta_graph_new_for_graph (graph);
  MusterMetaGraph *model = muster_saver_build (plain, &how, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return model;
}

typedef struct {
  MusterStorage *chiefs, *masters;
  MusterMetaGraph *model;
  MusterSaver *saver;
  MusterMaster *master;
  MusterTestSession *session;
} Fixture;

static Fixture
set_up (gboolean sharded, gboolean shared)
{
  Fixture f = {.chiefs = MUSTER_STORAGE (muster_crash_storage_new ()),
               .model = new_model (sharded)};
  g_autoptr (GError) error = NULL;
  const MusterSaverOptions options = {.storage = f.chiefs};
  f.masters = shared ? g_object_ref (f.chiefs) : MUSTER_STORAGE (muster_crash_storage_new ());
  f.saver = muster_saver_new (f.model, &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  f.master = muster_local_master_new_with (f.masters, 0);
  f.session = g_object_new (MUSTER_TYPE_TEST_SESSION, NULL);
  f.session->inner = muster_master_create_session (f.master, muster_meta_graph_graph (f.model),
                                                   NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (
      muster_session_run_op (f.session->inner, "init", test_deadline (), NULL, NULL));
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->saver);
  g_clear_pointer (&f->model, muster_meta_graph_unref);
  g_clear_object (&f->masters);
  g_clear_object (&f->chiefs);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static gboolean
probe (Fixture *f, const char *directory, GError **error)
{
  return muster_saver_probe_once (f->saver, MUSTER_SESSION (f->session), directory,
                                  test_deadline (), NULL, error);
}

static guint
n_files (Fixture *f, const char *directory)
{
  g_auto (GStrv) names = muster_storage_list (f->chiefs, directory, NULL);
  return names != NULL ? g_strv_length (names) : 0;
}

MUSTER_TEST (SaverProbe, is_content_with_a_directory_that_all_see)
{
  g_auto (Fixture) f = set_up (TRUE, TRUE);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (probe (&f, "run/one", &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (n_files (&f, "run/one"), 0u);
  MUSTER_EXPECT_EQ (f.session->n_runs, 1u);
}

MUSTER_TEST (SaverProbe, names_each_task_that_does_not_see_the_directory)
{
  g_auto (Fixture) f = set_up (TRUE, FALSE);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (probe (&f, "run", &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  g_autofree char *wanted =
      g_strdup_printf ("ps:0, ps:1 don't see 'run' of host '%s'", g_get_host_name ());
  MUSTER_EXPECT_STREQ (error ? error->message : NULL, wanted);
  MUSTER_EXPECT_EQ (n_files (&f, "run"), 0u);
}

MUSTER_TEST (SaverProbe, gives_the_cause_of_tensorflows_error_in_a_line)
{
  g_auto (Fixture) f = set_up (TRUE, FALSE);
  g_autoptr (GError) error = NULL;
  f.session->run_fails = "From /job:ps/replica:0/task:0:\nmay not be read\n\t [[{{node probe}}]]";
  MUSTER_EXPECT_FALSE (probe (&f, "run", &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_STREQ (error ? error->message : NULL,
                       "ps:0, ps:1 can't use 'run': may not be read");
}

MUSTER_TEST (SaverProbe, asks_the_master_itself_where_no_device_is_named)
{
  g_auto (Fixture) f = set_up (FALSE, FALSE);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (probe (&f, "run", &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (error && g_str_has_prefix (error->message, "the master doesn't see 'run'"));
}

MUSTER_TEST (SaverProbe, adds_its_nodes_to_a_session_once)
{
  g_auto (Fixture) f = set_up (TRUE, TRUE);
  MUSTER_EXPECT_TRUE (probe (&f, "one", NULL));
  MUSTER_EXPECT_TRUE (probe (&f, "two", NULL));
  MUSTER_EXPECT_TRUE (probe (&f, "one", NULL));

  MUSTER_EXPECT_EQ (f.session->n_extends, 1u);
  MUSTER_EXPECT_EQ (f.session->n_runs, 2u);
}

MUSTER_TEST (SaverProbe, lets_two_savers_probe_one_session)
{
  g_auto (Fixture) f = set_up (TRUE, TRUE);
  const MusterSaverOptions options = {.storage = f.chiefs};
  g_autoptr (MusterSaver) other = muster_saver_new (f.model, &options, NULL);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (probe (&f, "run", NULL));
  MUSTER_EXPECT_TRUE (muster_saver_probe_once (other, MUSTER_SESSION (f.session), "run",
                                               test_deadline (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (f.session->n_extends, 2u);
}

MUSTER_TEST (SaverProbe, passes_over_a_session_that_takes_no_nodes)
{
  const MusterError codes[] = {MUSTER_ERROR_UNIMPLEMENTED, MUSTER_ERROR_INVALID_ARGUMENT};
  for (guint i = 0; i < G_N_ELEMENTS (codes); i++) {
    g_auto (Fixture) f = set_up (TRUE, FALSE);
    g_autoptr (GError) error = NULL;
    f.session->extend_fails = codes[i];
    MUSTER_EXPECT_TRUE (probe (&f, "run", &error));
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (n_files (&f, "run"), 0u);
  }
}

MUSTER_TEST (SaverProbe, fails_with_a_master_that_is_gone)
{
  const MusterError codes[] = {MUSTER_ERROR_UNAVAILABLE, MUSTER_ERROR_ABORTED,
                               MUSTER_ERROR_DEADLINE_EXCEEDED};
  for (guint i = 0; i < G_N_ELEMENTS (codes); i++) {
    g_auto (Fixture) f = set_up (TRUE, TRUE);
    g_autoptr (GError) error = NULL;
    f.session->extend_fails = codes[i];
    MUSTER_EXPECT_FALSE (probe (&f, "run", &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, codes[i]);
  }
}

MUSTER_TEST (SaverProbe, says_what_keeps_the_chief_from_writing)
{
  g_auto (Fixture) f = set_up (TRUE, TRUE);
  g_autoptr (GError) error = NULL;
  muster_crash_storage_stop_at (MUSTER_CRASH_STORAGE (f.chiefs), 1);

  MUSTER_EXPECT_FALSE (probe (&f, "run", &error));

  MUSTER_EXPECT_TRUE (error != NULL);
}

/* A save asks once for each session and directory, and not at all where the master is in this
 * process: there is nothing to ask. */
MUSTER_TEST (SaverProbe, comes_before_the_first_save)
{
  g_auto (Fixture) shared = set_up (TRUE, TRUE);
  g_autoptr (GError) error = NULL;
  for (gint64 step = 1; step <= 2; step++) {
    g_autofree char *saved = muster_saver_save (shared.saver, MUSTER_SESSION (shared.session),
                                                "run", step, test_deadline (), NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
  MUSTER_EXPECT_EQ (shared.session->n_extends, 1u);
  MUSTER_EXPECT_EQ (shared.session->n_runs, 3u);
}

MUSTER_TEST (SaverProbe, is_left_out_where_asked)
{
  g_auto (Fixture) f = set_up (TRUE, TRUE);
  const MusterSaverOptions options = {.storage = f.chiefs, .no_probe = TRUE};
  g_autoptr (MusterSaver) saver = muster_saver_new (f.model, &options, NULL);
  g_autoptr (GError) error = NULL;
  g_autofree char *saved = muster_saver_save (saver, MUSTER_SESSION (f.session), "run", 1,
                                              test_deadline (), NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (f.session->n_extends, 0u);
}
