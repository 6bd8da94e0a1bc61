// SPDX-License-Identifier: Apache-2.0
/* Notices that a task which the master's sessions need was restarted: its devices' incarnations are
 * others. TensorFlow's master finds that out with the next step that reaches the task. */
#include "server/gateway/gateway_private.h"

#include "base/log_private.h"
#include "base/unpack_private.h"
#include "master/remote/background_private.h"
#include "rpc/proto/master.pb-c.h"
#include "server/services/announce_service.h"
#include "server/services/readiness_service.h"

#include <string.h>

/* Between two looks at a task: a restart is noticed within a second. */
#define LOOK_US (400 * MUSTER_MILLISECOND)
/* Of an answer of a task, and of closing a session at the master. */
#define ANSWER_US (5 * MUSTER_SECOND)

typedef struct {
  MusterServer *server;       /* (not owned) */
  char *name;                 /* (owned) "ps:0" */
  MusterRpcClient *client;    /* (owned) */
  MusterBackgroundTask *work; /* (owned) whose the rest is */
  guint64 incarnation;        /* 0: unknown */
  gint64 seen_us;             /* when it was asked last of those times that it answered */
} Task;

struct _MusterGatewayTasks {
  GPtrArray *tasks; /* (owned) (element-type Task) */
};

/* Returns the task's incarnation; 0: it doesn't say. */
static guint64
ask (Task *self, GCancellable *cancellable)
{
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  gsize size;
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const MusterRpcOptions options = {.deadline_us = muster_deadline_after (now_us, ANSWER_US)};
  if (muster_rpc_client_reach (self->client, options.deadline_us, cancellable) ==
      MUSTER_SERVER_DOWN)
    return 0;
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (self->client, "/tensorflow.WorkerService/GetStatus", &request,
                              &options, cancellable, NULL); /* the task's sessions say why */
  gconstpointer data = answer != NULL ? g_bytes_get_data (answer, &size) : NULL;
  const Tensorflow__GetStatusResponse *status =
      data != NULL ? muster_unpack (&tensorflow__get_status_response__descriptor, data, size, arena,
                                    "GetStatusResponse", NULL)
                   : NULL;
  return status != NULL && status->n_device_attributes > 0
             ? status->device_attributes[0]->incarnation
             : 0;
}

/* Everybody is told before the first is closed: the master may be slow. */
static void
close_sessions (MusterServer *server, GPtrArray *lost, GCancellable *cancellable)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const gint64 deadline_us = muster_deadline_after (now_us, ANSWER_US);
  for (guint i = 0; i < lost->len; i++)
    muster_readiness_service_session_gone (server->readiness, lost->pdata[i]);
  for (guint i = 0; i < lost->len; i++) {
    MusterServed *served = lost->pdata[i];
    (void)muster_session_close (served->session, deadline_us, cancellable,
                                NULL); /* nobody to report an error to */
  }
}

/* A session that came after the last look may know the task as it is now. */
static void
note_restart (Task *self, GCancellable *cancellable)
{
  MusterServer *server = self->server;
  g_autofree char *why =
      g_strdup_printf ("%s was restarted, and its variables are gone", self->name);
  g_autoptr (GPtrArray) lost = muster_sessions_take_lost (server->sessions, self->seen_us, why);
  muster_log (G_LOG_LEVEL_MESSAGE, "task-restarted", "MUSTER_TASK", self->name, "MUSTER_SESSIONS",
              MUSTER_LOG_INT (lost->len), "MESSAGE", "%s: %u session%s lost", why, lost->len,
              lost->len == 1 ? " is" : "s are");
  muster_announce_service_doubt (server->announcing);
  close_sessions (server, lost, cancellable);
}

static gint64
look (gpointer data, GCancellable *cancellable)
{
  Task *self = data;
  const gint64 asked_us = muster_clock_now_us (self->server->clock);
  const guint64 incarnation = ask (self, cancellable);
  if (self->incarnation != 0 && incarnation != 0 && incarnation != self->incarnation)
    note_restart (self, cancellable);
  if (incarnation != 0) {
    self->incarnation = incarnation;
    self->seen_us = asked_us;
  }
  return muster_deadline_after (muster_clock_now_us (muster_system_clock ()), LOOK_US);
}

static void
task_free (gpointer data)
{
  Task *self = data;
  muster_background_task_free (self->work);
  muster_rpc_client_unref (self->client);
  g_free (self->name);
  g_free (self);
}

MusterGatewayTasks *
muster_gateway_tasks_new (MusterServer *server, const char *const *needed)
{
  MusterGatewayTasks *self = g_new0 (MusterGatewayTasks, 1);
  self->tasks = g_ptr_array_new_with_free_func (task_free);
  for (; needed != NULL && *needed != NULL; needed++) {
    const char *equals = strchr (*needed, '=');
    Task *task = g_new0 (Task, 1);
    task->server = server;
    task->name = g_strndup (*needed, (gsize)(equals - *needed));
    task->client = muster_rpc_client_new (equals + 1, NULL);
    task->work = muster_background_task_new ("muster-tasks", look, task, 0);
    g_ptr_array_add (self->tasks, task);
  }
  return self;
}

void
muster_gateway_tasks_stop (MusterGatewayTasks *self)
{
  for (guint i = 0; i < self->tasks->len; i++)
    muster_background_task_stop (((Task *)self->tasks->pdata[i])->work);
}

void
muster_gateway_tasks_free (MusterGatewayTasks *self)
{
  g_ptr_array_unref (self->tasks);
  g_free (self);
}
