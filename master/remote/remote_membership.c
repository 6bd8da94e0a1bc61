// SPDX-License-Identifier: Apache-2.0
/* A task's membership at a server. One background task opens the stream, reads rosters from it,
 * reports batches, and joins again in the same slot when the stream breaks; other threads only wake
 * it. */
#include "base/wait_private.h"
#include "master/remote/lease_terms_private.h"
#include "master/remote/remote_call_private.h"
#include "master/remote/remote_private.h"

/* Minimum interval between reports of batches. */
#define LEAST_BETWEEN_US (1 * MUSTER_SECOND)

#define MUSTER_TYPE_REMOTE_MEMBERSHIP (muster_remote_membership_get_type ())
G_DECLARE_FINAL_TYPE (MusterRemoteMembership, muster_remote_membership, MUSTER, REMOTE_MEMBERSHIP,
                      MusterMembership)

/* Only the background task opens and reads the stream and reports. */
struct _MusterRemoteMembership {
  MusterMembership parent;
  MusterRpcClient *client;    /* (owned) */
  MusterBackgroundTask *task; /* (owned) */
  char *target;               /* (owned) */
  MusterJoin *join;           /* (owned) after the first grant with its slot */

  /* the task's */
  MusterRpcStream *stream; /* (owned) (nullable) */
  guint n_joins;
  gboolean is_granted; /* the stream was granted */
  MusterLeaseTerms terms;
  gint64 joins_us;   /* the earliest instant of the next join */
  gint64 renews_us;  /* the latest instant of the next report */
  gint64 reports_us; /* the earliest instant of the next report */
  gint64 n_reported;
  gint has_news; /* atomic: batches were reported since then, and the task knows */

  GMutex lock;
  GCond changed; /* of what follows */
  /* guarded by lock */
  guint64 id;      /* 0 until the first grant */
  GError *refused; /* (owned) (nullable) why the first join failed */
};

G_DEFINE_FINAL_TYPE (MusterRemoteMembership, muster_remote_membership, MUSTER_TYPE_MEMBERSHIP)

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

static guint64
id_of (MusterRemoteMembership *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->id;
}

static gboolean
is_over (MusterRemoteMembership *self)
{
  if (!muster_membership_check (MUSTER_MEMBERSHIP (self), NULL))
    return TRUE;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->refused != NULL;
}

/* Returns TRUE for a final answer about the membership; others may be temporary. */
static gboolean
is_verdict (const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_FAILED_PRECONDITION) ||
         muster_error_is (error, MUSTER_ERROR_INVALID_ARGUMENT);
}

static void
lose (MusterRemoteMembership *self, const char *why)
{
  g_autoptr (GError) lost =
      g_error_new (MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION, "slot %d of '%s' is lost: %s",
                   self->join->slot, self->join->model, why);
  muster_membership_lose (MUSTER_MEMBERSHIP (self), lost);
}

/* --- the stream --- */

static void
on_stream (gpointer data)
{
  muster_background_task_wake (((MusterRemoteMembership *)data)->task);
}

static void
open_stream (MusterRemoteMembership *self, GError **error)
{
  g_autofree char *who = muster_remote_who ();
  Muster__JoinRequest message = MUSTER__JOIN_REQUEST__INIT;
  message.model = muster_remote_string (self->join->model);
  message.task = muster_remote_string (self->join->task);
  message.who = who;
  message.slot = self->join->slot;
  message.n_slots = (gint32)MIN (self->join->n_slots, G_MAXINT32);
  message.min_tasks = (gint32)MIN (self->join->min_tasks, G_MAXINT32);
  message.takeover = self->join->is_takeover;
  message.member = id_of (self);
  g_atomic_int_set (&self->has_news, FALSE);
  message.batches = muster_membership_n_batches (MUSTER_MEMBERSHIP (self));
  self->is_granted = FALSE;
  self->n_reported = message.batches;
  self->stream = muster_remote_open (self->client, "/muster.Readiness/Join", &message.base,
                                     on_stream, self, error);
}

/* Returns what is wrong with a server's roster, or NULL. */
static const char *
find_fault (MusterRemoteMembership *self, const Muster__Roster *roster)
{
  if (roster->n_slots < 1 || roster->n_slots > MUSTER_MAX_SLOTS ||
      roster->n_taken > (gsize)roster->n_slots)
    return "its number of slots";
  for (gsize i = 0; i < roster->n_taken; i++)
    if (roster->taken[i] >= (guint32)roster->n_slots ||
        (i > 0 && roster->taken[i] <= roster->taken[i - 1]))
      return "its slots";
  if (roster->tasks < 0 || (gsize)roster->tasks > roster->n_taken || roster->min_tasks < 0 ||
      roster->min_tasks > roster->n_slots)
    return "its number of tasks";
  if (self->is_granted)
    return NULL;
  if (roster->member == 0 || roster->slot < 0 || roster->slot >= roster->n_slots ||
      (self->join->slot >= 0 && roster->slot != self->join->slot))
    return "the slot that it grants";
  return NULL;
}

static void
take_grant (MusterRemoteMembership *self, const Muster__Roster *roster)
{
  self->is_granted = TRUE;
  self->n_joins++;
  muster_lease_terms_grant (&self->terms, roster->lease_us);
  self->renews_us = muster_lease_terms_next_us (&self->terms, NULL);
  self->join->slot = roster->slot;
}

static gboolean
take_roster (MusterRemoteMembership *self, GBytes *bytes, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  const Muster__Roster *read =
      muster_unpack (&muster__roster__descriptor, data, size, arena, "roster", error);
  if (read == NULL)
    return FALSE;
  const char *fault = find_fault (self, read);
  if (fault != NULL)
    return muster_fail (error, MUSTER_ERROR_INTERNAL, "'%s' sent an invalid roster: %s",
                        self->target, fault);
  const gboolean is_grant = !self->is_granted;
  if (is_grant)
    take_grant (self, read);
  const MusterRoster roster = {
      .n_joins = self->n_joins,
      .n_slots = (guint)read->n_slots,
      .n_members = read->n_taken,
      .slots = read->taken,
      .n_tasks = (guint)read->tasks,
      .min_tasks = (guint)read->min_tasks,
      .has_chief = read->chief_alive,
      .epoch = MAX (read->epoch, 0),
      .is_over = read->over,
      .is_gathering = read->gathering,
  };
  muster_membership_set_roster (MUSTER_MEMBERSHIP (self), (guint)self->join->slot, &roster);
  if (!is_grant)
    return TRUE;
  g_mutex_lock (&self->lock);
  self->id = read->member;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

/* A failure of the first join is the caller's; later ones are retried, unless the server has
 * decided. The server ends a stream without an error (NULL) when the member has left. */
static void
end_stream (MusterRemoteMembership *self, const GError *why)
{
  g_clear_pointer (&self->stream, muster_rpc_stream_free);
  if (self->n_joins > 0 && (why == NULL || is_verdict (why))) {
    lose (self, why != NULL ? why->message : "it has left");
    return;
  }
  if (self->n_joins > 0) {
    self->joins_us = muster_lease_terms_retry_us (&self->terms);
    return;
  }
  g_mutex_lock (&self->lock);
  self->refused = why != NULL ? g_error_copy (why)
                              : g_error_new (MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE,
                                             "'%s' ended the join of '%s' without a reason",
                                             self->target, self->join->model);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

/* Reads the messages that have arrived. */
static void
read_stream (MusterRemoteMembership *self, GCancellable *cancellable)
{
  while (self->stream != NULL && !g_cancellable_is_cancelled (cancellable)) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) bytes = muster_rpc_stream_next_until (self->stream, 0, cancellable, &error);
    if (bytes == NULL && muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED))
      return;
    if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
      return;
    if (bytes == NULL || !take_roster (self, bytes, &error))
      end_stream (self, error);
  }
}

/* --- reports --- */

static gboolean
send_report (MusterRemoteMembership *self, gint64 n_batches, gboolean leaves, gint64 deadline_us,
             GCancellable *cancellable, GError **error)
{
  Muster__MemberReport message = MUSTER__MEMBER_REPORT__INIT;
  message.member = id_of (self);
  message.batches = n_batches;
  message.leaves = leaves;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_remote_pack (&request, &message.base);
  const MusterRpcOptions options = {.deadline_us = deadline_us};
  g_autoptr (GBytes) answer = muster_rpc_client_call (self->client, "/muster.Readiness/Report",
                                                      &request, &options, cancellable, error);
  return answer != NULL;
}

/* Reports. The reason of a refusal comes on the stream, too; a failed report is repeated soon.
 * */
static void
report (MusterRemoteMembership *self, GCancellable *cancellable)
{
  g_autoptr (GError) failure = NULL;
  g_atomic_int_set (&self->has_news, FALSE);
  const gint64 n_batches = muster_membership_n_batches (MUSTER_MEMBERSHIP (self));
  const gint64 deadline_us = muster_lease_terms_deadline_us (&self->terms);
  if (send_report (self, n_batches, FALSE, deadline_us, cancellable, &failure))
    self->n_reported = n_batches;
  self->renews_us = muster_lease_terms_next_us (&self->terms, failure);
  self->reports_us =
      failure == NULL ? MIN (self->renews_us, now_us () + LEAST_BETWEEN_US) : self->renews_us;
}

static gint64
report_due_us (MusterRemoteMembership *self)
{
  const gint64 n_batches = muster_membership_n_batches (MUSTER_MEMBERSHIP (self));
  return n_batches > self->n_reported ? MIN (self->reports_us, self->renews_us) : self->renews_us;
}

/* The background task. */
static gint64
keep_up (gpointer owner, GCancellable *cancellable)
{
  MusterRemoteMembership *self = owner;
  if (is_over (self))
    return MUSTER_WAIT_FOREVER;
  if (self->stream == NULL && now_us () < self->joins_us)
    return self->joins_us;
  if (self->stream == NULL) {
    g_autoptr (GError) error = NULL;
    open_stream (self, &error);
    if (self->stream == NULL)
      end_stream (self, error);
  }
  read_stream (self, cancellable);
  if (is_over (self))
    return MUSTER_WAIT_FOREVER;
  if (self->stream == NULL)
    return self->joins_us;
  if (!self->is_granted)
    return MUSTER_WAIT_FOREVER; /* the stream wakes it */
  if (now_us () >= report_due_us (self))
    report (self, cancellable);
  return report_due_us (self);
}

/* Called at every step: only the first call after a report wakes the task, which knows when the
 * next report is due. */
static void
remote_membership_report (MusterMembership *membership, gint64 n_batches G_GNUC_UNUSED)
{
  MusterRemoteMembership *self = MUSTER_REMOTE_MEMBERSHIP (membership);
  if (g_atomic_int_compare_and_exchange (&self->has_news, FALSE, TRUE))
    muster_background_task_wake (self->task);
}

/* --- joining and leaving --- */

static gboolean
is_decided (gpointer data)
{
  const MusterRemoteMembership *self = data;
  return self->id != 0 || self->refused != NULL;
}

static gboolean
await_grant (MusterRemoteMembership *self, gint64 deadline_us, GCancellable *cancellable,
             GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const gboolean is_known =
      muster_wait_for (&self->changed, &self->lock, is_decided, self, deadline_us, cancellable);
  if (self->id != 0)
    return TRUE;
  if (is_known && muster_error_is (self->refused, MUSTER_ERROR_UNIMPLEMENTED))
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                        "'%s' keeps no members: start `muster serve --master=%s`, and join at its "
                        "address",
                        self->target, self->target);
  if (is_known) {
    g_propagate_error (error, g_error_copy (self->refused));
    return FALSE;
  }
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "'%s' didn't answer the join of '%s' in time", self->target,
                      self->join->model);
}

MusterMembership *
muster_remote_join (MusterRpcClient *client, const char *target, const MusterJoin *join,
                    gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterRemoteMembership) self = g_object_new (MUSTER_TYPE_REMOTE_MEMBERSHIP, NULL);
  self->client = muster_rpc_client_ref (client);
  self->target = g_strdup (target);
  self->join = g_boxed_copy (MUSTER_TYPE_JOIN, join);
  self->task = muster_background_task_new ("muster-members", keep_up, self, MUSTER_WAIT_FOREVER);
  muster_background_task_wake (self->task);
  if (!await_grant (self, deadline_us, cancellable, error))
    return NULL;
  return MUSTER_MEMBERSHIP (g_steal_pointer (&self));
}

static gboolean
remote_membership_leave (MusterMembership *membership, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  MusterRemoteMembership *self = MUSTER_REMOTE_MEMBERSHIP (membership);
  if (!muster_membership_check (membership, error))
    return FALSE;
  const gint64 n_batches = muster_membership_n_batches (membership);
  if (!send_report (self, n_batches, TRUE, deadline_us, cancellable, error))
    return FALSE;
  g_autoptr (GError) left = g_error_new (MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                                         "slot %u of '%s' is lost: it has left",
                                         muster_membership_slot (membership), self->join->model);
  muster_membership_lose (membership, left);
  return TRUE;
}

/* The end of the stream ends the membership at the server. */
static void
muster_remote_membership_dispose (GObject *object)
{
  MusterRemoteMembership *self = MUSTER_REMOTE_MEMBERSHIP (object);
  if (self->task != NULL)
    muster_background_task_stop (self->task);
  g_clear_pointer (&self->stream, muster_rpc_stream_free); /* it may wake the task until here */
  g_clear_pointer (&self->task, muster_background_task_free);
  g_clear_pointer (&self->client, muster_rpc_client_unref);
  G_OBJECT_CLASS (muster_remote_membership_parent_class)->dispose (object);
}

static void
muster_remote_membership_finalize (GObject *object)
{
  MusterRemoteMembership *self = MUSTER_REMOTE_MEMBERSHIP (object);
  g_free (self->target);
  g_boxed_free (MUSTER_TYPE_JOIN, self->join);
  g_clear_error (&self->refused);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_remote_membership_parent_class)->finalize (object);
}

static void
muster_remote_membership_class_init (MusterRemoteMembershipClass *klass)
{
  MUSTER_MEMBERSHIP_CLASS (klass)->report = remote_membership_report;
  MUSTER_MEMBERSHIP_CLASS (klass)->leave = remote_membership_leave;
  G_OBJECT_CLASS (klass)->dispose = muster_remote_membership_dispose;
  G_OBJECT_CLASS (klass)->finalize = muster_remote_membership_finalize;
}

static void
muster_remote_membership_init (MusterRemoteMembership *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
}
