// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_reader.h"
#include "engine/session/local_master.h"
#include "saver/saver.h"
#include "tests/doubles/notebook.h"
#include "tests/saver/restore_fixture.h"

/* State outside the graph, in the same checkpoint: B001.10 to B001.14, B001.21, B001.33, B001.34
 * and B001.80 to B001.83 as muster has them. */

static Fixture
set_up_model (void)
{
  Fixture f = set_up (muster_small_variables, 2);
  initialise (&f);
  return f;
}

static gboolean
add (Fixture *f, const char *name, gpointer saveable, MusterSaveableFlags flags)
{
  g_autoptr (GError) error = NULL;
  gboolean added = muster_saver_add_saveable (f->saver, name, saveable, flags, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  return added;
}

static char *
save (Fixture *f, GError **error)
{
  return muster_saver_save (f->saver, f->session, muster_test_tmpdir (), 1, MUSTER_WAIT_FOREVER,
                            NULL, error);
}

static gboolean
restore_saved (Fixture *f, const char *prefix, GError **error)
{
  return muster_saver_restore (f->saver, f->session, &(MusterRestoreOptions){.prefix = prefix},
                               NULL, MUSTER_WAIT_FOREVER, NULL, error);
}

/* B001.10: all there is, once, by name */
MUSTER_TEST (Saveable, is_saved_with_the_model_and_restored_with_it)
{
  g_auto (Fixture) f = set_up_model ();
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autoptr (GError) error = NULL;
  add (&f, "notebook", notebook, MUSTER_SAVEABLE_DEFAULT);

  g_autofree char *prefix = save (&f, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  notebook->number = 8;
  restore_saved (&f, prefix, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (notebook->number, 7);
  g_autofree char *names = muster_small_model_names (prefix);
  MUSTER_EXPECT_STREQ (names, "notebook/n v w");
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  for (char **file = files; *file; file++)
    MUSTER_EXPECT_FALSE (g_str_has_prefix (*file, ".saving"));
}

/* B001.12, B001.33, B001.34 (DIFF.23) */
MUSTER_TEST (Saveable, that_can_not_be_copied_is_left_out)
{
  g_auto (Fixture) f = set_up_model ();
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autoptr (MusterNotebook) other = muster_notebook_new (9);
  g_autoptr (GError) error = NULL;
  notebook->fails_to_copy = MUSTER_ERROR_UNIMPLEMENTED;
  add (&f, "stuck", notebook, MUSTER_SAVEABLE_DEFAULT);
  add (&f, "other", other, MUSTER_SAVEABLE_DEFAULT);

  g_autofree char *prefix = save (&f, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *names = muster_small_model_names (prefix);
  MUSTER_EXPECT_STREQ (names, "other/n v w");
}

MUSTER_TEST (Saveable, that_can_not_be_copied_is_refused_where_it_is_required)
{
  g_auto (Fixture) f = set_up_model ();
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autoptr (GError) error = NULL;
  notebook->fails_to_copy = MUSTER_ERROR_UNIMPLEMENTED;
  add (&f, "stuck", notebook, MUSTER_SAVEABLE_REQUIRED);

  g_autofree char *prefix = save (&f, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
}

/* B001.33: any other error ends the save */
MUSTER_TEST (Saveable, whose_copy_fails_ends_the_save)
{
  g_auto (Fixture) f = set_up_model ();
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autoptr (GError) error = NULL;
  notebook->fails_to_copy = MUSTER_ERROR_INTERNAL;
  add (&f, "stuck", notebook, MUSTER_SAVEABLE_DEFAULT);

  g_autofree char *prefix = save (&f, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, "'stuck'"));
}

/* B001.80, by its verb; B001.82: after the others, once for each distinct one */
MUSTER_TEST (Saveable, that_lies_elsewhere_is_retrieved_once_and_last)
{
  g_auto (Fixture) f = set_up_model ();
  g_autoptr (MusterNotebook) far = muster_far_notebook_new (7);
  g_autoptr (MusterNotebook) near = muster_notebook_new (9);
  g_autoptr (GError) error = NULL;
  far->fails_to_retrieve = TRUE;
  add (&f, "far", far, MUSTER_SAVEABLE_DEFAULT);
  add (&f, "farther", far, MUSTER_SAVEABLE_DEFAULT);
  add (&f, "near", near, MUSTER_SAVEABLE_DEFAULT);

  g_autofree char *none = save (&f, &error);
  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE); /* B001.83 */
  MUSTER_EXPECT_EQ (near->n_copied, 1u);
  MUSTER_EXPECT_EQ (far->n_copied, 0u);
  far->fails_to_retrieve = FALSE;
  g_clear_error (&error);
  g_autofree char *prefix = save (&f, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (far->n_retrieved, 1u);
  MUSTER_EXPECT_EQ (far->n_copied, 2u);
}

/* B001.21 */
MUSTER_TEST (Saveable, that_is_held_weakly_and_gone_is_named)
{
  g_auto (Fixture) f = set_up_model ();
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autoptr (GError) error = NULL;
  add (&f, "root", notebook, MUSTER_SAVEABLE_WEAK);
  g_autofree char *there = save (&f, &error);
  MUSTER_EXPECT_NO_ERROR (error);

  g_clear_object (&notebook);
  g_autofree char *gone = save (&f, &error);

  MUSTER_EXPECT_NULL (gone);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, "'root'"));
}

MUSTER_TEST (Saveable, has_a_name_of_its_own)
{
  g_auto (Fixture) f = set_up_model ();
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autoptr (GError) error = NULL;
  MusterSaveable *saveable = MUSTER_SAVEABLE (notebook);

  MUSTER_EXPECT_FALSE (
      muster_saver_add_saveable (f.saver, "", saveable, MUSTER_SAVEABLE_DEFAULT, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  g_clear_error (&error);
  add (&f, "n", notebook, MUSTER_SAVEABLE_DEFAULT);
  MUSTER_EXPECT_FALSE (
      muster_saver_add_saveable (f.saver, "n", saveable, MUSTER_SAVEABLE_DEFAULT, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ALREADY_EXISTS);
}

/* Nothing is assigned where a part of it is missing. */
MUSTER_TEST (Saveable, that_a_checkpoint_lacks_is_not_found_unless_it_is_optional)
{
  g_auto (Fixture) f = set_up_model ();
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-1", NULL);
  g_autoptr (GError) error = NULL;
  muster_small_model_write (prefix, muster_small_variables, 2, 1, &error);
  add (&f, "optional", notebook, MUSTER_SAVEABLE_OPTIONAL);
  MUSTER_EXPECT_TRUE (restore_saved (&f, prefix, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  (void)muster_session_run_op (f.session, "init", MUSTER_WAIT_FOREVER, NULL, NULL);
  add (&f, "wanted", notebook, MUSTER_SAVEABLE_DEFAULT);

  MUSTER_EXPECT_FALSE (restore_saved (&f, prefix, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  g_autoptr (MusterTensor) w =
      muster_session_fetch (f.session, "w/read:0", MUSTER_WAIT_FOREVER, NULL, NULL);
  MUSTER_ASSERT_TRUE (w != NULL);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (w), 0);
  MUSTER_EXPECT_EQ (notebook->n_restored, 0u);
}

/* A saveable must not hide a variable. */
MUSTER_TEST (Saveable, that_has_a_variables_name_fails_the_save)
{
  const MusterSmallVariable variables[] = {{"notebook/n", MUSTER_FLOAT, 1, {2, 0}}};
  g_autoptr (MusterMetaGraph) meta_graph = muster_small_model_new (variables, 1, 5);
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, NULL, NULL);
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_meta_graph_graph (meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autoptr (GError) error = NULL;
  (void)muster_session_run_op (session, "init", MUSTER_WAIT_FOREVER, NULL, NULL);
  muster_saver_add_saveable (saver, "notebook", MUSTER_SAVEABLE (notebook), MUSTER_SAVEABLE_DEFAULT,
                             NULL);

  g_autofree char *prefix = muster_saver_save (saver, session, muster_test_tmpdir (), 1,
                                               MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_TRUE (error != NULL);
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  MUSTER_EXPECT_EQ (g_strv_length (files), 0u);
}

/* A kind that can't be copied, and one that inherits from it and can. */
typedef struct {
  GObject parent;
} MusterStone;
typedef GObjectClass MusterStoneClass;
typedef MusterStone MusterSlate;
typedef GObjectClass MusterSlateClass;

static void
stone_saveable_init (MusterSaveableInterface *iface G_GNUC_UNUSED)
{
}

/* SAV.32: one object, several tensors */
static gboolean
slate_copy (MusterSaveable *saveable G_GNUC_UNUSED, GPtrArray *tensors,
            GError **error G_GNUC_UNUSED)
{
  g_autoptr (MusterTensor) keys = muster_tensor_new_strv ((const char *const[]){"a", "b", NULL});
  g_autoptr (MusterTensor) values = muster_tensor_new_int64 (5);

  muster_named_tensors_add (tensors, "keys", keys);
  muster_named_tensors_add (tensors, "values", values);
  return TRUE;
}

static void
slate_saveable_init (MusterSaveableInterface *iface)
{
  iface->copy_to_host = slate_copy;
}

static GType muster_stone_get_type (void);
static GType muster_slate_get_type (void);
G_DEFINE_TYPE_WITH_CODE (MusterStone, muster_stone, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (MUSTER_TYPE_SAVEABLE, stone_saveable_init))
G_DEFINE_TYPE_WITH_CODE (MusterSlate, muster_slate, muster_stone_get_type (),
                         G_IMPLEMENT_INTERFACE (MUSTER_TYPE_SAVEABLE, slate_saveable_init))

static void
muster_stone_init (MusterStone *self G_GNUC_UNUSED)
{
}

static void
muster_stone_class_init (MusterStoneClass *klass G_GNUC_UNUSED)
{
}

static void
muster_slate_init (MusterSlate *self G_GNUC_UNUSED)
{
}

static void
muster_slate_class_init (MusterSlateClass *klass G_GNUC_UNUSED)
{
}

/* B001.12, B001.13: the object's own verb decides, wherever in its line it comes from */
MUSTER_TEST (Saveable, is_judged_by_its_own_kind)
{
  g_auto (Fixture) f = set_up_model ();
  g_autoptr (GObject) stone = g_object_new (muster_stone_get_type (), NULL);
  g_autoptr (GObject) slate = g_object_new (muster_slate_get_type (), NULL);
  g_autoptr (GError) error = NULL;
  add (&f, "stone", stone, MUSTER_SAVEABLE_DEFAULT);
  add (&f, "slate", slate, MUSTER_SAVEABLE_DEFAULT);

  g_autofree char *prefix = save (&f, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *names = muster_small_model_names (prefix);
  MUSTER_EXPECT_STREQ (names, "slate/keys slate/values v w");
}
