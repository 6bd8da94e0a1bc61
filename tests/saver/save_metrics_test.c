// SPDX-License-Identifier: Apache-2.0
#include "saver/async/save_metrics_private.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* B001.1: a clock that was set gives 0, never less */
MUSTER_TEST (SaveMetrics, count_a_duration_that_ends_before_it_starts_as_none)
{
  MusterSaveMeter *meter = muster_save_meter_new (0);
  muster_save_meter_blocked (meter, 100, 40);
  muster_save_meter_written (meter, 100, 40, FALSE);

  MusterSaveMetrics metrics = muster_save_meter_read (meter);
  MUSTER_EXPECT_EQ (metrics.save_blocked_us.count, 1u);
  MUSTER_EXPECT_EQ (metrics.save_blocked_us.sum_us, 0);
  MUSTER_EXPECT_EQ (metrics.async_write_us.min_us, 0);
  muster_save_meter_free (meter);
}

MUSTER_TEST (SaveMetrics, know_the_sum_the_least_and_the_most)
{
  MusterSaveMeter *meter = muster_save_meter_new (0);
  muster_save_meter_blocked (meter, 0, 30);
  muster_save_meter_blocked (meter, 0, 10);
  muster_save_meter_blocked (meter, 0, 20);

  MusterDurations blocked = muster_save_meter_read (meter).save_blocked_us;
  MUSTER_EXPECT_EQ (blocked.count, 3u);
  MUSTER_EXPECT_EQ (blocked.sum_us, 60);
  MUSTER_EXPECT_EQ (blocked.min_us, 10);
  MUSTER_EXPECT_EQ (blocked.max_us, 30);
  muster_save_meter_free (meter);
}

/* B001.5 and DIFF.28: from start to start of those that are durable, first from the making */
MUSTER_TEST (SaveMetrics, count_only_what_is_durable_as_progress)
{
  MusterSaveMeter *meter = muster_save_meter_new (1000);
  muster_save_meter_written (meter, 1500, 1600, TRUE);
  MUSTER_EXPECT_EQ (muster_save_meter_read (meter).progress_saved_us, 500);
  muster_save_meter_written (meter, 2000, 2100, FALSE);
  MUSTER_EXPECT_EQ (muster_save_meter_read (meter).progress_saved_us, 500);
  muster_save_meter_written (meter, 2500, 2600, TRUE);

  MusterSaveMetrics metrics = muster_save_meter_read (meter);
  MUSTER_EXPECT_EQ (metrics.progress_saved_us, 1500);
  MUSTER_EXPECT_EQ (metrics.n_durable, 2u);
  MUSTER_EXPECT_EQ (metrics.n_failed, 1u);
  muster_save_meter_free (meter);
}

/* B001.6: a later saver doesn't move the process's mark */
MUSTER_TEST (SaveMetrics, of_the_process_are_everyones_together)
{
  MusterSaveMeter *early = muster_save_meter_new (10000);
  muster_save_meter_written (early, 20000, 20001, TRUE);
  gint64 before = muster_save_metrics_process ().progress_saved_us;
  MusterSaveMeter *late = muster_save_meter_new (50000);

  muster_save_meter_written (late, 51000, 51001, TRUE);

  MUSTER_EXPECT_EQ (muster_save_meter_read (late).progress_saved_us, 1000);
  MUSTER_EXPECT_EQ (muster_save_metrics_process ().progress_saved_us - before, 31000);
  muster_save_meter_free (early);
  muster_save_meter_free (late);
}

/* B001.2 */
MUSTER_TEST (SaveMetrics, are_labelled_as_tensorflows)
{
  MusterSaveMetrics metrics = {.save_blocked_us = {2, 1500000, 1, 2}, .n_durable = 7};
  g_autofree char *text = muster_save_metrics_text (&metrics);

  MUSTER_EXPECT_TRUE (
      strstr (text, "muster_save_blocked_seconds_sum{api=\"async_checkpoint\"} 1.5\n"));
  MUSTER_EXPECT_TRUE (
      strstr (text, "muster_save_blocked_seconds_count{api=\"async_checkpoint\"} 2\n"));
  MUSTER_EXPECT_TRUE (
      strstr (text, "muster_checkpoints_durable_total{api=\"async_checkpoint\"} 7\n"));
}
