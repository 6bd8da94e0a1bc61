// SPDX-License-Identifier: Apache-2.0
/* A program with a main loop, such as a window has one: it prepares a model, trains three steps and
 * saves, without a call that blocks. The model's data is beside it, as in the installed example:
 *
 *   build/train /usr/share/muster/examples/digits.meta run */
#include <muster.h>
#include <stdio.h>

#if !MUSTER_CHECK_VERSION(0, 1, 0)
#error "needs muster 0.1"
#endif

typedef struct {
  GMainLoop *loop;
  MusterScaffold *scaffold;
  MusterMaster *master;
  MusterSessionManager *manager;
  MusterSaver *saver;
  MusterSession *session;
  MusterStepBuilder *step;
  const char *directory;
  int n_steps;
  GError *error;
} Program;

static void
on_saved (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Program *program = user_data;
  g_autofree char *prefix =
      muster_saver_save_finish (MUSTER_SAVER (source), result, &program->error);

  if (prefix != NULL)
    printf ("trained %d steps, saved %s\n", program->n_steps, prefix);
  g_main_loop_quit (program->loop);
}

static void on_trained (GObject *source, GAsyncResult *result, gpointer user_data);

static void
train (Program *program)
{
  MusterStep step = muster_step_builder_step (program->step);
  step.deadline_us = muster_deadline_after (g_get_monotonic_time (), 30 * MUSTER_SECOND);
  muster_session_run_async (program->session, &step, NULL, on_trained, program);
}

static void
on_trained (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Program *program = user_data;
  if (!muster_session_run_finish (MUSTER_SESSION (source), result, NULL, NULL, &program->error)) {
    g_main_loop_quit (program->loop);
    return;
  }
  if (++program->n_steps < 3) {
    train (program);
    return;
  }
  muster_saver_save_async (program->saver, program->session, program->directory, program->n_steps,
                           MUSTER_WAIT_FOREVER, NULL, on_saved, program);
}

static void
on_prepared (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Program *program = user_data;
  program->session = muster_session_manager_prepare_session_finish (MUSTER_SESSION_MANAGER (source),
                                                                    result, NULL, &program->error);
  if (program->session == NULL)
    g_main_loop_quit (program->loop);
  else
    train (program);
}

static MusterTensor *
load (const char *meta_graph, const char *name, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (meta_graph);
  g_autofree char *path = g_build_filename (directory, name, NULL);
  return muster_npy_load (path, error);
}

static gboolean
make_step (Program *program, const char *meta_graph)
{
  g_autoptr (MusterTensor) images = load (meta_graph, "images.npy", &program->error);
  g_autoptr (MusterTensor) labels =
      images != NULL ? load (meta_graph, "labels.npy", &program->error) : NULL;
  if (labels == NULL)
    return FALSE;
  program->step = muster_step_builder_new ();
  muster_step_builder_feed (program->step, "x:0", images);
  muster_step_builder_feed (program->step, "y:0", labels);
  muster_step_builder_target (program->step, muster_scaffold_train_op (program->scaffold));
  return TRUE;
}

static gboolean
start (Program *program, const char *meta_graph)
{
  program->scaffold = muster_scaffold_load (meta_graph, &program->error);
  if (program->scaffold == NULL)
    return FALSE;
  program->saver =
      muster_saver_new (muster_scaffold_meta_graph (program->scaffold), NULL, &program->error);
  const MusterSessionManagerOptions options = {
      .ready_op = muster_scaffold_ready_op (program->scaffold),
      .local_init_op = muster_scaffold_local_init_op (program->scaffold)};
  program->manager = muster_session_manager_new (muster_scaffold_graph (program->scaffold),
                                                 &options, &program->error);
  if (program->saver == NULL || program->manager == NULL)
    return FALSE;
  program->master = muster_local_master_new ();
  if (!make_step (program, meta_graph))
    return FALSE;
  const MusterPrepareOptions preparing = {.init_op = muster_scaffold_init_op (program->scaffold),
                                          .saver = program->saver,
                                          .checkpoint_dir = program->directory};
  muster_session_manager_prepare_session_async (program->manager, program->master, &preparing, NULL,
                                                on_prepared, program);
  return TRUE;
}

static void
clear (Program *program)
{
  g_clear_pointer (&program->step, muster_step_builder_unref);
  g_clear_object (&program->session);
  g_clear_object (&program->saver);
  g_clear_object (&program->manager);
  g_clear_object (&program->master);
  g_clear_pointer (&program->scaffold, muster_scaffold_unref);
  g_main_loop_unref (program->loop);
}

int
main (int argc, char **argv)
{
  if (argc != 3) {
    fprintf (stderr, "usage: train MODEL.meta DIRECTORY\n");
    return 3;
  }
  Program program = {.loop = g_main_loop_new (NULL, FALSE), .directory = argv[2]};
  if (start (&program, argv[1]))
    g_main_loop_run (program.loop);
  clear (&program);
  if (program.error == NULL)
    return 0;
  fprintf (stderr, "train: %s\n", program.error->message);
  return 4;
}
