// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/keep_rules_private.h"

#include "base/error.h"
#include "tests/gtest_shim.h"

#include <math.h>

#define HOUR 3600.0

/* Checkpoints of steps 1 to n, an hour apart, without a value. */
static MusterKeepOne *
hourly (gsize n)
{
  MusterKeepOne *all = g_new0 (MusterKeepOne, n);
  for (gsize i = 0; i < n; i++)
    all[i] = (MusterKeepOne){.step = (gint64)i + 1, .time = (double)(i + 1) * HOUR, .value = NAN};
  all[n - 1].is_latest = TRUE;
  return all;
}

static MusterKeepOne *
with_values (const double *values, gsize n)
{
  MusterKeepOne *all = hourly (n);
  for (gsize i = 0; i < n; i++)
    all[i].value = values[i];
  return all;
}

static MusterKeepRules
newest (int n)
{
  return (MusterKeepRules){.newest = n};
}

static MusterKeepRules
best (int n)
{
  return (MusterKeepRules){.newest = 1, .best = n, .metric = (char *)"accuracy"};
}

/* "3 4 5": the steps of those with one of the reasons. */
static char *
steps_with (const MusterKeepOne *all, gsize n, guint reasons)
{
  GString *steps = g_string_new (NULL);
  for (gsize i = 0; i < n; i++)
    if ((all[i].reasons & reasons) != 0)
      g_string_append_printf (steps, "%s%d", steps->len > 0 ? " " : "", (int)all[i].step);
  return g_string_free (steps, FALSE);
}

static void
expect (const MusterKeepOne *all, gsize n, guint reasons, const char *expected)
{
  g_autofree char *steps = steps_with (all, n, reasons);
  MUSTER_EXPECT_STREQ (steps, expected);
}

static void
decide (const MusterKeepRules *rules, MusterKeepOne *all, gsize n)
{
  double mark = 0;
  muster_keep_decide (rules, all, n, &mark);
}

MUSTER_TEST (KeepRules, keep_the_newest)
{
  const MusterKeepRules rules = newest (2);
  g_autofree MusterKeepOne *all = hourly (5);

  decide (&rules, all, 5);

  expect (all, 5, ~0u, "4 5");
  expect (all, 5, MUSTER_KEEP_FOR_LATEST, "5");
}

MUSTER_TEST (KeepRules, keep_all_without_a_number)
{
  const MusterKeepRules rules = newest (0);
  g_autofree MusterKeepOne *all = hourly (3);

  decide (&rules, all, 3);

  expect (all, 3, MUSTER_KEEP_FOR_NEWEST, "1 2 3");
}

/* A job that was set back goes on from an older one. */
MUSTER_TEST (KeepRules, keep_the_latest_wherever_it_is)
{
  const MusterKeepRules rules = newest (1);
  g_autofree MusterKeepOne *all = hourly (3);
  all[0].is_latest = TRUE;
  all[2].is_latest = FALSE;

  decide (&rules, all, 3);

  expect (all, 3, ~0u, "1 3");
  MUSTER_EXPECT_TRUE (muster_keep_is_listed (&all[0]));
}

MUSTER_TEST (KeepRules, keep_the_best_beside_the_newest)
{
  static const double accuracy[] = {0.9, 0.5, 0.97, 0.6, 0.7};
  const MusterKeepRules rules = best (2);
  g_autofree MusterKeepOne *all = with_values (accuracy, 5);

  decide (&rules, all, 5);

  expect (all, 5, MUSTER_KEEP_FOR_BEST, "1 3");
  expect (all, 5, ~0u, "1 3 5");
  MUSTER_EXPECT_FALSE (muster_keep_is_listed (&all[0]));
  MUSTER_EXPECT_FALSE (muster_keep_is_for_good (&all[0]));
}

MUSTER_TEST (KeepRules, keep_what_is_evaluated_beside_the_newest)
{
  const MusterKeepRules rules = newest (1);
  g_autofree MusterKeepOne *all = hourly (4);
  all[1].is_held = TRUE;

  decide (&rules, all, 4);

  expect (all, 4, MUSTER_KEEP_FOR_READER, "2");
  expect (all, 4, ~0u, "2 4");
  MUSTER_EXPECT_FALSE (muster_keep_is_listed (&all[1]));
  MUSTER_EXPECT_FALSE (muster_keep_is_for_good (&all[1]));
}

MUSTER_TEST (KeepRules, a_newest_one_counts_as_best_too)
{
  static const double accuracy[] = {0.9, 0.5, 0.97};
  const MusterKeepRules rules = best (1);
  g_autofree MusterKeepOne *all = with_values (accuracy, 3);

  decide (&rules, all, 3);

  expect (all, 3, ~0u, "3");
}

MUSTER_TEST (KeepRules, the_least_is_best_on_request)
{
  static const double loss[] = {0.9, 0.2, 0.5, 0.8};
  MusterKeepRules rules = best (2);
  rules.least_is_best = TRUE;
  g_autofree MusterKeepOne *all = with_values (loss, 4);

  decide (&rules, all, 4);

  expect (all, 4, MUSTER_KEEP_FOR_BEST, "2 3");
}

MUSTER_TEST (KeepRules, what_is_not_a_number_is_never_best)
{
  const double loss[] = {NAN, -INFINITY, 5, INFINITY, NAN};
  MusterKeepRules rules = best (4);
  g_autofree MusterKeepOne *all = with_values (loss, 5);

  decide (&rules, all, 5);
  expect (all, 5, MUSTER_KEEP_FOR_BEST, "3");
  rules.least_is_best = TRUE;
  decide (&rules, all, 5);
  expect (all, 5, MUSTER_KEEP_FOR_BEST, "3");
}

MUSTER_TEST (KeepRules, of_equal_values_the_newer_is_best)
{
  static const double accuracy[] = {0.9, 0.9, 0.9, 0.1};
  MusterKeepRules rules = best (2);
  g_autofree MusterKeepOne *all = with_values (accuracy, 4);

  decide (&rules, all, 4);
  expect (all, 4, MUSTER_KEEP_FOR_BEST, "2 3");
  rules.least_is_best = TRUE;
  rules.best = 3;
  decide (&rules, all, 4);
  expect (all, 4, MUSTER_KEEP_FOR_BEST, "2 3 4");
}

MUSTER_TEST (KeepRules, keep_every_so_many_steps_for_good)
{
  const MusterKeepRules rules = {.newest = 1, .every_steps = 3};
  g_autofree MusterKeepOne *all = hourly (9);

  decide (&rules, all, 9);

  expect (all, 9, ~0u, "3 6 9");
  MUSTER_EXPECT_TRUE (muster_keep_is_for_good (&all[2]));
  MUSTER_EXPECT_FALSE (muster_keep_is_for_good (&all[8])); /* it is a newest one still */
}

/* After a resume at an odd step, and where saves in the background come when they can. */
MUSTER_TEST (KeepRules, keep_the_first_at_or_after_each_multiple)
{
  static const gint64 steps[] = {0, 777, 1277, 1777, 2277, 2300, 3000, 3100, 5999, 6001};
  const MusterKeepRules rules = {.newest = 1, .every_steps = 1000};
  g_autofree MusterKeepOne *all = hourly (G_N_ELEMENTS (steps));
  for (gsize i = 0; i < G_N_ELEMENTS (steps); i++)
    all[i].step = steps[i];

  decide (&rules, all, G_N_ELEMENTS (steps));

  expect (all, G_N_ELEMENTS (steps), MUSTER_KEEP_FOR_STEP, "0 1277 2277 3000 5999 6001");
}

/* Whatever the earlier one is kept for, another is not needed for that multiple. */
MUSTER_TEST (KeepRules, what_is_kept_stands_for_its_multiple)
{
  static const MusterKeepStanding standings[] = {MUSTER_KEEP_PINNED, MUSTER_KEEP_PRESERVED,
                                                 MUSTER_KEEP_UNMANAGED};
  const MusterKeepRules rules = {.newest = 1, .every_steps = 3};
  for (gsize i = 0; i < G_N_ELEMENTS (standings); i++) {
    g_autofree MusterKeepOne *all = hourly (8);
    all[2].step = 4;
    all[2].standing = standings[i];

    decide (&rules, all, 8);

    expect (all, 8, MUSTER_KEEP_FOR_STEP, "6");
    expect (all, 8, ~0u, "4 6 8");
  }
}

MUSTER_TEST (KeepRules, a_branch_that_was_left_stands_for_no_other)
{
  static const gint64 steps[] = {0, 1100, 2100, 3100, 1600, 2050, 2150};
  const MusterKeepRules rules = {.newest = 1, .every_steps = 1000};
  g_autofree MusterKeepOne *all = hourly (G_N_ELEMENTS (steps));
  for (gsize i = 0; i < G_N_ELEMENTS (steps); i++)
    all[i].step = steps[i];
  all[2].is_left = all[3].is_left = TRUE;
  all[2].standing = MUSTER_KEEP_PRESERVED;

  decide (&rules, all, G_N_ELEMENTS (steps));

  expect (all, G_N_ELEMENTS (steps), MUSTER_KEEP_FOR_STEP, "0 1100 3100 2050");
}

MUSTER_TEST (KeepRules, a_step_that_is_not_known_is_no_such_step)
{
  const MusterKeepRules rules = {.newest = 1, .every_steps = 1};
  g_autofree MusterKeepOne *all = hourly (2);
  all[0].step = -1;

  decide (&rules, all, 2);

  expect (all, 2, ~0u, "2");
}

/* SAV.54 */
MUSTER_TEST (KeepRules, keep_for_their_time_by_the_savers_rule)
{
  const MusterKeepRules rules = {.newest = 1, .every_s = 2 * HOUR};
  g_autofree MusterKeepOne *all = hourly (9);
  double mark = 0;

  muster_keep_decide (&rules, all, 9, &mark);

  expect (all, 9, MUSTER_KEEP_FOR_TIME, "3 5 7");
  MUSTER_EXPECT_EQ (mark, 6 * HOUR);
  MUSTER_EXPECT_TRUE (muster_keep_is_for_good (&all[2]));
}

/* SAV.54: three days without a checkpoint, then one every ten minutes */
MUSTER_TEST (KeepRules, keep_one_for_a_gap_by_the_savers_rule)
{
  const MusterKeepRules rules = {.newest = 1, .every_s = 2 * HOUR};
  g_autofree MusterKeepOne *all = hourly (30);
  double mark = 0;
  for (gsize i = 2; i < 30; i++)
    all[i].time = 72.5 * HOUR + (double)(i - 2) * HOUR / 6;

  muster_keep_decide (&rules, all, 30, &mark);

  expect (all, 30, MUSTER_KEEP_FOR_TIME, "3 13 25"); /* at 72:30, 74:10 and 76:10 */
  MUSTER_EXPECT_EQ (mark, 76 * HOUR);
}

/* SAV.83 */
MUSTER_TEST (KeepRules, keep_for_their_time_after_the_last_one_kept)
{
  const MusterKeepRules rules = {.newest = 1, .every_s = 2 * HOUR, .by_last_kept = TRUE};
  g_autofree MusterKeepOne *all = hourly (9);
  double mark = -INFINITY;

  muster_keep_decide (&rules, all, 9, &mark);

  expect (all, 9, MUSTER_KEEP_FOR_TIME, "1 3 5 7");
  MUSTER_EXPECT_EQ (mark, 7 * HOUR);
}

MUSTER_TEST (KeepRules, a_time_is_counted_from_what_was_preserved_before)
{
  const MusterKeepRules rules = {.newest = 1, .every_s = 2 * HOUR, .by_last_kept = TRUE};
  g_autofree MusterKeepOne *all = hourly (6);
  all[1].standing = MUSTER_KEEP_PRESERVED;
  all[0].standing = MUSTER_KEEP_PRESERVED;
  double mark = -INFINITY;

  muster_keep_decide (&rules, all, 6, &mark);

  expect (all, 6, MUSTER_KEEP_FOR_TIME, "4");
}

/* SAV.51 */
MUSTER_TEST (KeepRules, what_has_no_time_stays_for_good)
{
  const MusterKeepRules rules = newest (1);
  g_autofree MusterKeepOne *all = hourly (2);
  all[0].time = INFINITY;
  double mark = 0;

  muster_keep_decide (&rules, all, 2, &mark);

  expect (all, 2, MUSTER_KEEP_FOR_GOOD, "1");
  MUSTER_EXPECT_TRUE (muster_keep_is_for_good (&all[0]));
  MUSTER_EXPECT_EQ (mark, 0.0);
}

/* Decided again with each save, until another is better: it isn't kept for its time meanwhile. */
MUSTER_TEST (KeepRules, what_was_best_does_not_become_one_for_its_time)
{
  static const double accuracy[] = {0.9, 0.1, 0.1, 0.1, 0.1, 0.1};
  const MusterKeepRules rules = {
      .newest = 1, .every_s = 2 * HOUR, .best = 1, .metric = (char *)"accuracy"};
  g_autofree MusterKeepOne *all = with_values (accuracy, 6);
  double mark = 0;

  for (gsize n = 1; n <= 6; n++) {
    muster_keep_decide (&rules, all, n, &mark);
    MUSTER_EXPECT_EQ (all[0].reasons & MUSTER_KEEP_FOR_TIME, 0u);
  }
  all[5].value = 0.95;
  muster_keep_decide (&rules, all, 6, &mark);

  MUSTER_EXPECT_EQ (all[0].reasons, 0u);
}

MUSTER_TEST (KeepRules, pinned_ones_stay_beside_the_newest)
{
  const MusterKeepRules rules = newest (2);
  g_autofree MusterKeepOne *all = hourly (5);
  all[0].standing = MUSTER_KEEP_PINNED;
  all[3].standing = MUSTER_KEEP_PINNED;

  decide (&rules, all, 5);

  expect (all, 5, ~0u, "1 3 4 5");
  expect (all, 5, MUSTER_KEEP_FOR_PIN, "1 4");
  MUSTER_EXPECT_FALSE (muster_keep_is_listed (&all[3]));
}

MUSTER_TEST (KeepRules, what_is_not_removed_here_may_be_the_best)
{
  static const double accuracy[] = {0.9, 0.8, 0.7, 0.6, 0.5};
  static const MusterKeepStanding standings[] = {MUSTER_KEEP_PINNED, MUSTER_KEEP_PRESERVED,
                                                 MUSTER_KEEP_UNMANAGED};
  const MusterKeepRules rules = best (1);
  for (gsize i = 0; i < G_N_ELEMENTS (standings); i++) {
    g_autofree MusterKeepOne *all = with_values (accuracy, 5);
    all[0].standing = standings[i];

    decide (&rules, all, 5);

    expect (all, 5, MUSTER_KEEP_FOR_BEST, "1");
    expect (all, 5, ~0u, "1 5");
  }
}

MUSTER_TEST (KeepRules, explain_every_reason)
{
  const MusterKeepRules rules = {.newest = 2,
                                 .every_s = 1.5 * HOUR,
                                 .every_steps = 1000,
                                 .best = 1,
                                 .metric = (char *)"accuracy"};
  const MusterKeepOne one = {.value = 0.97, .reasons = 0x7f};
  g_auto (GStrv) words = muster_keep_explain (&rules, &one, "the paper's", "every 6 h");
  g_autofree char *text = g_strjoinv (", ", words);

  MUSTER_EXPECT_STREQ (text, "latest, newest, best (accuracy 0.97), every 1000 steps, every 1.5 h, "
                             "pinned (the paper's), every 6 h");
}

MUSTER_TEST (KeepRules, explain_what_has_no_words)
{
  const MusterKeepRules rules = {0};
  const MusterKeepOne one = {.reasons = MUSTER_KEEP_FOR_PIN | MUSTER_KEEP_FOR_GOOD};
  g_auto (GStrv) words = muster_keep_explain (&rules, &one, NULL, NULL);
  g_autofree char *text = g_strjoinv (", ", words);

  MUSTER_EXPECT_STREQ (text, "pinned, for good");
}

MUSTER_TEST (KeepRules, read_a_metric)
{
  static const struct {
    const char *spec, *name;
    gboolean is_least;
  } specs[] = {{"loss:min", "loss", TRUE},
               {"loss:0:min", "loss", TRUE},
               {"loss:1:min", "loss:1", TRUE},
               {"eval/accuracy:max", "eval/accuracy", FALSE},
               {"top 5:max", "top 5", FALSE}};
  for (gsize i = 0; i < G_N_ELEMENTS (specs); i++) {
    g_auto (MusterKeepRules) rules = {0};
    g_autoptr (GError) error = NULL;

    MUSTER_EXPECT_TRUE (muster_keep_rules_parse_metric (&rules, specs[i].spec, &error));

    MUSTER_EXPECT_STREQ (rules.metric, specs[i].name);
    MUSTER_EXPECT_EQ (rules.least_is_best, specs[i].is_least);
  }
}

MUSTER_TEST (KeepRules, refuse_what_is_no_metric)
{
  static const char *const specs[] = {"",       "loss", "loss:",    "loss:0",   "loss:best", ":min",
                                      ":0:min", "min",  "a\nb:min", "\xff:max", "loss:Min"};
  for (gsize i = 0; i < G_N_ELEMENTS (specs); i++) {
    g_auto (MusterKeepRules) rules = {0};
    g_autoptr (GError) error = NULL;

    MUSTER_EXPECT_FALSE (muster_keep_rules_parse_metric (&rules, specs[i], &error));

    MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_INVALID_ARGUMENT));
    MUSTER_EXPECT_TRUE (rules.metric == NULL);
  }
}
