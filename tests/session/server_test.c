// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"
#include "session/cluster/cluster_spec_private.h"
#include "session/manager.h"
#include "tests/held_port.h"
#include "tests/server/served.h"

#include <gio/gio.h>
#include <glib/gstdio.h>

/* Chiefs and workers on real sockets, and on muster's server. */

#define PATIENCE_US (30 * MUSTER_SECOND)

typedef struct {
  Served served;
  MusterGraph *graph;
  char *ready_op;
  MusterSessionManager *manager;
} Fixture;

static Fixture
set_up (void)
{
  Fixture f = {.served = served_start ()};
  f.graph = served_graph (&f.ready_op);
  MusterSessionManagerOptions options = {
      .ready_op = f.ready_op, .model = "digits", .task = "worker:0"};
  f.manager = muster_session_manager_new (f.graph, &options, NULL);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->manager);
  g_clear_pointer (&f->graph, muster_graph_unref);
  g_clear_pointer (&f->ready_op, g_free);
  served_clear (&f->served);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static MusterSession *
prepare (Fixture *f, MusterPrepareOptions options, MusterSessionReport *report, GError **error)
{
  options.init_op = "init";
  options.timeout_us = PATIENCE_US;
  return muster_session_manager_prepare_session (f->manager, f->served.remote, &options, report,
                                                 NULL, error);
}

/* As `muster serve --task` does; nothing listens at the task's own address. */
MUSTER_TEST (OnServer, a_program_finds_the_gateway_of_its_task)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  g_autoptr (MusterServer) server = muster_server_new (local, NULL);
  g_autoptr (MusterClusterSpec) cluster = muster_cluster_spec_new (
      "{\"cluster\": {\"ps\": [\"localhost:1\"], \"worker\": [\"localhost:2\"]}, "
      "\"task\": {\"type\": \"worker\", \"index\": 0}}",
      &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *gateway = muster_cluster_spec_gateway (cluster);
  g_autofree char *folder = g_path_get_dirname (gateway + strlen ("unix:"));
  (void)g_mkdir (folder, 0700);
  MUSTER_EXPECT_EQ (muster_server_listen (server, gateway, &error), 1);
  MUSTER_ASSERT_NO_ERROR (error);
  muster_server_start (server);

  g_autoptr (MusterMaster) master = muster_cluster_spec_master (cluster, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  g_autoptr (MusterSession) session =
      muster_master_create_session (master, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_master_target (master), gateway);
}

/* Another process, which waits. */
typedef struct {
  Fixture *f;
  GThread *thread;
  GMutex lock;
  GCond changed;
  char *chief_state;      /* guarded by lock: (owned) (nullable) what it heard of the chief last */
  gboolean is_back;       /* guarded by lock */
  MusterSession *session; /* its thread's until it is joined */
  GError *error;
  MusterSessionReport report;
} Worker;

static void
on_progress (const char *message G_GNUC_UNUSED, const MusterReadiness *readiness G_GNUC_UNUSED,
             GPtrArray *reasons, gpointer user_data)
{
  Worker *worker = user_data;
  const MusterReason *chief = muster_reasons_find (reasons, "chief");
  g_mutex_lock (&worker->lock);
  g_free (worker->chief_state);
  worker->chief_state = g_strdup (chief != NULL ? chief->state : NULL);
  g_cond_broadcast (&worker->changed);
  g_mutex_unlock (&worker->lock);
}

static gpointer
wait_as_worker (gpointer user_data)
{
  Worker *worker = user_data;
  MusterSessionManagerOptions options = {
      .ready_op = worker->f->ready_op, .model = "digits", .task = "worker:1"};
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (worker->f->graph, &options, NULL);

  muster_session_manager_set_progress (manager, on_progress, worker, NULL);
  worker->session = muster_session_manager_wait_for_session (
      manager, worker->f->served.remote, PATIENCE_US, &worker->report, NULL, &worker->error);
  g_mutex_lock (&worker->lock);
  worker->is_back = TRUE;
  g_cond_broadcast (&worker->changed);
  g_mutex_unlock (&worker->lock);
  return NULL;
}

static void
worker_start (Worker *worker, Fixture *f)
{
  *worker = (Worker){.f = f};
  g_mutex_init (&worker->lock);
  g_cond_init (&worker->changed);
  worker->thread = g_thread_new ("worker", wait_as_worker, worker);
}

/* Until it has heard that the chief is in that state, or come back. */
static void
worker_receives (Worker *worker, const char *state)
{
  gint64 until = g_get_monotonic_time () + PATIENCE_US;
  g_mutex_lock (&worker->lock);
  while (!worker->is_back && g_strcmp0 (worker->chief_state, state) != 0)
    if (!g_cond_wait_until (&worker->changed, &worker->lock, until))
      break;
  MUSTER_EXPECT_STREQ (worker->chief_state, state);
  MUSTER_EXPECT_FALSE (worker->is_back);
  g_mutex_unlock (&worker->lock);
}

static void
worker_clear (Worker *worker)
{
  g_clear_object (&worker->session);
  g_clear_error (&worker->error);
  muster_session_report_clear (&worker->report);
  g_free (worker->chief_state);
  g_cond_clear (&worker->changed);
  g_mutex_clear (&worker->lock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Worker, worker_clear)

static gboolean
wait_for_worker (MusterSession *session, gint64 deadline_us G_GNUC_UNUSED,
                 GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  /* The variables have their values by now. */
  if (!muster_session_run_op (session, "v/read", test_deadline (), NULL, error))
    return FALSE;
  worker_receives (user_data, "initialising");
  return TRUE;
}

/* DIFF.7 */
MUSTER_TEST (OnServer, a_worker_waits_for_the_end_of_the_init_function)
{
  g_auto (Fixture) f = set_up ();
  g_auto (Worker) worker;
  g_autoptr (GError) error = NULL;
  worker_start (&worker, &f);
  worker_receives (&worker, "never-registered");

  g_autoptr (MusterSession) chief =
      prepare (&f, (MusterPrepareOptions){.init_func = wait_for_worker, .init_func_data = &worker},
               NULL, &error);
  g_thread_join (worker.thread);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_NO_ERROR (worker.error);
  MUSTER_EXPECT_TRUE (chief && worker.session);
  MUSTER_EXPECT_TRUE (worker.report.pushed);
  MUSTER_EXPECT_EQ (worker.report.sessions, 1u);
}

/* as if it were mistyped: that isn't an error */
MUSTER_TEST (OnServer, the_report_says_that_no_chief_has_claimed_the_name)
{
  g_auto (Fixture) f = set_up ();
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) chief = prepare (&f, (MusterPrepareOptions){0}, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterSessionManagerOptions options = {.ready_op = f.ready_op, .model = "digitz"};
  g_autoptr (MusterSessionManager) manager = muster_session_manager_new (f.graph, &options, NULL);

  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      manager, f.served.remote, PATIENCE_US, &report, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (session != NULL);
  const MusterReason *reason = muster_reasons_find (report.reasons, "chief");
  MUSTER_ASSERT_NOT_NULL (reason);
  MUSTER_EXPECT_STREQ (reason->state, "never-registered");
  MUSTER_EXPECT_TRUE (reason->is_well);
}

typedef struct {
  Fixture *f;
  MusterSession *other; /* (owned) the second chief's */
  GError *error;
} Rivalry;

static gboolean
let_another_in (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
                GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data,
                GError **error G_GNUC_UNUSED)
{
  Rivalry *rivalry = user_data;
  g_auto (MusterSessionReport) refused = {0};
  g_autoptr (GError) refusal = NULL;
  g_autoptr (MusterSession) none =
      prepare (rivalry->f, (MusterPrepareOptions){0}, &refused, &refusal);
  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_ERROR (refusal, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_EQ ((int)refused.outcome, (int)MUSTER_OUTCOME_FENCED);

  rivalry->other = prepare (rivalry->f, (MusterPrepareOptions){.epoch = 9}, NULL, &rivalry->error);
  return TRUE;
}

/* Of two chiefs at once the one with the higher epoch prepares; the other is told. */
MUSTER_TEST (OnServer, two_chiefs_are_distinguished)
{
  g_auto (Fixture) f = set_up ();
  Rivalry rivalry = {.f = &f};
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) first =
      prepare (&f, (MusterPrepareOptions){.init_func = let_another_in, .init_func_data = &rivalry},
               &report, &error);
  g_autoptr (MusterSession) second = rivalry.other;

  MUSTER_EXPECT_NULL (first);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_EQ ((int)report.outcome, (int)MUSTER_OUTCOME_FENCED);
  MUSTER_EXPECT_NO_ERROR (rivalry.error);
  MUSTER_ASSERT_TRUE (second != NULL);
  MUSTER_EXPECT_TRUE (muster_lease_check (muster_session_manager_lease (second), NULL));
  g_clear_error (&rivalry.error);
}

MUSTER_TEST (OnServer, a_late_worker_and_a_late_chief_leave_a_job_that_is_over)
{
  g_auto (Fixture) f = set_up ();
  g_auto (MusterSessionReport) report = {0};
  g_auto (Worker) worker;
  g_autoptr (GError) error = NULL;
  MusterAnnouncement end = MUSTER_ANNOUNCEMENT_INIT;
  end.phase = MUSTER_CHIEF_OVER;
  end.step = 20000;
  g_autoptr (MusterSession) chief = prepare (&f, (MusterPrepareOptions){0}, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_TRUE (muster_lease_announce (muster_session_manager_lease (chief), &end,
                                             test_deadline (), NULL, &error));

  worker_start (&worker, &f);
  g_thread_join (worker.thread);
  g_autoptr (MusterSession) late = prepare (&f, (MusterPrepareOptions){0}, &report, &error);

  MUSTER_EXPECT_NULL (worker.session);
  MUSTER_EXPECT_ERROR (worker.error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
  MUSTER_EXPECT_EQ ((int)worker.report.outcome, (int)MUSTER_OUTCOME_OVER);
  MUSTER_EXPECT_EQ (worker.report.final_step, 20000);
  MUSTER_EXPECT_NULL (late);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
  MUSTER_EXPECT_EQ ((int)report.outcome, (int)MUSTER_OUTCOME_OVER);
  MUSTER_EXPECT_EQ (report.final_step, 20000);
}

/* DIFF.8: and those who wait still find it prepared */
MUSTER_TEST (OnServer, a_chief_that_is_started_anew_spares_the_progress_of_others)
{
  g_auto (Fixture) f = set_up ();
  g_auto (MusterSessionReport) report = {0};
  g_auto (Worker) worker;
  g_autoptr (GError) error = NULL;
  MusterSession *first = prepare (&f, (MusterPrepareOptions){0}, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_object_unref (first);

  /* The first chief's lease is given back behind the scenes: it may still stand there. */
  gint64 until = g_get_monotonic_time () + PATIENCE_US;
  do {
    g_clear_error (&error);
    muster_session_report_clear (&report);
    g_autoptr (MusterSession) again = prepare (&f, (MusterPrepareOptions){0}, &report, &error);
    MUSTER_EXPECT_NULL (again);
  } while (error != NULL && strstr (error->message, "is already initialised (by ") == NULL &&
           g_get_monotonic_time () < until);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_EQ ((int)report.outcome, (int)MUSTER_OUTCOME_FENCED);
  worker_start (&worker, &f);
  g_thread_join (worker.thread);
  MUSTER_EXPECT_NO_ERROR (worker.error);
  MUSTER_EXPECT_TRUE (worker.session != NULL);
}

MUSTER_TEST (OnServer, a_higher_epoch_that_could_only_initialise_leaves_the_living_chief_alone)
{
  g_auto (Fixture) f = set_up ();
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) first = prepare (&f, (MusterPrepareOptions){0}, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MusterLease *lease = muster_session_manager_lease (first);

  g_autoptr (MusterSession) second =
      prepare (&f, (MusterPrepareOptions){.epoch = 7}, &report, &error);
  MUSTER_EXPECT_NULL (second);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                      "is already initialised (by ");
  MUSTER_EXPECT_EQ ((int)report.outcome, (int)MUSTER_OUTCOME_FENCED);

  MusterAnnouncement training = MUSTER_ANNOUNCEMENT_INIT;
  training.phase = MUSTER_CHIEF_TRAINING;
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (muster_lease_announce (lease, &training, test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (OnServer, a_higher_epoch_that_discards_the_model_takes_it_from_the_living_chief)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) first = prepare (&f, (MusterPrepareOptions){0}, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterSession) second =
      prepare (&f, (MusterPrepareOptions){.epoch = 7, .overwrite = TRUE}, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (second != NULL);
}

static gboolean
find_whole (MusterSession *session G_GNUC_UNUSED, gint64 *step, gint64 deadline_us G_GNUC_UNUSED,
            GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED,
            GError **error G_GNUC_UNUSED)
{
  *step = 0;
  return TRUE;
}

/* Prepares until the lease of the chief before is given back. */
static MusterSession *
prepare_after_another (Fixture *f, MusterSessionReport *report, GError **error)
{
  const gint64 until = g_get_monotonic_time () + PATIENCE_US;
  for (;;) {
    g_autoptr (GError) failure = NULL;
    MusterSession *session =
        prepare (f, (MusterPrepareOptions){.continue_func = find_whole}, report, &failure);
    if (failure == NULL || strstr (failure->message, "can't claim") == NULL ||
        g_get_monotonic_time () >= until) {
      if (failure != NULL)
        g_propagate_error (error, g_steal_pointer (&failure));
      return session;
    }
    muster_session_report_clear (report);
  }
}

MUSTER_TEST (OnServer, no_chief_continues_with_a_model_that_failed_after_one_that_was_refused)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  const MusterAnnouncement none = MUSTER_ANNOUNCEMENT_INIT;
  MusterAnnouncement failed = none;
  MusterSession *first = prepare (&f, (MusterPrepareOptions){0}, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  failed.failed = TRUE;
  MUSTER_EXPECT_TRUE (muster_lease_announce (muster_session_manager_lease (first), &failed,
                                             test_deadline (), NULL, &error));
  g_object_unref (first);

  for (int i = 0; i < 3; i++) {
    g_auto (MusterSessionReport) report = {0};
    g_autoptr (GError) refusal = NULL;
    g_autoptr (MusterSession) session = prepare_after_another (&f, &report, &refusal);
    MUSTER_EXPECT_NULL (session);
    MUSTER_EXPECT_SAYS (refusal, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                        "is already initialised (by ");
  }
}

/* An init function that loses its master once: the server is reset under it. */
typedef struct {
  Fixture *f;
  guint n_calls;
} Resets;

static gboolean
reset_once (MusterSession *session, gint64 deadline_us G_GNUC_UNUSED,
            GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  Resets *resets = user_data;
  if (resets->n_calls++ == 0 &&
      !muster_master_reset (resets->f->served.remote, NULL, test_deadline (), NULL, error))
    return FALSE;
  return muster_session_run_op (session, "v/read", test_deadline (), NULL, error);
}

MUSTER_TEST (OnServer, a_chief_begins_again_when_its_master_is_reset)
{
  g_auto (Fixture) f = set_up ();
  Resets resets = {.f = &f};
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) chief =
      prepare (&f, (MusterPrepareOptions){.init_func = reset_once, .init_func_data = &resets},
               &report, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_ASSERT_TRUE (chief != NULL);
  MUSTER_EXPECT_EQ (resets.n_calls, 2u);
  MUSTER_EXPECT_EQ (report.sessions, 2u);
  MUSTER_EXPECT_EQ (report.retries[MUSTER_FAILURE_LOST_SESSION], 1u);
  MUSTER_EXPECT_TRUE (muster_lease_check (muster_session_manager_lease (chief), NULL));
}

/* Nobody there. */

/* A port on the loopback where nobody listens, and that nobody else is given meanwhile. */
static GSocket *
hold_port (guint16 *port)
{
  g_autofree char *address = NULL;
  GSocket *socket = test_hold_port (&address);
  *port = (guint16)atoi (strchr (address, ':') + 1);
  return socket;
}

/* One where somebody listens and says nothing. */
static GSocket *
listen_and_say_nothing (guint16 *port)
{
  g_autoptr (GError) error = NULL;
  GSocket *socket = hold_port (port);
  if (!g_socket_listen (socket, &error))
    g_error ("Nobody can listen: %s", error->message);
  return socket;
}

static void
expect_server_state (const MusterSessionReport *report, const char *state)
{
  MUSTER_ASSERT_TRUE (report->reasons != NULL);
  MUSTER_EXPECT_STREQ (muster_reasons_find (report->reasons, "server")->state, state);
}

static MusterSession *
wait_at (guint16 port, gint64 timeout_us, const char *const *cluster, MusterSessionReport *report,
         GError **error)
{
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%u", port);
  MusterSessionManagerOptions options = {.cluster = cluster};
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  g_autoptr (MusterMaster) master = muster_remote_master_new (target, NULL);
  g_autoptr (MusterSessionManager) manager = muster_session_manager_new (graph, &options, NULL);
  return muster_session_manager_wait_for_session (manager, master, timeout_us, report, NULL, error);
}

/* A tenth of the time is kept to find out why, which a busy machine needs as well. */
MUSTER_TEST (NobodyThere, says_that_the_port_is_refused)
{
  guint16 port;
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (GSocket) held = hold_port (&port);

  g_autoptr (MusterSession) session = wait_at (port, 4 * MUSTER_SECOND, NULL, &report, &error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  EXPECT_SAYS (error,
               "Session was not ready after waiting 4 secs. (127.0.0.1, TCP connection refused");
  MUSTER_EXPECT_EQ ((int)report.outcome, (int)MUSTER_OUTCOME_NOT_READY);
  expect_server_state (&report, "refused");
}

/* Connected, but never a word: found out in the part of the time that is kept for it. */
MUSTER_TEST (NobodyThere, says_that_the_server_is_silent)
{
  guint16 port;
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (GSocket) socket = listen_and_say_nothing (&port);
  g_autoptr (MusterSession) session = wait_at (port, 4 * MUSTER_SECOND, NULL, &report, &error);
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  EXPECT_SAYS (error, "no HTTP/2 settings received");
  EXPECT_SAYS (error, "out of time in 'connect'");
  expect_server_state (&report, "silent");
}

MUSTER_TEST (NobodyThere, names_the_tasks_of_the_cluster_that_do_not_answer)
{
  guint16 port, other;
  g_auto (Served) served = served_start ();
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (GSocket) held = hold_port (&port);
  g_autoptr (GSocket) other_held = hold_port (&other);
  const char *at = muster_master_target (served.remote);
  g_autofree char *up = g_strconcat ("ps:0=", strstr (at, "://") + 3, NULL);
  g_autofree char *down = g_strdup_printf ("ps:1=127.0.0.1:%u", other);
  const char *const cluster[] = {up, down, NULL};

  g_autoptr (MusterSession) session = wait_at (port, 5 * MUSTER_SECOND, cluster, &report, &error);

  MUSTER_EXPECT_NULL (session);
  EXPECT_SAYS (error, "ps:1 does not answer");
  MUSTER_EXPECT_FALSE (error && strstr (error->message, "ps:0"));
  MUSTER_ASSERT_TRUE (report.reasons != NULL);
  const MusterReason *task = muster_reasons_find (report.reasons, "task");
  MUSTER_ASSERT_TRUE (task != NULL);
  MUSTER_EXPECT_STREQ (task->owner, "ps:1");
}

/* A chief without a timeout doesn't wait, but says why. */
static MusterSession *
prepare_at (const char *target, MusterSessionReport *report, GError **error)
{
  const MusterPrepareOptions init = {.init_op = "init"};
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  g_autoptr (MusterMaster) master = muster_remote_master_new (target, NULL);
  g_autoptr (MusterSessionManager) manager = muster_session_manager_new (graph, NULL, NULL);
  return muster_session_manager_prepare_session (manager, master, &init, report, NULL, error);
}

MUSTER_TEST (NobodyThere, says_so_to_a_chief_at_once)
{
  guint16 port;
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (GSocket) held = hold_port (&port);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%u", port);

  g_autoptr (MusterSession) session = prepare_at (target, &report, &error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  EXPECT_SAYS (error, "TCP connection refused");
  expect_server_state (&report, "refused");
}

/* The gateway answers at once: no deadline cuts a last attempt short. That its master is gone it
 * may hear from the end of its connection, or from the next attempt. */
MUSTER_TEST (NobodyThere, names_the_master_that_a_gateway_lacks)
{
  g_auto (Served) behind = served_start ();
  g_auto (Served) gateway = served_start_over (behind.remote);
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (GError) error = NULL;
  const char *master = muster_master_target (behind.remote) + strlen ("grpc://");
  const char *target = muster_master_target (gateway.remote);
  g_autofree char *text = g_strdup_printf (
      "'%s' gets no answer from its master '%s': ", target + strlen ("grpc://"), master);
  g_clear_pointer (&behind.server, muster_server_free);

  g_autoptr (MusterSession) session = prepare_at (target, &report, &error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  expect_server_state (&report, "unavailable");
  const char *told = muster_reasons_find (report.reasons, "server")->text;
  MUSTER_ASSERT_TRUE (g_str_has_prefix (told, text));
  const char *cause = told + strlen (text);
  MUSTER_EXPECT_TRUE (g_str_equal (cause, "Connection refused") ||
                      g_str_equal (cause, "the connection was closed"));
}
