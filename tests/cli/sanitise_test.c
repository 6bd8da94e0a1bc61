// SPDX-License-Identifier: Apache-2.0
#include "cli/output/sanitise.h"

#include "cli/output/log_message.h"
#include "status/json.h"
#include "tests/gtest_shim.h"

#include <locale.h>

/* What a hostile server could say: a line of its own, escapes, separators and a turned direction.
 */
#define HOSTILE                                                                                    \
  "bad\nmuster: all is well\r\n  try: rm\xe2\x80\xa8"                                              \
  "a\xe2\x80\xa9"                                                                                  \
  "b\xc2\x85"                                                                                      \
  "c\xc2\x9b"                                                                                      \
  "d\xe2\x80\xae"                                                                                  \
  "e\033[2J\a"
#define ON_ONE_LINE "bad muster: all is well   try: rm?a?b?c?d?e?[2J?"

MUSTER_TEST (Sanitise, lets_no_text_of_others_begin_a_line)
{
  setlocale (LC_ALL, "C.UTF-8");
  g_autofree char *statement = muster_cli_statement ("muster: " HOSTILE "\n");
  g_autofree char *line = muster_cli_one_line (HOSTILE);

  MUSTER_EXPECT_STREQ (statement, "muster: bad\n    muster: all is well\n      try: rm?a?b?c?d?e?"
                                  "[2J?\n");
  MUSTER_EXPECT_STREQ (line, ON_ONE_LINE);
}

MUSTER_TEST (Sanitise, keeps_a_log_to_one_line_for_each_message)
{
  setlocale (LC_ALL, "C.UTF-8");
  const GLogField fields[] = {
      {"MUSTER_EVENT", "event", -1}, {"MUSTER_MODEL", HOSTILE, -1}, {"MESSAGE", HOSTILE, -1}};
  const MusterLogMessage message = {G_LOG_LEVEL_INFO, 0, fields, G_N_ELEMENTS (fields)};

  g_autofree char *text = muster_log_message_as_text (&message);

  MUSTER_EXPECT_STREQ (text, "1970-01-01T00:00:00.000Z info    event  " ON_ONE_LINE
                             "  model=\"" ON_ONE_LINE "\"");
}

MUSTER_TEST (Sanitise, escapes_in_json_what_a_terminal_or_a_reader_of_lines_would_obey)
{
  setlocale (LC_ALL, "C.UTF-8");
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "text", HOSTILE);

  g_autofree char *json = muster_json_end (builder);

  MUSTER_EXPECT_STREQ (json, "{\"text\":\"bad\\nmuster: all is well\\u000d\\n  try: rm\\u2028a"
                             "\\u2029b\\u0085c\\u009bd\\u202ee\\u001b[2J\\u0007\"}");
}
