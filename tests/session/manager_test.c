// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

/* B002.2 */
MUSTER_TEST (SessionManager, refuses_a_gate_without_a_local_init_op)
{
  g_auto (MusterJob) job = muster_job_new ();
  g_autoptr (MusterSessionManager) manager = muster_job_manager (&job, NULL, NULL, "gate:0");

  MUSTER_EXPECT_NULL (manager);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "If you pass a ready_for_local_init_op you must "
                                                  "also pass a local_init_op"));
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "[gate:0]"));
}

/* B002.3 */
MUSTER_TEST (SessionManager, accepts_a_local_init_op_without_a_gate)
{
  g_auto (MusterJob) job = muster_job_new ();
  g_autoptr (MusterSessionManager) manager = muster_job_manager (&job, "local_init", NULL, NULL);

  MUSTER_EXPECT_TRUE (manager != NULL);
}

/* B002.48 [diff] 3 */
MUSTER_TEST (SessionManager, refuses_a_negative_recovery_wait)
{
  MusterSessionManagerOptions options = {.recovery_wait_us = -1};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSessionManager) manager = muster_session_manager_new (NULL, &options, &error);

  MUSTER_EXPECT_NULL (manager);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* B002.6 */
MUSTER_TEST (SessionManager, touches_nothing_when_it_is_made)
{
  g_auto (MusterJob) job = muster_job_new ();

  MUSTER_EXPECT_TRUE (muster_job_diary_is (&job, ""));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 0);
}
