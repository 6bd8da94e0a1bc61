// SPDX-License-Identifier: Apache-2.0
#include "cli/common/nearest.h"

#include "base/names_private.h"

#include <string.h>

#define MOST_TYPOS 3

void
muster_nearest_begin (MusterNearest *self, const char *word)
{
  const guint most = (guint)CLAMP (strlen (word) / 2, 1, MOST_TYPOS);
  *self = (MusterNearest){.word = word, .distance = most + 1};
}

void
muster_nearest_try (MusterNearest *self, const char *name)
{
  const guint distance = muster_edit_distance (self->word, name, self->distance);
  if (distance >= self->distance)
    return;
  self->distance = distance;
  self->name = name;
}

char *
muster_nearest_text (const MusterNearest *self, const char *prefix)
{
  return self->name != NULL ? g_strdup_printf ("; did you mean '%s%s'?", prefix, self->name)
                            : g_strdup ("");
}
