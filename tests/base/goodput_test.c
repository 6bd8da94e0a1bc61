// SPDX-License-Identifier: Apache-2.0
#include "base/goodput.h"
#include "tests/gtest_shim.h"

#define EXPECT_TEXT(goodput, expected)                                                             \
  do {                                                                                             \
    g_autofree char *text_ = muster_goodput_text (goodput);                                        \
    MUSTER_EXPECT_STREQ (text_, expected);                                                         \
  } while (0)

MUSTER_TEST (Goodput, says_what_was_lost_to_what)
{
  MusterGoodput goodput = {.began_us = 1,
                           .spent_us = {[MUSTER_TIME_TRAINING] = 3079 * MUSTER_SECOND,
                                        [MUSTER_TIME_REPEATED] = 38 * MUSTER_SECOND,
                                        [MUSTER_TIME_SAVING] = 900 * MUSTER_MILLISECOND,
                                        [MUSTER_TIME_WAITING] = 400 * MUSTER_MILLISECOND,
                                        [MUSTER_TIME_INITIALISING] = 300 * MUSTER_MILLISECOND,
                                        [MUSTER_TIME_RESTORING] = 200 * MUSTER_MILLISECOND,
                                        [MUSTER_TIME_DOWN] = 1200 * MUSTER_MILLISECOND},
                           .n_restarts = 3,
                           .steps_again = 61000};
  EXPECT_TEXT (&goodput,
               "goodput 98.6 %: 41.0 s of 52m00s lost (3 restarts: 2.1 s down, 38.0 s for "
               "61,000 steps trained again; saves 900 ms)");
  goodput.is_least = TRUE;
  goodput.n_restarts = goodput.steps_again = 1;
  EXPECT_TEXT (&goodput, "goodput 98.6 %: 41.0 s of 52m00s lost (1 restart: 2.1 s down, 38.0 s for "
                         "at least 1 step trained again; saves 900 ms)");
}

MUSTER_TEST (Goodput, of_a_job_without_restarts)
{
  const MusterGoodput none = MUSTER_GOODPUT_INIT;
  const MusterGoodput some = {.spent_us = {[MUSTER_TIME_TRAINING] = 99999 * MUSTER_MILLISECOND,
                                           [MUSTER_TIME_SAVING] = MUSTER_MILLISECOND}};
  const MusterGoodput early = {.spent_us = {[MUSTER_TIME_INITIALISING] = 82 * MUSTER_MILLISECOND}};
  const MusterGoodput first = {
      .spent_us = {
          [MUSTER_TIME_TRAINING] = 20, [MUSTER_TIME_INITIALISING] = 82 * MUSTER_MILLISECOND}};
  EXPECT_TEXT (&none, "goodput: no step trained yet, in 0 µs (start 0 µs; saves 0 µs)");
  EXPECT_TEXT (&early, "goodput: no step trained yet, in 82 ms (start 82 ms; saves 0 µs)");
  EXPECT_TEXT (&first, "goodput: 20 µs of training in 82 ms (start 82 ms; saves 0 µs)");
  /* never rounded up */
  EXPECT_TEXT (&some, "goodput 99.9 %: 1 ms of 1m40s lost (start 0 µs; saves 1 ms)");
  MUSTER_EXPECT_EQ (muster_goodput_lost_us (&some), MUSTER_MILLISECOND);
}
