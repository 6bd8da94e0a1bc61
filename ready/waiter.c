// SPDX-License-Identifier: Apache-2.0
/* Waits for readiness in one session: by a watch if the server offers it, else by polling at
 * growing intervals (countdown.c). With a coordinator both: it pushes what the chief announces, and
 * the ops are polled while the chief's phase lets them decide. */
#include "ready/waiter_private.h"

#include "master/coordinated_private.h"
#include "ready/backoff.h"
#include "ready/chief_gate_private.h"
#include "ready/readiness_private.h"

/* Timeout of a poll, after which the master counts as unreachable. */
#define POLL_LIMIT_US (60 * MUSTER_SECOND)

typedef enum { GATE, READY } Condition;

struct _MusterWaiter {
  MusterSession *session; /* (owned) */
  char *gate_op;          /* (owned) (nullable) */
  char *ready_op;         /* (owned) (nullable) */
  char *model;            /* (owned) (nullable) */
  char *task;             /* (owned) (nullable) */
  gint64 ceiling_us;
  MusterClock *clock; /* (owned) */
  MusterWaitProgress progress;
  gpointer progress_data;

  MusterReadiness readiness; /* the last one polled or received; versions are counted here */
  guint64 reported_version;
  MusterReadyOp ops[2]; /* by condition: what is polled, once known */
  guint polls;
  gboolean once;

  MusterWatch *watch; /* (owned) (nullable) */
  gint64 watch_deadline_us;
  gboolean is_fresh;  /* this watch has sent nothing: its first message may be known already */
  gboolean is_pushed; /* a watch has sent a message */
  gboolean must_poll; /* the master can't push */

  /* Of a coordinated session: */
  gboolean knows_chief;      /* the coordinator has answered, and answers still */
  MusterAnnouncement *chief; /* (owned) (nullable) as announced there last */
  gint64 forgotten_us;       /* until when a chief counts that the coordinator lost; 0: it didn't */
  guint n_tasks, min_tasks;  /* of a job that waits for tasks there; else 0 */
  char *why_unknown;         /* (owned) (nullable) why the coordinator doesn't answer */
};

MusterWaiter *
muster_waiter_new (MusterSession *session, const MusterWatchFor *what, gint64 ceiling_us,
                   MusterClock *clock)
{
  MusterWaiter *self = g_new0 (MusterWaiter, 1);
  self->session = g_object_ref (session);
  self->gate_op = g_strdup (what->ready_for_local_init_op);
  self->ready_op = g_strdup (what->ready_op);
  self->model = g_strdup (what->model);
  self->task = g_strdup (what->task);
  self->ceiling_us = ceiling_us;
  self->clock = g_object_ref (clock ? clock : muster_system_clock ());
  return self;
}

void
muster_waiter_free (MusterWaiter *self)
{
  if (self == NULL)
    return;

  g_clear_object (&self->watch);
  g_clear_pointer (&self->chief, muster_announcement_free);
  g_free (self->why_unknown);
  muster_readiness_clear (&self->readiness);
  muster_ready_op_clear (&self->ops[GATE]);
  muster_ready_op_clear (&self->ops[READY]);
  g_free (self->gate_op);
  g_free (self->ready_op);
  g_free (self->model);
  g_free (self->task);
  g_object_unref (self->clock);
  g_object_unref (self->session);
  g_free (self);
}

void
muster_waiter_set_progress (MusterWaiter *self, MusterWaitProgress progress, gpointer user_data)
{
  self->progress = progress;
  self->progress_data = user_data;
}

void
muster_waiter_poll_once (MusterWaiter *self)
{
  self->once = TRUE;
}

static gboolean
is_change (const MusterWaiter *self, const MusterReadiness *now)
{
  return self->readiness.version == 0 || muster_readiness_changed (&self->readiness, now);
}

/* Reports a change, except that the model is ready. */
static void
report_change (MusterWaiter *self)
{
  if (self->readiness.version == self->reported_version || self->readiness.is_ready)
    return;
  self->reported_version = self->readiness.version;
  if (self->progress != NULL)
    self->progress (&self->readiness, self->progress_data);
}

static const char *
why_not (const MusterWaiter *self)
{
  const MusterReadiness *readiness = &self->readiness;
  return readiness->why_gate != NULL ? readiness->why_gate : readiness->why_not_ready;
}

static gboolean
is_answered (const MusterWaiter *self, Condition condition)
{
  return self->readiness.gate_open && (condition == GATE || self->readiness.is_ready);
}

/* Takes what the ops report, limited by what the chief has announced to a coordinator. */
static void
keep (MusterWaiter *self, const MusterReadiness *ops)
{
  g_auto (MusterReadiness) now = {0};
  MusterAnnouncement *chief = self->chief != NULL ? muster_announcement_copy (self->chief) : NULL;
  muster_readiness_apply_chief (&now, ops, self->knows_chief, chief);
  now.coordinator_failure = g_strdup (self->why_unknown);
  muster_readiness_hold_for_tasks (&now, self->n_tasks, self->min_tasks);
  muster_readiness_keep (&self->readiness, &now, is_change (self, &now));
}

/* Polling. */

/* Polls one condition, since the gate may be open long before local init has run. */
static gboolean
probe (MusterWaiter *self, Condition condition, gint64 deadline_us, GCancellable *cancellable,
       GError **error)
{
  const MusterReadyOp *op = &self->ops[condition];
  g_auto (MusterReadyOpResult) found = {0};
  g_auto (MusterReadiness) now = {0};
  if (!muster_ready_op_run (self->session, op, deadline_us, cancellable, &found, error))
    return FALSE;
  now.gate_open = condition == READY || found.is_ready;
  now.is_ready = condition == READY && found.is_ready;
  now.missing = g_steal_pointer (&found.missing);
  *(condition == GATE ? &now.why_gate : &now.why_not_ready) = g_steal_pointer (&found.why_not);
  self->polls++;
  keep (self, &now);
  return TRUE;
}

static gboolean
poll_in_time (MusterWaiter *self, Condition condition, gint64 now_us, gint64 deadline_us,
              GCancellable *cancellable, GError **error)
{
  gint64 limit_us = MIN (deadline_us, muster_deadline_after (now_us, POLL_LIMIT_US));
  g_autoptr (GError) failure = NULL;
  if (probe (self, condition, limit_us, cancellable, &failure))
    return TRUE;
  if (limit_us < deadline_us &&
      muster_session_ran_out (failure, limit_us, muster_clock_now_us (self->clock))) {
    return muster_fail (error, MUSTER_ERROR_UNAVAILABLE,
                        "the master didn't answer a readiness poll for 1 minute: %s",
                        failure->message);
  }
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static gboolean
fail_timeout (const MusterWaiter *self, GError **error)
{
  const char *why = why_not (self);
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "Not ready in time: %s",
                      why != NULL ? why : "no answer");
}

static const char *
op_of (const MusterWaiter *self, Condition condition)
{
  return condition == GATE ? self->gate_op : self->ready_op;
}

/* Watching. */

/* One watch serves both conditions; it ends at its deadline, so another deadline needs another
 * watch. */
static gboolean
ensure_watch (MusterWaiter *self, gint64 deadline_us, GError **error)
{
  if (self->watch != NULL && self->watch_deadline_us == deadline_us)
    return TRUE;
  g_clear_object (&self->watch);
  MusterWatchFor what = {self->gate_op, self->ready_op, self->model, self->task};
  self->watch = muster_session_watch (self->session, &what, deadline_us, error);
  self->watch_deadline_us = deadline_us;
  self->is_fresh = TRUE;
  return self->watch != NULL;
}

static gboolean
receive (MusterWaiter *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_auto (MusterReadiness) now = {0};
  g_autoptr (GError) failure = NULL;
  if (!ensure_watch (self, deadline_us, error))
    return FALSE;
  if (!muster_watch_next (self->watch, &now, cancellable, &failure)) {
    if (!self->is_fresh &&
        muster_session_ran_out (failure, deadline_us, muster_clock_now_us (self->clock)))
      return fail_timeout (self, error);
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  /* After its first message a watch sends only changes. */
  muster_readiness_keep (&self->readiness, &now, !self->is_fresh || is_change (self, &now));
  self->is_fresh = FALSE;
  self->is_pushed = TRUE;
  self->polls++;
  report_change (self);
  return TRUE;
}

/* FALSE if the model's chief has ended the job: a late worker has nothing to wait for, even if the
 * variables exist. */
static gboolean
check_job (const MusterWaiter *self, GError **error)
{
  const MusterAnnouncement *chief = self->readiness.chief;
  if (self->model == NULL || chief == NULL || chief->phase != MUSTER_CHIEF_OVER)
    return TRUE;
  g_autofree char *age = muster_format_duration (MAX (chief->phase_age_us, 0));
  g_autofree char *step =
      chief->step < 0 ? g_strdup ("") : g_strdup_printf (" at step %" G_GINT64_FORMAT, chief->step);
  return muster_fail (error, MUSTER_ERROR_OUT_OF_RANGE,
                      "%s is over: its chief ended the job%s, %s ago", self->model, step, age);
}

static gboolean
receive_until (MusterWaiter *self, Condition condition, gint64 deadline_us,
               GCancellable *cancellable, GError **error)
{
  while (!is_answered (self, condition)) {
    if (!receive (self, deadline_us, cancellable, error) || !check_job (self, error))
      return FALSE;
    if (self->once && !is_answered (self, condition))
      return fail_timeout (self, error);
  }
  return TRUE;
}

/* With a coordinator. */

/* While the chief decides, a coordinator that is silent for so long is asked again. */
#define COORDINATOR_LOOK_US (10 * MUSTER_SECOND)
/* A chief that decides does so for this long after the coordinator went, or came back without it:
 * the chief may be restoring, and half a model may satisfy the ops. */
#define REMEMBER_US (60 * MUSTER_SECOND)

/* Whether the chief still decides though the coordinator doesn't know it any more. */
static gboolean
remembers_chief (MusterWaiter *self)
{
  const gint64 now_us = muster_clock_now_us (self->clock);
  if (!muster_chief_decides (self->chief))
    return FALSE;
  if (self->forgotten_us == 0)
    self->forgotten_us = muster_deadline_after (now_us, REMEMBER_US);
  return now_us < self->forgotten_us;
}

/* chief (transfer full) (nullable) */
static void
set_chief (MusterWaiter *self, MusterAnnouncement *chief)
{
  muster_announcement_free (self->chief);
  self->chief = chief;
  self->forgotten_us = 0;
}

static void
forget_chief (MusterWaiter *self, const GError *why)
{
  g_clear_object (&self->watch); /* the next look opens another */
  if (!remembers_chief (self))
    set_chief (self, NULL);
  self->knows_chief = FALSE;
  self->n_tasks = self->min_tasks = 0;
  g_free (self->why_unknown);
  self->why_unknown = g_strdup (why->message);
}

static void
take_chief (MusterWaiter *self, MusterReadiness *heard)
{
  if (heard->chief != NULL || !remembers_chief (self))
    set_chief (self, g_steal_pointer (&heard->chief));
  self->n_tasks = heard->n_tasks;
  self->min_tasks = heard->min_tasks;
  self->knows_chief = self->is_pushed = TRUE;
  self->is_fresh = FALSE;
  g_clear_pointer (&self->why_unknown, g_free);
}

/* How long the coordinator's next message is waited for. The first one is due soon, but once the
 * coordinator is away, nobody waits longer for it than until the next poll. */
static gint64
message_limit_us (const MusterWaiter *self, gint64 deadline_us, gint64 until_us)
{
  if (!self->is_fresh || self->why_unknown != NULL)
    return until_us;
  return MIN (deadline_us, muster_deadline_after (muster_clock_now_us (self->clock),
                                                  MUSTER_COORDINATOR_LIMIT_US));
}

/* Waits until until_us for the chief's next announcement. A coordinator that is away is no failure:
 * then this waits for the time alone. */
static gboolean
hear_chief (MusterWaiter *self, gint64 deadline_us, gint64 until_us, GCancellable *cancellable,
            GError **error)
{
  g_auto (MusterReadiness) heard = {0};
  g_autoptr (GError) failure = NULL;
  const gboolean is_watching = ensure_watch (self, deadline_us, &failure);
  const gint64 limit_us = message_limit_us (self, deadline_us, until_us);
  if (is_watching &&
      muster_watch_next_until (self->watch, &heard, limit_us, cancellable, &failure)) {
    take_chief (self, &heard);
    return TRUE;
  }
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if ((!self->is_fresh || self->why_unknown != NULL) &&
      muster_session_ran_out (failure, limit_us, muster_clock_now_us (self->clock))) {
    if (!self->is_fresh && muster_chief_decides (self->chief))
      g_clear_object (&self->watch); /* the next one shows whether the coordinator still answers */
    return TRUE;
  }
  if (muster_failure_of (failure) == MUSTER_FAILURE_MISTAKE &&
      !muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED)) {
    g_propagate_prefixed_error (error, g_steal_pointer (&failure), "The coordinator: ");
    return FALSE;
  }
  const gboolean was_known = self->knows_chief;
  forget_chief (self, failure);
  return was_known || muster_clock_wait_until (self->clock, until_us, cancellable, error);
}

/* Whether the phase that the chief has announced lets the ops decide; else they aren't run. */
static gboolean
look (MusterWaiter *self, Condition condition, gint64 now_us, gint64 deadline_us,
      GCancellable *cancellable, GError **error)
{
  const MusterReadiness open = {.gate_open = TRUE, .is_ready = condition == READY};
  if (!muster_chief_decides (self->chief) && op_of (self, condition) != NULL)
    return poll_in_time (self, condition, now_us, deadline_us, cancellable, error);
  keep (self, &open); /* unless the chief decides */
  return TRUE;
}

/* When to look again; 0: no further look can end in time. */
static gint64
next_look_us (const MusterWaiter *self, const MusterCountdown *countdown, gint64 now_us,
              gint64 deadline_us)
{
  const gint64 later_us = muster_deadline_after (now_us, COORDINATOR_LOOK_US);
  if (!muster_chief_decides (self->chief) || self->forgotten_us != 0)
    return muster_countdown_next_us (countdown, now_us, muster_clock_random (self->clock));
  return later_us < deadline_us ? later_us : 0;
}

static gboolean
pause_until (MusterWaiter *self, gint64 deadline_us, gint64 wake_us, GCancellable *cancellable,
             GError **error)
{
  return muster_session_is_coordinated (self->session)
             ? hear_chief (self, deadline_us, wake_us, cancellable, error)
             : muster_clock_wait_until (self->clock, wake_us, cancellable, error);
}

static gboolean
poll_until (MusterWaiter *self, Condition condition, gint64 deadline_us, GCancellable *cancellable,
            GError **error)
{
  MusterCountdown countdown;
  gint64 now_us = muster_clock_now_us (self->clock);
  if (self->ops[condition].name == NULL)
    muster_ready_op_find (&self->ops[condition], op_of (self, condition),
                          muster_session_graph (self->session));
  muster_countdown_start (&countdown, now_us, deadline_us, self->ceiling_us);
  if (muster_session_is_coordinated (self->session) &&
      !hear_chief (self, deadline_us, now_us, cancellable, error))
    return FALSE;
  for (;;) {
    now_us = muster_clock_now_us (self->clock);
    if (!look (self, condition, now_us, deadline_us, cancellable, error) ||
        !check_job (self, error))
      return FALSE;
    if (is_answered (self, condition))
      return TRUE;
    report_change (self);

    const gint64 after_us = muster_clock_now_us (self->clock);
    muster_countdown_polled (&countdown, after_us - now_us);
    const gint64 wake_us = next_look_us (self, &countdown, after_us, deadline_us);
    if (self->once)
      return fail_timeout (self, error);
    /* If no further look can end in time, the rest of the time is still waited for. */
    if (!pause_until (self, deadline_us, wake_us == 0 ? deadline_us : wake_us, cancellable, error))
      return FALSE;
    if (wake_us == 0 && muster_clock_now_us (self->clock) >= deadline_us)
      return fail_timeout (self, error);
  }
}

/* What was received before local init may be outdated: the next message is current. */
static void
clear_readiness (MusterWaiter *self)
{
  g_clear_object (&self->watch);
  self->readiness.is_ready = FALSE;
}

static gboolean
poll_if_needed (MusterWaiter *self, Condition condition, gint64 deadline_us,
                GCancellable *cancellable, GError **error)
{
  if (op_of (self, condition) == NULL)
    return TRUE;
  return poll_until (self, condition, deadline_us, cancellable, error);
}

/* A model with a name isn't ready while its chief prepares it, whatever its ops report: a master
 * that keeps announcements is asked even without a ready op. */
static gboolean
wait_until (MusterWaiter *self, Condition condition, gint64 deadline_us, GCancellable *cancellable,
            GError **error)
{
  g_autoptr (GError) failure = NULL;
  gboolean is_needed =
      condition == GATE ? self->gate_op != NULL : self->ready_op != NULL || self->model != NULL;

  if (!is_needed)
    return TRUE;
  if (self->model != NULL && muster_session_is_coordinated (self->session))
    return poll_until (self, condition, deadline_us, cancellable, error);
  if (self->must_poll || (self->once && self->model == NULL))
    return poll_if_needed (self, condition, deadline_us, cancellable, error);
  if (self->once || is_answered (self, READY))
    clear_readiness (self);
  if (receive_until (self, condition, deadline_us, cancellable, &failure))
    return TRUE;
  if (!muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED) || self->is_pushed) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  self->must_poll = TRUE;
  g_clear_object (&self->watch);
  return poll_if_needed (self, condition, deadline_us, cancellable, error);
}

gboolean
muster_waiter_wait_gate (MusterWaiter *self, gint64 deadline_us, GCancellable *cancellable,
                         GError **error)
{
  return wait_until (self, GATE, deadline_us, cancellable, error);
}

gboolean
muster_waiter_wait_ready (MusterWaiter *self, gint64 deadline_us, GCancellable *cancellable,
                          GError **error)
{
  return wait_until (self, READY, deadline_us, cancellable, error);
}

const MusterReadiness *
muster_waiter_readiness (MusterWaiter *self)
{
  return &self->readiness;
}

guint
muster_waiter_n_polls (MusterWaiter *self)
{
  return self->polls;
}

gboolean
muster_waiter_is_pushed (MusterWaiter *self)
{
  return self->is_pushed;
}
