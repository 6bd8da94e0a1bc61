// SPDX-License-Identifier: Apache-2.0
/* hostile_client TARGET KIND: runs a few small graphs that ask for far more memory than there is,
 * again and again, until its input ends. Prints "refused" once a step was, then "lost MESSAGE" and
 * ends if the server is gone. */
#include "base/error.h"
#include "graph/graph_builder.h"
#include "master/remote/target.h"
#include "master/session.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

/* A refused step is repeated until its deadline. */
#define SECONDS 5

/* s0 has a kilobyte, and each of the next twice as much as the one before. */
#define N_DOUBLINGS 31

static MusterGraphBuilder *
doublings (void)
{
  MusterGraphBuilder *b = muster_graph_builder_new ();
  g_autofree char *text = g_strnfill (1024, 'X');
  g_autoptr (MusterTensor) first = muster_tensor_new_string (text);
  muster_graph_builder_constant (b, "s0", first);
  for (int i = 1; i <= N_DOUBLINGS; i++) {
    g_autofree char *name = g_strdup_printf ("s%d", i);
    g_autofree char *input = g_strdup_printf ("s%d", i - 1);
    muster_graph_builder_node (b, "StringJoin", name);
    muster_graph_builder_input (b, input);
    muster_graph_builder_input (b, input);
    muster_graph_builder_attr_int (b, "N", 2);
    muster_graph_builder_attr_string (b, "separator", "");
  }
  return b;
}

static void
add_changed (MusterGraphBuilder *b, const char *op, const char *name, const char *input)
{
  muster_graph_builder_node (b, op, name);
  muster_graph_builder_input (b, input);
}

/* A queue that keeps a megabyte for each step. */
static void
add_queue (MusterGraphBuilder *b)
{
  const MusterDType dtype = MUSTER_STRING;
  muster_graph_builder_node (b, "FIFOQueueV2", "queue");
  muster_graph_builder_attr_types (b, "component_types", &dtype, 1);
  muster_graph_builder_node (b, "QueueEnqueueV2", "put");
  muster_graph_builder_input (b, "queue");
  muster_graph_builder_input (b, "s10");
  muster_graph_builder_attr_types (b, "Tcomponents", &dtype, 1);
}

/* As many copies of one string as a response can't hold. */
static void
add_fill (MusterGraphBuilder *b)
{
  const gint32 n = 1 << 16;
  g_autoptr (MusterTensor) dims =
      muster_tensor_new_from_data (MUSTER_INT32, 1, (gint64[]){1}, &n, sizeof n, NULL);
  muster_graph_builder_constant (b, "dims", dims);
  muster_graph_builder_node (b, "Fill", "filled");
  muster_graph_builder_input (b, "dims");
  muster_graph_builder_input (b, "s4");
  muster_graph_builder_attr_type (b, "T", MUSTER_STRING);
  muster_graph_builder_attr_type (b, "index_type", MUSTER_INT32);
}

static MusterGraph *
make_graph (GError **error)
{
  g_autoptr (MusterGraphBuilder) b = doublings ();
  add_changed (b, "StringLower", "lower", "s17");
  add_changed (b, "EncodeBase64", "coded", "lower");
  add_queue (b);
  add_fill (b);
  return muster_graph_builder_end (b, error);
}

/* What a kind of client wants of a step. */
static const struct {
  const char *fetches[8];
  gsize n_fetches;
  const char *target; /* (nullable) */
} kinds[] = {
    {.target = "s31"},
    {.fetches = {"coded:0", "lower:0", "s18:0", "s17:0"}, .n_fetches = 4},
    {.fetches = {"filled:0", "filled:0"}, .n_fetches = 2},
    {.target = "put"},
};

/* FALSE if it was refused. */
static gboolean
run_step (MusterSession *session, gsize kind, GError **error)
{
  MusterTensor *fetched[8] = {NULL};
  const MusterStep step = {.fetches = kinds[kind].fetches,
                           .n_fetches = kinds[kind].n_fetches,
                           .targets = &kinds[kind].target,
                           .n_targets = kinds[kind].target != NULL,
                           .deadline_us =
                               muster_deadline_after (muster_clock_now_us (muster_system_clock ()),
                                                      SECONDS * MUSTER_SECOND)};
  if (!muster_session_run (session, &step, fetched, NULL, NULL, error))
    return FALSE;
  for (gsize i = 0; i < step.n_fetches; i++)
    muster_tensor_unref (fetched[i]);
  return TRUE;
}

static gboolean
is_to_end (void)
{
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll (&input, 1, 0) > 0;
}

/* Steps until one is refused. */
static gboolean
run_session (MusterMaster *master, MusterGraph *graph, gsize kind, GError **error)
{
  g_autoptr (MusterSession) session =
      muster_master_create_session (master, graph, NULL, MUSTER_WAIT_FOREVER, NULL, error);
  while (session != NULL && !is_to_end ())
    if (!run_step (session, kind, error))
      break;
  if (session != NULL)
    muster_session_close_quietly (session);
  return *error == NULL;
}

/* A server that only hangs lets steps run into their deadline, but refuses none. */
static gboolean
is_refusal (const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_RESOURCE_EXHAUSTED);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  gboolean was_refused = FALSE;
  if (argc != 3)
    return 2;
  g_autoptr (MusterMaster) master = muster_master_new_for_target (argv[1], &error);
  g_autoptr (MusterGraph) graph = master != NULL ? make_graph (&error) : NULL;
  while (error == NULL && !is_to_end ()) {
    (void)run_session (master, graph, (gsize)atoi (argv[2]) % G_N_ELEMENTS (kinds), &error);
    if (!is_refusal (error) && !muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED))
      continue;
    if (is_refusal (error) && !was_refused)
      printf ("refused: %s\n", error->message);
    was_refused = was_refused || is_refusal (error);
    fflush (stdout);
    g_clear_error (&error);
  }
  if (error == NULL)
    return 0;
  printf ("lost: %s\n", error->message);
  return 1;
}
