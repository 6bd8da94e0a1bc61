// SPDX-License-Identifier: Apache-2.0
#include "ready/chief_gate.h"
#include "tests/gtest_shim.h"

static MusterAnnouncement *
chief_in (MusterChiefPhase phase, gboolean is_alive)
{
  MusterAnnouncement chief = MUSTER_ANNOUNCEMENT_INIT;
  chief.model = (char *)"digits";
  chief.task = (char *)"worker:0";
  chief.who = (char *)"host:4711";
  chief.phase = phase;
  chief.alive = is_alive;
  return muster_announcement_copy (&chief);
}

static char *missing[] = {(char *)"a", NULL};
static const MusterTurn not_ready = {
    .gate_open = TRUE, .why_not_ready = (char *)"Variables not initialized: a", .missing = missing};
static const MusterTurn ready = {.gate_open = TRUE, .is_ready = TRUE};

static void
expect_closed (MusterAnnouncement *chief, const char *why)
{
  g_auto (MusterTurn) turn = {0};
  muster_turn_announce (&turn, &ready, TRUE, chief);
  MUSTER_EXPECT_FALSE (turn.gate_open);
  MUSTER_EXPECT_FALSE (turn.is_ready);
  MUSTER_EXPECT_STREQ (turn.why_gate, why);
  MUSTER_EXPECT_STREQ (turn.why_not_ready, why);
  MUSTER_EXPECT_TRUE (turn.chief == chief);
}

MUSTER_TEST (AnnouncedTurn, says_what_the_chief_is_doing)
{
  expect_closed (chief_in (MUSTER_CHIEF_STARTING, TRUE),
                 "the chief worker:0 (host:4711) is starting to prepare it");
  expect_closed (chief_in (MUSTER_CHIEF_INITIALISING, TRUE),
                 "the chief worker:0 (host:4711) is initialising it");
  expect_closed (chief_in (MUSTER_CHIEF_LOCAL_INIT, TRUE),
                 "the chief worker:0 (host:4711) is running its own local init");
  MusterAnnouncement *restoring = chief_in (MUSTER_CHIEF_RESTORING, TRUE);
  restoring->detail = g_strdup ("/ckpt/model-500");
  expect_closed (restoring, "the chief worker:0 (host:4711) is restoring it: /ckpt/model-500");
}

MUSTER_TEST (AnnouncedTurn, says_what_the_chief_died_over)
{
  expect_closed (chief_in (MUSTER_CHIEF_INITIALISING, FALSE),
                 "the chief worker:0 (host:4711) died while initialising it: it isn't ready until "
                 "a chief has prepared it anew, or the master is reset");
}

MUSTER_TEST (AnnouncedTurn, says_that_the_job_is_over)
{
  MusterAnnouncement *chief = chief_in (MUSTER_CHIEF_OVER, FALSE);
  chief->step = 1000;
  expect_closed (chief, "the job is over: it ended at step 1000");
  expect_closed (chief_in (MUSTER_CHIEF_OVER, TRUE), "the job is over");
}

MUSTER_TEST (AnnouncedTurn, says_what_the_ops_say_where_the_chief_is_done_or_unheard_of)
{
  const MusterChiefPhase phases[] = {MUSTER_CHIEF_UNKNOWN, MUSTER_CHIEF_PREPARED,
                                     MUSTER_CHIEF_TRAINING};
  for (gsize i = 0; i <= G_N_ELEMENTS (phases); i++) {
    g_auto (MusterTurn) yes = {0};
    g_auto (MusterTurn) no = {0};
    gboolean is_known = i < G_N_ELEMENTS (phases);
    muster_turn_announce (&yes, &ready, TRUE, is_known ? chief_in (phases[i], FALSE) : NULL);
    muster_turn_announce (&no, &not_ready, TRUE, is_known ? chief_in (phases[i], TRUE) : NULL);
    MUSTER_EXPECT_TRUE (yes.gate_open && yes.is_ready && yes.keeps_announcements);
    MUSTER_EXPECT_TRUE (no.gate_open && !no.is_ready);
    MUSTER_EXPECT_STREQ (no.why_not_ready, "Variables not initialized: a");
    MUSTER_ASSERT_NOT_NULL (no.missing);
    MUSTER_EXPECT_STREQ (no.missing[0], "a");
  }
}

MUSTER_TEST (AnnouncedTurn, is_news_only_where_something_else_is_said)
{
  g_auto (MusterTurn) one = {0};
  g_auto (MusterTurn) other = {0};
  muster_turn_announce (&one, &ready, TRUE, chief_in (MUSTER_CHIEF_TRAINING, TRUE));
  muster_turn_announce (&other, &ready, TRUE, chief_in (MUSTER_CHIEF_TRAINING, TRUE));
  other.chief->step = 7;
  other.chief->durable_step = 5;
  muster_turn_grow_older (&other, MUSTER_SECOND);
  MUSTER_EXPECT_FALSE (muster_turn_is_news (&one, &other));

  other.chief->alive = FALSE;
  MUSTER_EXPECT_TRUE (muster_turn_is_news (&one, &other));
  other.chief->alive = TRUE;
  other.chief->epoch++;
  MUSTER_EXPECT_TRUE (muster_turn_is_news (&one, &other));
  other.chief->epoch--;
  other.is_ready = FALSE;
  MUSTER_EXPECT_TRUE (muster_turn_is_news (&one, &other));
  other.is_ready = TRUE;
  other.graph_difference = g_strdup ("node 'x' is only in the chief's");
  MUSTER_EXPECT_TRUE (muster_turn_is_news (&one, &other));
}

MUSTER_TEST (AnnouncedTurn, grows_older)
{
  g_auto (MusterTurn) turn = {0};
  muster_turn_announce (&turn, &ready, TRUE, chief_in (MUSTER_CHIEF_PREPARED, FALSE));
  turn.chief->durable_step = 5;

  muster_turn_grow_older (&turn, MUSTER_SECOND);

  MUSTER_EXPECT_EQ (turn.chief->phase_age_us, MUSTER_SECOND);
  MUSTER_EXPECT_EQ (turn.chief->durable_age_us, MUSTER_SECOND);
  MUSTER_EXPECT_EQ (turn.chief->lost_age_us, MUSTER_SECOND);
}
