// SPDX-License-Identifier: Apache-2.0
/* Claim: chiefs claim models, and keep the lease while their stream is open. Granting a claim
 * fences the chief before: its session is closed before the new one hears of the grant. The rules
 * of claiming are in ready/chief_registry.c. */
#include "server/services/announce_service_private.h"

#include "base/log_bounded_private.h"
#include "server/core/drain.h"
#include "server/core/service.h"
#include "server/services/announcement.h"
#include "server/services/claim_request.h"
#include "server/services/readiness_service.h"

/* Timeout for the positioned steps of the chief that a claim replaces; and on a cluster, where the
 * new chief itself waits for them as long (MUSTER_POSITION_STEP_US). */
#define SETTLE            (10 * MUSTER_SECOND)
#define SETTLE_ON_CLUSTER (60 * MUSTER_SECOND)

/* Returns TRUE if the lease is another caller's, or was taken from another one earlier:
 * returning to a lease that was taken doesn't make it one's own. */
static gboolean
ousts (const MusterChiefLease *lease, const MusterChiefLease *loser, gboolean was_alive)
{
  if (loser == NULL)
    return FALSE;
  return g_str_equal (lease->caller, loser->caller) ? loser->has_ousted : was_alive;
}

/* Returns TRUE if the claim takes the model from nobody but its own chief; else *chief (transfer
 * full) is the other. Call with the lock held. */
static gboolean
is_own (MusterAnnounceService *self, const Muster__ClaimRequest *request,
        MusterAnnouncement **chief)
{
  *chief = request->take_over ? muster_chief_registry_find (self->server->registry, request->model)
                              : NULL;
  return *chief == NULL || muster_chief_lease_is_of (
                               g_hash_table_lookup (self->leases, request->model), request->proof);
}

/* What the chief before this one is told (transfer full). */
static GError *
lost_error (const MusterAnnouncement *chief)
{
  g_autofree char *text = muster_announcement_describe (chief);
  return g_error_new (MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                      "the lease on '%s' was lost: its chief is %s, of epoch %" G_GINT64_FORMAT
                      " now",
                      chief->model, text, chief->epoch);
}

/* A claim that is made again takes the model from no other chief, whatever its role. */
static gboolean
is_lost (const Muster__ClaimRequest *request)
{
  return request->again && *request->proof != '\0';
}

static gboolean
may_take_from (MusterRpcCall *call, const Muster__ClaimRequest *request,
               const MusterAnnouncement *chief, GError **error)
{
  if (is_lost (request)) {
    g_propagate_error (error, lost_error (chief));
    return FALSE;
  }
  if (muster_rpc_call_role (call) >= MUSTER_ROLE_ADMIN)
    return TRUE;
  g_autofree char *text = muster_announcement_describe (chief);
  return muster_fail (error, MUSTER_ERROR_PERMISSION_DENIED,
                      "taking '%s' from its chief, %s, needs the role 'admin'", chief->model, text);
}

/* Grants the lease. Call with the lock held. *loser (out) (nullable) is the previous lease; *orphan
 * (nullable out) is its session, which starts no further steps. The caller owns both. */
static gboolean
grant (MusterAnnounceService *self, MusterChiefLease *lease, const Muster__ClaimRequest *request,
       MusterGraph *graph, MusterAnnouncement **before, MusterChiefLease **loser,
       MusterServed **orphan, GError **error)
{
  MusterClaim claim = {
      .model = request->model,
      .task = request->task,
      .epoch = request->epoch,
      .ready_op = lease->ready_op,
      .take_over = request->take_over,
      .spares_living = request->spares_living,
  };
  if (self->stopped) {
    g_propagate_error (error, muster_server_stopping_error ());
    return FALSE;
  }
  g_autoptr (MusterAnnouncement) chief = NULL;
  if (!muster_server_admits (self->server, error) ||
      (!is_own (self, request, &chief) && !may_take_from (lease->call, request, chief, error)))
    return FALSE;
  lease->epoch = muster_chief_registry_claim (self->server->registry, &claim, request->who, graph,
                                              before, error);
  if (lease->epoch == 0)
    return FALSE;
  lease->claim = muster_chief_registry_n_claims (
      self->server->registry); /* no other claim can be made in the meantime */
  muster_chief_registry_set_elsewhere (self->server->registry, lease->model,
                                       *lease->session_handle == '\0');
  g_hash_table_steal_extended (self->leases, lease->model, NULL, (gpointer *)loser);
  lease->has_ousted = ousts (lease, *loser, *before != NULL && (*before)->alive);
  g_hash_table_insert (self->leases, lease->model, muster_chief_lease_ref (lease));
  if (*loser != NULL && (*before == NULL || (*before)->drain != MUSTER_DRAIN_SAVED))
    lease->hold_us = (*loser)->hold_us; /* what the chief before was asked for isn't done */
  if (*loser != NULL && !g_str_equal ((*loser)->session_handle, lease->session_handle))
    *orphan = muster_sessions_take (self->server->sessions, (*loser)->session_handle, NULL);
  return TRUE;
}

/* Cancels the steps of a chief that was replaced, except positioned ones, which have so long to end
 * whole. */
static void
close_orphan (MusterRpcCall *call, MusterServed *orphan, gint64 timeout_us)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  (void)muster_served_settle (orphan, muster_deadline_after (now_us, timeout_us),
                              muster_rpc_call_stop_cancellable (call));
  muster_session_close_quietly (orphan->session);
}

/* Ends the loser's lease and its session's steps before the grant is sent. FALSE: positioned ones
 * are left to end beside the new chief. */
static gboolean
fence (MusterAnnounceService *self, MusterRpcCall *call, MusterChiefLease *loser,
       MusterServed *orphan)
{
  g_autoptr (MusterAnnouncement) chief =
      muster_chief_registry_find (self->server->registry, loser->model);
  g_autofree char *text = muster_announcement_describe (chief);
  g_autoptr (GError) error = lost_error (chief);
  muster_log_at_most (MUSTER_LOG_EVENTS, G_LOG_LEVEL_INFO, "fenced", "MUSTER_MODEL", loser->model,
                      "MUSTER_EPOCH", MUSTER_LOG_INT (loser->epoch), "MUSTER_SESSION",
                      loser->session_handle, "MESSAGE",
                      "the chief of epoch %" G_GINT64_FORMAT " lost '%s' to %s%s", loser->epoch,
                      loser->model, text, orphan != NULL ? "; its session was closed" : "");
  muster_chief_lease_end (loser, error);
  muster_readiness_tracker_stop (
      g_steal_pointer (&loser->tracker)); /* it is no longer in the table */
  if (orphan == NULL)
    return TRUE;
  muster_readiness_service_session_gone (self->server->readiness, orphan);
  if (self->server->is_of_cluster && !muster_served_settle (orphan, 0, NULL))
    return FALSE;
  close_orphan (call, orphan, SETTLE);
  return TRUE;
}

/* The lease begins with the grant, however long the loser's step was waited for. It isn't renewed
 * if yet another chief has claimed the model. */
static void
renew (MusterAnnounceService *self, const MusterChiefLease *lease)
{
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  announcement.model = lease->model;
  announcement.epoch = lease->epoch;
  (void)muster_chief_registry_announce (self->server->registry, &announcement, NULL);
  muster_announce_service_attend (self);
}

static void
log_release (const MusterChiefLease *lease)
{
  muster_log_at_most (MUSTER_LOG_EVENTS, G_LOG_LEVEL_INFO, "chief-left", "MUSTER_MODEL",
                      lease->model, "MUSTER_EPOCH", MUSTER_LOG_INT (lease->epoch), "MUSTER_SESSION",
                      lease->session_handle, "MESSAGE",
                      "the chief of '%s' ended, or released its lease", lease->model);
}

static void
on_caller_gone (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  MusterChiefLease *lease = data;
  MusterAnnounceService *self = lease->service;
  g_autoptr (GError) error =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "the caller released the lease");
  /* Taken under the lock, so that a claim with the same epoch comes entirely before or after it. */
  g_mutex_lock (&self->lock);
  const gboolean is_last = g_hash_table_lookup (self->leases, lease->model) == lease;
  if (is_last)
    muster_chief_registry_release (self->server->registry, lease->model, lease->epoch);
  g_mutex_unlock (&self->lock);
  if (is_last && !g_atomic_int_get (&self->server->is_stopping))
    log_release (lease);
  muster_chief_lease_end (lease, error);
}

static void
log_refusal (const Muster__ClaimRequest *request, const GError *error)
{
  muster_log_at_most (0, G_LOG_LEVEL_INFO, "claim-refused", "MUSTER_MODEL", request->model,
                      "MUSTER_TASK", request->task, "MUSTER_CLIENT", request->who, "MESSAGE",
                      "refused a chief: %s", error->message);
}

static void
log_claim (const MusterChiefLease *lease, const Muster__ClaimRequest *request,
           const MusterAnnouncement *before)
{
  if (!muster_log_enabled (G_LOG_LEVEL_INFO))
    return;
  g_autofree char *stood =
      before != NULL ? muster_announcement_describe (before) : g_strdup ("none");
  muster_log_at_most (MUSTER_LOG_EVENTS, G_LOG_LEVEL_INFO, "claim", "MUSTER_MODEL", lease->model,
                      "MUSTER_TASK", request->task, "MUSTER_CLIENT", request->who, "MUSTER_EPOCH",
                      MUSTER_LOG_INT (lease->epoch), "MUSTER_SESSION", lease->session_handle,
                      "MESSAGE", "%s claimed '%s'; the chief before: %s",
                      *request->who != '\0' ? request->who : "a chief", lease->model, stood);
}

/* Ends the leases on models that the registry has forgotten, which a claim made it do: its limit of
 * models is theirs. */
static void
forget_leases (MusterAnnounceService *self)
{
  g_autoptr (GError) error =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "the model was forgotten");
  g_autoptr (GPtrArray) forgotten = g_ptr_array_new_with_free_func (muster_chief_lease_unref);
  GHashTableIter iter;
  gpointer model, value;
  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->leases);
  while (g_hash_table_size (self->leases) >
             muster_chief_registry_n_models (self->server->registry) &&
         g_hash_table_iter_next (&iter, &model, &value))
    if (!muster_chief_registry_knows (self->server->registry, model)) {
      g_ptr_array_add (forgotten, muster_chief_lease_ref (value));
      g_hash_table_iter_remove (&iter);
    }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < forgotten->len; i++) {
    MusterChiefLease *lease = forgotten->pdata[i];
    muster_chief_lease_end (lease, error);
    muster_readiness_tracker_stop (g_steal_pointer (&lease->tracker));
  }
}

static void
open_claim (MusterAnnounceService *self, MusterRpcCall *call, const Muster__ClaimRequest *request,
            MusterGraph *graph)
{
  /* Once granted, any thread may end the lease and release the call. */
  g_autoptr (MusterRpcCall) held = muster_rpc_call_ref (call);
  g_autoptr (MusterChiefLease) lease = muster_chief_lease_new (self, call, request);
  g_autoptr (MusterChiefLease) loser = NULL;
  g_autoptr (MusterServed) orphan = NULL;
  g_autoptr (MusterAnnouncement) before = NULL;
  g_autoptr (GError) error = NULL;
  g_mutex_lock (&self->lock);
  gboolean is_granted = grant (self, lease, request, graph, &before, &loser, &orphan, &error);
  g_mutex_unlock (&self->lock);
  if (!is_granted) {
    log_refusal (request, error);
    muster_chief_lease_end (lease, error);
    return;
  }
  forget_leases (self);
  log_claim (lease, request, before);
  if (lease->has_ousted)
    muster_server_audit (call, "Claim", lease->model, NULL);
  muster_announce_service_attend (self);
  const gboolean is_fenced = loser == NULL || fence (self, call, loser, orphan);
  if (loser != NULL)
    renew (self, lease);
  muster_announce_service_follow (
      self, lease->model); /* a chief that reconnects may find its model prepared */
  muster_chief_lease_send_grant (lease, before);
  g_cancellable_connect (muster_rpc_call_cancellable (call), G_CALLBACK (on_caller_gone),
                         muster_chief_lease_ref (lease), muster_chief_lease_unref);
  if (!is_fenced)
    close_orphan (call, orphan, SETTLE_ON_CLUSTER);
}

/* Checks the role: a chief may take its own model over from itself; taking it from another one
 * needs an administrator. A claim that then waits is checked by its grant, too. */
static gboolean
may_claim (MusterServer *server, MusterRpcCall *call, const Muster__ClaimRequest *request,
           GError **error)
{
  g_autoptr (MusterAnnouncement) chief = NULL;
  MusterAnnounceService *self = server->announcing;
  g_mutex_lock (&self->lock);
  const gboolean is_its = is_own (self, request, &chief);
  g_mutex_unlock (&self->lock);
  if (is_its)
    return TRUE;
  g_autoptr (GError) refused = NULL;
  (void)may_take_from (call, request, chief, &refused);
  if (!is_lost (request))
    muster_server_audit (call, "Claim", chief->model, refused);
  if (refused == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&refused));
  return FALSE;
}

static void
claim (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = NULL;
  const Muster__ClaimRequest *read =
      muster_server_unpack (call, request, &muster__claim_request__descriptor, arena);
  if (read == NULL)
    return;
  if (muster_chief_registry_check_text ("ready op", read->ready_op, &error) &&
      muster_chief_registry_check_text ("claim's secret", read->proof, &error) &&
      may_claim (server, call, read, &error))
    graph = muster_server_claimants_graph (server, read, &error);
  if (error == NULL) {
    muster_server_wait_for_return (server, call, read);
    muster_server_wait_for_end (server, call, read);
    open_claim (server->announcing, call, read, graph);
  } else {
    muster_rpc_call_finish (call, error);
  }
}

void
muster_claim_service_enter (MusterAnnounceService *self)
{
  muster_server_add_method (self->server, "/muster.Readiness/Claim", claim);
}
