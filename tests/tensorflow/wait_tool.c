// SPDX-License-Identifier: Apache-2.0
/* wait_tool META_GRAPH TARGET READY_OP LOCAL_INIT_OP: a worker without a gate. Prints a line for
 * each thing it waits for, and "ready". */
#include "master/remote/target.h"
#include "session/manager.h"

#include <stdio.h>
#include <stdlib.h>

static void
say (const char *message, const MusterReadiness *readiness, GPtrArray *reasons, gpointer user_data)
{
  (void)readiness, (void)reasons, (void)user_data;
  printf ("%s\n", message);
  fflush (stdout);
}

static MusterSession *
wait_for (char **argv, GError **error)
{
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_load (argv[1], error);
  g_autoptr (MusterMaster) master =
      meta_graph != NULL ? muster_master_new_for_target (argv[2], error) : NULL;
  if (master == NULL)
    return NULL;
  MusterSessionManagerOptions options = {.ready_op = argv[3], .local_init_op = argv[4]};
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (muster_meta_graph_graph (meta_graph), &options, error);
  if (manager == NULL)
    return NULL;
  muster_session_manager_set_progress (manager, say, NULL, NULL);
  return muster_session_manager_wait_for_session (manager, master, 60 * MUSTER_SECOND, NULL, NULL,
                                                  error);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = argc == 5 ? wait_for (argv, &error) : NULL;
  printf ("%s\n", session != NULL ? "ready" : error != NULL ? error->message : "usage");
  muster_session_close_quietly (session);
  return session != NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}
