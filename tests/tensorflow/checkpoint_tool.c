// SPDX-License-Identifier: Apache-2.0
/* muster's side of both_ways_test.py.
 *
 * checkpoint_tool copy FROM TO: reads every tensor of a checkpoint and writes them as another one.
 *
 * checkpoint_tool verify PREFIX: is it whole?
 *
 * checkpoint_tool chief DIRECTORY: a chief that keeps two checkpoints and does what its input says,
 * a line each: "adopt", "save STEP" (every byte of the model is STEP then), "aside PREFIX". Answers
 * each with "done" or "failed MESSAGE". */
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/state/quarantine.h"
#include "engine/session/local_master.h"
#include "saver/async/async_saver.h"
#include "tests/doubles/sharded_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gboolean
copy_tensor (MusterBundleReader *reader, const char *name, MusterBundleWriter *writer,
             GError **error)
{
  g_autoptr (MusterTensor) tensor = muster_bundle_reader_read (reader, name, error);
  return tensor != NULL && muster_bundle_writer_add (writer, name, tensor, error);
}

static gboolean
copy (const char *from, const char *to, GError **error)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, from, error);
  g_autoptr (MusterBundleWriter) writer =
      reader != NULL ? muster_bundle_writer_new (NULL, to, error) : NULL;

  if (writer == NULL || !muster_bundle_reader_verify (reader, NULL, NULL, NULL, error))
    return FALSE;
  for (gsize i = 0; i < muster_bundle_reader_n_entries (reader); i++)
    if (!copy_tensor (reader, muster_bundle_reader_entry (reader, i)->name, writer, error))
      return FALSE;
  return muster_bundle_writer_finish (writer, error);
}

static gboolean
verify (const char *prefix, GError **error)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, error);
  return reader != NULL && muster_bundle_reader_verify (reader, NULL, NULL, NULL, error);
}

typedef struct {
  const char *directory;
  MusterShardedModel model;
  MusterMaster *master;
  MusterSession *session;
  MusterSaver *saver;
} Chief;

static gboolean
save (Chief *self, int step, GError **error)
{
  g_autofree char *prefix = NULL;

  if (muster_sharded_model_set (&self->model, self->session, (guint8)step, error))
    prefix = muster_saver_save (self->saver, self->session, self->directory, step,
                                MUSTER_WAIT_FOREVER, NULL, error);
  return prefix != NULL;
}

static gboolean
save_in_background (Chief *self, int step, GError **error)
{
  g_autoptr (MusterAsyncSaver) saver =
      muster_async_saver_new (self->saver, self->session, MUSTER_SAVES_BLOCK, 0, error);
  g_autoptr (MusterSaveTicket) ticket = NULL;

  if (saver != NULL && muster_sharded_model_set (&self->model, self->session, (guint8)step, error))
    ticket =
        muster_async_saver_save (saver, self->directory, step, MUSTER_WAIT_FOREVER, NULL, error);
  return ticket != NULL && muster_async_saver_shutdown (saver, MUSTER_WAIT_FOREVER, NULL, error);
}

static gboolean
obey (Chief *self, const char *line, GError **error)
{
  if (g_str_has_prefix (line, "save "))
    return save (self, atoi (line + strlen ("save ")), error);
  if (g_str_has_prefix (line, "async "))
    return save_in_background (self, atoi (line + strlen ("async ")), error);
  if (g_str_has_prefix (line, "aside "))
    return muster_checkpoint_quarantine (muster_local_storage (), line + strlen ("aside "),
                                         "the test says so", NULL, error);
  return muster_saver_adopt_directory (self->saver, self->directory, error);
}

static gboolean
work (const char *directory, GError **error)
{
  Chief self = {.directory = directory, .model = {.max_to_keep = 2}};
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (&self.model);
  const MusterSaverOptions options = {.keep_every_n_hours = 1};
  g_autoptr (MusterSaver) saver = self.saver = muster_saver_new (meta_graph, &options, error);
  g_autoptr (MusterMaster) master = self.master = muster_local_master_new ();
  g_autoptr (MusterSession) session = self.session = muster_master_create_session (
      master, muster_meta_graph_graph (meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, error);
  char line[4096];
  if (saver == NULL || session == NULL)
    return FALSE;
  while (fgets (line, sizeof line, stdin) != NULL) {
    g_autoptr (GError) failure = NULL;
    if (obey (&self, g_strchomp (line), &failure))
      printf ("done\n");
    else
      printf ("failed %s\n", failure->message);
    fflush (stdout);
  }
  return TRUE;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  gboolean done = FALSE;
  if (argc == 4 && g_str_equal (argv[1], "copy"))
    done = copy (argv[2], argv[3], &error);
  else if (argc == 3 && g_str_equal (argv[1], "verify"))
    done = verify (argv[2], &error);
  else if (argc == 3 && g_str_equal (argv[1], "chief"))
    done = work (argv[2], &error);
  if (error != NULL)
    fprintf (stderr, "%s\n", error->message);
  return done ? 0 : 1;
}
