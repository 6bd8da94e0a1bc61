// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "cli/output/rows.h"
#include "cli/output/sanitise.h"
#include "tests/gtest_shim.h"

#include <locale.h>
#include <string.h>

#define NOW (100 * MUSTER_SECOND)

__attribute__ ((constructor)) static void
speak_utf8 (void)
{
  setlocale (LC_ALL, "C.UTF-8");
}

static MusterReason *
add (GPtrArray *reasons, const char *component, const char *state, const char *text,
     gboolean is_well, gint64 age_us)
{
  MusterReason *it = g_new0 (MusterReason, 1);
  it->component = component;
  it->state = state;
  it->text = g_strdup (text);
  it->is_well = is_well;
  it->since_us = NOW - age_us;
  g_ptr_array_add (reasons, it);
  return it;
}

/* A chief restores; most variables are missing. */
static GPtrArray *
restoring (void)
{
  GPtrArray *reasons = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_reason_free);
  add (reasons, "server", "up", "up", TRUE, 90 * MUSTER_SECOND);
  add (reasons, "job", "running", "running", TRUE, 0);
  add (reasons, "chief", "restoring", "restoring model.ckpt-1200 (worker:0)", FALSE,
       12 * MUSTER_SECOND);
  MusterReason *variables =
      add (reasons, "variables", "missing", "missing 92: ps:0 60 (a, b, …), ps:1 32 (c)", FALSE, 0);
  variables->n_missing = 92;
  variables->n_total = 104;
  return reasons;
}

MUSTER_TEST (Rows, draw_a_line_for_each_component_that_has_something_to_say)
{
  g_autoptr (GPtrArray) reasons = restoring ();
  g_autoptr (GPtrArray) rows = muster_rows_new ("", reasons);
  g_autofree char *block =
      muster_rows_draw ("waiting for digits, 9m46s left", rows, NOW, 79, 20, FALSE);

  MUSTER_EXPECT_STREQ (block,
                       "waiting for digits, 9m46s left\n"
                       "  server     up\n"
                       "  chief      restoring  model.ckpt-1200 (worker:0), for 12 s\n"
                       "  variables  12 of 104  missing 92: ps:0 60 (a, b, …), ps:1 32 (c)\n");
}

MUSTER_TEST (Rows, go_on_below_themselves_where_the_terminal_ends)
{
  g_autoptr (GPtrArray) reasons = restoring ();
  g_autoptr (GPtrArray) rows = muster_rows_new ("", reasons);
  g_autofree char *block = muster_rows_draw ("head", rows, NOW, 54, 20, FALSE);
  g_autofree char *low = muster_rows_draw ("head", rows, NOW, 54, 3, FALSE);

  MUSTER_EXPECT_STREQ (block, "head\n"
                              "  server     up\n"
                              "  chief      restoring  model.ckpt-1200 (worker:0),\n"
                              "                        for 12 s\n"
                              "  variables  12 of 104  missing 92: ps:0 60 (a, b, …),\n"
                              "                        ps:1 32 (c)\n");
  MUSTER_EXPECT_STREQ (low, "head\n"
                            "  server     up\n"
                            "  chief      restoring  model.ckpt-1200 (worker:0),\n");
}

MUSTER_TEST (Rows, are_never_wider_than_the_terminal_nor_more_than_its_lines)
{
  g_autoptr (GPtrArray) reasons = restoring ();
  g_autoptr (GPtrArray) rows = muster_rows_new ("", reasons);
  g_autofree char *narrow = muster_rows_draw ("waiting for digits", rows, NOW, 20, 20, FALSE);
  g_autofree char *low = muster_rows_draw ("waiting for digits", rows, NOW, 79, 2, FALSE);

  g_auto (GStrv) lines = g_strsplit (narrow, "\n", -1);
  MUSTER_EXPECT_EQ (g_strv_length (lines), 5U); /* the last is empty */
  for (char **line = lines; *line != NULL; line++)
    MUSTER_EXPECT_LE (g_utf8_strlen (*line, -1), 20);
  MUSTER_EXPECT_STREQ (low, "waiting for digits\n  server     up\n");
}

MUSTER_TEST (Rows, count_the_columns_of_wide_characters)
{
  g_autoptr (GPtrArray) rows = muster_rows_new ("模型模型", NULL);
  g_autofree char *block = muster_rows_draw ("head", rows, NOW, 7, 20, FALSE);

  MUSTER_EXPECT_STREQ (block, "head\n  模型\n"); /* 2 + 2 * 2; a third would end in column 8 */
}

MUSTER_TEST (Rows, colour_only_the_component_and_only_if_asked)
{
  g_autoptr (GPtrArray) reasons = restoring ();
  g_autoptr (GPtrArray) rows = muster_rows_new ("", reasons);
  g_autofree char *coloured = muster_rows_draw ("head", rows, NOW, 79, 20, TRUE);
  g_autofree char *plain = muster_rows_draw ("head", rows, NOW, 79, 20, FALSE);

  MUSTER_EXPECT_TRUE (strstr (coloured, "  \033[32mserver\033[0m     up") != NULL);
  MUSTER_EXPECT_TRUE (strstr (coloured, "  \033[33mchief\033[0m      restoring") != NULL);
  MUSTER_EXPECT_TRUE (strchr (plain, '\033') == NULL);
}

MUSTER_TEST (Rows, count_whole_seconds)
{
  g_autofree char *none = muster_rows_seconds (999 * MUSTER_MILLISECOND);
  g_autofree char *some = muster_rows_seconds (12900 * MUSTER_MILLISECOND);
  g_autofree char *many = muster_rows_seconds (586 * MUSTER_SECOND);

  MUSTER_EXPECT_STREQ (none, "0 s");
  MUSTER_EXPECT_STREQ (some, "12 s");
  MUSTER_EXPECT_STREQ (many, "9m46s");
}

MUSTER_TEST (Rows, leave_out_what_is_unknown)
{
  g_autoptr (GPtrArray) reasons =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_reason_free);
  add (reasons, "server", "refused", "nobody listens on port 1", FALSE, 3 * MUSTER_SECOND);
  add (reasons, "chief", "unknown", "not known yet", TRUE, 0);
  add (reasons, "variables", "unknown", "not known yet", FALSE, 0);
  g_autoptr (GPtrArray) rows = muster_rows_new ("", reasons);

  g_autofree char *block = muster_rows_draw ("head", rows, NOW, 79, 20, FALSE);

  MUSTER_EXPECT_STREQ (block, "head\n  server     nobody listens on port 1, for 3 s\n");
}

MUSTER_TEST (Rows, are_summed_up_by_what_everything_waits_for)
{
  g_autoptr (GPtrArray) reasons = restoring ();
  g_autoptr (GPtrArray) nothing = g_ptr_array_new ();
  g_autofree char *chief = muster_rows_summary ("message", reasons);
  MusterReason *first = g_ptr_array_index (reasons, 2);
  first->is_well = TRUE;
  g_autofree char *variables = muster_rows_summary ("message", reasons);
  g_autofree char *message = muster_rows_summary ("message", nothing);

  MUSTER_EXPECT_STREQ (chief, "chief restoring model.ckpt-1200 (worker:0); variables missing: 92");
  MUSTER_EXPECT_STREQ (variables, "variables missing 92: ps:0 60 (a, b, …), ps:1 32 (c)");
  MUSTER_EXPECT_STREQ (message, "message");
}

MUSTER_TEST (Rows, let_no_text_play_with_the_terminal)
{
  g_autoptr (GPtrArray) reasons = restoring ();
  MusterReason *chief = g_ptr_array_index (reasons, 2);
  g_free (chief->text);
  chief->text = g_strdup ("restoring \033[2Jevil\r\xff\u202e");
  g_autoptr (GPtrArray) rows = muster_rows_new ("", reasons);

  g_autofree char *block = muster_rows_draw ("head", rows, NOW, 79, 20, FALSE);
  g_autofree char *summary = muster_rows_summary ("", reasons);

  MUSTER_EXPECT_TRUE (strstr (block, "?[2Jevil?") != NULL);
  MUSTER_EXPECT_TRUE (strchr (block, '\033') == NULL && strchr (block, '\r') == NULL);
  MUSTER_EXPECT_TRUE (strchr (summary, '\033') == NULL && g_utf8_validate (summary, -1, NULL));
  MUSTER_EXPECT_TRUE (strstr (summary, "\u202e") == NULL);
}
