// SPDX-License-Identifier: Apache-2.0
#include "ready/chief_gate_private.h"
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
static const MusterReadiness not_ready = {
    .gate_open = TRUE, .why_not_ready = (char *)"Variables not initialized: a", .missing = missing};
static const MusterReadiness ready = {.gate_open = TRUE, .is_ready = TRUE};

static void
expect_closed (MusterAnnouncement *chief, const char *why)
{
  g_auto (MusterReadiness) readiness = {0};
  muster_readiness_apply_chief (&readiness, &ready, TRUE, chief);
  MUSTER_EXPECT_FALSE (readiness.gate_open);
  MUSTER_EXPECT_FALSE (readiness.is_ready);
  MUSTER_EXPECT_STREQ (readiness.why_gate, why);
  MUSTER_EXPECT_STREQ (readiness.why_not_ready, why);
  MUSTER_EXPECT_TRUE (readiness.chief == chief);
}

MUSTER_TEST (ChiefGate, says_what_the_chief_is_doing)
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

MUSTER_TEST (ChiefGate, says_what_the_chief_died_over)
{
  expect_closed (
      chief_in (MUSTER_CHIEF_INITIALISING, FALSE),
      "the chief worker:0 (host:4711) was lost while initialising it; the model isn't ready "
      "until a chief prepares it again or the master is reset");
}

MUSTER_TEST (ChiefGate, says_that_the_job_is_over)
{
  MusterAnnouncement *chief = chief_in (MUSTER_CHIEF_OVER, FALSE);
  chief->step = 1000;
  expect_closed (chief, "the job is over: it ended at step 1000");
  expect_closed (chief_in (MUSTER_CHIEF_OVER, TRUE), "the job is over");
}

MUSTER_TEST (ChiefGate, says_what_the_ops_say_where_the_chief_is_done_or_unheard_of)
{
  const MusterChiefPhase phases[] = {MUSTER_CHIEF_UNKNOWN, MUSTER_CHIEF_PREPARED,
                                     MUSTER_CHIEF_TRAINING};
  for (gsize i = 0; i <= G_N_ELEMENTS (phases); i++) {
    g_auto (MusterReadiness) yes = {0};
    g_auto (MusterReadiness) no = {0};
    gboolean is_known = i < G_N_ELEMENTS (phases);
    muster_readiness_apply_chief (&yes, &ready, TRUE,
                                  is_known ? chief_in (phases[i], FALSE) : NULL);
    muster_readiness_apply_chief (&no, &not_ready, TRUE,
                                  is_known ? chief_in (phases[i], TRUE) : NULL);
    MUSTER_EXPECT_TRUE (yes.gate_open && yes.is_ready && yes.keeps_announcements);
    MUSTER_EXPECT_TRUE (no.gate_open && !no.is_ready);
    MUSTER_EXPECT_STREQ (no.why_not_ready, "Variables not initialized: a");
    MUSTER_ASSERT_NOT_NULL (no.missing);
    MUSTER_EXPECT_STREQ (no.missing[0], "a");
  }
}

MUSTER_TEST (ChiefGate, is_news_only_where_something_else_is_said)
{
  g_auto (MusterReadiness) one = {0};
  g_auto (MusterReadiness) other = {0};
  muster_readiness_apply_chief (&one, &ready, TRUE, chief_in (MUSTER_CHIEF_TRAINING, TRUE));
  muster_readiness_apply_chief (&other, &ready, TRUE, chief_in (MUSTER_CHIEF_TRAINING, TRUE));
  other.chief->step = 7;
  other.chief->durable_step = 5;
  muster_readiness_add_age (&other, MUSTER_SECOND);
  MUSTER_EXPECT_FALSE (muster_readiness_changed (&one, &other));

  other.chief->alive = FALSE;
  MUSTER_EXPECT_TRUE (muster_readiness_changed (&one, &other));
  other.chief->alive = TRUE;
  other.chief->epoch++;
  MUSTER_EXPECT_TRUE (muster_readiness_changed (&one, &other));
  other.chief->epoch--;
  other.is_ready = FALSE;
  MUSTER_EXPECT_TRUE (muster_readiness_changed (&one, &other));
  other.is_ready = TRUE;
  other.graph_difference = g_strdup ("node 'x' is only in the chief's");
  MUSTER_EXPECT_TRUE (muster_readiness_changed (&one, &other));
}

MUSTER_TEST (ChiefGate, grows_older)
{
  g_auto (MusterReadiness) readiness = {0};
  muster_readiness_apply_chief (&readiness, &ready, TRUE, chief_in (MUSTER_CHIEF_PREPARED, FALSE));
  readiness.chief->durable_step = 5;

  muster_readiness_add_age (&readiness, MUSTER_SECOND);

  MUSTER_EXPECT_EQ (readiness.chief->phase_age_us, MUSTER_SECOND);
  MUSTER_EXPECT_EQ (readiness.chief->durable_age_us, MUSTER_SECOND);
  MUSTER_EXPECT_EQ (readiness.chief->lost_age_us, MUSTER_SECOND);
}

MUSTER_TEST (ChiefGate, is_kept_with_the_next_version_where_it_is_a_change)
{
  g_auto (MusterReadiness) kept = {0};
  g_auto (MusterReadiness) now = {0};
  muster_readiness_apply_chief (&now, &ready, TRUE, chief_in (MUSTER_CHIEF_PREPARED, TRUE));

  muster_readiness_keep (&kept, &now, TRUE);
  MUSTER_EXPECT_EQ (kept.version, (guint64)1);
  MUSTER_EXPECT_TRUE (kept.is_ready);
  MUSTER_EXPECT_NULL (now.chief);

  muster_readiness_apply_chief (&now, &ready, TRUE, chief_in (MUSTER_CHIEF_TRAINING, TRUE));
  now.chief->step = 7;
  muster_readiness_keep (&kept, &now, FALSE);
  MUSTER_EXPECT_EQ (kept.version, (guint64)1);
  MUSTER_EXPECT_EQ (kept.chief->step, (gint64)7);
}
