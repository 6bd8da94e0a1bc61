// SPDX-License-Identifier: Apache-2.0
/* The extended graph, step by step, in bare sessions. */
#include "train/position/position.h"

#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/fake_master.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/position/position_private.h"

static Prepared
set_up (guint n_tasks, gboolean resources)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) model =
      muster_seen_model_new (&(MusterSeenModel){.resources = resources});
  MusterMetaGraph *extended = muster_position_add (model, n_tasks, &error);
  g_assert_no_error (error);
  return prepared_set_up (extended);
}

/* A task's step, or what of it target needs; before (nullable) is fed for what the master has
 * counted. */
static gboolean
step (Prepared *f, gint64 task, gint64 position, MusterTensor *before, const char *target,
      GError **error)
{
  g_autoptr (MusterTensor) which = muster_tensor_new_int64 (task);
  g_autoptr (MusterTensor) where = muster_tensor_new_int64 (position);
  const MusterFeed feeds[] = {{"rows:0", f->rows},
                              {MUSTER_POSITION_TASK, which},
                              {MUSTER_POSITION_POSITION, where},
                              {"muster/step/before:0", before}};
  MusterStep what = {
      .feeds = feeds, .n_feeds = before != NULL ? 4 : 3, .targets = &target, .n_targets = 1};
  return muster_session_run (f->session, &what, NULL, NULL, NULL, error);
}
#define WHOLE     "muster/step/held"
#define BEGINNING "muster/step/begun"

static void
expect_counts (Prepared *f, guint n_tasks, guint task, gint64 begun, gint64 done)
{
  g_auto (MusterPositionState) state = {0};
  g_autoptr (GError) error = NULL;
  muster_position_read (f->session, n_tasks, &state, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_position_begun (&state, task), begun);
  MUSTER_EXPECT_EQ (muster_position_done (&state, task), done);
}

static gint64
global_step (Prepared *f)
{
  g_autoptr (MusterTensor) value = muster_session_fetch (
      f->session, muster_scaffold_global_step (f->scaffold), MUSTER_WAIT_FOREVER, NULL, NULL);
  return value != NULL ? *(const gint64 *)muster_tensor_data (value) : -1;
}

MUSTER_TEST (Position, counts_each_tasks_steps_by_themselves)
{
  for (int resources = 0; resources < 2; resources++) {
    g_auto (Prepared) f = set_up (3, resources);
    g_autoptr (GError) error = NULL;

    MUSTER_EXPECT_TRUE (step (&f, 0, 0, NULL, WHOLE, &error));
    MUSTER_EXPECT_TRUE (step (&f, 2, 0, NULL, WHOLE, &error));
    MUSTER_EXPECT_TRUE (step (&f, 2, 1, NULL, WHOLE, &error));
    MUSTER_EXPECT_NO_ERROR (error);
    expect_counts (&f, 3, 0, 1, 1);
    expect_counts (&f, 3, 1, 0, 0);
    expect_counts (&f, 3, 2, 2, 2);
    MUSTER_EXPECT_EQ (global_step (&f), 3);
  }
}

static gint64
hold_of (Prepared *f, guint n_tasks)
{
  g_auto (MusterPositionState) state = {0};
  return muster_position_read (f->session, n_tasks, &state, MUSTER_WAIT_FOREVER, NULL, NULL)
             ? state.hold
             : -1;
}

/* Nobody moves its clock: it doesn't wait for a step that was cut off, nor for what is at rest. */
MUSTER_TEST (Position, asks_all_to_hold_before_a_reset)
{
  g_auto (Prepared) f = set_up (2, TRUE);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (step (&f, 0, 0, NULL, WHOLE, &error));
  MUSTER_EXPECT_TRUE (step (&f, 1, 0, NULL, BEGINNING, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  expect_counts (&f, 2, 1, 1, 0);
  MUSTER_EXPECT_TRUE (
      muster_position_set_hold (f.session, MUSTER_POSITION_GO, MUSTER_WAIT_FOREVER, NULL, &error));

  const MusterPositionQuiesce quiesce = {2, 1, MUSTER_CLOCK (clock), MUSTER_WAIT_FOREVER, FALSE};

  muster_position_quiesce (f.session, &quiesce, NULL);

  MUSTER_EXPECT_EQ (hold_of (&f, 2), MUSTER_POSITION_WAIT);
}

/* Once all are told to hold, nothing is under way any more. */
static gpointer
come_to_quiescence (gpointer data)
{
  Prepared *f = data;
  while (hold_of (f, 2) != MUSTER_POSITION_WAIT)
    g_thread_yield ();
  for (int i = 0; i < 1000; i++) /* a step that takes a while */
    (void)hold_of (f, 2);
  muster_session_run_op (f->session, muster_scaffold_init_op (f->scaffold), MUSTER_WAIT_FOREVER,
                         NULL, NULL);
  return NULL;
}

MUSTER_TEST (Position, waits_before_a_reset_until_a_step_has_ended)
{
  g_auto (Prepared) f = set_up (2, TRUE);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (step (&f, 1, 0, NULL, BEGINNING, &error));
  MUSTER_EXPECT_TRUE (
      muster_position_set_hold (f.session, MUSTER_POSITION_GO, MUSTER_WAIT_FOREVER, NULL, &error));
  GThread *task = g_thread_new ("task", come_to_quiescence, &f);

  const MusterPositionQuiesce quiesce = {2, 2, muster_system_clock (), MUSTER_WAIT_FOREVER, FALSE};

  muster_position_quiesce (f.session, &quiesce, NULL);

  expect_counts (&f, 2, 1, 0, 0);
  g_thread_join (task);
}

/* Until an earlier deadline it waits no longer: its clock, which jumps, stays where it was. */
MUSTER_TEST (Position, waits_for_no_step_beyond_the_deadline)
{
  g_auto (Prepared) f = set_up (2, TRUE);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GError) error = NULL;
  const MusterPositionQuiesce quiesce = {2, 2, MUSTER_CLOCK (clock), 1, FALSE};
  MUSTER_EXPECT_TRUE (step (&f, 1, 0, NULL, BEGINNING, &error));

  muster_position_quiesce (f.session, &quiesce, NULL);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 0);
}

/* Notes until when its steps may take. */
static gboolean
note_deadline (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step,
               MusterTensor **value G_GNUC_UNUSED, gpointer latest, GError **error)
{
  *(gint64 *)latest = MAX (*(gint64 *)latest, step->deadline_us);
  return muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "gone");
}

MUSTER_TEST (Position, asks_before_a_reset_within_the_deadline)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterFakeMaster) master = muster_fake_master_new (clock);
  g_autoptr (GError) error = NULL;
  gint64 latest_us = 0;
  muster_fake_master_op_calls (master, MUSTER_POSITION_BEGUN "/Read/ReadVariableOp", note_deadline,
                               &latest_us);
  g_autoptr (MusterSession) session = muster_master_create_session (
      MUSTER_MASTER (master), NULL, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterPositionQuiesce quiesce = {2, 2, MUSTER_CLOCK (clock),
                                         muster_position_in_us (MUSTER_SECOND), FALSE};

  muster_position_quiesce (session, &quiesce, NULL);

  MUSTER_EXPECT_EQ (latest_us, quiesce.deadline_us);
}

MUSTER_TEST (Position, refuses_a_step_that_isnt_the_tasks_next_and_leaves_all_as_it_is)
{
  g_auto (Prepared) f = set_up (2, FALSE);
  for (gint64 position = 0; position < 4; position += 2) { /* the one before, and the one after */
    g_autoptr (GError) error = NULL;
    if (position == 0)
      MUSTER_ASSERT_TRUE (step (&f, 1, 0, NULL, WHOLE, NULL));
    MUSTER_EXPECT_FALSE (step (&f, 1, position, NULL, WHOLE, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (strstr (error->message, "another process runs as the same task"));
    MUSTER_EXPECT_NULL (strchr (MUSTER_POSITION_REFUSED, '\'')); /* as TensorFlow has it, too */
  }
  expect_counts (&f, 2, 1, 1, 1);
  MUSTER_EXPECT_EQ (global_step (&f), 1);
}

/* The other process has begun between the look and the count: that is what feeding the look is. */
MUSTER_TEST (Position, lets_at_most_one_of_two_at_the_same_moment_write)
{
  g_auto (Prepared) f = set_up (1, FALSE);
  g_autoptr (MusterTensor) nothing = muster_tensor_new_int64 (0);
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (step (&f, 0, 0, NULL, WHOLE, NULL));
  MUSTER_EXPECT_FALSE (step (&f, 0, 0, nothing, WHOLE, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_EQ (global_step (&f), 1);
  expect_counts (&f, 1, 0, 2, 1); /* and it shows */
}

MUSTER_TEST (Position, lets_nothing_write_before_it_has_counted)
{
  static const char *const writers[] = {"count", "grow", "step"};
  for (int resources = 0; resources < 2; resources++) {
    g_auto (Prepared) f = set_up (1, resources);
    for (gsize i = 0; i < G_N_ELEMENTS (writers); i++) {
      MUSTER_TRACE ("%s", writers[i]);
      MusterGraph *graph = muster_scaffold_graph (f.scaffold);
      const MusterNode *node = muster_graph_find_node (graph, writers[i]);
      g_autofree char *last = muster_graph_input_text (graph, node, node->n_input - 1);
      MUSTER_EXPECT_STREQ (last, "^muster/step/begun");
      MUSTER_EXPECT_FALSE (step (&f, 0, 9, NULL, writers[i], NULL));
    }
    MUSTER_EXPECT_EQ (global_step (&f), 0);
    const MusterNode *init =
        muster_graph_find_node (muster_scaffold_graph (f.scaffold), "w/Assign");
    MUSTER_EXPECT_EQ (init->n_input, 2);
  }
}

MUSTER_TEST (Position, is_ready_only_with_its_variables)
{
  g_auto (Prepared) f = set_up (2, FALSE);
  gsize n;
  g_autoptr (MusterGraph) graph = NULL;
  MUSTER_EXPECT_EQ (muster_position_n_tasks (muster_scaffold_meta_graph (f.scaffold)), 2);
  const MusterVariableInfo *variables =
      muster_meta_graph_variables (muster_scaffold_meta_graph (f.scaffold), &n);
  guint n_added = 0;
  for (gsize i = 0; i < n; i++)
    n_added += g_str_has_prefix (variables[i].name, "muster/") && variables[i].is_resource &&
               variables[i].initializer != NULL && variables[i].snapshot != NULL;
  MUSTER_EXPECT_EQ (n_added, 4);
  g_autoptr (MusterTensor) missing = muster_session_fetch (f.session, "muster/ready/all/missing:0",
                                                           MUSTER_WAIT_FOREVER, NULL, NULL);
  MUSTER_ASSERT_NOT_NULL (missing);
  MUSTER_EXPECT_EQ (muster_tensor_n_elements (missing), 0);
  const MusterNode *pack = muster_graph_find_node (muster_scaffold_graph (f.scaffold),
                                                   "muster/ready/all/is_initialized");
  MUSTER_EXPECT_EQ (pack->n_input, n);
}

/* As TensorFlow exports them: VariableDefs in a collection, an op that says ready. */
MUSTER_TEST (Position, joins_the_collections_of_a_model_that_has_some)
{
  static const MusterVariableInfo variables[] = {
      {.name = "seen", .initializer = "seen/Assign", .snapshot = "seen/read:0"},
      {.name = "w", .initializer = "w/Assign", .snapshot = "w/read:0"}};
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (NULL);
  g_autoptr (GError) error = NULL;
  const MusterCollectedOp ops[] = {{"ready_op", "w"}, {"local_variables", "global_step:0"}};
  g_autoptr (MusterMetaGraph) local = muster_meta_graph_with_variables (
      model, muster_meta_graph_graph (model), NULL, 0, ops, 2, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterMetaGraph) both = muster_meta_graph_with_variables (
      local, muster_meta_graph_graph (model), variables, 2, NULL, 0, &error);
  g_autoptr (MusterMetaGraph) extended =
      both != NULL ? muster_position_add (both, 1, &error) : NULL;
  MUSTER_ASSERT_NO_ERROR (error);
  gsize n;

  MUSTER_EXPECT_TRUE (muster_meta_graph_op (extended, "ready_op") == NULL);
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (extended, "init_op"), "muster/position_init");
  const MusterVariableInfo *all = muster_meta_graph_variables (extended, &n);
  MUSTER_ASSERT_TRUE (n == 7);
  MUSTER_EXPECT_STREQ (all[0].name, "seen");
  MUSTER_EXPECT_STREQ (all[2].name, "muster/begun");
  MUSTER_EXPECT_STREQ (all[2].initializer, "muster/begun/Assign");
  MUSTER_EXPECT_TRUE (all[6].is_local);
  MUSTER_EXPECT_TRUE (
      g_str_has_prefix (muster_meta_graph_saver (extended)->save_tensor, "muster/save/"));
}

MUSTER_TEST (Position, extends_a_graph_once)
{
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (NULL);
  g_autoptr (MusterMetaGraph) extended = muster_position_add (model, 3, NULL);
  g_autoptr (MusterMetaGraph) again = muster_position_add (extended, 3, NULL);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (again == extended);
  MUSTER_EXPECT_EQ (muster_position_n_tasks (model), 0);
  MUSTER_EXPECT_TRUE (muster_position_add (extended, 2, &error) == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

static void
expect_refused (MusterGraphBuilder *builder, const char *train_op, const char *words)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterMetaGraph) bare = muster_meta_graph_new_for_graph (graph);
  const MusterCollectedOp op = {"train_op", train_op};
  g_autoptr (MusterMetaGraph) model =
      muster_meta_graph_with_variables (bare, graph, NULL, 0, &op, 1, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (muster_position_add (model, 1, &error) == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, words));
}

MUSTER_TEST (Position, refuses_what_it_could_not_keep)
{
  g_autoptr (MusterTensor) zero = muster_tensor_new_float (0);
  for (int i = 0; i < 4; i++) {
    g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
    muster_graph_builder_variable (builder, "v", zero);
    muster_graph_builder_node (builder, "RefEnter", "loop/v");
    muster_graph_builder_input (builder, "v");
    muster_graph_builder_node (builder, "AssignAdd", "loop/add");
    muster_graph_builder_input (builder, "loop/v");
    muster_graph_builder_input (builder, "loop/v");
    muster_graph_builder_group (builder, "in_loop", (const char *const[]){"loop/add", NULL});
    muster_graph_builder_group (builder, "reads", (const char *const[]){"v/read", NULL});
    expect_refused (
        builder, (const char *const[]){NULL, "lacking", "reads", "in_loop"}[i],
        (const char *const[]){"no train op", "no node", "writes no variable", "within a loop"}[i]);
  }
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (NULL);
  MUSTER_EXPECT_TRUE (muster_position_add (model, 0, NULL) == NULL);
  MUSTER_EXPECT_TRUE (muster_position_add (model, 65537, NULL) == NULL);
}

/* Whoever sent them, a batch's number among all tasks' can be made of them. */
MUSTER_TEST (Position, refuses_numbers_of_a_master_that_are_no_counts)
{
  const gint64 shape[] = {2}, most = G_MAXINT64 / MUSTER_POSITION_MOST_TASKS - 1;
  const gint64 wrong[][2] = {{0, -1}, {G_MININT64, 0}, {most + 1, 0}, {0, G_MAXINT64}};
  const gint64 right[] = {0, most};
  g_autoptr (GError) none = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (MusterTensor) counts =
        muster_tensor_new_from_data (MUSTER_INT64, 1, shape, wrong[i], sizeof wrong[i], NULL);
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (muster_position_check_counts (counts, 2, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  }
  g_autoptr (MusterTensor) counts =
      muster_tensor_new_from_data (MUSTER_INT64, 1, shape, right, sizeof right, NULL);
  MUSTER_EXPECT_TRUE (muster_position_check_counts (counts, 2, &none));
  MUSTER_EXPECT_TRUE (
      muster_position_batch (most, MUSTER_POSITION_MOST_TASKS - 1, MUSTER_POSITION_MOST_TASKS) > 0);
}

MUSTER_TEST (Position, deals_each_batch_to_one_task)
{
  gboolean seen[12] = {FALSE};
  for (guint task = 0; task < 3; task++)
    for (gint64 position = 0; position < 4; position++) {
      gint64 batch = muster_position_batch (position, task, 3);
      MUSTER_ASSERT_TRUE (batch >= 0 && batch < 12 && !seen[batch]);
      seen[batch] = TRUE;
    }
}

/* A master of muster's own is reset instead. */
MUSTER_TEST (Position, adds_a_fence_only_where_tasks_may_have_masters_of_their_own)
{
  for (int on_server = 0; on_server <= 1; on_server++) {
    const MusterSeenModel how = {.resources = TRUE, .on_server = on_server};
    g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&how);
    g_autoptr (MusterMetaGraph) extended = muster_position_add (plain, 2, NULL);
    g_autoptr (GError) error = NULL;
    MusterGraph *graph = muster_meta_graph_graph (extended);
    static const char *const nodes[] = {MUSTER_POSITION_RESTORING, MUSTER_POSITION_MARK,
                                        MUSTER_POSITION_RAISE_FENCE, "muster/step/is_settled"};
    MUSTER_ASSERT_TRUE (muster_graph_parse (graph, &error));
    for (gsize i = 0; i < G_N_ELEMENTS (nodes); i++)
      MUSTER_EXPECT_EQ (muster_graph_has_node (graph, nodes[i]), on_server);
  }
}
