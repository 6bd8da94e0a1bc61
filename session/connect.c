// SPDX-License-Identifier: Apache-2.0
/* Creates sessions, and finds out why a master doesn't answer. While CreateSession runs without
 * an answer, this thread probes the master's port and the cluster's tasks and reports the cause;
 * after a failure it decides whether another attempt can help, and waits for the master. */
#include "rpc/client/diagnose.h"

#include "base/blocking_private.h"
#include "base/gateway_private.h"
#include "graph/device_name_private.h"
#include "graph/graph_nodes_private.h"
#include "ready/pause_private.h"
#include "rpc/address_private.h"
#include "session/session_private.h"

/* Limits of the time for a close: the operation's remaining time, within these. */
#define SHORTEST_CLOSE_US (250 * MUSTER_MILLISECOND)
#define LONGEST_CLOSE_US  (5 * MUSTER_SECOND)

/* A server may not answer CreateSession: TensorFlow's doesn't while a task of its cluster is
 * missing, and a stopped one never does. After this time without an answer the cause is diagnosed,
 * and again after each such interval. */
#define FIRST_DIAGNOSIS_US (2 * MUSTER_SECOND)
#define NEXT_DIAGNOSIS_US  (10 * MUSTER_SECOND)

/* While a master is down for the same reason, no calls are made for this long. */
#define LONGEST_OUTAGE_US (300 * MUSTER_SECOND)

/* Maximum duration of a diagnosis. */
#define LONGEST_DIAGNOSIS_US (500 * MUSTER_MILLISECOND)
/* The same while a call runs, which leaves more time. */
#define UNHURRIED_DIAGNOSIS_US MUSTER_SECOND
/* The fraction of an operation's time that is reserved for a diagnosis. */
#define PART_KEPT 10
/* Maximum number of tasks that are probed. */
#define MOST_TASKS 64
/* Maximum number of tasks named beside the server. */
#define TASKS_NAMED 3

typedef struct {
  char *task;    /* (owned) (nullable) NULL: the master itself */
  char *address; /* (owned) */
  gboolean tls;
  gint64 deadline_us;
  GCancellable *cancellable; /* (not owned) (nullable) */
  MusterDiagnosis diagnosis;
} Check;

static void
check_free (gpointer data)
{
  Check *check = data;
  g_free (check->task);
  g_free (check->address);
  muster_diagnosis_clear (&check->diagnosis);
  g_free (check);
}

static gboolean
can_diagnose (const MusterOperation *self)
{
  return muster_address_in_target (muster_master_target (self->master), NULL) != NULL;
}

/* Returns the time reserved for a diagnosis while there was no session. */
static gint64
time_kept_us (const MusterOperation *self)
{
  if (self->report.sessions > 0 || !can_diagnose (self) ||
      self->call_deadline_us == MUSTER_WAIT_FOREVER)
    return 0;
  return MIN (LONGEST_DIAGNOSIS_US, (self->call_deadline_us - self->started_us) / PART_KEPT);
}

gboolean
muster_cluster_check (const char *const *cluster, GError **error)
{
  for (; cluster != NULL && *cluster != NULL; cluster++) {
    const char *equals = strchr (*cluster, '=');
    g_autofree char *host = NULL;
    guint16 port;
    if (equals != NULL && equals > *cluster &&
        muster_address_parse (equals + 1, &host, &port, NULL))
      continue;
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid cluster task '%s' (use ps:0=HOST:PORT)", *cluster);
  }
  return TRUE;
}

static GPtrArray *
plan_checks (const MusterOperation *self, const char *address, gboolean tls, gint64 deadline_us,
             GCancellable *cancellable)
{
  GPtrArray *checks = g_ptr_array_new_with_free_func (check_free);
  Check *check = g_new0 (Check, 1);
  *check = (Check){.address = g_strdup (address), .tls = tls};
  g_ptr_array_add (checks, check);
  for (char **task = self->manager->cluster;
       task != NULL && *task != NULL && checks->len <= MOST_TASKS; task++) {
    const char *equals = strchr (*task, '=');
    check = g_new0 (Check, 1);
    *check = (Check){.task = g_strndup (*task, (gsize)(equals - *task)),
                     .address = g_strdup (equals + 1)};
    g_ptr_array_add (checks, check);
  }
  for (guint i = 0; i < checks->len; i++) {
    check = checks->pdata[i];
    check->deadline_us = deadline_us;
    check->cancellable = cancellable;
  }
  return checks;
}

static gpointer
run_check (gpointer data)
{
  Check *check = data;
  if (check->task != NULL)
    muster_diagnose_master (check->address, check->deadline_us, check->cancellable,
                            &check->diagnosis);
  else
    muster_diagnose (check->address, check->tls, check->deadline_us, check->cancellable,
                     &check->diagnosis);
  return NULL;
}

/* Runs all checks in parallel, since each may take the whole time; this thread probes the
 * master. */
static void
run_checks (GPtrArray *checks)
{
  g_autofree GThread **threads = g_new0 (GThread *, checks->len);

  for (guint i = 1; i < checks->len; i++)
    threads[i] = g_thread_try_new ("muster-look", run_check, checks->pdata[i], NULL);
  run_check (checks->pdata[0]);
  for (guint i = 1; i < checks->len; i++)
    if (threads[i] != NULL)
      g_thread_join (threads[i]);
}

static const char *
state_of (MusterReach stage)
{
  switch (stage) {
  case MUSTER_REACH_NOT_RESOLVED:
    return "not-resolved";
  case MUSTER_REACH_REFUSED:
    return "refused";
  case MUSTER_REACH_NO_ROUTE:
  case MUSTER_REACH_NO_TCP:
    return "unreachable";
  case MUSTER_REACH_TLS_FAILED:
    return "tls-failed";
  default:
    return "silent";
  }
}

static gboolean
is_missing (const Check *task)
{
  return task->diagnosis.text != NULL && task->diagnosis.stage != MUSTER_REACH_ANSWERS;
}

/* Returns a parameter server of the graph, such as "ps:0" (transfer full) (nullable). */
static char *
find_ps (MusterGraph *graph)
{
  const gsize n_nodes = graph != NULL ? muster_graph_n_nodes (graph) : 0;
  for (gsize i = 0; i < n_nodes; i++) {
    g_autofree char *task = muster_device_task (muster_graph_node (graph, i)->kind->device);
    if (task != NULL && g_str_has_prefix (task, "ps"))
      return g_steal_pointer (&task);
  }
  return NULL;
}

/* Appends the tasks that a running server may be waiting for, or how to find out. */
static void
append_tasks (const MusterOperation *self, GString *text, GPtrArray *checks)
{
  guint n_missing = 0;
  if (checks->len == 1) {
    g_autofree char *ps = find_ps (self->manager->graph);
    if (ps != NULL)
      g_string_append_printf (text, "; use --cluster=%s=HOST:PORT to find the missing task", ps);
    return;
  }
  for (guint i = 1; i < checks->len; i++) {
    const Check *check = checks->pdata[i];
    if (!is_missing (check))
      continue;
    if (n_missing < TASKS_NAMED)
      g_string_append_printf (text, "%s%s", n_missing == 0 ? "; no answer from " : ", ",
                              check->task);
    n_missing++;
  }
  if (n_missing == 0)
    g_string_append (text, "; all tasks of --cluster answer");
  else if (n_missing > TASKS_NAMED)
    g_string_append_printf (text, " and %u more", n_missing - TASKS_NAMED);
}

/* Describes a server that seems to run but doesn't answer CreateSession. */
static char *
describe_keeping (const MusterOperation *self, GPtrArray *checks)
{
  const Check *master = checks->pdata[0];
  g_autofree char *duration =
      muster_format_duration (muster_clock_now_us (self->clock) - self->phase_started_us);
  GString *text = g_string_new (NULL);

  g_string_append_printf (text, "%s, but CreateSession has had no answer for %s",
                          master->tls ? master->diagnosis.text : "up", duration);
  append_tasks (self, text, checks);
  return g_string_free (text, FALSE);
}

void
muster_operation_forget_diagnosis (MusterOperation *self)
{
  self->version += self->server_state != NULL;
  g_clear_pointer (&self->diagnosis, g_free);
  g_clear_pointer (&self->missing_tasks, g_strfreev);
  self->server_state = NULL;
}

/* Returns the beginning of CreateSession's errors. (transfer full) */
static char *
prefix_of (const MusterOperation *self)
{
  return g_strdup_printf ("Creating a session at '%s': ", muster_master_target (self->master));
}

static char *
without_prefix (const MusterOperation *self, const GError *failure)
{
  g_autofree char *prefix = prefix_of (self);
  const gboolean has_prefix = g_str_has_prefix (failure->message, prefix);
  return g_strdup (failure->message + (has_prefix ? strlen (prefix) : 0));
}

/* "unix:/tmp/muster-UID/…": nobody chose that target. */
static gboolean
is_gateway (const char *target)
{
  if (!g_str_has_prefix (target, MUSTER_GATEWAY_PREFIX))
    return FALSE;
  const char *uid = target + strlen (MUSTER_GATEWAY_PREFIX);
  const gsize n_digits = strspn (uid, "0123456789");
  return n_digits > 0 && uid[n_digits] == '/';
}

/* (transfer full) */
static char *
describe_master (const MusterOperation *self, const Check *master)
{
  return is_gateway (muster_master_target (self->master))
             ? g_strconcat (MUSTER_GATEWAY_DIAGNOSIS, master->diagnosis.text, NULL)
             : g_strdup (master->diagnosis.text);
}

/* Takes the checks' results. failure is CreateSession's, or NULL if it has run since the start
 * of the phase without an answer. A server that answers UNAVAILABLE knows the cause itself. */
static void
take_in (MusterOperation *self, GPtrArray *checks, const GError *failure)
{
  const Check *master = checks->pdata[0];
  const gboolean answers = master->diagnosis.stage == MUSTER_REACH_ANSWERS;
  GPtrArray *tasks = g_ptr_array_new ();
  muster_operation_forget_diagnosis (self);
  self->version++;
  const gboolean is_unavailable = answers && muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE);
  self->diagnosis = is_unavailable               ? without_prefix (self, failure)
                    : answers && failure == NULL ? describe_keeping (self, checks)
                                                 : describe_master (self, master);
  self->server_state = is_unavailable ? "unavailable" : state_of (master->diagnosis.stage);
  for (guint i = 1; i < checks->len; i++) {
    const Check *check = checks->pdata[i];
    if (is_missing (check))
      g_ptr_array_add (tasks, g_strdup_printf ("%s: %s", check->task, check->diagnosis.text));
  }
  g_ptr_array_add (tasks, NULL);
  self->missing_tasks = (char **)g_ptr_array_free (tasks, FALSE);
}

/* Diagnoses why the master doesn't answer; NULL if it has no address, or no time is left. */
static GPtrArray *
look (const MusterOperation *self, gint64 longest_us, GCancellable *cancellable)
{
  gboolean tls;
  const char *address = muster_address_in_target (muster_master_target (self->master), &tls);
  gint64 left_us =
      muster_deadline_remaining (self->call_deadline_us, muster_clock_now_us (self->clock));
  gint64 limit_us = MIN (longest_us, left_us);

  if (address == NULL || limit_us <= 0 || g_cancellable_is_cancelled (cancellable))
    return NULL;
  GPtrArray *checks = plan_checks (
      self, address, tls, muster_clock_now_us (muster_system_clock ()) + limit_us, cancellable);
  run_checks (checks);
  return checks;
}

static void
diagnose (MusterOperation *self, const GError *failure)
{
  g_autoptr (GPtrArray) checks = look (self, LONGEST_DIAGNOSIS_US, self->cancellable);
  if (checks != NULL)
    take_in (self, checks, failure);
  else
    muster_operation_forget_diagnosis (self);
}

/* Returns the result without durations, which vary. */
static char *
outline (GPtrArray *checks)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < checks->len; i++) {
    const Check *it = checks->pdata[i];
    g_string_append_printf (text, "%d ",
                            it->diagnosis.text != NULL ? (int)it->diagnosis.stage : -1);
  }
  return g_string_free (text, FALSE);
}

/* Diagnoses during CreateSession, until answered is cancelled. TRUE if the result differs from
 * *found (owned by the caller, nullable), its outline. */
static gboolean
diagnose_again (MusterOperation *self, GCancellable *answered, char **found)
{
  g_autoptr (GPtrArray) checks = look (self, UNHURRIED_DIAGNOSIS_US, answered);
  /* A cancelled diagnosis has no result. */
  if (checks == NULL || g_cancellable_is_cancelled (answered))
    return FALSE;
  g_autofree char *now_found = outline (checks);
  if (g_strcmp0 (now_found, *found) == 0)
    return FALSE;
  g_free (*found);
  *found = g_steal_pointer (&now_found);
  take_in (self, checks, NULL);
  return TRUE;
}

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

  /* Earlier failures no longer count. */
  g_clear_error (&self->failure);
  muster_operation_update_reasons (self);
  why = muster_operation_why (self);
  g_autofree char *message =
      g_strdup_printf ("Creating a session at '%s': %s", muster_master_target (self->master),
                       why != NULL ? why : self->server_state);
  muster_operation_report (self, message, NULL);
}

/* Diagnoses and reports on this thread, until the call has ended or no time is left. */
static void
diagnose_while_waiting (MusterOperation *self, const Call *call)
{
  gint64 poll_us = muster_deadline_after (muster_clock_now_us (self->clock), FIRST_DIAGNOSIS_US);
  g_autofree char *found = NULL;

  muster_about_to_block ();
  while (poll_us < call->deadline_us &&
         muster_clock_wait_until (self->clock, poll_us, call->answered, NULL)) {
    if (diagnose_again (self, call->answered, &found))
      report_cause (self);
    poll_us = muster_deadline_after (muster_clock_now_us (self->clock), NEXT_DIAGNOSIS_US);
  }
}

/* Calls CreateSession; if there is no answer for a while, this thread reports why. */
static MusterSession *
call_create (MusterOperation *self, gint64 deadline_us, GError **error)
{
  Call call = {.master = self->master,
               .manager = self->manager,
               .cancellable = self->cancellable,
               .deadline_us = deadline_us};
  g_autoptr (GCancellable) answered = NULL;
  GThread *thread = NULL;
  /* A thread costs about 30 µs. Without a listener, or without an address to probe, it isn't
   * needed. */
  if (self->manager->progress != NULL && can_diagnose (self)) {
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

static void
close_session (MusterOperation *self)
{
  gint64 left_us = muster_deadline_remaining (self->deadline_us, muster_clock_now_us (self->clock));
  /* Calls to a master use the machine's clock. The result of the close is irrelevant. */
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  gint64 limit_us = CLAMP (left_us, SHORTEST_CLOSE_US, LONGEST_CLOSE_US);
  (void)muster_session_close (self->session, now_us + limit_us, NULL, NULL);
}

void
muster_operation_give_up_session (MusterOperation *self, const GError *failure)
{
  g_clear_object (&self->lease);
  if (self->session == NULL)
    return;
  /* A session that is lost, or whose master can't be reached, is given up without a wait.
   * Otherwise the close is waited for, because this process may end next. */
  if (muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) ||
      muster_error_is (failure, MUSTER_ERROR_ABORTED))
    muster_session_give_up (self->session);
  else
    close_session (self);
  g_clear_object (&self->session);
}

/* TRUE if the cause was diagnosed and hasn't changed. */
static gboolean
is_known (const MusterOperation *self, const GError *failure)
{
  return self->server_state != NULL && self->failure != NULL &&
         g_str_equal (self->failure->message, failure->message);
}

/* Returns TRUE if the server has stated a cause, and the call that ran out of time had no time
 * to get it again. */
static gboolean
was_cut_short (const MusterOperation *self)
{
  return g_strcmp0 (self->server_state, "unavailable") == 0 &&
         muster_clock_now_us (self->clock) - self->phase_started_us < FIRST_DIAGNOSIS_US;
}

/* Handles a failed creation. Diagnoses the cause if it has changed, and when the time is over. */
static void
judge_creation (MusterOperation *self, GError *failure, gint64 deadline_us)
{
  gboolean ran_out =
      muster_session_ran_out (failure, deadline_us, muster_clock_now_us (self->clock));

  g_autofree char *prefix = prefix_of (self);
  g_prefix_error_literal (&failure, prefix);
  self->ran_out = ran_out;
  if (failure->domain != MUSTER_ERROR ||
      (ran_out && (muster_operation_has_no_store (self) || was_cut_short (self))))
    return;
  if (ran_out || (muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) && !is_known (self, failure)))
    diagnose (self, ran_out ? NULL : failure);
  else if (!muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) &&
           !muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED))
    muster_operation_forget_diagnosis (self); /* the master has answered */
  muster_operation_receive_failure (self, failure);
}

static void
add_ops (GStrvBuilder *names, const char *const *ops)
{
  for (; ops != NULL && *ops != NULL; ops++)
    g_strv_builder_add (names, *ops);
}

/* Checks whether the master has all operations that the session will run. The init ops count
 * unless a checkpoint may replace them, or feeds what they need. */
static gboolean
check_needs (MusterOperation *self, GError **error)
{
  const MusterSessionManager *manager = self->manager;
  const MusterPrepareOptions *prepare = self->is_recovery ? NULL : self->options;
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  if (manager->graph == NULL || muster_session_lacks (self->session) == NULL)
    return TRUE;
  const char *const own[] = {manager->ready_op, NULL};
  const char *const gate[] = {manager->ready_for_local_init_op, NULL};
  add_ops (names, own);
  add_ops (names, gate);
  add_ops (names, (const char *const *)manager->local_init_ops);
  add_ops (names, (const char *const *)manager->will_run);
  if (prepare != NULL && prepare->n_init_feeds == 0 && !muster_operation_can_restore (prepare)) {
    const char *const init[] = {prepare->init_op, NULL};
    add_ops (names, init);
    add_ops (names, prepare->init_ops);
  }
  g_auto (GStrv) all = g_strv_builder_end (names);
  return muster_session_check_needs (self->session, manager->graph, (const char *const *)all,
                                     (const char *const *)manager->will_feed, error);
}

gboolean
muster_operation_create_session (MusterOperation *self, GError **error)
{
  muster_operation_give_up_session (self, NULL);

  GError *failure = NULL;
  gint64 deadline_us = self->call_deadline_us == MUSTER_WAIT_FOREVER
                           ? MUSTER_WAIT_FOREVER
                           : self->call_deadline_us - time_kept_us (self);

  muster_operation_phase (self, "connect");
  self->session = call_create (self, deadline_us, &failure);
  if (self->session == NULL) {
    judge_creation (self, failure, deadline_us);
    g_propagate_error (error, failure);
    return FALSE;
  }
  muster_operation_rename_phase (self, "create");
  muster_operation_forget_diagnosis (self);
  muster_operation_receive_session (self);
  self->down_since_us = 0;
  self->report.sessions++;
  return check_needs (self, error);
}

/* Called when no further attempt can end in time: waits for the rest, and uses the reserved time
 * for a last diagnosis. */
static gboolean
run_out (MusterOperation *self, GError **error)
{
  gint64 reserve_us = time_kept_us (self);
  if (!muster_clock_wait_until (self->clock, self->deadline_us - reserve_us, self->cancellable,
                                error))
    return FALSE;
  self->ran_out = TRUE;
  muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
               "timed out before another session could be created");
  if (reserve_us > 0)
    diagnose (self, self->failure);
  return FALSE;
}

/* Waits until wake_us or until the master can be reached, but not longer than last_us. */
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

gboolean
muster_operation_pause (MusterOperation *self, MusterFailure class, gint64 pause_us, gint64 cost_us,
                        GError **error)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 wake_us = muster_deadline_after (now_us, pause_us);
  gint64 last_us = self->deadline_us == MUSTER_WAIT_FOREVER
                       ? MUSTER_WAIT_FOREVER
                       : self->deadline_us - time_kept_us (self) -
                             MAX (cost_us + cost_us / 4, MUSTER_MILLISECOND);
  if (last_us <= now_us)
    return run_out (self, error);
  if (class == MUSTER_FAILURE_UNREACHABLE)
    return wait_for_master (self, now_us, wake_us, last_us, error);
  return muster_clock_wait_until (self->clock, MIN (wake_us, last_us), self->cancellable, error);
}
