// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

const char *
muster_version (void)
{
  return MUSTER_VERSION;
}

gboolean
muster_check_version (guint major, guint minor, guint micro)
{
  const guint asked[] = {major, minor, micro};
  const guint loaded[] = {MUSTER_MAJOR_VERSION, MUSTER_MINOR_VERSION, MUSTER_MICRO_VERSION};
  for (int i = 0; i < 3; i++)
    if (loaded[i] != asked[i])
      return loaded[i] > asked[i];
  return TRUE;
}
