// SPDX-License-Identifier: Apache-2.0
#include "saver/builder/suggestion_private.h"

#include "base/names_private.h"

#include <string.h>

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
