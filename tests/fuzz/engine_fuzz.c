// SPDX-License-Identifier: Apache-2.0
/* What the engine makes of a graph: a session, and plans for its first nodes as a target, a fetch
 * and a feed; these nodes are run, with little memory for each kernel; then the session is extended
 * by the same graph, which it refuses. */
#include "base/clock.h"
#include "engine/session/local_master.h"
#include "graph/graph_nodes_private.h"
#include "tests/doubles/memory_storage.h"
#include "tests/fuzz/fuzz.h"

#define N_NODES 4
/* What a kernel may allocate: little beside what an input may cost (fuzz.c). */
#define MAX_OP_BYTES ((guint64)1 << 20)
/* A step that waits for what nobody brings. */
#define PATIENCE (20 * MUSTER_MILLISECOND)

static void
plan (MusterSession *session, const char *feed, const char *fetch, const char *target)
{
  g_autoptr (GError) error = NULL;
  const MusterFeed feeds[] = {{.name = feed}};
  const MusterStep step = {.feeds = feeds,
                           .n_feeds = feed != NULL,
                           .fetches = &fetch,
                           .n_fetches = fetch != NULL,
                           .targets = &target,
                           .n_targets = target != NULL};
  const gint64 callable =
      muster_session_make_callable (session, &step, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_true ((callable == 0) == (error != NULL));
  if (callable == 0)
    return;
  (void)muster_session_release_callable (session, callable, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
}

/* As a target, and as a fetch where it has an output. */
static void
run (MusterSession *session, const char *name)
{
  g_autoptr (GError) error = NULL, other = NULL;
  g_autoptr (MusterTensor) fetched = NULL;
  MusterStep step = {.targets = &name, .n_targets = 1};
  step.deadline_us = muster_deadline_after (muster_clock_now_us (muster_system_clock ()), PATIENCE);
  const gboolean ran = muster_session_run (session, &step, NULL, NULL, NULL, &error);
  g_assert_true (ran == (error == NULL));
  step = (MusterStep){.fetches = &name, .n_fetches = 1};
  step.deadline_us = muster_deadline_after (muster_clock_now_us (muster_system_clock ()), PATIENCE);
  const gboolean got = muster_session_run (session, &step, &fetched, NULL, NULL, &other);
  g_assert_true (got == (other == NULL) && got == (fetched != NULL));
}

static void
plan_nodes (MusterSession *session, MusterGraph *graph)
{
  const gsize n = muster_graph_n_nodes (graph);
  const char *last = n > 0 ? muster_graph_node (graph, n - 1)->name : NULL;
  for (gsize i = 0; i < MIN (n, N_NODES); i++) {
    const char *name = muster_graph_node (graph, i)->name;
    g_autofree char *second = g_strconcat (name, ":1", NULL);
    plan (session, NULL, NULL, name);
    plan (session, NULL, name, NULL);
    plan (session, NULL, second, name);
    plan (session, last, name, NULL);
    run (session, name);
  }
}

const gsize muster_fuzz_n_picks = 0;

/* Print and its like have much to say. */
static void
say_nothing (const char *text G_GNUC_UNUSED)
{
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_set_print_handler (say_nothing);
  g_set_printerr_handler (say_nothing);
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  g_autoptr (MusterMemoryStorage) memory = memory_storage_new ();
  g_autoptr (MusterMaster) master =
      muster_local_master_new_with (MUSTER_STORAGE (memory), MAX_OP_BYTES);
  g_autoptr (MusterSession) session =
      muster_master_create_session (master, graph, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_true ((session == NULL) == (error != NULL));
  if (session == NULL)
    return 0;
  plan_nodes (session, graph);
  const gboolean extended =
      muster_session_extend (session, graph, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_true (extended == (muster_graph_n_nodes (graph) == 0));
  (void)muster_session_close (session, MUSTER_WAIT_FOREVER, NULL, NULL);
  return 0;
}

void
muster_fuzz_seeds (void)
{
  muster_fuzz_seed_graphs (NULL);
}
