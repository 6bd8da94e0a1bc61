// SPDX-License-Identifier: Apache-2.0
/* Join and Report: tasks join a job, keep their slot while their stream is open, and report
 * batches. The rules are in ready/member_registry.c, the rosters in member_stream.c. */
#include "server/services/member_service_private.h"

#include "base/log_bounded_private.h"
#include "server/core/drain.h"
#include "server/core/service.h"
#include "server/services/health_service.h"
#include "server/services/status_watch.h"

/* --- joining --- */

typedef struct {
  MusterMemberService *service; /* (not owned) */
  guint64 id;
  const MusterRpcCall *call; /* (not owned) only compared */
} Caller;

static void
on_caller_gone (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  const Caller *caller = data;
  MusterMemberService *self = caller->service;
  g_autoptr (GError) error =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "the caller ended it");
  /* Taken under the lock, so that a member that comes back comes entirely before or after it. */
  g_mutex_lock (&self->lock);
  g_autoptr (MusterMemberStream) stream =
      muster_member_stream_take_locked (self, caller->id, caller->call);
  if (stream != NULL && !g_atomic_int_get (&self->server->is_stopping))
    muster_member_registry_remove (self->server->members, caller->id, MUSTER_MEMBER_ENDED);
  g_mutex_unlock (&self->lock);
  muster_member_stream_end (stream, error);
}

/* Adds a member and its stream. *before is the stream of a member that has returned. */
static guint64
admit (MusterMemberService *self, MusterRpcCall *call, const Muster__JoinRequest *read,
       MusterMemberStream **before, GError **error)
{
  const MusterMemberRequest request = {
      .model = read->model,
      .task = read->task,
      .who = read->who,
      .slot = read->slot,
      .n_slots = read->n_slots,
      .id = read->member,
      .n_batches = read->batches,
      .min_tasks = read->min_tasks,
      .is_takeover = read->takeover,
  };
  MusterLimits *limits = self->server->limits;
  guint slot = 0;
  if (self->stopped) {
    g_propagate_error (error, muster_server_stopping_error ());
    return 0;
  }
  if (!muster_server_admits (self->server, error) ||
      !muster_limits_take (limits, MUSTER_LIMIT_WATCHERS, error))
    return 0;
  const guint64 id = muster_member_registry_join (self->server->members, &request, &slot, error);
  if (id == 0) {
    muster_limits_release (limits, MUSTER_LIMIT_WATCHERS);
    return 0;
  }
  MusterMemberStream *stream = g_new0 (MusterMemberStream, 1);
  *stream = (MusterMemberStream){
      .limits = limits, .id = id, .slot = slot, .call = muster_rpc_call_ref (call)};
  g_hash_table_steal_extended (self->streams, &id, NULL, (gpointer *)before);
  g_hash_table_insert (self->streams, &stream->id, stream);
  return id;
}

static void
log_refusal (const Muster__JoinRequest *request, const GError *error)
{
  muster_log_at_most (0, G_LOG_LEVEL_INFO, "join-refused", "MUSTER_MODEL", request->model,
                      "MUSTER_TASK", request->task, "MUSTER_CLIENT", request->who, "MESSAGE",
                      "refused a member: %s", error->message);
}

static void
open_join (MusterMemberService *self, MusterRpcCall *call, const Muster__JoinRequest *request)
{
  /* Once admitted, any thread may end the stream and release the call. */
  g_autoptr (MusterRpcCall) held = muster_rpc_call_ref (call);
  g_autoptr (MusterMemberStream) before = NULL;
  g_autoptr (GError) error = NULL;
  g_mutex_lock (&self->lock);
  const guint64 id = admit (self, call, request, &before, &error);
  g_mutex_unlock (&self->lock);
  if (id == 0) {
    log_refusal (request, error);
    muster_rpc_call_finish (call, error);
    return;
  }
  g_autoptr (GError) again =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "the member has joined again");
  muster_member_stream_end (before, again);
  muster_member_service_note_change (self, request->model);
  Caller *caller = g_new (Caller, 1);
  *caller = (Caller){self, id, call};
  g_cancellable_connect (muster_rpc_call_cancellable (call), G_CALLBACK (on_caller_gone), caller,
                         g_free);
}

static void
join (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__JoinRequest *read =
      muster_server_unpack (call, request, &muster__join_request__descriptor, arena);
  if (read != NULL)
    open_join (server->membership, call, read);
}

/* --- reporting --- */

static gboolean
take_in (MusterMemberService *self, const Muster__MemberReport *read, GError **error)
{
  if (!muster_member_registry_report (self->server->members, read->member, read->batches, error))
    return FALSE;
  if (!read->leaves)
    return TRUE;
  muster_member_registry_remove (self->server->members, read->member, MUSTER_MEMBER_LEFT);
  g_autoptr (MusterMemberStream) stream = muster_member_stream_take (self, read->member);
  muster_member_stream_end (stream, NULL);
  return TRUE;
}

static void
report (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  const Muster__MemberReport *read =
      muster_server_unpack (call, request, &muster__member_report__descriptor, arena);
  if (read == NULL)
    return;
  if (!take_in (server->membership, read, &error)) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Muster__ReportResponse response = MUSTER__REPORT_RESPONSE__INIT;
  muster_server_reply (call, &response.base);
}

/* --- the service --- */

static void
on_members_changed (const char *model, gboolean is_takeover, gpointer data)
{
  MusterServer *server = data;
  muster_member_service_note_change (server->membership, model);
  if (is_takeover)
    return;
  muster_readiness_hub_members_changed (server->hub, model);
  muster_health_service_note_change (server->health, model);
  muster_status_watch_note (server->status_watch);
}

static void
on_chief_changed (const char *model, gpointer data)
{
  MusterMemberService *self = data;
  g_mutex_lock (&self->lock);
  const gboolean has_members = g_hash_table_size (self->streams) > 0;
  g_mutex_unlock (&self->lock);
  if (has_members)
    muster_member_service_note_change (self, model);
}

MusterMemberService *
muster_member_service_new (MusterServer *server)
{
  MusterMemberService *self = g_new0 (MusterMemberService, 1);
  self->server = server;
  g_mutex_init (&self->lock);
  g_mutex_init (&self->news_lock);
  self->streams =
      g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, muster_member_stream_free);
  self->news = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->alarm = muster_alarm_new (server->clock, "members", muster_member_service_on_alarm, self);
  server->members = muster_member_registry_new (
      server->clock, muster_chief_registry_lease_us (server->registry), on_members_changed, server);
  muster_readiness_hub_set_members (server->hub, server->members);
  muster_readiness_hub_watch_models (server->hub, on_chief_changed, self);
  return self;
}

void
muster_member_service_free (MusterMemberService *self)
{
  if (self == NULL)
    return;
  muster_member_service_stop (self);
  muster_alarm_free (self->alarm);
  muster_member_registry_free (self->server->members);
  g_hash_table_unref (self->streams);
  g_hash_table_unref (self->news);
  g_mutex_clear (&self->lock);
  g_mutex_clear (&self->news_lock);
  g_free (self);
}

/* Neither method blocks, so neither uses the handler pool: memberships are renewed even if all
 * its threads run steps. */
void
muster_member_service_enter (MusterMemberService *self)
{
  MusterServer *server = self->server;
  muster_rpc_server_add_method (server->rpc, "/muster.Readiness/Join", join, server);
  muster_rpc_server_add_method (server->rpc, "/muster.Readiness/Report", report, server);
}

void
muster_member_service_stop (MusterMemberService *self)
{
  g_autoptr (GError) error = muster_server_stopping_error ();
  GHashTableIter iter;
  gpointer stream;
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_autoptr (GHashTable) ending = self->streams;
  self->streams =
      g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, muster_member_stream_free);
  g_mutex_unlock (&self->lock);
  muster_alarm_stop (self->alarm);
  g_hash_table_iter_init (&iter, ending);
  while (g_hash_table_iter_next (&iter, NULL, &stream))
    muster_member_stream_end (stream, error);
}
