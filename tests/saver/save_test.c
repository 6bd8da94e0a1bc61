// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/state/checkpoint_state.h"
#include "saver/async/async_saver.h"
#include "saver/restore.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

#include <glib/gstdio.h>

typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
  MusterSession *session;
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
} Fixture;

static MusterSaver *
saver_with (Fixture *f, MusterSaverOptions options, GError **error)
{
  options.clock = MUSTER_CLOCK (f->clock);
  return muster_saver_new (f->meta_graph, &options, error);
}

static Fixture
set_up (void)
{
  Fixture f = {.clock = muster_fake_clock_new ()};
  f.meta_graph = muster_small_model_new (muster_small_variables, 2, 5);
  f.master = muster_fake_master_new (f.clock);
  f.session = muster_master_create_session (MUSTER_MASTER (f.master), NULL, NULL,
                                            MUSTER_WAIT_FOREVER, NULL, NULL);
  f.saver = saver_with (&f, (MusterSaverOptions){0}, NULL);
  muster_fake_master_set_variable (f.master, "v");
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->saver);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static char *
save (Fixture *f, const char *directory, gint64 step, GError **error)
{
  return muster_saver_save (f->saver, f->session, directory, step, MUSTER_WAIT_FOREVER, NULL,
                            error);
}

static char *
files_in (const char *directory)
{
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), directory, NULL);
  return names != NULL ? g_strjoinv (" ", names) : g_strdup ("no directory");
}

static char *
below_tmpdir (const char *name)
{
  return g_build_filename (muster_test_tmpdir (), name, NULL);
}

/* SAV.42, SAV.45, SAV.46, SAV.70, and the directory is made */
MUSTER_TEST (Save, publishes_a_checkpoint_and_names_it_the_latest)
{
  g_auto (Fixture) f = set_up ();
  g_autofree char *directory = below_tmpdir ("a/run");
  g_autoptr (GError) error = NULL;
  muster_small_model_play (f.master);

  g_autofree char *prefix = save (&f, directory, 1200, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *expected = g_build_filename (directory, "model.ckpt-1200", NULL);
  g_autofree char *files = files_in (directory);
  g_autofree char *latest = muster_latest_checkpoint (muster_local_storage (), directory, NULL);
  MUSTER_EXPECT_STREQ (prefix, expected);
  MUSTER_EXPECT_STREQ (latest, expected);
  MUSTER_EXPECT_STREQ (
      files, ".muster.lock checkpoint checkpoint.muster model.ckpt-1200.data-00000-of-00001 "
             "model.ckpt-1200.index model.ckpt-1200.meta");
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, NULL);
  MUSTER_EXPECT_TRUE (reader && muster_bundle_reader_verify (reader, NULL, NULL, NULL, NULL));
}

/* SAV.25: the meta graph alone is written; whatever is restored, it is nothing */
MUSTER_TEST (Save, does_nothing_for_a_model_without_variables_if_asked)
{
  static const char *const prefixes[] = {NULL, "", "nowhere"};
  static const guint8 no_nodes[] = {2 << 3 | 2, 0}; /* MetaGraphDef.graph_def, empty */
  g_auto (Fixture) f = set_up ();
  g_auto (MusterSaved) saved = {0};
  g_auto (MusterRestored) restored = {0};
  g_autoptr (GError) refused = NULL, none = NULL, error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static (no_nodes, sizeof no_nodes);
  const char *directory = muster_test_tmpdir ();
  g_clear_pointer (&f.meta_graph, muster_meta_graph_unref);
  g_clear_object (&f.saver);
  f.meta_graph = muster_meta_graph_new (bytes, &error);
  MUSTER_EXPECT_NULL (saver_with (&f, (MusterSaverOptions){0}, &refused));
  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  f.saver = saver_with (&f, (MusterSaverOptions){.allow_empty = TRUE}, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (muster_saver_save_with (f.saver, f.session, directory, 1, 0, &saved,
                                              MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (saved.skipped);
  MUSTER_EXPECT_NULL (saved.prefix);
  g_autofree char *files = files_in (directory);
  MUSTER_EXPECT_STREQ (files, "model.ckpt-1.meta");
  MUSTER_EXPECT_NULL (save (&f, directory, 2, &none));
  MUSTER_EXPECT_ERROR (none, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);

  for (gsize i = 0; i < G_N_ELEMENTS (prefixes); i++)
    MUSTER_EXPECT_TRUE (muster_saver_restore (f.saver, f.session,
                                              &(MusterRestoreOptions){.prefix = prefixes[i]},
                                              &restored, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_saver_restore (f.saver, f.session,
                                            &(MusterRestoreOptions){.directory = directory},
                                            &restored, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NULL (restored.prefix);
  MUSTER_EXPECT_TRUE (muster_saver_check_compatible (f.saver, "nowhere", NULL, &error));
  MUSTER_EXPECT_NULL (muster_async_saver_new (f.saver, f.session, MUSTER_SAVES_BLOCK, 0, NULL));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Save, numbers_step_0_and_leaves_the_number_out_below)
{
  g_auto (Fixture) f = set_up ();
  muster_small_model_play (f.master);

  g_autofree char *zero = save (&f, muster_test_tmpdir (), 0, NULL);
  g_autofree char *none = save (&f, muster_test_tmpdir (), -1, NULL);

  MUSTER_EXPECT_TRUE (g_str_has_suffix (zero, "/model.ckpt-0"));
  MUSTER_EXPECT_TRUE (g_str_has_suffix (none, "/model.ckpt"));
}

/* The directory's record doesn't hold it, and would be set aside as damaged by each save. */
MUSTER_TEST (Save, refuses_a_step_that_leaves_no_space_to_count_further)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL, last = NULL;
  muster_small_model_play (f.master);

  MUSTER_EXPECT_NULL (save (&f, muster_test_tmpdir (), G_MAXINT64 - (1 << 20) + 1, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid step '9223372036853727232': the largest is 9223372036853727231");
  g_autofree char *largest = save (&f, muster_test_tmpdir (), G_MAXINT64 - (1 << 20), &last);
  MUSTER_ASSERT_NO_ERROR (last);
  g_autofree char *next = save (&f, muster_test_tmpdir (), 5, &last);
  MUSTER_ASSERT_NO_ERROR (last);
  g_autofree char *files = files_in (muster_test_tmpdir ());
  MUSTER_EXPECT_NULL (strstr (files, ".bad"));
}

/* SAV.48 */
MUSTER_TEST (Save, leaves_the_meta_graph_out_when_asked)
{
  g_auto (Fixture) f = set_up ();
  g_clear_object (&f.saver);
  f.saver = saver_with (&f, (MusterSaverOptions){.base_name = "m", .no_meta_graph = TRUE}, NULL);
  muster_small_model_play (f.master);

  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 1, NULL);

  g_autofree char *files = files_in (muster_test_tmpdir ());
  MUSTER_EXPECT_STREQ (
      files, ".muster.lock checkpoint checkpoint.muster m-1.data-00000-of-00001 m-1.index");
  MUSTER_EXPECT_TRUE (prefix != NULL);
}

/* Whatever deadline it is given. */
MUSTER_TEST (Save, ends_where_the_master_stands_still)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_clear_object (&f.saver);
  f.saver = saver_with (&f, (MusterSaverOptions){.save_timeout_us = 60 * MUSTER_SECOND}, &error);
  muster_fake_master_set_cost (f.master, "save/control_dependency", MUSTER_WAIT_FOREVER);

  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 1, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 60 * MUSTER_SECOND);
}

/* SAV.49 */
MUSTER_TEST (Save, records_nothing_when_the_save_op_fails)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_small_model_play (f.master);
  muster_fake_master_restart (f.master);
  g_clear_object (&f.session);
  f.session = muster_master_create_session (MUSTER_MASTER (f.master), NULL, NULL,
                                            MUSTER_WAIT_FOREVER, NULL, NULL);

  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 1, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, "uninitialized value v"));
  g_autofree char *files = files_in (muster_test_tmpdir ());
  MUSTER_EXPECT_STREQ (files, "");
  g_auto (GStrv) list = muster_saver_last_checkpoints (f.saver);
  MUSTER_EXPECT_EQ (g_strv_length (list), 0u);
}

/* A checkpoint that exists is as good as before while another is saved badly. */
static gboolean
write_half (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step, MusterTensor **value,
            gpointer user_data G_GNUC_UNUSED, GError **error)
{
  MusterString name = muster_tensor_string (step->feeds[0].tensor, 0);
  g_autofree char *path = g_strdup_printf ("%.*s.data-00000-of-00001", (int)name.size, name.data);

  *value = NULL;
  g_file_set_contents (path, "half", 4, NULL);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "the ps died");
  return FALSE;
}

MUSTER_TEST (Save, takes_away_what_a_failed_save_left)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_fake_master_op_calls (f.master, "save/control_dependency", write_half, NULL);

  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 1, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  g_autofree char *files = files_in (muster_test_tmpdir ());
  MUSTER_EXPECT_STREQ (files, "");
}

static gboolean
write_nothing (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step, MusterTensor **value,
               gpointer user_data G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  *value = muster_tensor_ref (step->feeds[0].tensor);
  return TRUE;
}

MUSTER_TEST (Save, says_that_the_directory_is_not_shared)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_fake_master_op_calls (f.master, "save/control_dependency", write_nothing, NULL);

  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 1, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, "isn't shared"));
  MUSTER_EXPECT_TRUE (strstr (error->message, g_get_host_name ()));
}

/* A relative directory means the chief's; the master has another working directory. */
MUSTER_TEST (Save, gives_the_master_an_absolute_path)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_fake_master_op_calls (f.master, "save/control_dependency", write_nothing, NULL);

  g_autofree char *prefix = save (&f, ".", 1, &error);

  MusterTensor *fed = muster_fake_master_fed (f.master, "save/Const");
  MUSTER_ASSERT_TRUE (fed != NULL);
  MUSTER_EXPECT_EQ (muster_tensor_string (fed, 0).data[0], '/');
  MUSTER_EXPECT_NULL (prefix);
}

/* SAV.67 */
MUSTER_TEST (Save, replaces_a_checkpoint_of_the_same_name)
{
  g_auto (Fixture) f = set_up ();
  g_autofree char *old = below_tmpdir ("model.ckpt-1");
  g_autoptr (GError) error = NULL;
  muster_small_model_play (f.master);
  g_autofree char *old_shard = below_tmpdir ("model.ckpt-1.data-00001-of-00002");
  MUSTER_ASSERT_TRUE (muster_small_model_write (old, muster_small_variables, 2, 9, NULL));
  MUSTER_ASSERT_TRUE (g_file_set_contents (old_shard, "", 0, NULL));

  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 1, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (g_file_test (old_shard, G_FILE_TEST_EXISTS));
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, NULL);
  MUSTER_ASSERT_TRUE (reader != NULL);
  g_autoptr (MusterTensor) w = muster_bundle_reader_read (reader, "w", NULL);
  MUSTER_ASSERT_TRUE (w != NULL);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (w), 0x0101010101010101);
}

/* SAV.43 */
MUSTER_TEST (Save, refuses_the_name_of_the_state_file)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_clear_object (&f.saver);
  f.saver = saver_with (&f, (MusterSaverOptions){.base_name = "checkpoint"}, NULL);
  muster_small_model_play (f.master);

  g_autofree char *clash = save (&f, muster_test_tmpdir (), -1, &error);
  g_autofree char *fine = save (&f, muster_test_tmpdir (), 1, NULL);

  MUSTER_EXPECT_NULL (clash);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, "'latest_filename' collides with 'save_path'"));
  MUSTER_EXPECT_TRUE (fine != NULL);
}

/* SAV.41 */
MUSTER_TEST (Save, refuses_a_base_name_with_a_directory)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaver) saver = saver_with (&f, (MusterSaverOptions){.base_name = "a/b"}, &error);
  MUSTER_EXPECT_NULL (saver);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

static MusterLease *
claim (Fixture *f)
{
  MusterClaim claim = {.model = "digits"};
  muster_fake_master_set_announcing (f->master);
  return muster_session_claim (f->session, &claim, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
}

MUSTER_TEST (Lease, receives_what_is_durable)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  muster_small_model_play (f.master);
  muster_saver_set_lease (f.saver, lease);

  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 7, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterAnnouncement) chief = muster_fake_master_chief (f.master);
  MUSTER_EXPECT_EQ (chief->durable_step, 7);
  MUSTER_EXPECT_STREQ (chief->durable, prefix);
  MUSTER_EXPECT_EQ (chief->phase, MUSTER_CHIEF_STARTING); /* which phase it is isn't the saver's */
  MUSTER_ASSERT_TRUE (chief->saves != NULL);
  MUSTER_EXPECT_EQ (chief->saves->step[MUSTER_SAVE_DURABLE], 7);
  MUSTER_EXPECT_EQ (chief->saves->n_durable, (guint64)1);
  MUSTER_EXPECT_NULL (chief->saves->saving);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "announce"), 3u);
}

MUSTER_TEST (Lease, that_is_lost_keeps_a_save_from_starting)
{
  g_auto (Fixture) f = set_up ();
  g_autofree char *directory = below_tmpdir ("run");
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  muster_small_model_play (f.master);
  muster_saver_set_lease (f.saver, lease);
  muster_fake_master_usurp (f.master);

  g_autofree char *prefix = save (&f, directory, 7, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_FALSE (g_file_test (directory, G_FILE_TEST_EXISTS));
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "save/control_dependency"), 0u);
}

static gboolean
write_and_lose (MusterFakeMaster *master, const MusterStep *step, MusterTensor **value,
                gpointer user_data G_GNUC_UNUSED, GError **error)
{
  muster_fake_master_usurp (master);
  *value = muster_tensor_ref (step->feeds[0].tensor);
  MusterString name = muster_tensor_string (step->feeds[0].tensor, 0);
  g_autofree char *prefix = g_strndup (name.data, name.size);
  return muster_small_model_write (prefix, muster_small_variables, 2, 1, error);
}

MUSTER_TEST (Lease, that_is_lost_while_a_save_runs_publishes_nothing)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  muster_fake_master_op_calls (f.master, "save/control_dependency", write_and_lose, NULL);
  muster_saver_set_lease (f.saver, lease);

  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 7, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  g_autofree char *files = files_in (muster_test_tmpdir ());
  MUSTER_EXPECT_STREQ (files, ".muster.lock checkpoint.muster");
}

MUSTER_TEST (Lease, whose_master_is_deaf_afterwards_leaves_the_save_as_it_is)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  muster_small_model_play (f.master);
  muster_saver_set_lease (f.saver, lease);
  muster_fake_master_fail (f.master, "announce", 3, 1, MUSTER_ERROR_UNAVAILABLE, "gone fishing");

  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 7, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (prefix != NULL);
}

MUSTER_TEST (Lease, that_is_taken_back_is_asked_no_more)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  muster_small_model_play (f.master);
  muster_saver_set_lease (f.saver, lease);
  muster_saver_set_lease (f.saver, NULL);

  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 7, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "announce"), 0u);
}

/* SAV.27 */
MUSTER_TEST (Saver, needs_a_saver_def)
{
  g_autoptr (GBytes) empty = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (empty);
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_new_for_graph (graph);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, NULL, &error);
  MUSTER_EXPECT_NULL (saver);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (Saver, reads_the_step_from_a_name)
{
  MUSTER_EXPECT_EQ (muster_checkpoint_step ("run/model.ckpt-1200"), 1200);
  MUSTER_EXPECT_EQ (muster_checkpoint_step ("model.ckpt-0"), 0);
  MUSTER_EXPECT_EQ (muster_checkpoint_step ("model.ckpt-00000012"), 12);
  MUSTER_EXPECT_EQ (muster_checkpoint_step ("model.ckpt"), -1);
  MUSTER_EXPECT_EQ (muster_checkpoint_step ("run-7/model.ckpt"), -1);
  MUSTER_EXPECT_EQ (muster_checkpoint_step ("model.ckpt-"), -1);
  MUSTER_EXPECT_EQ (muster_checkpoint_step ("model.ckpt-12x"), -1);
  MUSTER_EXPECT_EQ (muster_checkpoint_step ("model.ckpt--12"), 12);
  MUSTER_EXPECT_EQ (muster_checkpoint_step ("m-99999999999999999999"), -1);
}

/* A meta graph has no checksum inside; the side file has one. */
static gboolean
is_as_saved (const char *prefix)
{
  g_autoptr (GError) error = NULL;
  gboolean is_as_saved = muster_checkpoint_check_meta_graph (NULL, prefix, &error);
  if (!is_as_saved)
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  return is_as_saved;
}

static void
flip_bit (const char *prefix, const char *part, gsize at)
{
  g_autofree char *path = g_strconcat (prefix, part, NULL);
  g_autofree char *bytes = NULL;
  gsize size = 0;

  MUSTER_ASSERT_TRUE (g_file_get_contents (path, &bytes, &size, NULL) && at < size);
  bytes[at] ^= 1;
  MUSTER_EXPECT_TRUE (g_file_set_contents (path, bytes, (gssize)size, NULL));
}

MUSTER_TEST (Save, lets_a_changed_meta_graph_be_announced)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_small_model_play (f.master);
  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 7, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *meta = g_strconcat (prefix, ".meta", NULL);

  MUSTER_EXPECT_TRUE (is_as_saved (prefix));
  flip_bit (prefix, ".meta", 100);
  MUSTER_EXPECT_FALSE (is_as_saved (prefix));
  flip_bit (prefix, ".meta", 100);
  MUSTER_EXPECT_TRUE (is_as_saved (prefix));
  MUSTER_EXPECT_TRUE (g_file_set_contents (meta, "short", -1, NULL));
  MUSTER_EXPECT_FALSE (is_as_saved (prefix));
}

MUSTER_TEST (Save, lets_a_meta_graph_pass_that_nothing_is_known_of)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_small_model_play (f.master);
  g_autofree char *prefix = save (&f, muster_test_tmpdir (), 7, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *meta = g_strconcat (prefix, ".meta", NULL);
  g_autofree char *other = below_tmpdir ("model.ckpt-8");
  g_autofree char *side = below_tmpdir ("checkpoint.muster");

  MUSTER_EXPECT_TRUE (is_as_saved (other));
  flip_bit (prefix, ".meta", 100);
  /* TensorFlow has saved there since. */
  MUSTER_EXPECT_TRUE (muster_small_model_write (prefix, muster_small_variables, 1, 3, NULL));
  MUSTER_EXPECT_TRUE (is_as_saved (prefix));

  g_autofree char *again = save (&f, muster_test_tmpdir (), 7, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  flip_bit (prefix, ".meta", 100);
  MUSTER_EXPECT_FALSE (is_as_saved (prefix));
  (void)g_unlink (meta);
  MUSTER_EXPECT_TRUE (is_as_saved (prefix));
  MUSTER_EXPECT_TRUE (g_file_set_contents (meta, "another", -1, NULL));
  MUSTER_EXPECT_FALSE (is_as_saved (prefix));
  flip_bit (side, "", 30);
  MUSTER_EXPECT_TRUE (is_as_saved (prefix));
}

/* SAV.44: a mistake of the program's, and no save */
MUSTER_TEST (Save, takes_nothing_but_a_session)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autofree char *none = muster_saver_save (f.saver, NULL, muster_test_tmpdir (), 1,
                                             MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  g_autofree char *files = files_in (muster_test_tmpdir ());
  MUSTER_EXPECT_STREQ (files, "");
}

/* Without a directory it saved into hidden files of the working directory. */
MUSTER_TEST (Save, takes_no_directory_but_one_that_can_be)
{
  static const char *const directories[] = {NULL, "", "hdfs://bucket/run", "gs://bucket/run"};
  g_auto (Fixture) f = set_up ();
  g_autofree char *before = g_get_current_dir ();
  MUSTER_ASSERT_EQ (g_chdir (muster_test_tmpdir ()), 0);

  for (gsize i = 0; i < G_N_ELEMENTS (directories); i++) {
    GError *errors[7] = {NULL};
    const char *const directory = directories[i];
    gboolean found = FALSE;
    MUSTER_EXPECT_NULL (muster_saver_save (f.saver, f.session, directory, 1, MUSTER_WAIT_FOREVER,
                                           NULL, &errors[0]));
    MUSTER_EXPECT_FALSE (muster_saver_save_with (f.saver, f.session, directory, 1, 0, NULL,
                                                 MUSTER_WAIT_FOREVER, NULL, &errors[1]));
    MUSTER_EXPECT_FALSE (muster_saver_restore (f.saver, f.session,
                                               &(MusterRestoreOptions){.directory = directory},
                                               NULL, MUSTER_WAIT_FOREVER, NULL, &errors[2]));
    MUSTER_EXPECT_NULL (muster_saver_latest_checkpoint (f.saver, directory, &errors[3]));
    MUSTER_EXPECT_FALSE (muster_saver_adopt_directory (f.saver, directory, &errors[4]));
    MUSTER_EXPECT_FALSE (
        muster_saver_claim_directory (f.saver, directory, MUSTER_WAIT_FOREVER, NULL, &errors[5]));
    MUSTER_EXPECT_FALSE (
        muster_saver_has_whole_checkpoint (f.saver, directory, NULL, &found, &errors[6]));
    for (gsize j = 0; j < G_N_ELEMENTS (errors); j++) {
      MUSTER_EXPECT_ERROR (errors[j], MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
      g_clear_error (&errors[j]);
    }
  }

  g_autofree char *files = files_in (muster_test_tmpdir ());
  MUSTER_EXPECT_STREQ (files, "");
  MUSTER_ASSERT_EQ (g_chdir (before), 0);
}

MUSTER_TEST (Save, refuses_a_checkpoint_with_a_scheme_wherever_one_is_read)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) restored = NULL, checked = NULL;
  MUSTER_EXPECT_FALSE (muster_saver_restore (
      f.saver, f.session, &(MusterRestoreOptions){.prefix = "hdfs://b/model.ckpt-1"}, NULL,
      MUSTER_WAIT_FOREVER, NULL, &restored));
  MUSTER_EXPECT_ERROR (restored, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_FALSE (
      muster_saver_check_compatible (f.saver, "hdfs://b/model.ckpt-1", NULL, &checked));
  MUSTER_EXPECT_ERROR (checked, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}
