// SPDX-License-Identifier: Apache-2.0
#include "base/log_private.h"

#include "base/clock.h"
#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"

MUSTER_TEST (Log, is_silent_below_warning_unless_asked)
{
  MUSTER_EXPECT_TRUE (muster_log_enabled (G_LOG_LEVEL_CRITICAL));
  MUSTER_EXPECT_TRUE (muster_log_enabled (G_LOG_LEVEL_WARNING));
  MUSTER_EXPECT_FALSE (muster_log_enabled (G_LOG_LEVEL_MESSAGE));
  MUSTER_EXPECT_FALSE (muster_log_enabled (G_LOG_LEVEL_INFO));
  MUSTER_EXPECT_FALSE (muster_log_enabled (G_LOG_LEVEL_DEBUG));
}

MUSTER_TEST (Log, does_not_format_what_is_off)
{
  guint n_made = 0;
  heard_begin (G_LOG_LEVEL_INFO);
  muster_log (G_LOG_LEVEL_DEBUG, "off", "MESSAGE", "%u", ++n_made);
  muster_log (G_LOG_LEVEL_INFO, "on", "MESSAGE", "%u", ++n_made);
  MUSTER_EXPECT_EQ (n_made, 1U);
  MUSTER_EXPECT_EQ (heard_count ("off", NULL), 0U);
  MUSTER_EXPECT_EQ (heard_count ("on", "1"), 1U);
  heard_end ();
}

MUSTER_TEST (Log, has_the_event_and_its_fields)
{
  heard_begin (G_LOG_LEVEL_INFO);
  muster_log (G_LOG_LEVEL_INFO, "claim", "MUSTER_MODEL", "a %s", "MUSTER_EPOCH",
              MUSTER_LOG_INT (-4), "MUSTER_SECONDS", MUSTER_LOG_SECONDS (1500000), "MUSTER_TASK",
              "", "MUSTER_CLIENT", NULL, "MESSAGE", "'%s' has a chief", "digits");
  MUSTER_EXPECT_EQ (heard_count ("claim", "'digits' has a chief"), 1U);
  g_autofree char *model = heard_field ("claim", "MUSTER_MODEL");
  g_autofree char *epoch = heard_field ("claim", "MUSTER_EPOCH");
  g_autofree char *seconds = heard_field ("claim", "MUSTER_SECONDS");
  MUSTER_EXPECT_STREQ (model, "a %s");
  MUSTER_EXPECT_STREQ (epoch, "-4");
  MUSTER_EXPECT_STREQ (seconds, "1.500000");
  MUSTER_EXPECT_NULL (heard_field ("claim", "MUSTER_TASK"));
  MUSTER_EXPECT_NULL (heard_field ("claim", "MUSTER_CLIENT"));
  heard_end ();
}

/* --- a bound on messages --- */

static guint
allowed (MusterLogLimit *limit, gint64 now_us, guint n_tries, char *left_out)
{
  char text[MUSTER_LOG_COUNT_SIZE];
  guint n = 0;
  for (guint i = 0; i < n_tries; i++)
    if (muster_log_limit_allow (limit, now_us, text)) {
      n++;
      g_strlcpy (left_out, text, MUSTER_LOG_COUNT_SIZE);
    }
  return n;
}

MUSTER_TEST (LogLimit, lets_few_messages_through_and_counts_the_others)
{
  MusterLogLimit limit = {0};
  char left_out[MUSTER_LOG_COUNT_SIZE] = "?";
  MUSTER_EXPECT_EQ (allowed (&limit, 100, 1000, left_out), 5U);
  MUSTER_EXPECT_STREQ (left_out, "");
  MUSTER_EXPECT_EQ (allowed (&limit, 100 + 10 * MUSTER_SECOND - 1, 5, left_out), 0U);
  MUSTER_EXPECT_EQ (allowed (&limit, 100 + 10 * MUSTER_SECOND, 1, left_out), 1U);
  MUSTER_EXPECT_STREQ (left_out, "1000");
  MUSTER_EXPECT_EQ (allowed (&limit, 101 + 10 * MUSTER_SECOND, 1, left_out), 1U);
  MUSTER_EXPECT_STREQ (left_out, "");
}
