// SPDX-License-Identifier: Apache-2.0
/* A chief's lease at a server. The lease is held while the Claim's stream is open and
 * announcements arrive. One call at a time runs about it, the caller's or the background task's,
 * which renews when due and claims again when the stream breaks. */
#include "base/wait_private.h"
#include "graph/graph_nodes_private.h"
#include "master/goodput_message_private.h"
#include "master/lease.h"
#include "master/remote/lease_terms_private.h"
#include "master/remote/remote_call_private.h"
#include "master/remote/remote_private.h"
#include "master/save_status_message_private.h"
#include "rpc/digest_private.h"

/* Time to wait for the end of the stream after a refused announcement: a server that refuses one
 * ends the stream, and a restarted server has broken it. */
#define VERDICT_US (1 * MUSTER_SECOND)

#define MUSTER_TYPE_REMOTE_LEASE (muster_remote_lease_get_type ())
G_DECLARE_FINAL_TYPE (MusterRemoteLease, muster_remote_lease, MUSTER, REMOTE_LEASE, MusterLease)

struct _MusterRemoteLease {
  MusterLease parent;
  MusterRpcClient *client;    /* (owned) */
  MusterBackgroundTask *task; /* (owned) renews */
  char *session_handle;       /* (owned) "" at a coordinator */
  char *ready_op;             /* (owned) (nullable) */
  MusterDigest graph;         /* at a coordinator: the chief's */
  gboolean has_graph;
  gboolean is_granted; /* once; only for the thread that calls */

  GMutex lock;
  GCond changed; /* of is_calling */
  /* guarded by lock */
  gboolean is_calling;          /* a call about this lease is running; one at a time */
  MusterRpcStream *stream;      /* (owned) (nullable) changed only by the thread that calls */
  MusterAnnouncement announced; /* (owned) merged from all so far */
  /* A renewal doesn't repeat a phase that was reported, because a reset or a restart of the
   * master may have cleared it since. */
  gboolean is_phase_reported;
  guint64 n_phases;  /* announced so far … */
  guint64 n_sent;    /* … and when the last announcement was sent */
  gint64 durable_us; /* when told.durable became durable */
  gint64 saves_us;   /* when announced.saves was read … */
  gint64 goodput_us; /* … and announced.goodput */
  MusterLeaseTerms terms;
  gint64 due_us;         /* the next renewal */
  gint64 drain_until_us; /* atomic; when the master stops; 0: it isn't stopping */
  gboolean is_over;      /* the job is over, and the lease isn't needed any more */
  gboolean is_heard;     /* the last call succeeded */
  GError *lost;          /* (owned) (nullable) */
  /* (owned) (nullable) the master lost the session that claimed: no other chief has the lease, but
   * a new session must claim it */
  GError *orphaned;
};

G_DEFINE_FINAL_TYPE (MusterRemoteLease, muster_remote_lease, MUSTER_TYPE_LEASE)

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

/* FAILED_PRECONDITION and OUT_OF_RANGE are final answers of the registry; others may be temporary.
 */
static gboolean
is_verdict (const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_FAILED_PRECONDITION) ||
         muster_error_is (error, MUSTER_ERROR_OUT_OF_RANGE);
}

static void
lose_locked (MusterRemoteLease *self, const GError *why)
{
  if (self->lost == NULL)
    self->lost = g_error_new (MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                              "the lease on '%s' is lost: %s", self->announced.model, why->message);
}

/* FALSE with the error if it is lost. */
static gboolean
check_locked (MusterRemoteLease *self, GError **error)
{
  if (self->lost != NULL)
    g_propagate_error (error, g_error_copy (self->lost));
  return self->lost == NULL;
}

static void
note_drain (MusterRemoteLease *self, const Muster__ClaimResponse *message)
{
  if (message->draining_us <= 0)
    return;
  gint64 until_us = muster_deadline_after (now_us (), message->draining_us);
  __atomic_store_n (&self->drain_until_us, until_us, __ATOMIC_RELAXED);
}

/* After the grant, the master's only message is that it is about to stop. */
static void
note_message (MusterRemoteLease *self, GBytes *bytes)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  const Muster__ClaimResponse *message =
      muster_unpack (&muster__claim_response__descriptor, data, size, arena, "message", NULL);
  if (message != NULL)
    note_drain (self, message);
}

/* Checks the stream, waiting for its end until until_us. TRUE if it is open; otherwise *ended is
 * its error, possibly NULL. */
static gboolean
is_open (MusterRemoteLease *self, gint64 until_us, GError **ended)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) more = muster_rpc_stream_next_until (self->stream, until_us, NULL, &error);
  if (more != NULL)
    note_message (self, more);
  if (more != NULL || muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED))
    return TRUE;
  *ended = g_steal_pointer (&error);
  return FALSE;
}

/* TRUE if it is held: the stream is open, or the job is over. Records a final answer at the
 * stream's end. */
static gboolean
check_held_locked (MusterRemoteLease *self)
{
  g_autoptr (GError) ended = NULL;
  if (self->is_over)
    return TRUE;
  if (self->stream == NULL)
    return FALSE;
  if (is_open (self, 0, &ended))
    return TRUE;
  if (is_verdict (ended))
    lose_locked (self, ended);
  return FALSE;
}

static void
on_stream (gpointer data)
{
  muster_background_task_wake (((MusterRemoteLease *)data)->task);
}

/* Claiming. */

static MusterRpcStream *
open_claim (MusterRemoteLease *self, const MusterClaim *claim, GError **error)
{
  Muster__ClaimRequest message = MUSTER__CLAIM_REQUEST__INIT;
  message.model = muster_remote_string (claim->model);
  message.task = muster_remote_string (claim->task);
  message.who = self->announced.who;
  message.epoch = claim->epoch;
  message.session_handle = self->session_handle;
  message.ready_op = muster_remote_string (claim->ready_op);
  message.take_over = claim->take_over;
  message.spares_living = claim->spares_living;
  message.again = self->is_granted;
  if (self->has_graph)
    message.graph_sha256 = (ProtobufCBinaryData){MUSTER_DIGEST_BYTES, self->graph.bytes};
  g_autofree char *proof =
      muster_remote_proof (muster_rpc_client_address (self->client), claim->model);
  message.proof = proof;
  return muster_remote_open (self->client, "/muster.Readiness/Claim", &message.base, on_stream,
                             self, error);
}

static const Muster__ClaimResponse *
read_grant (MusterRemoteLease *self, MusterRpcStream *stream, const MusterClaim *claim,
            gint64 deadline_us, MusterArena *arena, GCancellable *cancellable, GError **error)
{
  const char *address = muster_rpc_client_address (self->client);
  g_autoptr (GError) failure = NULL;
  g_autoptr (GBytes) bytes =
      muster_rpc_stream_next_until (stream, deadline_us, cancellable, &failure);
  if (bytes == NULL && failure == NULL) {
    muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "'%s' ended the claim of '%s' without a reason",
                 address, claim->model);
    return NULL;
  }
  if (bytes == NULL) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return NULL;
  }
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  const Muster__ClaimResponse *grant =
      muster_unpack (&muster__claim_response__descriptor, data, size, arena, "grant", error);
  if (grant == NULL || (grant->epoch > 0 && (claim->epoch == 0 || grant->epoch == claim->epoch)))
    return grant;
  muster_fail (error, MUSTER_ERROR_INTERNAL,
               "'%s' answered a claim of epoch %" G_GINT64_FORMAT " with epoch %" G_GINT64_FORMAT,
               address, claim->epoch, grant->epoch);
  return NULL;
}

/* Opens the stream and reads the grant. Only for the thread that calls. Returns the epoch, or 0. */
static gint64
claim_once (MusterRemoteLease *self, const MusterClaim *claim, MusterAnnouncement **before,
            gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (MusterRpcStream) stream = open_claim (self, claim, error);
  if (stream == NULL)
    return 0;
  const Muster__ClaimResponse *grant =
      read_grant (self, stream, claim, deadline_us, arena, cancellable, error);
  if (grant == NULL)
    return 0;
  if (before != NULL && grant->before != NULL)
    *before = muster_remote_announcement (grant->before);
  if (before != NULL && grant->before != NULL)
    (*before)->same_graph = grant->same_graph;
  self->is_granted = TRUE;
  note_drain (self, grant);
  g_mutex_lock (&self->lock);
  muster_lease_terms_grant (&self->terms, grant->lease_us);
  self->stream = g_steal_pointer (&stream);
  g_mutex_unlock (&self->lock);
  return grant->epoch;
}

/* Claims again after the stream broke. The master may not have noticed that, so the claim takes
 * over from this lease itself. It takes over from no other: it says that it is made again. */
static gboolean
hold (MusterRemoteLease *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_mutex_lock (&self->lock);
  gboolean is_held = check_held_locked (self);
  gboolean is_lost = !check_locked (self, error);
  if (!is_held && !is_lost && self->orphaned != NULL) {
    g_propagate_error (error, g_error_copy (self->orphaned));
    is_lost = TRUE;
  }
  g_autoptr (MusterRpcStream) broken = is_held ? NULL : g_steal_pointer (&self->stream);
  g_autofree char *task = g_strdup (self->announced.task);
  g_mutex_unlock (&self->lock);
  if (is_held || is_lost)
    return is_held;

  MusterLease *lease = MUSTER_LEASE (self);
  MusterClaim claim = {
      .model = muster_lease_model (lease),
      .task = task,
      .epoch = muster_lease_epoch (lease),
      .ready_op = self->ready_op,
      .take_over = TRUE,
  };
  g_autoptr (GError) failure = NULL;
  g_autoptr (MusterAnnouncement) before = NULL;
  gint64 epoch = claim_once (self, &claim, &before, deadline_us, cancellable, &failure);
  g_mutex_lock (&self->lock);
  /* A claim sets the phase STARTING: announce the current phase again. A coordinator doesn't have
   * the model, so that its restart changes nothing about the phase. */
  if (*self->session_handle == '\0' ||
      (before != NULL && before->epoch == epoch && before->phase == self->announced.phase))
    self->is_phase_reported = FALSE;
  if (is_verdict (failure))
    lose_locked (self, failure);
  else if (muster_error_is (failure, MUSTER_ERROR_ABORTED))
    self->orphaned = g_error_copy (failure);
  is_lost = !check_locked (self, error);
  g_mutex_unlock (&self->lock);
  if (epoch == 0 && !is_lost)
    g_propagate_error (error, g_steal_pointer (&failure));
  return epoch != 0 && !is_lost;
}

/* Announcing. */

static MusterSaveStatus *
saves_now_locked (const MusterRemoteLease *self)
{
  MusterSaveStatus *status = muster_save_status_copy (self->announced.saves);
  if (status != NULL)
    muster_save_status_add_age (status, now_us () - self->saves_us);
  return status;
}

static GBytes *
send_announcement (MusterRemoteLease *self, gint64 deadline_us, GCancellable *cancellable,
                   GError **error)
{
  Muster__AnnounceRequest message = MUSTER__ANNOUNCE_REQUEST__INIT;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_mutex_lock (&self->lock);
  Muster__Announcement announcement = MUSTER__ANNOUNCEMENT__INIT;
  announcement.model = muster_remote_string (self->announced.model);
  announcement.task = muster_remote_string (self->announced.task);
  announcement.who = self->announced.who;
  self->n_sent = self->n_phases;
  if (!self->is_phase_reported)
    announcement.phase = (Muster__Phase)self->announced.phase;
  announcement.epoch = muster_lease_epoch (MUSTER_LEASE (self));
  announcement.step = self->announced.step;
  announcement.durable_step = self->announced.durable_step;
  announcement.durable = muster_remote_string (self->announced.durable);
  announcement.durable_age_us =
      self->announced.durable_step >= 0 ? now_us () - self->durable_us : 0;
  announcement.detail = muster_remote_string (self->announced.detail);
  announcement.holder = muster_remote_string (self->announced.holder);
  announcement.failed = self->announced.failed;
  announcement.ended = muster_remote_string (self->announced.ended);
  announcement.drain = (gint32)self->announced.drain;
  Muster__SaveStatus saves;
  g_autoptr (MusterSaveStatus) status = saves_now_locked (self);
  if (status != NULL) {
    muster_save_status_fill (&saves, status);
    announcement.saves = &saves;
  }
  Muster__Goodput goodput;
  g_autofree MusterGoodput *spent = muster_goodput_copy (self->announced.goodput);
  if (spent != NULL) {
    spent->age_us += now_us () - self->goodput_us;
    muster_goodput_fill (&goodput, spent);
    announcement.goodput = &goodput;
  }
  message.announcement = &announcement;
  g_autofree char *proof =
      muster_remote_proof (muster_rpc_client_address (self->client), self->announced.model);
  message.proof = proof;
  message.turn =
      now_us (); /* one that wasn't answered in time may be handled later than the next */
  muster_remote_pack (&request, &message.base);
  g_mutex_unlock (&self->lock);
  MusterRpcOptions options = {.deadline_us = deadline_us};
  return muster_rpc_client_call (self->client, "/muster.Readiness/Announce", &request, &options,
                                 cancellable, error);
}

/* Returns TRUE if a refused announcement should be tried again by another claim: a master that
 * restarted lost its state, and has broken the stream. */
static gboolean
may_be_held_yet (MusterRemoteLease *self, const GError *refusal)
{
  g_autoptr (GError) ended = NULL;
  gboolean is_held = is_open (self, now_us () + VERDICT_US, &ended);
  g_mutex_lock (&self->lock);
  if (is_held || is_verdict (ended))
    lose_locked (self, is_held ? refusal : ended);
  gboolean is_lost = self->lost != NULL;
  g_mutex_unlock (&self->lock);
  return !is_lost;
}

/* Sends the announcement, which renews the lease. Only for the thread that calls. */
static gboolean
tell (MusterRemoteLease *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  for (int attempt = 0;; attempt++) {
    g_autoptr (GError) failure = NULL;
    if (!hold (self, deadline_us, cancellable, error))
      return FALSE;
    g_autoptr (GBytes) answer = send_announcement (self, deadline_us, cancellable, &failure);
    if (answer != NULL)
      return TRUE;
    if (is_verdict (failure) && attempt == 0 && may_be_held_yet (self, failure))
      continue;
    g_mutex_lock (&self->lock);
    if (is_verdict (failure))
      lose_locked (self, failure);
    gboolean is_lost = !check_locked (self, error);
    g_mutex_unlock (&self->lock);
    if (!is_lost)
      g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
}

static gboolean
is_free (gpointer data)
{
  const MusterRemoteLease *self = data;
  return !self->is_calling;
}

/* Call with the lock held: waits until no other thread calls. */
static gboolean
wait_for_call_locked (MusterRemoteLease *self, gint64 deadline_us, GCancellable *cancellable,
                      GError **error)
{
  (void)muster_wait_for (&self->changed, &self->lock, is_free, self, deadline_us, cancellable);
  if (g_cancellable_set_error_if_cancelled (cancellable, error) || !check_locked (self, error))
    return FALSE;
  if (self->is_calling)
    muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                 "no answer from '%s' to the announcements before",
                 muster_rpc_client_address (self->client));
  return !self->is_calling;
}

static void
merge_locked (MusterRemoteLease *self, const MusterAnnouncement *announcement)
{
  muster_announcement_merge (&self->announced, announcement);
  if (announcement->durable_step >= 0)
    self->durable_us = now_us () - announcement->durable_age_us;
  if (announcement->saves != NULL)
    self->saves_us = now_us ();
  if (announcement->goodput != NULL)
    self->goodput_us = now_us ();
  if (announcement->phase != MUSTER_CHIEF_UNKNOWN) {
    self->is_phase_reported = FALSE;
    self->n_phases++;
  }
}

static gboolean
begin_call (MusterRemoteLease *self, const MusterAnnouncement *announcement,
            MusterAnnouncement **before, gint64 deadline_us, GCancellable *cancellable,
            GError **error)
{
  g_mutex_lock (&self->lock);
  gboolean is_mine = wait_for_call_locked (self, deadline_us, cancellable, error);
  self->is_calling |= is_mine;
  if (is_mine) {
    *before = muster_announcement_copy (&self->announced);
    merge_locked (self, announcement);
  }
  g_mutex_unlock (&self->lock);
  return is_mine;
}

/* Drops an announcement that the master refuses: repeating it would prevent the renewal of the
 * lease. */
static void
take_back (MusterRemoteLease *self, MusterAnnouncement *before)
{
  g_mutex_lock (&self->lock);
  MusterAnnouncement refused = self->announced;
  self->announced = *before;
  *before = refused;
  g_mutex_unlock (&self->lock);
}

/* Sets the next renewal. failure (nullable) is that of the call. */
static void
end_call (MusterRemoteLease *self, const GError *failure)
{
  const gboolean is_told = failure == NULL;
  g_mutex_lock (&self->lock);
  self->is_calling = FALSE;
  self->is_heard = is_told;
  /* A phase may have been posted since the announcement was sent. */
  self->is_phase_reported |= is_told && self->n_sent == self->n_phases;
  self->is_over = self->is_phase_reported && self->announced.phase == MUSTER_CHIEF_OVER;
  self->due_us = muster_lease_terms_next_us (&self->terms, failure);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  muster_background_task_wake (self->task);
}

static gboolean
remote_lease_announce (MusterLease *lease, const MusterAnnouncement *announcement,
                       gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterRemoteLease *self = MUSTER_REMOTE_LEASE (lease);
  g_autoptr (GError) failure = NULL;
  g_autoptr (MusterAnnouncement) before = NULL;
  if (!begin_call (self, announcement, &before, deadline_us, cancellable, error))
    return FALSE;
  gboolean is_told = tell (self, deadline_us, cancellable, &failure);
  if (muster_error_is (failure, MUSTER_ERROR_INVALID_ARGUMENT))
    take_back (self, before);
  end_call (self, failure);
  if (!is_told)
    g_propagate_error (error, g_steal_pointer (&failure));
  return is_told;
}

void
muster_remote_lease_post (MusterLease *lease, const MusterAnnouncement *announcement)
{
  MusterRemoteLease *self = MUSTER_REMOTE_LEASE (lease);
  g_mutex_lock (&self->lock);
  merge_locked (self, announcement);
  g_mutex_unlock (&self->lock);
}

gboolean
muster_remote_lease_is_heard (MusterLease *lease)
{
  MusterRemoteLease *self = MUSTER_REMOTE_LEASE (lease);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->is_heard;
}

static gboolean
remote_lease_check (MusterLease *lease, GError **error)
{
  MusterRemoteLease *self = MUSTER_REMOTE_LEASE (lease);
  g_mutex_lock (&self->lock);
  check_held_locked (self);
  gboolean is_held = check_locked (self, error);
  g_mutex_unlock (&self->lock);
  return is_held;
}

static gboolean
remote_lease_is_draining (MusterLease *lease, gint64 *until_us)
{
  MusterRemoteLease *self = MUSTER_REMOTE_LEASE (lease);
  gint64 stops_us = __atomic_load_n (&self->drain_until_us, __ATOMIC_RELAXED);
  if (stops_us == 0)
    return FALSE;
  *until_us = stops_us;
  return TRUE;
}

/* Renews when due, and claims again at once if the stream has broken. After the end of the job
 * it does nothing. */
static gint64
renew (gpointer owner, GCancellable *cancellable)
{
  MusterRemoteLease *self = owner;
  g_autoptr (GError) failure = NULL;
  g_mutex_lock (&self->lock);
  gboolean was_held = self->stream != NULL;
  gboolean is_held = check_held_locked (self);
  gboolean is_idle =
      self->lost != NULL || self->orphaned != NULL || self->is_over || self->is_calling;
  gboolean is_due = now_us () >= self->due_us || (was_held && !is_held);
  gboolean is_mine = is_due && !is_idle;
  gint64 due_us = is_idle ? MUSTER_WAIT_FOREVER : self->due_us;
  self->is_calling |= is_mine;
  gint64 deadline_us = muster_lease_terms_deadline_us (&self->terms);
  g_mutex_unlock (&self->lock);
  if (!is_mine)
    return due_us;
  (void)tell (self, deadline_us, cancellable, &failure); /* the failure is handled next */
  end_call (self, failure);
  return MUSTER_WAIT_FOREVER; /* end_call () has woken the task, which then returns the time */
}

static void
take_graph (MusterRemoteLease *self, MusterGraph *graph)
{
  g_auto (MusterRope) bytes = MUSTER_ROPE_INIT;
  muster_graph_put (graph, &bytes);
  self->graph = muster_digest_of (&bytes);
  self->has_graph = TRUE;
}

MusterLease *
muster_remote_lease_claim (const MusterRemoteClaimant *claimant, const MusterClaim *claim,
                           MusterAnnouncement **before, gint64 deadline_us,
                           GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterRemoteLease) self = g_object_new (MUSTER_TYPE_REMOTE_LEASE, NULL);
  self->client = muster_rpc_client_ref (claimant->client);
  self->session_handle = g_strdup (claimant->session_handle);
  if (claimant->graph != NULL)
    take_graph (self, claimant->graph);
  self->ready_op = g_strdup (claim->ready_op);
  self->announced.model = g_strdup (claim->model);
  self->announced.task = g_strdup (claim->task);
  self->announced.who = muster_remote_who ();
  self->announced.phase = MUSTER_CHIEF_STARTING; /* as set by the claim */
  self->is_calling = TRUE;
  self->task = muster_background_task_new ("muster-lease", renew, self, MUSTER_WAIT_FOREVER);
  gint64 epoch = claim_once (self, claim, before, deadline_us, cancellable, error);
  if (epoch == 0)
    return NULL;
  muster_lease_set_identity (MUSTER_LEASE (self), claim->model, epoch);
  end_call (self, NULL);
  return MUSTER_LEASE (g_steal_pointer (&self));
}

/* The end of the stream releases the lease at the master. */
static void
muster_remote_lease_dispose (GObject *object)
{
  MusterRemoteLease *self = MUSTER_REMOTE_LEASE (object);
  if (self->task != NULL)
    muster_background_task_stop (self->task);
  g_clear_pointer (&self->stream, muster_rpc_stream_free); /* it may wake the task until here */
  g_clear_pointer (&self->task, muster_background_task_free);
  g_clear_pointer (&self->client, muster_rpc_client_unref);
  G_OBJECT_CLASS (muster_remote_lease_parent_class)->dispose (object);
}

static void
muster_remote_lease_finalize (GObject *object)
{
  MusterRemoteLease *self = MUSTER_REMOTE_LEASE (object);
  g_free (self->session_handle);
  g_free (self->ready_op);
  muster_announcement_clear (&self->announced);
  g_clear_error (&self->lost);
  g_clear_error (&self->orphaned);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_remote_lease_parent_class)->finalize (object);
}

static void
muster_remote_lease_class_init (MusterRemoteLeaseClass *klass)
{
  MUSTER_LEASE_CLASS (klass)->announce = remote_lease_announce;
  MUSTER_LEASE_CLASS (klass)->check = remote_lease_check;
  MUSTER_LEASE_CLASS (klass)->is_draining = remote_lease_is_draining;
  G_OBJECT_CLASS (klass)->dispose = muster_remote_lease_dispose;
  G_OBJECT_CLASS (klass)->finalize = muster_remote_lease_finalize;
}

static void
muster_remote_lease_init (MusterRemoteLease *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->announced = (MusterAnnouncement)MUSTER_ANNOUNCEMENT_INIT;
}
