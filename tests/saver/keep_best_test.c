// SPDX-License-Identifier: Apache-2.0
/* Retention beyond the newest: the best, every N steps, pins, and all of them over restarts. */
#include "checkpoint/state/checkpoint_mark_private.h"
#include "checkpoint/state/quarantine.h"
#include "tests/saver/directory_fixture.h"

#include <math.h>

#define HOUR (3600 * MUSTER_SECOND)

static void
expect_there (Fixture *f, const char *listed, const char *there)
{
  g_autofree char *list = steps_listed (f);
  g_autofree char *files = steps_there ();
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (NULL, muster_test_tmpdir (), NULL);
  g_ptr_array_add (state->all, NULL);
  g_autofree char *in_state = steps_of ((char **)state->all->pdata);

  MUSTER_EXPECT_STREQ (list, listed);
  MUSTER_EXPECT_STREQ (in_state, listed);
  MUSTER_EXPECT_STREQ (files, there);
}

static void
save_with (Fixture *f, gint64 step, double value)
{
  muster_saver_set_metric (f->saver, value);
  save (f, step);
}

/* Steps from 1 on. */
static void
save_values (Fixture *f, const double *values, gsize n)
{
  for (gsize i = 0; i < n; i++)
    save_with (f, (gint64)i + 1, values[i]);
}

static void
mark (gint64 step, const char *name, double value)
{
  g_autofree char *base = g_strdup_printf ("model.ckpt-%d", (int)step);
  g_autofree char *prefix = below_tmpdir (base);
  g_autoptr (GError) error = NULL;
  muster_checkpoint_set_metric (NULL, prefix, name, value, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
pin (gint64 step)
{
  g_autofree char *base = g_strdup_printf ("model.ckpt-%d", (int)step);
  g_autofree char *prefix = below_tmpdir (base);
  g_autoptr (GError) error = NULL;
  muster_checkpoint_pin (NULL, prefix, "for a test", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
unpin (gint64 step)
{
  g_autofree char *base = g_strdup_printf ("model.ckpt-%d", (int)step);
  g_autofree char *prefix = below_tmpdir (base);
  g_autoptr (GError) error = NULL;
  muster_checkpoint_unpin (NULL, prefix, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static const MusterSaverOptions two_best = {
    .max_to_keep = 2, .keep_best = 2, .metric = "accuracy:max"};

MUSTER_TEST (KeepBest, stays_beside_the_newest)
{
  static const double accuracy[] = {0.9, 0.1, 0.8, 0.2, 0.3, 0.4};
  g_auto (Fixture) f = set_up (two_best);
  save_values (&f, accuracy, 6);

  expect_there (&f, "5 6", "1 3 5 6");
}

MUSTER_TEST (KeepBest, is_removed_once_others_are_better)
{
  static const double accuracy[] = {0.5, 0.6, 0.7, 0.8, 0.1, 0.1};
  g_auto (Fixture) f = set_up (two_best);
  save_values (&f, accuracy, 6);

  expect_there (&f, "5 6", "3 4 5 6");
}

MUSTER_TEST (KeepBest, is_the_least_on_request)
{
  static const double loss[] = {0.5, 0.2, 0.7, 0.8, 0.9};
  g_auto (Fixture) f =
      set_up ((MusterSaverOptions){.max_to_keep = 1, .keep_best = 1, .metric = "loss:0:min"});

  save_values (&f, loss, 5);

  expect_there (&f, "5", "2 5");
}

MUSTER_TEST (KeepBest, is_never_what_has_no_number)
{
  const double loss[] = {NAN, 3, -INFINITY, NAN, 4, 5};
  g_auto (Fixture) f =
      set_up ((MusterSaverOptions){.max_to_keep = 1, .keep_best = 1, .metric = "loss:min"});

  save_values (&f, loss, 6);

  expect_there (&f, "6", "2 6");
}

MUSTER_TEST (KeepBest, takes_a_value_for_one_save)
{
  g_auto (Fixture) f = set_up (two_best);
  save_with (&f, 1, 0.5);
  save (&f, 2);

  g_autoptr (MusterCheckpointRecord) saved = record ();
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (saved, "model.ckpt-1"),
                             *two = muster_checkpoint_record_find (saved, "model.ckpt-2");
  MUSTER_EXPECT_EQ (muster_side_checkpoint_metric (one, "accuracy"), 0.5);
  MUSTER_EXPECT_EQ (two->metrics->len, 0u);
}

MUSTER_TEST (KeepBest, is_the_same_over_restarts)
{
  static const double accuracy[] = {0.9, 0.1, 0.8, 0.2, 0.3, 0.85, 0.4, 0.1};
  g_auto (Fixture) f = set_up (two_best);
  for (gsize i = 0; i < G_N_ELEMENTS (accuracy); i++) {
    save_with (&f, (gint64)i + 1, accuracy[i]);
    restart (&f, two_best);
  }

  expect_there (&f, "7 8", "1 6 7 8");
}

/* As `muster save` beside a job that trains, or a restart without the options. */
MUSTER_TEST (KeepBest, goes_by_the_directorys_rules_without_its_own)
{
  static const double accuracy[] = {0.9, 0.1, 0.8, 0.2};
  g_auto (Fixture) f = set_up (two_best);
  save_values (&f, accuracy, 4);

  restart (&f, (MusterSaverOptions){.max_to_keep = 1});
  save (&f, 5);
  expect_there (&f, "5", "1 3 5");
  restart (&f, (MusterSaverOptions){.max_to_keep = 1, .keep_best = -1});
  save (&f, 6);

  expect_there (&f, "6", "6");
  restart (&f, (MusterSaverOptions){.max_to_keep = 1});
  save (&f, 7);
  expect_there (&f, "7", "7");
}

/* A saver removes only what it has saved or taken over, as TensorFlow's. */
MUSTER_TEST (KeepBest, leaves_what_another_saver_kept)
{
  static const double accuracy[] = {0.9, 0.1, 0.1};
  const MusterSaverOptions options = {.max_to_keep = 1, .keep_best = 1, .metric = "accuracy:max"};
  g_auto (Fixture) f = set_up (options);
  save_values (&f, accuracy, 3);

  g_clear_object (&f.saver);
  f.saver = saver_with (&f, options);
  save_with (&f, 4, 0.8); /* it isn't the best: 1 is */
  save_with (&f, 5, 0.1);

  expect_there (&f, "5", "1 3 5");
}

MUSTER_TEST (KeepBest, counts_a_value_that_came_later)
{
  g_auto (Fixture) f =
      set_up ((MusterSaverOptions){.max_to_keep = 3, .keep_best = 1, .metric = "eval/top:max"});
  save (&f, 1);
  save (&f, 2);
  save (&f, 3);

  mark (1, "eval/top", 0.2);
  mark (2, "eval/top:0", 0.9);
  mark (3, "another", 1);
  for (gint64 step = 4; step <= 7; step++)
    save (&f, step);

  expect_there (&f, "5 6 7", "2 5 6 7");
}

MUSTER_TEST (KeepBest, does_not_count_the_value_of_what_a_save_replaced)
{
  g_auto (Fixture) f = set_up (two_best);
  save_with (&f, 1, 0.9);

  save (&f, 1);

  g_autoptr (MusterCheckpointRecord) saved = record ();
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (saved, "model.ckpt-1");
  MUSTER_EXPECT_EQ (one->metrics->len, 0u);
}

MUSTER_TEST (KeepBest, needs_a_metric)
{
  static const MusterSaverOptions refused[] = {{.keep_best = 1},
                                               {.keep_best = 1, .metric = "loss"},
                                               {.metric = "loss:best"},
                                               {.metric = ":max"}};
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  for (gsize i = 0; i < G_N_ELEMENTS (refused); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterSaver) saver = muster_saver_new (f.meta_graph, &refused[i], &error);
    MUSTER_EXPECT_NULL (saver);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

/* SAV.85, but for those of which the record says that no rule preserved them */
MUSTER_TEST (KeepBest, is_managed_over_a_restart_by_the_managers_rule)
{
  const MusterSaverOptions options = {.max_to_keep = 1,
                                      .keep_every_n_hours = 2,
                                      .keep_rule = MUSTER_KEEP_MANAGER,
                                      .keep_best = 1,
                                      .metric = "accuracy:max"};
  static const double accuracy[] = {0.1, 0.1, 0.9, 0.1, 0.1, 0.1};
  g_auto (Fixture) f = set_up (options);
  for (gsize i = 0; i < G_N_ELEMENTS (accuracy); i++) {
    muster_fake_clock_pass (f.clock, HOUR);
    save_with (&f, (gint64)i + 1, accuracy[i]);
  }
  expect_there (&f, "6", "2 3 4 6");

  restart (&f, options);
  muster_fake_clock_pass (f.clock, HOUR);
  save_with (&f, 7, 0.95);

  expect_there (&f, "7", "2 4 6 7");
}

MUSTER_TEST (KeepSteps, stay_for_good)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 2, .keep_every_steps = 4});
  for (gint64 step = 1; step <= 10; step++)
    save (&f, step);
  expect_there (&f, "9 10", "4 8 9 10");

  g_autoptr (MusterCheckpointRecord) saved = record ();
  const MusterSideCheckpoint *four = muster_checkpoint_record_find (saved, "model.ckpt-4");
  MUSTER_EXPECT_TRUE (four->preserved);
  MUSTER_EXPECT_STREQ (four->preserved_for, "every 4 steps");
  restart (&f, (MusterSaverOptions){.max_to_keep = 1, .keep_every_steps = -1});
  save (&f, 11);
  save (&f, 12);
  save (&f, 13);
  expect_there (&f, "13", "4 8 13");
}

/* A job that is preempted at any step, or whose saves in the background come late, has milestones.
 */
MUSTER_TEST (KeepSteps, are_the_first_at_or_after_each_multiple)
{
  const MusterSaverOptions options = {.max_to_keep = 2, .keep_every_steps = 10};
  g_auto (Fixture) f = set_up (options);
  for (gint64 step = 0; step <= 5; step += 5)
    save (&f, step);
  restart (&f, options);
  for (gint64 step = 8; step <= 53; step += 5) { /* 8 13 18 23 … */
    save (&f, step);
    if (step == 33)
      restart (&f, options);
  }

  expect_there (&f, "48 53", "0 13 23 33 43 48 53");
}

static void
begin_run (Fixture *f, gint64 from)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *base = g_strdup_printf ("model.ckpt-%d", (int)from);
  g_autofree char *prefix = below_tmpdir (base);

  muster_saver_begin_run (f->saver, muster_test_tmpdir (), from < 0 ? NULL : prefix, from,
                          MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (KeepSteps, of_a_branch_that_was_left_stand_for_no_other)
{
  const MusterSaverOptions options = {.max_to_keep = 1, .keep_every_steps = 10};
  g_auto (Fixture) f = set_up (options);
  begin_run (&f, -1);
  for (gint64 step = 1; step <= 41; step += 5) /* 11 21 31 41 */
    save (&f, step);
  restart (&f, options);

  begin_run (&f, 21);
  for (gint64 step = 22; step <= 57; step += 5) /* 22 27 32 37 42 … */
    save (&f, step);

  expect_there (&f, "57", "11 21 31 32 41 42 52 57");
}

MUSTER_TEST (KeepSteps, are_the_directorys_without_its_own)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 1, .keep_every_steps = 4});
  save (&f, 3);

  restart (&f, (MusterSaverOptions){.max_to_keep = 1});
  for (gint64 step = 4; step <= 6; step++)
    save (&f, step);

  expect_there (&f, "6", "4 6");
}

MUSTER_TEST (Pin, is_kept_by_a_saver_that_runs)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 2});
  save (&f, 1);
  save (&f, 2);

  pin (1);
  pin (2); /* the latest */
  for (gint64 step = 3; step <= 5; step++)
    save (&f, step);

  expect_there (&f, "4 5", "1 2 4 5");
  unpin (1);
  save (&f, 6);
  expect_there (&f, "5 6", "2 5 6");
}

MUSTER_TEST (Pin, is_kept_over_restarts)
{
  const MusterSaverOptions options = {.max_to_keep = 2};
  g_auto (Fixture) f = set_up (options);
  save (&f, 1);
  save (&f, 2);

  pin (1);
  for (gint64 step = 3; step <= 5; step++) {
    restart (&f, options);
    save (&f, step);
  }
  expect_there (&f, "4 5", "1 4 5");
  unpin (1);
  restart (&f, options);
  save (&f, 6);

  expect_there (&f, "5 6", "5 6");
}

/* A job that was set back saves a step again. */
MUSTER_TEST (Pin, stays_on_a_name_that_is_saved_again)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 1});
  save (&f, 1);
  pin (1);

  save (&f, 1);
  save (&f, 2);
  save (&f, 3);

  expect_there (&f, "3", "1 3");
  g_autoptr (MusterCheckpointRecord) saved = record ();
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (saved, "model.ckpt-1");
  MUSTER_EXPECT_STREQ (one->pinned_for, "for a test");
}

/* A job that was set back to 10 reaches 20 again: the steps that were set aside (transfer full). */
static char *
reach_20_again (MusterSaverOptions options, gboolean is_pinned)
{
  g_auto (Fixture) f = set_up (options);
  begin_run (&f, -1);
  save_with (&f, 10, 0.1);
  save_with (&f, 20, 0.9);
  save_with (&f, 30, 0.2);
  if (is_pinned)
    pin (20);

  restart (&f, options);
  begin_run (&f, 10);
  save_with (&f, 20, 0.3);
  save_with (&f, 20, 0.4); /* its own is replaced */

  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_TRUE (strstr (there, "20") != NULL);
  g_auto (GStrv) aside = muster_checkpoint_list_quarantined (NULL, muster_test_tmpdir (), NULL);
  return steps_of (aside);
}

MUSTER_TEST (Branch, that_was_left_keeps_what_is_pinned)
{
  g_autofree char *aside = reach_20_again ((MusterSaverOptions){.max_to_keep = 3}, TRUE);

  MUSTER_EXPECT_STREQ (aside, "20");
  g_autoptr (MusterCheckpointRecord) saved = record ();
  const MusterSideCheckpoint *left = muster_checkpoint_record_find (saved, "model.ckpt-20.bad"),
                             *own = muster_checkpoint_record_find (saved, "model.ckpt-20");
  MUSTER_ASSERT_TRUE (left != NULL && own != NULL);
  MUSTER_EXPECT_TRUE (left->pinned && !own->pinned);
  MUSTER_EXPECT_STREQ (left->pinned_for, "for a test");
}

MUSTER_TEST (Branch, that_was_left_keeps_its_best)
{
  g_autofree char *aside = reach_20_again (
      (MusterSaverOptions){.max_to_keep = 3, .keep_best = 1, .metric = "accuracy:max"}, FALSE);

  MUSTER_EXPECT_STREQ (aside, "20");
  g_autoptr (MusterCheckpointRecord) saved = record ();
  const MusterSideCheckpoint *left = muster_checkpoint_record_find (saved, "model.ckpt-20.bad");
  MUSTER_EXPECT_EQ (muster_side_checkpoint_metric (left, "accuracy"), 0.9);
}

MUSTER_TEST (Branch, that_was_left_keeps_what_was_kept_for_good)
{
  g_autofree char *aside =
      reach_20_again ((MusterSaverOptions){.max_to_keep = 1, .keep_every_steps = 10}, FALSE);

  MUSTER_EXPECT_STREQ (aside, "20");
}

MUSTER_TEST (Branch, that_was_left_gives_its_other_names)
{
  g_autofree char *aside = reach_20_again (
      (MusterSaverOptions){.max_to_keep = 3, .keep_best = 0, .metric = "accuracy:max"}, FALSE);

  MUSTER_EXPECT_STREQ (aside, "");
}

MUSTER_TEST (Pin, is_kept_in_a_directory_that_the_saver_has_left)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 1});
  g_autofree char *elsewhere = below_tmpdir ("elsewhere");
  g_autoptr (GError) error = NULL;
  save (&f, 1);
  pin (1);

  for (gint64 step = 2; step <= 3; step++) {
    g_autofree char *prefix =
        muster_saver_save (f.saver, f.session, elsewhere, step, MUSTER_WAIT_FOREVER, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }

  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "1");
}

MUSTER_TEST (Hold, counts_in_a_directory_that_the_saver_has_left)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 1});
  g_autofree char *elsewhere = below_tmpdir ("elsewhere"), *held = below_tmpdir ("model.ckpt-1");
  g_autoptr (GError) error = NULL;
  double hold = 0;
  save (&f, 1);
  muster_checkpoint_hold (NULL, held, 3600 * MUSTER_SECOND, &hold, MUSTER_WAIT_FOREVER, NULL,
                          &error);
  MUSTER_EXPECT_NO_ERROR (error);

  for (gint64 step = 2; step <= 4; step++) {
    g_autofree char *prefix =
        muster_saver_save (f.saver, f.session, elsewhere, step, MUSTER_WAIT_FOREVER, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
    g_autofree char *there = steps_there ();
    MUSTER_EXPECT_STREQ (there, step < 4 ? "1" : "");
    const MusterEvaluationMarks ended = {.hold = hold};
    if (step == 3)
      (void)muster_checkpoint_set_evaluated (NULL, held, &ended, MUSTER_WAIT_FOREVER, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

/* TensorFlow's, say: what is noted of it doesn't make it muster's to remove. */
MUSTER_TEST (Marks, leave_a_stranger_one)
{
  const MusterSaverOptions options = {.max_to_keep = 1};
  g_auto (Fixture) f = set_up (options);
  g_autofree char *stranger = below_tmpdir ("model.ckpt-1");
  muster_small_model_write (stranger, muster_small_variables, 2, 1, NULL);
  mark (1, "loss", 2);

  restart (&f, options);
  save (&f, 2);
  save (&f, 3);

  expect_there (&f, "3", "1 3");
}

/* --- all of it, with a process for each save and with one for all --- */

#define N_SAVES 30

typedef struct {
  Fixture *f;
  MusterSaverOptions options;
  gboolean restarts;
  const char *directory;
  guint32 seed;
} Story;

static double
next_value (Story *self)
{
  self->seed = self->seed * 1664525u + 1013904223u;
  const guint drawn = self->seed >> 24;
  return drawn < 40 ? NAN : (double)(drawn % 32);
}

static void
pin_or_unpin (Story *self, gint64 step)
{
  g_autofree char *base = g_strdup_printf ("model.ckpt-%d", (int)(step - step % 7));
  g_autofree char *prefix = g_build_filename (self->directory, base, NULL);
  if (step % 7 == 1)
    (void)muster_checkpoint_pin (NULL, prefix, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  else if (step % 21 == 6)
    (void)muster_checkpoint_unpin (NULL, prefix, MUSTER_WAIT_FOREVER, NULL, NULL);
}

/* The survivors. */
static char *
tell (Story *self)
{
  Fixture *f = self->f;
  g_autoptr (MusterSaver) saver = saver_with (f, self->options);
  for (gint64 step = 1; step <= N_SAVES; step++) {
    g_autoptr (GError) error = NULL;
    muster_saver_set_metric (saver, next_value (self));
    muster_fake_clock_pass (f->clock, HOUR);
    g_autofree char *prefix = muster_saver_save (saver, f->session, self->directory, step,
                                                 MUSTER_WAIT_FOREVER, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
    pin_or_unpin (self, step);
    if (!self->restarts)
      continue;
    g_clear_object (&saver);
    saver = saver_with (f, self->options);
    muster_saver_adopt_directory (saver, self->directory, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
  g_auto (GStrv) there = muster_checkpoint_list (NULL, self->directory, NULL);
  return steps_of (there);
}

MUSTER_TEST (Survival, is_the_same_over_restarts)
{
  static const MusterSaverOptions rules[] = {
      {.max_to_keep = 3, .keep_best = 4, .metric = "accuracy:max"},
      {.max_to_keep = 2, .keep_best = 2, .metric = "loss:min", .keep_every_steps = 16},
      {.max_to_keep = 1, .keep_best = 3, .metric = "a:max", .keep_every_n_hours = 9},
      {.max_to_keep = 3,
       .keep_best = 2,
       .metric = "a:min",
       .keep_every_n_hours = 7,
       .keep_rule = MUSTER_KEEP_MANAGER,
       .keep_every_steps = 25},
      {.max_to_keep = 2},
  };
  for (guint i = 0; i < G_N_ELEMENTS (rules); i++) {
    g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
    g_autofree char *once = g_strdup_printf ("%s/once-%u", muster_test_tmpdir (), i),
                    *often = g_strdup_printf ("%s/often-%u", muster_test_tmpdir (), i);
    const MusterSaverOptions *options = &rules[i];
    Story one = {.f = &f, .options = *options, .directory = once, .seed = i + 1},
          other = {
              .f = &f, .options = *options, .restarts = TRUE, .directory = often, .seed = i + 1};
    MusterFakeClock *clock = f.clock;
    g_autofree char *expected = tell (&one);
    f.clock = muster_fake_clock_new ();
    g_autofree char *survivors = tell (&other);
    g_clear_object (&f.clock);
    f.clock = clock;

    MUSTER_EXPECT_STREQ (survivors, expected);
  }
}
