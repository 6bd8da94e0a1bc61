// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_reader.h"
#include "engine/session/local_master.h"
#include "saver/async/async_saver.h"
#include "saver/saver.h"
#include "tests/doubles/faulty_storage.h"
#include "tests/doubles/notebook.h"
#include "tests/doubles/object_storage.h"
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

MUSTER_TEST (Saveable, that_can_not_be_copied_is_left_out_though_it_is_the_only_one)
{
  g_auto (Fixture) f = set_up_model ();
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autoptr (GError) error = NULL;
  notebook->fails_to_copy = MUSTER_ERROR_UNIMPLEMENTED;
  add (&f, "stuck", notebook, MUSTER_SAVEABLE_DEFAULT);

  g_autofree char *prefix = save (&f, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *names = muster_small_model_names (prefix);
  MUSTER_EXPECT_STREQ (names, "v w");
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  for (char **file = files; *file; file++)
    MUSTER_EXPECT_FALSE (g_str_has_prefix (*file, ".saving"));
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

MUSTER_TEST (Saveable, that_fails_without_an_error_is_named)
{
  g_auto (Fixture) f = set_up_model ();
  g_autoptr (MusterNotebook) notebook = muster_notebook_new (7);
  g_autoptr (GError) error = NULL;
  notebook->is_mute = TRUE;
  add (&f, "stuck", notebook, MUSTER_SAVEABLE_DEFAULT);

  MUSTER_EXPECT_NULL (save (&f, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL,
                      "MusterNotebook: copy_to_host () failed without an error");
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

/* --- in a consistent cut --- */

/* A job of two tasks. The other one's last step lands while the model becomes quiet, and once more
 * after the first attempt; each step changes the variable and the position alike. */
typedef struct {
  MusterSession *session; /* (not owned) */
  MusterNotebook *position;
  GThread *caller;
  gint64 step;
  gboolean is_quiet;
  guint n_quiesced, n_checked;
  guint n_copied_in_quiet, n_copied_elsewhere;
} Job;

static void
set_w (MusterSession *session, gint64 value)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) tensor = muster_tensor_new_int64 (value);
  const MusterFeed feed = {"w/initial_value:0", tensor};
  const char *target = "w/Assign";
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .targets = &target, .n_targets = 1};
  (void)muster_session_run (session, &step, NULL, NULL, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
take_step (Job *job)
{
  job->step++;
  set_w (job->session, job->step);
  job->position->number = job->step;
}

static gboolean
quiesce (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
         GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  Job *job = data;
  take_step (job);
  job->n_quiesced++;
  job->is_quiet = TRUE;
  return TRUE;
}

static gboolean
check (MusterSession *session G_GNUC_UNUSED, gboolean *is_consistent,
       gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED, gpointer data,
       GError **error G_GNUC_UNUSED)
{
  Job *job = data;
  job->is_quiet = FALSE;
  *is_consistent = ++job->n_checked > 1;
  return TRUE;
}

static void
release (MusterSession *session G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
}

/* What changes the variable here comes too late for the checkpoint: the variables come first. */
static void
on_copy (gpointer data)
{
  Job *job = data;
  job->n_copied_in_quiet += job->is_quiet;
  job->n_copied_elsewhere += g_thread_self () != job->caller;
  set_w (job->session, -1);
}

static gint64
number_in (MusterStorage *storage, const char *prefix, const char *name)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, prefix, NULL);
  g_autoptr (MusterTensor) number =
      reader != NULL ? muster_bundle_reader_read (reader, name, NULL) : NULL;
  return number != NULL ? *(const gint64 *)muster_tensor_data (number) : -2;
}

typedef struct {
  const char *name;
  gboolean is_background;
  guint64 budget_bytes; /* of a background save */
  gboolean is_object_store;
  gboolean has_fast_tier;
  gboolean is_fast_tier_full; /* so that the durable one takes the save, in a cut of its own */
} Way;

static char *
save_by (const Way *way, MusterSaver *saver, MusterSession *session, const char *directory,
         GError **error)
{
  const MusterTierSet due = way->has_fast_tier ? MUSTER_TIER_BIT (0) : 0;
  const gint64 soon_us = g_get_monotonic_time () + 30 * MUSTER_SECOND;
  g_auto (MusterSaved) saved = {0};
  if (!way->is_background)
    return muster_saver_save_with (saver, session, directory, 1, due, &saved, soon_us, NULL, error)
               ? g_steal_pointer (&saved.prefix)
               : NULL;
  g_autoptr (MusterAsyncSaver) async =
      muster_async_saver_new (saver, session, MUSTER_SAVES_BLOCK, way->budget_bytes, error);
  g_autoptr (MusterSaveTicket) ticket =
      muster_async_saver_save_in_tiers (async, directory, 1, due, soon_us, NULL, error);
  if (ticket == NULL ||
      !muster_save_ticket_wait (ticket, MUSTER_SAVE_DURABLE, soon_us, NULL, error))
    return NULL;
  return g_strdup (muster_save_ticket_path (ticket));
}

static void
expect_one_moment (const Way *way)
{
  g_autoptr (MusterObjectStorage) objects = object_storage_new ();
  g_autoptr (MusterFaultyStorage) disk = muster_faulty_storage_new ();
  MusterStorage *storage = way->is_object_store ? MUSTER_STORAGE (objects) : MUSTER_STORAGE (disk);
  g_autofree char *directory = way->is_object_store
                                   ? g_strdup ("s3://bucket/run")
                                   : g_build_filename (muster_test_tmpdir (), way->name, NULL);
  g_autofree char *fast = g_build_filename (muster_test_tmpdir (), "fast", way->name, NULL);
  const MusterTier tier = {.directory = fast, .save_steps = 1, .max_to_keep = 5};
  const MusterSaverOptions options = {
      .storage = storage, .fast = &tier, .n_fast = way->has_fast_tier};
  const MusterSaverConsistentCut cut = {.quiesce = quiesce, .check = check, .release = release};
  g_autoptr (MusterMetaGraph) meta_graph = muster_small_model_new (muster_small_variables, 2, 0);
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, &options, NULL);
  g_autoptr (MusterMaster) master = muster_local_master_new_with (storage, 0);
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_meta_graph_graph (meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  g_autoptr (MusterNotebook) position = muster_notebook_new (0);
  g_autoptr (GError) error = NULL;
  Job job = {.session = session, .position = position, .caller = g_thread_self ()};
  (void)muster_session_run_op (session, "init", MUSTER_WAIT_FOREVER, NULL, NULL);
  position->copying = on_copy;
  position->copying_data = &job;
  muster_saver_add_saveable (saver, "position", MUSTER_SAVEABLE (position), MUSTER_SAVEABLE_DEFAULT,
                             NULL);
  muster_saver_set_consistent_cut (saver, &cut, &job, NULL);
  if (way->is_fast_tier_full)
    muster_faulty_storage_set (disk, fast, MUSTER_FAULT_FILLS_UP);

  g_autofree char *prefix = save_by (way, saver, session, directory, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  const guint n_cuts = way->is_fast_tier_full ? 3 : 2;
  MUSTER_EXPECT_EQ (job.n_quiesced, n_cuts);
  MUSTER_EXPECT_EQ (job.n_checked, 2u);
  MUSTER_EXPECT_EQ (position->n_copied, 2u);
  MUSTER_EXPECT_EQ (job.n_copied_in_quiet, 2u);
  MUSTER_EXPECT_EQ (job.n_copied_elsewhere, 0u);
  MUSTER_EXPECT_EQ (number_in (storage, prefix, "w"), (gint64)n_cuts);
  MUSTER_EXPECT_EQ (number_in (storage, prefix, "position/n"), (gint64)n_cuts);
}

/* B001.82: after the variables, on the caller's thread; and of their moment, however it is saved */
MUSTER_TEST (Saveable, is_copied_in_the_cut_at_each_attempt)
{
  static const Way ways[] = {
      {.name = "blocking"},
      {.name = "background", .is_background = TRUE},
      {.name = "over_budget", .is_background = TRUE, .budget_bytes = 1},
      {.name = "tiers", .has_fast_tier = TRUE},
      {.name = "tiers_background", .has_fast_tier = TRUE, .is_background = TRUE},
      {.name = "full_tier", .has_fast_tier = TRUE, .is_fast_tier_full = TRUE},
      {.name = "objects", .is_object_store = TRUE},
      {.name = "objects_background", .is_object_store = TRUE, .is_background = TRUE},
  };
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
    MUSTER_TRACE ("%s", ways[i].name);
    expect_one_moment (&ways[i]);
  }
}
