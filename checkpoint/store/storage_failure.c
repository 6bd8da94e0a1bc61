// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/storage_failure_private.h"

#include "base/error.h"

void
muster_storage_failure_set_outage (GError *failure)
{
  failure->domain = G_IO_ERROR;
  failure->code = G_IO_ERROR_HOST_UNREACHABLE;
}

gboolean
muster_storage_failure_is_absent (const GError *failure)
{
  return g_error_matches (failure, G_FILE_ERROR, G_FILE_ERROR_NOENT) ||
         g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
}

gboolean
muster_storage_failure_is_full (const GError *failure)
{
  return g_error_matches (failure, G_FILE_ERROR, G_FILE_ERROR_NOSPC) ||
         g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_NO_SPACE);
}

/* Returns TRUE if the file is missing, isn't a file, or can't be read from the device. Other
 * failures may be temporary, such as those of a file server that is away (ESTALE, ENOTCONN), and
 * say nothing about the file. */
static gboolean
is_of_file (const GError *failure)
{
  static const GFileError of_file[] = {
      G_FILE_ERROR_NOENT,
      G_FILE_ERROR_NOTDIR,
      G_FILE_ERROR_ISDIR,
      G_FILE_ERROR_IO,
  };
  static const GIOErrorEnum of_io[] = {
      G_IO_ERROR_NOT_FOUND,    G_IO_ERROR_NOT_DIRECTORY, G_IO_ERROR_IS_DIRECTORY,
      G_IO_ERROR_INVALID_DATA, G_IO_ERROR_PARTIAL_INPUT, G_IO_ERROR_NOT_REGULAR_FILE,
  };
  for (gsize i = 0; i < G_N_ELEMENTS (of_file); i++)
    if (g_error_matches (failure, G_FILE_ERROR, of_file[i]))
      return TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS (of_io); i++)
    if (g_error_matches (failure, G_IO_ERROR, of_io[i]))
      return TRUE;
  return FALSE;
}

gboolean
muster_storage_failure_is_damage (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_NOT_FOUND) ||
         muster_error_is (failure, MUSTER_ERROR_DATA_LOSS) || is_of_file (failure);
}
