// SPDX-License-Identifier: Apache-2.0
/* One run of prepare, recover or wait. It holds what all attempts share: the clock and the
 * phases, the situation from which reasons are computed, the retries, and the report. prepare.c,
 * wait.c and connect.c are the attempts. */
#include "base/log_private.h"
#include "ready/chief_gate_private.h"
#include "session/session_private.h"

#include <string.h>

/* A longer reason (ten thousand missing variables) is truncated in an error; the report has all of
 * it. */
#define LONGEST_WHY 2000

/* Limits the memory of an operation that never ends. */
#define MOST_SPANS 10000
/* A wait has no options. */
static gboolean
is_chiefs (const MusterOperation *self)
{
  return self->options != NULL;
}

/* Phases. */

static void
add_to_phase (GArray *phases, const MusterSpan *span)
{
  for (guint i = 0; i < phases->len; i++) {
    MusterSpan *phase = &g_array_index (phases, MusterSpan, i);
    if (strcmp (phase->name, span->name) == 0) {
      phase->duration_us += span->duration_us;
      return;
    }
  }
  g_array_append_val (phases, *span);
}

/* Consecutive spans of a phase are one. */
static void
add_to_timeline (GArray *timeline, const MusterSpan *span)
{
  if (timeline->len > 0) {
    MusterSpan *last = &g_array_index (timeline, MusterSpan, timeline->len - 1);
    if (strcmp (last->name, span->name) == 0 &&
        last->started_us + last->duration_us == span->started_us) {
      last->duration_us += span->duration_us;
      return;
    }
  }
  if (timeline->len < MOST_SPANS)
    g_array_append_val (timeline, *span);
}

void
muster_operation_phase (MusterOperation *self, const char *name)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  if (self->phase != NULL) {
    const MusterSpan span = {self->phase, self->phase_started_us - self->started_us,
                             now_us - self->phase_started_us};
    add_to_phase (self->report.phases, &span);
    add_to_timeline (self->report.timeline, &span);
  }
  self->phase = name;
  self->phase_started_us = now_us;
}

void
muster_operation_rename_phase (MusterOperation *self, const char *name)
{
  self->phase = name;
}

/* The situation, and reports to the listener. */

/* While the chief alone decides, why_gate and why_not_ready describe the chief, which has its own
 * reason; the ops' reason is the missing variables. */
static char *
why_not (const MusterReadiness *readiness)
{
  if (!muster_chief_decides (readiness->chief))
    return g_strdup (readiness->why_gate != NULL ? readiness->why_gate : readiness->why_not_ready);
  if (readiness->missing == NULL || *readiness->missing == NULL)
    return NULL;
  g_autofree char *names = g_strjoinv (", ", readiness->missing);
  return g_strconcat ("Variables not initialized: ", names, NULL);
}

static void
update (MusterOperation *self, const MusterReadiness *readiness, gboolean is_change)
{
  if (is_change || !self->has_situation)
    self->version++;
  if (readiness != NULL) {
    g_free (self->why);
    self->why = why_not (readiness);
  }
  MusterSituation situation = {.version = self->version,
                               .target = muster_master_target (self->master),
                               .readiness = readiness,
                               .failure = self->failure,
                               .diagnosis = self->diagnosis,
                               .server_state = self->server_state,
                               .tasks = (const char *const *)self->missing_tasks,
                               .chief = self->manager->chief,
                               .has_cluster = self->manager->cluster != NULL,
                               .variables = self->manager->variables,
                               .n_variables = self->manager->n_variables};

  self->has_situation = TRUE;
  self->knows_readiness = readiness != NULL;
  self->readiness_version = readiness != NULL ? readiness->version : 0;
  muster_reasons_update (self->reasons, &situation);
}

void
muster_operation_receive_readiness (MusterOperation *self, const MusterReadiness *readiness)
{
  gboolean is_change = !self->knows_readiness || readiness->version != self->readiness_version;
  g_clear_error (&self->failure);
  update (self, readiness, is_change);
}

/* Returns TRUE for two failures with the same text. Resets count as the same, although each
 * names its session. before may be NULL. */
static gboolean
is_same_failure (const GError *before, const GError *failure)
{
  if (before == NULL || (muster_failure_is_reset (before) && muster_failure_is_reset (failure)))
    return before != NULL;
  return g_error_matches (before, failure->domain, failure->code) &&
         g_str_equal (before->message, failure->message);
}

/* The readiness from before the failure is no longer valid. */
void
muster_operation_receive_failure (MusterOperation *self, const GError *failure)
{
  gboolean is_change = self->knows_readiness || !is_same_failure (self->failure, failure);
  if (failure != self->failure) {
    g_clear_error (&self->failure);
    self->failure = g_error_copy (failure);
  }
  update (self, NULL, is_change);
}

gboolean
muster_operation_has_no_store (const MusterOperation *self)
{
  return g_error_matches (self->failure, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
}

/* A session says nothing about a store that couldn't be reached. */
void
muster_operation_receive_session (MusterOperation *self)
{
  gboolean is_change = self->failure != NULL || self->knows_readiness;
  if (!self->has_situation || muster_operation_has_no_store (self))
    return;
  g_clear_error (&self->failure);
  update (self, NULL, is_change);
}

void
muster_operation_update_reasons (MusterOperation *self)
{
  update (self, NULL, self->knows_readiness);
}

/* A reason as part of a sentence; NULL if it isn't relevant, or the ops' text contains it. */
static char *
describe (const MusterOperation *self, const MusterReason *reason)
{
  gint64 for_us = muster_clock_now_us (self->clock) - reason->since_us;
  if (reason->is_well || g_str_equal (reason->component, "variables"))
    return NULL;
  if (g_str_equal (reason->component, "server"))
    return g_strdup (self->diagnosis);
  if (g_str_equal (reason->state, "never-registered"))
    return g_strdup_printf ("%s for '%s'", reason->text, self->manager->model);
  g_autofree char *duration = muster_format_duration (MAX (for_us, 0));
  if (g_str_equal (reason->component, "task"))
    return for_us < MUSTER_SECOND ? g_strdup (reason->text)
                                  : g_strdup_printf ("%s, for %s", reason->text, duration);
  if (!g_str_equal (reason->component, "chief"))
    return g_strdup_printf ("the %s %s", reason->component, reason->text);
  if (g_str_equal (reason->state, "lost"))
    return g_strdup_printf ("the chief was %s, %s ago", reason->text, duration);
  return g_strdup_printf ("the chief is %s, for %s", reason->text, duration);
}

char *
muster_operation_why (const MusterOperation *self)
{
  GPtrArray *reasons = muster_reasons_list (self->reasons);
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < reasons->len; i++) {
    char *part = describe (self, reasons->pdata[i]);
    if (part != NULL)
      g_ptr_array_add (parts, part);
  }
  if (self->failure != NULL)
    g_ptr_array_add (parts, g_strdup (self->failure->message));
  if (self->failure != NULL && self->why != NULL)
    g_ptr_array_add (parts, g_strdup_printf ("before that: %s", self->why));
  else if (self->why != NULL)
    g_ptr_array_add (parts, g_strdup (self->why));
  if (parts->len == 0)
    return NULL;
  g_ptr_array_add (parts, NULL);

  return g_strjoinv ("; ", (char **)parts->pdata);
}

void
muster_operation_report (MusterOperation *self, const char *message,
                         const MusterReadiness *readiness)
{
  const MusterSessionManager *manager = self->manager;
  static const MusterReadiness nothing;
  if (readiness != NULL)
    muster_operation_receive_readiness (self, readiness);
  if (self->version == self->reported_version)
    return;
  self->reported_version = self->version;
  muster_log (G_LOG_LEVEL_INFO, "waiting", "MESSAGE", "%s", message);
  if (manager->progress != NULL)
    manager->progress (message, readiness != NULL ? readiness : &nothing,
                       muster_reasons_list (self->reasons), manager->progress_data);
}

void
muster_operation_report_step (MusterOperation *self, const char *message)
{
  self->version++;
  muster_operation_report (self, message, NULL);
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
    const MusterSpan *phase = &g_array_index (report->phases, MusterSpan, i);
    if (phase->duration_us < MUSTER_MILLISECOND)
      continue;
    g_autofree char *duration = muster_format_duration (phase->duration_us);
    g_string_append_printf (text, "%s%s %s", text->len > 0 ? ", " : "", phase->name, duration);
  }
  if (text->len == 0)
    g_string_append (text, "no time");
  g_string_append_printf (text, " (%u poll%s, ", report->polls, report->polls == 1 ? "" : "s");
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

/* B002.46: whole seconds, truncated; "0.25" below one. */
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
  if (self->diagnosis != NULL && muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) &&
      strstr (failure->message, self->diagnosis) == NULL)
    g_set_error (error, failure->domain, failure->code, "%s (%s)", failure->message,
                 self->diagnosis);
  else if (error != NULL)
    *error = g_error_copy (failure);
}

/* TRUE if failure is the operation's deadline, not an op's own. */
static gboolean
is_out_of_time (const MusterOperation *self, const GError *failure)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  return muster_session_ran_out (failure, self->deadline_us, now_us) ||
         (self->ran_out && muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED));
}

/* Sets the caller's error: at the deadline with the phase, the duration of each phase and why there
 * is no session. A wait has then used all of its time. */
static void
fail_operation (MusterOperation *self, const GError *failure, GError **error)
{
  gboolean ran_out = is_out_of_time (self, failure);
  gboolean is_wait = ran_out && !is_chiefs (self);
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
  g_clear_pointer (&self->goodput, g_free);
  g_clear_pointer (&self->phases, g_array_unref);
  g_clear_pointer (&self->timeline, g_array_unref);
  g_clear_pointer (&self->reasons, g_ptr_array_unref);
  *self = (MusterSessionReport){0};
}

/* Retries. */

/* A single check isn't repeated, and a chief without a timeout doesn't wait for a master forever.
 */
static gboolean
may_retry (const MusterOperation *self, MusterFailure class)
{
  if (self->timeout_us <= 0)
    return FALSE;
  return !is_chiefs (self) || class != MUSTER_FAILURE_UNREACHABLE ||
         self->deadline_us != MUSTER_WAIT_FOREVER;
}

/* Adds the earlier attempts to the final failure. */
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
      g_strdup_printf ("Retrying (%s, %u of %u): %s", muster_failure_name (class),
                       self->retries.counts[class], budget, failure->message);
  muster_operation_report_step (self, message);
}

/* Handles an attempt that started at started_us and failed with failure (transfer full). TRUE:
 * retry; the pause is over. cost_us is the duration of another attempt, which must end by the
 * deadline. */
static gboolean
retry (MusterOperation *self, GError *failure, gint64 started_us, gint64 cost_us, GError **error)
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
  if (muster_operation_pause (self, class, pause_us, cost_us, error))
    return TRUE;
  muster_operation_update_reasons (self); /* a last diagnosis may have found more */
  return FALSE;
}

/* Clears what the previous attempt restored, since its session is gone. */
static void
forget_attempt (MusterOperation *self)
{
  g_clear_pointer (&self->report.restored_from, g_free);
  g_clear_pointer (&self->report.passed_over, g_free);
  g_clear_pointer (&self->report.restore_warning, g_free);
  self->report.continued = FALSE;
}

static void
try_until_done (MusterOperation *self, MusterAttempt attempt, GError **error)
{
  for (;;) {
    GError *failure = NULL;
    gint64 cost_us;
    gint64 started_us = muster_clock_now_us (self->clock);

    if (attempt (self, &cost_us, &failure))
      return;
    if (!retry (self, failure, started_us, cost_us, error))
      return;
    forget_attempt (self);
  }
}

/* A run. */

void
muster_operation_set_deadline (MusterOperation *self, gint64 by_us)
{
  const gint64 until_us = muster_deadline_after (self->started_us, self->timeout_us);
  self->deadline_us = by_us > 0 && self->timeout_us > 0 ? MIN (until_us, by_us) : until_us;
  self->call_deadline_us =
      self->timeout_us > 0 ? self->deadline_us
                           : muster_deadline_after (self->started_us, MUSTER_SINGLE_POLL_LIMIT_US);
}

static void
start (MusterOperation *self)
{
  const MusterSessionManager *manager = self->manager;
  gint64 now_us = muster_clock_now_us (manager->clock);
  self->clock = manager->clock;
  self->started_us = now_us;
  muster_operation_set_deadline (self, is_chiefs (self) ? manager->claim_by_us : 0);
  self->retries.policy = is_chiefs (self) ? &manager->preparing : &manager->waiting;
  self->reasons = muster_reasons_new (self->clock);
  self->report.final_step = -1;
  self->report.phases = g_array_new (FALSE, FALSE, sizeof (MusterSpan));
  self->report.timeline = g_array_new (FALSE, FALSE, sizeof (MusterSpan));
}

/* Returns the session if there was no failure (transfer full), and sets *report (nullable). */
static MusterSession *
conclude (MusterOperation *self, GError *failure, MusterSessionReport *report, GError **error)
{
  if (failure != NULL)
    fail_operation (self, failure, error);
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
  return self->session;
}

MusterSession *
muster_operation_run (MusterOperation *self, MusterAttempt attempt, GError *refusal,
                      MusterSessionReport *report, GError **error)
{
  GError *failure = refusal;
  start (self);
  if (refusal == NULL)
    try_until_done (self, attempt, &failure);
  return conclude (self, failure, report, error);
}
