// SPDX-License-Identifier: Apache-2.0
#include "jobs/job.h"

#include "tests/gtest_shim.h"
#include "tests/jobs/job_fixture.h"

static const char *const two_nodes[] = {"a", "b", NULL};

static char *
nodes_of (MusterJob *job)
{
  return g_strjoinv (" ", (char **)muster_job_nodes_to_checkpoint (job));
}

/* B003.1 */
MUSTER_TEST (Job, begins_with_four_empty_groups)
{
  g_autoptr (MusterJob) job = muster_job_new ();
  MusterJobGroup *groups[] = {muster_job_init_group (job), muster_job_epoch_group (job),
                              muster_job_download_group (job), muster_job_exit_group (job)};
  g_autofree char *nodes = nodes_of (job);

  for (int i = 0; i < 4; i++) {
    MUSTER_EXPECT_EQ (muster_job_group_tasks (groups[i])->len, 0u);
    for (int j = 0; j < i; j++)
      MUSTER_EXPECT_TRUE (groups[i] != groups[j]);
  }
  MUSTER_EXPECT_EQ (muster_job_stop_conditions (job)->len, 0u);
  MUSTER_EXPECT_STREQ (nodes, "");
}

/* B003.2 */
MUSTER_TEST (Job, takes_what_its_maker_has)
{
  g_autoptr (MusterJobGroup) epoch = muster_job_group_new ();
  g_autoptr (GPtrArray) conditions = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (MusterJob) job =
      muster_job_new_with_groups (NULL, epoch, NULL, NULL, conditions, NULL);
  MUSTER_EXPECT_PTR_EQ (muster_job_epoch_group (job), epoch);
  MUSTER_EXPECT_PTR_EQ (muster_job_stop_conditions (job), conditions);
  MUSTER_EXPECT_TRUE (muster_job_init_group (job) != NULL);
}

/* B003.3 */
MUSTER_TEST (Job, checkpoints_the_nodes_that_it_was_given)
{
  const char *told[] = {"z", "a", NULL};
  g_autoptr (MusterJob) job = muster_job_new_with_groups (NULL, NULL, NULL, NULL, NULL, told);
  job_add (muster_job_init_group (job), muster_job_task_new ("n", "b", 1));
  g_autofree char *nodes = nodes_of (job);
  MUSTER_EXPECT_STREQ (nodes, "z a");
}

/* B003.4 */
MUSTER_TEST (Job, else_checkpoints_those_that_it_initialises)
{
  const char *told[] = {NULL};
  g_autoptr (MusterJob) job = muster_job_new_with_groups (NULL, NULL, NULL, NULL, NULL, told);
  job_add (muster_job_epoch_group (job), muster_job_task_new ("n", "only_trains", 1));
  job_add (muster_job_init_group (job), muster_job_task_new ("n", "b", 1));
  job_add (muster_job_init_group (job), muster_job_task_new ("n", "a", 1));
  job_add (muster_job_init_group (job), muster_job_task_new ("m", "b", 1));
  g_autofree char *nodes = nodes_of (job);
  MUSTER_EXPECT_STREQ (nodes, "b a");
}

/* B003.5 */
MUSTER_TEST (Job, keeps_its_nodes_once_it_is_compiled)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, two_nodes);

  MUSTER_EXPECT_TRUE (muster_job_compile (f.job, f.cluster, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  const char *const *nodes = muster_job_nodes_to_checkpoint (f.job);
  MUSTER_EXPECT_TRUE (g_strv_equal (nodes, two_nodes));
  MUSTER_EXPECT_PTR_EQ (muster_job_nodes_to_checkpoint (f.job), nodes);
}

/* B003.6: the first group that is wrong is told, in this order */
MUSTER_TEST (Job, compiles_init_epoch_download_exit)
{
  static const char *const names[] = {"init", "epoch", "download", "exit"};
  for (int wrong = 0; wrong < 4; wrong++) {
    g_auto (JobFixture) f = {0};
    g_autoptr (GError) error = NULL;
    g_autofree char *begins = g_strdup_printf ("The job's %s group: ", names[wrong]);
    job_set_up (&f, two_nodes);
    MusterJobGroup *groups[] = {muster_job_init_group (f.job), muster_job_epoch_group (f.job),
                                muster_job_download_group (f.job), muster_job_exit_group (f.job)};
    for (int i = wrong; i < 4; i++)
      job_add (groups[i], job_ops_task ("wrong", "a", 0, "not_there", NULL));
    MUSTER_EXPECT_FALSE (muster_job_compile (f.job, f.cluster, &error));
    MUSTER_EXPECT_TRUE (g_str_has_prefix (SAID (error), begins));
  }
}

/* B003.8 */
MUSTER_TEST (Job, adds_tasks_to_the_epoch)
{
  g_autoptr (MusterJob) job = muster_job_new ();
  g_autoptr (MusterJobTask) task = muster_job_task_new ("n", "a", 1);
  MUSTER_EXPECT_TRUE (muster_job_add_task (job, task, NULL));
  MUSTER_EXPECT_PTR_EQ (muster_job_group_tasks (muster_job_epoch_group (job))->pdata[0], task);
}

/* B003.9 */
MUSTER_TEST (Job, fetches_a_tensor_that_stops_it_in_the_epoch)
{
  g_autoptr (MusterJob) job = muster_job_new ();
  MUSTER_EXPECT_TRUE (muster_job_add_stop_tensor (job, "a", "finished:0", NULL));
  GPtrArray *tasks = muster_job_group_tasks (muster_job_epoch_group (job));
  MUSTER_EXPECT_EQ (muster_job_stop_conditions (job)->len, 1u);
  MUSTER_ASSERT_EQ (tasks->len, 1u);
  MUSTER_EXPECT_STREQ (muster_job_task_node (tasks->pdata[0]), "a");
}

/* B003.10, D003.13 */
MUSTER_TEST (Job, takes_an_output_that_stops_it_as_it_is)
{
  g_autoptr (MusterJob) job = muster_job_new ();
  g_autoptr (MusterJobTask) task = muster_job_task_new ("n", "a", 1);
  const char *one[] = {"x:0", NULL}, *two[] = {"x:0", "y:0", NULL};
  MusterJobOutput *good = muster_job_task_add_output (task, one, NULL);
  MusterJobOutput *list = muster_job_task_add_output (task, two, NULL);
  g_autoptr (GError) none = NULL, several = NULL, unnamed = NULL;
  MUSTER_EXPECT_TRUE (muster_job_add_stop_output (job, good, NULL));
  MUSTER_EXPECT_FALSE (muster_job_add_stop_output (job, NULL, &none));
  MUSTER_EXPECT_FALSE (muster_job_add_stop_output (job, list, &several));
  MUSTER_EXPECT_FALSE (muster_job_add_stop_tensor (job, "a", "", &unnamed));

  MUSTER_EXPECT_PTR_EQ (muster_job_stop_conditions (job)->pdata[0], good);
  MUSTER_EXPECT_EQ (muster_job_group_tasks (muster_job_epoch_group (job))->len, 0u);
  MUSTER_EXPECT_ERROR (none, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_ERROR (several, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_ERROR (unnamed, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* D003.13 */
MUSTER_TEST (Job, says_before_it_runs_that_a_condition_is_no_bool)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, two_nodes);

  MUSTER_EXPECT_TRUE (muster_job_add_stop_tensor (f.job, "b", "total/read:0", NULL));
  MUSTER_EXPECT_FALSE (muster_job_compile (f.job, f.cluster, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_STREQ (SAID (error),
                       "Stop condition 'total/read:0' of node 'b' must be one bool; it is int64");
}
