// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"
#include "session/claim_by_private.h"
#include "session/manager.h"
#include "tests/server/served.h"

/* A job whose tasks have masters of their own, with the variables in one place: the chief's master
 * has them, the worker's is a gateway to it, and a third server coordinates. */

#define PATIENCE_US (30 * MUSTER_SECOND)

typedef struct {
  MusterMaster *local;
  MusterServer *server;
  int port;
  gint64 lease_us; /* it waits half of that for chiefs that come back, but 3 s at most */
} Coordinator;

static void
coordinator_start (Coordinator *self)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *address = g_strdup_printf ("127.0.0.1:%d", self->port);
  const MusterServerOptions options = {.chief_lease_us = self->lease_us};
  self->local = muster_local_master_new ();
  self->server = muster_server_new (self->local, &options);
  self->port = muster_server_listen (self->server, address, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (self->server);
}

static void
coordinator_stop (Coordinator *self)
{
  g_clear_pointer (&self->server, muster_server_free);
  g_clear_object (&self->local);
}

typedef struct {
  Coordinator coordinator;
  Served chiefs;
  Served workers;
  MusterGraph *graph;
  char *ready_op;
  const char *chief; /* (nullable) its task */
} Fixture;

/* Each process has its own connections. (transfer full) */
static MusterMaster *
connect_to (Fixture *f, const Served *served)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", f->coordinator.port);
  g_autoptr (MusterMaster) coordinator = muster_remote_master_new (target, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MusterMaster *master = muster_remote_master_new (muster_master_target (served->remote), &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_master_set_coordinator (master, coordinator, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return master;
}

static Fixture
set_up (void)
{
  Fixture f = {
      .chiefs = served_start (), .chief = "worker:0", .coordinator.lease_us = 3 * MUSTER_SECOND};
  coordinator_start (&f.coordinator);
  f.workers = served_start_over (f.chiefs.remote);
  f.graph = served_graph (&f.ready_op);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_pointer (&f->graph, muster_graph_unref);
  g_clear_pointer (&f->ready_op, g_free);
  served_clear (&f->workers);
  served_clear (&f->chiefs);
  coordinator_stop (&f->coordinator);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static MusterSessionManager *
manager_of (Fixture *f, const char *task)
{
  const MusterSessionManagerOptions options = {
      .ready_op = f->ready_op, .model = "digits", .task = task};
  return muster_session_manager_new (f->graph, &options, NULL);
}

static MusterSession *
prepare (Fixture *f, const Served *served, MusterPrepareOptions options,
         MusterSessionReport *report, GError **error)
{
  g_autoptr (MusterMaster) master = connect_to (f, served);
  g_autoptr (MusterSessionManager) manager = manager_of (f, f->chief);
  options.init_op = "init";
  options.timeout_us = PATIENCE_US;
  return muster_session_manager_prepare_session (manager, master, &options, report, NULL, error);
}

/* --- a worker --- */

typedef struct {
  Fixture *f;
  GThread *thread;
  GMutex lock;
  GCond changed;
  char *chief_state; /* guarded by lock: (owned) (nullable) */
  char *chief_text;  /* guarded by lock: (owned) (nullable) */
  char *job_state;   /* guarded by lock: (owned) (nullable) */
  gboolean is_back;  /* guarded by lock */
  MusterSession *session;
  GError *error;
  MusterSessionReport report;
} Worker;

static void
on_progress (const char *message G_GNUC_UNUSED, const MusterReadiness *readiness G_GNUC_UNUSED,
             GPtrArray *reasons, gpointer user_data)
{
  Worker *worker = user_data;
  const MusterReason *chief = muster_reasons_find (reasons, "chief");
  const MusterReason *job = muster_reasons_find (reasons, "job");
  g_mutex_lock (&worker->lock);
  g_free (worker->job_state);
  worker->job_state = g_strdup (job != NULL ? job->state : NULL);
  g_free (worker->chief_state);
  g_free (worker->chief_text);
  worker->chief_state = g_strdup (chief != NULL ? chief->state : NULL);
  worker->chief_text = g_strdup (chief != NULL ? chief->text : NULL);
  g_cond_broadcast (&worker->changed);
  g_mutex_unlock (&worker->lock);
}

static gpointer
wait_as_worker (gpointer user_data)
{
  Worker *worker = user_data;
  g_autoptr (MusterMaster) master = connect_to (worker->f, &worker->f->workers);
  g_autoptr (MusterSessionManager) manager = manager_of (worker->f, "worker:1");
  muster_session_manager_set_progress (manager, on_progress, worker, NULL);
  worker->session = muster_session_manager_wait_for_session (manager, master, PATIENCE_US,
                                                             &worker->report, NULL, &worker->error);
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

/* Until one of the worker's fields is that. */
static void
await_state (Worker *worker, char **field, const char *state)
{
  const gint64 until = g_get_monotonic_time () + PATIENCE_US;
  g_mutex_lock (&worker->lock);
  while (!worker->is_back && g_strcmp0 (*field, state) != 0)
    if (!g_cond_wait_until (&worker->changed, &worker->lock, until))
      break;
  MUSTER_EXPECT_STREQ (*field, state);
  MUSTER_EXPECT_FALSE (worker->is_back);
  g_mutex_unlock (&worker->lock);
}

static void
worker_hears (Worker *worker, const char *state)
{
  await_state (worker, &worker->chief_state, state);
}

static void
worker_clear (Worker *worker)
{
  g_clear_object (&worker->session);
  g_clear_error (&worker->error);
  muster_session_report_clear (&worker->report);
  g_free (worker->chief_state);
  g_free (worker->chief_text);
  g_free (worker->job_state);
  g_cond_clear (&worker->changed);
  g_mutex_clear (&worker->lock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Worker, worker_clear)

/* --- one chief --- */

static gboolean
wait_for_worker (MusterSession *session, gint64 deadline_us G_GNUC_UNUSED,
                 GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  if (!muster_session_run_op (session, "v/read", test_deadline (), NULL, error))
    return FALSE;
  worker_hears (user_data, "initialising");
  return TRUE;
}

/* task (nullable) is the chief's. */
static void
expect_phases (const char *task)
{
  g_auto (Fixture) f = set_up ();
  g_auto (Worker) worker;
  f.chief = task;
  g_autoptr (GError) error = NULL;
  worker_start (&worker, &f);
  worker_hears (&worker, "never-registered");

  g_autoptr (MusterSession) chief =
      prepare (&f, &f.chiefs,
               (MusterPrepareOptions){.init_func = wait_for_worker, .init_func_data = &worker},
               NULL, &error);
  g_thread_join (worker.thread);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_NO_ERROR (worker.error);
  MUSTER_EXPECT_TRUE (chief != NULL && worker.session != NULL);
  MUSTER_EXPECT_TRUE (worker.report.pushed);
}

MUSTER_TEST (Coordinator, tells_a_worker_of_another_master_what_the_chief_does)
{
  expect_phases ("worker:0");
}

MUSTER_TEST (Coordinator, tells_a_worker_of_a_chief_without_a_name)
{
  expect_phases (NULL);
}

MUSTER_TEST (Coordinator, has_one_chief_for_all_masters)
{
  g_auto (Fixture) f = set_up ();
  g_auto (MusterSessionReport) refused = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) first =
      prepare (&f, &f.chiefs, (MusterPrepareOptions){0}, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterSession) none =
      prepare (&f, &f.workers, (MusterPrepareOptions){0}, &refused, &error);

  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_EQ ((int)refused.outcome, (int)MUSTER_OUTCOME_FENCED);
  MUSTER_EXPECT_TRUE (muster_lease_check (muster_session_manager_lease (first), NULL));
}

static void
await_loss (MusterLease *lease)
{
  const gint64 until = g_get_monotonic_time () + PATIENCE_US;
  while (muster_lease_check (lease, NULL) && g_get_monotonic_time () < until)
    g_usleep (1000);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (muster_lease_check (lease, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

MUSTER_TEST (Coordinator, takes_the_model_from_a_chief_at_another_master)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) first =
      prepare (&f, &f.chiefs, (MusterPrepareOptions){0}, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterSession) second =
      prepare (&f, &f.workers, (MusterPrepareOptions){.epoch = 9, .overwrite = TRUE}, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  await_loss (muster_session_manager_lease (first));
  MUSTER_EXPECT_EQ (muster_lease_epoch (muster_session_manager_lease (second)), 9);
}

static MusterSession *
open_session (Fixture *f, const Served *served)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = connect_to (f, served);
  MusterSession *session =
      muster_master_create_session (master, f->graph, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

static MusterLease *
claim (MusterSession *session, MusterAnnouncement **before)
{
  g_autoptr (GError) error = NULL;
  const MusterClaim claim = {.model = "digits", .task = "worker:0"};
  MusterLease *lease =
      muster_session_claim (session, &claim, before, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return lease;
}

static gboolean
announce (MusterLease *lease, MusterChiefPhase phase, gint64 step)
{
  g_autoptr (GError) error = NULL;
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  announcement.phase = phase;
  announcement.step = step;
  const gboolean is_told =
      muster_lease_announce (lease, &announcement, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return is_told;
}

static gboolean
announce_drain (MusterLease *lease, MusterChiefDrain drain)
{
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  announcement.drain = drain;
  return muster_lease_announce (lease, &announcement, test_deadline (), NULL, NULL);
}

static gboolean
ask_to_drain (Fixture *f)
{
  g_autofree char *address = g_strdup_printf ("127.0.0.1:%d", f->coordinator.port);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, NULL);
  g_autoptr (GError) error = NULL;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  const MusterRpcOptions options = {.deadline_us = test_deadline ()};
  Muster__DrainRequest request = MUSTER__DRAIN_REQUEST__INIT;
  request.within_us = 20 * MUSTER_SECOND;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (&rope, packed);
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (client, "/muster.Readiness/Drain", &rope, &options, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return answer != NULL;
}

static gboolean
is_draining_soon (MusterLease *lease)
{
  const gint64 until = g_get_monotonic_time () + PATIENCE_US;
  while (!muster_lease_is_draining (lease, NULL) && g_get_monotonic_time () < until)
    g_usleep (1000);
  return muster_lease_is_draining (lease, NULL);
}

MUSTER_TEST (Coordinator, that_stops_lets_chiefs_train_and_waits_for_none)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, &f.chiefs);
  g_autoptr (MusterLease) lease = claim (session, NULL);
  MUSTER_EXPECT_TRUE (announce_drain (lease, MUSTER_DRAIN_OFFERED));

  muster_server_drain (f.coordinator.server, 20 * MUSTER_SECOND);

  MUSTER_EXPECT_TRUE (muster_server_is_drained (f.coordinator.server, NULL));
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_TRAINING, 1));
  MUSTER_EXPECT_TRUE (muster_lease_check (lease, NULL)); /* which reads what it was told */
  MUSTER_EXPECT_FALSE (muster_lease_is_draining (lease, NULL));
}

MUSTER_TEST (Coordinator, drains_a_job_as_its_master_does)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, &f.chiefs);
  g_autoptr (MusterLease) lease = claim (session, NULL);
  MUSTER_EXPECT_TRUE (announce_drain (lease, MUSTER_DRAIN_OFFERED));
  MUSTER_EXPECT_FALSE (muster_lease_is_draining (lease, NULL));

  MUSTER_EXPECT_TRUE (ask_to_drain (&f));

  MUSTER_EXPECT_TRUE (is_draining_soon (lease));
  MUSTER_EXPECT_FALSE (muster_server_is_drained (f.chiefs.server, NULL)); /* nobody asked it */
  MUSTER_EXPECT_TRUE (announce_drain (lease, MUSTER_DRAIN_SAVED));
  MUSTER_EXPECT_TRUE (muster_server_is_drained (f.chiefs.server, NULL)); /* it is told as well */
}

/* As the chief's gateway may be, which has a socket besides. */
MUSTER_TEST (Coordinator, may_be_the_master_itself)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master =
      muster_remote_master_new (muster_master_target (f.chiefs.remote), &error);
  MUSTER_EXPECT_TRUE (muster_master_set_coordinator (master, f.chiefs.remote, &error));
  g_autoptr (MusterSession) session =
      muster_master_create_session (master, f.graph, NULL, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterLease) lease = claim (session, NULL);

  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_TRAINING, 1));
  MUSTER_EXPECT_TRUE (muster_lease_check (lease, &error));
  MUSTER_EXPECT_EQ (muster_lease_epoch (lease), 1);
}

MUSTER_TEST (Coordinator, that_keeps_no_leases_is_refused)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcServer) other = muster_rpc_server_new ();
  const int port = muster_rpc_server_listen (other, "127.0.0.1:0", NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  muster_rpc_server_start (other);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  g_autoptr (MusterMaster) coordinator = muster_remote_master_new (target, &error);
  g_autoptr (MusterMaster) master =
      muster_remote_master_new (muster_master_target (f.chiefs.remote), &error);
  MUSTER_EXPECT_TRUE (muster_master_set_coordinator (master, coordinator, &error));
  g_autoptr (MusterSession) session =
      muster_master_create_session (master, f.graph, NULL, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterClaim claim = {.model = "digits"};

  g_autoptr (MusterLease) lease =
      muster_session_claim (session, &claim, NULL, test_deadline (), NULL, &error);

  MUSTER_EXPECT_NULL (lease);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "keeps no announcements");
}

/* As a chief finds what it may continue with. */
MUSTER_TEST (Coordinator, tells_the_next_chief_of_the_one_before_and_its_graph)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) one = open_session (&f, &f.chiefs);
  g_autoptr (MusterSession) two = open_session (&f, &f.workers);
  g_autoptr (MusterAnnouncement) none = NULL;
  g_autoptr (MusterAnnouncement) before = NULL;
  MusterLease *first = claim (one, &none);
  MUSTER_EXPECT_TRUE (announce (first, MUSTER_CHIEF_TRAINING, 7));
  g_object_unref (first);

  g_autoptr (MusterLease) second = NULL;
  const gint64 until = g_get_monotonic_time () + PATIENCE_US;
  while (second == NULL && g_get_monotonic_time () < until) {
    const MusterClaim again = {.model = "digits", .task = "worker:1"};
    second = muster_session_claim (two, &again, &before, test_deadline (), NULL, NULL);
  }

  MUSTER_EXPECT_NULL (none);
  MUSTER_ASSERT_NOT_NULL (before);
  MUSTER_EXPECT_TRUE (before->same_graph);
  MUSTER_EXPECT_TRUE (before->prepared);
  MUSTER_EXPECT_EQ (before->step, 7);
}

MUSTER_TEST (Coordinator, holds_a_worker_of_a_job_that_has_too_few_tasks)
{
  g_auto (Fixture) f = set_up ();
  g_auto (Worker) worker;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = connect_to (&f, &f.chiefs);
  const MusterJoin join = {.model = "digits", .slot = -1, .n_slots = 4, .min_tasks = 2};
  g_autoptr (MusterMembership) one =
      muster_master_join (master, &join, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterSession) session = served_session (&f.chiefs, NULL);
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));

  worker_start (&worker, &f);
  await_state (&worker, &worker.job_state, "waiting-for-tasks");
  g_autoptr (MusterMembership) two =
      muster_master_join (master, &join, test_deadline (), NULL, &error);
  g_thread_join (worker.thread);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_NO_ERROR (worker.error);
  MUSTER_EXPECT_TRUE (worker.session != NULL);
}

/* As where a gateway is being restarted. */
MUSTER_TEST (Coordinator, keeps_what_stood_where_a_chiefs_own_master_fails)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) one = open_session (&f, &f.chiefs);
  g_autoptr (MusterSession) two = open_session (&f, &f.workers);
  g_autoptr (MusterSession) three = open_session (&f, &f.chiefs);
  const MusterClaim what = {.model = "digits"};
  MusterLease *first = claim (one, NULL);
  MUSTER_EXPECT_TRUE (announce (first, MUSTER_CHIEF_TRAINING, 7));
  g_object_unref (first);
  served_clear (&f.workers);

  const gint64 until = g_get_monotonic_time () + PATIENCE_US;
  do { /* the first one leaves a moment later */
    g_autoptr (MusterAnnouncement) seen = NULL;
    g_clear_error (&error);
    g_autoptr (MusterLease) none =
        muster_session_claim (two, &what, &seen, test_deadline (), NULL, &error);
    MUSTER_EXPECT_NULL (none);
  } while (!muster_error_is (error, MUSTER_ERROR_UNAVAILABLE) && g_get_monotonic_time () < until);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);

  g_autoptr (MusterAnnouncement) before = NULL;
  g_autoptr (MusterLease) last = NULL;
  while (last == NULL && g_get_monotonic_time () < until) {
    g_clear_pointer (&before, muster_announcement_free);
    last = muster_session_claim (three, &what, &before, test_deadline (), NULL, NULL);
  }
  MUSTER_ASSERT_NOT_NULL (before);
  MUSTER_EXPECT_TRUE (before->prepared);
  MUSTER_EXPECT_EQ (before->step, 7);
}

/* --- a chief whose own master hangs --- */

/* A port at which nothing is ever answered. */
static guint
listen_silently (GSocketListener *listener)
{
  g_autoptr (GInetAddress) host = g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4);
  g_autoptr (GSocketAddress) any = g_inet_socket_address_new (host, 0);
  g_autoptr (GSocketAddress) bound = NULL;
  g_autoptr (GError) error = NULL;
  (void)g_socket_listener_add_address (listener, any, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP,
                                       NULL, &bound, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return bound != NULL ? g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)) : 0;
}

static MusterSession *
prepare_by (Fixture *f, MusterMaster *master, gint64 claim_by_us, MusterPrepareOptions options,
            GError **error)
{
  g_autoptr (MusterSessionManager) manager = manager_of (f, "worker:0");
  options.init_op = "init";
  options.timeout_us = PATIENCE_US;
  muster_session_manager_set_claim_by (manager, claim_by_us);
  return muster_session_manager_prepare_session (manager, master, &options, NULL, NULL, error);
}

MUSTER_TEST (Coordinator, has_a_chief_give_up_in_time_whose_master_hangs)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GSocketListener) silent = g_socket_listener_new ();
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%u", listen_silently (silent));
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_remote_master_new (target, &error);
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());

  g_autoptr (MusterSession) none =
      prepare_by (&f, master, now_us + MUSTER_SECOND / 2, (MusterPrepareOptions){0}, &error);

  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_LT (muster_clock_now_us (muster_system_clock ()), now_us + PATIENCE_US / 2);
}

static gboolean
note_deadline (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us,
               GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data,
               GError **error G_GNUC_UNUSED)
{
  *(gint64 *)user_data = deadline_us;
  return TRUE;
}

MUSTER_TEST (Coordinator, lets_a_chief_take_its_time_once_it_has_claimed)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = connect_to (&f, &f.chiefs);
  const gint64 claim_by_us = muster_clock_now_us (muster_system_clock ()) + PATIENCE_US / 2;
  gint64 deadline_us = 0;

  g_autoptr (MusterSession) session = prepare_by (
      &f, master, claim_by_us,
      (MusterPrepareOptions){.init_func = note_deadline, .init_func_data = &deadline_us}, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_GT (deadline_us, claim_by_us);
}

/* --- a coordinator that dies --- */

/* What it says of the model, once that is so. */
static void
await_phase (MusterSession *session, MusterChiefPhase phase, gint64 step)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterWatch) watch = NULL;
  const MusterWatchFor what = {.model = "digits"};
  const gint64 until = g_get_monotonic_time () + PATIENCE_US;
  while (g_get_monotonic_time () < until) {
    g_auto (MusterReadiness) now = {0};
    g_clear_object (&watch);
    g_clear_error (&error);
    watch = muster_session_watch (session, &what, test_deadline (), &error);
    if (watch != NULL && muster_watch_next (watch, &now, NULL, &error) && now.chief != NULL &&
        now.chief->phase == phase && now.chief->step == step && now.chief->alive)
      return;
    g_usleep (10000);
  }
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (FALSE);
}

MUSTER_TEST (Coordinator, is_not_needed_by_a_chief_that_trains_and_hears_all_when_it_is_back)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) session = open_session (&f, &f.chiefs);
  g_autoptr (MusterLease) lease = claim (session, NULL);
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_TRAINING, 1));

  coordinator_stop (&f.coordinator);
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_UNKNOWN, 2));
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_UNKNOWN, 3));
  MUSTER_EXPECT_TRUE (muster_lease_check (lease, NULL));
  coordinator_start (&f.coordinator);

  await_phase (session, MUSTER_CHIEF_TRAINING, 3);
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_UNKNOWN, 4));
  await_phase (session, MUSTER_CHIEF_TRAINING, 4);
}

MUSTER_TEST (Coordinator, that_was_restarted_grants_no_claim_before_its_chief_is_back)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) one = open_session (&f, &f.chiefs);
  g_autoptr (MusterSession) two = open_session (&f, &f.workers);
  g_autoptr (MusterLease) lease = claim (one, NULL);
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_TRAINING, 1));
  coordinator_stop (&f.coordinator);
  g_usleep (2 *
            MUSTER_SECOND); /* by now the chief pauses between its tries, for a second at most */
  f.coordinator.lease_us = 6 * MUSTER_SECOND;
  coordinator_start (&f.coordinator);

  const MusterClaim what = {.model = "digits", .task = "worker:1"};
  const gint64 until = g_get_monotonic_time () + PATIENCE_US;
  do { /* until this process has found the coordinator again */
    g_clear_error (&error);
    g_autoptr (MusterLease) other =
        muster_session_claim (two, &what, NULL, test_deadline (), NULL, &error);
    MUSTER_EXPECT_NULL (other);
  } while (muster_error_is (error, MUSTER_ERROR_UNAVAILABLE) && g_get_monotonic_time () < until);

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION, "worker:0");
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_TRAINING, 2));
}

MUSTER_TEST (Coordinator, that_is_reset_keeps_what_it_knows_of_variables_elsewhere)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", f.coordinator.port);
  g_autoptr (MusterMaster) coordinator = muster_remote_master_new (target, &error);
  g_autoptr (MusterSession) session = open_session (&f, &f.chiefs);
  g_autoptr (MusterLease) lease = claim (session, NULL);
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_TRAINING, 1));

  MUSTER_EXPECT_TRUE (muster_master_reset (coordinator, NULL, test_deadline (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  await_phase (session, MUSTER_CHIEF_TRAINING, 1);
}

/* The chief may have restored half of it. */
MUSTER_TEST (Coordinator, that_goes_lets_no_worker_in_while_the_chief_prepares_the_model)
{
  g_auto (Fixture) f = set_up ();
  g_auto (Worker) worker;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_session (&f, &f.chiefs);
  g_autoptr (MusterLease) lease = claim (session, NULL);
  MUSTER_EXPECT_TRUE (muster_session_run_op (session, "init", test_deadline (), NULL, &error));
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_RESTORING, -1));
  worker_start (&worker, &f);
  worker_hears (&worker, "restoring");

  coordinator_stop (&f.coordinator);
  worker_hears (&worker, "unknown");
  coordinator_start (&f.coordinator);
  worker_hears (&worker, "restoring");
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_TRAINING, 1));
  g_thread_join (worker.thread);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_NO_ERROR (worker.error);
  MUSTER_EXPECT_TRUE (worker.session != NULL);
}

MUSTER_TEST (Coordinator, that_is_away_is_said_and_the_worker_asks_its_master)
{
  g_auto (Fixture) f = set_up ();
  g_auto (Worker) worker;
  g_autoptr (GError) error = NULL;
  coordinator_stop (&f.coordinator);

  worker_start (&worker, &f);
  worker_hears (&worker, "unknown");
  MUSTER_EXPECT_STREQ (worker.chief_text, "the coordinator doesn't answer");
  g_autoptr (MusterSession) session = served_session (&f.chiefs, NULL);
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));
  g_thread_join (worker.thread);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_NO_ERROR (worker.error);
  MUSTER_EXPECT_TRUE (worker.session != NULL);
}

/* --- what is refused --- */

MUSTER_TEST (Coordinator, is_for_masters_behind_grpc_alone)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = connect_to (&f, &f.chiefs);

  MUSTER_EXPECT_FALSE (muster_master_set_coordinator (f.chiefs.local, master, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
  g_clear_error (&error);
  MUSTER_EXPECT_FALSE (muster_master_set_coordinator (master, f.chiefs.local, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

static void
expect_refusal (Served *served, const char *method, const ProtobufCMessage *message,
                const char *words)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) answer = served_ask (served, method, message, NULL, &error);
  MUSTER_EXPECT_NULL (answer);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, words);
}

MUSTER_TEST (Coordinator, refuses_questions_about_a_session_that_it_does_not_have)
{
  g_auto (Served) f = served_start ();
  Muster__WatchRequest watch = MUSTER__WATCH_REQUEST__INIT;
  Muster__ClaimRequest claim = MUSTER__CLAIM_REQUEST__INIT;
  guint8 short_digest[3] = {1, 2, 3};
  watch.model = claim.model = (char *)"digits";
  watch.ready_op = (char *)"ready";
  claim.graph_sha256 = (ProtobufCBinaryData){sizeof short_digest, short_digest};

  expect_refusal (&f, "/muster.Readiness/Watch", &watch.base, "must name a model, and no ops");
  watch.model = watch.ready_op = (char *)"";
  expect_refusal (&f, "/muster.Readiness/Watch", &watch.base, "must name a model, and no ops");
  expect_refusal (&f, "/muster.Readiness/Claim", &claim.base, "has 3 bytes in place of 32");
}
