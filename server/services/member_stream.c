// SPDX-License-Identifier: Apache-2.0
/* The streams of members: the rosters sent on them, and their end. One thread sends all rosters,
 * one for all changes since the last. */
#include "server/services/member_service_private.h"

#include "server/core/service.h"

void
muster_member_stream_free (gpointer stream)
{
  MusterMemberStream *self = stream;
  if (self == NULL)
    return;
  muster_limits_release (self->limits, MUSTER_LIMIT_WATCHERS);
  muster_rpc_call_unref (self->call);
  g_clear_pointer (&self->told, g_bytes_unref);
  g_free (self);
}

MusterMemberStream *
muster_member_stream_take_locked (MusterMemberService *self, guint64 id, const MusterRpcCall *call)
{
  MusterMemberStream *found = g_hash_table_lookup (self->streams, &id);
  if (found == NULL || (call != NULL && found->call != call))
    return NULL;
  g_hash_table_steal (self->streams, &id);
  return found;
}

MusterMemberStream *
muster_member_stream_take (MusterMemberService *self, guint64 id)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return muster_member_stream_take_locked (self, id, NULL);
}

void
muster_member_stream_end (MusterMemberStream *stream, const GError *error)
{
  if (stream != NULL)
    muster_rpc_call_finish (stream->call, error);
}

/* --- rosters --- */

void
muster_member_service_note_change (MusterMemberService *self, const char *model)
{
  g_mutex_lock (&self->news_lock);
  g_hash_table_add (self->news, g_strdup (model));
  g_mutex_unlock (&self->news_lock);
  muster_alarm_set (self->alarm, 0);
}

/* The roster for all members of a model, without the fields of a grant. */
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
send_bytes (MusterMemberStream *stream, GBytes *bytes)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_rope_append (&rope, bytes);
  muster_rpc_call_send_state (stream->call, &rope);
}

static void
send_grant (MusterMemberService *self, MusterMemberStream *stream, const Muster__Roster *roster)
{
  Muster__Roster grant = *roster;
  grant.member = stream->id;
  grant.slot = (gint32)stream->slot;
  grant.lease_us = muster_member_registry_lease_us (self->server->members);
  g_autoptr (GBytes) packed = muster_pack (&grant.base);
  send_bytes (stream, packed);
}

static void
send_roster (MusterMemberService *self, MusterMemberStream *stream, const Muster__Roster *roster,
             GBytes *packed)
{
  if (stream->told == NULL)
    send_grant (self, stream, roster);
  else if (!g_bytes_equal (stream->told, packed))
    send_bytes (stream, packed);
  g_clear_pointer (&stream->told, g_bytes_unref);
  stream->told = g_bytes_ref (packed);
}

static void
tell_members (MusterMemberService *self, const char *model)
{
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
    MusterMemberStream *stream =
        g_hash_table_lookup (self->streams, &g_array_index (ids, guint64, i));
    if (stream != NULL)
      send_roster (self, stream, &roster, packed);
  }
  g_mutex_unlock (&self->lock);
}

static void
tell_news (MusterMemberService *self)
{
  g_mutex_lock (&self->news_lock);
  g_autoptr (GHashTable) news = self->news;
  self->news = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_mutex_unlock (&self->news_lock);
  GHashTableIter iter;
  gpointer model;
  g_hash_table_iter_init (&iter, news);
  while (g_hash_table_iter_next (&iter, &model, NULL))
    tell_members (self, model);
}

/* --- the alarm --- */

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
    g_autoptr (MusterMemberStream) stream =
        muster_member_stream_take (self, g_array_index (gone, guint64, i));
    muster_member_stream_end (stream, error);
  }
  return next_us;
}

gint64
muster_member_service_on_alarm (gpointer service)
{
  MusterMemberService *self = service;
  const gint64 next_us = expire (self);
  tell_news (self);
  return next_us;
}
