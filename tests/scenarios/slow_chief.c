// SPDX-License-Identifier: Apache-2.0
/* slow_chief META_GRAPH TARGET: a chief whose init function waits for a line on its standard input,
 * so that a test can do what it likes in the middle of an initialisation. Prints "initialising"
 * when its init op has run and its init function begins, then "ready" or "failed CODE: MESSAGE",
 * and holds its session until its input ends. */
#include "train/monitored/scaffold.h"

#include "master/remote/target.h"
#include "session/manager.h"

#include <stdio.h>

static void
say (const char *line)
{
  printf ("%s\n", line);
  fflush (stdout);
}

static gboolean
wait_for_line (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
               GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED,
               GError **error G_GNUC_UNUSED)
{
  say ("initialising");
  while (getchar () != '\n' && !feof (stdin))
    ;
  return TRUE;
}

static MusterSession *
prepare (MusterScaffold *scaffold, const char *target, GError **error)
{
  g_autoptr (MusterMaster) master = muster_master_new_for_target (target, error);
  if (master == NULL)
    return NULL;
  MusterSessionManagerOptions options = {
      .local_init_op = muster_scaffold_local_init_op (scaffold),
      .ready_op = muster_scaffold_ready_op (scaffold),
      .ready_for_local_init_op = muster_scaffold_ready_for_local_init_op (scaffold),
      .model = "digits",
      .task = "slow:0",
  };
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (muster_scaffold_graph (scaffold), &options, error);
  if (manager == NULL)
    return NULL;
  MusterPrepareOptions what = {.init_op = muster_scaffold_init_op (scaffold),
                               .init_func = wait_for_line,
                               .timeout_us = 60 * MUSTER_SECOND};
  return muster_session_manager_prepare_session (manager, master, &what, NULL, NULL, error);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  if (argc != 3)
    return 2;
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load (argv[1], &error);
  g_autoptr (MusterSession) session = scaffold != NULL ? prepare (scaffold, argv[2], &error) : NULL;
  if (session == NULL) {
    g_autofree char *line = g_strdup_printf ("failed %d: %s", error->code, error->message);
    say (line);
    return 1;
  }
  say ("ready");
  while (getchar () != EOF)
    ;
  muster_session_close_quietly (session);
  return 0;
}
