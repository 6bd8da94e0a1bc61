// SPDX-License-Identifier: Apache-2.0
/* A granted Claim, and what the chief hears on its stream. */
#include "server/services/announce_service_private.h"

#include "server/core/drain.h"
#include "server/core/service.h"
#include "server/services/announcement.h"
#include "server/services/claim_request.h"

MusterChiefLease *
muster_chief_lease_new (MusterAnnounceService *service, MusterRpcCall *call,
                        const Muster__ClaimRequest *request)
{
  MusterChiefLease *lease = g_new0 (MusterChiefLease, 1);
  g_atomic_ref_count_init (&lease->refs);
  g_mutex_init (&lease->lock);
  lease->service = service;
  lease->model = g_strdup (request->model);
  lease->session_handle = g_strdup (request->session_handle);
  lease->caller = muster_rpc_call_caller (call);
  lease->proof = g_strdup (request->proof);
  lease->ready_op = *request->ready_op != '\0' ? g_strdup (request->ready_op) : NULL;
  lease->call = muster_rpc_call_ref (call);
  return lease;
}

MusterChiefLease *
muster_chief_lease_ref (MusterChiefLease *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_chief_lease_unref (gpointer data)
{
  MusterChiefLease *self = data;
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->call, muster_rpc_call_unref);
  g_free (self->model);
  g_free (self->session_handle);
  g_free (self->caller);
  g_free (self->proof);
  g_free (self->ready_op);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* Releases the call, because the call holds the cancellable, which holds the lease. */
void
muster_chief_lease_end (MusterChiefLease *lease, const GError *error)
{
  g_mutex_lock (&lease->lock);
  g_autoptr (MusterRpcCall) call = g_steal_pointer (&lease->call);
  g_mutex_unlock (&lease->lock);
  if (call != NULL)
    muster_rpc_call_finish (call, error);
}

gboolean
muster_chief_lease_is_of (const MusterChiefLease *lease, const char *proof)
{
  return lease == NULL || muster_server_is_proof (proof, lease->proof);
}

static void
send_locked (MusterChiefLease *lease, const Muster__ClaimResponse *response)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&response->base);
  muster_rope_append (&rope, packed);
  if (lease->call != NULL)
    muster_rpc_call_send_state (lease->call, &rope);
}

/* A chief whose steps are elsewhere loses nothing by a stop of this server. */
static gint64
drain_left_us_locked (const MusterChiefLease *lease)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const gint64 stop_us =
      *lease->session_handle != '\0' ? muster_server_drain_left_us (lease->service->server) : 0;
  return MAX (stop_us, lease->hold_us - now_us);
}

void
muster_chief_lease_send_grant (MusterChiefLease *lease, const MusterAnnouncement *before)
{
  Muster__ClaimResponse response = MUSTER__CLAIM_RESPONSE__INIT;
  MusterAnnouncementMessage stood;
  response.epoch = lease->epoch;
  response.lease_us = muster_chief_registry_lease_us (lease->service->server->registry);
  if (before != NULL) {
    muster_server_fill_announcement (&stood, before);
    response.before = &stood.message;
    response.same_graph = before->same_graph;
  }
  g_mutex_lock (&lease->lock);
  response.draining_us = drain_left_us_locked (lease);
  send_locked (lease, &response);
  lease->is_told = TRUE;
  g_mutex_unlock (&lease->lock);
}

void
muster_chief_lease_tell_drain (MusterChiefLease *lease, gint64 hold_us)
{
  Muster__ClaimResponse response = MUSTER__CLAIM_RESPONSE__INIT;
  response.epoch = lease->epoch;
  response.lease_us = muster_chief_registry_lease_us (lease->service->server->registry);
  g_mutex_lock (&lease->lock);
  lease->hold_us = MAX (lease->hold_us, hold_us);
  response.draining_us = drain_left_us_locked (lease);
  if (lease->is_told && response.draining_us > 0)
    send_locked (lease, &response);
  g_mutex_unlock (&lease->lock);
}

gint64
muster_chief_lease_drain_left_us (MusterChiefLease *lease)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lease->lock);
  return drain_left_us_locked (lease);
}
