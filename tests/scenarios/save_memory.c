// SPDX-License-Identifier: Apache-2.0
/* Saves a model of SIZE MiB into DIRECTORY by a saver, and prints the bytes of its tensors, and the
 * most that the process held besides them and what it held before it had any. */
#include "checkpoint/s3/s3_metrics.h"
#include "engine/session/local_master.h"
#include "saver/saver.h"
#include "tests/doubles/sharded_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW ((gint64)(4 * sizeof (float))) /* bytes of a row in both halves */

static gint64
read_status (const char *name)
{
  g_autofree char *text = NULL;
  gint64 kilobytes = -1;
  if (g_file_get_contents ("/proc/self/status", &text, NULL, NULL)) {
    const char *line = strstr (text, name);
    kilobytes = line != NULL ? g_ascii_strtoll (line + strlen (name), NULL, 10) : -1;
  }
  return kilobytes * 1024;
}

/* The peak begins anew. */
static gboolean
reset_peak (void)
{
  FILE *file = fopen ("/proc/self/clear_refs", "w");
  const gboolean is_written = file != NULL && fputs ("5", file) >= 0;
  return file != NULL && fclose (file) == 0 && is_written;
}

static gboolean
save (const MusterShardedModel *model, const char *directory, GError **error)
{
  const gint64 before = read_status ("VmRSS:"), size = model->rows * ROW;
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (model);
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_meta_graph_graph (meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, error);
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, NULL, error);
  if (session == NULL || saver == NULL || !muster_sharded_model_set (model, session, 7, error))
    return FALSE;
  if (!reset_peak ())
    g_error ("the peak of memory can't be reset");
  g_autofree char *prefix =
      muster_saver_save (saver, session, directory, 1, MUSTER_WAIT_FOREVER, NULL, error);
  MusterS3Metrics metrics;
  muster_s3_metrics (&metrics);
  printf ("%" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %" G_GUINT64_FORMAT "\n", size,
          read_status ("VmHWM:") - before - size, (guint64)metrics.buffered_max);
  return prefix != NULL;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  if (argc != 3)
    return 2;
  const MusterShardedModel model = {.is_whole = TRUE, .rows = (atoll (argv[1]) << 20) / ROW};
  if (save (&model, argv[2], &error))
    return 0;
  fprintf (stderr, "%s\n", error->message);
  return 1;
}
