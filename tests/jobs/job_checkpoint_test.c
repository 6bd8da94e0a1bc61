// SPDX-License-Identifier: Apache-2.0
#include "jobs/job_checkpoint.h"

#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/bundle_writer.h"
#include "tests/doubles/heard.h"
#include "tests/doubles/slow_storage.h"
#include "tests/doubles/watched_storage.h"
#include "tests/gtest_shim.h"
#include "tests/jobs/job_fixture.h"

#include <glib/gstdio.h>

static const char *const one_node[] = {"a", NULL};
static const char *const two_nodes[] = {"a", "b", NULL};
static const char *const no_nodes[] = {NULL};

/* Takes the group. */
static gboolean
run (JobFixture *f, MusterJobGroup *group, GError **error)
{
  g_autoptr (MusterJobGroup) own = group;
  return own != NULL && muster_cluster_run (f->cluster, own, MUSTER_WAIT_FOREVER, NULL, error);
}

static gboolean
run_task (JobFixture *f, MusterJobTask *task, GError **error)
{
  g_autoptr (MusterJobTask) own = task;
  return own != NULL && muster_cluster_run_task (f->cluster, own, MUSTER_WAIT_FOREVER, NULL, error);
}

static gboolean
run_ops (JobFixture *f, const char *node, const char *op)
{
  return muster_session_run_op (muster_cluster_node (f->cluster, node)->session, op,
                                MUSTER_WAIT_FOREVER, NULL, NULL);
}

/* Initialises the models, then the manager. */
static gboolean
begin (JobFixture *f, MusterJobCheckpoint *checkpoint, const char *const *nodes, GError **error)
{
  return run (f, g_object_ref (muster_job_init_group (f->job)), error) &&
         run (f, muster_job_checkpoint_init_group (checkpoint, nodes, MUSTER_NO_EPOCH, NULL, error),
              error);
}

static gboolean
save (JobFixture *f, MusterJobCheckpoint *checkpoint, gint64 epoch, GError **error)
{
  return run (f, muster_job_checkpoint_save_group (checkpoint, epoch, error), error);
}

static gboolean
load (JobFixture *f, MusterJobCheckpoint *checkpoint, gint64 epoch, const MusterJobPath *path,
      GError **error)
{
  return run (f, muster_job_checkpoint_load_group (checkpoint, epoch, path, error), error);
}

static char *
names_of (MusterJobCheckpoint *checkpoint, const char *node)
{
  const char *const *names = muster_job_checkpoint_names (checkpoint, node, NULL);
  return names != NULL ? g_strjoinv (" ", (char **)names) : g_strdup ("none");
}

/* --- names of files --- */

/* B003.27, B003.28, B003.29, B003.30 */
MUSTER_TEST (JobCheckpoint, names_files_by_node_and_epoch)
{
  static const struct {
    const char *directory, *prefix, *node;
    gint64 epoch;
    const char *path;
  } cases[] = {
      {"", NULL, "trainer_1", 5, "trainer_1.5"},
      {"/d", NULL, "trainer_1", 5, "/d/trainer_1.5"},
      {"/d/", "", "trainer_1", 5, "/d/trainer_1.5"},
      {"/d", "/p/run-", "trainer_1", 5, "/p/run-trainer_1.5"},
      {"/d", NULL, "n", 1234567890123, "/d/n.1234567890123"},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path = muster_job_checkpoint_path (cases[i].directory, cases[i].prefix,
                                                        cases[i].node, cases[i].epoch);
    MUSTER_EXPECT_STREQ (path, cases[i].path);
  }
}

/* B003.55 */
MUSTER_TEST (JobCheckpoint, knows_the_files_of_its_nodes)
{
  g_autoptr (MusterJobCheckpoint) checkpoint = muster_job_checkpoint_new ("/d", NULL, NULL, NULL);
  g_autoptr (MusterJobGroup) group =
      muster_job_checkpoint_init_group (checkpoint, two_nodes, MUSTER_NO_EPOCH, NULL, NULL);
  g_autofree char *known = muster_job_checkpoint_db_name (checkpoint, "b", 5);

  MUSTER_EXPECT_STREQ (known, "/d/b.5");
  MUSTER_EXPECT_NULL (muster_job_checkpoint_db_name (checkpoint, "c", 5));
}

/* --- which nodes --- */

/* B003.31 */
MUSTER_TEST (JobCheckpoint, touches_nothing_when_it_is_made)
{
  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), "not there", NULL);
  g_autoptr (MusterJobCheckpoint) many = muster_job_checkpoint_new (directory, NULL, NULL, NULL);
  g_autoptr (MusterJobCheckpoint) one =
      muster_job_checkpoint_new_for_node (directory, "trainer", NULL, NULL, NULL);
  g_autoptr (MusterJobGroup) group =
      muster_job_checkpoint_init_group (many, two_nodes, MUSTER_NO_EPOCH, NULL, NULL);

  MUSTER_EXPECT_FALSE (g_file_test (directory, G_FILE_TEST_EXISTS));
}

/* B003.32 */
MUSTER_TEST (JobCheckpoint, is_for_one_node_if_made_for_one)
{
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new_for_node ("/d", "trainer", NULL, NULL, NULL);
  g_autoptr (GError) none = NULL, two = NULL, unlisted = NULL;

  MUSTER_EXPECT_NULL (
      muster_job_checkpoint_init_group (checkpoint, no_nodes, MUSTER_NO_EPOCH, NULL, &none));
  MUSTER_EXPECT_STREQ (SAID (none), "CheckpointManager only supports single node.");
  MUSTER_EXPECT_NULL (
      muster_job_checkpoint_init_group (checkpoint, two_nodes, MUSTER_NO_EPOCH, NULL, &two));
  MUSTER_EXPECT_STREQ (SAID (two), "CheckpointManager only supports single node.");
  g_autoptr (MusterJobGroup) group =
      muster_job_checkpoint_init_group (checkpoint, NULL, MUSTER_NO_EPOCH, NULL, &unlisted);
  MUSTER_ASSERT_NO_ERROR (unlisted);
  MUSTER_EXPECT_EQ (muster_job_group_tasks (group)->len, 1u);
}

/* B003.51, B003.52, D003.7 */
MUSTER_TEST (JobCheckpoint, has_a_task_for_each_node_until_its_names_are_listed)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) none = NULL, other = NULL, error = NULL;
  const char *values_changed[] = {"b", "a", NULL};
  job_set_up (&f, two_nodes);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);

  MUSTER_EXPECT_NULL (
      muster_job_checkpoint_init_group (checkpoint, no_nodes, MUSTER_NO_EPOCH, NULL, &none));
  MUSTER_EXPECT_ERROR (none, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  for (int time = 0; time < 2; time++) { /* one that wasn't run doesn't count */
    g_autoptr (MusterJobGroup) group =
        muster_job_checkpoint_init_group (checkpoint, two_nodes, MUSTER_NO_EPOCH, NULL, &error);
    GPtrArray *tasks = muster_job_group_tasks (group);
    MUSTER_ASSERT_EQ (tasks->len, 2u);
    for (int i = 0; i < 2; i++)
      MUSTER_EXPECT_STREQ (muster_job_task_node (tasks->pdata[i]), two_nodes[i]);
  }
  MUSTER_EXPECT_TRUE (begin (&f, checkpoint, two_nodes, &error));
  g_autoptr (MusterJobGroup) again =
      muster_job_checkpoint_init_group (checkpoint, two_nodes, MUSTER_NO_EPOCH, NULL, &error);
  MUSTER_EXPECT_EQ (muster_job_group_tasks (again)->len, 0u);
  MUSTER_EXPECT_NULL (
      muster_job_checkpoint_init_group (checkpoint, values_changed, MUSTER_NO_EPOCH, NULL, &other));
  MUSTER_EXPECT_ERROR (other, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

/* --- what is saved --- */

/* B003.33: what has no value after init is made by an epoch and isn't saved */
MUSTER_TEST (JobCheckpoint, saves_what_has_a_value_after_init)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, one_node);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);

  MUSTER_EXPECT_TRUE (begin (&f, checkpoint, one_node, &error));
  MUSTER_EXPECT_TRUE (run_ops (&f, "a", "late/Assign"));
  MUSTER_EXPECT_TRUE (save (&f, checkpoint, 1, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  g_autofree char *names = names_of (checkpoint, "a");
  MUSTER_EXPECT_STREQ (names, "total position copied counter");
  g_autofree char *prefix = g_build_filename (f.directory, "a.1", NULL);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (reader), 6u);
  MUSTER_EXPECT_TRUE (muster_bundle_reader_find (reader, "late") == NULL);
  MUSTER_EXPECT_TRUE (muster_bundle_reader_find (reader, "blob_names/list") != NULL);
}

/* A node of which nothing has a value still takes part. */
MUSTER_TEST (JobCheckpoint, saves_and_loads_nothing_at_all)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, one_node);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);

  MUSTER_EXPECT_TRUE (run (
      &f, muster_job_checkpoint_init_group (checkpoint, one_node, MUSTER_NO_EPOCH, NULL, &error),
      &error));
  MUSTER_EXPECT_TRUE (save (&f, checkpoint, 0, &error) && load (&f, checkpoint, 0, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (job_has_file (&f, "a.0"));
}

/* B003.34, B003.36, D003.6: that set, not today's */
MUSTER_TEST (JobCheckpoint, resumes_with_the_names_of_the_checkpoint)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, one_node);
  g_autoptr (MusterJobCheckpoint) first = muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  MUSTER_EXPECT_TRUE (begin (&f, first, one_node, &error) && run_ops (&f, "a", "read") &&
                      run_ops (&f, "a", "read") && save (&f, first, 0, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterJobCheckpoint) second =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  MUSTER_EXPECT_TRUE (run_ops (&f, "a", "init") && run_ops (&f, "a", "late/Assign"));
  MUSTER_EXPECT_TRUE (
      run (&f, muster_job_checkpoint_init_group (second, one_node, MUSTER_NO_EPOCH, NULL, &error),
           &error));
  g_autofree char *today = names_of (second, "a");
  MUSTER_EXPECT_STREQ (today, "total position copied late counter");
  MUSTER_EXPECT_TRUE (
      run (&f, muster_job_checkpoint_init_group (second, one_node, 0, NULL, &error), &error));
  g_autofree char *then = names_of (second, "a");
  MUSTER_EXPECT_STREQ (then, "total position copied counter");
  MUSTER_EXPECT_EQ (job_value (&f, "a", "total"), 100); /* only the list was read */
  MUSTER_EXPECT_TRUE (load (&f, second, 0, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (job_value (&f, "a", "total"), 101);
  MUSTER_EXPECT_EQ (job_value (&f, "a", "position"), 2);
}

/* B003.35, B003.50 */
MUSTER_TEST (JobCheckpoint, saves_and_loads_only_once_its_init_has_run)
{
  g_autoptr (MusterJobCheckpoint) checkpoint = muster_job_checkpoint_new ("/d", NULL, NULL, NULL);
  g_autoptr (GError) never = NULL, never_load = NULL, built = NULL, built_load = NULL;
  MUSTER_EXPECT_NULL (muster_job_checkpoint_save_group (checkpoint, 0, &never));
  MUSTER_EXPECT_NULL (muster_job_checkpoint_load_group (checkpoint, 0, NULL, &never_load));
  MUSTER_EXPECT_STREQ (SAID (never), "init must be called first.");
  MUSTER_EXPECT_STREQ (SAID (never_load), "init must be called first.");
  g_autoptr (MusterJobGroup) group =
      muster_job_checkpoint_init_group (checkpoint, one_node, MUSTER_NO_EPOCH, NULL, NULL);
  MUSTER_EXPECT_NULL (muster_job_checkpoint_save_group (checkpoint, 0, &built));
  MUSTER_EXPECT_NULL (muster_job_checkpoint_load_group (checkpoint, 0, NULL, &built_load));
  MUSTER_EXPECT_STREQ (SAID (built), "Cannot fetch value for this output.");
  MUSTER_EXPECT_STREQ (SAID (built_load), "Cannot fetch value for this output.");
}

/* B003.36, B003.37, B003.53, and the name of one node's manager */
MUSTER_TEST (JobCheckpoint, has_a_task_a_node_to_save_and_to_load)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, two_nodes);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  g_autoptr (MusterJobCheckpoint) single =
      muster_job_checkpoint_new_for_node (f.directory, "chosen", NULL, NULL, NULL);
  const MusterJobPath path = {.prefix = "/elsewhere/"};
  MUSTER_EXPECT_TRUE (begin (&f, checkpoint, two_nodes, &error));
  MUSTER_EXPECT_TRUE (begin (&f, single, one_node, &error));
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_set_params (checkpoint, two_nodes, &path, &error));

  g_autoptr (MusterJobGroup) saves = muster_job_checkpoint_save_group (checkpoint, 3, &error);
  g_autoptr (MusterJobGroup) loads = muster_job_checkpoint_load_group (checkpoint, 3, NULL, &error);
  MUSTER_EXPECT_STREQ (muster_job_task_name (muster_job_group_tasks (saves)->pdata[1]),
                       "b/checkpoint_save");
  MUSTER_EXPECT_STREQ (muster_job_task_name (muster_job_group_tasks (loads)->pdata[0]),
                       "a/checkpoint_load");
  MUSTER_EXPECT_EQ (muster_job_group_tasks (loads)->len, 2u);
  MUSTER_EXPECT_TRUE (muster_cluster_run (f.cluster, saves, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (save (&f, single, 3, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (job_has_file (&f, "a.3") && job_has_file (&f, "b.3"));
  MUSTER_EXPECT_TRUE (job_has_file (&f, "chosen.3"));
}

/* D003.2: nothing but whole checkpoints, under exactly these names */
MUSTER_TEST (JobCheckpoint, leaves_only_whole_checkpoints_in_its_directory)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, one_node);
  g_autofree char *directory = g_build_filename (f.directory, "whole", NULL);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (directory, NULL, NULL, NULL);
  MUSTER_ASSERT_EQ (g_mkdir (directory, 0700), 0);

  MUSTER_EXPECT_TRUE (begin (&f, checkpoint, one_node, &error));
  for (int i = 0; i < 3; i++)
    MUSTER_EXPECT_TRUE (save (&f, checkpoint, i / 2, &error)); /* epoch 0 twice */
  MUSTER_ASSERT_NO_ERROR (error);
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), directory, &error);
  for (char **file = files; *file; file++)
    MUSTER_EXPECT_TRUE (g_str_has_prefix (*file, "a.0.") || g_str_has_prefix (*file, "a.1.") ||
                        g_str_equal (*file, ".muster.lock"));
  for (int i = 0; i < 2; i++) {
    g_autofree char *prefix = g_strdup_printf ("%s/a.%d", directory, i);
    g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
    MUSTER_EXPECT_TRUE (reader && muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error));
  }
  MUSTER_ASSERT_NO_ERROR (error);
}

/* B003.54 */
MUSTER_TEST (JobCheckpoint, fails_as_a_whole_where_one_node_fails)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL, failure = NULL;
  job_set_up (&f, two_nodes);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  g_autofree char *in_the_way = g_build_filename (f.directory, "b.1.index", NULL);
  MUSTER_EXPECT_TRUE (begin (&f, checkpoint, two_nodes, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (g_mkdir (in_the_way, 0700), 0);

  MUSTER_EXPECT_FALSE (save (&f, checkpoint, 1, &failure));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (SAID (failure), "Node 'b', task 'b/checkpoint_save': "));
}

/* D003.2: each is whole, and yet they never were the job's state together */
MUSTER_TEST (JobCheckpoint, does_not_load_nodes_of_different_saves)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL, mixed = NULL;
  job_set_up (&f, two_nodes);
  g_autoptr (MusterJobCheckpoint) first = muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  g_autoptr (MusterJobCheckpoint) second =
      muster_job_checkpoint_new_for_node (f.directory, "a", NULL, NULL, NULL);

  for (int again = 0; again < 2; again++) {
    g_autoptr (MusterJobCheckpoint) resuming =
        muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
    MUSTER_EXPECT_TRUE (begin (&f, first, two_nodes, &error) && save (&f, first, 1, &error));
    if (again) /* killed before it had saved b */
      MUSTER_EXPECT_TRUE (begin (&f, second, one_node, &error) && save (&f, second, 1, &error));
    MUSTER_EXPECT_TRUE (
        run (&f, muster_job_checkpoint_init_group (resuming, two_nodes, 1, NULL, &error), &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (load (&f, resuming, 1, NULL, &mixed), !again);
  }
  MUSTER_EXPECT_ERROR (mixed, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

/* A list that somebody else wrote: what it says is checked against the graph. */
MUSTER_TEST (JobCheckpoint, refuses_lists_that_are_none)
{
  g_auto (JobFixture) f = {0};
  job_set_up (&f, one_node);
  g_autofree char *prefix = g_build_filename (f.directory, "a.1", NULL);
  const MusterString strange = {"a\xff", 2}, empty = {"", 0};
  const gint64 one = 1;
  g_autoptr (MusterTensor) mark = muster_tensor_new_string ("mark");
  MusterTensor *lists[] = {muster_tensor_new_int64 (1),
                           muster_tensor_new_strings (1, &one, &strange),
                           muster_tensor_new_strings (1, &one, &empty), NULL};

  for (gsize i = 0; i < G_N_ELEMENTS (lists); i++) {
    g_autoptr (MusterJobCheckpoint) checkpoint =
        muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) list = lists[i];
    g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, &error);
    MUSTER_EXPECT_TRUE (
        (!list || muster_bundle_writer_add (writer, "blob_names/list", list, &error)) &&
        muster_bundle_writer_add (writer, "blob_names/save", mark, &error));
    MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, &error));
    MUSTER_EXPECT_FALSE (
        run (&f, muster_job_checkpoint_init_group (checkpoint, one_node, 1, NULL, &error), &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR,
                         list ? MUSTER_ERROR_DATA_LOSS : MUSTER_ERROR_NOT_FOUND);
  }
}

MUSTER_TEST (JobCheckpoint, names_a_listed_variable_that_the_graph_lacks)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, one_node);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  g_autofree char *prefix = g_build_filename (f.directory, "a.1", NULL);
  g_autoptr (MusterTensor) list = muster_tensor_new_strv ((const char *[]){"gone", NULL});
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, &error);

  MUSTER_EXPECT_TRUE (muster_bundle_writer_add (writer, "blob_names/list", list, &error) &&
                      muster_bundle_writer_add (writer, "blob_names/save", list, &error) &&
                      muster_bundle_writer_finish (writer, &error));
  MUSTER_EXPECT_TRUE (
      run (&f, muster_job_checkpoint_init_group (checkpoint, one_node, 1, NULL, &error), &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (load (&f, checkpoint, 1, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (strstr (SAID (error), "gone") != NULL);
}

/* --- loading some --- */

/* B003.38, D003.8 */
MUSTER_TEST (JobCheckpoint, loads_those_of_some_names_that_it_has)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  const char *names[] = {"late", "total", "nowhere", NULL};
  MusterJobOutput *loaded = NULL;
  job_set_up (&f, one_node);
  g_autoptr (MusterJobCheckpoint) saver =
      muster_job_checkpoint_new_for_node (f.directory, "n", NULL, NULL, NULL);
  g_autoptr (MusterJobCheckpoint) loader =
      muster_job_checkpoint_new_for_node (f.directory, "n", NULL, NULL, NULL);
  MUSTER_EXPECT_TRUE (begin (&f, saver, one_node, &error) && run_ops (&f, "a", "read") &&
                      run_ops (&f, "a", "read") && save (&f, saver, 2, &error) &&
                      run_ops (&f, "a", "init"));
  MUSTER_ASSERT_NO_ERROR (error);

  MusterJobTask *task =
      muster_job_checkpoint_partial_load_task (loader, NULL, names, 2, "a", &loaded, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_job_task_name (task), "checkpoint_partial_load");
  g_object_ref (loaded);
  MUSTER_EXPECT_TRUE (run_task (&f, task, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) value = muster_job_output_get (loaded, &error);
  g_autofree char *text = muster_tensor_to_string (value, 9);
  MUSTER_EXPECT_TRUE (strstr (text, "total") && !strstr (text, "late"));
  MUSTER_EXPECT_EQ (muster_tensor_n_elements (value), 1);
  MUSTER_EXPECT_EQ (job_value (&f, "a", "total"), 101);
  MUSTER_EXPECT_EQ (job_value (&f, "a", "position"), 0);
  g_object_unref (loaded);
}

/* B003.39: of exactly that epoch */
MUSTER_TEST (JobCheckpoint, says_whether_an_epoch_is_there)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  static const gint64 asked[] = {1, 10, 100};
  job_set_up (&f, one_node);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  MUSTER_EXPECT_TRUE (begin (&f, checkpoint, one_node, &error) &&
                      save (&f, checkpoint, 10, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  for (gsize i = 0; i < G_N_ELEMENTS (asked); i++) {
    MusterJobOutput *exists = NULL;
    MusterJobTask *task =
        muster_job_checkpoint_exists_task (checkpoint, "a", asked[i], &exists, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_object_ref (exists);
    MUSTER_EXPECT_TRUE (run_task (&f, task, &error));
    g_autoptr (MusterTensor) value = muster_job_output_get (exists, &error);
    MUSTER_EXPECT_EQ (*(const guint8 *)muster_tensor_data (value), asked[i] == 10);
    g_object_unref (exists);
  }
}

/* B003.56, B003.57, D003.5, D003.7, D003.8, D003.12 */
MUSTER_TEST (JobCheckpoint, loads_node_by_node_until_one_is_missing)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL, none = NULL, others = NULL;
  const char *names[] = {"position", "total", "nowhere", NULL};
  gboolean found = FALSE;
  g_auto (GStrv) loaded = NULL, both = NULL, none_loaded = NULL;
  job_set_up (&f, two_nodes);
  g_autoptr (MusterJobCheckpoint) saver = muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  g_autoptr (MusterJobCheckpoint) loader =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  g_autoptr (MusterJobCheckpoint) single =
      muster_job_checkpoint_new_for_node (f.directory, "b", NULL, NULL, NULL);
  MUSTER_EXPECT_TRUE (begin (&f, saver, two_nodes, &error) && run_ops (&f, "a", "read") &&
                      run_ops (&f, "a", "read") && run_ops (&f, "b", "read") &&
                      save (&f, saver, 1, &error) && save (&f, saver, 2, &error) &&
                      run_ops (&f, "a", "init") && run_ops (&f, "b", "init"));
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (muster_job_checkpoint_load_locally (
      loader, no_nodes, names, 1, f.cluster, NULL, &found, NULL, MUSTER_WAIT_FOREVER, NULL, &none));
  MUSTER_EXPECT_ERROR (none, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_load_locally (loader, two_nodes, names, 1, f.cluster,
                                                          NULL, &found, &both, MUSTER_WAIT_FOREVER,
                                                          NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *text = g_strjoinv (" ", both);
  MUSTER_EXPECT_TRUE (found);
  MUSTER_EXPECT_STREQ (text, "position total");
  MUSTER_EXPECT_EQ (job_value (&f, "a", "position"), 2);
  MUSTER_EXPECT_EQ (job_value (&f, "b", "position"), 1);
  MUSTER_EXPECT_FALSE (muster_job_checkpoint_load_locally (loader, one_node, names, 1, f.cluster,
                                                           NULL, &found, NULL, MUSTER_WAIT_FOREVER,
                                                           NULL, &others));
  MUSTER_EXPECT_ERROR (others, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);

  /* b's is gone: a's stays loaded; and one node's manager, into the other node */
  g_autofree char *path = g_build_filename (f.directory, "b.2.index", NULL);
  MUSTER_ASSERT_EQ (g_unlink (path), 0);
  MUSTER_EXPECT_TRUE (run_ops (&f, "a", "init") && run_ops (&f, "b", "init"));
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_load_locally (loader, two_nodes, names, 2, f.cluster,
                                                          NULL, &found, &loaded,
                                                          MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_FALSE (found);
  MUSTER_EXPECT_EQ (job_value (&f, "a", "position"), 2);
  MUSTER_EXPECT_EQ (job_value (&f, "b", "position"), 0);
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_load_locally (single, one_node, names, 1, f.cluster,
                                                          "a", &found, &none_loaded,
                                                          MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (found);
  MUSTER_EXPECT_EQ (job_value (&f, "a", "position"), 1);

  /* and the manager that only loaded so far still lists its names */
  MUSTER_EXPECT_TRUE (begin (&f, loader, two_nodes, &error) && save (&f, loader, 3, &error));
  MUSTER_ASSERT_NO_ERROR (error);
}

/* --- prefixes and books --- */

/* B003.47, B003.48, D003.4 */
MUSTER_TEST (JobCheckpoint, keeps_the_path_that_it_was_given)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  const char *names[] = {"total", NULL};
  gboolean found = FALSE;
  job_set_up (&f, one_node);
  FakeMetadata *fake = job_fake_metadata (&f);
  g_autoptr (MusterJobCheckpoint) saver = muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new ("/nowhere", NULL, f.metadata, NULL);
  g_autofree char *prefix = g_strconcat (f.directory, "/", NULL);
  const MusterJobPath path = {.prefix = prefix}, nothing = {.prefix = ""},
                      wrong = {"/wrong/", NULL};
  MUSTER_EXPECT_TRUE (begin (&f, saver, one_node, &error) && run_ops (&f, "a", "read") &&
                      run_ops (&f, "a", "read") && save (&f, saver, 1, &error) &&
                      run_ops (&f, "a", "init"));
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (muster_job_checkpoint_set_params (checkpoint, two_nodes, &path, &error));
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_set_params (checkpoint, two_nodes, &nothing, &error));
  g_autofree char *told = g_strdup_printf ("/nowhere: a b, %s, no other storage", prefix);
  MUSTER_EXPECT_STREQ (fake->params, told);

  MUSTER_EXPECT_TRUE (
      run (&f, muster_job_checkpoint_init_group (checkpoint, one_node, 1, NULL, &error), &error));
  MUSTER_EXPECT_TRUE (load (&f, checkpoint, 1, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_load_locally (checkpoint, one_node, names, 1, f.cluster,
                                                          NULL, &found, NULL, MUSTER_WAIT_FOREVER,
                                                          NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (found);
  MUSTER_EXPECT_EQ (job_value (&f, "a", "total"), 101);
  MUSTER_EXPECT_FALSE (load (&f, checkpoint, 1, &wrong, &error)); /* the call's own is first */
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  g_clear_error (&error);
  MUSTER_EXPECT_FALSE (save (&f, checkpoint, 2, &error)); /* not where it loads from */
  MUSTER_EXPECT_FALSE (job_has_file (&f, "a.2"));
  g_clear_error (&error);

  g_autoptr (MusterJobCheckpoint) single =
      muster_job_checkpoint_new_for_node ("/nowhere", "own", NULL, f.metadata, NULL);
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_set_params (single, two_nodes, NULL, &error));
  MUSTER_EXPECT_STREQ (fake->params, "/nowhere: own, no prefix, no other storage");
}

/* D003.4, and one that its call gives */
MUSTER_TEST (JobCheckpoint, loads_from_the_storage_that_it_was_given)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterWatchedStorage) broken = muster_watched_storage_new ();
  job_set_up (&f, one_node);
  const MusterJobPath path = {.storage = MUSTER_STORAGE (broken)};
  const MusterJobPath whole = {.storage = muster_local_storage ()};
  FakeMetadata *fake = job_fake_metadata (&f);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, f.metadata, NULL);
  muster_watched_storage_refuse (broken, "a.1.index");

  MUSTER_EXPECT_TRUE (begin (&f, checkpoint, one_node, &error) &&
                      muster_job_checkpoint_set_params (checkpoint, one_node, &path, &error) &&
                      save (&f, checkpoint, 1, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (fake->params, ", another storage"));
  MUSTER_EXPECT_TRUE (load (&f, checkpoint, 1, &whole, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (load (&f, checkpoint, 1, NULL, &error));
}

/* B003.40, B003.41, B003.43, B003.44, D003.15 */
MUSTER_TEST (JobCheckpoint, reports_how_long_each_node_took)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterSlowStorage) slow = muster_slow_storage_new (clock, 100);
  job_set_up (&f, two_nodes);
  FakeMetadata *fake = job_fake_metadata (&f);
  g_autoptr (MusterJobCheckpoint) checkpoint = muster_job_checkpoint_new (
      f.directory, MUSTER_STORAGE (slow), f.metadata, MUSTER_CLOCK (clock));
  g_autofree char *path = g_build_filename (f.directory, "b.7", NULL);

  MUSTER_EXPECT_TRUE (begin (&f, checkpoint, two_nodes, &error) &&
                      save (&f, checkpoint, 7, &error) &&
                      muster_job_checkpoint_report (checkpoint, "checkpoint_save",
                                                    MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (f.diary->str, "report checkpoint_save");
  MUSTER_ASSERT_EQ (fake->stats->len, 2u);
  const MusterJobStat *b = fake->stats->pdata[1];
  MUSTER_EXPECT_STREQ (b->path, path);
  MUSTER_EXPECT_STREQ (b->node, "b");
  MUSTER_EXPECT_EQ (b->epoch, 7);
  MUSTER_EXPECT_GT (b->duration_us, 0);

  /* the latest one counts: a load writes nothing, and takes none of this clock's time */
  MUSTER_EXPECT_TRUE (load (&f, checkpoint, 7, NULL, &error));
  g_autoptr (GPtrArray) stats = muster_job_checkpoint_stats (checkpoint);
  MUSTER_ASSERT_EQ (stats->len, 2u);
  MUSTER_EXPECT_EQ (((MusterJobStat *)stats->pdata[1])->duration_us, 0);
}

/* B003.42 */
MUSTER_TEST (JobCheckpoint, has_no_stats_before_something_was_timed)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, one_node);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  g_autoptr (GPtrArray) before = muster_job_checkpoint_stats (checkpoint);
  MUSTER_EXPECT_EQ (before->len, 0u);

  MUSTER_EXPECT_TRUE (begin (&f, checkpoint, one_node, &error));
  g_autoptr (MusterJobGroup) unrun = muster_job_checkpoint_save_group (checkpoint, 1, &error);
  heard_begin (G_LOG_LEVEL_INFO);
  g_autoptr (GPtrArray) stats = muster_job_checkpoint_stats (checkpoint);
  MUSTER_EXPECT_EQ (heard_count ("save", "Failed to collect checkpoint stats: *"), 1U);
  heard_end ();
  MUSTER_EXPECT_EQ (stats->len, 0u);
}

/* B003.43, B003.45, B003.46, B003.49: without metadata */
MUSTER_TEST (JobCheckpoint, needs_no_metadata)
{
  g_autoptr (MusterJobCheckpoint) checkpoint = muster_job_checkpoint_new ("/d", NULL, NULL, NULL);
  g_autoptr (GError) error = NULL;
  gboolean accessible = FALSE, finished = TRUE;
  gint64 epoch = 9;
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_report (checkpoint, "checkpoint_save",
                                                    MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_write_metadata (checkpoint, 1, FALSE,
                                                            MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_accessible (checkpoint, MUSTER_NO_EPOCH, &accessible,
                                                        MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (accessible);
  for (gint64 user = MUSTER_NO_EPOCH; user <= 0; user++) {
    MUSTER_EXPECT_TRUE (muster_job_checkpoint_resume_epoch (checkpoint, user, &epoch, &finished,
                                                            MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_EXPECT_EQ (epoch, user);
    MUSTER_EXPECT_FALSE (finished);
  }
}

/* B003.45, B003.46, B003.49, B003.58: asked once, whatever the number of nodes */
MUSTER_TEST (JobCheckpoint, asks_its_metadata)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  gboolean accessible = TRUE, finished = FALSE;
  gint64 epoch = 0;
  job_set_up (&f, two_nodes);
  FakeMetadata *fake = job_fake_metadata (&f);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, f.metadata, NULL);

  fake->inaccessible = TRUE;
  fake->last_epoch = 12;
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_set_params (checkpoint, two_nodes, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_resume_epoch (checkpoint, 3, &epoch, &finished,
                                                          MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_EQ (epoch, 12);
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_accessible (checkpoint, MUSTER_NO_EPOCH, &accessible,
                                                        MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_FALSE (accessible);
  MUSTER_EXPECT_TRUE (muster_job_checkpoint_write_metadata (checkpoint, 4, TRUE,
                                                            MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_STREQ (f.diary->str, "params, resume 3, accessible, write 4 finished");
}
