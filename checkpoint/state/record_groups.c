// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/record_groups_private.h"

#include "base/crc32c_private.h"

#include <string.h>

#define BEGINS   '['
#define SUM      "sum="
#define SUM_SIZE (sizeof SUM "01234567\n" - 1)

static void
print_sum (const char *group, gsize size, char *line)
{
  g_snprintf (line, SUM_SIZE + 1, SUM "%08x\n", muster_crc32c_extend (0, group, size));
}

/* The line after this one, or the end. */
static const char *
next_line (const char *line, const char *end)
{
  const char *last = memchr (line, '\n', (gsize)(end - line));
  return last != NULL ? last + 1 : end;
}

/* Without the line between two groups. */
static void
end_group (GString *text, const char *group, const char *end)
{
  char sum[SUM_SIZE + 1];
  if (group == NULL)
    return;
  const char *last = end[-1] == '\n' && end[-2] == '\n' ? end - 1 : end;
  print_sum (group, (gsize)(last - group), sum);
  g_string_append_len (text, group, last - group);
  g_string_append (text, sum);
  g_string_append_len (text, last, end - last);
}

char *
muster_record_sum_groups (const char *body)
{
  GString *text = g_string_new (NULL);
  const char *const end = body + strlen (body), *group = NULL;
  for (const char *line = body; line < end; line = next_line (line, end)) {
    if (*line != BEGINS)
      continue;
    end_group (text, group, line);
    group = line;
  }
  end_group (text, group, end);
  return g_string_free (text, FALSE);
}

char *
muster_record_whole_groups (const char *text, gsize size)
{
  GString *whole = g_string_new (NULL);
  const char *const end = size > 0 ? text + size : text, *group = NULL;
  for (const char *line = text; line < end; line = next_line (line, end)) {
    if (*line == BEGINS)
      group = line;
    if (group == NULL || (gsize)(end - line) < SUM_SIZE || memcmp (line, SUM, strlen (SUM)) != 0)
      continue;
    char sum[SUM_SIZE + 1];
    print_sum (group, (gsize)(line - group), sum);
    if (memcmp (line, sum, SUM_SIZE) == 0)
      g_string_append_len (whole, group, line - group);
    group = NULL; /* it has one sum: a long text is read in a time that grows with its length */
  }
  return g_string_free (whole, FALSE);
}
