// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/hooks.h"

#include "tests/gtest_shim.h"
#include "tests/train/monitored_fixture.h"

#include <math.h>

#define SET_UP(f)                                                                                  \
  g_auto (Monitored) f = monitored_set_up ();                                                      \
  g_autoptr (GError) error = NULL;                                                                 \
  monitored_script (&f)

/* Opens and trains until there is a stop: how many runs that took. */
static int
train_to_the_end (Monitored *f, GError **error)
{
  int n = 0;
  if (!monitored_open (f, error))
    return -1;
  while (!muster_monitored_session_should_stop (f->session) && n < 100) {
    if (!monitored_train (f, NULL, error))
      return -1;
    n++;
  }
  return n;
}

/* --- stop at step --- */

/* MON.65 */
MUSTER_TEST (StopAtStep, wants_exactly_one_of_its_numbers)
{
  g_autoptr (GError) none = NULL, both = NULL;
  MUSTER_EXPECT_NULL (muster_stop_at_step_hook_new (0, 0, &none));
  MUSTER_EXPECT_NULL (muster_stop_at_step_hook_new (3, 3, &both));

  MUSTER_EXPECT_STREQ (none->message, "One of num_steps or last_step must be specified.");
  MUSTER_EXPECT_STREQ (both->message, "Only one of num_steps or last_step can be specified.");
}

/* MON.66 */
MUSTER_TEST (StopAtStep, last_step_is_absolute)
{
  SET_UP (f);
  f.keeps_step = TRUE;
  f.step = 3;
  monitored_add (&f, muster_stop_at_step_hook_new (0, 5, NULL));

  MUSTER_EXPECT_EQ (train_to_the_end (&f, &error), 2);
}

/* MON.67: from where the first session began, also after a recovery */
MUSTER_TEST (StopAtStep, num_steps_count_from_the_first_session)
{
  SET_UP (f);
  f.keeps_step = TRUE;
  f.step = 3;
  monitored_add (&f, muster_stop_at_step_hook_new (4, 0, NULL));
  muster_fake_master_fail (f.master, "train", 2, 1, MUSTER_ERROR_ABORTED, "gone");

  MUSTER_EXPECT_EQ (train_to_the_end (&f, &error), 4);
  MUSTER_EXPECT_EQ (f.step, 7);
}

/* MON.68 */
MUSTER_TEST (StopAtStep, a_run_that_does_not_advance_does_not_stop_it_early)
{
  SET_UP (f);
  static const char *const fetches[] = {"loss:0"};
  MusterStep look = {.fetches = fetches, .n_fetches = 1};
  g_autoptr (MusterTensor) value = NULL;
  monitored_add (&f, muster_stop_at_step_hook_new (0, 1, NULL));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (muster_monitored_session_run (f.session, &look, &value, NULL, &error));
  MUSTER_EXPECT_FALSE (muster_monitored_session_should_stop (f.session));
  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (f.session));
}

/* --- NaN --- */

static gboolean
yield_nan (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
           MusterTensor **value, gpointer user_data G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  *value = muster_tensor_new_float (NAN);
  return TRUE;
}

/* MON.81; "v" stands for the loss, as it is in the graph. */
MUSTER_TEST (Nan, fails_or_stops)
{
  for (int fails = 0; fails <= 1; fails++) {
    SET_UP (f);
    muster_fake_master_op_calls (f.master, "v", yield_nan, NULL);
    monitored_add (&f, muster_nan_hook_new ("v:0", fails));
    MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

    gboolean ran = monitored_train (&f, NULL, &error);

    MUSTER_EXPECT_EQ (ran, !fails);
    if (fails)
      MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL,
                          "NaN loss during training. 'v:0' is NaN at step 1");
    else
      MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (f.session));
  }
}

/* --- waiting for a step --- */

static void
others_train (gpointer user_data)
{
  ((Monitored *)user_data)->step = 1000;
}

/* MON.85 */
MUSTER_TEST (GlobalStepWaiter, holds_the_first_run_back_and_no_other)
{
  SET_UP (f);
  f.keeps_step = TRUE;
  monitored_add (&f, muster_global_step_waiter_hook_new (1000, MUSTER_CLOCK (f.clock)));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  muster_fake_clock_at (f.clock, 90 * MUSTER_SECOND, others_train, &f);

  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));
  MUSTER_EXPECT_GE (muster_fake_clock_elapsed_us (f.clock), 90 * MUSTER_SECOND);
  MUSTER_EXPECT_LE (muster_fake_clock_elapsed_us (f.clock), 91 * MUSTER_SECOND);

  gint64 then_us = muster_fake_clock_elapsed_us (f.clock);
  f.step = 0;
  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), then_us);
}

MUSTER_TEST (GlobalStepWaiter, waits_for_nothing_without_a_step)
{
  SET_UP (f);
  monitored_add (&f, muster_global_step_waiter_hook_new (0, MUSTER_CLOCK (f.clock)));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_EQ (muster_fake_clock_n_waits (f.clock), 0u);
}

/* --- feeding --- */

static gboolean
three_feeds (MusterTensor **feeds, gint64 deadline_us G_GNUC_UNUSED,
             GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  int *n = user_data;
  if (++*n > 3) {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE, "no more batches");
    return FALSE;
  }
  feeds[0] = muster_tensor_new_float ((float)*n);
  return TRUE;
}

/* MON.86, and MON.33 for its end */
MUSTER_TEST (FeedFunc, feeds_each_run_and_ends_with_its_input)
{
  SET_UP (f);
  static const char *const tensors[] = {"v:0", NULL};
  int n = 0;
  monitored_add (&f, muster_feed_func_hook_new (tensors, three_feeds, &n, NULL));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  for (int i = 1; i <= 3; i++) {
    MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));
    MusterTensor *fed = muster_fake_master_fed (f.master, "v");
    MUSTER_ASSERT_TRUE (fed != NULL);
    MUSTER_EXPECT_EQ (*(const float *)muster_tensor_data (fed), (float)i);
  }
  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (f.session, error, MUSTER_WAIT_FOREVER, NULL));
}

static void
count (gpointer data)
{
  ++*(int *)data;
}

/* Each tensor that is freed counts. */
static MusterTensor *
counted_tensor (int *n_freed)
{
  static const float value = 1;
  g_autoptr (GBytes) bytes = g_bytes_new_with_free_func (&value, sizeof value, count, n_freed);
  return muster_tensor_new_from_bytes (MUSTER_FLOAT, 0, NULL, bytes, NULL);
}

static gboolean
half_a_feed (MusterTensor **feeds, gint64 deadline_us G_GNUC_UNUSED,
             GCancellable *cancellable G_GNUC_UNUSED, gpointer n_freed, GError **error)
{
  feeds[0] = counted_tensor (n_freed);
  return muster_fail (error, MUSTER_ERROR_OUT_OF_RANGE, "no labels");
}

static gboolean
feed_without_the_second (MusterTensor **feeds, gint64 deadline_us G_GNUC_UNUSED,
                         GCancellable *cancellable G_GNUC_UNUSED, gpointer n_freed,
                         GError **error G_GNUC_UNUSED)
{
  feeds[0] = counted_tensor (n_freed);
  return TRUE;
}

static GPtrArray *
list_without_the_second (gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
                         gpointer n_freed, GError **error G_GNUC_UNUSED)
{
  GPtrArray *list = g_ptr_array_new ();
  g_ptr_array_add (list, counted_tensor (n_freed));
  g_ptr_array_add (list, NULL);
  return list;
}

MUSTER_TEST (FeedFunc, owns_what_a_function_that_fails_has_made)
{
  SET_UP (f);
  static const char *const tensors[] = {"v:0", "global_step:0", NULL};
  int n_freed = 0;
  monitored_add (&f, muster_feed_func_hook_new (tensors, half_a_feed, &n_freed, NULL));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
  MUSTER_EXPECT_EQ (n_freed, 1);
}

MUSTER_TEST (FeedFunc, names_the_tensor_that_it_lacks)
{
  static const char *const tensors[] = {"v:0", "global_step:0", NULL};
  for (int i = 0; i < 2; i++) {
    SET_UP (f);
    int n_freed = 0;
    monitored_add (
        &f, i == 0 ? muster_feed_func_hook_new (tensors, feed_without_the_second, &n_freed, NULL)
                   : muster_feed_list_hook_new (tensors, list_without_the_second, &n_freed, NULL));
    MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

    MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &error));

    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_STREQ (error->message, "MusterFeedFuncHook, before a run: the feed function "
                                         "returned no tensor for 'global_step:0'");
    MUSTER_EXPECT_EQ (n_freed, 1);
  }
}

/* --- final ops --- */

/* MON.84 */
MUSTER_TEST (FinalOps, run_once_at_the_end)
{
  SET_UP (f);
  static const char *const fetches[] = {"global_step:0"};
  MusterStep step = {.fetches = fetches, .n_fetches = 1};
  MusterHook *hook = muster_final_ops_hook_new (&step);
  monitored_add (&f, hook);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));
  MUSTER_EXPECT_NULL (muster_final_ops_hook_value (hook, 0));

  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));

  MusterTensor *value = muster_final_ops_hook_value (hook, 0);
  MUSTER_ASSERT_TRUE (value != NULL);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (value), 1);
}

/* MON.84: it isn't taken for a clean end */
MUSTER_TEST (FinalOps, that_lack_their_input_fail)
{
  SET_UP (f);
  static const char *const fetches[] = {"v:0"};
  MusterStep step = {.fetches = fetches, .n_fetches = 1};
  monitored_add (&f, muster_final_ops_hook_new (&step));
  muster_fake_master_fail (f.master, "v", 1, 1, MUSTER_ERROR_OUT_OF_RANGE, "queue is empty");
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
}

/* --- logging --- */

static void
keep_line (MusterHook *hook G_GNUC_UNUSED, const char *text, gpointer user_data)
{
  g_string_append_printf (user_data, "%s\n", text);
}

/* MON.83 */
MUSTER_TEST (Logging, counts_runs_and_reports_the_time_between)
{
  SET_UP (f);
  static const char *const tensors[] = {"global_step:0", NULL};
  g_autoptr (GString) log = g_string_new (NULL);
  MusterHook *hook = muster_logging_hook_new (tensors, 2, 0, TRUE, MUSTER_CLOCK (f.clock), &error);
  g_signal_connect (hook, "line", G_CALLBACK (keep_line), log);
  f.keeps_step = TRUE;
  f.step = 100; /* it counts runs, not steps */
  monitored_add (&f, hook);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  for (int i = 0; i < 4; i++) {
    MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));
    muster_fake_clock_pass (f.clock, MUSTER_SECOND);
  }
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));

  MUSTER_EXPECT_STREQ (log->str, "global_step:0 = 101\nglobal_step:0 = 103 (2.000 sec)\n"
                                 "global_step:0 = 104\n");
}

/* MON.83 */
MUSTER_TEST (Logging, refuses_what_contradicts_itself)
{
  static const char *const tensors[] = {"v:0", NULL};
  static const gint64 wrong[][2] = {{0, 0}, {-1, 0}, {1, 1}}; /* in runs, in time */
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_NULL (
        muster_logging_hook_new (tensors, wrong[i][0], wrong[i][1], FALSE, NULL, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

/* MON.69, and a name that the graph lacks shows before there is a session */
MUSTER_TEST (Hooks, say_at_the_start_what_the_graph_lacks)
{
  SET_UP (f);
  monitored_add (&f, muster_nan_hook_new ("lost:0", TRUE));

  MUSTER_EXPECT_FALSE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (strstr (error->message, "the graph has no node 'lost'") != NULL);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "create"), 0u);
}

/* --- a hook of one function --- */

static gboolean
stop_at_three (MusterTensor *value, gint64 step, gpointer user_data G_GNUC_UNUSED,
               GError **error G_GNUC_UNUSED)
{
  return *(const gint64 *)muster_tensor_data (value) < 3 && step < 3;
}

MUSTER_TEST (StepHook, is_one_function)
{
  SET_UP (f);
  monitored_add (&f, muster_hook_new_for_step ("global_step:0", stop_at_three, NULL, NULL));

  MUSTER_EXPECT_EQ (train_to_the_end (&f, &error), 3);
}
