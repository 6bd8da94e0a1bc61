// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include "base/unpack.h"
#include "cli/common/cli.h"
#include "cli/output/figures.h"
#include "cli/output/goodput.h"
#include "cli/output/json.h"
#include "cli/output/saves.h"
#include "cli/output/table.h"
#include "master/announcement.h"
#include "master/goodput_message_private.h"
#include "master/save_status_message_private.h"
#include "rpc/address.h"
#include "rpc/client/diagnose.h"
#include "rpc/client/rpc_client.h"
#include "rpc/proto/muster.pb-c.h"

#include <string.h>

#define METHOD             "/muster.Readiness/Status"
#define DEFAULT_TIMEOUT_US (10 * MUSTER_SECOND)
#define WAITERS_SHOWN      10
#define LONGEST_WHY        100 /* characters */

static const char summary[] =
    "Shows a master's state: whether its models are ready, each chief and its phase, waiting\n"
    "clients with the reason and duration, sessions and steps, and limits that were reached. For "
    "a\n"
    "master other than muster's, shows its devices. If the master doesn't answer, shows why.";

/* --- as text --- */

static gboolean
has (const char *text)
{
  return *text != '\0';
}

/* The model's state in a word. */
static const char *
word_of (const Muster__Announcement *model)
{
  MusterChiefPhase phase = (MusterChiefPhase)model->phase;
  if (phase == MUSTER_CHIEF_OVER)
    return "over";
  if (model->alive && muster_chief_phase_is_preparing (phase))
    return muster_chief_phase_name (phase);
  return model->ready ? "ready" : "not ready";
}

/* "  step 1200" */
static void
append_step (GString *text, gint64 step)
{
  if (step >= 0)
    g_string_append_printf (text, "  step %" G_GINT64_FORMAT, step);
}

static void
add_first_row (const Muster__StatusResponse *status)
{
  g_autofree char *uptime = muster_format_duration (status->uptime_us);
  g_autofree char *memory = muster_format_size ((guint64)MAX (status->memory_bytes, 0));
  g_autoptr (GString) text = g_string_new (NULL);
  gsize n_ready = 0;
  for (gsize i = 0; i < status->n_models; i++)
    n_ready += status->models[i]->ready && status->models[i]->phase != MUSTER__PHASE__OVER;
  if (status->n_models == 0) {
    g_string_append (text, "up  no chief has ever registered");
  } else if (status->n_models == 1) {
    g_string_append_printf (text, "%s  %s", word_of (status->models[0]), status->models[0]->model);
    append_step (text, status->models[0]->step);
  } else {
    g_string_append_printf (text, "up  %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT " models ready",
                            n_ready, status->n_models);
  }
  muster_cli_say (stdout, "%s  muster %s, up %s, %s%s%s\n", text->str, status->version, uptime,
                  memory, has (status->master) ? ", serves " : "", status->master);
}

/* "training for 12 s", "lost 3 s ago, while initialising" */
static char *
state_of_chief (const Muster__Announcement *model)
{
  const char *phase = muster_chief_phase_name ((MusterChiefPhase)model->phase);
  g_autofree char *age = muster_format_duration (model->phase_age_us);
  g_autofree char *lost = muster_format_duration (model->lost_age_us);
  if (model->phase == MUSTER__PHASE__OVER)
    return g_strdup_printf ("ended the job %s ago", age);
  if (model->alive)
    return g_strdup_printf ("%s%s%s for %s", phase, has (model->detail) ? " " : "", model->detail,
                            age);
  if (model->phase == MUSTER__PHASE__PREPARED && model->prepared)
    return g_strdup_printf ("prepared the model and exited, %s ago", lost);
  return g_strdup_printf ("lost %s ago, while %s", lost, phase);
}

static void
add_chief_row (MusterTable *table, const Muster__Announcement *model)
{
  g_autofree char *state = state_of_chief (model);
  g_autofree char *durable_age = muster_format_duration (model->durable_age_us);
  g_autoptr (GString) text = g_string_new (has (model->task) ? model->task : model->who);
  if (has (model->task) && has (model->who))
    g_string_append_printf (text, " (%s)", model->who);
  g_string_append_printf (text, "  %s", state);
  if (model->durable_step >= 0)
    g_string_append_printf (text, ", last durable step %" G_GINT64_FORMAT " (%s, %s ago)",
                            model->durable_step, model->durable, durable_age);
  muster_table_add (table, "  chief", text->str, NULL);
}

static void
add_saves_row (MusterTable *table, const Muster__Announcement *model)
{
  g_autoptr (MusterSaveStatus) saves = muster_save_status_read (model->saves);
  if (saves == NULL)
    return;
  g_autofree char *text = muster_saves_text (saves);
  muster_table_add (table, "  saves", text, NULL);
}

static void
add_goodput_row (MusterTable *table, const Muster__Announcement *model)
{
  g_autofree MusterGoodput *goodput = muster_goodput_read (model->goodput);
  if (goodput == NULL)
    return;
  g_autofree char *text = muster_goodput_text (goodput);
  muster_table_add (table, "  time", text, NULL);
}

static void
add_model_rows (MusterTable *table, const Muster__StatusResponse *status)
{
  for (gsize i = 0; i < status->n_models; i++) {
    const Muster__Announcement *model = status->models[i];
    if (status->n_models > 1) {
      g_autoptr (GString) text = g_string_new (NULL);
      g_string_append_printf (text, "%s  %s", model->model, word_of (model));
      append_step (text, model->step);
      muster_table_add (table, "  model", text->str, NULL);
    }
    add_chief_row (table, model);
    add_saves_row (table, model);
    add_goodput_row (table, model);
  }
}

static void
add_waiter_row (MusterTable *table, const Muster__Waiter *waiter)
{
  g_autofree char *age = muster_format_duration (waiter->age_us);
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append (text, has (waiter->task)  ? waiter->task
                         : has (waiter->who) ? waiter->who
                                             : "a task");
  g_string_append_printf (text, " for %s", age);
  if (has (waiter->model))
    g_string_append_printf (text, ", for %s", waiter->model);
  if (g_utf8_strlen (waiter->why, -1) > LONGEST_WHY) {
    g_autofree char *cut = g_utf8_substring (waiter->why, 0, LONGEST_WHY);
    g_string_append_printf (text, ": %s…", cut);
  } else if (has (waiter->why)) {
    g_string_append_printf (text, ": %s", waiter->why);
  }
  muster_table_add (table, "  waiting", text->str, NULL);
}

static void
add_waiter_rows (MusterTable *table, const Muster__StatusResponse *status)
{
  gsize shown = 0;
  for (gsize i = 0; i < status->n_waiters && shown < WAITERS_SHOWN; i++) {
    const Muster__Waiter *waiter = status->waiters[i];
    if (!has (waiter->waits_for))
      continue;
    add_waiter_row (table, waiter);
    shown++;
  }
  gsize n_waiting = 0;
  for (gsize i = 0; i < status->n_waiters; i++)
    n_waiting += has (status->waiters[i]->waits_for);
  if (n_waiting > shown) {
    g_autofree char *more =
        g_strdup_printf ("… and %" G_GSIZE_FORMAT " more%s", n_waiting - shown,
                         (gint64)status->n_waiters < status->watchers ? ", possibly more" : "");
    muster_table_add (table, "  waiting", more, NULL);
  }
}

static void
add_load_row (MusterTable *table, const Muster__StatusResponse *status)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *rate = muster_figure_steps_rate (status->steps_per_second);
  g_string_append_printf (text, "%d", status->sessions);
  if (status->watchers > 0)
    g_string_append_printf (text, ", %d watched", status->watchers);
  g_string_append_printf (text, ", %s (%" G_GINT64_FORMAT " in all)", rate, status->steps);
  if (status->median_step_us > 0) {
    g_autofree char *median = muster_format_duration (status->median_step_us);
    g_string_append_printf (text, ", p50 %s", median);
  }
  muster_table_add (table, "  sessions", text->str, NULL);
}

/* Adds the limits that have refused something. */
static void
add_limit_rows (MusterTable *table, const Muster__StatusResponse *status)
{
  for (gsize i = 0; i < status->n_limits; i++) {
    const Muster__Limit *limit = status->limits[i];
    if (limit->refused == 0)
      continue;
    g_autofree char *text = g_strdup_printf (
        "%s: %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT ", refused %" G_GINT64_FORMAT " times",
        limit->name, limit->used, limit->limit, limit->refused);
    muster_table_add (table, "  limit", text, NULL);
  }
}

static void
muster_cli_status_text (const MusterCliOptions *options G_GNUC_UNUSED,
                        const Muster__StatusResponse *status)
{
  g_autoptr (MusterTable) table = muster_table_new (2);
  add_first_row (status);
  add_model_rows (table, status);
  add_waiter_rows (table, status);
  add_load_row (table, status);
  add_limit_rows (table, status);
  muster_table_print (table, stdout);
}

/* --- as JSON --- */

static void
models_json (JsonBuilder *builder, const Muster__StatusResponse *status)
{
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (Muster__Announcement, model, STRING, "model"),
      MUSTER_JSON_FIELD (Muster__Announcement, task, STRING, "task"),
      MUSTER_JSON_FIELD (Muster__Announcement, who, STRING, "who"),
      MUSTER_JSON_FIELD (Muster__Announcement, epoch, INT64, "epoch"),
      MUSTER_JSON_FIELD (Muster__Announcement, phase_age_us, SECONDS, "phase_age"),
      MUSTER_JSON_FIELD (Muster__Announcement, detail, STRING, "detail"),
      MUSTER_JSON_FIELD (Muster__Announcement, step, STEP, "step"),
      MUSTER_JSON_FIELD (Muster__Announcement, durable_step, STEP, "durable_step"),
      MUSTER_JSON_FIELD (Muster__Announcement, durable, STRING, "durable"),
      MUSTER_JSON_FIELD (Muster__Announcement, alive, BOOLEAN, "alive"),
      MUSTER_JSON_FIELD (Muster__Announcement, prepared, BOOLEAN, "prepared"),
      MUSTER_JSON_FIELD (Muster__Announcement, ready, BOOLEAN, "ready"),
  };
  json_builder_set_member_name (builder, "models");
  json_builder_begin_array (builder);
  for (gsize i = 0; i < status->n_models; i++) {
    const Muster__Announcement *model = status->models[i];
    g_autoptr (MusterSaveStatus) saves = muster_save_status_read (model->saves);
    g_autofree MusterGoodput *goodput = muster_goodput_read (model->goodput);
    json_builder_begin_object (builder);
    muster_json_add_string (builder, "state", word_of (model));
    muster_json_add_string (builder, "phase",
                            muster_chief_phase_name ((MusterChiefPhase)model->phase));
    muster_json_add_fields (builder, fields, G_N_ELEMENTS (fields), model);
    if (model->durable_step >= 0)
      muster_json_add_seconds (builder, "durable_age", model->durable_age_us);
    if (!model->alive)
      muster_json_add_seconds (builder, "lost_age", model->lost_age_us);
    muster_saves_json (builder, saves);
    muster_goodput_json (builder, goodput);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

static void
muster_cli_status_json (const MusterCliOptions *options, const Muster__StatusResponse *status)
{
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (Muster__StatusResponse, version, STRING, "version"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, master, STRING, "serves"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, uptime_us, SECONDS, "uptime"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, sessions, INT, "sessions"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, watchers, INT, "watchers"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, steps, INT64, "steps"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, steps_per_second, DOUBLE, "steps_per_second"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, median_step_us, SECONDS, "median_step"),
      MUSTER_JSON_FIELD (Muster__StatusResponse, memory_bytes, INT64, "memory_bytes"),
  };
  static const MusterJsonField of_waiters[] = {
      MUSTER_JSON_FIELD (Muster__Waiter, task, STRING, "task"),
      MUSTER_JSON_FIELD (Muster__Waiter, who, STRING, "who"),
      MUSTER_JSON_FIELD (Muster__Waiter, model, STRING, "model"),
      MUSTER_JSON_FIELD (Muster__Waiter, age_us, SECONDS, "age"),
      MUSTER_JSON_FIELD (Muster__Waiter, waits_for, STRING, "waits_for"),
      MUSTER_JSON_FIELD (Muster__Waiter, why, STRING, "why"),
  };
  static const MusterJsonField of_limits[] = {
      MUSTER_JSON_FIELD (Muster__Limit, name, STRING, "name"),
      MUSTER_JSON_FIELD (Muster__Limit, used, INT64, "used"),
      MUSTER_JSON_FIELD (Muster__Limit, limit, INT64, "limit"),
      MUSTER_JSON_FIELD (Muster__Limit, refused, INT64, "refused"),
  };
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "target", options->target);
  muster_json_add_boolean (builder, "keeps_announcements", TRUE);
  muster_json_add_fields (builder, fields, G_N_ELEMENTS (fields), status);
  models_json (builder, status);
  muster_json_add_list (builder, "waiters", of_waiters, G_N_ELEMENTS (of_waiters),
                        (gpointer const *)status->waiters, status->n_waiters);
  muster_json_add_list (builder, "limits", of_limits, G_N_ELEMENTS (of_limits),
                        (gpointer const *)status->limits, status->n_limits);
  muster_json_print_line (builder);
}

/* --- the request --- */

/* The server to ask. */
typedef struct {
  const MusterCliOptions *options;
  const char *address; /* HOST:PORT, a part of the target */
  gboolean tls;
  gint64 deadline_us;
} Place;

static gboolean
find_place (const MusterCliOptions *options, Place *place, GError **error)
{
  const char *scheme = strstr (options->target, "://");
  g_autofree char *host = NULL;
  guint16 port;
  place->options = options;
  place->tls = g_str_has_prefix (options->target, "grpcs://");
  place->address = scheme == NULL ? options->target : scheme + 3;
  if (scheme != NULL && !place->tls && !g_str_has_prefix (options->target, "grpc://")) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid master '%s' (use grpc://HOST:PORT)", options->target);
  }
  return muster_address_parse (place->address, &host, &port, error);
}

/* The message lives in arena. */
static Muster__StatusResponse *
ask (const Place *place, MusterRpcCredentials *credentials, MusterArena *arena, GError **error)
{
  g_auto (MusterRope) nothing = MUSTER_ROPE_INIT;
  MusterRpcOptions options = {.deadline_us = place->deadline_us};
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (place->address, credentials);
  g_autoptr (GBytes) bytes =
      muster_rpc_client_call (client, METHOD, &nothing, &options, NULL, error);
  if (bytes == NULL)
    return NULL;
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  return muster_unpack (&muster__status_response__descriptor, data, size, arena,
                        "the master's status", error);
}

static void
devices_json (const MusterCliOptions *options, GPtrArray *devices)
{
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (MusterDevice, name, STRING, "name"),
      MUSTER_JSON_FIELD (MusterDevice, type, STRING, "type"),
      MUSTER_JSON_FIELD (MusterDevice, memory_limit, INT64, "memory_limit"),
  };
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "target", options->target);
  muster_json_add_boolean (builder, "keeps_announcements", FALSE);
  muster_json_add_list (builder, "devices", fields, G_N_ELEMENTS (fields), devices->pdata,
                        devices->len);
  muster_json_print_line (builder);
}

/* Reports a master without muster's status service, such as TensorFlow's, which can list its
 * devices. */
static MusterExit
report_another (const Place *place)
{
  const MusterCliOptions *options = place->options;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_cli_master (options, &error);
  g_autoptr (GPtrArray) devices =
      master == NULL ? NULL : muster_master_list_devices (master, place->deadline_us, NULL, &error);
  if (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED)) {
    muster_cli_say (
        stderr,
        "muster: %s answers, but offers no MasterService, so it isn't a master\n"
        "  try: check that it isn't the port for health probes; `muster serve` prints both\n",
        options->target);
    return MUSTER_EXIT_NO_ANSWER;
  }
  if (devices == NULL)
    return muster_cli_fail (error);
  if (options->json) {
    devices_json (options, devices);
    return MUSTER_EXIT_DONE;
  }
  muster_cli_say (stdout, "up  %s, not muster's master: %u device%s\n", options->target,
                  devices->len, devices->len == 1 ? "" : "s");
  for (guint i = 0; i < devices->len; i++) {
    const MusterDevice *device = g_ptr_array_index (devices, i);
    muster_cli_say (stdout, "  %s\n", device->name);
  }
  muster_cli_say (stdout,
                  "  it doesn't store readiness: start a gateway with `muster serve --master=%s`\n",
                  options->target);
  return MUSTER_EXIT_DONE;
}

/* Reports why no server answers. */
static MusterExit
report_cause (const Place *place, gint64 started_us, const GError *error)
{
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  gint64 probe_until_us = MAX (place->deadline_us, now_us + MUSTER_SECOND);
  g_auto (MusterDiagnosis) diagnosis = {0};
  muster_diagnose (place->address, place->tls, MIN (probe_until_us, now_us + 5 * MUSTER_SECOND),
                   NULL, &diagnosis);
  g_autofree char *took = muster_format_duration (now_us - started_us);
  gboolean found = diagnosis.stage != MUSTER_REACH_ANSWERS;
  if (place->options->json) {
    g_autoptr (JsonBuilder) builder = muster_json_new_line ();
    muster_json_add_string (builder, "target", place->options->target);
    muster_json_add_string (builder, "error", error->message);
    muster_json_add_string (builder, "diagnosis", diagnosis.text);
    muster_json_print_line (builder);
  }
  muster_cli_say (stderr, "muster: no answer from %s in %s: %s\n", place->options->target, took,
                  found ? diagnosis.text : error->message);
  g_autofree char *other =
      g_strdup_printf ("`muster status %s://%s`", place->tls ? "grpc" : "grpcs", place->address);
  muster_cli_say (stderr, "  try: %s\n",
                  diagnosis.stage == MUSTER_REACH_REFUSED
                      ? "`muster serve --listen=HOST:PORT` starts a master"
                  : diagnosis.stage == MUSTER_REACH_TLS_FAILED
                      ? other
                      : "check the address, and that the port is a master's");
  return MUSTER_EXIT_NO_ANSWER;
}

int
muster_cli_status (int argc, char **argv)
{
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  Place place = {0};
  if (!muster_cli_parse (argc, argv, "TARGET", summary, NULL,
                         MUSTER_CLI_TIMEOUT | MUSTER_CLI_SHORT | MUSTER_CLI_JSON |
                             MUSTER_CLI_SECURITY,
                         &options, &words, &error))
    return muster_cli_fail (error);
  if (g_strv_length (words) != 1) {
    fprintf (stderr, "muster: status needs one TARGET, such as grpc://HOST:PORT\n");
    return MUSTER_EXIT_BAD_INPUT;
  }
  options.target = g_strdup (words[0]);
  if (!find_place (&options, &place, &error))
    return muster_cli_fail (error);
  gint64 started_us = muster_clock_now_us (muster_system_clock ());
  place.deadline_us = muster_deadline_after (
      started_us, options.timeout != NULL ? options.timeout_us : DEFAULT_TIMEOUT_US);
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (MusterRpcCredentials) credentials = muster_cli_credentials (&options, &error);
  const Muster__StatusResponse *status =
      error != NULL ? NULL : ask (&place, credentials, arena, &error);
  if (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED))
    return report_another (&place);
  if (muster_error_is (error, MUSTER_ERROR_UNAVAILABLE) ||
      muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED))
    return report_cause (&place, started_us, error);
  if (status == NULL)
    return muster_cli_fail (error);
  (options.json ? muster_cli_status_json : muster_cli_status_text) (&options, status);
  return MUSTER_EXIT_DONE;
}
