// SPDX-License-Identifier: Apache-2.0
/* Jobs trained for real, on masters of the engine. */
#include "tests/gtest_shim.h"
#include "tests/jobs/job_fixture.h"

static const char *const one_node[] = {"trainer_0", NULL};
static const char *const three_nodes[] = {"trainer_0", "trainer_1", "trainer_2", NULL};
static const gint64 totals[] = {100, 103, 115, 136, 145};

static gboolean
train (JobFixture *f, MusterJobCheckpoint *checkpoint, gint64 resume_epoch,
       MusterJobUploadBuilder *upload, gint64 *last_epoch, GError **error)
{
  MusterJobRunnerOptions options = {.upload = upload, .stage_timeout_us = 30 * MUSTER_SECOND};
  g_autoptr (MusterJobRunner) runner =
      muster_job_runner_new (f->job, checkpoint, resume_epoch, &options);

  if (!muster_job_runner_train (runner, f->cluster, last_epoch, MUSTER_WAIT_FOREVER, NULL, error))
    return FALSE;
  MUSTER_EXPECT_EQ (muster_job_runner_failed_epochs (runner, NULL)->len, 0u);
  return TRUE;
}

static gboolean
load (JobFixture *f, MusterJobCheckpoint *checkpoint, gint64 epoch, gboolean *found, GError **error)
{
  static const char *const names[] = {"total", NULL};
  g_autoptr (MusterJobRunner) runner =
      muster_job_runner_new (f->job, checkpoint, MUSTER_NO_EPOCH, NULL);
  return muster_job_runner_load_partial (runner, f->cluster, names, epoch, NULL, found, NULL,
                                         MUSTER_WAIT_FOREVER, NULL, error);
}

/* B003.77, B003.28 */
MUSTER_TEST (JobTraining, saves_every_node_after_every_epoch)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  gint64 last = 0;
  job_set_up (&f, three_nodes);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);

  MUSTER_EXPECT_TRUE (train (&f, checkpoint, MUSTER_NO_EPOCH, NULL, &last, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (last, 4);
  for (int i = 0; i < 3; i++)
    for (int epoch = 0; epoch <= 5; epoch++) {
      g_autofree char *name = g_strdup_printf ("trainer_%d.%d", i, epoch);
      MUSTER_EXPECT_EQ (job_has_file (&f, name), epoch <= 4);
    }
  for (gint64 epoch = 1; epoch <= 5; epoch++) {
    gboolean found = FALSE;
    MUSTER_EXPECT_TRUE (load (&f, checkpoint, epoch, &found, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (found, epoch <= 4);
    for (int i = 0; i < 3; i++)
      MUSTER_EXPECT_EQ (job_value (&f, three_nodes[i], "total"), totals[MIN (epoch, 4)]);
  }
}

/* B003.78, B003.61, B003.80 */
MUSTER_TEST (JobTraining, comes_back_from_any_epoch)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  gint64 last = 0;
  job_set_up (&f, one_node);

  for (gint64 resume = MUSTER_NO_EPOCH; resume <= 4; resume++) {
    g_autoptr (MusterJobCheckpoint) checkpoint =
        muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
    if (resume != MUSTER_NO_EPOCH)
      job_begin_again (&f, one_node, FALSE);
    MUSTER_EXPECT_TRUE (train (&f, checkpoint, resume, NULL, &last, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (job_value (&f, "trainer_0", "total"), 145);
    MUSTER_EXPECT_EQ (job_value (&f, "trainer_0", "copied"), 145);
    MUSTER_EXPECT_EQ (last, resume == 4 ? 5 : 4); /* B003.62 */
  }
  for (gint64 epoch = 1; epoch <= 4; epoch++) {
    g_autoptr (MusterJobCheckpoint) checkpoint =
        muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
    gboolean found = FALSE;
    job_begin_again (&f, one_node, FALSE);
    MUSTER_EXPECT_TRUE (load (&f, checkpoint, epoch, &found, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (found);
    MUSTER_EXPECT_EQ (job_value (&f, "trainer_0", "total"), totals[epoch]);
  }
}

/* --- uploads --- */

#define TYPE_COPIER (muster_job_copier_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobCopier, muster_job_copier, MUSTER, JOB_COPIER,
                      MusterJobUploadBuilder)

struct _MusterJobCopier {
  MusterJobUploadBuilder parent;
};

G_DEFINE_FINAL_TYPE (MusterJobCopier, muster_job_copier, MUSTER_TYPE_JOB_UPLOAD_BUILDER)

static gboolean
copy_file (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
           GCancellable *cancellable, gpointer path, GError **error)
{
  g_autofree char *index = g_strconcat (path, ".index", NULL);
  g_autofree char *copy = g_strconcat (path, ".copy", NULL);
  g_autoptr (GFile) from = g_file_new_for_path (index);
  g_autoptr (GFile) to = g_file_new_for_path (copy);
  return g_file_copy (from, to, G_FILE_COPY_NONE, cancellable, NULL, NULL, error);
}

static MusterJobGroup *
job_copier_build (MusterJobUploadBuilder *builder G_GNUC_UNUSED, gint64 epoch,
                  MusterJobCheckpoint *checkpoint, GError **error G_GNUC_UNUSED)
{
  MusterJobGroup *group = muster_job_group_new ();
  for (int i = 0; i < 3; i++) {
    MusterJobTask *task = muster_job_task_new ("upload", three_nodes[i], 1);
    MusterJobStep step = {.func = copy_file,
                          .user_data =
                              muster_job_checkpoint_db_name (checkpoint, three_nodes[i], epoch),
                          .destroy = g_free};
    g_assert_true (muster_job_task_set_step (task, &step, NULL));
    job_add (group, task);
  }
  return group;
}

static void
muster_job_copier_class_init (MusterJobCopierClass *klass)
{
  MUSTER_JOB_UPLOAD_BUILDER_CLASS (klass)->build = job_copier_build;
}

static void
muster_job_copier_init (MusterJobCopier *self G_GNUC_UNUSED)
{
}

/* B003.79, B003.67 */
MUSTER_TEST (JobTraining, uploads_the_last_checkpoint_of_every_node)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterJobCopier) copier = g_object_new (TYPE_COPIER, NULL);
  gint64 last = 0;
  job_set_up (&f, three_nodes);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);

  MUSTER_EXPECT_TRUE (
      train (&f, checkpoint, MUSTER_NO_EPOCH, MUSTER_JOB_UPLOAD_BUILDER (copier), &last, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  for (int i = 0; i < 3; i++) {
    g_autofree char *copy = g_strdup_printf ("%s/trainer_%d.4.copy", f.directory, i);
    MUSTER_EXPECT_TRUE (g_file_test (copy, G_FILE_TEST_EXISTS));
  }
}

/* B003.81, B003.52, D003.6, D003.11: one manager and one job, several runners */
MUSTER_TEST (JobTraining, goes_on_with_a_manager_that_is_used_again)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  gint64 last = 0;
  job_set_up (&f, three_nodes);
  g_autoptr (MusterJobCheckpoint) checkpoint =
      muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);

  for (gint64 resume = MUSTER_NO_EPOCH; resume <= 3; resume++) {
    MUSTER_EXPECT_TRUE (train (&f, checkpoint, resume, NULL, &last, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (last, 4);
    for (int i = 0; i < 3; i++)
      MUSTER_EXPECT_EQ (job_value (&f, three_nodes[i], "total"), 145);
  }
}

/* --- so many epochs --- */

/* A job on one node that ends only by its number of epochs. */
static void
limit (JobFixture *f, gint64 n)
{
  g_autoptr (MusterMetaGraph) plain = job_model_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) model = muster_epoch_counter_add (plain, &error);
  g_autoptr (MusterMetaGraph) twice = muster_epoch_counter_add (model, &error);
  g_assert_no_error (error);

  g_clear_object (&f->cluster);
  g_clear_object (&f->job);
  f->cluster = muster_cluster_new (NULL);
  f->job = muster_job_new ();
  (void)muster_cluster_add (f->cluster, "trainer_0", f->masters->pdata[0], twice, &error);
  g_assert_no_error (error);
  job_add (muster_job_init_group (f->job), job_ops_task ("init", "trainer_0", 0, "init", NULL));
  job_add (muster_job_epoch_group (f->job), job_ops_task ("read", "trainer_0", 3, "read", NULL));
  (void)muster_job_limit_epochs (f->job, "trainer_0", n, &error);
  g_assert_no_error (error);
  (void)muster_cluster_open (f->cluster, 10 * MUSTER_SECOND, NULL, &error);
  g_assert_no_error (error);
}

/* B003.82 */
MUSTER_TEST (JobTraining, ends_after_so_many_epochs)
{
  g_auto (JobFixture) f = {0};
  job_set_up (&f, one_node);

  for (gint64 n = 1; n <= 3; n++) {
    g_autoptr (GError) error = NULL;
    gint64 last = 0;
    limit (&f, n);
    MUSTER_EXPECT_TRUE (train (&f, NULL, MUSTER_NO_EPOCH, NULL, &last, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (last, n);
    MUSTER_EXPECT_EQ (job_value (&f, "trainer_0", "total"), totals[n]);
  }
}

/* With the model as it was exported, which has no counter. */
MUSTER_TEST (JobTraining, says_that_the_counter_of_epochs_was_not_added)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, one_node);

  MUSTER_EXPECT_TRUE (muster_job_limit_epochs (f.job, "trainer_0", 3, &error));
  MUSTER_EXPECT_FALSE (train (&f, NULL, MUSTER_NO_EPOCH, NULL, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (SAID (error), "The job's epoch group: Node 'trainer_0', "));
  MUSTER_EXPECT_TRUE (g_str_has_suffix (SAID (error), "; to count epochs there, add the counter to "
                                                      "the node's meta graph with "
                                                      "muster_epoch_counter_add ()"));
}

/* B003.83 */
MUSTER_TEST (JobTraining, cannot_end_after_none)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  gint64 last = 0;
  job_set_up (&f, one_node);
  limit (&f, 0);

  MUSTER_EXPECT_FALSE (train (&f, NULL, MUSTER_NO_EPOCH, NULL, &last, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (SAID (error), "The init group: "));
  MUSTER_EXPECT_TRUE (strstr (SAID (error), "negative init_count is not permitted.") != NULL);
}

/* B003.84: the count goes on where it was, in a process that knows nothing of it */
MUSTER_TEST (JobTraining, counts_the_epochs_before_a_resume)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  gint64 last = 0;
  job_set_up (&f, one_node);
  limit (&f, 4);
  g_autoptr (MusterJobCheckpoint) first = muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
  MUSTER_EXPECT_TRUE (train (&f, first, MUSTER_NO_EPOCH, NULL, &last, &error));

  for (gint64 resume = 0; resume <= 3; resume++) {
    g_autoptr (MusterJobCheckpoint) again =
        muster_job_checkpoint_new (f.directory, NULL, NULL, NULL);
    job_begin_again (&f, one_node, FALSE);
    limit (&f, 1000);
    MUSTER_EXPECT_TRUE (train (&f, again, resume, NULL, &last, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (last, 4);
    MUSTER_EXPECT_EQ (job_value (&f, "trainer_0", "total"), 145);
  }
}
