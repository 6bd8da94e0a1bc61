// SPDX-License-Identifier: Apache-2.0
#include "cli/common/usage_error.h"

#include "base/error.h"

gboolean
muster_cli_usage_error (GError **error, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", text);
}
