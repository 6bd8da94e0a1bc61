// SPDX-License-Identifier: Apache-2.0
#include "rpc/client/diagnose.h"

#include "rpc/address.h"
#include "session/session_private.h"

/* A look at why nobody answers takes so long at most. */
#define LONGEST_DIAGNOSIS_US (500 * MUSTER_MILLISECOND)
/* Beside a call that goes on anyway. */
#define UNHURRIED_DIAGNOSIS_US MUSTER_SECOND
/* And this part of a verb's time is kept for it. */
#define PART_KEPT 10
/* Of a larger cluster the first tasks are looked at. */
#define MOST_TASKS 64
/* So many of those that don't answer are named beside the server. */
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

/* NULL where the target has no address: it is in this process. */
static const char *
address_of (const char *target, gboolean *tls)
{
  *tls = g_str_has_prefix (target, "grpcs://");
  if (!*tls && !g_str_has_prefix (target, "grpc://"))
    return NULL;
  return strstr (target, "://") + strlen ("://");
}

gboolean
muster_operation_can_diagnose (const MusterOperation *self)
{
  gboolean tls;
  return address_of (muster_master_target (self->master), &tls) != NULL;
}

gint64
muster_operation_reserve_us (const MusterOperation *self)
{
  if (self->report.sessions > 0 || !muster_operation_can_diagnose (self) ||
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
                        "'%s' names no task of a cluster: it should be like ps:0=HOST:PORT",
                        *cluster);
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

/* All at once, since each may take all the time there is; this thread takes the master's. */
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

/* Which tasks a server that is up may wait for, or how to find out. */
static void
append_tasks (GString *text, GPtrArray *checks)
{
  guint n_missing = 0;

  if (checks->len == 1) {
    g_string_append (text, "; --cluster=ps:0=HOST:PORT finds out which task is missing");
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
    g_string_append (text, "; all tasks given as its cluster answer");
  else if (n_missing > TASKS_NAMED)
    g_string_append_printf (text, " and %u more", n_missing - TASKS_NAMED);
}

/* A server that is up, as far as can be seen, and keeps CreateSession. */
static char *
describe_keeping (const MusterOperation *self, GPtrArray *checks)
{
  const Check *master = checks->pdata[0];
  g_autofree char *duration =
      muster_format_duration (muster_clock_now_us (self->clock) - self->phase_started_us);
  GString *text = g_string_new (NULL);

  g_string_append_printf (text, "%s, but CreateSession has had no answer for %s",
                          master->tls ? master->diagnosis.text : "up", duration);
  append_tasks (text, checks);
  return g_string_free (text, FALSE);
}

/* is_kept: CreateSession, called when the phase began, has had no answer. */
static void
take_in (MusterOperation *self, GPtrArray *checks, gboolean is_kept)
{
  const Check *master = checks->pdata[0];
  GPtrArray *tasks = g_ptr_array_new ();

  muster_operation_forget_diagnosis (self);
  self->diagnosis = is_kept && master->diagnosis.stage == MUSTER_REACH_ANSWERS
                        ? describe_keeping (self, checks)
                        : g_strdup (master->diagnosis.text);
  self->server_state = state_of (master->diagnosis.stage);
  for (guint i = 1; i < checks->len; i++) {
    const Check *check = checks->pdata[i];
    if (is_missing (check))
      g_ptr_array_add (tasks, g_strdup_printf ("%s: %s", check->task, check->diagnosis.text));
  }
  g_ptr_array_add (tasks, NULL);
  self->missing_tasks = (char **)g_ptr_array_free (tasks, FALSE);
}

/* Why the master doesn't answer; NULL where it has no address, or no time is left to look. */
static GPtrArray *
look (const MusterOperation *self, gint64 longest_us, GCancellable *cancellable)
{
  gboolean tls;
  const char *address = address_of (muster_master_target (self->master), &tls);
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

void
muster_operation_diagnose (MusterOperation *self, gboolean is_kept)
{
  g_autoptr (GPtrArray) checks = look (self, LONGEST_DIAGNOSIS_US, self->cancellable);

  if (checks != NULL)
    take_in (self, checks, is_kept);
  else
    muster_operation_forget_diagnosis (self);
}

/* What was found, without the times that it took, which are others each time. */
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

gboolean
muster_operation_diagnose_again (MusterOperation *self, GCancellable *answered, char **found)
{
  g_autoptr (GPtrArray) checks = look (self, UNHURRIED_DIAGNOSIS_US, answered);

  /* A look that was cut short has seen nothing. */
  if (checks == NULL || g_cancellable_is_cancelled (answered))
    return FALSE;
  g_autofree char *now_found = outline (checks);
  if (g_strcmp0 (now_found, *found) == 0)
    return FALSE;
  g_free (*found);
  *found = g_steal_pointer (&now_found);
  take_in (self, checks, TRUE);
  return TRUE;
}

void
muster_operation_forget_diagnosis (MusterOperation *self)
{
  g_clear_pointer (&self->diagnosis, g_free);
  g_clear_pointer (&self->missing_tasks, g_strfreev);
  self->server_state = NULL;
}
