// SPDX-License-Identifier: Apache-2.0
#include "cli/output/table.h"

#include "base/clock.h"
#include "cli/output/figures.h"
#include "cli/output/sanitise.h"
#include "tests/gtest_shim.h"

#include <locale.h>
#include <string.h>

/* Two checkpoints, one with a long state. */
static MusterTable *
checkpoints (void)
{
  MusterTable *table = muster_table_new (4);
  muster_table_add (table, "prefix", "when", "size", "state", NULL);
  muster_table_add (table, "run/model.ckpt-99999", "40 s ago", "3.4 GB", "latest, good", NULL);
  muster_table_add (table, "run/model.ckpt-100000", "12m31s ago", "3.4 GB",
                    "damaged: The data file 'model.ckpt-100000.data' is 1.5 GB short", NULL);
  return table;
}

static guint
widest (const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  guint columns = 0;
  for (char **line = lines; *line != NULL; line++)
    columns = MAX (columns, muster_cli_columns (*line));
  return columns;
}

MUSTER_TEST (Table, has_columns_as_wide_as_what_is_in_them)
{
  g_autoptr (MusterTable) table = checkpoints ();
  g_autofree char *text = muster_table_draw (table, 0);

  MUSTER_EXPECT_STREQ (text, "prefix                 when        size    state\n"
                             "run/model.ckpt-99999   40 s ago    3.4 GB  latest, good\n"
                             "run/model.ckpt-100000  12m31s ago  3.4 GB  damaged: The data file "
                             "'model.ckpt-100000.data' is 1.5 GB short\n");
}

MUSTER_TEST (Table, goes_on_below_its_last_column_where_the_terminal_is_narrower)
{
  g_autoptr (MusterTable) table = checkpoints ();
  g_autofree char *text = muster_table_draw (table, 80);

  MUSTER_EXPECT_STREQ (
      text, "prefix                 when        size    state\n"
            "run/model.ckpt-99999   40 s ago    3.4 GB  latest, good\n"
            "run/model.ckpt-100000  12m31s ago  3.4 GB  damaged: The data file\n"
            "                                           'model.ckpt-100000.data' is 1.5 GB\n"
            "                                           short\n");
}

MUSTER_TEST (Table, gives_the_first_cell_a_line_of_its_own_where_that_leaves_too_little)
{
  g_autoptr (MusterTable) table = checkpoints ();
  g_autofree char *text = muster_table_draw (table, 46);

  MUSTER_EXPECT_STREQ (text, "prefix\n"
                             "  when        size    state\n"
                             "run/model.ckpt-99999\n"
                             "  40 s ago    3.4 GB  latest, good\n"
                             "run/model.ckpt-100000\n"
                             "  12m31s ago  3.4 GB  damaged: The data file\n"
                             "                      'model.ckpt-100000.data'\n"
                             "                      is 1.5 GB short\n");
}

MUSTER_TEST (Table, is_no_wider_than_any_terminal_and_keeps_the_first_cells_whole)
{
  g_autoptr (MusterTable) table = checkpoints ();
  for (guint columns = 25; columns < 130; columns++) {
    g_autofree char *text = muster_table_draw (table, columns);
    MUSTER_EXPECT_LE (widest (text), columns);
    MUSTER_EXPECT_TRUE (strstr (text, "run/model.ckpt-99999") != NULL);
    MUSTER_EXPECT_TRUE (strstr (text, "run/model.ckpt-100000") != NULL);
    MUSTER_EXPECT_TRUE (strstr (text, " \n") == NULL);
  }
}

MUSTER_TEST (Table, counts_columns_and_lets_no_cell_play_with_the_terminal)
{
  setlocale (LC_ALL, "C.UTF-8");
  g_autoptr (MusterTable) table = muster_table_new (2);
  muster_table_add (table, "模型", "\033[2J\t\n", NULL);
  muster_table_add (table, "model", "x", NULL);
  muster_table_colour (table, "\033[32m");

  g_autofree char *text = muster_table_draw (table, 0);

  MUSTER_EXPECT_STREQ (text, "模型   ?[2J  \n\033[32mm\033[0model  x\n");
}

MUSTER_TEST (Plain, is_ascii_where_the_locale_is_not_utf8)
{
  setlocale (LC_ALL, "C");
  g_autofree char *ascii = muster_cli_sanitise ("5 → 6, 14 µs, 2× …\té");
  g_autoptr (GString) bar = g_string_new (NULL);
  muster_cli_append_bar (bar, 0.5, 4, FALSE);
  MUSTER_EXPECT_STREQ (ascii, "5 -> 6, 14 us, 2x ... e");
  MUSTER_EXPECT_STREQ (bar->str, "##..");

  setlocale (LC_ALL, "C.UTF-8");
  g_autofree char *utf8 = muster_cli_sanitise ("5 → 6, 14 µs, 2× …\té");
  MUSTER_EXPECT_STREQ (utf8, "5 → 6, 14 µs, 2× … é");
}

MUSTER_TEST (Plain, fills_paragraphs_and_keeps_what_is_indented)
{
  const char *text = "one two three\nfour\n\n  kept  as it is\nfive six\n";
  g_autofree char *narrow = muster_cli_wrap (text, 9);
  g_autofree char *as_it_is = muster_cli_wrap (text, 0);

  MUSTER_EXPECT_STREQ (narrow, "one two\nthree\nfour\n\n  kept  as it is\nfive six\n");
  MUSTER_EXPECT_STREQ (as_it_is, text);
}

MUSTER_TEST (Figures, are_written_in_one_way)
{
  g_autofree char *fast = muster_figure_steps_rate (15774.4);
  g_autofree char *slow = muster_figure_steps_rate (0.25);
  g_autofree char *none = muster_figure_steps_rate (0);
  g_autofree char *large =
      muster_figure_transfer (4200000000, 2100000000, 1400 * MUSTER_MILLISECOND);
  g_autofree char *quick = muster_figure_transfer (132000, 132000, 9 * MUSTER_MILLISECOND);

  MUSTER_EXPECT_STREQ (fast, "15,774 steps/s");
  MUSTER_EXPECT_STREQ (slow, "0.25 steps/s");
  MUSTER_EXPECT_STREQ (none, "0 steps/s");
  MUSTER_EXPECT_STREQ (large, "4.2 GB in 1.4 s (1.5 GB/s)");
  MUSTER_EXPECT_STREQ (quick, "132 KB in 9 ms");
}

MUSTER_TEST (Table, keeps_a_number_and_its_unit_on_one_line)
{
  g_autoptr (MusterTable) table = muster_table_new (1);
  muster_table_add (table, "a task waits for 1.2 s and 30 more tasks", NULL);
  g_autofree char *text = muster_table_draw (table, 23);

  MUSTER_EXPECT_STREQ (text, "\n  a task waits for\n  1.2 s and 30 more\n  tasks\n");
}
