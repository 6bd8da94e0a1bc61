// SPDX-License-Identifier: Apache-2.0
/* `muster wait`: waits for a model in a session of its own or, by its name alone, by the
 * server's health service. */
#include "cli/commands/commands.h"

#include "cli/commands/operation.h"
#include "cli/common/cli.h"
#include "cli/common/flags.h"
#include "cli/common/health.h"
#include "cli/common/master_status.h"
#include "cli/output/json.h"
#include "cli/output/notify.h"
#include "status/status.h"

#include <string.h>

/* What the chief does is asked for again after this time. */
#define LOOK_US (5 * MUSTER_SECOND)
/* A reason that doesn't change is repeated after this time. */
#define REPEAT_US (30 * MUSTER_SECOND)
#define ANSWER_US (5 * MUSTER_SECOND)
#define RETRY_US  (500 * MUSTER_MILLISECOND)
/* A chief announces its step once a second, and the server doesn't push it. */
#define STEP_US MUSTER_SECOND

/* For the model to be ready, rather than for a step. */
#define NO_STEP G_MININT64

static const char summary[] =
    "Runs as a worker: opens a session on the master, waits until another task has made the\n"
    "model ready, then runs the local init op. Reports what is missing: on a terminal in a block\n"
    "that is updated in place, otherwise as a line for each change and every 30 s. muster's "
    "master\n"
    "pushes readiness and the chief's phase; other masters are polled in one session, at "
    "intervals\n"
    "of at most --recovery-wait.\n\n"
    "With --model=NAME and no --meta-graph it opens no session and runs nothing: it waits until\n"
    "muster's server reports the model as ready, or with --for='step>=N' until its chief has\n"
    "announced that step. With several models it waits for all of them, one after the other.";

/* Prints the result: of a success as text, of any outcome as JSON; step is what was waited for, or
 * NO_STEP. */
static void
report_result (const MusterCliResult *result, gint64 step)
{
  if (result->options->json) {
    g_autoptr (JsonBuilder) builder = muster_json_new_line ();
    muster_cli_result_json (builder, result);
    if (step != NO_STEP && result->report->outcome != MUSTER_OUTCOME_OVER)
      muster_json_add_step (builder, "step", result->report->final_step);
    muster_json_print_line (builder);
  } else if (result->error == NULL && !result->options->quiet && step != NO_STEP) {
    muster_cli_say (stdout, "%s is at step %" G_GINT64_FORMAT "\n", result->options->model,
                    result->report->final_step);
  } else if (result->error == NULL && !result->options->quiet) {
    g_autofree char *took = muster_format_duration (result->took_us);
    g_autofree char *spent = muster_cli_in_phases (result->report);
    muster_cli_say (stdout, "ready after %s%s\n", took, spent);
  }
}

static MusterExit
wait_for_model (const MusterCliOptions *options, gint64 recovery_wait_us, gboolean json_lines)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterCliOperation) operation = {0};
  if (!muster_cli_operation_begin (&operation, options, "waiting for", recovery_wait_us, json_lines,
                                   &error))
    return muster_cli_fail (error);
  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      operation.manager, operation.master, options->timeout_us, &operation.report,
      muster_live_cancellable (operation.live), &error);
  MusterCliResult result;
  muster_cli_operation_end (&operation, "wait", session, error, &result);
  report_result (&result, NO_STEP);
  return muster_cli_leave (muster_cli_result_exit (&result));
}

/* --- by name --- */

typedef struct {
  const MusterCliOptions *options;
  const char *model;
  gint64 step;         /* to wait for, or NO_STEP */
  const char *address; /* HOST:PORT or unix:/PATH, a part of the target */
  gboolean tls;
  gint64 started_us, deadline_us;
  MusterRpcCredentials *credentials; /* (owned) (nullable) */
  MusterRpcClient *client;           /* (owned) */
  MusterSessionReport report;        /* the outcome alone */
  gboolean has_answered;
  char *why;      /* (owned) (nullable) the last reason */
  gint64 said_us; /* when it was last printed */
} Wait;

static void
wait_clear (Wait *self)
{
  g_clear_pointer (&self->client, muster_rpc_client_unref);
  g_clear_pointer (&self->credentials, muster_rpc_credentials_unref);
  g_clear_pointer (&self->why, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Wait, wait_clear)

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

/* Prints why it waits, if that has changed, and from time to time; at (nullable) stands behind it,
 * and changes without a word. */
static void
say (Wait *self, const char *why, const char *at)
{
  const MusterCliOptions *options = self->options;
  if (g_strcmp0 (why, self->why) == 0 && now_us () < self->said_us + REPEAT_US)
    return;
  char *copy = g_strdup (why);
  g_free (self->why);
  self->why = copy;
  self->said_us = now_us ();
  if (!options->quiet)
    muster_cli_say (stderr, "waiting for %s at %s: %s%s\n", self->model, options->target, why,
                    at != NULL ? at : "");
  g_autofree char *status = g_strdup_printf ("waiting for %s: %s", self->model, why);
  muster_notify_status (status);
}

/* What the chief of the model has announced. (nullable) (transfer none) */
static const Muster__Announcement *
announced (const Wait *self, const Muster__StatusResponse *status)
{
  for (gsize i = 0; status != NULL && i < status->n_models; i++)
    if (strcmp (status->models[i]->model, self->model) == 0)
      return status->models[i];
  return NULL;
}

/* "waiting for tasks: 1 of at least 3", or NULL. (transfer full) */
static char *
awaited_tasks (const Wait *self, const Muster__StatusResponse *status)
{
  for (gsize i = 0; i < status->n_jobs; i++)
    if (strcmp (status->jobs[i]->model, self->model) == 0)
      return muster_status_waits (status->jobs[i]);
  return NULL;
}

static void
note_over (Wait *self, gint64 step)
{
  self->report = (MusterSessionReport){.outcome = MUSTER_OUTCOME_OVER, .final_step = step};
}

/* Before the end, time is kept to find out why there is no answer. */
static gint64
until_us (const Wait *self)
{
  if (self->has_answered || self->deadline_us == MUSTER_WAIT_FOREVER)
    return self->deadline_us;
  return self->deadline_us - MIN (MUSTER_SECOND, (self->deadline_us - self->started_us) / 4);
}

static gboolean
is_waiting (const Wait *self)
{
  return self->report.outcome == MUSTER_OUTCOME_NOT_READY && now_us () < until_us (self);
}

/* What the master says of the model's tasks or chief. Without a token it may say nothing: then
 * otherwise is known. */
static void
look (Wait *self, const char *otherwise)
{
  const gint64 answer_us = MIN (self->deadline_us, now_us () + ANSWER_US);
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__StatusResponse *status =
      muster_cli_master_status (self->client, 0, 0, answer_us, arena, NULL);
  g_autofree char *tasks = status != NULL ? awaited_tasks (self, status) : NULL;
  const Muster__Announcement *model = announced (self, status);
  /* There was no time for the answer: what was said last is why the wait ends. */
  if (status == NULL && self->why != NULL && !is_waiting (self))
    return;
  if (model == NULL || (tasks != NULL && !model->alive)) {
    say (self, tasks != NULL ? tasks : otherwise, NULL);
    return;
  }
  g_autofree char *chief = muster_status_chief (model);
  g_autofree char *why =
      g_strdup_printf ("chief %s %s", *model->task != '\0' ? model->task : model->who, chief);
  say (self, why, NULL);
  if (model->phase == MUSTER__PHASE__OVER)
    note_over (self, model->step);
}

static void
note_health (Wait *self, MusterHealth health)
{
  self->has_answered = TRUE;
  if (health == MUSTER_HEALTH_READY)
    self->report.outcome = MUSTER_OUTCOME_READY;
  else
    look (self,
          health == MUSTER_HEALTH_UNREGISTERED ? "no chief has ever registered" : "not ready");
}

/* Ends the wait if the model's chief has announced the step, or the end of the job before it. */
static void
note_step (Wait *self, const Muster__StatusResponse *status)
{
  const Muster__Announcement *model = announced (self, status);
  self->has_answered = TRUE;
  if (model == NULL) {
    say (self, "no chief has ever registered", NULL);
    return;
  }
  self->report.final_step = model->step;
  if (model->step >= self->step) {
    self->report.outcome = MUSTER_OUTCOME_READY;
    return;
  }
  if (model->phase == MUSTER__PHASE__OVER) {
    note_over (self, model->step);
    return;
  }
  const char *phase = muster_chief_phase_name ((MusterChiefPhase)model->phase);
  g_autofree char *why =
      g_strdup_printf ("chief %s %s", *model->task != '\0' ? model->task : model->who,
                       model->alive ? phase : "is gone");
  g_autofree char *at = g_strdup_printf (", at step %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT,
                                         MAX (model->step, 0), self->step);
  say (self, why, at);
}

/* Reads a stream until it says ready, the time is up, or it breaks, with an error. */
static void
read_stream (Wait *self, GError **error)
{
  g_autoptr (MusterRpcStream) stream = muster_cli_health_watch (self->client, self->model, error);
  MusterHealth health = MUSTER_HEALTH_UNREGISTERED;
  while (stream != NULL && is_waiting (self)) {
    g_autoptr (GError) failure = NULL;
    const gint64 look_us = MIN (until_us (self), now_us () + LOOK_US);
    if (muster_cli_health_next (stream, &health, look_us, &failure)) {
      note_health (self, health);
    } else if (!muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED)) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return;
    } else if (self->has_answered) {
      note_health (self, health);
    }
  }
}

static void
pause_for (Wait *self, gint64 time_us)
{
  (void)muster_clock_wait_until (muster_system_clock (), MIN (until_us (self), now_us () + time_us),
                                 NULL, NULL);
}

/* Asks for the step until it is reached, the time is up, or there is no answer, with an error. */
static void
read_steps (Wait *self, GError **error)
{
  while (is_waiting (self)) {
    g_autoptr (MusterArena) arena = muster_arena_new ();
    const gint64 answer_us = MIN (until_us (self), now_us () + ANSWER_US);
    const Muster__StatusResponse *status =
        muster_cli_master_status (self->client, 0, 0, answer_us, arena, error);
    if (status == NULL)
      return;
    note_step (self, status);
    if (is_waiting (self))
      pause_for (self, STEP_US);
  }
}

/* Waits. FALSE with an error that no retry helps. */
static gboolean
await_model (Wait *self, GError **error)
{
  while (is_waiting (self)) {
    g_autoptr (GError) failure = NULL;
    if (self->step != NO_STEP)
      read_steps (self, &failure);
    else
      read_stream (self, &failure);
    if (failure == NULL)
      continue;
    if (!muster_cli_is_unanswered (failure) && !muster_error_is (failure, MUSTER_ERROR_CANCELLED)) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
    say (self, self->has_answered ? "the master is gone" : "no answer from the master", NULL);
    pause_for (self, RETRY_US);
  }
  return TRUE;
}

/* The error of a wait that its end has ended. (transfer full) (nullable) */
static GError *
failure_of (const Wait *self)
{
  g_auto (MusterDiagnosis) diagnosis = {0};
  switch (self->report.outcome) {
  case MUSTER_OUTCOME_READY:
    return NULL;
  case MUSTER_OUTCOME_OVER:
    return self->step == NO_STEP ? g_error_new (MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE,
                                                "the job '%s' is over", self->model)
                                 : g_error_new (MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE,
                                                "the job '%s' is over, at step %" G_GINT64_FORMAT,
                                                self->model, self->report.final_step);
  default:
    break;
  }
  if (!self->has_answered)
    muster_diagnose (self->address, self->tls, MIN (self->deadline_us, now_us () + MUSTER_SECOND),
                     NULL, &diagnosis);
  g_autofree char *took = muster_format_duration (now_us () - self->started_us);
  if (self->has_answered)
    return g_error_new (MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "%s after %s: %s",
                        self->step == NO_STEP ? "not ready" : "the step isn't reached", took,
                        self->why != NULL ? self->why : "not ready");
  return g_error_new (MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "no answer from %s in %s: %s",
                      self->options->target, took, diagnosis.text);
}

static MusterExit
report_wait (const Wait *self, const GError *error)
{
  const MusterCliResult result = {.options = self->options,
                                  .report = &self->report,
                                  .error = error,
                                  .took_us = now_us () - self->started_us};
  report_result (&result, self->step);
  if (error == NULL)
    return MUSTER_EXIT_DONE;
  muster_notify_status (error->message);
  muster_cli_say (stderr, "muster: %s\n", error->message);
  return self->report.outcome == MUSTER_OUTCOME_OVER ? MUSTER_EXIT_OVER
                                                     : muster_cli_exit_of (error);
}

/* Waits for one of the models, whose name is that of the options meanwhile. */
static MusterExit
wait_by_name (MusterCliOptions *options, const char *model, gint64 step, gint64 deadline_us)
{
  g_autoptr (GError) error = NULL;
  g_auto (Wait) wait = {.options = options,
                        .model = model,
                        .step = step,
                        .started_us = now_us (),
                        .deadline_us = deadline_us,
                        .report = {.outcome = MUSTER_OUTCOME_NOT_READY, .final_step = -1}};
  g_free (options->model);
  options->model = g_strdup (model);
  wait.address = muster_cli_master_address (options->target, &wait.tls, &error);
  if (wait.address == NULL || !muster_cli_credentials (options, &wait.credentials, &error))
    return muster_cli_fail (error);
  wait.client = muster_rpc_client_new (wait.address, wait.credentials);
  if (await_model (&wait, &error))
    error = failure_of (&wait);
  else
    wait.report.outcome = MUSTER_OUTCOME_FAILED;
  return report_wait (&wait, error);
}

/* Waits for all, one after the other, until one deadline. */
static MusterExit
wait_by_names (MusterCliOptions *options, gint64 step)
{
  const gint64 deadline_us = muster_deadline_after (now_us (), options->timeout_us);
  MusterExit code = MUSTER_EXIT_DONE;
  for (char **model = options->models; *model != NULL && code == MUSTER_EXIT_DONE; model++)
    code = wait_by_name (options, *model, step, deadline_us);
  if (code == MUSTER_EXIT_DONE)
    muster_notify ("READY=1\nSTATUS=ready");
  return muster_cli_leave (code);
}

/* The command's own options. */
typedef struct {
  gboolean json_lines, quiet;
  char *condition; /* (owned) (nullable) */
  gint64 step;     /* from condition */
} Own;

/* "ready", "step>=N" */
static gboolean
read_condition (Own *self, GError **error)
{
  static const char step[] = "step>=";
  self->step = NO_STEP;
  if (self->condition == NULL || strcmp (self->condition, "ready") == 0 ||
      (g_str_has_prefix (self->condition, step) &&
       g_ascii_string_to_signed (self->condition + strlen (step), 10, 1, G_MAXINT64, &self->step,
                                 NULL)))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "wait: invalid --for '%s' (use ready or step>=N)", self->condition);
}

/* What is wrong with options together (nullable). */
static const char *
find_conflict (const Own *self, const MusterCliOptions *options)
{
  if (self->quiet && self->json_lines)
    return "--quiet can't be combined with --progress";
  if (options->meta_graph != NULL && self->step != NO_STEP)
    return "--for=step>=N can't be combined with --meta-graph; use --model=NAME";
  if (options->meta_graph != NULL && options->models != NULL && options->models[1] != NULL)
    return "several models can't be combined with --meta-graph";
  return NULL;
}

static gboolean
parse (int argc, char **argv, MusterFlags *flags, Own *own, MusterCliOptions *options,
       GError **error)
{
  static const GOptionEntry entries[] = {
      {"progress", 0, 0, G_OPTION_ARG_NONE, MUSTER_CLI_AT (Own, json_lines),
       "with --json: also print a line for each change", NULL},
      {"quiet", 0, 0, G_OPTION_ARG_NONE, MUSTER_CLI_AT (Own, quiet),
       "print nothing but the reason of a failure, and the result with --json", NULL},
      {"for", 0, 0, G_OPTION_ARG_STRING, MUSTER_CLI_AT (Own, condition),
       "what to wait for: ready, or step>=N without --meta-graph (default: ready)", "CONDITION"},
      {NULL}};
  muster_flags_add (flags, entries, own);
  if (!muster_cli_parse (argc, argv, "", summary, muster_flags_entries (flags),
                         MUSTER_CLI_OPERATION | MUSTER_CLI_SHARED | MUSTER_CLI_BY_NAME, options,
                         NULL, error) ||
      !muster_flags_apply (flags, error) || !read_condition (own, error))
    return FALSE;
  options->quiet = own->quiet;
  const char *conflict = find_conflict (own, options);
  return conflict == NULL ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "wait: %s", conflict);
}

static MusterExit
wait_for (Own *own, int argc, char **argv)
{
  MusterSessionManagerOptions manager = {0};
  g_auto (MusterCliOptions) options = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterFlags) flags = muster_flags_new ("wait");
  muster_flags_add_options (flags, MUSTER_TYPE_SESSION_MANAGER_OPTIONS, &manager);
  if (!parse (argc, argv, flags, own, &options, &error))
    return muster_cli_fail (error);
  if (options.meta_graph == NULL)
    return wait_by_names (&options, own->step);
  return wait_for_model (&options, manager.recovery_wait_us, own->json_lines);
}

int
muster_cli_wait (int argc, char **argv)
{
  Own own = {0};
  const MusterExit code = wait_for (&own, argc, argv);
  g_free (own.condition);
  return code;
}
