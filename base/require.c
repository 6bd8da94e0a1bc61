// SPDX-License-Identifier: Apache-2.0
#include "base/require_private.h"

void
muster_refuse_null (GError **error, const char *function, const char *names, gsize i)
{
  g_auto (GStrv) list = g_strsplit (names, ",", -1);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s: '%s' is NULL", function,
               g_strstrip (list[i]));
}

gboolean
muster_require_error (GError **error, gboolean is_done, const char *whose, const char *function)
{
  if (!is_done && error != NULL && *error == NULL)
    muster_fail (error, MUSTER_ERROR_INTERNAL, "%s: %s () failed without an error", whose,
                 function);
  return is_done;
}
