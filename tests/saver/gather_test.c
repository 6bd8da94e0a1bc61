// SPDX-License-Identifier: Apache-2.0
/* Saves and restores through the session, of a master that sees other files than the chief. */
#include "checkpoint/format/bundle_reader.h"
#include "engine/session/local_master.h"
#include "saver/async/async_saver.h"
#include "tests/deadline.h"
#include "tests/doubles/crash_storage.h"
#include "tests/doubles/object_storage.h"
#include "tests/doubles/sharded_model.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

#include <string.h>

#define LARGE_ROWS (9 << 20) /* 72 MiB in each half of "p" */

typedef struct {
  MusterShardedModel model;
  MusterStorage *chiefs, *masters;
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
  MusterMaster *master;
  MusterSession *session;
} Fixture;

static void
begin_session (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  f->master = muster_local_master_new_with (f->masters, 0);
  f->session = muster_master_create_session (f->master, muster_meta_graph_graph (f->meta_graph),
                                             NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* Takes chiefs and meta_graph. To the saver, the engine's sessions are a remote master's. */
static Fixture
set_up_for (MusterStorage *chiefs, MusterMetaGraph *meta_graph, gboolean shared, gboolean gathered)
{
  Fixture f = {.chiefs = chiefs, .meta_graph = meta_graph};
  g_autoptr (GError) error = NULL;
  const MusterSaverOptions options = {.storage = f.chiefs, .gathered = gathered};
  f.masters = shared ? g_object_ref (f.chiefs) : MUSTER_STORAGE (muster_crash_storage_new ());
  f.saver = muster_saver_new (f.meta_graph, &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  begin_session (&f);
  MUSTER_SESSION_GET_CLASS (f.session)->is_here = FALSE;
  return f;
}

static Fixture
set_up_in (MusterStorage *chiefs, MusterShardedModel model, gboolean shared, gboolean gathered)
{
  Fixture f = set_up_for (chiefs, muster_sharded_model_new (&model), shared, gathered);
  f.model = model;
  return f;
}

static Fixture
set_up (void)
{
  return set_up_in (MUSTER_STORAGE (muster_crash_storage_new ()), (MusterShardedModel){0}, FALSE,
                    FALSE);
}

static void
tear_down (Fixture *f)
{
  MUSTER_SESSION_GET_CLASS (f->session)->is_here = TRUE;
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->saver);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
  g_clear_object (&f->masters);
  g_clear_object (&f->chiefs);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static void
set (Fixture *f, guint8 value)
{
  g_autoptr (GError) error = NULL;
  (void)muster_sharded_model_set (&f->model, f->session, value, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
save (Fixture *f, gint64 step)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix =
      muster_saver_save (f->saver, f->session, "run", step, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* The value that a master of its own gets from the newest checkpoint. */
static int
restored (Fixture *f)
{
  const MusterRestoreOptions options = {.directory = "run"};
  g_auto (MusterRestored) result = {0};
  g_autoptr (GError) error = NULL;
  begin_session (f);
  (void)muster_saver_restore (f->saver, f->session, &options, &result, test_deadline (), NULL,
                              &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return muster_sharded_model_get (f->session, NULL);
}

static gint32
n_shards (Fixture *f, const char *prefix)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (f->chiefs, prefix, NULL);
  return reader != NULL && muster_bundle_reader_verify (reader, NULL, NULL, NULL, NULL)
             ? muster_bundle_reader_n_shards (reader)
             : -1;
}

static guint
n_files (MusterStorage *storage)
{
  g_auto (GStrv) names = muster_storage_list (storage, "run", NULL);
  return names != NULL ? g_strv_length (names) : 0;
}

MUSTER_TEST (Gather, saves_and_restores_where_the_master_does_not_see_the_directory)
{
  g_auto (Fixture) f = set_up ();
  for (guint8 step = 1; step <= 3; step++) {
    set (&f, step);
    save (&f, step);
  }

  MUSTER_EXPECT_EQ (n_files (f.masters), 0u);
  MUSTER_EXPECT_EQ (restored (&f), 3);
  MUSTER_EXPECT_EQ (n_files (f.masters), 0u);
}

/* The file of the sharded model has the slices that its saver names. */
MUSTER_TEST (Gather, keeps_the_slices_of_a_partitioned_variable)
{
  g_auto (Fixture) f = set_up ();
  set (&f, 7);
  save (&f, 1);

  MUSTER_EXPECT_EQ (n_shards (&f, "run/model.ckpt-1"), 1);
  g_autoptr (MusterBundleReader) reader =
      muster_bundle_reader_open (f.chiefs, "run/model.ckpt-1", NULL);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_slices (reader, "p"), 2u);
  g_autoptr (MusterTensor) p = muster_bundle_reader_read (reader, "p", NULL);
  MUSTER_ASSERT_TRUE (p != NULL);
  MUSTER_EXPECT_EQ (muster_tensor_dims (p)[0], 4);
}

MUSTER_TEST (Gather, reads_a_large_variable_in_slices)
{
  g_auto (Fixture) f =
      set_up_in (MUSTER_STORAGE (muster_crash_storage_new ()),
                 (MusterShardedModel){.rows = LARGE_ROWS, .is_whole = TRUE}, FALSE, FALSE);
  for (guint8 step = 1; step <= 2; step++) {
    set (&f, step);
    save (&f, step);
  }

  MUSTER_EXPECT_EQ (n_shards (&f, "run/model.ckpt-2"), 1);
  MUSTER_EXPECT_EQ (restored (&f), 2);
}

/* Saves one tensor whole, by its name. */
static void
add_save (MusterGraphBuilder *b, const char *tensor, MusterDType dtype)
{
  const char *const names[] = {tensor, NULL}, *const slices[] = {"", NULL};
  g_autoptr (MusterTensor) path = muster_tensor_new_string ("model");
  g_autoptr (MusterTensor) name = muster_tensor_new_strv (names);
  g_autoptr (MusterTensor) slice = muster_tensor_new_strv (slices);
  muster_graph_builder_constant (b, "save/Const", path);
  muster_graph_builder_constant (b, "names", name);
  muster_graph_builder_constant (b, "slices", slice);
  muster_graph_builder_node (b, "SaveV2", "save/SaveV2");
  muster_graph_builder_input (b, "save/Const");
  muster_graph_builder_input (b, "names");
  muster_graph_builder_input (b, "slices");
  muster_graph_builder_input (b, tensor);
  muster_graph_builder_attr_types (b, "dtypes", &dtype, 1);
  muster_saver_graph_add_after (b, "save/Identity", "save/Const", "save/SaveV2");
}

/* What is saved is one element longer each time it is read. */
static MusterMetaGraph *
growing_model (gint32 length)
{
  static const char *const none[] = {NULL};
  const MusterDType dtype = MUSTER_INT32;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) first = muster_tensor_new_int32 (length);
  g_autoptr (MusterTensor) zero = muster_tensor_new_int32 (0);
  g_autoptr (MusterTensor) one = muster_tensor_new_int32 (1);
  muster_graph_builder_variable (b, "length", first);
  muster_graph_builder_constant (b, "zero", zero);
  muster_graph_builder_constant (b, "one", one);
  muster_graph_builder_node (b, "AssignAdd", "longer");
  muster_graph_builder_input (b, "length");
  muster_graph_builder_input (b, "one");
  muster_graph_builder_attr_type (b, "T", dtype);
  muster_graph_builder_node (b, "Range", "grows");
  muster_graph_builder_input (b, "zero");
  muster_graph_builder_input (b, "longer");
  muster_graph_builder_input (b, "one");
  muster_graph_builder_attr_type (b, "Tidx", dtype);
  add_save (b, "grows", dtype);
  muster_graph_builder_group (b, "save/restore_all", none);
  return muster_saver_graph_end (b, "save/Identity:0", FALSE, 5);
}

/* Gives "v" a value of any length: "NAME". */
static void
add_fill (MusterGraphBuilder *b, const char *name, gint32 length, float value)
{
  const gint64 one = 1;
  g_autofree char *dims = g_strconcat (name, "/dims", NULL);
  g_autofree char *of = g_strconcat (name, "/value", NULL);
  g_autofree char *filled = g_strconcat (name, "/filled", NULL);
  g_autoptr (MusterTensor) shape =
      muster_tensor_new_from_data (MUSTER_INT32, 1, &one, &length, sizeof length, NULL);
  g_autoptr (MusterTensor) tensor = muster_tensor_new_float (value);
  muster_graph_builder_constant (b, dims, shape);
  muster_graph_builder_constant (b, of, tensor);
  muster_graph_builder_node (b, "Fill", filled);
  muster_graph_builder_input (b, dims);
  muster_graph_builder_input (b, of);
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, "index_type", MUSTER_INT32);
  muster_graph_builder_node (b, "Assign", name);
  muster_graph_builder_input (b, "v");
  muster_graph_builder_input (b, filled);
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_bool (b, "validate_shape", FALSE);
}

/* A reference variable whose shape may change, with "small" and "large". */
static MusterMetaGraph *
shapeless_model (void)
{
  static const char *const restores[] = {"save/Assign", NULL};
  const MusterDType dtype = MUSTER_FLOAT;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_node (b, "VariableV2", "v");
  muster_graph_builder_attr_type (b, "dtype", dtype);
  muster_graph_builder_attr_shape (b, "shape", -1, NULL);
  add_fill (b, "small", 3, 1);
  add_fill (b, "large", 17 << 20, 2);
  add_save (b, "v", dtype);
  muster_graph_builder_node (b, "RestoreV2", "save/RestoreV2");
  muster_graph_builder_input (b, "save/Const");
  muster_graph_builder_input (b, "names");
  muster_graph_builder_input (b, "slices");
  muster_graph_builder_attr_types (b, "dtypes", &dtype, 1);
  muster_graph_builder_node (b, "Assign", "save/Assign");
  muster_graph_builder_input (b, "v");
  muster_graph_builder_input (b, "save/RestoreV2");
  muster_graph_builder_attr_type (b, "T", dtype);
  muster_graph_builder_attr_bool (b, "validate_shape", FALSE);
  muster_graph_builder_group (b, "save/restore_all", restores);
  return muster_saver_graph_end (b, "save/Identity:0", FALSE, 5);
}

/* In place of a value of another shape, which validate_shape allows. */
MUSTER_TEST (Gather, restores_a_large_variable_of_another_shape)
{
  g_auto (Fixture) f =
      set_up_for (MUSTER_STORAGE (muster_crash_storage_new ()), shapeless_model (), FALSE, FALSE);
  const MusterRestoreOptions latest = {.directory = "run"};
  g_autoptr (GError) error = NULL;
  muster_session_run_op (f.session, "large", test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  save (&f, 1);
  muster_session_run_op (f.session, "small", test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  (void)muster_saver_restore (f.saver, f.session, &latest, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterTensor) v =
      muster_session_fetch (f.session, "v:0", test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (muster_tensor_n_elements (v), 17 << 20);
  const float *values = muster_tensor_data (v);
  MUSTER_EXPECT_EQ (values[0], 2.0f);
  MUSTER_EXPECT_EQ (values[(17 << 20) - 1], 2.0f);
}

/* A resource variable, "large", to which "fill" gives 68 MiB. */
static MusterMetaGraph *
resource_model (void)
{
  static const char *const none[] = {NULL};
  const gint64 one = 1;
  const gint32 length = 17 << 20;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) dims =
      muster_tensor_new_from_data (MUSTER_INT32, 1, &one, &length, sizeof length, NULL);
  g_autoptr (MusterTensor) value = muster_tensor_new_float (3);
  muster_graph_builder_constant (b, "dims", dims);
  muster_graph_builder_constant (b, "value", value);
  muster_graph_builder_node (b, "Fill", "filled");
  muster_graph_builder_input (b, "dims");
  muster_graph_builder_input (b, "value");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, "index_type", MUSTER_INT32);
  muster_graph_builder_node (b, "VarHandleOp", "handle");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (b, "shape", -1, NULL);
  muster_graph_builder_node (b, "AssignVariableOp", "fill");
  muster_graph_builder_input (b, "handle");
  muster_graph_builder_input (b, "filled");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (b, "ReadVariableOp", "read");
  muster_graph_builder_input (b, "handle");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (b, "Identity", "large");
  muster_graph_builder_input (b, "read");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  add_save (b, "large", MUSTER_FLOAT);
  muster_graph_builder_group (b, "save/restore_all", none);
  return muster_saver_graph_end (b, "save/Identity:0", FALSE, 5);
}

static gboolean (*run_step) (MusterSession *self, const MusterStep *step, MusterTensor **fetched,
                             GBytes **metadata, GCancellable *cancellable, GError **error);
static GString *steps; /* those of the nodes that were added: 'e' ends copies, 'p' reads a part */

static gboolean
note_step (MusterSession *self, const MusterStep *step, MusterTensor **fetched, GBytes **metadata,
           GCancellable *cancellable, GError **error)
{
  if (step->n_targets > 0 && g_str_has_suffix (step->targets[0], "/end_copies"))
    g_string_append_c (steps, 'e');
  if (step->n_fetches > 0 && g_str_has_suffix (step->fetches[0], "/part"))
    g_string_append_c (steps, 'p');
  return run_step (self, step, fetched, metadata, cancellable, error);
}

/* Training may have begun them again before each part. */
MUSTER_TEST (Gather, ends_the_copies_of_a_resource_variable_before_each_part)
{
  g_auto (Fixture) f =
      set_up_for (MUSTER_STORAGE (muster_crash_storage_new ()), resource_model (), FALSE, FALSE);
  g_autoptr (GError) error = NULL;
  muster_session_run_op (f.session, "fill", test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  steps = g_string_new (NULL);
  run_step = MUSTER_SESSION_GET_CLASS (f.session)->run;
  MUSTER_SESSION_GET_CLASS (f.session)->run = note_step;
  save (&f, 1);
  save (&f, 2);
  MUSTER_SESSION_GET_CLASS (f.session)->run = run_step;
  g_autofree char *noted = g_string_free (steps, FALSE);
  MUSTER_EXPECT_STREQ (noted, "epepepep");
}

/* A small one, and one that is read in slices. */
MUSTER_TEST (Gather, fails_where_a_shape_changes_while_it_reads)
{
  static const gint32 lengths[] = {3, 17 << 20};
  for (gsize i = 0; i < G_N_ELEMENTS (lengths); i++) {
    g_auto (Fixture) f = set_up_for (MUSTER_STORAGE (muster_crash_storage_new ()),
                                     growing_model (lengths[i]), FALSE, FALSE);
    g_autoptr (GError) error = NULL;
    muster_session_run_op (f.session, "length/Assign", test_deadline (), NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
    g_autofree char *prefix =
        muster_saver_save (f.saver, f.session, "run", 1, test_deadline (), NULL, &error);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "another shape") != NULL);
    MUSTER_EXPECT_EQ (n_shards (&f, "run/model.ckpt-1"), -1);
  }
}

MUSTER_TEST (Gather, is_asked_for_where_the_master_sees_the_directory)
{
  for (int gathered = 0; gathered < 2; gathered++) {
    g_auto (Fixture) f = set_up_in (MUSTER_STORAGE (muster_crash_storage_new ()),
                                    (MusterShardedModel){0}, TRUE, gathered);
    set (&f, 5);
    save (&f, 1);
    MUSTER_EXPECT_EQ (n_shards (&f, "run/model.ckpt-1"), gathered ? 1 : 2);
    MUSTER_EXPECT_EQ (restored (&f), 5);
  }
}

MUSTER_TEST (Gather, writes_into_an_object_store)
{
  g_auto (Fixture) f =
      set_up_in (MUSTER_STORAGE (object_storage_new ()), (MusterShardedModel){0}, FALSE, TRUE);
  set (&f, 9);
  save (&f, 1);

  MUSTER_EXPECT_EQ (n_shards (&f, "run/model.ckpt-1"), 1);
  MUSTER_EXPECT_EQ (restored (&f), 9);
}

/* In the background, what is read is the snapshot: the model has changed since. */
MUSTER_TEST (Gather, reads_a_snapshot_while_training_goes_on)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterAsyncSaver) async =
      muster_async_saver_new (f.saver, f.session, MUSTER_SAVES_BLOCK, 0, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  for (guint8 step = 1; step <= 3; step++) {
    set (&f, step);
    g_autoptr (MusterSaveTicket) ticket =
        muster_async_saver_save (async, "run", step, test_deadline (), NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
    set (&f, 100);
    MUSTER_EXPECT_TRUE (muster_async_saver_sync (async, test_deadline (), NULL, &error));
    MUSTER_EXPECT_NO_ERROR (error);
  }
  g_clear_object (&async);

  MUSTER_EXPECT_EQ (restored (&f), 3);
}

/* A master that has files of the same name, as of a job before, doesn't restore those. */
MUSTER_TEST (Gather, restores_the_chiefs_checkpoint_not_the_masters)
{
  g_auto (Fixture) f = set_up ();
  g_auto (Fixture) before =
      set_up_in (g_object_ref (f.masters), (MusterShardedModel){0}, TRUE, FALSE);
  set (&before, 1);
  save (&before, 1);
  set (&f, 2);
  save (&f, 1);

  MUSTER_EXPECT_TRUE (n_files (f.masters) > 0);
  MUSTER_EXPECT_EQ (restored (&f), 2);
}

/* What a crash may leave of the chief's store is the old checkpoint or the new one. */
static void
expect_old_or_new (MusterCrashStorage *left)
{
  g_auto (Fixture) f =
      set_up_in (g_object_ref (MUSTER_STORAGE (left)), (MusterShardedModel){0}, FALSE, FALSE);
  const int value = restored (&f);
  MUSTER_EXPECT_TRUE (value == 1 || value == 2);
}

MUSTER_TEST (Gather, leaves_the_old_checkpoint_or_the_new_one)
{
  gboolean has_stopped = TRUE;
  for (guint at = 1; has_stopped; at++) {
    g_auto (Fixture) f = set_up ();
    MusterCrashStorage *crash = MUSTER_CRASH_STORAGE (f.chiefs);
    set (&f, 1);
    save (&f, 1);
    set (&f, 2);
    muster_crash_storage_stop_at (crash, at);
    g_autofree char *second =
        muster_saver_save (f.saver, f.session, "run", 2, test_deadline (), NULL, NULL);
    has_stopped = muster_crash_storage_has_stopped (crash);
    for (guint i = 0; i < muster_crash_storage_n_outcomes (crash); i++) {
      g_autoptr (MusterCrashStorage) left = muster_crash_storage_outcome (crash, i, NULL);
      expect_old_or_new (left);
    }
  }
}
