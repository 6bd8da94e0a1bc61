// SPDX-License-Identifier: Apache-2.0
#include "saver/builder/suggestion_private.h"

#include "base/names_private.h"

#include <string.h>

gsize
muster_name_common_tail (const char *a, const char *b)
{
  gsize i = strlen (a), k = strlen (b), tail = 0;
  const gsize size = i;
  while (i > 0 && k > 0 && a[i - 1] == b[k - 1]) {
    i--, k--;
    tail = a[i] == '/' ? size - i : tail;
  }
  return tail;
}

/* The only name with the longest tail of the same components: its scope was renamed. */
static const char *
find_in_another_scope (const MusterBundleEntry *const *entries, gsize n, GHashTable *taken,
                       const char *name)
{
  const char *found = NULL;
  gsize longest = 0;
  for (gsize i = 0; i < n; i++) {
    const gsize tail = muster_name_common_tail (name, entries[i]->name);
    if (tail == 0 || tail < longest || g_hash_table_contains (taken, entries[i]->name))
      continue;
    found = tail > longest ? entries[i]->name : NULL;
    longest = tail;
  }
  return found;
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
  return suggestion != NULL ? suggestion : find_in_another_scope (entries, n, taken, name);
}
