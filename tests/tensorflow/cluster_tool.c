// SPDX-License-Identifier: Apache-2.0
/* muster's side of the tests on TensorFlow's clusters, in C; TF_CONFIG says which task it is.
 *
 * cluster_tool config: prints what it reads from it, a word and a value on each line.
 * cluster_tool recover META DIRECTORY: recovers a session, and prints "recovered 0" or 1 and why.
 * cluster_tool steps META DIRECTORY|-: a monitored session that runs the train op once
 * for each line on stdin, and prints "step N", and "lost CODE: WHY" before it comes back. */
#include "master/master.h"
#include "session/cluster/cluster_spec.h"
#include "train/monitored_training.h"
#include "train/train.h"

#include <stdio.h>
#include <string.h>

#define PATIENCE (100 * MUSTER_SECOND)

typedef struct {
  MusterClusterSpec *spec;  /* (owned) */
  MusterMaster *master;     /* (owned) */
  MusterScaffold *scaffold; /* (owned) */
  GBytes *config;           /* (owned) (nullable) */
  char **peers;             /* (owned) */
} Task;

static void
task_clear (Task *self)
{
  muster_cluster_spec_free (self->spec);
  g_clear_object (&self->master);
  muster_scaffold_unref (self->scaffold);
  g_clear_pointer (&self->config, g_bytes_unref);
  g_strfreev (self->peers);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Task, task_clear)

/* --- config --- */

static gboolean
print_config (GError **error)
{
  g_autoptr (MusterClusterSpec) spec = muster_cluster_spec_new (g_getenv ("TF_CONFIG"), error);
  if (spec == NULL)
    return FALSE;
  g_autofree char *target = muster_cluster_spec_target (spec, NULL);
  const char *job = muster_cluster_spec_job (spec);
  gsize n;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (spec, &n);

  printf ("job %s\nindex %u\ntarget %s\n", job != NULL ? job : "-",
          muster_cluster_spec_index (spec), target != NULL ? target : "-");
  printf ("chief %d\n", muster_cluster_spec_is_chief (spec));
  for (gsize i = 0; i < n; i++)
    printf ("task %s:%u %s\n", tasks[i].job, tasks[i].index, tasks[i].address);
  return TRUE;
}

/* --- sessions --- */

static gboolean
open_task (Task *self, const char *meta_graph, GError **error)
{
  self->spec = muster_cluster_spec_new (g_getenv ("TF_CONFIG"), error);
  if (self->spec == NULL)
    return FALSE;
  self->config = muster_cluster_spec_config (self->spec, NULL, NULL);
  self->peers = muster_cluster_spec_peers (self->spec);
  self->master = muster_cluster_spec_master (self->spec, NULL, error);
  self->scaffold = self->master != NULL ? muster_scaffold_load (meta_graph, error) : NULL;
  return self->scaffold != NULL;
}

static gboolean
recover (Task *self, const char *directory, GError **error)
{
  MusterScaffold *scaffold = self->scaffold;
  const MusterSessionManagerOptions options = {
      .ready_op = muster_scaffold_ready_op (scaffold),
      .ready_for_local_init_op = muster_scaffold_ready_for_local_init_op (scaffold),
      .local_init_op = muster_scaffold_local_init_op (scaffold),
      .meta_graph = muster_scaffold_meta_graph (scaffold),
      .cluster = (const char *const *)self->peers,
      .config = self->config};
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (muster_scaffold_graph (scaffold), &options, error);
  g_autoptr (MusterSaver) saver =
      manager != NULL ? muster_saver_new (muster_scaffold_meta_graph (scaffold), NULL, error)
                      : NULL;
  if (saver == NULL)
    return FALSE;
  const MusterPrepareOptions how = {
      .saver = saver, .checkpoint_dir = directory, .timeout_us = PATIENCE};
  g_auto (MusterSessionReport) report = {0};
  gboolean recovered;
  g_autoptr (MusterSession) session = muster_session_manager_recover_session (
      manager, self->master, &how, &recovered, &report, NULL, error);
  if (session == NULL)
    return FALSE;
  printf ("recovered %d %s\n", recovered, recovered ? report.restored_from : report.reason);
  muster_session_close_quietly (session);
  return TRUE;
}

static void
on_lost (MusterSessionObserver *observer G_GNUC_UNUSED, const GError *why, guint n G_GNUC_UNUSED,
         gint64 pause_us G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED)
{
  g_autofree char *line = g_strdelimit (g_strdup (why->message), "\n", ' ');

  printf ("lost %d: %s\n", why->code, line);
}

/* As many steps as lines come. */
static gboolean
run_steps (Task *self, MusterMonitoredSession *session, GError **error)
{
  const char *train_op = muster_scaffold_train_op (self->scaffold);
  const char *global_step = muster_scaffold_global_step (self->scaffold);
  const MusterStep train = {.targets = &train_op, .n_targets = 1};
  const MusterStep look = {.fetches = &global_step, .n_fetches = 1};
  char line[16];
  while (fgets (line, sizeof line, stdin) != NULL) {
    g_autoptr (MusterTensor) step = NULL;
    if (!muster_monitored_session_run (session, &train, NULL, NULL, error) ||
        !muster_monitored_session_run_without_hooks (session, &look, &step, NULL, error))
      return FALSE;
    printf ("step %" G_GINT64_FORMAT "\n", *(const gint64 *)muster_tensor_data (step));
  }
  return TRUE;
}

static gboolean
train (Task *self, const char *directory, gboolean is_worker, GError **error)
{
  g_autoptr (MusterSessionObserver) observer = muster_session_observer_new ();
  const MusterMonitoredTrainingOptions options = {
      .scaffold = self->scaffold,
      .master = self->master,
      .is_worker = is_worker,
      .saving.checkpoint_dir = g_str_equal (directory, "-") ? NULL : directory,
      .saving.save_steps = 1,
      .saving.save_blocking = TRUE, /* the test counts on each step's */
      .save_summaries_us = MUSTER_NEVER,
      .save_summaries_steps = MUSTER_NEVER,
      .log_step_count_steps = MUSTER_NEVER,
      .timeout_us = PATIENCE,
      .step_timeout_us = 3 * MUSTER_SECOND,
      .manager.config = self->config,
      .manager.cluster = (const char *const *)self->peers,
      .observer = observer};
  g_signal_connect (observer, "lost", G_CALLBACK (on_lost), NULL);
  g_autoptr (GError) failure = NULL;
  g_autoptr (MusterMonitoredSession) session =
      muster_monitored_training_session_new (&options, NULL, NULL, error);

  if (session == NULL)
    return FALSE;
  printf ("ready\n");
  (void)run_steps (self, session, &failure);
  return muster_monitored_session_finish (session, failure, MUSTER_WAIT_FOREVER, error);
}

static gboolean
run (int argc, char **argv, GError **error)
{
  g_auto (Task) task = {0};
  if (argc == 2 && g_str_equal (argv[1], "config"))
    return print_config (error);
  if (argc < 4 || !open_task (&task, argv[2], error))
    return FALSE;
  if (g_str_equal (argv[1], "recover"))
    return recover (&task, argv[3], error);
  return train (&task, argv[3], !muster_cluster_spec_is_chief (task.spec), error);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  setvbuf (stdout, NULL, _IOLBF, 0);
  if (run (argc, argv, &error))
    return 0;
  fprintf (stderr, "cluster_tool: %s\n", error != NULL ? error->message : "wrong usage");
  return 1;
}
