// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

static const char *const names[] = {
    [MUSTER_ERROR_CANCELLED] = "cancelled",
    [MUSTER_ERROR_UNKNOWN] = "unknown",
    [MUSTER_ERROR_INVALID_ARGUMENT] = "invalid argument",
    [MUSTER_ERROR_DEADLINE_EXCEEDED] = "deadline exceeded",
    [MUSTER_ERROR_NOT_FOUND] = "not found",
    [MUSTER_ERROR_ALREADY_EXISTS] = "already exists",
    [MUSTER_ERROR_PERMISSION_DENIED] = "permission denied",
    [MUSTER_ERROR_RESOURCE_EXHAUSTED] = "resource exhausted",
    [MUSTER_ERROR_FAILED_PRECONDITION] = "failed precondition",
    [MUSTER_ERROR_ABORTED] = "aborted",
    [MUSTER_ERROR_OUT_OF_RANGE] = "out of range",
    [MUSTER_ERROR_UNIMPLEMENTED] = "unimplemented",
    [MUSTER_ERROR_INTERNAL] = "internal",
    [MUSTER_ERROR_UNAVAILABLE] = "unavailable",
    [MUSTER_ERROR_DATA_LOSS] = "data loss",
    [MUSTER_ERROR_UNAUTHENTICATED] = "unauthenticated",
};

/* Written out: clang-format would put spaces into G_DEFINE_QUARK's name. */
GQuark
muster_error_quark (void)
{
  return g_quark_from_static_string ("muster-error-quark");
}

const char *
muster_error_name (int code)
{
  return code == 0 ? "ok" : names[muster_error_from_wire (code)];
}

MusterError
muster_error_from_wire (int code)
{
  if (code >= MUSTER_ERROR_CANCELLED && code <= MUSTER_ERROR_UNAUTHENTICATED)
    return (MusterError)code;
  return MUSTER_ERROR_UNKNOWN;
}

int
muster_error_to_wire (const GError *error)
{
  g_return_val_if_fail (error != NULL, MUSTER_ERROR_UNKNOWN);
  if (error->domain == MUSTER_ERROR)
    return muster_error_from_wire (error->code);
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return MUSTER_ERROR_CANCELLED;
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND) ||
      g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
    return MUSTER_ERROR_NOT_FOUND;
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED) ||
      g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_ACCES) ||
      g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_PERM))
    return MUSTER_ERROR_PERMISSION_DENIED;
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE) ||
      g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC))
    return MUSTER_ERROR_RESOURCE_EXHAUSTED;
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE))
    return MUSTER_ERROR_DEADLINE_EXCEEDED;
  return MUSTER_ERROR_UNKNOWN;
}

gboolean
muster_fail (GError **error, MusterError code, const char *format, ...)
{
  g_return_val_if_fail (format != NULL, FALSE);
  va_list args;
  va_start (args, format);
  if (error != NULL)
    *error = g_error_new_valist (MUSTER_ERROR, (int)code, format, args);
  va_end (args);
  return FALSE;
}

gboolean
muster_error_is (const GError *error, MusterError code)
{
  return g_error_matches (error, MUSTER_ERROR, code);
}
