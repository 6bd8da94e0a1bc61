// SPDX-License-Identifier: Apache-2.0
#include "graph/meta_graph/meta_graph.h"
#include "jobs/job_group.h"

#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "tests/doubles/fake_clock.h"
#include "tests/gtest_shim.h"
#include "tests/jobs/job_fixture.h"

static const char *const one_node[] = {"a", NULL};
static const char *const two_nodes[] = {"a", "b", NULL};

static gboolean
run (JobFixture *f, MusterJobGroup *group, GError **error)
{
  const gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), 30 * MUSTER_SECOND);
  return muster_cluster_run (f->cluster, group, deadline_us, NULL, error);
}

static MusterJobTask *
func_task (const char *name, const char *node, MusterJobFunc func, gpointer user_data)
{
  MusterJobTask *task = muster_job_task_new (name, node, 1);
  MusterJobStep step = {.func = func, .user_data = user_data};
  g_assert_true (muster_job_task_set_step (task, &step, NULL));
  return task;
}

/* --- names --- */

/* B003.12 */
MUSTER_TEST (JobTask, is_on_the_local_node_unless_asked)
{
  g_autoptr (MusterJobTask) task = muster_job_task_new (NULL, NULL, 0);
  MUSTER_EXPECT_STREQ (muster_job_task_node (task), "local");
}

/* B003.13 */
MUSTER_TEST (JobTask, has_a_name_of_its_own_in_its_group)
{
  static const char *const wanted[] = {"d/n", "d/n:1", "d/n:2", "e/n", "d/step", "d/task"};
  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  MusterJobTask *with_step = muster_job_task_new (NULL, "d", 1);
  const MusterJobStep step = {.name = "step"};
  MUSTER_EXPECT_TRUE (muster_job_task_set_step (with_step, &step, NULL));
  for (int i = 0; i < 3; i++)
    job_add (group, muster_job_task_new ("n", "d", 1));
  job_add (group, muster_job_task_new ("n", "e", 1));
  job_add (group, with_step);
  job_add (group, muster_job_task_new (NULL, "d", 1));

  GPtrArray *tasks = muster_job_group_tasks (group);
  MUSTER_ASSERT_EQ (tasks->len, 6u);
  for (guint i = 0; i < tasks->len; i++)
    MUSTER_EXPECT_STREQ (muster_job_task_name (tasks->pdata[i]), wanted[i]);
}

/* --- concurrency --- */

typedef struct {
  GMutex lock;
  GCond cond;
  int here, wanted;
} Meeting;

/* Waits until all have come: only those that run beside each other meet. */
static gboolean
meet (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
      GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error)
{
  Meeting *self = data;
  const gint64 until_us = g_get_monotonic_time () + 20 * MUSTER_SECOND;
  gboolean in_time = TRUE;
  g_mutex_lock (&self->lock);
  self->here++;
  g_cond_broadcast (&self->cond);
  while (self->here < self->wanted && in_time)
    in_time = g_cond_wait_until (&self->cond, &self->lock, until_us);
  g_mutex_unlock (&self->lock);
  if (!in_time)
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "nobody else came");
  return in_time;
}

/* B003.14, B003.22 */
MUSTER_TEST (JobGroup, runs_its_tasks_and_their_instances_beside_each_other)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  g_autoptr (GError) error = NULL;
  Meeting meeting = {.wanted = 5};
  MusterJobTask *thrice = muster_job_task_new ("thrice", "b", 3);
  MusterJobStep step = {.func = meet, .user_data = &meeting};
  job_set_up (&f, two_nodes);

  g_mutex_init (&meeting.lock);
  MUSTER_EXPECT_TRUE (muster_job_task_set_step (thrice, &step, NULL));
  job_add (group, func_task ("first", "a", meet, &meeting));
  job_add (group, func_task ("second", "a", meet, &meeting));
  job_add (group, thrice);

  MUSTER_EXPECT_TRUE (run (&f, group, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (meeting.here, 5);
}

/* B003.14, B003.17, B003.18: there are no kinds of groups. Variables stay, as in a GLOBAL one; of
 * what a step computes only the outputs, as in a PRIVATE one. */
MUSTER_TEST (JobGroup, shares_the_variables_of_a_node_among_its_tasks_alone)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (MusterJobGroup) init = muster_job_group_new (), group = muster_job_group_new ();
  g_autoptr (GError) error = NULL;
  const char *tensors[] = {"total/read:0", NULL};
  MusterJobTask *reader = muster_job_task_new ("reader", "a", 1);
  MusterJobOutput *output = muster_job_task_add_output (reader, tensors, NULL);
  g_object_ref (output);
  job_set_up (&f, two_nodes);

  job_add (init, job_ops_task ("init", "a", 0, "init", NULL));
  job_add (init, job_ops_task ("init", "b", 0, "init", NULL));
  job_add (group, job_ops_task ("read", "a", 3, "read", NULL));
  job_add (group, reader);
  MUSTER_EXPECT_TRUE (run (&f, init, &error) && run (&f, group, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterTensor) first = muster_job_output_get (output, &error);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (first), 103);
  MUSTER_EXPECT_EQ (job_value (&f, "b", "total"), 100);
  MUSTER_EXPECT_TRUE (run (&f, group, &error));
  g_autoptr (MusterTensor) second = muster_job_output_get (output, &error);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (second), 115);
  g_object_unref (output);
}

static gboolean
fail_at_once (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
              GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error)
{
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, data);
  return FALSE;
}

static gboolean
wait_for_ever (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us, GCancellable *cancellable,
               gpointer data G_GNUC_UNUSED, GError **error)
{
  return muster_clock_wait_until (muster_system_clock (), deadline_us, cancellable, error);
}

/* B003.54: the cause, whose it is, and nobody waits for the others' ends */
MUSTER_TEST (JobGroup, ends_all_when_one_fails_and_says_which)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  g_autoptr (GError) error = NULL;
  job_set_up (&f, two_nodes);

  job_add (group, func_task ("waits", "a", wait_for_ever, NULL));
  job_add (group, func_task ("breaks", "b", fail_at_once, "the disk is gone"));
  job_add (group, job_ops_task ("reads", "a", G_MAXUINT32, "ten", NULL));

  MUSTER_EXPECT_FALSE (run (&f, group, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_STREQ (SAID (error), "Node 'b', task 'b/breaks': the disk is gone");
}

static gboolean
cancel (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
        GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  g_cancellable_cancel (data);
  return TRUE;
}

MUSTER_TEST (JobGroup, ends_when_its_caller_cancels)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  job_set_up (&f, two_nodes);

  job_add (group, func_task ("waits", "a", wait_for_ever, NULL));
  job_add (group, func_task ("cancels", "b", cancel, cancellable));

  MUSTER_EXPECT_FALSE (
      muster_cluster_run (f.cluster, group, MUSTER_WAIT_FOREVER, cancellable, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* --- used groups --- */

/* B003.15, B003.16 */
MUSTER_TEST (JobGroup, cannot_change_once_it_was_used)
{
  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  g_autoptr (MusterJobTask) task = muster_job_task_new ("n", "d", 1);
  g_autoptr (MusterJobTask) late = muster_job_task_new ("m", "d", 1);
  g_autoptr (MusterJobSetup) setup = muster_job_setup_new (NULL, NULL);
  const char *tensors[] = {"x:0", NULL};
  const MusterJobStep step = {0};
  GError *errors[6] = {NULL};
  MUSTER_EXPECT_TRUE (muster_job_group_add (group, task, NULL));
  (void)muster_job_group_tasks (group);

  MUSTER_EXPECT_FALSE (muster_job_group_add (group, late, &errors[0]));
  MUSTER_EXPECT_FALSE (muster_job_group_add_setup (group, "d", setup, &errors[1]));
  MUSTER_EXPECT_FALSE (muster_job_group_add_report (group, "d", &step, 0, &errors[2]));
  MUSTER_EXPECT_NULL (muster_job_task_add_output (task, tensors, &errors[3]));
  MUSTER_EXPECT_FALSE (muster_job_task_set_step (task, &step, &errors[4]));
  MUSTER_EXPECT_FALSE (muster_job_task_add_setup (task, setup, FALSE, &errors[5]));

  for (int i = 0; i < 6; i++) {
    MUSTER_EXPECT_ERROR (errors[i], MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
    MUSTER_EXPECT_STREQ (SAID (errors[i]),
                         i < 3 ? "Cannot add Task to an already used TaskGroup."
                               : "Cannot modify task since it is already been used.");
    g_clear_error (&errors[i]);
  }
}

/* B003.16 */
MUSTER_TEST (JobTask, has_one_step)
{
  g_autoptr (MusterJobTask) task = muster_job_task_new ("n", "d", 1);
  g_autoptr (GError) error = NULL;
  const MusterJobStep step = {0};
  MUSTER_EXPECT_TRUE (muster_job_task_set_step (task, &step, &error));
  MUSTER_EXPECT_FALSE (muster_job_task_set_step (task, &step, &error));

  MUSTER_EXPECT_STREQ (SAID (error), "This Task already has an execution step.");
}

/* B003.24 */
MUSTER_TEST (JobGroup, is_regrouped_by_node_once)
{
  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) same = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GError) error = NULL;
  job_add (group, muster_job_task_new ("n", "old_a", 1));
  job_add (group, muster_job_task_new ("n", "b", 1));
  job_add (group, muster_job_task_new ("m", "old_a", 1));
  g_hash_table_insert (names, "old_a", "a");
  g_hash_table_insert (same, "old_a", "a");

  GPtrArray *parts = muster_job_group_tasks_by_node (group, names, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (parts->len, 2u);
  MUSTER_EXPECT_STREQ (((MusterJobPart *)parts->pdata[0])->node, "a");
  MUSTER_EXPECT_EQ (((MusterJobPart *)parts->pdata[0])->tasks->len, 2u);
  MUSTER_EXPECT_STREQ (((MusterJobPart *)parts->pdata[1])->node, "b");

  MUSTER_EXPECT_PTR_EQ (muster_job_group_tasks_by_node (group, same, &error), parts);
  MUSTER_EXPECT_NULL (muster_job_group_tasks_by_node (group, NULL, &error));
  MUSTER_EXPECT_STREQ (SAID (error), "Cannot call tasks_by_node multiple times.");
}

/* --- outputs --- */

/* B003.19 */
MUSTER_TEST (JobOutput, has_no_value_before_a_run)
{
  g_autoptr (MusterJobTask) task = muster_job_task_new ("n", "d", 1);
  const char *tensors[] = {"x:0", "y:0", NULL};
  g_autoptr (GError) get = NULL, fetch = NULL, set = NULL;
  g_autoptr (MusterTensor) one = muster_tensor_new_int64 (1);
  MusterJobOutput *output = muster_job_task_add_output (task, tensors, NULL);
  MUSTER_EXPECT_NULL (muster_job_output_get (output, &get));
  MUSTER_EXPECT_FALSE (muster_job_output_fetch (output, MUSTER_WAIT_FOREVER, NULL, &fetch));
  MUSTER_EXPECT_FALSE (muster_job_output_set (output, &one, 1, &set));

  MUSTER_EXPECT_STREQ (SAID (get), "Output value not set yet.");
  MUSTER_EXPECT_STREQ (SAID (fetch), "Cannot fetch value for this output.");
  MUSTER_EXPECT_TRUE (g_str_has_prefix (SAID (set), "Wrong number of output values."));
}

/* B003.20; and a fetch reads what is there now */
MUSTER_TEST (JobOutput, is_a_value_or_a_list)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  g_autoptr (GError) error = NULL, as_one = NULL;
  const char *tensors[] = {"total/read:0", "position/read:0", NULL};
  MusterJobTask *task = job_ops_task ("init", "a", 0, "init", NULL);
  MusterJobOutput *output = muster_job_task_add_output (task, tensors, NULL);
  job_set_up (&f, one_node);
  job_add (group, task);

  MUSTER_EXPECT_TRUE (run (&f, group, &error));
  MUSTER_EXPECT_NULL (muster_job_output_get (output, &as_one));
  MUSTER_EXPECT_ERROR (as_one, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  g_autoptr (GPtrArray) list = muster_job_output_get_list (output, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (list->len, 2u);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (list->pdata[0]), 100);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (list->pdata[1]), 0);

  MusterClusterNode *node = muster_cluster_node (f.cluster, "a");
  MUSTER_EXPECT_TRUE (
      muster_session_run_op (node->session, "read", MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_job_output_fetch (output, MUSTER_WAIT_FOREVER, NULL, &error));
  g_autoptr (GPtrArray) now = muster_job_output_get_list (output, &error);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (now->pdata[1]), 1);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (list->pdata[1]), 0);
}

/* --- setups and reports --- */

static MusterJobSetup *
note_setup (JobFixture *f, const char *init, const char *exit)
{
  MusterJobStep first = job_note_step (f, init), last = job_note_step (f, exit);
  return muster_job_setup_new (&first, &last);
}

/* B003.21, B003.22 */
MUSTER_TEST (JobGroup, runs_setups_once_around_what_they_are_of)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  g_autoptr (GError) error = NULL;
  job_set_up (&f, one_node);
  g_autoptr (MusterJobSetup) of_node = note_setup (&f, "node{", "}node");
  g_autoptr (MusterJobSetup) of_task = note_setup (&f, "task{", "}task");
  g_autoptr (MusterJobSetup) of_instance = note_setup (&f, "(", ")");
  MusterJobTask *task = muster_job_task_new ("twice", "a", 2);
  MusterJobStep step = job_note_step (&f, "step");

  MUSTER_EXPECT_TRUE (muster_job_task_set_step (task, &step, NULL));
  for (int again = 0; again < 2; again++) {
    MUSTER_EXPECT_TRUE (muster_job_group_add_setup (group, "a", of_node, NULL));
    MUSTER_EXPECT_TRUE (muster_job_task_add_setup (task, of_task, FALSE, NULL));
    MUSTER_EXPECT_TRUE (muster_job_task_add_setup (task, of_instance, TRUE, NULL));
  }
  job_add (group, task);
  MUSTER_EXPECT_TRUE (run (&f, group, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (g_str_has_prefix (f.diary->str, "node{, task{, ("));
  MUSTER_EXPECT_TRUE (g_str_has_suffix (f.diary->str, "), }task, }node"));
  g_auto (GStrv) words = g_strsplit (f.diary->str, ", ", -1);
  MUSTER_EXPECT_EQ (g_strv_length (words), 4u + 2 * 3);
}

typedef struct {
  MusterFakeClock *clock;
  gint n;
} Reports;

static gboolean
count_report (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
              GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  g_atomic_int_inc (&((Reports *)data)->n);
  return TRUE;
}

/* Lets three intervals pass. */
static gboolean
let_time_pass (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
               GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  Reports *self = data;
  for (int i = 0; i < 3; i++) {
    muster_fake_clock_wait_for_waiters (self->clock, 1);
    MUSTER_EXPECT_EQ (g_atomic_int_get (&self->n), i);
    muster_fake_clock_crank (self->clock);
  }
  muster_fake_clock_wait_for_waiters (self->clock, 1);
  return TRUE;
}

/* B003.23 */
MUSTER_TEST (JobGroup, reports_while_a_node_works_and_once_more)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterCluster) cluster = muster_cluster_new (MUSTER_CLOCK (clock));
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterMetaGraph) model = job_model_new ();
  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  g_autoptr (GError) error = NULL;
  Reports reports = {.clock = clock};
  MusterJobStep report = {.func = count_report, .user_data = &reports};
  MUSTER_EXPECT_TRUE (muster_cluster_add (cluster, "a", master, model, &error));
  MUSTER_EXPECT_TRUE (muster_cluster_open (cluster, 10 * MUSTER_SECOND, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_job_group_add_report (group, "a", &report, 0, &error));
  job_add (group, func_task ("works", "a", let_time_pass, &reports));
  muster_fake_clock_hold (clock);
  MUSTER_EXPECT_TRUE (muster_cluster_run (cluster, group, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (reports.n, 4);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 3 * MUSTER_SECOND);
}

/* --- ops --- */

MUSTER_TEST (JobTask, repeats_its_ops_until_the_input_ends)
{
  g_auto (JobFixture) f = {0};
  const char *targets[] = {"count", NULL};
  static const struct {
    guint64 repeat;
    gboolean until_end, works;
    gint64 counter;
  } cases[] = {{3, FALSE, TRUE, 3}, {0, TRUE, TRUE, 5}, {2, TRUE, TRUE, 2}, {9, FALSE, FALSE, 5}};
  job_set_up (&f, one_node);
  MusterClusterNode *node = muster_cluster_node (f.cluster, "a");

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterJobTask) task = muster_job_task_new ("count", "a", 1);
    const MusterJobStep step = {
        .targets = targets, .repeat = cases[i].repeat, .until_end = cases[i].until_end};
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("case %u", (guint)i);
    MUSTER_EXPECT_TRUE (
        muster_session_run_op (node->session, "init", MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_EXPECT_TRUE (muster_job_task_set_step (task, &step, NULL));
    const gboolean worked =
        muster_cluster_run_task (f.cluster, task, MUSTER_WAIT_FOREVER, NULL, &error);
    MUSTER_EXPECT_EQ (worked, cases[i].works);
    if (!cases[i].works)
      MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
    MUSTER_EXPECT_EQ (job_value (&f, "a", "counter"), cases[i].counter);
  }
}

/* --- the cluster --- */

/* B003.25, B003.26 */
MUSTER_TEST (Cluster, is_closed_once)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (MusterJobGroup) group = muster_job_group_new ();
  g_autoptr (MusterJobTask) alone = job_ops_task ("init", "a", 0, "init", NULL);
  g_autoptr (GError) none = NULL, closed = NULL, again = NULL, failure = NULL;
  job_set_up (&f, one_node);

  MUSTER_EXPECT_FALSE (muster_cluster_run (f.cluster, NULL, 0, NULL, &none));
  MUSTER_EXPECT_STREQ (SAID (none), "Got a none runnable.");
  MUSTER_EXPECT_TRUE (
      muster_cluster_run_task (f.cluster, alone, MUSTER_WAIT_FOREVER, NULL, &failure));
  MUSTER_EXPECT_EQ (job_value (&f, "a", "total"), 100);
  muster_cluster_leave (f.cluster, none);
  MUSTER_EXPECT_TRUE (run (&f, group, &failure));
  muster_cluster_leave (f.cluster, NULL);
  muster_cluster_close (f.cluster);
  MUSTER_EXPECT_FALSE (run (&f, group, &closed));
  MUSTER_EXPECT_STREQ (SAID (closed), "Session is closed.");
  MUSTER_EXPECT_FALSE (muster_cluster_open (f.cluster, MUSTER_SECOND, NULL, &again));
  MUSTER_EXPECT_STREQ (SAID (again), "Session already closed.");
}

/* B003.7, and names that the graph lacks */
MUSTER_TEST (Cluster, compiles_a_group_for_its_graphs)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (MusterJobGroup) group = muster_job_group_new (), wrong = muster_job_group_new ();
  g_autoptr (MusterJobGroup) elsewhere = muster_job_group_new ();
  g_autoptr (GError) error = NULL, misfit = NULL, unknown = NULL, no_node = NULL;
  g_autoptr (MusterCluster) same = muster_cluster_new (NULL), other = muster_cluster_new (NULL);
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterMetaGraph) model = job_model_new ();
  job_set_up (&f, one_node);
  muster_graph_builder_group (builder, "init", (const char *[]){NULL});
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  g_autoptr (MusterMetaGraph) another = muster_meta_graph_new_for_graph (graph);
  MUSTER_EXPECT_TRUE (muster_cluster_add (same, "a", f.masters->pdata[0], model, &error));
  MUSTER_EXPECT_TRUE (muster_cluster_add (other, "a", f.masters->pdata[0], another, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  job_add (group, job_ops_task ("init", "a", 0, "init", NULL));
  MUSTER_EXPECT_TRUE (muster_cluster_compile (f.cluster, group, &error));
  GPtrArray *parts = muster_job_group_tasks_by_node (group, NULL, &error);
  MUSTER_EXPECT_TRUE (muster_cluster_compile (f.cluster, group, &error));
  MUSTER_EXPECT_TRUE (muster_cluster_compile (same, group, &error));
  MUSTER_EXPECT_PTR_EQ (muster_job_group_tasks_by_node (group, NULL, &error), parts);
  MUSTER_EXPECT_FALSE (muster_cluster_compile (other, group, &misfit));
  MUSTER_EXPECT_STREQ (SAID (misfit), "Runnable was compiled for different session type");

  job_add (wrong, job_ops_task ("trains", "a", 0, "nothing_there", NULL));
  MUSTER_EXPECT_FALSE (run (&f, wrong, &unknown));
  MUSTER_EXPECT_STREQ (SAID (unknown), "Node 'a', a/trains: its graph has no 'nothing_there'");
  job_add (elsewhere, job_ops_task ("init", "z", 0, "init", NULL));
  MUSTER_EXPECT_FALSE (run (&f, elsewhere, &no_node));
  MUSTER_EXPECT_ERROR (no_node, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (Cluster, has_nodes_whose_names_are_good_for_files)
{
  static const char *const bad[] = {"", ".a", "a/b", "a b", "\xff"};
  g_autoptr (MusterCluster) cluster = muster_cluster_new (NULL);
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterMetaGraph) model = job_model_new ();
  g_autoptr (GError) twice = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (muster_cluster_add (cluster, bad[i], master, model, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
  MUSTER_EXPECT_TRUE (muster_cluster_add (cluster, "a.b_c-1", master, model, NULL));
  MUSTER_EXPECT_FALSE (muster_cluster_add (cluster, "a.b_c-1", master, model, &twice));
  MUSTER_EXPECT_ERROR (twice, MUSTER_ERROR, MUSTER_ERROR_ALREADY_EXISTS);
}
