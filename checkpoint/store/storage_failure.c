// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/storage_failure.h"

#include "base/error.h"

gboolean
muster_storage_failure_is_absent (const GError *failure)
{
  return g_error_matches (failure, G_FILE_ERROR, G_FILE_ERROR_NOENT) ||
         g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
}

/* The file may be whole; this process couldn't read it at this time. */
static gboolean
is_passing (const GError *failure)
{
  static const GFileError of_file[] = {
      G_FILE_ERROR_MFILE, G_FILE_ERROR_NFILE, G_FILE_ERROR_NOMEM, G_FILE_ERROR_ACCES,
      G_FILE_ERROR_PERM,  G_FILE_ERROR_AGAIN, G_FILE_ERROR_INTR,
  };
  static const GIOErrorEnum of_io[] = {
      G_IO_ERROR_CANCELLED,         G_IO_ERROR_BUSY,
      G_IO_ERROR_TIMED_OUT,         G_IO_ERROR_TOO_MANY_OPEN_FILES,
      G_IO_ERROR_PERMISSION_DENIED, G_IO_ERROR_NO_SPACE,
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
         muster_error_is (failure, MUSTER_ERROR_DATA_LOSS) ||
         ((failure->domain == G_FILE_ERROR || failure->domain == G_IO_ERROR) &&
          !is_passing (failure));
}
