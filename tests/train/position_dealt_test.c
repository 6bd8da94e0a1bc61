// SPDX-License-Identifier: Apache-2.0
/* Batches that are dealt, step by step, in bare sessions. */
#include "engine/session/local_master.h"
#include "graph/graph_nodes_private.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/position/position_private.h"

#define N_SLOTS 4

static Prepared
set_up (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (NULL);
  MusterMetaGraph *extended = muster_position_add_dealt (model, N_SLOTS, &error);
  g_assert_no_error (error);
  return prepared_set_up (extended);
}

/* A step of that kind; what the slot has in hand then, or G_MININT64. */
static gint64
step (Prepared *f, const char *kind, gint64 slot, gint64 position, GError **error)
{
  g_autofree char *dealt = g_strconcat (kind, "/dealt:0", NULL);
  g_autofree char *held = g_strconcat (kind, "/held:0", NULL);
  const char *const fetches[] = {dealt, held};
  g_autoptr (MusterTensor) which = muster_tensor_new_int64 (slot);
  g_autoptr (MusterTensor) where = muster_tensor_new_int64 (position);
  const MusterFeed feeds[] = {
      {"rows:0", f->rows}, {MUSTER_POSITION_TASK, which}, {MUSTER_POSITION_POSITION, where}};
  MusterTensor *fetched[2] = {NULL};
  MusterStep run = {.feeds = feeds, .n_feeds = 3, .fetches = fetches, .n_fetches = 2};

  if (!muster_session_run (f->session, &run, fetched, NULL, NULL, error))
    return G_MININT64;
  const gint64 in_hand = *(const gint64 *)muster_tensor_data (fetched[0]);
  muster_tensor_unref (fetched[0]);
  muster_tensor_unref (fetched[1]);
  return in_hand;
}

static void
expect_slot (Prepared *f, guint slot, gint64 begun, gint64 done, gint64 taken)
{
  g_auto (MusterPositionState) state = {.is_dealt = TRUE};
  g_autoptr (GError) error = NULL;
  muster_position_read (f->session, N_SLOTS, &state, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_position_begun (&state, slot), begun);
  MUSTER_EXPECT_EQ (muster_position_done (&state, slot), done);
  MUSTER_EXPECT_EQ (muster_position_taken (&state, slot), taken);
}

static gint64
number (Prepared *f, const char *tensor)
{
  g_autoptr (MusterTensor) value =
      muster_session_fetch (f->session, tensor, MUSTER_WAIT_FOREVER, NULL, NULL);
  return value != NULL ? *(const gint64 *)muster_tensor_data (value) : -1;
}

static gint64
global_step (Prepared *f)
{
  return number (f, muster_scaffold_global_step (f->scaffold));
}

static gint64
next (Prepared *f)
{
  return number (f, MUSTER_POSITION_NEXT "/Read/ReadVariableOp:0");
}

MUSTER_TEST (PositionDealt, deals_with_a_step_and_without)
{
  g_auto (Prepared) f = set_up ();
  g_autoptr (GError) error = NULL;
  expect_slot (&f, 1, 0, 0, MUSTER_POSITION_NOTHING);
  MUSTER_EXPECT_EQ (step (&f, MUSTER_POSITION_DRAW, 1, 0, &error), 0);
  MUSTER_EXPECT_EQ (step (&f, MUSTER_POSITION_DRAW, 3, 0, &error), 1);
  MUSTER_EXPECT_EQ (global_step (&f), 0);
  MUSTER_EXPECT_EQ (step (&f, MUSTER_POSITION_TRAIN, 1, 1, &error), 2);
  MUSTER_EXPECT_EQ (step (&f, MUSTER_POSITION_TRAIN, 1, 2, &error), 3);
  MUSTER_EXPECT_EQ (step (&f, MUSTER_POSITION_LAST, 3, 1, &error), MUSTER_POSITION_NOTHING);
  MUSTER_EXPECT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (global_step (&f), 3);
  MUSTER_EXPECT_EQ (next (&f), 4);
  expect_slot (&f, 0, 0, 0, MUSTER_POSITION_NOTHING);
  expect_slot (&f, 1, 3, 3, 3);
  expect_slot (&f, 3, 2, 2, MUSTER_POSITION_NOTHING);
}

MUSTER_TEST (PositionDealt, refuses_a_step_that_isnt_the_slots_next_and_deals_nothing)
{
  static const char *const kinds[] = {MUSTER_POSITION_DRAW, MUSTER_POSITION_TRAIN,
                                      MUSTER_POSITION_LAST};
  g_auto (Prepared) f = set_up ();
  MUSTER_EXPECT_EQ (step (&f, MUSTER_POSITION_DRAW, 1, 0, NULL), 0);
  for (gsize i = 0; i < 2 * G_N_ELEMENTS (kinds); i++) { /* the one before, and the one after */
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("%s", kinds[i / 2]);
    MUSTER_EXPECT_EQ (step (&f, kinds[i / 2], 1, i % 2 ? 0 : 2, &error), G_MININT64);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (error && strstr (error->message, MUSTER_POSITION_REFUSED));
  }
  expect_slot (&f, 1, 1, 1, 0);
  MUSTER_EXPECT_EQ (next (&f), 1);
  MUSTER_EXPECT_EQ (global_step (&f), 0);
}

/* A step that is cut off before it has drawn shows, and has dealt nothing. */
MUSTER_TEST (PositionDealt, draws_after_it_has_trained)
{
  g_auto (Prepared) f = set_up ();
  MusterGraph *graph = muster_scaffold_graph (f.scaffold);
  static const char *const chain[][2] = {
      {"muster/step/dealt", "^train"},
      {"muster/step/take", "^train"},
      {"muster/last/take", "^train"},
      {"muster/draw/dealt", "^muster/step/begun"},
      {"muster/step/done", "^muster/step/take"},
      {"muster/last/done", "^muster/last/take"},
      {"muster/draw/done", "^muster/draw/take"},
      {MUSTER_POSITION_TAKEN_NOW, "^muster/slot/begun/Read/ReadVariableOp"},
      {MUSTER_POSITION_TAKEN_NOW, "^muster/slot/done/Read/ReadVariableOp"}};
  for (gsize i = 0; i < G_N_ELEMENTS (chain); i++) {
    g_autofree char *name = NULL;
    muster_graph_split_input (chain[i][0], &name);
    const MusterNode *node = muster_graph_find_node (graph, name);
    gboolean waits = FALSE;
    MUSTER_TRACE ("%s", chain[i][0]);
    for (gsize input = 0; input < node->n_input; input++) {
      g_autofree char *text = muster_graph_input_text (graph, node, input);
      waits |= strcmp (text, chain[i][1]) == 0;
    }
    MUSTER_EXPECT_TRUE (waits);
  }
}

static MusterTensor *
counts (const gint64 *numbers, gint64 n)
{
  return muster_tensor_new_from_data (MUSTER_INT64, 1, &n, numbers, (gsize)n * sizeof *numbers,
                                      NULL);
}

MUSTER_TEST (PositionDealt, deals_in_order_what_a_fixed_job_has_not_done)
{
  static const gint64 jobs[][5] = {{0},
                                   {7},
                                   {0, 0, 0, 0, 0},
                                   {3, 3, 3, 3, 3},
                                   {5, 0, 2, 2, 4},
                                   {0, 9, 0, 0, 0},
                                   {1, 2, 3, 4, 5}};
  for (gsize i = 0; i < G_N_ELEMENTS (jobs); i++) {
    const gint64 n_tasks = i < 2 ? 1 : 5;
    g_autoptr (MusterTensor) origin = counts (jobs[i], n_tasks);
    gint64 deal = 0;
    MUSTER_TRACE ("%d", (int)i);
    for (gint64 batch = 0; batch < 100; batch++)
      if (batch / n_tasks >= jobs[i][batch % n_tasks])
        MUSTER_ASSERT_EQ (muster_position_dealt (deal++, origin), batch);
    MUSTER_EXPECT_TRUE (deal > 0);
  }
}

MUSTER_TEST (PositionDealt, has_a_number_for_every_count_that_a_master_may_send)
{
  const gint64 most = G_MAXINT64 / MUSTER_POSITION_MOST_TASKS - 1;
  g_autofree gint64 *numbers = g_new (gint64, MUSTER_POSITION_MOST_TASKS);
  for (int i = 0; i < MUSTER_POSITION_MOST_TASKS; i++)
    numbers[i] = i == 0 ? 0 : most;
  g_autoptr (MusterTensor) origin = counts (numbers, MUSTER_POSITION_MOST_TASKS);

  MUSTER_EXPECT_EQ (muster_position_dealt (MUSTER_POSITION_NOTHING, origin), -1);
  MUSTER_EXPECT_EQ (muster_position_dealt (0, origin), 0);
  MUSTER_EXPECT_EQ (muster_position_dealt (most - 1, origin),
                    (most - 1) * MUSTER_POSITION_MOST_TASKS);
  MUSTER_EXPECT_EQ (muster_position_dealt (most, origin), most * MUSTER_POSITION_MOST_TASKS);
  MUSTER_EXPECT_EQ (muster_position_dealt (G_MAXINT64 - 1, origin), G_MAXINT64);
}

MUSTER_TEST (PositionDealt, refuses_what_a_master_sends_that_is_in_no_hand)
{
  const gint64 wrong[][2] = {{0, -2}, {G_MAXINT64, 0}}, right[] = {-1, 5};
  g_autoptr (MusterTensor) fine = counts (right, 2);
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (MusterTensor) taken = counts (wrong[i], 2);
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (muster_position_check_taken (taken, 2, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  }
  MUSTER_EXPECT_TRUE (muster_position_check_taken (fine, 2, NULL));
  MUSTER_EXPECT_FALSE (muster_position_check_taken (fine, 3, NULL));
}

MUSTER_TEST (PositionDealt, extends_a_graph_in_one_form)
{
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (NULL);
  g_autoptr (MusterMetaGraph) dealt = muster_position_add_dealt (model, N_SLOTS, NULL);
  g_autoptr (MusterMetaGraph) fixed = muster_position_add (model, N_SLOTS, NULL);
  g_autoptr (MusterMetaGraph) again = muster_position_add_dealt (dealt, N_SLOTS, NULL);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (again == dealt);
  MUSTER_EXPECT_EQ (muster_position_n_tasks (dealt), N_SLOTS);
  MUSTER_EXPECT_TRUE (muster_position_is_dealt (dealt));
  MUSTER_EXPECT_FALSE (muster_position_is_dealt (fixed) || muster_position_is_dealt (model));
  MUSTER_EXPECT_NULL (muster_position_add (dealt, N_SLOTS, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "the other form"));
  MUSTER_EXPECT_NULL (muster_position_add_dealt (fixed, N_SLOTS, NULL));
  MUSTER_EXPECT_NULL (muster_position_add_dealt (dealt, N_SLOTS + 1, NULL));
  MUSTER_EXPECT_NULL (muster_position_add_dealt (model, 0, NULL));
}
