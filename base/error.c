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

typedef struct {
  int from;
  MusterError to;
} Code;

/* Maps errno like TensorFlow's file systems. A missing device isn't NOT_FOUND, which callers
 * take for a missing file. */
static const Code of_file[] = {
    {G_FILE_ERROR_NOENT, MUSTER_ERROR_NOT_FOUND},
    {G_FILE_ERROR_ACCES, MUSTER_ERROR_PERMISSION_DENIED},
    {G_FILE_ERROR_PERM, MUSTER_ERROR_PERMISSION_DENIED},
    {G_FILE_ERROR_ROFS, MUSTER_ERROR_PERMISSION_DENIED},
    {G_FILE_ERROR_NOSPC, MUSTER_ERROR_RESOURCE_EXHAUSTED},
    {G_FILE_ERROR_NOMEM, MUSTER_ERROR_RESOURCE_EXHAUSTED},
    {G_FILE_ERROR_MFILE, MUSTER_ERROR_RESOURCE_EXHAUSTED},
    {G_FILE_ERROR_NFILE, MUSTER_ERROR_RESOURCE_EXHAUSTED},
    {G_FILE_ERROR_ISDIR, MUSTER_ERROR_FAILED_PRECONDITION},
    {G_FILE_ERROR_NOTDIR, MUSTER_ERROR_FAILED_PRECONDITION},
    {G_FILE_ERROR_INVAL, MUSTER_ERROR_INVALID_ARGUMENT},
    {G_FILE_ERROR_NAMETOOLONG, MUSTER_ERROR_INVALID_ARGUMENT},
};
static const Code of_io[] = {
    {G_IO_ERROR_CANCELLED, MUSTER_ERROR_CANCELLED},
    {G_IO_ERROR_NOT_FOUND, MUSTER_ERROR_NOT_FOUND},
    {G_IO_ERROR_PERMISSION_DENIED, MUSTER_ERROR_PERMISSION_DENIED},
    {G_IO_ERROR_READ_ONLY, MUSTER_ERROR_PERMISSION_DENIED},
    {G_IO_ERROR_NO_SPACE, MUSTER_ERROR_RESOURCE_EXHAUSTED},
    {G_IO_ERROR_TOO_MANY_OPEN_FILES, MUSTER_ERROR_RESOURCE_EXHAUSTED},
    {G_IO_ERROR_IS_DIRECTORY, MUSTER_ERROR_FAILED_PRECONDITION},
    {G_IO_ERROR_NOT_DIRECTORY, MUSTER_ERROR_FAILED_PRECONDITION},
    {G_IO_ERROR_FILENAME_TOO_LONG, MUSTER_ERROR_INVALID_ARGUMENT},
    {G_IO_ERROR_HOST_UNREACHABLE, MUSTER_ERROR_DEADLINE_EXCEEDED},
};

static int
find_code (const Code *codes, gsize n, int from)
{
  for (gsize i = 0; i < n; i++)
    if (codes[i].from == from)
      return codes[i].to;
  return MUSTER_ERROR_UNKNOWN;
}

int
muster_error_to_wire (const GError *error)
{
  g_return_val_if_fail (error != NULL, MUSTER_ERROR_UNKNOWN);
  if (error->domain == MUSTER_ERROR)
    return muster_error_from_wire (error->code);
  if (error->domain == G_FILE_ERROR)
    return find_code (of_file, G_N_ELEMENTS (of_file), error->code);
  if (error->domain == G_IO_ERROR)
    return find_code (of_io, G_N_ELEMENTS (of_io), error->code);
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
