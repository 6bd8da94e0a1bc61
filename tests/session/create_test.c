// SPDX-License-Identifier: Apache-2.0
#include "tests/server/served.h"
#include "tests/session/fixture.h"

/* A master that keeps CreateSession: whoever called is told why meanwhile. The fake master
 * hangs, on a clock that is held; the looks go to real ports. */

#define TIMEOUT_US (24 * MUSTER_SECOND)

typedef struct {
  MusterSmallJob job;
  gboolean is_chief;
  MusterSession *session; /* the waiter's until it is joined, as is all below */
  GString *heard;         /* "2: silent ps:1|" */
  char *text;             /* (owned) (nullable) the server's, as heard last */
  char *task;             /* (owned) (nullable) a missing one's */
  GThread *thread;
  GThread *told_on;
} Waiter;

static void
on_progress (const char *message G_GNUC_UNUSED, const MusterReadiness *readiness G_GNUC_UNUSED,
             GPtrArray *reasons, gpointer user_data)
{
  Waiter *self = user_data;
  const MusterReason *server = muster_reasons_find (reasons, "server");
  const MusterReason *task = muster_reasons_find (reasons, "task");
  int seconds = (int)(muster_fake_clock_elapsed_us (self->job.clock) / MUSTER_SECOND);
  g_string_append_printf (self->heard, "%d: %s %s|", seconds, server->state,
                          task != NULL ? task->owner : "-");
  g_free (self->text);
  g_free (self->task);
  self->text = g_strdup (server->text);
  self->task = g_strdup (task != NULL ? task->text : NULL);
  self->told_on = g_thread_self ();
}

/* Another manager for the job, without ops. */
static void
set_up_graph (Waiter *self, MusterGraph *graph, const char *target, const char *const *cluster,
              gint64 cost_us)
{
  *self = (Waiter){.job = muster_small_job_new (), .heard = g_string_new (NULL)};
  MusterSessionManagerOptions options = {.clock = MUSTER_CLOCK (self->job.clock),
                                         .cluster = cluster};

  g_clear_object (&self->job.manager);
  self->job.manager = muster_session_manager_new (graph, &options, NULL);
  muster_session_manager_set_progress (self->job.manager, on_progress, self, NULL);
  muster_fake_master_set_target (self->job.master, target);
  muster_fake_master_set_cost (self->job.master, "create", cost_us);
}

static void
set_up (Waiter *self, const char *target, const char *const *cluster, gint64 cost_us)
{
  set_up_graph (self, NULL, target, cluster, cost_us);
}

static MusterGraph *
graph_on (const char *device)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  muster_graph_builder_node (builder, "NoOp", "local");
  muster_graph_builder_node (builder, "NoOp", "placed");
  muster_graph_builder_device (builder, device);
  return muster_graph_builder_end (builder, NULL);
}

static gpointer
run_operation (gpointer user_data)
{
  Waiter *self = user_data;
  if (self->is_chief)
    self->session = muster_small_job_prepare (
        &self->job, (MusterPrepareOptions){.init_op = "init", .timeout_us = TIMEOUT_US});
  else
    self->session = muster_small_job_wait (&self->job, TIMEOUT_US, NULL);
  return NULL;
}

static void
start (Waiter *self)
{
  muster_fake_clock_hold (self->job.clock);
  self->thread = g_thread_new ("verb", run_operation, self);
}

/* To the next instant, when n wait for one. */
static void
go_on (Waiter *self, guint n)
{
  muster_fake_clock_wait_for_waiters (self->job.clock, n);
  muster_fake_clock_crank (self->job.clock);
}

/* The looks after 12 s and 22 s, and the call's deadline, before which there is none any more; a
 * wait then uses what was kept for a look at why. */
static void
go_to_the_end (Waiter *self)
{
  go_on (self, 2);
  go_on (self, 2);
  go_on (self, 1);
  if (!self->is_chief)
    go_on (self, 1);
  g_thread_join (self->thread);
  MUSTER_EXPECT_NULL (self->session);
  MUSTER_EXPECT_ERROR (self->job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (self->told_on == self->thread);
}

static void
waiter_clear (Waiter *self)
{
  g_clear_object (&self->session);
  g_string_free (self->heard, TRUE);
  g_free (self->text);
  g_free (self->task);
  muster_small_job_clear (&self->job);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Waiter, waiter_clear)

static GSocket *
listen_and_say_nothing (char **address)
{
  g_autoptr (GSocketAddress) any = g_inet_socket_address_new_from_string ("127.0.0.1", 0);
  GSocket *socket =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);

  if (!g_socket_bind (socket, any, TRUE, NULL) || !g_socket_listen (socket, NULL))
    g_error ("No port to listen on");
  g_autoptr (GSocketAddress) bound = g_socket_get_local_address (socket, NULL);
  *address = g_strdup_printf ("127.0.0.1:%u",
                              g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)));
  return socket;
}

/* tensorflow#2472 */
MUSTER_TEST (Create, reports_that_a_server_that_is_up_keeps_it)
{
  g_auto (Served) served = served_start ();
  g_auto (Waiter) waiter;
  set_up (&waiter, muster_master_target (served.remote), NULL, MUSTER_WAIT_FOREVER);

  start (&waiter);
  go_on (&waiter, 2);
  go_to_the_end (&waiter);

  /* and not again, as it stays so */
  MUSTER_EXPECT_STREQ (waiter.heard->str, "2: silent -|");
  MUSTER_EXPECT_STREQ (waiter.text, "up, but CreateSession has had no answer for 2.0 s");
  EXPECT_SAYS (waiter.job.error, "up, but CreateSession has had no answer for 23.5 s");
}

MUSTER_TEST (Create, asks_for_the_tasks_address_where_the_graph_has_a_parameter_server)
{
  const struct {
    const char *device, *hint;
  } cases[] = {
      {"/job:ps/task:1/cpu:0", "; use --cluster=ps:1=HOST:PORT to find the missing task"},
      {"/job:worker/task:0", ""},
      {"/cpu:0", ""},
  };
  g_auto (Served) served = served_start ();
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Waiter) waiter;
    g_autoptr (MusterGraph) graph = graph_on (cases[i].device);
    g_autofree char *expected =
        g_strconcat ("up, but CreateSession has had no answer for 2.0 s", cases[i].hint, NULL);
    set_up_graph (&waiter, graph, muster_master_target (served.remote), NULL, MUSTER_WAIT_FOREVER);

    start (&waiter);
    go_on (&waiter, 2);
    go_to_the_end (&waiter);

    MUSTER_EXPECT_STREQ (waiter.text, expected);
  }
}

MUSTER_TEST (Create, names_the_task_it_waits_for)
{
  g_auto (Served) served = served_start ();
  g_auto (Waiter) waiter;
  const char *target = muster_master_target (served.remote);
  g_autofree char *up = g_strconcat ("ps:0=", strstr (target, "://") + 3, NULL);
  const char *const cluster[] = {up, "ps:1=127.0.0.1:0", NULL};
  set_up (&waiter, target, cluster, MUSTER_WAIT_FOREVER);

  start (&waiter);
  go_on (&waiter, 2);
  go_to_the_end (&waiter);

  MUSTER_EXPECT_STREQ (waiter.heard->str, "2: silent ps:1|");
  MUSTER_EXPECT_STREQ (waiter.text, "up, but CreateSession has had no answer for 2.0 s; no answer "
                                    "from ps:1");
  MUSTER_EXPECT_TRUE (
      g_str_has_prefix (waiter.task, "ps:1 does not answer: 127.0.0.1, TCP connection refused"));
}

/* Whose address nobody chose. */
MUSTER_TEST (Create, names_the_gateway_of_the_task_that_does_not_answer)
{
  g_auto (Waiter) waiter;
  set_up (&waiter, "unix:/tmp/muster-0/none", NULL, MUSTER_WAIT_FOREVER);

  start (&waiter);
  go_on (&waiter, 2);
  go_to_the_end (&waiter);

  MUSTER_EXPECT_STREQ (waiter.text,
                       "this task's gateway, /tmp/muster-0/none, there is no such socket: no "
                       "process listens there");
}

MUSTER_TEST (Create, reports_when_it_is_for_another_reason)
{
  g_auto (Waiter) waiter;
  g_autofree char *address = NULL;
  g_autoptr (GSocket) socket = listen_and_say_nothing (&address);
  g_autofree char *target = g_strconcat ("grpc://", address, NULL);
  set_up (&waiter, target, NULL, MUSTER_WAIT_FOREVER);

  start (&waiter);
  go_on (&waiter, 2);
  muster_fake_clock_wait_for_waiters (waiter.job.clock, 2);
  g_clear_object (&socket);
  go_to_the_end (&waiter);

  MUSTER_EXPECT_STREQ (waiter.heard->str, "2: silent -|12: refused -|");
}

MUSTER_TEST (Create, says_nothing_where_the_answer_comes_soon)
{
  g_auto (Waiter) waiter;
  set_up (&waiter, "grpc://127.0.0.1:0", NULL, MUSTER_SECOND);

  start (&waiter);
  go_on (&waiter, 2);
  g_thread_join (waiter.thread);

  MUSTER_EXPECT_NO_ERROR (waiter.job.error);
  MUSTER_EXPECT_TRUE (waiter.session != NULL);
  MUSTER_EXPECT_STREQ (waiter.heard->str, "");
}

/* A chief, whom no turn tells that the server is up. */
MUSTER_TEST (Create, forgets_the_reason_when_the_answer_comes)
{
  g_auto (Waiter) waiter;
  set_up (&waiter, "grpc://127.0.0.1:0", NULL, 5 * MUSTER_SECOND);
  waiter.is_chief = TRUE;

  start (&waiter);
  go_on (&waiter, 2);
  go_on (&waiter, 2);
  g_thread_join (waiter.thread);

  MUSTER_EXPECT_NO_ERROR (waiter.job.error);
  MUSTER_EXPECT_TRUE (waiter.session != NULL);
  MUSTER_EXPECT_STREQ (waiter.heard->str, "2: refused -|");
  MUSTER_ASSERT_TRUE (waiter.job.report.reasons != NULL);
  MUSTER_EXPECT_TRUE (muster_reasons_find (waiter.job.report.reasons, "server")->is_well);
}

/* Nobody cranks: time passes with each wait. */
MUSTER_TEST (Create, ends_at_its_deadline)
{
  g_auto (Waiter) waiter;
  set_up (&waiter, "grpc://127.0.0.1:0", NULL, MUSTER_WAIT_FOREVER);

  waiter.session = muster_small_job_wait (&waiter.job, 7200 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (waiter.session);
  MUSTER_EXPECT_ERROR (waiter.job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_LE (muster_fake_clock_elapsed_us (waiter.job.clock), 7200 * MUSTER_SECOND);
}

/* Real sockets from end to end. */

typedef struct {
  GCancellable *cancellable;
  char *state; /* (owned) (nullable) */
} Listener;

static void
cancel_when_told (const char *message G_GNUC_UNUSED, const MusterReadiness *readiness G_GNUC_UNUSED,
                  GPtrArray *reasons, gpointer user_data)
{
  Listener *self = user_data;
  g_free (self->state);
  self->state = g_strdup (muster_reasons_find (reasons, "server")->state);
  g_cancellable_cancel (self->cancellable);
}

MUSTER_TEST (Create, reports_a_silent_port_while_it_waits)
{
  g_autofree char *address = NULL;
  g_autoptr (GSocket) socket = listen_and_say_nothing (&address);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  g_autoptr (MusterMaster) master = muster_remote_master_new (address, NULL);
  g_autoptr (MusterSessionManager) manager = muster_session_manager_new (graph, NULL, NULL);
  g_autoptr (GError) error = NULL;
  Listener listener = {cancellable, NULL};
  muster_session_manager_set_progress (manager, cancel_when_told, &listener, NULL);

  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      manager, master, 60 * MUSTER_SECOND, NULL, cancellable, &error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_STREQ (listener.state, "silent");
  g_free (listener.state);
}

static void
keep_the_call (gpointer user_data)
{
  muster_fake_master_set_cost (((MusterSmallJob *)user_data)->master, "create",
                               MUSTER_WAIT_FOREVER);
}

/* What the server told counts, where the end of the time cuts the last call short. */
MUSTER_TEST (Create, keeps_the_cause_that_a_last_call_had_no_time_for)
{
  static const char cause[] = "'gateway:1' gets no answer from its master 'master:2'";
  g_auto (Served) served = served_start ();
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_target (job.master, muster_master_target (served.remote));
  muster_fake_master_fail (job.master, "create", 1, G_MAXUINT, MUSTER_ERROR_UNAVAILABLE, cause);
  muster_fake_clock_at (job.clock, TIMEOUT_US - MUSTER_SECOND, keep_the_call, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, TIMEOUT_US, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_SAYS (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, cause);
  const MusterReason *server = muster_reasons_find (job.report.reasons, "server");
  MUSTER_ASSERT_TRUE (server != NULL);
  MUSTER_EXPECT_STREQ (server->state, "unavailable");
}
