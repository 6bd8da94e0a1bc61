// SPDX-License-Identifier: Apache-2.0
#include "tests/master/tiny_registry.h"

#include "base/unpack_private.h"
#include "master/announcement.h"
#include "rpc/proto/muster.pb-c.h"

gpointer
tiny_unpack (const ProtobufCMessageDescriptor *descriptor, GBytes *request, MusterArena *arena)
{
  gsize size;
  gconstpointer data = g_bytes_get_data (request, &size);
  gpointer message = muster_unpack (descriptor, data, size, arena, "request", NULL);
  g_assert (message != NULL);
  return message;
}

void
tiny_fail (MusterRpcCall *call, int code, const char *text)
{
  g_autoptr (GError) error = g_error_new_literal (MUSTER_ERROR, code, text);
  muster_rpc_call_finish (call, error);
}

static void
on_left (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  TinyRegistry *self = data;
  g_async_queue_push (self->left, self);
}

static void
grant (MusterRpcCall *call, const Muster__ClaimRequest *message, gint64 lease_us)
{
  Muster__Announcement before = MUSTER__ANNOUNCEMENT__INIT;
  before.model = message->model;
  before.task = "worker:7";
  before.phase = MUSTER__PHASE__TRAINING;
  before.epoch = message->epoch != 0 ? message->epoch : 3;
  before.step = 40;
  before.durable_step = -5;
  Muster__ClaimResponse response = MUSTER__CLAIM_RESPONSE__INIT;
  response.epoch = message->epoch != 0 ? message->epoch : 4;
  response.lease_us = lease_us;
  response.before = &before;
  g_autoptr (GBytes) bytes = muster_pack (&response.base);
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_rope_append (&rope, bytes);
  muster_rpc_call_send (call, &rope);
}

static void
on_claim (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyRegistry *self = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__ClaimRequest *message =
      tiny_unpack (&muster__claim_request__descriptor, request, arena);
  g_assert (strchr (message->who, ':') != NULL);
  g_mutex_lock (&self->lock);
  int refusal = self->refuse_claim;
  gboolean is_mute = self->is_mute;
  gint64 lease_us = self->lease_us;
  g_mutex_unlock (&self->lock);
  g_async_queue_push (self->asked,
                      g_strdup_printf ("%s %s epoch=%" G_GINT64_FORMAT " %s %s%s", message->model,
                                       message->task, message->epoch, message->session_handle,
                                       message->ready_op, message->take_over ? " take_over" : ""));
  if (refusal != 0) {
    tiny_fail (call, refusal, "worker:1 has it");
    return;
  }
  g_cancellable_connect (muster_rpc_call_cancellable (call), G_CALLBACK (on_left), self, NULL);
  if (!is_mute)
    grant (call, message, lease_us);
  g_async_queue_push (self->open, muster_rpc_call_ref (call));
}

static void
on_announce (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyRegistry *self = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__AnnounceRequest *message =
      tiny_unpack (&muster__announce_request__descriptor, request, arena);
  const Muster__Announcement *announced = message->announcement;
  g_assert_cmpstr (announced->model, ==, "digits");
  g_mutex_lock (&self->lock);
  int refusal = self->refuse_announce;
  int holds = self->holds_announce;
  g_mutex_unlock (&self->lock);
  if (refusal != 0) {
    tiny_fail (call, refusal, "worker:1 has it");
    return;
  }
  g_async_queue_push (
      self->announced,
      g_strdup_printf (
          "epoch=%" G_GINT64_FORMAT " %s step=%" G_GINT64_FORMAT " durable=%" G_GINT64_FORMAT
          " %s%s %s",
          announced->epoch, muster_chief_phase_name ((MusterChiefPhase)announced->phase),
          announced->step, announced->durable_step, announced->durable,
          announced->durable_age_us >= 3600 * MUSTER_SECOND ? " (old)" : "", announced->detail));
  if (holds)
    (void)g_async_queue_timeout_pop (self->answer, 30 * G_USEC_PER_SEC);
  muster_rpc_call_reply (call, NULL);
}

void
tiny_registry_add (TinyRegistry *self, MusterRpcServer *server)
{
  g_mutex_init (&self->lock);
  self->lease_us = 3600 * MUSTER_SECOND;
  self->asked = g_async_queue_new_full (g_free);
  self->announced = g_async_queue_new_full (g_free);
  self->left = g_async_queue_new ();
  self->answer = g_async_queue_new ();
  self->open = g_async_queue_new ();
  muster_rpc_server_add_method (server, "/muster.Readiness/Claim", on_claim, self);
  muster_rpc_server_add_method (server, "/muster.Readiness/Announce", on_announce, self);
}

static void
end (MusterRpcCall *call, const GError *error)
{
  muster_rpc_call_finish (call, error);
  muster_rpc_call_unref (call);
}

void
tiny_registry_stop (TinyRegistry *self)
{
  for (MusterRpcCall *call; (call = g_async_queue_try_pop (self->open)) != NULL;)
    end (call, NULL);
}

void
tiny_registry_clear (TinyRegistry *self)
{
  g_async_queue_unref (self->asked);
  g_async_queue_unref (self->announced);
  g_async_queue_unref (self->answer);
  g_async_queue_unref (self->left);
  g_async_queue_unref (self->open);
  g_mutex_clear (&self->lock);
}

char *
tiny_registry_pop (GAsyncQueue *queue)
{
  return g_async_queue_timeout_pop (queue, 30 * MUSTER_SECOND);
}

void
tiny_registry_end_claim (TinyRegistry *self, int code, const char *text)
{
  MusterRpcCall *call = g_async_queue_timeout_pop (self->open, 30 * MUSTER_SECOND);
  g_autoptr (GError) error = g_error_new_literal (MUSTER_ERROR, code, text);
  g_assert (call != NULL);
  end (call, error);
}

void
tiny_registry_set (TinyRegistry *self, int *which, int value)
{
  g_mutex_lock (&self->lock);
  *which = value;
  g_mutex_unlock (&self->lock);
}
