// SPDX-License-Identifier: Apache-2.0
#include "graph/positioned_step_private.h"

#include <string.h>

#define LENGTH (sizeof MUSTER_POSITION_PLACEHOLDER - 1)

gboolean
muster_feeds_position (const char *name, gsize size)
{
  if (size < LENGTH || memcmp (name, MUSTER_POSITION_PLACEHOLDER, LENGTH) != 0)
    return FALSE;
  return size == LENGTH || (size == LENGTH + 2 && memcmp (name + LENGTH, ":0", 2) == 0);
}

gboolean
muster_step_is_positioned (const MusterStep *step)
{
  for (gsize i = 0; i < step->n_feeds; i++)
    if (muster_feeds_position (step->feeds[i].name, strlen (step->feeds[i].name)))
      return TRUE;
  return FALSE;
}

gboolean
muster_is_positions_own (const char *variable)
{
  return strcmp (variable, MUSTER_POSITION_RESTORING) == 0 ||
         strcmp (variable, MUSTER_POSITION_MARK) == 0;
}
