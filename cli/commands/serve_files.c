// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/serve_files.h"

#include "base/error.h"
#include "base/log_private.h"
#include "checkpoint/stores/default_storage.h"
#include "master/remote/target.h"

static const char *
target_of (const MusterServeOptions *options)
{
  return options->target != NULL ? options->target : "local";
}

/* A gateway opens no files: its master does. */
static gboolean
is_gateway (const MusterServeOptions *options)
{
  return !muster_master_is_offered (target_of (options));
}

gboolean
muster_serve_files_are_of_child (const MusterServeOptions *options)
{
  return options->data_dirs != NULL && !is_gateway (options) &&
         !g_str_equal (target_of (options), "local");
}

/* TensorFlow opens files itself. */
static gboolean
check_child (const MusterServeOptions *options, GError **error)
{
  for (char **at = options->data_dirs; muster_serve_files_are_of_child (options) && *at != NULL;
       at++)
    if (!muster_storage_is_local (NULL, *at))
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "--data-dir: '%s' can't be used by '%s', which opens files only; name "
                          "local directories",
                          *at, target_of (options));
  return TRUE;
}

gboolean
muster_serve_files_storage (const MusterServeOptions *options, MusterStorage **storage,
                            GError **error)
{
  *storage = NULL;
  if (is_gateway (options))
    return TRUE;
  if (options->data_dirs == NULL) {
    /* An object store is open to clients only where --data-dir says so. */
    if (g_str_equal (target_of (options), "local"))
      *storage = g_object_ref (muster_local_storage ());
    return TRUE;
  }
  if (!check_child (options, error))
    return FALSE;
  g_autoptr (MusterStorage) within =
      muster_default_storage_new_within ((const char *const *)options->data_dirs, error);
  if (within == NULL)
    g_prefix_error (error, "--data-dir: ");
  const gboolean is_valid = within != NULL;
  if (!muster_serve_files_are_of_child (options))
    *storage = g_steal_pointer (&within);
  return is_valid;
}

void
muster_serve_files_warn (const MusterServeOptions *options, gboolean is_exposed)
{
  if (options->data_dirs == NULL && !is_gateway (options) && is_exposed)
    muster_log (G_LOG_LEVEL_WARNING, "files", "MESSAGE",
                "clients can read and write every file that this process can; confine them with "
                "--data-dir=DIR");
}
