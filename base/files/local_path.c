// SPDX-License-Identifier: Apache-2.0
#include "base/files/local_path_private.h"

#include <string.h>

#define SCHEME "file://"

const char *
muster_local_path (const char *text)
{
  if (!g_str_has_prefix (text, SCHEME))
    return text;
  const char *slash = strchr (text + strlen (SCHEME), '/');
  return slash != NULL ? slash : "/"; /* the directory of file:///NAME */
}
