// SPDX-License-Identifier: Apache-2.0
#include "base/safe_text_private.h"

#include "tests/gtest_shim.h"

static void
expect_text (const char *text, const char *expected)
{
  g_autofree char *safe = muster_safe_text (text, -1, 0);
  MUSTER_EXPECT_STREQ (safe, expected);
}

MUSTER_TEST (SafeText, leaves_what_people_write)
{
  expect_text ("", "");
  expect_text ("model 'Übung' 模型 → 5 µs, e\xcc\x81", "model 'Übung' 模型 → 5 µs, e\xcc\x81");
}

MUSTER_TEST (SafeText, stays_on_its_line)
{
  expect_text ("a\nb\r\nc\td", "a b c d");
  expect_text ("a\rb\vc\fd", "a?b?c?d");
  expect_text ("a\xc2\x85"
               "b\xe2\x80\xa8"
               "c\xe2\x80\xa9"
               "d",
               "a?b?c?d"); /* U+0085, U+2028, U+2029 */
}

MUSTER_TEST (SafeText, controls_no_terminal_and_turns_no_direction)
{
  expect_text ("\033[2J\a\x7f", "?[2J??");
  expect_text ("\xc2\x9b"
               "2J",
               "?2J"); /* CSI in one character */
  expect_text ("a\xe2\x80\xae"
               "b\xe2\x81\xa6"
               "c\xf3\xa0\x81\x81",
               "a?b?c?"); /* U+202E, U+2066, a tag */
}

MUSTER_TEST (SafeText, shows_what_is_not_utf8)
{
  expect_text ("a\xff"
               "b\xed\xa0\x80",
               "a\xef\xbf\xbd"
               "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

MUSTER_TEST (SafeText, is_cut_between_characters_and_at_a_nul)
{
  g_autofree char *cut = muster_safe_text ("aé€xyz", -1, 5);
  g_autofree char *whole = muster_safe_text ("aé€", -1, 6);
  g_autofree char *part = muster_safe_text ("ab\0cd", 5, 0);
  g_autofree char *broken = muster_safe_text ("\x80\x80\x80\x80", 4, 2);

  MUSTER_EXPECT_STREQ (cut, "aé…");
  MUSTER_EXPECT_STREQ (whole, "aé€");
  MUSTER_EXPECT_STREQ (part, "ab");
  MUSTER_EXPECT_STREQ (broken, "…");
}

MUSTER_TEST (SafeText, keeps_lines_where_they_are_wanted)
{
  g_autofree char *lines = muster_safe_lines ("a\r\nb\n\xe2\x80\xa8\033c");
  MUSTER_EXPECT_STREQ (lines, "a\nb\n??c");
}

MUSTER_TEST (Secret, is_one_printable_line)
{
  MUSTER_EXPECT_TRUE (muster_is_secret ("Basic Zm9v+/=", 13));
  MUSTER_EXPECT_TRUE (!muster_is_secret ("", 0));
  MUSTER_EXPECT_TRUE (!muster_is_secret ("a\r\nX-Amz: b", 11));
  MUSTER_EXPECT_TRUE (!muster_is_secret ("a\0b", 3));
  MUSTER_EXPECT_TRUE (!muster_is_secret ("a\xc2\xa0", 3));
  MUSTER_EXPECT_TRUE (!muster_is_secret (" a", 2));
  MUSTER_EXPECT_TRUE (!muster_is_secret ("a ", 2));
}

MUSTER_TEST (Secret, is_hidden_wherever_it_is_told_back)
{
  const char *const secrets[] = {"", "KEY", "to/ken==", NULL};
  g_autofree char *shown =
      muster_hide_secrets ("<Token>to/ken==</Token> KEYKEY of to/ken==", secrets);
  g_autofree char *same = muster_hide_secrets ("text", NULL);

  MUSTER_EXPECT_STREQ (shown, "<Token>(hidden)</Token> (hidden)(hidden) of (hidden)");
  MUSTER_EXPECT_STREQ (same, "text");
}
