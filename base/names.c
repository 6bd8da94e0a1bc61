// SPDX-License-Identifier: Apache-2.0
#include "base/names_private.h"

#include <string.h>

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
