// SPDX-License-Identifier: Apache-2.0
#include "base/unpack_private.h"
#include "master/announcement.h"
#include "master/goodput_message_private.h"
#include "master/save_status_message_private.h"
#include "tests/gtest_shim.h"

static MusterSaveStatus
status_of_a_save (void)
{
  return (MusterSaveStatus){
      .step = {30, 20, 10, -1},
      .age_us = {1, 2, 3, 0},
      .last_us = {4, 5, 6, 7},
      .total_us = {40, 50, 60, 70},
      .last_bytes = 1000,
      .n_durable = 10,
      .n_failed = 1,
      .n_skipped = 2,
      .n_replaced = 3,
      .saving = (char *)"run/model.ckpt-20",
      .saving_state = MUSTER_SAVE_STAGED,
      .saving_step = 20,
      .saving_age_us = 8,
  };
}

static MusterSaveStatus *
sent (const MusterSaveStatus *status)
{
  Muster__SaveStatus message;
  muster_save_status_fill (&message, status);
  g_autoptr (GBytes) packed = muster_pack (&message.base);
  g_autoptr (MusterArena) arena = muster_arena_new ();
  return muster_save_status_read (muster_unpack (&muster__save_status__descriptor,
                                                 g_bytes_get_data (packed, NULL),
                                                 g_bytes_get_size (packed), arena, "status", NULL));
}

MUSTER_TEST (SaveStatus, is_the_same_after_a_message)
{
  const MusterSaveStatus status = status_of_a_save ();
  g_autoptr (MusterSaveStatus) received = sent (&status);
  MUSTER_ASSERT_TRUE (received != NULL);
  MUSTER_EXPECT_TRUE (muster_save_status_equal (&status, received));
  MUSTER_EXPECT_EQ (received->age_us[MUSTER_SAVE_WRITTEN], 3);
  MUSTER_EXPECT_EQ (received->saving_age_us, 8);
  MUSTER_EXPECT_STREQ (received->saving, "run/model.ckpt-20");
  MUSTER_EXPECT_NULL (muster_save_status_read (NULL));
}

/* A sender of another version, or a broken one */
MUSTER_TEST (SaveStatus, takes_numbers_as_they_can_be)
{
  gint64 odd[] = {-5, 3, G_MAXINT64, -1, 77, 78};
  g_autofree char *longest = g_strnfill (5000, 'x');
  Muster__SaveStatus message = MUSTER__SAVE_STATUS__INIT;
  message.n_step = message.n_age_us = G_N_ELEMENTS (odd);
  message.step = message.age_us = odd;
  message.saving = longest;
  message.saving_state = 99;
  message.saving_step = -7;
  message.saving_age_us = G_MAXINT64;
  message.n_durable = message.last_bytes = G_MAXUINT64;

  g_autoptr (MusterSaveStatus) status = muster_save_status_read (&message);

  MUSTER_EXPECT_EQ (status->step[0], -1);
  MUSTER_EXPECT_EQ (status->step[2], G_MAXINT64);
  MUSTER_EXPECT_EQ (status->age_us[0], 0);
  MUSTER_EXPECT_EQ (status->total_us[0], 0);
  MUSTER_EXPECT_EQ ((int)status->saving_state, (int)MUSTER_SAVE_REPLACED);
  MUSTER_EXPECT_EQ (status->saving_step, -1);
  MUSTER_EXPECT_NULL (status->saving);
  muster_save_status_add_age (status, MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (status->age_us[2] > 0);
  MUSTER_EXPECT_TRUE (status->saving_age_us < G_MAXINT64);
  MUSTER_EXPECT_TRUE ((gint64)status->n_durable > 0);
  MUSTER_EXPECT_TRUE ((gint64)status->last_bytes > 0);
}

MUSTER_TEST (SaveStatus, ages_only_what_there_is)
{
  MusterSaveStatus status = status_of_a_save ();
  muster_save_status_add_age (&status, 100);

  MUSTER_EXPECT_EQ (status.age_us[MUSTER_SAVE_REQUESTED], 101);
  MUSTER_EXPECT_EQ (status.age_us[MUSTER_SAVE_DURABLE], 0);
  MUSTER_EXPECT_EQ (status.saving_age_us, 108);
}

/* An announcement of nothing new keeps it; a later one replaces it. */
MUSTER_TEST (SaveStatus, is_kept_by_announcements)
{
  g_auto (MusterAnnouncement) kept = MUSTER_ANNOUNCEMENT_INIT;
  MusterAnnouncement later = MUSTER_ANNOUNCEMENT_INIT;
  MusterSaveStatus status = status_of_a_save ();
  later.saves = &status;
  muster_announcement_merge (&kept, &later);
  later.saves = NULL;
  muster_announcement_merge (&kept, &later);

  g_autoptr (MusterAnnouncement) copy = muster_announcement_copy (&kept);
  MUSTER_EXPECT_TRUE (muster_save_status_equal (copy->saves, &status));
  MUSTER_EXPECT_TRUE (muster_announcement_equal (copy, &kept));
  status.n_failed++;
  later.saves = &status;
  muster_announcement_merge (&kept, &later);
  MUSTER_EXPECT_EQ (kept.saves->n_failed, (guint64)2);
  MUSTER_EXPECT_FALSE (muster_announcement_equal (copy, &kept));
}

/* Steps are announced once a second, a save at once. */
MUSTER_TEST (Announcement, of_a_save_brings_its_step_where_that_was_not_announced_yet)
{
  g_auto (MusterAnnouncement) kept = MUSTER_ANNOUNCEMENT_INIT;
  MusterAnnouncement step = MUSTER_ANNOUNCEMENT_INIT, save = MUSTER_ANNOUNCEMENT_INIT;
  step.step = 180;
  save.durable_step = 200;
  muster_announcement_merge (&kept, &step);
  muster_announcement_merge (&kept, &save);
  MUSTER_EXPECT_EQ (kept.step, 200);
  muster_announcement_merge (&kept, &step); /* what its chief has seen, which then holds */
  MUSTER_EXPECT_EQ (kept.step, 200);
  step.step = 230;
  muster_announcement_merge (&kept, &step);
  save.durable_step = 210; /* it was copied to another tier meanwhile */
  muster_announcement_merge (&kept, &save);
  MUSTER_EXPECT_EQ (kept.step, 230);
  save.step = 100; /* of an older checkpoint that was restored */
  save.durable_step = 100;
  muster_announcement_merge (&kept, &save);
  MUSTER_EXPECT_EQ (kept.step, 100);
}

MUSTER_TEST (GoodputMessage, brings_the_same_and_nothing_impossible)
{
  const MusterGoodput goodput = {.began_us = 1600000000000000,
                                 .age_us = 5,
                                 .spent_us = {1, 2, 3, 4, 5, 6, 7},
                                 .n_restarts = 8,
                                 .n_failures = 7,
                                 .steps_again = 9,
                                 .step = 10,
                                 .is_least = TRUE,
                                 .end = MUSTER_RUN_FINISHED};
  gint64 odd[] = {-1, G_MAXINT64, 3, 4, 5, 6, 7, 8, 9};
  Muster__Goodput message;
  muster_goodput_fill (&message, &goodput);
  g_autofree MusterGoodput *same = muster_goodput_read (&message);
  MUSTER_EXPECT_EQ (memcmp (same, &goodput, sizeof goodput), 0);

  message.spent_us = odd;
  message.n_spent_us = G_N_ELEMENTS (odd);
  message.end = 9;
  message.step = -9;
  message.n_restarts = message.n_failures = message.steps_again = G_MAXUINT64;
  g_autofree MusterGoodput *possible = muster_goodput_read (&message);
  MUSTER_EXPECT_EQ (possible->spent_us[0], 0);
  MUSTER_EXPECT_TRUE (muster_goodput_total_us (possible) > 0);
  MUSTER_EXPECT_EQ ((int)possible->end, (int)MUSTER_RUN_FINISHED);
  MUSTER_EXPECT_EQ (possible->step, -1);
  MUSTER_EXPECT_TRUE ((gint64)(possible->n_restarts + 1) > 0);
  MUSTER_EXPECT_TRUE ((gint64)(possible->n_failures + 1) > 0);
  MUSTER_EXPECT_TRUE ((gint64)(possible->steps_again + 1) > 0);
  message.began_us = 0; /* of no job */
  MUSTER_EXPECT_NULL (muster_goodput_read (&message));
  MUSTER_EXPECT_NULL (muster_goodput_read (NULL));
}
