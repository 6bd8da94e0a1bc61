// SPDX-License-Identifier: Apache-2.0
#include "cli/output/progress.h"

#include "tests/doubles/fake_clock.h"
#include "tests/gtest_shim.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define GB 1000000000ULL

__attribute__ ((constructor)) static void
speak_utf8 (void)
{
  setlocale (LC_ALL, "C.UTF-8");
}

static void
expect_line (const char *what, guint64 done, double rate, guint width, const char *wanted)
{
  g_autofree char *line = muster_progress_line (what, done, 4 * GB, rate, width, FALSE);
  MUSTER_EXPECT_STREQ (line, wanted);
  MUSTER_EXPECT_LE (g_utf8_strlen (line, -1), (glong)width);
}

MUSTER_TEST (Progress, a_line_says_how_far_how_fast_and_how_long)
{
  expect_line ("verifying model-5", GB, 1e9, 79,
               "verifying model-5  ████░░░░░░░░░░░░  25 %, 1.0 GB of 4.0 GB, 1.0 GB/s, 4 s left");
  expect_line ("verifying", GB, 0, 60,
               "verifying  ██████░░░░░░░░░░░░░░░░░░░  25 %, 1.0 GB of 4.0 GB");
  expect_line ("verifying", 5 * GB, 0, 60,
               "verifying  ████████████████████████  100 %, 4.0 GB of 4.0 GB");
}

MUSTER_TEST (Progress, a_narrow_line_gives_up_the_bar_then_the_name)
{
  expect_line ("verifying model-5", GB, 1e9, 62,
               "verifying model-5  25 %, 1.0 GB of 4.0 GB, 1.0 GB/s, 4 s left");
  expect_line ("verifying model-5", GB, 0, 32, "verifyin  25 %, 1.0 GB of 4.0 GB");
  expect_line ("verifying model-5", GB, 0, 5, "");
}

MUSTER_TEST (Progress, is_coloured_if_asked)
{
  g_autofree char *line = muster_progress_line ("x", GB, 4 * GB, 0, 79, TRUE);
  MUSTER_EXPECT_TRUE (strstr (line, "\033[32m█") != NULL && strstr (line, "░\033[0m") != NULL);
}

/* Reads 4 GB, 100 MB at a time; returns what it wrote. (transfer full, malloc) */
static char *
read_all (gint64 step_us, gboolean is_shown)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  char *written = NULL;
  size_t size = 0;
  FILE *to = open_memstream (&written, &size);
  MusterProgress *progress =
      muster_progress_new (is_shown ? to : NULL, FALSE, MUSTER_CLOCK (clock));
  muster_progress_part (progress, "a\033b", 0, 4 * GB);
  for (guint64 done = 0; done <= 4 * GB; done += GB / 10) {
    muster_progress_at (done, 4 * GB, progress);
    muster_fake_clock_pass (clock, step_us);
  }
  muster_progress_free (progress);
  fclose (to);
  return written;
}

static guint
count (const char *text, const char *words)
{
  guint n = 0;
  for (; (text = strstr (text, words)) != NULL; text++)
    n++;
  return n;
}

MUSTER_TEST (Progress, what_ends_within_a_second_has_none)
{
  char *written = read_all (MUSTER_SECOND / 50, TRUE);
  MUSTER_EXPECT_STREQ (written, "");
  free (written);
}

MUSTER_TEST (Progress, is_redrawn_in_place_and_gone_at_the_end)
{
  char *written = read_all (MUSTER_SECOND / 20, TRUE);      /* 2 s */
  MUSTER_EXPECT_EQ (count (written, "\r\033[Ka?b  "), 11u); /* ten times a second, from the first */
  MUSTER_EXPECT_EQ (count (written, "2.0 GB/s, "), 11u);
  MUSTER_EXPECT_EQ (count (written, "50 %, 2.0 GB of 4.0 GB, 2.0 GB/s, 2 s left"), 1u);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (written, " left\r\033[K"));
  free (written);
}

MUSTER_TEST (Progress, shows_nothing_where_there_is_no_terminal)
{
  char *written = read_all (MUSTER_SECOND, FALSE);
  MUSTER_EXPECT_STREQ (written, "");
  free (written);
}

/* The second of two files of 2 GB; the last seconds were slower, and count. */
MUSTER_TEST (Progress, of_a_part_is_that_of_the_whole)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  char *written = NULL;
  size_t size = 0;
  FILE *to = open_memstream (&written, &size);
  MusterProgress *progress = muster_progress_new (to, FALSE, MUSTER_CLOCK (clock));
  muster_progress_part (progress, "one", 0, 4 * GB);
  muster_fake_clock_pass (clock, MUSTER_SECOND);
  muster_progress_at (2 * GB, 2 * GB, progress);
  muster_progress_part (progress, "two", 2 * GB, 4 * GB);
  for (guint64 done = 0; done <= 10; done++) {
    muster_fake_clock_pass (clock, MUSTER_SECOND);
    muster_progress_at (done * GB / 10, 2 * GB, progress);
  }
  muster_progress_hide (progress);
  muster_progress_free (progress);
  fclose (to);
  MUSTER_EXPECT_EQ (count (written, "two  "), 11u);
  MUSTER_EXPECT_EQ (count (written, "75 %, 3.0 GB of 4.0 GB, 100 MB/s, 11 s left"), 1u);
  free (written);
}
