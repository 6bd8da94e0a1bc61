// SPDX-License-Identifier: Apache-2.0
/* Watch of muster's own service: a waiting client is subscribed to the hub, which runs the ops
 * once for all that ask the same, and gets a message at each change. Status lists those who wait.
 * */
#include "server/services/readiness_service.h"

#include "ready/backoff.h"
#include "rpc/proto/muster.pb-c.h"
#include "server/core/server_private.h"
#include "server/core/service.h"
#include "server/services/announcement.h"

/* Maximum length of a reason in Status. */
#define MAX_SHOWN 200

struct _MusterReadinessService {
  MusterServer *server; /* (not owned) */

  /* The last message sent, shared by all watches of a round; used only by the hub's thread. */
  guint64 round;
  GBytes *packed;        /* (owned) (nullable) the Turn */
  GRefString *why;       /* (owned) (nullable) */
  const char *waits_for; /* static (nullable) */

  GMutex lock;
  GQueue watchers;  /* (element-type Watcher) owned references, oldest first; guarded by lock */
  gboolean stopped; /* guarded by lock */
};

/* An open Watch, until either side ends the call. */
typedef struct {
  gatomicrefcount refs;            /* the list's, the cancellable's, and the asker's */
  MusterReadinessService *service; /* (not owned) */
  MusterServed *served;            /* (owned) (nullable) NULL if the session isn't here */
  char *task;                      /* (owned) */
  char *who;                       /* (owned) */
  char *model;                     /* (owned) */
  gint64 since_us;
  GList link;         /* in the service's list; guarded by its lock */
  gboolean is_listed; /* guarded by the service's lock */

  GMutex lock;
  MusterRpcCall *call; /* (owned) (nullable) NULL once it has been ended; guarded by lock */
  MusterSubscriber *subscriber; /* (not owned) (nullable) guarded by lock */
  const char *waits_for;        /* static; guarded by lock */
  GRefString *why;              /* (owned) (nullable) guarded by lock */
} Watcher;

static Watcher *
watcher_ref (Watcher *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
watcher_unref (gpointer data)
{
  Watcher *self = data;
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->served, muster_served_unref);
  g_free (self->task);
  g_free (self->who);
  g_free (self->model);
  g_clear_pointer (&self->why, g_ref_string_release);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
leave (Watcher *watcher, MusterSubscriber *subscriber)
{
  muster_readiness_hub_unsubscribe (watcher->service->server->hub, subscriber);
  watcher_unref (watcher);
}

/* Returns the task. One whose model became ready works in the session from now on. Call with the
 * watcher's lock held. */
static MusterServedTask *
task_of (const Watcher *self)
{
  if (*self->waits_for != '\0' || *self->task == '\0' || *self->model == '\0')
    return NULL;
  MusterServedTask *task = g_new (MusterServedTask, 1);
  *task = (MusterServedTask){g_strdup (self->task), g_strdup (self->who), g_strdup (self->model),
                             muster_clock_now_us (self->service->server->clock)};
  return task;
}

/* Ends a watch with a status, on any thread, including the hub's; only the first call has an
 * effect. It releases the call, because the call holds the cancellable, which holds the watcher. */
static void
end_watch (Watcher *watcher, const GError *error)
{
  MusterReadinessService *service = watcher->service;
  watcher_ref (watcher);
  g_mutex_lock (&service->lock);
  gboolean was_listed = watcher->is_listed;
  watcher->is_listed = FALSE;
  if (was_listed)
    g_queue_unlink (&service->watchers, &watcher->link);
  g_mutex_unlock (&service->lock);
  if (was_listed) {
    muster_limits_release (service->server->limits, MUSTER_LIMIT_WATCHERS);
    watcher_unref (watcher);
  }

  g_mutex_lock (&watcher->lock);
  MusterSubscriber *subscriber = g_steal_pointer (&watcher->subscriber);
  g_autoptr (MusterRpcCall) call = g_steal_pointer (&watcher->call);
  if (was_listed && watcher->served != NULL)
    muster_served_set_task (watcher->served, task_of (watcher));
  g_mutex_unlock (&watcher->lock);
  if (subscriber != NULL)
    leave (watcher, subscriber);
  if (call != NULL)
    muster_rpc_call_finish (call, error);
  watcher_unref (watcher);
}

static GBytes *
pack_readiness (const MusterReadiness *readiness)
{
  Muster__ReadinessState message = MUSTER__READINESS_STATE__INIT;
  MusterAnnouncementMessage chief;
  message.gate_open = readiness->gate_open;
  message.ready = readiness->is_ready;
  message.why_gate = muster_server_text (readiness->why_gate);
  message.why_not_ready = muster_server_text (readiness->why_not_ready);
  message.graph_difference = muster_server_text (readiness->graph_difference);
  message.keeps_announcements = readiness->keeps_announcements;
  message.tasks = (gint32)readiness->n_tasks;
  message.min_tasks = (gint32)readiness->min_tasks;
  if (readiness->missing != NULL) {
    message.missing = readiness->missing;
    message.n_missing = g_strv_length (readiness->missing);
  }
  if (readiness->chief != NULL) {
    muster_server_fill_announcement (&chief, readiness->chief);
    message.chief = &chief.message;
  }
  return muster_pack (&message.base);
}

/* Why a task waits; of one with another graph than the chief's that is likely the cause. (transfer
 * full) (nullable) */
static char *
explain (const MusterReadiness *readiness)
{
  const char *why = !readiness->gate_open ? readiness->why_gate
                    : readiness->is_ready ? NULL
                                          : readiness->why_not_ready;
  return why == NULL || readiness->graph_difference == NULL || readiness->missing == NULL
             ? g_strdup (why)
             : g_strdup_printf ("its graph differs from the chief's: %s; %s",
                                readiness->graph_difference, why);
}

/* Shortens a reason for Status; it may be a list of all variables. */
static GRefString *
shorten (const char *why)
{
  if (why == NULL || strlen (why) <= MAX_SHOWN)
    return g_ref_string_new (why != NULL ? why : "");
  g_autofree char *start = g_utf8_make_valid (why, MAX_SHOWN);
  g_autofree char *text = g_strconcat (start, "…", NULL);
  return g_ref_string_new (text);
}

/* Serialises the message that all watches of this round are sent. */
static void
prepare_round (MusterReadinessService *self, const MusterReadiness *readiness, guint64 round)
{
  if (self->round == round)
    return;
  g_autofree char *why = explain (readiness);
  self->round = round;
  self->waits_for = !readiness->gate_open ? "gate" : readiness->is_ready ? "" : "ready";
  g_autoptr (GRefString) before = g_steal_pointer (&self->why);
  self->why = shorten (why);
  if (before != NULL && strcmp (before, self->why) == 0) { /* shared with earlier watches */
    g_ref_string_release (self->why);
    self->why = g_steal_pointer (&before);
  }
  g_clear_pointer (&self->packed, g_bytes_unref);
  self->packed = pack_readiness (readiness);
}

static void
count_latency (MusterServer *server)
{
  gint64 changed_us = muster_readiness_hub_changed_us (server->hub);
  if (changed_us > 0)
    muster_histogram_add (&server->watch_latency, muster_clock_now_us (server->clock) - changed_us);
}

/* The hub's callback. */
static void
on_readiness (const MusterReadiness *readiness, guint64 round, const GError *error, gpointer data)
{
  Watcher *watcher = data;
  MusterReadinessService *self = watcher->service;
  if (readiness == NULL) {
    end_watch (watcher, error);
    return;
  }
  prepare_round (self, readiness, round);
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_rope_append (&rope, self->packed);
  g_mutex_lock (&watcher->lock);
  if (watcher->call != NULL) {
    muster_rpc_call_send_state (watcher->call, &rope);
    count_latency (self->server);
  }
  g_clear_pointer (&watcher->why, g_ref_string_release);
  if (watcher->served == NULL && *self->waits_for == '\0') { /* its watch ends when it is ready */
    watcher->waits_for = "ready";
    watcher->why = g_ref_string_new_intern ("its own master isn't ready");
  } else {
    watcher->waits_for = self->waits_for;
    watcher->why = g_ref_string_acquire (self->why);
  }
  g_mutex_unlock (&watcher->lock);
}

static void
on_caller_gone (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  g_autoptr (GError) error =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "the caller cancelled the watch");
  end_watch (data, error);
}

static GError *
session_gone_error (MusterServed *served)
{
  GError *lost = muster_served_lost_error (served);
  if (lost != NULL)
    return lost;
  return g_error_new (MUSTER_ERROR, MUSTER_ERROR_ABORTED, "Session %s was %s", served->handle,
                      g_atomic_int_get (&served->was_reset) ? "ended " MUSTER_BY_RESET
                                                            : "closed, or its lease ran out");
}

static Watcher *
watcher_new (MusterReadinessService *service, MusterServed *served, MusterRpcCall *call,
             const Muster__WatchRequest *request)
{
  Watcher *watcher = g_new0 (Watcher, 1);
  g_atomic_ref_count_init (&watcher->refs);
  g_mutex_init (&watcher->lock);
  watcher->service = service;
  watcher->served = served != NULL ? muster_served_ref (served) : NULL;
  watcher->call = muster_rpc_call_ref (call);
  watcher->task = g_strdup (request->task);
  watcher->who = g_strdup (request->who);
  watcher->model = g_strdup (request->model);
  watcher->since_us = muster_clock_now_us (service->server->clock);
  watcher->link.data = watcher;
  watcher->waits_for = "gate";
  if (served != NULL)
    muster_served_set_task (served, NULL);
  return watcher;
}

static const char *
text_or_null (const char *text)
{
  return *text != '\0' ? text : NULL;
}

/* Subscribes to the hub. If the watch has ended already, only this function can unsubscribe. */
static void
ask (Watcher *watcher, const Muster__WatchRequest *request)
{
  MusterWatchFor what = {
      .ready_for_local_init_op = text_or_null (request->ready_for_local_init_op),
      .ready_op = text_or_null (request->ready_op),
      .model = text_or_null (request->model),
      .task = text_or_null (request->task),
  };
  MusterSubscriber *subscriber = muster_readiness_hub_subscribe (
      watcher->service->server->hub, watcher->served != NULL ? watcher->served->session : NULL,
      &what, on_readiness, watcher_ref (watcher));
  g_mutex_lock (&watcher->lock);
  gboolean is_open = watcher->call != NULL;
  if (is_open)
    watcher->subscriber = subscriber;
  g_mutex_unlock (&watcher->lock);
  if (!is_open)
    leave (watcher, subscriber);
}

static void
open_watch (MusterReadinessService *self, MusterServed *served, MusterRpcCall *call,
            const Muster__WatchRequest *request)
{
  /* Once the watch is listed, any thread may end it and release the call. */
  g_autoptr (MusterRpcCall) held = muster_rpc_call_ref (call);
  Watcher *watcher = watcher_new (self, served, call, request);
  g_mutex_lock (&self->lock);
  g_queue_push_tail_link (&self->watchers, &watcher_ref (watcher)->link);
  watcher->is_listed = TRUE;
  gboolean stopped = self->stopped;
  g_mutex_unlock (&self->lock);

  g_autoptr (GError) error = NULL;
  if (stopped)
    error = muster_server_stopping_error ();
  else if (served != NULL && g_atomic_int_get (&served->is_closed))
    error = session_gone_error (served); /* between the lookup and the listing */
  if (error != NULL) {
    end_watch (watcher, error);
  } else {
    g_cancellable_connect (muster_rpc_call_cancellable (call), G_CALLBACK (on_caller_gone),
                           watcher_ref (watcher), watcher_unref);
    ask (watcher, request);
  }
  watcher_unref (watcher);
}

static gboolean
check_name (const char *what, const char *name, GError **error)
{
  return *name == '\0' || muster_chief_registry_check_name (what, name, error);
}

/* Without a session here, there is nothing but a chief's announcements to watch. */
static gboolean
check_question (const Muster__WatchRequest *request, GError **error)
{
  if (*request->session_handle != '\0' || (*request->model != '\0' && *request->ready_op == '\0' &&
                                           *request->ready_for_local_init_op == '\0'))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "a watch without a session must name a model, and no ops");
}

static gboolean
check_names (const Muster__WatchRequest *request, GError **error)
{
  return check_question (request, error) &&
         muster_chief_registry_check_text ("ready op", request->ready_op, error) &&
         muster_chief_registry_check_text ("ready-for-local-init op",
                                           request->ready_for_local_init_op, error) &&
         check_name ("model's name", request->model, error) &&
         check_name ("waiter's task", request->task, error) &&
         check_name ("waiter's process", request->who, error);
}

static void
watch (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterServed) served = NULL;
  const Muster__WatchRequest *read =
      muster_server_unpack (call, request, &muster__watch_request__descriptor, arena);
  if (read == NULL)
    return;
  if (*read->session_handle == '\0' && muster_rpc_call_role (call) < MUSTER_ROLE_RUN)
    muster_fail (&error, MUSTER_ERROR_PERMISSION_DENIED,
                 "a watch without a session needs the role 'run'");
  else if (check_names (read, &error) && *read->session_handle != '\0')
    served = muster_sessions_find (server->sessions, read->session_handle, &error);
  if (error == NULL && muster_limits_take (server->limits, MUSTER_LIMIT_WATCHERS, &error))
    open_watch (server->readiness, served, call, read);
  else
    muster_rpc_call_finish (call, error);
}

MusterReadinessService *
muster_readiness_service_new (MusterServer *server)
{
  MusterReadinessService *self = g_new0 (MusterReadinessService, 1);
  self->server = server;
  g_mutex_init (&self->lock);
  g_queue_init (&self->watchers);
  return self;
}

void
muster_readiness_service_free (MusterReadinessService *self)
{
  if (self == NULL)
    return;
  muster_readiness_service_stop (self);
  g_clear_pointer (&self->packed, g_bytes_unref);
  g_clear_pointer (&self->why, g_ref_string_release);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
muster_readiness_service_enter (MusterReadinessService *self)
{
  muster_server_add_method (self->server, "/muster.Readiness/Watch", watch);
  muster_rpc_server_require (self->server->rpc, "/muster.Readiness/Watch", MUSTER_ROLE_READ);
}

/* Returns the watches of one session, or all (NULL). Ending them removes them from the list. */
static GPtrArray *
watchers_of (MusterReadinessService *self, MusterServed *served)
{
  GPtrArray *found = g_ptr_array_new_with_free_func (watcher_unref);
  g_mutex_lock (&self->lock);
  for (GList *link = self->watchers.head; link != NULL; link = link->next) {
    Watcher *watcher = link->data;
    if (served == NULL || watcher->served == served)
      g_ptr_array_add (found, watcher_ref (watcher));
  }
  g_mutex_unlock (&self->lock);
  return found;
}

static void
end_all (GPtrArray *watchers, const GError *error)
{
  for (guint i = 0; i < watchers->len; i++)
    end_watch (watchers->pdata[i], error);
}

void
muster_readiness_service_session_gone (MusterReadinessService *self, MusterServed *served)
{
  g_autoptr (GPtrArray) watchers = watchers_of (self, served);
  g_autoptr (GError) error = session_gone_error (served);
  end_all (watchers, error);
}

void
muster_readiness_service_stop (MusterReadinessService *self)
{
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_mutex_unlock (&self->lock);
  g_autoptr (GPtrArray) watchers = watchers_of (self, NULL);
  g_autoptr (GError) error = muster_server_stopping_error ();
  end_all (watchers, error);
}

static void
waiting_free (MusterWaiting *self)
{
  g_free (self->task);
  g_free (self->who);
  g_free (self->model);
  g_free (self->why);
  g_free (self);
}

static MusterWaiting *
waiting_new (Watcher *watcher, gint64 now_us)
{
  MusterWaiting *waiting = g_new (MusterWaiting, 1);
  g_mutex_lock (&watcher->lock);
  *waiting = (MusterWaiting){
      .task = g_strdup (watcher->task),
      .who = g_strdup (watcher->who),
      .model = g_strdup (watcher->model),
      .age_us = now_us - watcher->since_us,
      .waits_for = watcher->waits_for,
      .why = g_strdup (muster_server_text (watcher->why)),
  };
  g_mutex_unlock (&watcher->lock);
  return waiting;
}

GPtrArray *
muster_readiness_service_waiters (MusterReadinessService *self, guint max)
{
  GPtrArray *waiters = g_ptr_array_new_with_free_func ((GDestroyNotify)waiting_free);
  gint64 now_us = muster_clock_now_us (self->server->clock);
  g_mutex_lock (&self->lock);
  for (GList *link = self->watchers.head; link != NULL && waiters->len < max; link = link->next)
    g_ptr_array_add (waiters, waiting_new (link->data, now_us));
  g_mutex_unlock (&self->lock);
  return waiters;
}

guint
muster_readiness_service_n_watchers (MusterReadinessService *self)
{
  g_mutex_lock (&self->lock);
  guint n = self->watchers.length;
  g_mutex_unlock (&self->lock);
  return n;
}
