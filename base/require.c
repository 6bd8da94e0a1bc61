// SPDX-License-Identifier: Apache-2.0
#include "base/require_private.h"

void
muster_refuse_null (GError **error, const char *function, const char *names, gsize i)
{
  g_auto (GStrv) list = g_strsplit (names, ",", -1);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s: '%s' is NULL", function,
               g_strstrip (list[i]));
}
