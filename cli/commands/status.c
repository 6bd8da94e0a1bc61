// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/status.h"

#include "rpc/address.h"
#include "rpc/client/diagnose.h"

#include <string.h>

#define METHOD             "/muster.Readiness/Status"
#define DEFAULT_TIMEOUT_US (10 * MUSTER_SECOND)

static const char summary[] =
    "Looks at a master: is its model ready, who is the chief and what does it do, who waits for "
    "what and since when, how\n"
    "many sessions and steps there are, and which limits were hit. Of a master that isn't muster's "
    "own it says what can be\n"
    "said; of one that doesn't answer, why.";

/* Where to look. */
typedef struct {
  const MusterCliOptions *options;
  const char *address; /* HOST:PORT, within the target */
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
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s' is no master behind a network: say grpc://HOST:PORT", options->target);
    return FALSE;
  }
  return muster_address_parse (place->address, &host, &port, error);
}

/* The message lives as long as arena. */
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
                        "what the master says of its status", error);
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

/* A master without our service, as TensorFlow's: it can list its devices. */
static MusterExit
tell_of_another (const Place *place)
{
  const MusterCliOptions *options = place->options;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_cli_master (options, &error);
  g_autoptr (GPtrArray) devices =
      master == NULL ? NULL : muster_master_list_devices (master, place->deadline_us, NULL, &error);
  if (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED)) {
    muster_cli_say (stderr,
                    "muster: %s answers, but is no master: it offers no MasterService\n"
                    "  try: is that the port for health probes? `muster serve` prints both\n",
                    options->target);
    return MUSTER_EXIT_NO_ANSWER;
  }
  if (devices == NULL)
    return muster_cli_fail (error);
  if (options->json) {
    devices_json (options, devices);
    return MUSTER_EXIT_DONE;
  }
  muster_cli_say (stdout, "up  %s, a master that isn't muster's: %u device%s\n", options->target,
                  devices->len, devices->len == 1 ? "" : "s");
  for (guint i = 0; i < devices->len; i++) {
    const MusterDevice *device = g_ptr_array_index (devices, i);
    muster_cli_say (stdout, "  %s\n", device->name);
  }
  muster_cli_say (stdout,
                  "  it keeps no announcements: serve a gateway with `muster serve --master=%s`\n",
                  options->target);
  return MUSTER_EXIT_DONE;
}

/* Nobody answers: finds out why. */
static MusterExit
tell_why (const Place *place, gint64 started_us, const GError *error)
{
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  gint64 look_until_us = MAX (place->deadline_us, now_us + MUSTER_SECOND);
  g_auto (MusterDiagnosis) diagnosis = {0};
  muster_diagnose (place->address, place->tls, MIN (look_until_us, now_us + 5 * MUSTER_SECOND),
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
                      : "is the address right, and is that port a master's?");
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
    fprintf (stderr, "muster: status needs one TARGET, as grpc://HOST:PORT\n");
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
    return tell_of_another (&place);
  if (muster_error_is (error, MUSTER_ERROR_UNAVAILABLE) ||
      muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED))
    return tell_why (&place, started_us, error);
  if (status == NULL)
    return muster_cli_fail (error);
  (options.json ? muster_cli_status_json : muster_cli_status_text) (&options, status);
  return MUSTER_EXIT_DONE;
}
