// SPDX-License-Identifier: Apache-2.0
#include "saver/builder/suggestion_private.h"

#include <string.h>

#define LONGEST_NAME 512

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

const char *
muster_suggest_name (const MusterBundleEntry *const *entries, gsize n, GHashTable *taken,
                     const char *name)
{
  guint limit = (guint)MAX (strlen (name) / 3, 1);
  const char *suggestion = NULL;
  for (gsize i = 0; i < n && limit > 0; i++) {
    const char *candidate = entries[i]->name;
    guint distance = muster_edit_distance (name, candidate, limit);
    if (distance <= limit && !g_hash_table_contains (taken, candidate)) {
      suggestion = candidate;
      limit = MAX (distance, 1) - 1;
    }
  }
  return suggestion;
}
