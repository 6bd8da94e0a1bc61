// SPDX-License-Identifier: Apache-2.0
#include "server/services/member_service.h"

#include "base/log.h"
#include "rpc/proto/muster.pb-c.h"
#include "server/core/alarm.h"
#include "server/core/drain.h"
#include "server/core/server_private.h"
#include "server/core/service.h"
#include "server/services/status_watch.h"

/* A member that reads its rosters more slowly than they come gets only the last of those that come
 * meanwhile; it is looked at again after this time. */
#define MAX_QUEUED     4
#define LOOKS_AGAIN_US (50 * MUSTER_MILLISECOND)

struct _MusterMemberService {
  MusterServer *server; /* (not owned) */
  MusterAlarm *alarm;   /* (owned) sends rosters, and removes silent members */

  GMutex lock;
  GHashTable *streams; /* (element-type guint64 Stream) owned; the keys are the values'; of each
                          member; guarded by lock */
  gboolean stopped;    /* guarded by lock */

  GMutex news_lock; /* no other lock is taken while it is held */
  GHashTable
      *news; /* (element-type utf8) owned: the models that have changed; guarded by news_lock */
};

/* A member's Join, until it is ended. Whoever removes it from the table ends it. It counts as a
 * watcher. */
typedef struct {
  MusterLimits *limits; /* (not owned) */
  guint64 id;
  guint slot;
  MusterRpcCall *call; /* (owned) */
  GBytes *told;        /* (owned) (nullable) the last roster sent */
} Stream;

static void
stream_free (gpointer data)
{
  Stream *self = data;
  if (self == NULL)
    return;
  muster_limits_release (self->limits, MUSTER_LIMIT_WATCHERS);
  muster_rpc_call_unref (self->call);
  g_clear_pointer (&self->told, g_bytes_unref);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Stream, stream_free)

static GError *
stopping_error (void)
{
  return g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "The server is stopping");
}

static void
end_stream (Stream *stream, const GError *error)
{
  if (stream != NULL)
    muster_rpc_call_finish (stream->call, error);
}

/* Takes a stream out of the table; only that of call, if it isn't NULL. (transfer full) (nullable)
 */
static Stream *
take_stream (MusterMemberService *self, guint64 id, const MusterRpcCall *call)
{
  Stream *stream = NULL;
  g_mutex_lock (&self->lock);
  Stream *found = g_hash_table_lookup (self->streams, &id);
  if (found != NULL && (call == NULL || found->call == call)) {
    g_hash_table_steal (self->streams, &id);
    stream = found;
  }
  g_mutex_unlock (&self->lock);
  return stream;
}

/* --- rosters --- */

static void
add_news (MusterMemberService *self, const char *model)
{
  g_mutex_lock (&self->news_lock);
  g_hash_table_add (self->news, g_strdup (model));
  g_mutex_unlock (&self->news_lock);
}

static void
note_change (MusterMemberService *self, const char *model)
{
  add_news (self, model);
  muster_alarm_set (self->alarm, 0);
}

static void
on_members_changed (const char *model, gboolean is_takeover, gpointer data)
{
  MusterServer *server = data;
  note_change (server->membership, model);
  if (is_takeover)
    return;
  muster_readiness_hub_members_changed (server->hub, model);
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
    note_change (self, model);
}

/* What all members of a model are told, without what a grant adds. */
static void
fill_roster (Muster__Roster *roster, const MusterMemberCounts *counts, GArray *slots,
             const MusterAnnouncement *chief)
{
  muster__roster__init (roster);
  roster->n_slots = (gint32)counts->n_slots;
  roster->tasks = (gint32)counts->n_tasks;
  roster->min_tasks = (gint32)counts->min_tasks;
  roster->taken = (guint32 *)slots->data;
  roster->n_taken = slots->len;
  roster->gathering = counts->is_gathering;
  if (chief == NULL)
    return;
  roster->chief_alive = chief->alive;
  roster->epoch = chief->epoch;
  roster->over = chief->phase == MUSTER_CHIEF_OVER;
}

static void
send_bytes (Stream *stream, GBytes *bytes)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_rope_append (&rope, bytes);
  muster_rpc_call_send (stream->call, &rope);
}

static void
send_grant (MusterMemberService *self, Stream *stream, const Muster__Roster *roster)
{
  Muster__Roster grant = *roster;
  grant.member = stream->id;
  grant.slot = (gint32)stream->slot;
  grant.lease_us = muster_member_registry_lease_us (self->server->members);
  g_autoptr (GBytes) packed = muster_pack (&grant.base);
  send_bytes (stream, packed);
}

/* FALSE if it can't be told at present. */
static gboolean
send_roster (MusterMemberService *self, Stream *stream, const Muster__Roster *roster,
             GBytes *packed)
{
  if (muster_rpc_call_n_queued (stream->call) >= MAX_QUEUED)
    return FALSE;
  if (stream->told == NULL)
    send_grant (self, stream, roster);
  else if (!g_bytes_equal (stream->told, packed))
    send_bytes (stream, packed);
  g_clear_pointer (&stream->told, g_bytes_unref);
  stream->told = g_bytes_ref (packed);
  return TRUE;
}

/* FALSE if some can't be told at present. */
static gboolean
tell_members (MusterMemberService *self, const char *model)
{
  gboolean is_done = TRUE;
  MusterServer *server = self->server;
  g_autoptr (GArray) slots = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint64));
  MusterMemberCounts counts;
  muster_member_registry_roster (server->members, model, slots, ids, &counts);
  g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (server->registry, model);
  Muster__Roster roster;
  fill_roster (&roster, &counts, slots, chief);
  g_autoptr (GBytes) packed = muster_pack (&roster.base);
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < ids->len; i++) {
    Stream *stream = g_hash_table_lookup (self->streams, &g_array_index (ids, guint64, i));
    if (stream != NULL)
      is_done &= send_roster (self, stream, &roster, packed);
  }
  g_mutex_unlock (&self->lock);
  return is_done;
}

/* FALSE if some members have to be looked at again. */
static gboolean
tell_news (MusterMemberService *self)
{
  gboolean is_done = TRUE;
  g_mutex_lock (&self->news_lock);
  g_autoptr (GHashTable) news = self->news;
  self->news = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_mutex_unlock (&self->news_lock);
  GHashTableIter iter;
  gpointer model;
  g_hash_table_iter_init (&iter, news);
  while (g_hash_table_iter_next (&iter, &model, NULL))
    if (!tell_members (self, model)) {
      is_done = FALSE;
      add_news (self, model);
    }
  return is_done;
}

static gint64
expire (MusterMemberService *self)
{
  g_autoptr (GArray) gone = g_array_new (FALSE, FALSE, sizeof (guint64));
  const gint64 next_us = muster_member_registry_expire (self->server->members, gone);
  g_autofree char *lease =
      muster_format_duration (muster_member_registry_lease_us (self->server->members));
  g_autoptr (GError) error =
      g_error_new (MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                   "the membership was lost: the server heard nothing of it for %s", lease);
  for (guint i = 0; i < gone->len; i++) {
    g_autoptr (Stream) stream = take_stream (self, g_array_index (gone, guint64, i), NULL);
    end_stream (stream, error);
  }
  return next_us;
}

static gint64
on_alarm (gpointer data)
{
  MusterMemberService *self = data;
  const gint64 next_us = expire (self);
  const gint64 now_us = muster_clock_now_us (self->server->clock);
  return tell_news (self) ? next_us : MIN (next_us, muster_deadline_after (now_us, LOOKS_AGAIN_US));
}

/* --- joining --- */

typedef struct {
  MusterMemberService *service; /* (not owned) */
  guint64 id;
  const MusterRpcCall *call; /* (not owned) only to compare */
} Caller;

static void
on_caller_gone (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  const Caller *caller = data;
  MusterMemberService *self = caller->service;
  g_autoptr (GError) error =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "the caller ended it");
  g_autoptr (Stream) stream = take_stream (self, caller->id, caller->call);
  if (stream == NULL)
    return;
  if (!g_atomic_int_get (&self->server->is_stopping))
    muster_member_registry_remove (self->server->members, caller->id, MUSTER_MEMBER_ENDED);
  end_stream (stream, error);
}

/* Adds a member and its stream. *before is the stream of one that has come back. */
static guint64
admit (MusterMemberService *self, MusterRpcCall *call, const Muster__JoinRequest *read,
       Stream **before, GError **error)
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
    g_propagate_error (error, stopping_error ());
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
  Stream *stream = g_new0 (Stream, 1);
  *stream = (Stream){.limits = limits, .id = id, .slot = slot, .call = muster_rpc_call_ref (call)};
  g_hash_table_steal_extended (self->streams, &id, NULL, (gpointer *)before);
  g_hash_table_insert (self->streams, &stream->id, stream);
  return id;
}

static void
log_refusal (const Muster__JoinRequest *request, const GError *error)
{
  static MusterLogLimit limit;
  char left_out[MUSTER_LOG_COUNT_SIZE];
  if (!muster_log_bounded (G_LOG_LEVEL_INFO, &limit, left_out))
    return;
  muster_log (G_LOG_LEVEL_INFO, "join-refused", "MUSTER_MODEL", request->model, "MUSTER_TASK",
              request->task, "MUSTER_CLIENT", request->who, "MUSTER_LEFT_OUT", left_out, "MESSAGE",
              "refused a member: %s", error->message);
}

static void
open_join (MusterMemberService *self, MusterRpcCall *call, const Muster__JoinRequest *request)
{
  /* Once admitted, any thread may end the stream and release the call. */
  g_autoptr (MusterRpcCall) held = muster_rpc_call_ref (call);
  g_autoptr (Stream) before = NULL;
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
  end_stream (before, again);
  note_change (self, request->model);
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
  g_autoptr (Stream) stream = take_stream (self, read->member, NULL);
  end_stream (stream, NULL);
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

MusterMemberService *
muster_member_service_new (MusterServer *server)
{
  MusterMemberService *self = g_new0 (MusterMemberService, 1);
  self->server = server;
  g_mutex_init (&self->lock);
  g_mutex_init (&self->news_lock);
  self->streams = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, stream_free);
  self->news = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->alarm = muster_alarm_new (server->clock, "members", on_alarm, self);
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

/* Neither blocks, so neither uses the handler pool: memberships are renewed even if all its threads
 * are in steps. */
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
  g_autoptr (GError) error = stopping_error ();
  GHashTableIter iter;
  gpointer stream;
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_autoptr (GHashTable) ending = self->streams;
  self->streams = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, stream_free);
  g_mutex_unlock (&self->lock);
  muster_alarm_stop (self->alarm);
  g_hash_table_iter_init (&iter, ending);
  while (g_hash_table_iter_next (&iter, NULL, &stream))
    end_stream (stream, error);
}
