// SPDX-License-Identifier: Apache-2.0
/* Announce and Drain: chiefs announce phases, which renews their leases, and are asked to save and
 * hold; the table of leases, which a reset, a drain or a stop of the server goes through. A claim
 * enters it (claim_service.c). */
#include "server/services/announce_service_private.h"

#include "base/log_bounded_private.h"
#include "base/safe_text_private.h"
#include "ready/chief_gate_private.h"
#include "server/core/drain.h"
#include "server/core/service.h"
#include "server/services/announcement.h"
#include "server/services/readiness_service.h"

/* The number of trackers' sessions that are opened or closed at the same time. */
#define MAX_TRACKER_THREADS 4

/* In the log, of a reset's containers. */
#define MAX_CONTAINERS_TEXT 256

/* --- tracking readiness --- */

/* Starts or stops tracking the model's readiness. Call with the lock held. The tracker that is
 * returned (nullable) must be stopped without the lock. */
static MusterReadinessTracker *
follow (MusterAnnounceService *self, MusterChiefLease *lease, gboolean is_wanted)
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

void
muster_announce_service_follow (MusterAnnounceService *self, const char *model)
{
  MusterReadinessTracker *before = NULL;
  g_mutex_lock (&self->lock);
  MusterChiefLease *lease = g_hash_table_lookup (self->leases, model);
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

/* The lease expires later than all others, but it does expire. */
void
muster_announce_service_attend (MusterAnnounceService *self)
{
  const gint64 lease_us = muster_chief_registry_lease_us (self->server->registry);
  muster_alarm_set (self->alarm,
                    muster_deadline_after (muster_clock_now_us (self->server->clock), lease_us));
}

/* --- announcing --- */

static gboolean
is_claimants (MusterAnnounceService *self, MusterRpcCall *call, const char *model,
              const char *proof)
{
  g_autofree char *caller = muster_rpc_call_caller (call);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const MusterChiefLease *lease = g_hash_table_lookup (self->leases, model);
  return muster_chief_lease_is_of (lease, proof) ||
         (*lease->proof == '\0' && g_str_equal (caller, lease->caller));
}

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
  MusterChiefLease *lease =
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
  muster_announce_service_attend (server->announcing); /* an expired lease is renewed */
  muster_announce_service_follow (server->announcing, announcement.model);
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

/* What a chief has saved is for the time that it was asked for before: it says anew that it has. */
static void
ask_again (MusterAnnounceService *self, const MusterChiefLease *lease,
           const MusterAnnouncement *chief, gint64 until_us)
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
    muster_chief_lease_tell_drain (lease, until_us);
  }
  return models;
}

gint64
muster_announce_service_hold_left_us (MusterAnnounceService *self, const char *model)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  MusterChiefLease *lease = g_hash_table_lookup (self->leases, model);
  if (lease == NULL)
    return 0;
  return MAX (muster_chief_lease_drain_left_us (lease), 0);
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
  self->leases = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, muster_chief_lease_unref);
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
  muster_claim_service_enter (self);
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
  MusterChiefLease *lease = g_hash_table_lookup (self->leases, model);
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
    MusterChiefLease *lease = value;
    if (lease->tracker != NULL && lease->claim <= n_claims)
      g_ptr_array_add (taken, g_steal_pointer (&lease->tracker));
  }
  return taken;
}

/* Call with the lock held. */
static GPtrArray *
list_leases (MusterAnnounceService *self)
{
  GPtrArray *leases = g_ptr_array_new_with_free_func (muster_chief_lease_unref);
  GHashTableIter iter;
  gpointer lease;
  g_hash_table_iter_init (&iter, self->leases);
  while (g_hash_table_iter_next (&iter, NULL, &lease))
    g_ptr_array_add (leases, muster_chief_lease_ref (lease));
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
    const MusterChiefLease *lease = leases->pdata[i];
    muster_chief_registry_set_ready (self->server->registry, lease->model, lease->epoch, FALSE);
    muster_announce_service_follow (self, lease->model);
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
    muster_chief_lease_tell_drain (lease, 0);
}

void
muster_announce_service_stop (MusterAnnounceService *self)
{
  g_autoptr (GError) error = muster_server_stopping_error ();
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_autoptr (GPtrArray) ending = list_leases (self);
  GPtrArray *trackers = take_trackers (self, G_MAXUINT64);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < ending->len; i++)
    muster_chief_lease_end (ending->pdata[i], error);
  g_ptr_array_unref (trackers);
}
