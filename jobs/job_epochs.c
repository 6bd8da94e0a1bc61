// SPDX-License-Identifier: Apache-2.0
#include "jobs/job_epochs_private.h"

#include <string.h>

/* The epoch of "NODE.EPOCH.index", else MUSTER_NO_EPOCH. */
static gint64
epoch_of (const char *file, const char *node)
{
  const gsize n = strlen (node);
  if (!g_str_has_prefix (file, node) || file[n] != '.' || !g_ascii_isdigit (file[n + 1]))
    return MUSTER_NO_EPOCH;
  char *end;
  const gint64 epoch = g_ascii_strtoll (file + n + 1, &end, 10);
  const gboolean is_plain = file[n + 1] != '0' || end == file + n + 2;
  return is_plain && end - file <= (gssize)n + 19 && g_str_equal (end, ".index") ? epoch
                                                                                 : MUSTER_NO_EPOCH;
}

static gboolean
all_have (const char *const *nodes, char *const *files, gint64 epoch)
{
  for (const char *const *node = nodes; *node != NULL; node++) {
    g_autofree char *wanted = g_strdup_printf ("%s.%" G_GINT64_FORMAT ".index", *node, epoch);
    if (!g_strv_contains ((const char *const *)files, wanted))
      return FALSE;
  }
  return TRUE;
}

gboolean
muster_job_newest_epoch (MusterStorage *storage, const char *directory, const char *const *nodes,
                         gint64 below, gint64 *epoch, GError **error)
{
  g_autoptr (GError) why = NULL;
  g_auto (GStrv) files = muster_storage_list (storage, directory, &why);
  *epoch = MUSTER_NO_EPOCH;
  if (files == NULL && muster_error_to_wire (why) != MUSTER_ERROR_NOT_FOUND) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  for (char **file = files; file != NULL && *file != NULL && nodes[0] != NULL; file++) {
    const gint64 found = epoch_of (*file, nodes[0]);
    const gboolean is_below = below == MUSTER_NO_EPOCH || found < below;
    if (is_below && found > *epoch && all_have (nodes, files, found))
      *epoch = found;
  }
  return TRUE;
}
