// SPDX-License-Identifier: Apache-2.0
#include "base/names_private.h"

#include <string.h>

#define LONGEST_NAME 512

char **
muster_names_pack (char *const *names, gsize n)
{
  gsize size = (n + 1) * sizeof (char *);
  for (gsize i = 0; i < n; i++)
    size += strlen (names[i]) + 1;
  char **block = g_malloc (size);
  char *at = (char *)&block[n + 1];
  for (gsize i = 0; i < n; i++) {
    block[i] = at;
    at = g_stpcpy (at, names[i]) + 1;
  }
  block[n] = NULL;
  return block;
}

guint
muster_edit_distance (const char *a, const char *b, guint limit)
{
  gsize a_size = strlen (a);
  gsize b_size = strlen (b);
  guint row[LONGEST_NAME + 1];
  if (a_size > LONGEST_NAME || b_size > LONGEST_NAME ||
      (a_size > b_size ? a_size - b_size : b_size - a_size) > limit)
    return limit + 1;

  for (gsize j = 0; j <= b_size; j++)
    row[j] = (guint)j;
  for (gsize i = 1; i <= a_size; i++) {
    guint diagonal = row[0];
    guint least = row[0] = (guint)i;
    for (gsize j = 1; j <= b_size; j++) {
      guint above = row[j];
      guint replaced = diagonal + (a[i - 1] != b[j - 1]);
      row[j] = MIN (replaced, MIN (above, row[j - 1]) + 1);
      least = MIN (least, row[j]);
      diagonal = above;
    }
    if (least > limit)
      return limit + 1;
  }
  return MIN (row[b_size], limit + 1);
}
