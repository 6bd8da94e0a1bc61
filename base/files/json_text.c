// SPDX-License-Identifier: Apache-2.0
#include "base/files/json_text_private.h"

#include <string.h>

gboolean
muster_json_is_flat (const char *text, guint most)
{
  guint depth = 0;
  for (; *text != '\0' && depth <= most; text++) {
    depth += *text == '{' || *text == '[';
    depth -= depth > 0 && (*text == '}' || *text == ']');
  }
  return depth <= most;
}

gboolean
muster_json_is_one_object (const char *text)
{
  guint depth = 0;
  gboolean in_string = FALSE;
  text += strspn (text, " \t\r\n");
  if (*text != '{')
    return FALSE;
  for (; *text != '\0'; text++) {
    if (in_string && *text == '\\' && text[1] != '\0')
      text++;
    else if (*text == '"')
      in_string = !in_string;
    else if (!in_string)
      depth = *text == '{' ? depth + 1 : *text == '}' ? depth - 1 : depth;
    if (depth == 0)
      return text[1 + strspn (text + 1, " \t\r\n")] == '\0';
  }
  return TRUE;
}
