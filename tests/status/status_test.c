// SPDX-License-Identifier: Apache-2.0
#include "status/status.h"

#include "base/clock.h"
#include "master/announcement.h"
#include "tests/gtest_shim.h"

static Muster__Member
member_of (const char *why)
{
  Muster__Member member = MUSTER__MEMBER__INIT;
  member.task = (char *)"task:3";
  member.who = (char *)"host:7";
  member.slot = 2;
  member.age_us = 50 * MUSTER_SECOND;
  member.batches = 120;
  member.batches_per_second = 4;
  member.why = (char *)why;
  return member;
}

MUSTER_TEST (StatusMember, has_its_role_and_how_long_it_is_a_member)
{
  const Muster__Member member = member_of ("");
  g_autofree char *text = muster_status_member (&member);

  MUSTER_EXPECT_STREQ (text,
                       "task:3 (host:7)  slot 2, worker, joined 50.0 s ago, 120 batches, 4.0/s");
}

MUSTER_TEST (StatusMember, that_left_has_how_long_it_was_a_member)
{
  Muster__Member member = member_of ("left");
  member.left_age_us = 30 * MUSTER_SECOND;
  g_autofree char *text = muster_status_member (&member);

  MUSTER_EXPECT_STREQ (text,
                       "task:3 (host:7)  slot 2, 30.0 s ago: left, after 50.0 s and 120 batches");
}

MUSTER_TEST (StatusChief, that_is_lost_has_its_last_phase_unless_a_reset_cleared_it)
{
  Muster__Announcement model = MUSTER__ANNOUNCEMENT__INIT;
  model.lost_age_us = 30 * MUSTER_SECOND;
  model.phase = MUSTER__PHASE__TRAINING;
  g_autofree char *training = muster_status_chief (&model);
  model.phase = MUSTER__PHASE__UNKNOWN;
  g_autofree char *cleared = muster_status_chief (&model);

  MUSTER_EXPECT_STREQ (training, "lost 30.0 s ago, while training");
  MUSTER_EXPECT_STREQ (cleared, "lost 30.0 s ago");
}

MUSTER_TEST (StatusChief, that_holds_for_a_drain_has_how_long_yet)
{
  Muster__Announcement model = MUSTER__ANNOUNCEMENT__INIT;
  model.alive = TRUE;
  model.phase = MUSTER__PHASE__TRAINING;
  model.drain = MUSTER_DRAIN_SAVED;
  model.drain_left_us = 20 * MUSTER_SECOND;
  g_autofree char *holding = muster_status_chief (&model);
  model.drain_left_us = 0;
  g_autofree char *ending = muster_status_chief (&model);

  MUSTER_EXPECT_STREQ (holding, "training, holding for a drain for another 20.0 s");
  MUSTER_EXPECT_STREQ (ending, "training, holding for a drain");
}

/* The state of a model whose chief trains and whose job waits for tasks, or doesn't. */
static MusterStatusState
state_of (const Muster__Announcement *model, gboolean waits)
{
  Muster__Members job = MUSTER__MEMBERS__INIT, *jobs[] = {&job};
  Muster__StatusResponse status = MUSTER__STATUS_RESPONSE__INIT;
  job.model = model->model;
  job.waiting = waits;
  status.jobs = jobs;
  status.n_jobs = 1;
  return muster_status_state (&status, model);
}

static Muster__Announcement
trained (gboolean alive)
{
  Muster__Announcement model = MUSTER__ANNOUNCEMENT__INIT;
  model.model = (char *)"digits";
  model.phase = MUSTER__PHASE__TRAINING;
  model.alive = alive;
  model.prepared = model.ready = TRUE;
  return model;
}

MUSTER_TEST (StatusState, of_a_job_that_waits_for_tasks_is_not_good)
{
  const Muster__Announcement model = trained (TRUE);
  MUSTER_EXPECT_STREQ (state_of (&model, FALSE).word, "ready");
  MUSTER_EXPECT_EQ (state_of (&model, FALSE).kind, MUSTER_STATUS_GOOD);
  MUSTER_EXPECT_STREQ (state_of (&model, TRUE).word, "waiting for tasks");
  MUSTER_EXPECT_EQ (state_of (&model, TRUE).kind, MUSTER_STATUS_WARNING);
}

MUSTER_TEST (StatusState, of_a_chief_that_reached_its_last_step_is_no_loss)
{
  Muster__Announcement model = trained (FALSE);
  model.ended = (char *)"finished";
  model.lost_age_us = 3 * MUSTER_SECOND;
  g_autofree char *chief = muster_status_chief (&model);

  MUSTER_EXPECT_EQ (state_of (&model, FALSE).kind, MUSTER_STATUS_IDLE);
  MUSTER_EXPECT_STREQ (state_of (&model, FALSE).word, "finished");
  MUSTER_EXPECT_STREQ (chief, "reached its last step 3.0 s ago");
}

MUSTER_TEST (StatusState, tells_a_crash_a_failure_and_a_preemption_apart)
{
  Muster__Announcement lost = trained (FALSE), failed = lost, preempted = lost;
  failed.failed = TRUE;
  failed.ended = (char *)"the loss is NaN at step 7";
  preempted.ended = (char *)"preempted";
  failed.lost_age_us = preempted.lost_age_us = 3 * MUSTER_SECOND;
  g_autofree char *why_failed = muster_status_chief (&failed);
  g_autofree char *why_preempted = muster_status_chief (&preempted);

  MUSTER_EXPECT_EQ (state_of (&lost, FALSE).kind, MUSTER_STATUS_BAD);
  MUSTER_EXPECT_STREQ (state_of (&lost, FALSE).word, "chief lost");
  MUSTER_EXPECT_STREQ (state_of (&failed, FALSE).word, "failed");
  MUSTER_EXPECT_EQ (state_of (&preempted, FALSE).kind, MUSTER_STATUS_WARNING);
  MUSTER_EXPECT_STREQ (state_of (&preempted, FALSE).word, "preempted");
  MUSTER_EXPECT_STREQ (why_failed, "failed 3.0 s ago, while training: the loss is NaN at step 7");
  MUSTER_EXPECT_STREQ (why_preempted, "preempted 3.0 s ago, while training");
}

MUSTER_TEST (StatusChief, that_lost_its_session_has_why)
{
  Muster__Announcement model = trained (TRUE);
  model.phase_age_us = 3 * MUSTER_SECOND;
  model.detail = (char *)"ps:0 doesn't answer";
  g_autofree char *chief = muster_status_chief (&model);

  MUSTER_EXPECT_STREQ (chief, "no session for 3.0 s: ps:0 doesn't answer");
}

MUSTER_TEST (StatusStall, is_named_once_it_is_long)
{
  Muster__StatusResponse status = MUSTER__STATUS_RESPONSE__INIT;
  status.stalled_us = 9 * MUSTER_SECOND;
  g_autofree char *brief = muster_status_stall (&status, MUSTER_STATUS_STALL_US);
  Muster__Limit steps = MUSTER__LIMIT__INIT, *limits[] = {&steps};
  steps.name = (char *)"steps";
  steps.used = 1;
  status.limits = limits;
  status.n_limits = 1;
  status.stalled_us = 45 * MUSTER_SECOND;
  g_autofree char *lengthy = muster_status_stall (&status, MUSTER_STATUS_STALL_US);

  MUSTER_EXPECT_TRUE (brief == NULL);
  MUSTER_EXPECT_STREQ (lengthy, "no step has ended for 45.0 s, 1 running");
}

MUSTER_TEST (Status, of_a_coordinator_says_that_the_steps_are_elsewhere)
{
  Muster__StatusResponse status = MUSTER__STATUS_RESPONSE__INIT;
  Muster__Announcement model = MUSTER__ANNOUNCEMENT__INIT, *models[] = {&model};
  MUSTER_EXPECT_FALSE (muster_status_has_steps_elsewhere (&status));
  status.models = models;
  status.n_models = 1;
  MUSTER_EXPECT_FALSE (muster_status_has_steps_elsewhere (&status)); /* its chief has begun */
  model.prepared = TRUE;
  MUSTER_EXPECT_TRUE (muster_status_has_steps_elsewhere (&status));
  status.steps = 1;
  MUSTER_EXPECT_FALSE (muster_status_has_steps_elsewhere (&status));
}
