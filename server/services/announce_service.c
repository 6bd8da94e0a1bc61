// SPDX-License-Identifier: Apache-2.0
/* Claim, Announce and Drain: chiefs claim models, keep the lease while their stream is open, and
 * announce phases. Granting a claim fences the chief before: its session is closed before the new
 * one hears of the grant. The rules of claiming are in ready/chief_registry.c. */
#include "server/services/announce_service.h"

#include "base/log_bounded_private.h"
#include "base/safe_text_private.h"
#include "ready/chief_gate_private.h"
#include "rpc/proto/muster.pb-c.h"
#include "server/core/alarm.h"
#include "server/core/drain.h"
#include "server/core/server_private.h"
#include "server/core/service.h"
#include "server/services/announcement.h"
#include "server/services/claim_request.h"
#include "server/services/readiness_service.h"
#include "server/services/readiness_tracker.h"

/* The number of trackers' sessions that are opened or closed at the same time. */
#define MAX_TRACKER_THREADS 4
/* Timeout for the positioned steps of the chief that a claim replaces; and on a cluster, where the
 * new chief itself waits for them as long (MUSTER_POSITION_STEP_US). */
#define SETTLE            (10 * MUSTER_SECOND)
#define SETTLE_ON_CLUSTER (60 * MUSTER_SECOND)

/* In the log, of a reset's containers. */
#define MAX_CONTAINERS_TEXT 256

struct _MusterAnnounceService {
  MusterServer *server; /* (not owned) */
  MusterReadinessTracking tracking;
  MusterAlarm *alarm; /* (owned) ends expired leases */

  GMutex lock;
  GHashTable *leases; /* (element-type utf8 Lease) owned: the last lease granted for each model of
                         the registry, even if its stream has ended; guarded by lock */
  gboolean stopped;   /* guarded by lock */
};

/* A granted Claim, until either side ends its stream. */
typedef struct {
  gatomicrefcount refs;            /* the table's, the cancellable's, and the handler's */
  MusterAnnounceService *service;  /* (not owned) */
  char *model;                     /* (owned) */
  char *session_handle;            /* (owned) "" if the steps aren't the server's */
  char *caller;                    /* (owned) whose claim it is */
  char *proof;                     /* (owned) the claim's secret; or "" */
  gboolean has_ousted;             /* set by the grant: another caller's living chief */
  char *ready_op;                  /* (owned) (nullable) */
  gint64 epoch;                    /* set by the grant */
  guint64 claim;                   /* set by the grant: the number of the claim in the registry */
  MusterReadinessTracker *tracker; /* (owned) (nullable) guarded by the service's lock */
  gint64 turn;                     /* of its last announcement; guarded by the service's lock */

  GMutex lock;
  MusterRpcCall *call; /* (owned) (nullable) NULL once it has been ended; guarded by lock */
  gboolean is_told;    /* the grant was sent; guarded by lock */
  gint64 hold_us;      /* the chief is asked to save and hold until then; set with both locks */
} Lease;

static Lease *
lease_new (MusterAnnounceService *service, MusterRpcCall *call, const Muster__ClaimRequest *request)
{
  Lease *lease = g_new0 (Lease, 1);
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

static Lease *
lease_ref (Lease *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
lease_unref (gpointer data)
{
  Lease *self = data;
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
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Lease, lease_unref)

/* Ends the stream; only the first call has an effect. It releases the call, because the call
 * holds the cancellable, which holds the lease. */
static void
end_lease (Lease *lease, const GError *error)
{
  g_mutex_lock (&lease->lock);
  g_autoptr (MusterRpcCall) call = g_steal_pointer (&lease->call);
  g_mutex_unlock (&lease->lock);
  if (call != NULL)
    muster_rpc_call_finish (call, error);
}

static GError *
stopping_error (void)
{
  return g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "The server is stopping");
}

/* --- tracking readiness --- */

/* Starts or stops tracking the model's readiness. Call with the lock held. The tracker that is
 * returned (nullable) must be stopped without the lock. */
static MusterReadinessTracker *
follow (MusterAnnounceService *self, Lease *lease, gboolean is_wanted)
{
  if (is_wanted && lease->tracker != NULL && !muster_readiness_tracker_has_failed (lease->tracker))
    return NULL;
  MusterReadinessTracker *before = g_steal_pointer (&lease->tracker);
  g_autoptr (MusterGraph) graph =
      muster_chief_registry_graph (self->server->registry, lease->model);
  if (is_wanted && graph != NULL && !self->stopped)
    lease->tracker = muster_readiness_tracker_new (&self->tracking, lease->model, lease->epoch,
                                                   graph, lease->ready_op);
  return before;
}

/* Tracks the model while the registry says that it is being prepared. Of a job whose steps the
 * server doesn't see, its chief's word is all there is. */
static void
follow_registry (MusterAnnounceService *self, const char *model)
{
  MusterReadinessTracker *before = NULL;
  g_mutex_lock (&self->lock);
  Lease *lease = g_hash_table_lookup (self->leases, model);
  g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (self->server->registry, model);
  const gboolean is_wanted = chief != NULL && chief->prepared && chief->phase != MUSTER_CHIEF_OVER;
  const gboolean is_coordinated = lease != NULL && *lease->session_handle == '\0';
  const gboolean is_ready = is_wanted && muster_chief_has_session (chief);
  const gint64 epoch = lease != NULL ? lease->epoch : 0;
  if (lease != NULL && chief != NULL && !is_coordinated)
    before = follow (self, lease, is_wanted);
  g_mutex_unlock (&self->lock);
  if (is_coordinated && chief != NULL)
    muster_chief_registry_set_ready (self->server->registry, model, epoch, is_ready);
  muster_readiness_tracker_stop (before);
}

/* Sets the alarm after a lease was granted or renewed. It expires later than all others, but it
 * does expire. */
static void
attend_to_lease (MusterAnnounceService *self)
{
  const gint64 lease_us = muster_chief_registry_lease_us (self->server->registry);
  muster_alarm_set (self->alarm,
                    muster_deadline_after (muster_clock_now_us (self->server->clock), lease_us));
}

/* --- claiming --- */

static void
send_locked (Lease *lease, const Muster__ClaimResponse *response)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&response->base);
  muster_rope_append (&rope, packed);
  if (lease->call != NULL)
    muster_rpc_call_send_state (lease->call, &rope);
}

/* A chief whose steps are elsewhere loses nothing by a stop of this server. */
static gint64
drain_left_us_locked (const Lease *lease)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const gint64 stop_us =
      *lease->session_handle != '\0' ? muster_server_drain_left_us (lease->service->server) : 0;
  return MAX (stop_us, lease->hold_us - now_us);
}

/* Tells the chief that the server is draining, or its job; after its grant, which says so itself.
 */
static void
tell_drain_locked (Lease *lease)
{
  Muster__ClaimResponse response = MUSTER__CLAIM_RESPONSE__INIT;
  response.epoch = lease->epoch;
  response.lease_us = muster_chief_registry_lease_us (lease->service->server->registry);
  response.draining_us = drain_left_us_locked (lease);
  if (lease->is_told && response.draining_us > 0)
    send_locked (lease, &response);
}

/* Sends the grant on the stream, unless the stream has ended because another chief has claimed. */
static void
send_grant (Lease *lease, const MusterAnnouncement *before)
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

/* Returns TRUE if the lease is another caller's, or was taken from another one earlier:
 * returning to a lease that was taken doesn't make it one's own. */
static gboolean
ousts (const Lease *lease, const Lease *loser, gboolean was_alive)
{
  if (loser == NULL)
    return FALSE;
  return g_str_equal (lease->caller, loser->caller) ? loser->has_ousted : was_alive;
}

/* Returns TRUE if nobody has the lease, or who has it knows the secret. */
static gboolean
is_lease_of (const Lease *lease, const char *proof)
{
  return lease == NULL || muster_server_is_proof (proof, lease->proof);
}

/* Returns TRUE if the claim takes the model from nobody but its own chief; else *chief (transfer
 * full) is the other. Call with the lock held. */
static gboolean
is_own (MusterAnnounceService *self, const Muster__ClaimRequest *request,
        MusterAnnouncement **chief)
{
  *chief = request->take_over ? muster_chief_registry_find (self->server->registry, request->model)
                              : NULL;
  return *chief == NULL ||
         is_lease_of (g_hash_table_lookup (self->leases, request->model), request->proof);
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
grant (MusterAnnounceService *self, Lease *lease, const Muster__ClaimRequest *request,
       MusterGraph *graph, MusterAnnouncement **before, Lease **loser, MusterServed **orphan,
       GError **error)
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
    g_propagate_error (error, stopping_error ());
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
  g_hash_table_insert (self->leases, lease->model, lease_ref (lease));
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
fence (MusterAnnounceService *self, MusterRpcCall *call, Lease *loser, MusterServed *orphan)
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
  end_lease (loser, error);
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
renew (MusterAnnounceService *self, const Lease *lease)
{
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  announcement.model = lease->model;
  announcement.epoch = lease->epoch;
  (void)muster_chief_registry_announce (self->server->registry, &announcement, NULL);
  attend_to_lease (self);
}

static void
log_release (const Lease *lease)
{
  muster_log_at_most (MUSTER_LOG_EVENTS, G_LOG_LEVEL_INFO, "chief-left", "MUSTER_MODEL",
                      lease->model, "MUSTER_EPOCH", MUSTER_LOG_INT (lease->epoch), "MUSTER_SESSION",
                      lease->session_handle, "MESSAGE",
                      "the chief of '%s' ended, or released its lease", lease->model);
}

static void
on_caller_gone (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  Lease *lease = data;
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
  end_lease (lease, error);
}

static void
log_refusal (const Muster__ClaimRequest *request, const GError *error)
{
  muster_log_at_most (0, G_LOG_LEVEL_INFO, "claim-refused", "MUSTER_MODEL", request->model,
                      "MUSTER_TASK", request->task, "MUSTER_CLIENT", request->who, "MESSAGE",
                      "refused a chief: %s", error->message);
}

static void
log_claim (const Lease *lease, const Muster__ClaimRequest *request,
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
  g_autoptr (GPtrArray) forgotten = g_ptr_array_new_with_free_func (lease_unref);
  GHashTableIter iter;
  gpointer model, value;
  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->leases);
  while (g_hash_table_size (self->leases) >
             muster_chief_registry_n_models (self->server->registry) &&
         g_hash_table_iter_next (&iter, &model, &value))
    if (!muster_chief_registry_knows (self->server->registry, model)) {
      g_ptr_array_add (forgotten, lease_ref (value));
      g_hash_table_iter_remove (&iter);
    }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < forgotten->len; i++) {
    Lease *lease = forgotten->pdata[i];
    end_lease (lease, error);
    muster_readiness_tracker_stop (g_steal_pointer (&lease->tracker));
  }
}

static void
open_claim (MusterAnnounceService *self, MusterRpcCall *call, const Muster__ClaimRequest *request,
            MusterGraph *graph)
{
  /* Once granted, any thread may end the lease and release the call. */
  g_autoptr (MusterRpcCall) held = muster_rpc_call_ref (call);
  g_autoptr (Lease) lease = lease_new (self, call, request);
  g_autoptr (Lease) loser = NULL;
  g_autoptr (MusterServed) orphan = NULL;
  g_autoptr (MusterAnnouncement) before = NULL;
  g_autoptr (GError) error = NULL;
  g_mutex_lock (&self->lock);
  gboolean is_granted = grant (self, lease, request, graph, &before, &loser, &orphan, &error);
  g_mutex_unlock (&self->lock);
  if (!is_granted) {
    log_refusal (request, error);
    end_lease (lease, error);
    return;
  }
  forget_leases (self);
  log_claim (lease, request, before);
  if (lease->has_ousted)
    muster_server_audit (call, "Claim", lease->model, NULL);
  attend_to_lease (self);
  const gboolean is_fenced = loser == NULL || fence (self, call, loser, orphan);
  if (loser != NULL)
    renew (self, lease);
  follow_registry (self, lease->model); /* a chief that reconnects may find its model prepared */
  send_grant (lease, before);
  g_cancellable_connect (muster_rpc_call_cancellable (call), G_CALLBACK (on_caller_gone),
                         lease_ref (lease), lease_unref);
  if (!is_fenced)
    close_orphan (call, orphan, SETTLE_ON_CLUSTER);
}

static gboolean
is_claimants (MusterAnnounceService *self, MusterRpcCall *call, const char *model,
              const char *proof)
{
  g_autofree char *caller = muster_rpc_call_caller (call);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const Lease *lease = g_hash_table_lookup (self->leases, model);
  return is_lease_of (lease, proof) ||
         (*lease->proof == '\0' && g_str_equal (caller, lease->caller));
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

/* --- announcing --- */

/* A chief that announces a later phase than RESTORING has restored. */
static void
count_restore (MusterServer *server, const MusterAnnouncement *announced)
{
  if (announced->phase <= MUSTER_CHIEF_RESTORING || announced->model == NULL)
    return;
  g_autoptr (MusterAnnouncement) before =
      muster_chief_registry_find (server->registry, announced->model);
  if (before != NULL && before->phase == MUSTER_CHIEF_RESTORING &&
      before->epoch == announced->epoch)
    muster_histogram_add (&server->restores, before->phase_age_us);
}

/* Several threads handle announcements: a chief that gave one up has said more since. */
static gboolean
apply_in_turn (MusterAnnounceService *self, const MusterAnnouncement *announcement, gint64 turn,
               GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  Lease *lease =
      announcement->model != NULL ? g_hash_table_lookup (self->leases, announcement->model) : NULL;
  if (lease != NULL && turn != 0 && turn < lease->turn)
    return muster_fail (error, MUSTER_ERROR_ABORTED, "a later announcement of '%s' came before",
                        announcement->model);
  if (!muster_chief_registry_announce (self->server->registry, announcement, error))
    return FALSE;
  if (lease != NULL)
    lease->turn = MAX (lease->turn, turn);
  return TRUE;
}

static gboolean
take_in (MusterServer *server, const Muster__AnnounceRequest *request, GError **error)
{
  const Muster__Announcement none = MUSTER__ANNOUNCEMENT__INIT;
  const Muster__Announcement *announced =
      request->announcement != NULL ? request->announcement : &none;
  const MusterAnnouncement announcement = muster_server_read_announcement (announced);
  g_autoptr (MusterSaveStatus) saves = announcement.saves;
  g_autofree MusterGoodput *goodput = announcement.goodput;
  count_restore (server, &announcement);
  if (!apply_in_turn (server->announcing, &announcement, request->turn, error))
    return FALSE;
  attend_to_lease (server->announcing); /* an expired lease is renewed */
  follow_registry (server->announcing, announcement.model);
  return TRUE;
}

/* The names of a chief (its epoch, its process) aren't secret, so they don't authorise. */
static gboolean
may_announce (MusterServer *server, MusterRpcCall *call, const Muster__AnnounceRequest *request,
              GError **error)
{
  const char *model = request->announcement != NULL ? request->announcement->model : "";
  return is_claimants (server->announcing, call, model, request->proof) ||
         muster_rpc_call_role (call) >= MUSTER_ROLE_ADMIN ||
         muster_fail (
             error, MUSTER_ERROR_PERMISSION_DENIED,
             "announcing for the chief of '%s' needs its claim's secret, or the role 'admin'",
             model);
}

static void
announce (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  const Muster__AnnounceRequest *read =
      muster_server_unpack (call, request, &muster__announce_request__descriptor, arena);
  if (read == NULL)
    return;
  if (!may_announce (server, call, read, &error) || !take_in (server, read, &error)) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Muster__AnnounceResponse response = MUSTER__ANNOUNCE_RESPONSE__INIT;
  muster_server_reply (call, &response.base);
}

/* --- draining --- */

static void
tell_drain (Lease *lease, gint64 hold_us)
{
  g_mutex_lock (&lease->lock);
  lease->hold_us = MAX (lease->hold_us, hold_us);
  tell_drain_locked (lease);
  g_mutex_unlock (&lease->lock);
}

/* What a chief has saved is for the time that it was asked for before: it says anew that it has. */
static void
ask_again (MusterAnnounceService *self, const Lease *lease, const MusterAnnouncement *chief,
           gint64 until_us)
{
  if (chief->drain != MUSTER_DRAIN_SAVED || until_us <= lease->hold_us)
    return;
  MusterAnnouncement asked = MUSTER_ANNOUNCEMENT_INIT;
  asked.model = lease->model;
  asked.epoch = chief->epoch;
  asked.drain = MUSTER_DRAIN_OFFERED;
  (void)muster_chief_registry_announce (self->server->registry, &asked, NULL);
}

GPtrArray *
muster_announce_service_hold (MusterAnnounceService *self, const char *model, gint64 until_us)
{
  GPtrArray *models = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  GHashTableIter iter;
  gpointer name, lease;
  g_hash_table_iter_init (&iter, self->leases);
  while (g_hash_table_iter_next (&iter, &name, &lease)) {
    g_autoptr (MusterAnnouncement) chief =
        muster_chief_registry_find (self->server->registry, name);
    if (chief == NULL || !chief->alive || chief->phase == MUSTER_CHIEF_OVER || chief->failed ||
        (*model != '\0' && !g_str_equal (model, name)))
      continue;
    g_ptr_array_add (models, g_strdup (name));
    ask_again (self, lease, chief, until_us);
    tell_drain (lease, until_us);
  }
  return models;
}

gint64
muster_announce_service_hold_left_us (MusterAnnounceService *self, const char *model)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  Lease *lease = g_hash_table_lookup (self->leases, model);
  if (lease == NULL)
    return 0;
  g_mutex_lock (&lease->lock);
  const gint64 left_us = drain_left_us_locked (lease);
  g_mutex_unlock (&lease->lock);
  return MAX (left_us, 0);
}

static void
drain (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  const Muster__DrainRequest *read =
      muster_server_unpack (call, request, &muster__drain_request__descriptor, arena);
  if (read == NULL)
    return;
  const char *model = *read->model != '\0' ? read->model : NULL;
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  g_autoptr (GPtrArray) models = muster_announce_service_hold (
      server->announcing, read->model, muster_deadline_after (now_us, MAX (read->within_us, 0)));
  if (models->len == 0)
    muster_fail (&error, MUSTER_ERROR_FAILED_PRECONDITION, "no chief of %s trains here",
                 model != NULL ? model : "any model");
  muster_server_audit (call, "Drain", model, error);
  if (error != NULL) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Muster__DrainResponse response = MUSTER__DRAIN_RESPONSE__INIT;
  response.models = (char **)models->pdata;
  response.n_models = models->len;
  muster_server_reply (call, &response.base);
}

/* --- expiry of leases --- */

static gint64
expire_leases (gpointer registry)
{
  return muster_chief_registry_expire (registry);
}

/* --- the service --- */

MusterAnnounceService *
muster_announce_service_new (MusterServer *server)
{
  MusterAnnounceService *self = g_new0 (MusterAnnounceService, 1);
  self->server = server;
  g_mutex_init (&self->lock);
  self->tracking = (MusterReadinessTracking){
      .master = server->master,
      .hub = server->hub,
      .registry = server->registry,
      .pool =
          g_thread_pool_new (muster_readiness_tracker_work, NULL, MAX_TRACKER_THREADS, FALSE, NULL),
  };
  self->leases = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, lease_unref);
  self->alarm = muster_alarm_new (server->clock, "leases", expire_leases, server->registry);
  return self;
}

void
muster_announce_service_free (MusterAnnounceService *self)
{
  if (self == NULL)
    return;
  muster_announce_service_stop (self);
  muster_alarm_free (self->alarm);
  g_thread_pool_free (self->tracking.pool, FALSE, TRUE);
  g_hash_table_unref (self->leases);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
muster_announce_service_enter (MusterAnnounceService *self)
{
  muster_server_add_method (self->server, "/muster.Readiness/Claim", claim);
  muster_server_add_method (self->server, "/muster.Readiness/Announce", announce);
  muster_server_add_method (self->server, "/muster.Readiness/Drain", drain);
  muster_rpc_server_require (self->server->rpc, "/muster.Readiness/Drain", MUSTER_ROLE_ADMIN);
}

/* TRUE if the caller holds the lease, by the same connection; with may_oust also if it has taken it
 * from another. */
static gboolean
is_callers (MusterAnnounceService *self, MusterRpcCall *call, const char *model, gboolean may_oust)
{
  g_autofree char *caller = muster_rpc_call_caller (call);
  gboolean is_same = FALSE;
  g_mutex_lock (&self->lock);
  Lease *lease = g_hash_table_lookup (self->leases, model);
  if (lease != NULL) {
    g_mutex_lock (&lease->lock);
    is_same = lease->call != NULL && (may_oust || !lease->has_ousted) &&
              g_str_equal (lease->caller, caller) &&
              g_str_equal (muster_rpc_call_peer (lease->call), muster_rpc_call_peer (call));
    g_mutex_unlock (&lease->lock);
  }
  g_mutex_unlock (&self->lock);
  return is_same;
}

/* Whether a chief is at work with variables of this server. */
static gboolean
is_at_work (MusterAnnounceService *self, const MusterAnnouncement *chief)
{
  return chief->alive && chief->phase != MUSTER_CHIEF_OVER &&
         !muster_chief_registry_is_elsewhere (self->server->registry, chief->model);
}

/* A reset ends every model. An administrator may do that, but not as the chief of a model, for
 * whose sake another one's would lose what it has trained. */
gboolean
muster_announce_service_may_reset (MusterAnnounceService *self, MusterRpcCall *caller,
                                   GError **error)
{
  const gboolean is_admin = muster_rpc_call_role (caller) >= MUSTER_ROLE_ADMIN;
  const MusterAnnouncement *other = NULL;
  guint n_own = 0;
  g_autoptr (GPtrArray) models = muster_chief_registry_list (self->server->registry);
  for (guint i = 0; i < models->len; i++) {
    const MusterAnnouncement *chief = models->pdata[i];
    if (is_callers (self, caller, chief->model, is_admin))
      n_own++;
    else if (other == NULL &&
             (is_admin ? is_at_work (self, chief) : chief->alive || chief->prepared))
      other = chief;
  }
  if (is_admin ? n_own == 0 || other == NULL : n_own > 0 && other == NULL)
    return TRUE;
  if (other == NULL)
    return muster_fail (error, MUSTER_ERROR_PERMISSION_DENIED,
                        "Reset ends all sessions: it needs the role 'admin', or the lease on the "
                        "model");
  if (!is_admin)
    return muster_fail (error, MUSTER_ERROR_PERMISSION_DENIED,
                        "Reset also ends '%s', which isn't the caller's: it needs the role 'admin'",
                        other->model);
  g_autofree char *text = muster_announcement_describe (other);
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "Reset also ends '%s', whose chief is %s; use another master, or end that "
                      "job first (SIGTERM)",
                      other->model, text);
}

/* Takes out the trackers of all claims up to n_claims. Call with the lock held; stop the trackers
 * without it. */
static GPtrArray *
take_trackers (MusterAnnounceService *self, guint64 n_claims)
{
  GPtrArray *taken = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_readiness_tracker_stop);
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, self->leases);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    Lease *lease = value;
    if (lease->tracker != NULL && lease->claim <= n_claims)
      g_ptr_array_add (taken, g_steal_pointer (&lease->tracker));
  }
  return taken;
}

/* Call with the lock held. */
static GPtrArray *
list_leases (MusterAnnounceService *self)
{
  GPtrArray *leases = g_ptr_array_new_with_free_func (lease_unref);
  GHashTableIter iter;
  gpointer lease;
  g_hash_table_iter_init (&iter, self->leases);
  while (g_hash_table_iter_next (&iter, NULL, &lease))
    g_ptr_array_add (leases, lease_ref (lease));
  return leases;
}

/* Asks again in new sessions. */
void
muster_announce_service_doubt (MusterAnnounceService *self)
{
  g_mutex_lock (&self->lock);
  g_autoptr (GPtrArray) leases = list_leases (self);
  GPtrArray *trackers = take_trackers (self, G_MAXUINT64);
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (trackers); /* first, so that none of them reports an outdated state */
  for (guint i = 0; i < leases->len; i++) {
    const Lease *lease = leases->pdata[i];
    muster_chief_registry_set_ready (self->server->registry, lease->model, lease->epoch, FALSE);
    follow_registry (self, lease->model);
  }
}

static void
log_reset (const char *const *containers, guint n_sessions)
{
  g_autofree char *names = containers != NULL ? g_strjoinv ("', '", (char **)containers) : NULL;
  g_autofree char *safe = names != NULL ? muster_safe_text (names, -1, MAX_CONTAINERS_TEXT) : NULL;
  g_autofree char *lost = safe != NULL ? g_strdup_printf ("the containers '%s' were cleared", safe)
                                       : g_strdup ("all variables are lost");
  muster_log (G_LOG_LEVEL_MESSAGE, "reset", "MUSTER_SESSIONS", MUSTER_LOG_INT (n_sessions),
              "MESSAGE", "the master was reset: %s, and %u session%s ended", lost, n_sessions,
              n_sessions == 1 ? " was" : "s were");
}

void
muster_announce_service_reset (MusterAnnounceService *self, guint64 n_claims,
                               const char *const *containers, guint n_sessions)
{
  if (containers != NULL && *containers == NULL)
    containers = NULL;
  g_mutex_lock (&self->lock);
  GPtrArray *trackers = take_trackers (self, n_claims);
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (
      trackers); /* comes first, so that none of them reports an outdated state to the registry */
  muster_chief_registry_reset (self->server->registry, n_claims, containers);
  if (containers != NULL)
    muster_announce_service_doubt (self);
  log_reset (containers, n_sessions);
}

void
muster_announce_service_drain (MusterAnnounceService *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  GHashTableIter iter;
  gpointer lease;
  g_hash_table_iter_init (&iter, self->leases);
  while (g_hash_table_iter_next (&iter, NULL, &lease))
    tell_drain (lease, 0);
}

void
muster_announce_service_stop (MusterAnnounceService *self)
{
  g_autoptr (GError) error = stopping_error ();
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_autoptr (GPtrArray) ending = list_leases (self);
  GPtrArray *trackers = take_trackers (self, G_MAXUINT64);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < ending->len; i++)
    end_lease (ending->pdata[i], error);
  g_ptr_array_unref (trackers);
}
