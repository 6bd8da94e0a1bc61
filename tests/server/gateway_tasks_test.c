// SPDX-License-Identifier: Apache-2.0
/* Tasks that the sessions of a gateway's master need are restarted. */
#include "rpc/proto/master.pb-c.h"
#include "tests/doubles/heard.h"
#include "tests/server/served.h"
#include "tests/server/stuck_master.h"

/* A task that says its incarnation. */
typedef struct {
  MusterRpcServer *rpc; /* (owned) */
  char *needed;         /* (owned) "ps:0=HOST:PORT" */
  GMutex lock;
  GCond changed;
  guint64 incarnation; /* guarded by lock */
  guint n_asked;       /* guarded by lock */
  gboolean is_slow;    /* guarded by lock: it doesn't answer */
} Task;

static void
on_status (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  Task *self = data;
  Tensorflow__DeviceAttributes device = TENSORFLOW__DEVICE_ATTRIBUTES__INIT;
  Tensorflow__GetStatusResponse response = TENSORFLOW__GET_STATUS_RESPONSE__INIT;
  g_auto (MusterRope) reply = MUSTER_ROPE_INIT;
  g_mutex_lock (&self->lock);
  self->n_asked++;
  g_cond_broadcast (&self->changed);
  while (self->is_slow)
    g_cond_wait (&self->changed, &self->lock);
  device.incarnation = self->incarnation;
  g_mutex_unlock (&self->lock);
  response.device_attributes = (Tensorflow__DeviceAttributes *[]){&device};
  response.n_device_attributes = 1;
  g_autoptr (GBytes) packed = muster_pack (&response.base);
  muster_rope_append (&reply, packed);
  muster_rpc_call_reply (call, &reply);
}

static void
task_start (Task *self)
{
  g_autoptr (GError) error = NULL;
  *self = (Task){.rpc = muster_rpc_server_new (), .incarnation = 1};
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  muster_rpc_server_add_method (self->rpc, "/tensorflow.WorkerService/GetStatus", on_status, self);
  const int port = muster_rpc_server_listen (self->rpc, "127.0.0.1:0", NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_rpc_server_start (self->rpc);
  self->needed = g_strdup_printf ("ps:0=127.0.0.1:%d", port);
}

/* Waits until it is asked once more, twice to know that the first answer was read. */
static gboolean
task_await (Task *self, guint n)
{
  const gint64 until_us = g_get_monotonic_time () + 30 * G_TIME_SPAN_SECOND;
  gboolean is_in_time = TRUE;
  g_mutex_lock (&self->lock);
  const guint wanted = self->n_asked + n;
  while (self->n_asked < wanted && is_in_time)
    is_in_time = g_cond_wait_until (&self->changed, &self->lock, until_us);
  g_mutex_unlock (&self->lock);
  return is_in_time;
}

static void
task_set (Task *self, guint64 incarnation, gboolean is_slow)
{
  g_mutex_lock (&self->lock);
  self->incarnation = incarnation;
  self->is_slow = is_slow;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

typedef struct {
  Task task;
  Served behind, front;
} Fixture;

static void
fixture_start (Fixture *f, MusterMaster *master)
{
  task_start (&f->task);
  const char *const needed[] = {f->task.needed, NULL};
  const MusterServerOptions options = {.needed = needed};
  f->behind = master != NULL ? served_start_over (master) : served_start ();
  f->front = served_start_with (f->behind.remote, &options);
}

static void
fixture_clear (Fixture *f)
{
  task_set (&f->task, 0, FALSE);
  served_clear (&f->front);
  served_clear (&f->behind);
  muster_rpc_server_free (f->task.rpc);
  g_free (f->task.needed);
  g_mutex_clear (&f->task.lock);
  g_cond_clear (&f->task.changed);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

#define WHY "was lost: ps:0 was restarted, and its variables are gone"

/* Waits for it for less than the 30 s after which a step that is stuck ends by itself. */
static gboolean
is_gone (Served *served, const char *handle)
{
  const gint64 until_us = test_deadline_in (20 * MUSTER_SECOND);
  for (;;) {
    g_autofree char *gone = served_renew (served, handle);
    if (gone != NULL || muster_clock_now_us (muster_system_clock ()) >= until_us)
      return gone != NULL;
    g_usleep (1000);
  }
}

/* As one that waits for its input, at the master's task alone. */
MUSTER_TEST (GatewayTasks, end_a_step_that_is_stuck_when_one_is_restarted)
{
  g_auto (Fixture) f;
  g_autoptr (MusterStuckMaster) master = stuck_master_new ();
  g_autoptr (GError) error = NULL;
  fixture_start (&f, MUSTER_MASTER (master));
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  ServedStuck stuck;
  served_stuck_start (&stuck, session, NULL);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (master, 1));
  MUSTER_EXPECT_TRUE (task_await (&f.task, 2));

  task_set (&f.task, 2, FALSE);

  MUSTER_EXPECT_TRUE (is_gone (&f.behind, muster_session_handle (session)));
  g_autoptr (GError) failure = served_stuck_join (&stuck);
  MUSTER_EXPECT_SAYS (failure, MUSTER_ERROR, MUSTER_ERROR_ABORTED, WHY);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (master, 0));
  MUSTER_EXPECT_FALSE (served_run (session, "quick", &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED, WHY);
  g_clear_error (&error);
  g_autoptr (MusterSession) another = served_session (&f.front, NULL);
  MUSTER_EXPECT_TRUE (task_await (&f.task, 2));
  MUSTER_EXPECT_TRUE (served_run (another, "quick", &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (GatewayTasks, tell_those_that_wait_when_one_is_restarted)
{
  g_auto (Fixture) f;
  g_autofree char *ready_op = NULL;
  g_autoptr (GError) error = NULL;
  heard_begin (G_LOG_LEVEL_MESSAGE);
  fixture_start (&f, NULL);
  g_autoptr (MusterSession) session = served_session (&f.front, &ready_op);
  g_autoptr (MusterWatch) watch = served_watch_ready (session, ready_op);
  MUSTER_ASSERT_NOT_NULL (watch);
  g_auto (MusterReadiness) readiness = {0};
  MUSTER_EXPECT_TRUE (muster_watch_next (watch, &readiness, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (task_await (&f.task, 2));

  task_set (&f.task, 2, FALSE);

  MUSTER_EXPECT_FALSE (muster_watch_next (watch, &readiness, NULL, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED, WHY);
  MUSTER_EXPECT_TRUE (heard_wait ("task-restarted", "ps:0 was restarted*: 1 session is lost"));
  heard_end ();
}

/* It may have been made since the restart: then it knows the task as it is. */
MUSTER_TEST (GatewayTasks, keep_a_session_that_is_newer_than_the_last_answer)
{
  g_auto (Fixture) f;
  g_autoptr (GError) error = NULL;
  heard_begin (G_LOG_LEVEL_MESSAGE);
  fixture_start (&f, NULL);
  MUSTER_EXPECT_TRUE (task_await (&f.task, 2));
  task_set (&f.task, 2, TRUE);
  MUSTER_EXPECT_TRUE (task_await (&f.task, 1));
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);

  task_set (&f.task, 2, FALSE);

  MUSTER_EXPECT_TRUE (heard_wait ("task-restarted", "*: 0 sessions are lost"));
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));
  MUSTER_EXPECT_NO_ERROR (error);
  heard_end ();
}

MUSTER_TEST (GatewayTasks, have_a_prepared_model_asked_again_when_one_is_restarted)
{
  g_auto (Fixture) f;
  g_autofree char *ready_op = NULL;
  g_autoptr (GError) error = NULL;
  heard_begin (G_LOG_LEVEL_INFO);
  fixture_start (&f, NULL);
  g_autoptr (MusterSession) session = served_session (&f.front, &ready_op);
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));
  g_autoptr (MusterLease) lease = served_claim (session, ready_op);
  MUSTER_ASSERT_NOT_NULL (lease);
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  announcement.phase = MUSTER_CHIEF_PREPARED;
  MUSTER_EXPECT_TRUE (muster_lease_announce (lease, &announcement, test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (heard_wait ("ready", NULL));
  MUSTER_EXPECT_TRUE (task_await (&f.task, 2));

  task_set (&f.task, 2, FALSE);

  MUSTER_EXPECT_TRUE (heard_wait ("not-ready", NULL));
  const gint64 until_us = test_deadline ();
  while (heard_count ("ready", NULL) < 2 && muster_clock_now_us (muster_system_clock ()) < until_us)
    g_usleep (1000);
  MUSTER_EXPECT_EQ (heard_count ("ready", NULL), 2);
  heard_end ();
}
