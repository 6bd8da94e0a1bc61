// SPDX-License-Identifier: Apache-2.0
#include "base/blocking.h"
#include "ready/pause.h"
#include "session/session_private.h"

/* A reason longer than this (ten thousand missing variables) is cut in an error; the report has it
 * whole. */
#define LONGEST_WHY 2000

/* What a close may take: what is left of the verb's time, within these bounds. */
#define SHORTEST_CLOSE_US (250 * MUSTER_MILLISECOND)
#define LONGEST_CLOSE_US  (5 * MUSTER_SECOND)

/* As long as a master that is down is down in the same way, nothing is asked of it. */
#define LONGEST_OUTAGE_US (300 * MUSTER_SECOND)

/* A verb that never ends must not fill the memory with its own history. */
#define MOST_SPANS 10000
/* A server may keep CreateSession for ever: TensorFlow's does while a task of its cluster is
 * missing, a stopped one does anyway. When there has been no answer for so long, somebody looks
 * why, and after each such while again. */
#define FIRST_DIAGNOSIS_US (2 * MUSTER_SECOND)
#define NEXT_DIAGNOSIS_US  (10 * MUSTER_SECOND)

/* One CreateSession on a thread of its own, which alone writes session and failure until it is
 * joined. */
typedef struct {
  MusterMaster *master;                /* (not owned) */
  const MusterSessionManager *manager; /* (not owned) */
  GCancellable *cancellable;           /* (not owned) (nullable) */
  GCancellable *answered;              /* (not owned) cancelled when the call is over */
  gint64 deadline_us;
  MusterSession *session; /* (owned) (nullable) */
  GError *failure;        /* (owned) (nullable) */
} Call;

static gpointer
ask (gpointer data)
{
  Call *call = data;

  call->session =
      muster_master_create_session (call->master, call->manager->graph, call->manager->config,
                                    call->deadline_us, call->cancellable, &call->failure);
  if (call->answered != NULL)
    g_cancellable_cancel (call->answered);
  return NULL;
}

static void
report_cause (MusterOperation *self)
{
  g_autofree char *why = NULL;

  /* What failed before this call is past. */
  g_clear_error (&self->failure);
  muster_operation_update_reasons (self);
  why = muster_operation_why (self);
  g_autofree char *message =
      g_strdup_printf ("Creating a session at '%s': %s", muster_master_target (self->master),
                       why != NULL ? why : self->server_state);
  muster_operation_report (self, message, NULL);
}

/* Looks and tells on this thread, until the call is over or has no time left for another look. */
static void
diagnose_while_waiting (MusterOperation *self, const Call *call)
{
  gint64 poll_us = muster_deadline_after (muster_clock_now_us (self->clock), FIRST_DIAGNOSIS_US);
  g_autofree char *found = NULL;

  muster_about_to_block ();
  while (poll_us < call->deadline_us &&
         muster_clock_wait_until (self->clock, poll_us, call->answered, NULL)) {
    if (muster_operation_diagnose_again (self, call->answered, &found))
      report_cause (self);
    poll_us = muster_deadline_after (muster_clock_now_us (self->clock), NEXT_DIAGNOSIS_US);
  }
}

/* CreateSession; where it has no answer for a while, this thread tells why. */
static MusterSession *
muster_operation_call_create (MusterOperation *self, gint64 deadline_us, GError **error)
{
  Call call = {.master = self->master,
               .manager = self->manager,
               .cancellable = self->cancellable,
               .deadline_us = deadline_us};
  g_autoptr (GCancellable) answered = NULL;
  GThread *thread = NULL;

  /* A thread costs some 30 µs: where nobody listens, or there is no address to look at, it does
   * without. */
  if (self->manager->progress != NULL && muster_operation_can_diagnose (self)) {
    call.answered = answered = g_cancellable_new ();
    thread = g_thread_try_new ("muster-create", ask, &call, NULL);
  }
  if (thread != NULL) {
    diagnose_while_waiting (self, &call);
    g_thread_join (thread);
  } else {
    ask (&call);
  }
  if (call.failure != NULL)
    g_propagate_error (error, call.failure);
  return call.session;
}

void
muster_operation_start (MusterOperation *self, const MusterSessionManager *manager,
                        MusterMaster *master, gint64 timeout_us, GCancellable *cancellable)
{
  gint64 now_us = muster_clock_now_us (manager->clock);

  *self = (MusterOperation){.manager = manager,
                            .master = master,
                            .clock = manager->clock,
                            .cancellable = cancellable,
                            .timeout_us = timeout_us,
                            .started_us = now_us,
                            .deadline_us = muster_deadline_after (now_us, timeout_us),
                            .retries = {.policy = &manager->preparing},
                            .is_chiefs = TRUE,
                            .report = {.final_step = -1}};
  self->call_deadline_us = timeout_us > 0
                               ? self->deadline_us
                               : muster_deadline_after (now_us, MUSTER_SINGLE_POLL_LIMIT_US);
  self->reasons = muster_reasons_new (self->clock);
  self->report.phases = g_array_new (FALSE, FALSE, sizeof (MusterPhase));
  self->report.timeline = g_array_new (FALSE, FALSE, sizeof (MusterSpan));
}

/* Phases. */

static void
add_time (MusterOperation *self, const char *name, gint64 duration_us)
{
  GArray *phases = self->report.phases;

  for (guint i = 0; i < phases->len; i++) {
    MusterPhase *phase = &g_array_index (phases, MusterPhase, i);
    if (strcmp (phase->name, name) == 0) {
      phase->duration_us += duration_us;
      return;
    }
  }
  MusterPhase phase = {name, duration_us};
  g_array_append_val (phases, phase);
}

/* A phase that goes on after itself is one stretch. */
static void
add_span (MusterOperation *self, const char *name, gint64 from_us, gint64 to_us)
{
  GArray *timeline = self->report.timeline;
  MusterSpan span = {name, from_us - self->started_us, to_us - from_us};

  if (timeline->len > 0) {
    MusterSpan *last = &g_array_index (timeline, MusterSpan, timeline->len - 1);
    if (strcmp (last->name, name) == 0 && last->started_us + last->duration_us == span.started_us) {
      last->duration_us += span.duration_us;
      return;
    }
  }
  if (timeline->len < MOST_SPANS)
    g_array_append_val (timeline, span);
}

void
muster_operation_phase (MusterOperation *self, const char *name)
{
  gint64 now_us = muster_clock_now_us (self->clock);

  if (self->phase != NULL) {
    add_time (self, self->phase, now_us - self->phase_started_us);
    add_span (self, self->phase, self->phase_started_us, now_us);
  }
  self->phase = name;
  self->phase_started_us = now_us;
}

void
muster_operation_rename_phase (MusterOperation *self, const char *name)
{
  self->phase = name;
}

gboolean
muster_operation_is_over (const MusterOperation *self)
{
  return muster_clock_now_us (self->clock) >= self->deadline_us;
}

/* Errors. */

/* "connect 3 ms, create 45 ms, waiting 9.9 s (597 looks, one session)" */
static char *
describe_spending (MusterOperation *self)
{
  const MusterSessionReport *report = &self->report;
  guint n_retries = muster_retries_total (&self->retries);
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < report->phases->len; i++) {
    const MusterPhase *phase = &g_array_index (report->phases, MusterPhase, i);
    if (phase->duration_us < MUSTER_MILLISECOND)
      continue;
    g_autofree char *duration = muster_format_duration (phase->duration_us);
    g_string_append_printf (text, "%s%s %s", text->len > 0 ? ", " : "", phase->name, duration);
  }
  if (text->len == 0)
    g_string_append (text, "no time");
  g_string_append_printf (text, " (%u look%s, ", report->polls, report->polls == 1 ? "" : "s");
  if (report->sessions == 1)
    g_string_append (text, "one session");
  else
    g_string_append_printf (text, "%u sessions", report->sessions);
  if (n_retries > 0)
    g_string_append_printf (text, ", %u retr%s", n_retries, n_retries == 1 ? "y" : "ies");
  g_string_append_c (text, ')');
  return g_string_free (text, FALSE);
}

static char *
shorten (const char *why)
{
  if (strlen (why) <= LONGEST_WHY)
    return g_strdup (why);

  const char *end = why + LONGEST_WHY;
  while (((guchar)*end & 0xC0) == 0x80)
    end--;
  return g_strdup_printf ("%.*s…", (int)(end - why), why);
}

/* B002.46: whole seconds, cut; "0.25" where there is none. */
static char *
seconds_of (gint64 timeout_us)
{
  if (timeout_us <= 0 || timeout_us >= MUSTER_SECOND)
    return g_strdup_printf ("%" G_GINT64_FORMAT, timeout_us / MUSTER_SECOND);
  char *text = g_strdup_printf ("0.%06d", (int)timeout_us);
  for (char *end = text + strlen (text) - 1; *end == '0'; end--)
    *end = '\0';
  return text;
}

static void
set_deadline_error (MusterOperation *self, const char *phase, const GError *failure,
                    const char *why, GError **error)
{
  g_autofree char *seconds = seconds_of (self->timeout_us);
  g_autofree char *shortened = shorten (why != NULL ? why : failure->message);
  g_autofree char *spending = describe_spending (self);

  muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
               "Session was not ready after waiting %s secs. (%s); out of time in '%s'; spent: %s",
               seconds, shortened, phase != NULL ? phase : "start", spending);
}

static void
pass_on (const MusterOperation *self, const GError *failure, GError **error)
{
  if (self->diagnosis != NULL && muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE))
    g_set_error (error, failure->domain, failure->code, "%s (%s)", failure->message,
                 self->diagnosis);
  else if (error != NULL)
    *error = g_error_copy (failure);
}

/* Whether it is the verb's deadline that failure is about, and not an op's own. */
static gboolean
is_out_of_time (const MusterOperation *self, const GError *failure)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  return muster_session_ran_out (failure, self->deadline_us, now_us) ||
         (self->ran_out && muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED));
}

/* Reports failure to the caller: where the deadline ran out, which phase it was, how long each took
 * and why there is no session. Whatever a wait was at, it has then used all of its time. */
static void
fail (MusterOperation *self, const GError *failure, GError **error)
{
  gboolean ran_out = is_out_of_time (self, failure);
  gboolean is_wait = ran_out && !self->is_chiefs;
  g_autoptr (GError) cancelled = NULL;

  if (is_wait)
    muster_clock_wait_until (self->clock, self->deadline_us, self->cancellable, &cancelled);
  const char *phase = self->phase;
  g_autofree char *why = muster_operation_why (self);
  muster_operation_phase (self, NULL);
  if (self->report.reason == NULL)
    self->report.reason = g_strdup (why);
  if (!ran_out || cancelled != NULL) {
    pass_on (self, cancelled != NULL ? cancelled : failure, error);
    return;
  }
  if (is_wait && self->report.outcome == MUSTER_OUTCOME_FAILED)
    self->report.outcome = MUSTER_OUTCOME_NOT_READY;
  set_deadline_error (self, phase, failure, why, error);
}

void
muster_session_report_clear (MusterSessionReport *self)
{
  g_return_if_fail (self != NULL);
  g_clear_pointer (&self->restored_from, g_free);
  g_clear_pointer (&self->passed_over, g_free);
  g_clear_pointer (&self->restore_warning, g_free);
  g_clear_pointer (&self->reason, g_free);
  g_clear_pointer (&self->phases, g_array_unref);
  g_clear_pointer (&self->timeline, g_array_unref);
  g_clear_pointer (&self->reasons, g_ptr_array_unref);
  *self = (MusterSessionReport){0};
}

MusterSession *
muster_operation_conclude (MusterOperation *self, MusterSession *session, GError *failure,
                           MusterSessionReport *report, GError **error)
{
  if (failure != NULL)
    fail (self, failure, error);
  else if (self->report.outcome == MUSTER_OUTCOME_FAILED)
    self->report.outcome = MUSTER_OUTCOME_READY;
  g_clear_error (&failure);

  muster_operation_phase (self, NULL);
  if (self->has_situation)
    self->report.reasons = muster_reasons_copy (self->reasons);
  if (report != NULL)
    *report = self->report;
  else
    muster_session_report_clear (&self->report);
  muster_reasons_free (self->reasons);
  muster_operation_forget_diagnosis (self);
  g_clear_error (&self->failure);
  g_clear_pointer (&self->why, g_free);
  g_clear_object (&self->lease);
  g_clear_pointer (&self->before, muster_announcement_free);
  g_clear_pointer (&self->told, g_free);
  return session;
}

/* Sessions. */

/* Somebody has looked why, and it is still so. */
static gboolean
is_known (const MusterOperation *self, const GError *failure)
{
  return self->server_state != NULL && self->failure != NULL &&
         g_str_equal (self->failure->message, failure->message);
}

/* No session came of it. Whenever nobody answers for another reason than before, and when the time
 * is over, somebody looks why. */
static void
judge_creation (MusterOperation *self, GError *failure, gint64 deadline_us)
{
  gboolean ran_out =
      muster_session_ran_out (failure, deadline_us, muster_clock_now_us (self->clock));

  g_prefix_error (&failure, "Creating a session at '%s': ", muster_master_target (self->master));
  if (failure->domain != MUSTER_ERROR)
    return;
  if (ran_out || (muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) && !is_known (self, failure)))
    muster_operation_diagnose (self, ran_out);
  else if (!muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) &&
           !muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED))
    muster_operation_forget_diagnosis (self); /* it has answered */
  self->ran_out = ran_out;
  muster_operation_receive_failure (self, failure);
}

MusterSession *
muster_operation_create_session (MusterOperation *self, GError **error)
{
  GError *failure = NULL;
  gint64 deadline_us = self->call_deadline_us == MUSTER_WAIT_FOREVER
                           ? MUSTER_WAIT_FOREVER
                           : self->call_deadline_us - muster_operation_reserve_us (self);

  muster_operation_phase (self, "connect");
  MusterSession *session = muster_operation_call_create (self, deadline_us, &failure);
  if (session == NULL) {
    judge_creation (self, failure, deadline_us);
    g_propagate_error (error, failure);
    return NULL;
  }
  muster_operation_rename_phase (self, "create");
  muster_operation_forget_diagnosis (self);
  muster_operation_receive_session (self);
  self->down_since_us = 0;
  self->report.sessions++;
  return session;
}

void
muster_operation_give_up_session (MusterOperation *self, MusterSession *session)
{
  gint64 left_us = muster_deadline_remaining (self->deadline_us, muster_clock_now_us (self->clock));

  g_clear_object (&self->lease);
  if (session == NULL)
    return;
  /* Calls to a master are on the machine's clock. Whether it heard the close changes nothing. */
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  gint64 limit_us = CLAMP (left_us, SHORTEST_CLOSE_US, LONGEST_CLOSE_US);
  (void)muster_session_close (session, now_us + limit_us, NULL, NULL);
  g_object_unref (session);
}

/* Retries. */

/* A single look isn't repeated, and a chief without a timeout doesn't wait for a master for ever:
 * that is asked for by a timeout. */
static gboolean
may_retry (const MusterOperation *self, MusterFailure class)
{
  if (self->timeout_us <= 0)
    return FALSE;
  return !self->is_chiefs || class != MUSTER_FAILURE_UNREACHABLE ||
         self->deadline_us != MUSTER_WAIT_FOREVER;
}

/* Where no further attempt can end in time: the rest is waited for, and what was kept of it goes to
 * a last look at the master. */
static gboolean
run_out (MusterOperation *self, GError **error)
{
  gint64 reserve_us = muster_operation_reserve_us (self);

  if (!muster_clock_wait_until (self->clock, self->deadline_us - reserve_us, self->cancellable,
                                error))
    return FALSE;
  self->ran_out = TRUE;
  muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "No time left for another session");
  if (reserve_us > 0) {
    muster_operation_diagnose (self, FALSE);
    muster_operation_update_reasons (self);
  }
  return FALSE;
}

/* Until wake_us, or until the master that couldn't be reached can be; last_us at most. */
static gboolean
wait_for_master (MusterOperation *self, gint64 now_us, gint64 wake_us, gint64 last_us,
                 GError **error)
{
  MusterPause pause = {.wake_us = MIN (wake_us, last_us)};

  if (self->down_since_us == 0)
    self->down_since_us = now_us;
  pause.down_since_us = self->down_since_us;
  pause.longest_us = MIN (muster_deadline_after (now_us, LONGEST_OUTAGE_US), last_us);

  gboolean is_over = muster_pause (&pause, self->master, self->clock, self->cancellable, error);
  self->down_since_us = pause.down_since_us;
  return is_over;
}

/* Pauses before another attempt, which must still end by the deadline if it costs what the last one
 * did. */
static gboolean
pause_before_retry (MusterOperation *self, MusterFailure class, gint64 pause_us, gint64 cost_us,
                    GError **error)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 wake_us = muster_deadline_after (now_us, pause_us);
  gint64 last_us = self->deadline_us == MUSTER_WAIT_FOREVER
                       ? MUSTER_WAIT_FOREVER
                       : self->deadline_us - muster_operation_reserve_us (self) -
                             MAX (cost_us + cost_us / 4, MUSTER_MILLISECOND);

  if (last_us <= now_us)
    return run_out (self, error);
  if (class == MUSTER_FAILURE_UNREACHABLE)
    return wait_for_master (self, now_us, wake_us, last_us, error);
  return muster_clock_wait_until (self->clock, MIN (wake_us, last_us), self->cancellable, error);
}

/* What was tried before it failed for good is part of the failure. */
static void
give_up (MusterOperation *self, GError *failure, GError **error)
{
  guint n = muster_retries_total (&self->retries);

  if (n == 0) {
    g_propagate_error (error, failure);
    return;
  }
  g_set_error (error, failure->domain, failure->code, "%s (after %u retr%s)", failure->message, n,
               n == 1 ? "y" : "ies");
  g_error_free (failure);
}

static void
report_retry (MusterOperation *self, MusterFailure class, const GError *failure)
{
  guint budget = self->retries.policy->budget[class];

  if (budget == MUSTER_RETRY_UNTIL_DEADLINE) {
    muster_operation_report (self, failure->message, NULL);
    return;
  }
  g_autofree char *message =
      g_strdup_printf ("Trying again (%s, %u of %u): %s", muster_failure_name (class),
                       self->retries.counts[class], budget, failure->message);
  muster_operation_report (self, message, NULL);
}

gboolean
muster_operation_retry (MusterOperation *self, GError *failure, gint64 started_us, gint64 cost_us,
                        GError **error)
{
  MusterFailure class = muster_failure_of (failure);
  gint64 uptime_us = muster_clock_now_us (self->clock) - started_us;
  gint64 pause_us;

  if (!may_retry (self, class) ||
      !muster_retries_next (&self->retries, class, uptime_us, muster_clock_random (self->clock),
                            &pause_us)) {
    give_up (self, failure, error);
    return FALSE;
  }
  self->report.retries[class]++;
  muster_operation_receive_failure (self, failure);
  report_retry (self, class, failure);
  g_error_free (failure);
  muster_operation_phase (self, "connect");
  return pause_before_retry (self, class, pause_us, cost_us, error);
}
