// SPDX-License-Identifier: Apache-2.0
/* `muster status`: asks a server for its status, once or at each change (--watch), and explains
 * why none answers. */
#include "cli/commands/commands.h"

#include "cli/commands/status_text.h"
#include "cli/common/cli.h"
#include "cli/common/health.h"
#include "cli/common/master_status.h"
#include "cli/output/json.h"
#include "status/status.h"

#define DEFAULT_TIMEOUT_US (10 * MUSTER_SECOND)
#define REDRAWN_US         (2 * MUSTER_SECOND)  /* on a terminal, where nothing changes */
#define ASKED_AGAIN_US     (30 * MUSTER_SECOND) /* elsewhere */
#define LONGEST_LOOK_US    MUSTER_SECOND        /* why there is no answer */
#define PART_FOR_LOOK      4                    /* of the time, at most */
#define LEAST_INTERVAL_US  (100 * MUSTER_MILLISECOND)
#define CLEAR              "\033[H\033[J" /* the terminal, from its first line on */

static const char summary[] =
    "Shows a master's state: whether its models are ready, each chief and its phase, tasks, "
    "waiting\n"
    "clients with the reason and duration, sessions and steps, and limits that were reached. For "
    "a\n"
    "master other than muster's, shows its devices. If the master doesn't answer, shows why.";

/* --- as JSON --- */

static void
print_json (const MusterCliOptions *options, const Muster__StatusResponse *status)
{
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "target", options->target);
  muster_json_add_boolean (builder, "keeps_announcements", TRUE);
  muster_status_json (builder, status);
  muster_json_print_line (builder);
}

/* --- the request --- */

/* The server to ask. */
typedef struct {
  const MusterCliOptions *options;
  const char *address; /* HOST:PORT or unix:/PATH, a part of the target */
  gboolean tls;
  gint64 deadline_us;
  gint64 call_deadline_us; /* leaves time to find out why there is no answer */
  gint64 after;            /* the changes that were shown last; 0: show what is now */
  gint64 wait_us;          /* for another one */
} Place;

static gboolean
find_place (const MusterCliOptions *options, Place *place, GError **error)
{
  place->options = options;
  place->address = muster_cli_master_address (options->target, &place->tls, error);
  return place->address != NULL;
}

static void
set_deadline (Place *place, gint64 started_us, gint64 timeout_us)
{
  const gint64 kept_us = MIN (LONGEST_LOOK_US, timeout_us / PART_FOR_LOOK);
  place->deadline_us = muster_deadline_after (started_us, timeout_us);
  place->call_deadline_us = muster_deadline_after (started_us, timeout_us - kept_us);
}

/* The message lives in arena. */
static Muster__StatusResponse *
ask (const Place *place, MusterRpcCredentials *credentials, MusterArena *arena, GError **error)
{
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (place->address, credentials);
  return muster_cli_master_status (client, place->after, place->wait_us, place->call_deadline_us,
                                   arena, error);
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
      master == NULL ? NULL
                     : muster_master_list_devices (master, place->call_deadline_us, NULL, &error);
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
  MusterClock *clock = muster_system_clock ();
  const gint64 until_us = MIN (place->deadline_us, muster_clock_now_us (clock) + LONGEST_LOOK_US);
  g_auto (MusterDiagnosis) diagnosis = {0};
  muster_diagnose (place->address, place->tls, until_us, NULL, &diagnosis);
  g_autofree char *took = muster_format_duration (muster_clock_now_us (clock) - started_us);
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
  g_autofree char *hint =
      muster_cli_no_answer_hint (place->address, place->tls, diagnosis.stage, "status");
  muster_cli_say (stderr, "  try: %s\n", hint);
  return MUSTER_EXIT_NO_ANSWER;
}

/* --- what it does --- */

/* *seen (nullable) is the number of changes in what is shown; 0: unknown. What has been shown is
 * shown again only if `again`. */
static MusterExit
show (const Place *place, MusterRpcCredentials *credentials, gint64 started_us, gboolean redraws,
      gboolean again, gint64 *seen)
{
  const MusterCliOptions *options = place->options;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  const Muster__StatusResponse *status = ask (place, credentials, arena, &error);
  if (seen != NULL)
    *seen = status != NULL ? status->changes : 0;
  if (status != NULL && status->changes > 0 && status->changes == place->after && !again)
    return MUSTER_EXIT_DONE;
  if (redraws)
    fputs (CLEAR, stdout);
  if (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED))
    return report_another (place);
  if (muster_cli_is_unanswered (error))
    return report_cause (place, started_us, error);
  if (status == NULL)
    return muster_cli_fail (error);
  if (options->json)
    print_json (options, status);
  else
    muster_cli_status_text (status);
  if (seen != NULL && !redraws && !options->json)
    muster_cli_say (stdout, "\n");
  return MUSTER_EXIT_DONE;
}

/* Shows it after each change, and after interval_us without one (0: only on a terminal), until the
 * process is ended. The server answers when something changes; one that can't is asked again. */
static MusterExit
watch (Place *place, MusterRpcCredentials *credentials, gint64 interval_us)
{
  MusterClock *clock = muster_system_clock ();
  const gboolean redraws = !place->options->json && muster_cli_is_terminal (stdout);
  const gboolean again = redraws || interval_us > 0;
  const gint64 timeout_us =
      place->options->timeout != NULL ? place->options->timeout_us : DEFAULT_TIMEOUT_US;
  place->wait_us = interval_us > 0 ? interval_us : redraws ? REDRAWN_US : ASKED_AGAIN_US;
  for (;;) {
    gint64 started_us = muster_clock_now_us (clock);
    gint64 seen;
    set_deadline (place, started_us,
                  muster_deadline_after (timeout_us, place->after > 0 ? place->wait_us : 0));
    (void)show (place, credentials, started_us, redraws, again, &seen);
    if (muster_cli_flush (stdout) != 0)
      return MUSTER_EXIT_FAILED; /* nobody reads it any more */
    gint64 pause_us = interval_us > 0 ? interval_us : REDRAWN_US;
    if (seen > 0 && seen != place->after)
      pause_us = LEAST_INTERVAL_US; /* the next call waits for the next change */
    place->after = seen;
    (void)muster_clock_wait_until (clock, muster_deadline_after (started_us, pause_us), NULL, NULL);
  }
}

static void
report_health (const MusterCliOptions *options, const char *model, MusterHealth health)
{
  static const char *const states[] = {
      [MUSTER_HEALTH_READY] = "ready",
      [MUSTER_HEALTH_NOT_READY] = "not ready",
      [MUSTER_HEALTH_UNREGISTERED] = "not ready: no chief has ever registered",
  };
  if (options->json) {
    g_autoptr (JsonBuilder) builder = muster_json_new_line ();
    muster_json_add_string (builder, "target", options->target);
    muster_json_add_string (builder, "model", *model != '\0' ? model : NULL);
    muster_json_add_boolean (builder, "ready", health == MUSTER_HEALTH_READY);
    muster_json_print_line (builder);
    return;
  }
  muster_cli_say (stdout, "%s%s%s: %s\n", options->target, *model != '\0' ? ", " : "", model,
                  states[health]);
}

static MusterExit
check_ready (const Place *place, MusterRpcCredentials *credentials, const char *model,
             gint64 started_us)
{
  MusterHealth health = MUSTER_HEALTH_NOT_READY;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (place->address, credentials);
  if (muster_cli_health_check (client, model, &health, place->call_deadline_us, &error)) {
    report_health (place->options, model, health);
    return health == MUSTER_HEALTH_READY ? MUSTER_EXIT_DONE : MUSTER_EXIT_NOT_READY;
  }
  if (muster_cli_is_unanswered (error))
    return report_cause (place, started_us, error);
  if (!muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED))
    return muster_cli_fail (error);
  muster_cli_say (stderr,
                  "muster: %s answers, but has no health service\n"
                  "  try: start a gateway with `muster serve --master=%s`\n",
                  place->options->target, place->options->target);
  return MUSTER_EXIT_NO_ANSWER;
}

/* The options of its own. */
typedef struct {
  char *ready, *watch; /* (owned) (nullable) "" without a value */
  gint64 interval_us;
} Own;

static void
own_clear (Own *self)
{
  g_free (self->ready);
  g_free (self->watch);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Own, own_clear)

static gboolean
parse (Own *self, MusterCliOptions *options, char **argv, GError **error)
{
  const GOptionEntry entries[] = {
      {"ready", 0, 0, G_OPTION_ARG_STRING, &self->ready,
       "only whether the master, or a model on it, is ready: exit code 0 ready, 1 not ready, 2 no "
       "answer, 3 invalid usage; needs no token",
       "[=MODEL]"},
      {"watch", 0, 0, G_OPTION_ARG_STRING, &self->watch,
       "show it again at each change, and at this interval, until interrupted (default: 2s on a "
       "terminal, elsewhere only at changes)",
       "[=TIME]"},
      {NULL}};
  g_auto (GStrv) with_ready = muster_cli_allow_no_value (argv, "--ready", error);
  g_auto (GStrv) words =
      with_ready != NULL ? muster_cli_allow_no_value (with_ready, "--watch", error) : NULL;
  g_auto (GStrv) rest = NULL;
  if (words == NULL) {
    g_prefix_error (error, "status: ");
    return FALSE;
  }
  if (!muster_cli_parse ((int)g_strv_length (words), words, "TARGET", summary, entries,
                         MUSTER_CLI_TIMEOUT | MUSTER_CLI_SHORT | MUSTER_CLI_JSON |
                             MUSTER_CLI_SECURITY,
                         options, &rest, error))
    return FALSE;
  if (g_strv_length (rest) != 1)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "status needs one TARGET, such as grpc://HOST:PORT");
  options->target = g_strdup (rest[0]);
  if (self->ready != NULL && self->watch != NULL)
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "status: --ready can't be combined with --watch; `muster wait --model=NAME` "
        "waits until a model is ready");
  if (self->watch == NULL)
    return TRUE;
  if (*self->watch == '\0')
    return TRUE;
  if (!muster_cli_duration (self->watch, &self->interval_us, error))
    return FALSE;
  return self->interval_us >= LEAST_INTERVAL_US ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --watch '%s' (use 100ms or more)", self->watch);
}

int
muster_cli_status (int argc G_GNUC_UNUSED, char **argv)
{
  g_auto (Own) own = {0};
  g_auto (MusterCliOptions) options = {0};
  g_autoptr (GError) error = NULL;
  Place place = {0};
  if (!parse (&own, &options, argv, &error) || !find_place (&options, &place, &error))
    return muster_cli_fail (error);
  gint64 started_us = muster_clock_now_us (muster_system_clock ());
  set_deadline (&place, started_us,
                options.timeout != NULL ? options.timeout_us : DEFAULT_TIMEOUT_US);
  g_autoptr (MusterRpcCredentials) credentials = NULL;
  if (!muster_cli_credentials (&options, &credentials, &error))
    return muster_cli_fail (error);
  if (own.ready != NULL)
    return check_ready (&place, credentials, own.ready, started_us);
  if (own.watch != NULL)
    return watch (&place, credentials, own.interval_us);
  return show (&place, credentials, started_us, FALSE, TRUE, NULL);
}
