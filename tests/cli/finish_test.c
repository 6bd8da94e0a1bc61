// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/finish.h"
#include "tests/server/served.h"

/* Its step may not have been announced yet. */
MUSTER_TEST (Finish, ends_a_job_at_the_step_that_was_saved)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, NULL);
  g_autoptr (MusterLease) lease = served_claim (chief, NULL);
  MUSTER_ASSERT_TRUE (lease != NULL);
  MusterAnnouncement training = MUSTER_ANNOUNCEMENT_INIT;
  training.phase = MUSTER_CHIEF_TRAINING;
  training.step = 5;
  training.durable_step = 9;
  training.durable = (char *)"model.ckpt-9";
  MUSTER_EXPECT_TRUE (muster_lease_announce (lease, &training, test_deadline (), NULL, &error));
  g_clear_object (&lease);

  MusterCliOptions options = {.model = (char *)"digits", .task = (char *)"chief:0"};
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_EXPECT_TRUE (muster_cli_end_job (session, &options, -1, test_deadline (), &error));
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterArena) arena = muster_arena_new ();
  Muster__StatusResponse *status = served_status (&f, arena);
  MUSTER_ASSERT_TRUE (status != NULL && status->n_models == 1);
  MUSTER_EXPECT_EQ (status->models[0]->phase, MUSTER__PHASE__OVER);
  MUSTER_EXPECT_EQ (status->models[0]->step, (gint64)9);
}
