// SPDX-License-Identifier: Apache-2.0
/* Reports how an operation ended, as text and as JSON, from one MusterSessionReport; its exit
 * code. */
#include "cli/terminal/report.h"

#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/stores/default_storage.h"
#include "cli/output/figures.h"

#include <string.h>

static const char *const outcomes[] = {
    [MUSTER_OUTCOME_FAILED] = "failed",       [MUSTER_OUTCOME_READY] = "ready",
    [MUSTER_OUTCOME_NOT_READY] = "not ready", [MUSTER_OUTCOME_FENCED] = "fenced",
    [MUSTER_OUTCOME_OVER] = "over",
};

/* "ready", "not ready", "fenced", "over", "failed" */
static const char *
outcome_name (MusterOutcome outcome)
{
  return (guint)outcome < G_N_ELEMENTS (outcomes) ? outcomes[outcome] : outcomes[0];
}

MusterExit
muster_cli_result_exit (const MusterCliResult *self)
{
  const MusterSessionReport *report = self->report;
  if (self->error == NULL)
    return MUSTER_EXIT_DONE;
  if (report->outcome == MUSTER_OUTCOME_OVER)
    return MUSTER_EXIT_OVER;
  if (report->outcome == MUSTER_OUTCOME_FENCED)
    return MUSTER_EXIT_FAILED;
  MusterExit code = muster_cli_exit_of (self->error);
  const MusterReason *server = muster_reasons_find (report->reasons, "server");
  const gboolean no_answer = server != NULL ? !server->is_well : report->sessions == 0;
  return code == MUSTER_EXIT_NOT_READY && no_answer ? MUSTER_EXIT_NO_ANSWER : code;
}

/* A restore that found no checkpoint isn't reported. */
static gboolean
has_happened (const MusterSessionReport *report, const MusterSpan *phase)
{
  return report->outcome != MUSTER_OUTCOME_READY || report->restored_from != NULL ||
         strcmp (phase->name, "restore") != 0;
}

static void
append_phase (GString *text, const MusterSpan *phase)
{
  g_autofree char *duration = muster_format_duration (phase->duration_us);
  g_string_append_printf (text, "%s%s %s", text->len == 0 ? "" : ", ", phase->name, duration);
}

/* "connect 3 ms, init 41 ms": the phases of a millisecond or more, or the longest; for a ready
 * model, those that led to it. May be empty. (transfer full) */
static char *
phases_of (const MusterSessionReport *report)
{
  GString *text = g_string_new (NULL);
  const MusterSpan *longest = NULL;
  for (guint i = 0; report->phases != NULL && i < report->phases->len; i++) {
    const MusterSpan *phase = &g_array_index (report->phases, MusterSpan, i);
    if (!has_happened (report, phase))
      continue;
    if (longest == NULL || phase->duration_us > longest->duration_us)
      longest = phase;
    if (phase->duration_us >= MUSTER_MILLISECOND)
      append_phase (text, phase);
  }
  if (text->len == 0 && longest != NULL)
    append_phase (text, longest);
  return g_string_free (text, FALSE);
}

char *
muster_cli_in_phases (const MusterSessionReport *report)
{
  g_autofree char *phases = phases_of (report);
  return *phases == '\0' ? g_strdup ("") : g_strdup_printf (" (%s)", phases);
}

gint64
muster_cli_phase_us (const MusterSessionReport *report, const char *name)
{
  for (guint i = 0; report->phases != NULL && i < report->phases->len; i++)
    if (strcmp (g_array_index (report->phases, MusterSpan, i).name, name) == 0)
      return g_array_index (report->phases, MusterSpan, i).duration_us;
  return 0;
}

/* The size of the file of a checkpoint that a restore doesn't read. */
static guint64
meta_graph_bytes (const char *prefix)
{
  MusterStorageInfo info;
  g_autofree char *path = g_strconcat (prefix, ".meta", NULL);
  return muster_storage_stat (muster_default_storage (), path, &info, NULL) ? info.size : 0;
}

char *
muster_cli_restored (const MusterSessionReport *report)
{
  MusterCheckpointOverview overview;
  const gint64 took_us = muster_cli_phase_us (report, "restore");
  g_autofree char *took = muster_format_duration (took_us);
  if (!muster_checkpoint_inspect (NULL, report->restored_from, &overview,
                                  NULL)) /* not readable from this machine */
    return g_strdup_printf ("restored %s in %s", report->restored_from, took);
  const guint64 read = overview.bytes - meta_graph_bytes (report->restored_from);
  g_autofree char *transfer = muster_figure_transfer (overview.bytes, read, took_us);
  return g_strdup_printf ("restored %s, %s", report->restored_from, transfer);
}

/* "spent: connect 3 ms, waiting 9m59s (597 looks, one session, tried again: lost session 1×)" */
static void
report_spent (const MusterSessionReport *report)
{
  g_autofree char *phases = phases_of (report);
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);
  if (report->pushed)
    g_ptr_array_add (parts, g_strdup ("pushed by the master"));
  else if (report->polls > 0)
    g_ptr_array_add (parts,
                     g_strdup_printf (report->polls == 1 ? "one poll" : "%u polls", report->polls));
  if (report->sessions > 0)
    g_ptr_array_add (parts, g_strdup_printf (report->sessions == 1 ? "one session" : "%u sessions",
                                             report->sessions));
  for (guint i = 0; i < MUSTER_N_FAILURES; i++)
    if (report->retries[i] > 0)
      g_ptr_array_add (
          parts, g_strdup_printf ("%s: retried %u×", muster_failure_name (i), report->retries[i]));
  g_ptr_array_add (parts, NULL);
  g_autofree char *all = g_strjoinv (", ", (char **)parts->pdata);
  if (*phases != '\0')
    muster_cli_say (stderr, *all != '\0' ? "  spent: %s (%s)\n" : "  spent: %s\n", phases, all);
}

static void
report_over (const MusterCliResult *self)
{
  const MusterReason *job = muster_reasons_find (self->report->reasons, "job");
  g_autoptr (GString) text = g_string_new ("its chief ended the job");
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (self->report->final_step >= 0)
    g_string_append_printf (text, " at step %" G_GINT64_FORMAT, self->report->final_step);
  if (job != NULL && !job->is_well) {
    g_autofree char *age = muster_format_duration (MAX (now_us - job->since_us, 0));
    g_string_append_printf (text, ", %s ago", age);
  }
  muster_cli_say (stderr, "muster: %s is finished: %s\n", self->options->model, text->str);
  if (job == NULL) /* a chief's operation */
    muster_cli_say (stderr, "  try: to train further, use `muster train --overwrite` with a higher "
                            "--steps or --epochs\n");
}

static const char *
phrase_of (const MusterReason *server, const char *target)
{
  static const struct {
    const char *state, *phrase;
  } phrases[] = {{"not-resolved", "unknown host name"},
                 {"refused", "connection refused"},
                 {"unreachable", "unreachable"},
                 {"silent", "connected, but MasterService doesn't answer"},
                 {"unavailable", "it answers, but is unavailable"},
                 {"lost", "it answered before, but doesn't any more"}};
  if (strcmp (server->state, "tls-failed") == 0)
    return g_str_has_prefix (target, "grpcs://")
               ? "TLS handshake failed: the port speaks plain text; use grpc://"
               : "the port speaks TLS; use grpcs://";
  for (gsize i = 0; i < G_N_ELEMENTS (phrases); i++)
    if (strcmp (server->state, phrases[i].state) == 0)
      return phrases[i].phrase;
  return "no session";
}

/* The text after the colon and the count, of "missing 92: ps:0 60 (…)". */
static const char *
after_colon (const char *text)
{
  const char *colon = strstr (text, ": ");
  return colon != NULL ? colon + 2 : text;
}

/* Reports a missing task and since when; its text begins with its name. */
static void
report_task (const MusterReason *task)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const gint64 age_us = now_us - task->since_us;
  g_autofree char *age = muster_format_duration (MAX (age_us, 0));
  if (age_us < MUSTER_SECOND) /* only seen at the end */
    muster_cli_say (stderr, "  %s\n", task->text);
  else
    muster_cli_say (stderr, "  %s, for %s\n", task->text, age);
}

/* Reports the other problems, one line each. */
static void
report_others (const MusterSessionReport *report, const MusterReason *first)
{
  for (guint i = 0; report->reasons != NULL && i < report->reasons->len; i++) {
    const MusterReason *it = g_ptr_array_index (report->reasons, i);
    if (it == first || it->is_well || strcmp (it->state, "unknown") == 0)
      continue;
    if (strcmp (it->component, "variables") == 0)
      muster_cli_say (stderr, "  %u variables are not initialised: %s\n", it->n_missing,
                      after_colon (it->text));
    else if (strcmp (it->component, "task") == 0)
      report_task (it);
    else
      muster_cli_say (stderr, "  %s: %s\n", it->component, it->text);
  }
}

static void
report_no_answer (const MusterCliResult *self)
{
  const MusterReason *server = muster_reasons_find (self->report->reasons, "server");
  g_autofree char *took = muster_format_duration (self->took_us);
  gboolean is_known = server != NULL && !server->is_well;
  muster_cli_say (stderr, "muster: no answer from %s in %s: %s\n", self->options->target, took,
                  is_known ? phrase_of (server, self->options->target) : self->error->message);
  if (is_known) {
    muster_cli_say (stderr, "  %s\n", server->text);
    report_others (self->report, server);
  }
  report_spent (self->report);
  muster_cli_say (
      stderr, "  try: %s\n",
      is_known && server->hint != NULL
          ? server->hint
          : "check that a master listens there; `muster serve --listen=HOST:PORT` starts one");
}

static void
report_not_ready (const MusterCliResult *self)
{
  const MusterReason *first = muster_reasons_first (self->report->reasons);
  g_autofree char *took = muster_format_duration (self->took_us);
  if (first == NULL) {
    muster_cli_say (stderr, "muster: %s\n", self->error->message);
    return;
  }
  gboolean is_variables = strcmp (first->component, "variables") == 0;
  if (is_variables && first->n_missing > 0)
    muster_cli_say (stderr, "muster: not ready after %s: %u variables of %s are not initialised\n",
                    took, first->n_missing, self->options->model);
  else
    muster_cli_say (stderr, "muster: not ready after %s: %s%s at %s\n", took,
                    strcmp (first->component, "chief") == 0 &&
                            !g_str_has_prefix (first->text, "no ")
                        ? "the chief is "
                        : "",
                    first->text, self->options->target);
  if (is_variables && first->n_missing > 0)
    muster_cli_say (stderr, "  %s\n", after_colon (first->text));
  report_others (self->report, first);
  report_spent (self->report);
  if (first->hint != NULL)
    muster_cli_say (stderr, "  try: %s\n", first->hint);
}

void
muster_cli_report_failure (const MusterCliResult *self)
{
  MusterExit code = muster_cli_result_exit (self);
  if (code == MUSTER_EXIT_OVER) {
    report_over (self);
  } else if (code == MUSTER_EXIT_NO_ANSWER) {
    report_no_answer (self);
  } else if (code == MUSTER_EXIT_NOT_READY) {
    report_not_ready (self);
  } else {
    muster_cli_say (stderr, "muster: %s\n", self->error->message);
    if (self->report->outcome == MUSTER_OUTCOME_FENCED)
      muster_cli_say (stderr, "  try: `muster status` shows the model's chief; `muster wait` joins "
                              "its model\n");
    else if (muster_error_is (self->error, MUSTER_ERROR_DATA_LOSS))
      muster_cli_say (stderr, "  try: `muster checkpoint list DIR` shows undamaged checkpoints; "
                              "--checkpoint=PREFIX restores one\n");
  }
}

static void
phases_json (JsonBuilder *builder, const MusterSessionReport *report)
{
  json_builder_set_member_name (builder, "phases");
  json_builder_begin_object (builder);
  for (guint i = 0; report->phases != NULL && i < report->phases->len; i++) {
    const MusterSpan *phase = &g_array_index (report->phases, MusterSpan, i);
    if (has_happened (report, phase))
      muster_json_add_seconds (builder, phase->name, phase->duration_us);
  }
  json_builder_end_object (builder);
}

static void
retries_json (JsonBuilder *builder, const MusterSessionReport *report)
{
  json_builder_set_member_name (builder, "retries");
  json_builder_begin_object (builder);
  for (guint i = 0; i < MUSTER_N_FAILURES; i++)
    if (i != MUSTER_FAILURE_MISTAKE) /* never retried */
      muster_json_add_int (builder, muster_failure_name (i), report->retries[i]);
  json_builder_end_object (builder);
}

void
muster_cli_reasons_json (JsonBuilder *builder, GPtrArray *reasons)
{
  static const MusterJsonField before[] = {
      MUSTER_JSON_FIELD (MusterReason, component, STRING, "component"),
      MUSTER_JSON_FIELD (MusterReason, owner, STRING, "owner"),
      MUSTER_JSON_FIELD (MusterReason, state, STRING, "state"),
      MUSTER_JSON_FIELD (MusterReason, is_well, BOOLEAN, "well"),
      MUSTER_JSON_FIELD (MusterReason, text, STRING, "text"),
      MUSTER_JSON_FIELD (MusterReason, last_error, STRING, "last_error"),
      MUSTER_JSON_FIELD (MusterReason, hint, STRING, "hint"),
  };
  static const MusterJsonField of_variables[] = {
      MUSTER_JSON_FIELD (MusterReason, n_missing, UINT, "missing"),
      MUSTER_JSON_FIELD (MusterReason, n_total, UINT, "total"),
      MUSTER_JSON_FIELD (MusterReason, names, STRINGS, "names"),
  };
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  json_builder_set_member_name (builder, "reasons");
  json_builder_begin_array (builder);
  for (guint i = 0; reasons != NULL && i < reasons->len; i++) {
    const MusterReason *it = g_ptr_array_index (reasons, i);
    json_builder_begin_object (builder);
    muster_json_add_fields (builder, before, G_N_ELEMENTS (before), it);
    muster_json_add_seconds (builder, "since", MAX (now_us - it->since_us, 0));
    if (strcmp (it->component, "variables") == 0)
      muster_json_add_fields (builder, of_variables, G_N_ELEMENTS (of_variables), it);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

static void
timeline_json (JsonBuilder *builder, const MusterSessionReport *report)
{
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (MusterSpan, name, STRING, "name"),
      MUSTER_JSON_FIELD (MusterSpan, started_us, SECONDS, "at"),
      MUSTER_JSON_FIELD (MusterSpan, duration_us, SECONDS, "seconds"),
  };
  json_builder_set_member_name (builder, "timeline");
  json_builder_begin_array (builder);
  for (guint i = 0; report->timeline != NULL && i < report->timeline->len; i++) {
    json_builder_begin_object (builder);
    muster_json_add_fields (builder, fields, G_N_ELEMENTS (fields),
                            &g_array_index (report->timeline, MusterSpan, i));
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

static void
error_json (JsonBuilder *builder, const GError *error)
{
  json_builder_set_member_name (builder, "error");
  if (error == NULL) {
    json_builder_add_null_value (builder);
    return;
  }
  json_builder_begin_object (builder);
  muster_json_add_string (builder, "code", muster_error_name (muster_error_to_wire (error)));
  muster_json_add_string (builder, "message", error->message);
  json_builder_end_object (builder);
}

void
muster_cli_result_json (JsonBuilder *builder, const MusterCliResult *self)
{
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (MusterSessionReport, epoch, INT64, "epoch"),
      MUSTER_JSON_FIELD (MusterSessionReport, restored_from, STRING, "restored_from"),
      MUSTER_JSON_FIELD (MusterSessionReport, passed_over, STRING, "passed_over"),
      MUSTER_JSON_FIELD (MusterSessionReport, restore_warning, STRING, "restore_warning"),
      MUSTER_JSON_FIELD (MusterSessionReport, polls, UINT, "polls"),
      MUSTER_JSON_FIELD (MusterSessionReport, sessions, UINT, "sessions"),
      MUSTER_JSON_FIELD (MusterSessionReport, pushed, BOOLEAN, "pushed"),
  };
  const MusterSessionReport *report = self->report;
  muster_json_add_string (builder, "outcome", outcome_name (report->outcome));
  error_json (builder, self->error);
  muster_json_add_string (builder, "model", self->options->model);
  muster_json_add_seconds (builder, "seconds", self->took_us);
  if (report->outcome == MUSTER_OUTCOME_OVER)
    muster_json_add_step (builder, "final_step", report->final_step);
  muster_json_add_fields (builder, fields, G_N_ELEMENTS (fields), report);
  phases_json (builder, report);
  retries_json (builder, report);
  muster_cli_reasons_json (builder, report->reasons);
  timeline_json (builder, report);
}
