// SPDX-License-Identifier: Apache-2.0
/* Renew and Status of muster's own service. Renew extends the leases of a client's sessions;
 * Status fills one message with all that `muster status`, the page and /api/status show. */
#include "server/services/status_service.h"

#include "base/version.h"
#include "server/core/drain.h"
#include "server/core/server_private.h"
#include "server/core/service.h"
#include "server/services/announce_service.h"
#include "server/services/announcement.h"
#include "server/services/readiness_service.h"
#include "server/services/status_watch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_WAITERS 100
#define MAX_MEMBERS 256 /* of a model */
/* About 100,000 handles; a client with more sessions sends several requests. */
#define MAX_RENEW_BYTES (4 << 20)

gint64
muster_server_resident_bytes (void)
{
  g_autofree char *text = NULL;
  long pages = 0;
  if (!g_file_get_contents ("/proc/self/statm", &text, NULL, NULL) ||
      sscanf (text, "%*s %ld", &pages) != 1)
    return 0;
  return (gint64)pages * sysconf (_SC_PAGESIZE);
}

/* --- Renew --- */

static void
reply_gone (MusterServer *server, MusterRpcCall *call, const Muster__RenewRequest *read)
{
  Muster__RenewResponse response = MUSTER__RENEW_RESPONSE__INIT;
  g_autofree char **gone = g_new (char *, read->n_session_handle);
  gint64 now_us = muster_clock_now_us (server->clock);
  for (gsize i = 0; i < read->n_session_handle; i++)
    if (!muster_sessions_renew (server->sessions, read->session_handle[i], now_us))
      gone[response.n_gone++] = read->session_handle[i];
  response.gone = gone;
  muster_server_reply (call, &response.base);
}

static void
renew (MusterRpcCall *call, GBytes *request, gpointer data)
{
  if (g_bytes_get_size (request) > MAX_RENEW_BYTES) {
    g_autoptr (GError) error = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                                                    "too many sessions to renew at once: renew "
                                                    "them in several calls of at most 4 MiB");
    muster_rpc_call_finish (call, error);
    return;
  }
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__RenewRequest *read =
      muster_server_unpack (call, request, &muster__renew_request__descriptor, arena);
  if (read != NULL)
    reply_gone (data, call, read);
}

/* --- Status --- */

/* The lists of a response, with the objects they point to until it is packed. */
typedef struct {
  Muster__Limit limits[MUSTER_N_LIMITS];
  Muster__Limit *limit_pointers[MUSTER_N_LIMITS];
  GPtrArray *waiting;                    /* (owned) (element-type MusterWaiting) */
  Muster__Waiter *waiters;               /* (owned) */
  Muster__Waiter **waiter_pointers;      /* (owned) */
  GPtrArray *chiefs;                     /* (owned) (element-type MusterAnnouncement) */
  MusterAnnouncementMessage *models;     /* (owned) */
  Muster__Announcement **model_pointers; /* (owned) */
  GPtrArray *jobs;                       /* (owned) (element-type MusterMembers) */
  GPtrArray *tasks;                      /* (owned) (element-type MusterServedTask) */
  MusterArena *arena;                    /* (owned) of the messages about these */
  char *master_failure;                  /* (owned) (nullable) */
} Lists;

struct _MusterServerStatus {
  Muster__StatusResponse response;
  Lists lists;
};

static void
lists_clear (Lists *self)
{
  g_clear_pointer (&self->waiting, g_ptr_array_unref);
  g_free (self->waiters);
  g_free (self->waiter_pointers);
  g_clear_pointer (&self->chiefs, g_ptr_array_unref);
  g_free (self->models);
  g_free (self->model_pointers);
  g_clear_pointer (&self->jobs, g_ptr_array_unref);
  g_clear_pointer (&self->tasks, g_ptr_array_unref);
  g_clear_pointer (&self->arena, muster_arena_free);
  g_free (self->master_failure);
}

static void
fill_limits (Muster__StatusResponse *response, Lists *lists, MusterLimits *limits)
{
  for (guint i = 0; i < MUSTER_N_LIMITS; i++) {
    MusterLimitUse usage;
    muster_limits_read (limits, i, &usage);
    muster__limit__init (&lists->limits[i]);
    lists->limits[i].name = (char *)usage.name;
    lists->limits[i].used = (gint64)usage.used;
    lists->limits[i].limit = (gint64)MIN (usage.max, G_MAXINT64);
    lists->limits[i].refused = (gint64)usage.refused;
    lists->limit_pointers[i] = &lists->limits[i];
  }
  response->limits = lists->limit_pointers;
  response->n_limits = MUSTER_N_LIMITS;
}

static void
fill_waiters (Muster__StatusResponse *response, Lists *lists, MusterReadinessService *readiness)
{
  lists->waiting = muster_readiness_service_waiters (readiness, MAX_WAITERS);
  guint n = lists->waiting->len;
  lists->waiters = g_new (Muster__Waiter, n);
  lists->waiter_pointers = g_new (Muster__Waiter *, n);
  for (guint i = 0; i < n; i++) {
    const MusterWaiting *waiting = lists->waiting->pdata[i];
    Muster__Waiter *waiter = lists->waiter_pointers[i] = &lists->waiters[i];
    muster__waiter__init (waiter);
    waiter->task = waiting->task;
    waiter->who = waiting->who;
    waiter->model = waiting->model;
    waiter->age_us = waiting->age_us;
    waiter->waits_for = (char *)waiting->waits_for;
    waiter->why = waiting->why;
  }
  response->waiters = lists->waiter_pointers;
  response->n_waiters = n;
}

static void
fill_models (Muster__StatusResponse *response, Lists *lists, MusterServer *server)
{
  lists->chiefs = muster_chief_registry_list (server->registry);
  guint n = lists->chiefs->len;
  lists->models = g_new (MusterAnnouncementMessage, n);
  lists->model_pointers = g_new (Muster__Announcement *, n);
  for (guint i = 0; i < n; i++) {
    lists->model_pointers[i] = &lists->models[i].message;
    const MusterAnnouncement *chief = lists->chiefs->pdata[i];
    muster_server_fill_announcement (&lists->models[i], chief);
    lists->models[i].message.drain_left_us =
        muster_announce_service_hold_left_us (server->announcing, chief->model);
  }
  response->models = lists->model_pointers;
  response->n_models = n;
}

/* --- members --- */

/* A process may have several members; then the task's name tells which one is the chief. */
static gboolean
is_chief (const MusterMember *member, const MusterAnnouncement *chief)
{
  if (chief == NULL || !chief->alive || g_strcmp0 (member->who, chief->who) != 0)
    return FALSE;
  return *member->task == '\0' || chief->task == NULL || *chief->task == '\0' ||
         g_str_equal (member->task, chief->task);
}

static char *
keep_text (const char *text, MusterArena *arena)
{
  const gsize size = strlen (text) + 1;
  return memcpy (muster_arena_take (arena, size, 1), text, size);
}

static Muster__Member *
describe_member (const MusterMember *member, const MusterAnnouncement *chief, MusterArena *arena)
{
  Muster__Member *message = muster_arena_alloc (arena, sizeof *message);
  g_autofree char *why = muster_member_why (member);
  muster__member__init (message);
  message->task = member->task;
  message->who = member->who;
  message->slot = (gint32)member->slot;
  message->chief = is_chief (member, chief);
  message->age_us = member->age_us;
  message->batches = member->n_batches;
  message->batches_per_second = member->batches_per_second;
  if (why != NULL)
    message->why = keep_text (why, arena);
  message->left_age_us = member->left_age_us;
  return message;
}

static Muster__Member **
describe_members (GPtrArray *members, const MusterAnnouncement *chief, MusterArena *arena)
{
  Muster__Member **messages = muster_arena_alloc (arena, members->len * sizeof *messages);
  for (guint i = 0; i < members->len; i++)
    messages[i] = describe_member (members->pdata[i], chief, arena);
  return messages;
}

static Muster__Members *
describe_job (const MusterMembers *job, MusterServer *server, MusterArena *arena)
{
  Muster__Members *message = muster_arena_alloc (arena, sizeof *message);
  g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (server->registry, job->model);
  const gboolean is_over = chief != NULL && chief->phase == MUSTER_CHIEF_OVER;
  muster__members__init (message);
  message->model = job->model;
  message->n_slots = (gint32)job->n_slots;
  message->n = (gint32)job->n_members;
  message->min_tasks = (gint32)job->min_tasks;
  message->waiting = !is_over && job->n_members < job->min_tasks;
  message->members = describe_members (job->members, chief, arena);
  message->n_members = job->members->len;
  message->left = describe_members (job->left, NULL, arena);
  message->n_left = job->left->len;
  return message;
}

static void
fill_jobs (Muster__StatusResponse *response, Lists *lists, MusterServer *server)
{
  lists->jobs = muster_member_registry_list (server->members, MAX_MEMBERS);
  MusterArena *arena = lists->arena = muster_arena_new ();
  const guint n = lists->jobs->len;
  response->jobs = muster_arena_alloc (arena, n * sizeof *response->jobs);
  response->n_jobs = n;
  for (guint i = 0; i < n; i++)
    response->jobs[i] = describe_job (lists->jobs->pdata[i], server, arena);
}

static gboolean
has_members (const Muster__StatusResponse *response, const char *model)
{
  for (gsize i = 0; i < response->n_jobs; i++)
    if (strcmp (response->jobs[i]->model, model) == 0)
      return TRUE;
  return FALSE;
}

/* After fill_jobs (). */
static void
fill_tasks (Muster__StatusResponse *response, Lists *lists, MusterServer *server, gint64 now_us)
{
  lists->tasks = muster_sessions_tasks (server->sessions, MAX_MEMBERS);
  const guint n = lists->tasks->len;
  response->tasks = muster_arena_alloc (lists->arena, n * sizeof *response->tasks);
  for (guint i = 0; i < n; i++) {
    const MusterServedTask *task = lists->tasks->pdata[i];
    if (has_members (response, task->model))
      continue;
    Muster__Task *message = muster_arena_alloc (lists->arena, sizeof *message);
    muster__task__init (message);
    message->task = task->task;
    message->who = task->who;
    message->model = task->model;
    message->age_us = now_us - task->since_us;
    response->tasks[response->n_tasks++] = message;
  }
}

/* Returns since when a chief trains whose job doesn't wait for tasks, and whose tasks don't hold
 * for a drain; now_us if none does. */
static gint64
training_since_us (MusterServer *server, gint64 now_us)
{
  g_autoptr (GPtrArray) chiefs = muster_chief_registry_list (server->registry);
  gint64 since_us = now_us;
  for (guint i = 0; i < chiefs->len; i++) {
    const MusterAnnouncement *chief = chiefs->pdata[i];
    if (chief->alive && chief->phase == MUSTER_CHIEF_TRAINING &&
        chief->drain != MUSTER_DRAIN_SAVED &&
        !muster_readiness_hub_waits_for_tasks (server->hub, chief->model))
      since_us = MIN (since_us, now_us - chief->phase_age_us);
  }
  return since_us;
}

gint64
muster_server_stalled_us (MusterServer *server)
{
  const gint64 now_us = muster_clock_now_us (server->clock);
  const gint64 last_us = muster_step_meter_last_us (server->steps);
  const gint64 idle_us =
      last_us > 0 ? now_us - MAX (last_us, training_since_us (server, now_us)) : 0;
  return MAX (muster_step_meter_stalled_us (server->steps, now_us), idle_us);
}

static void
fill_steps (Muster__StatusResponse *response, MusterServer *server, gint64 now_us)
{
  gint64 durations_us[2];
  response->steps = (gint64)muster_step_meter_n_steps (server->steps);
  response->steps_per_second =
      muster_step_meter_per_second (server->steps, now_us, server->started_us);
  muster_step_meter_quantiles (server->steps, (const double[]){0.5, 1}, 2, durations_us);
  response->median_step_us = durations_us[0];
  response->longest_step_us = durations_us[1];
  response->stalled_us = muster_server_stalled_us (server);
}

MusterServerStatus *
muster_server_status_new (MusterServer *server)
{
  MusterServerStatus *self = g_new0 (MusterServerStatus, 1);
  Muster__StatusResponse *response = &self->response;
  gint64 now_us = muster_clock_now_us (server->clock);
  muster__status_response__init (response);
  response->version = MUSTER_VERSION;
  response->uptime_us = now_us - server->started_us;
  response->sessions = (gint32)muster_sessions_size (server->sessions);
  response->watchers = (gint32)muster_readiness_service_n_watchers (server->readiness);
  response->draining_us = muster_server_drain_left_us (server);
  response->memory_bytes = muster_server_resident_bytes ();
  response->changes = muster_status_watch_n_changes (server->status_watch);
  response->master = (char *)muster_master_target (server->master);
  self->lists.master_failure = muster_server_master_failure (server);
  response->master_failure = muster_server_text (self->lists.master_failure);
  fill_steps (response, server, now_us);
  fill_limits (response, &self->lists, server->limits);
  fill_waiters (response, &self->lists, server->readiness);
  fill_models (response, &self->lists, server);
  fill_jobs (response, &self->lists, server);
  fill_tasks (response, &self->lists, server, now_us);
  return self;
}

void
muster_server_status_free (MusterServerStatus *self)
{
  if (self == NULL)
    return;
  lists_clear (&self->lists);
  g_free (self);
}

const Muster__StatusResponse *
muster_server_status_read (const MusterServerStatus *self)
{
  return &self->response;
}

static void
answer_status (MusterRpcCall *call, MusterServer *server)
{
  g_autoptr (MusterServerStatus) present = muster_server_status_new (server);
  muster_server_reply (call, &present->response.base);
}

static void
status (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__StatusRequest *read =
      muster_server_unpack (call, request, &muster__status_request__descriptor, arena);
  if (read == NULL)
    return;
  if (read->after == 0)
    answer_status (call, server);
  else
    muster_status_watch_add (server->status_watch, call, read->after, read->wait_us);
}

/* Neither method blocks, so neither uses the handler pool: leases are renewed even if all its
 * threads run steps. */
void
muster_status_service_enter (MusterServer *server)
{
  server->status_watch = muster_status_watch_new (server, answer_status);
  muster_rpc_server_add_method (server->rpc, "/muster.Readiness/Renew", renew, server);
  muster_rpc_server_add_method (server->rpc, "/muster.Readiness/Status", status, server);
  muster_rpc_server_require (server->rpc, "/muster.Readiness/Status", MUSTER_ROLE_READ);
}
