// SPDX-License-Identifier: Apache-2.0
#include "status/status.h"

#include "base/clock.h"
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
