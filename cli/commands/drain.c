// SPDX-License-Identifier: Apache-2.0
/* `muster drain`: asks chiefs to save and their tasks to hold, and waits until they have. */
#include "cli/commands/commands.h"
#include "cli/common/cli.h"
#include "cli/common/master_status.h"
#include "cli/output/json.h"
#include "master/announcement.h"
#include "train/monitored/hook_private.h"

#include <string.h>

#define METHOD   "/muster.Readiness/Drain"
#define POLL_US  (100 * MUSTER_MILLISECOND)
#define GRACE_US (30 * MUSTER_SECOND)
/* The jobs pause meanwhile, and a later drain doesn't shorten it. */
#define MOST_GRACE_US (24 * 3600 * MUSTER_SECOND)

static const char summary[] =
    "Asks the chiefs at a server, or at a job's coordinator, to save, and the tasks of their\n"
    "jobs to hold, as the server does before it stops; it keeps running. Exits with 0 once all\n"
    "have saved. The tasks then hold for the rest of --grace, in which the servers that hold the\n"
    "variables can be stopped without losing a step. If they aren't, training continues.";

typedef struct {
  const MusterCliOptions *options;
  MusterRpcClient *client; /* (owned) */
  MusterArena *arena;      /* (owned) of the response */
  gint64 grace_us, until_us;
  Muster__DrainResponse *asked; /* the models whose chiefs save */
} Drain;

static void
drain_clear (Drain *self)
{
  g_clear_pointer (&self->client, muster_rpc_client_unref);
  g_clear_pointer (&self->arena, muster_arena_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Drain, drain_clear)

static gboolean
ask (Drain *self, gint64 deadline_us, GError **error)
{
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  const MusterRpcOptions options = {.deadline_us = deadline_us};
  Muster__DrainRequest message = MUSTER__DRAIN_REQUEST__INIT;
  message.model = self->options->model != NULL ? self->options->model : (char *)"";
  message.within_us = self->grace_us;
  g_autoptr (GBytes) packed = muster_pack (&message.base);
  muster_rope_append (&request, packed);
  g_autoptr (GBytes) bytes =
      muster_rpc_client_call (self->client, METHOD, &request, &options, NULL, error);
  if (bytes == NULL)
    return FALSE;
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  self->asked = muster_unpack (&muster__drain_response__descriptor, data, size, self->arena,
                               "answer to a drain", error);
  return self->asked != NULL;
}

static const Muster__Announcement *
find (const Muster__StatusResponse *status, const char *model)
{
  for (gsize i = 0; i < status->n_models; i++)
    if (strcmp (status->models[i]->model, model) == 0)
      return status->models[i];
  return NULL;
}

/* A chief that was lost has a successor, which is asked as well. */
static gboolean
is_done (const Muster__Announcement *model)
{
  const gboolean has_left = !model->alive && *model->ended != '\0';
  return model->drain == MUSTER_DRAIN_SAVED || model->phase == MUSTER__PHASE__OVER ||
         model->failed || has_left;
}

static gboolean
are_done (const Drain *self, const Muster__StatusResponse *status)
{
  for (gsize i = 0; i < self->asked->n_models; i++) {
    const Muster__Announcement *model = find (status, self->asked->models[i]);
    if (model == NULL || !is_done (model))
      return FALSE;
  }
  return TRUE;
}

/* The last status that there was; NULL with an error if there was none. */
static const Muster__StatusResponse *
await (Drain *self, MusterArena **arena, GError **error)
{
  MusterClock *clock = muster_system_clock ();
  const Muster__StatusResponse *last = NULL;
  for (gint64 now_us = muster_clock_now_us (clock);; now_us = muster_clock_now_us (clock)) {
    g_autoptr (MusterArena) its = muster_arena_new ();
    g_clear_error (error);
    const Muster__StatusResponse *status =
        muster_cli_master_status (self->client, 0, 0, self->until_us, its, error);
    if (status != NULL) {
      g_clear_pointer (arena, muster_arena_free);
      *arena = g_steal_pointer (&its);
      last = status;
    }
    if ((status != NULL && are_done (self, status)) || now_us >= self->until_us ||
        (status == NULL && !muster_cli_is_unanswered (*error)))
      return last;
    (void)muster_clock_wait_until (clock, MIN (now_us + POLL_US, self->until_us), NULL, NULL);
  }
}

/* For how long the tasks hold yet, which began after the request. */
static gint64
holds_us (const Drain *self)
{
  const gint64 began_us = self->until_us - self->grace_us;
  const gint64 until_us = began_us + MIN (self->grace_us, MUSTER_HOLD_US);
  return MAX (until_us - muster_clock_now_us (muster_system_clock ()), 0);
}

static void
report_json (const Drain *self, const Muster__Announcement *model, const char *name)
{
  const gboolean is_saved = model != NULL && model->drain == MUSTER_DRAIN_SAVED;
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "model", name);
  muster_json_add_boolean (builder, "saved", is_saved);
  muster_json_add_step (builder, "durable_step", model != NULL ? model->durable_step : -1);
  muster_json_add_string (builder, "checkpoint",
                          model != NULL && *model->durable != '\0' ? model->durable : NULL);
  muster_json_add_seconds (builder, "holds", is_saved ? holds_us (self) : 0);
  muster_json_print_line (builder);
}

static void
report (const Drain *self, const Muster__Announcement *model, const char *name)
{
  g_autofree char *left = muster_format_duration (holds_us (self));
  g_autofree char *grace = muster_format_duration (self->grace_us);
  if (model == NULL || !is_done (model))
    muster_cli_say (stderr, "muster: %s isn't saved: %s %s\n", name,
                    model == NULL  ? "the server was restarted, and its chief hasn't come back"
                    : model->drain ? "its chief hasn't saved within"
                                   : "its chief saves no checkpoints, or hasn't begun to within",
                    model == NULL ? "yet" : grace);
  else if (model->drain == MUSTER_DRAIN_SAVED)
    muster_cli_say (
        stdout, "drained %s: step %" G_GINT64_FORMAT " is durable (%s); its tasks hold for %s\n",
        name, model->durable_step, model->durable, left);
  else
    muster_cli_say (stdout, "drained %s: its chief has ended\n", name);
}

static MusterExit
drain (Drain *self, gint64 deadline_us)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = NULL;
  MusterExit code = MUSTER_EXIT_DONE;
  if (!ask (self, deadline_us, &error)) {
    if (muster_cli_is_unanswered (error))
      muster_cli_explain_no_answer (self->options, deadline_us, &error);
    return muster_cli_fail (error);
  }
  self->until_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), self->grace_us);
  const Muster__StatusResponse *status = await (self, &arena, &error);
  if (status == NULL)
    return muster_cli_fail (error);
  for (gsize i = 0; i < self->asked->n_models; i++) {
    const Muster__Announcement *model = find (status, self->asked->models[i]);
    if (model == NULL || !is_done (model))
      code = MUSTER_EXIT_NOT_READY;
    (self->options->json ? report_json : report) (self, model, self->asked->models[i]);
  }
  return code;
}

static gboolean
parse (Drain *self, MusterCliOptions *options, int argc, char **argv, GError **error)
{
  g_autofree char *grace = NULL;
  g_auto (GStrv) rest = NULL;
  const GOptionEntry entries[] = {{"grace", 0, 0, G_OPTION_ARG_STRING, &grace,
                                   "time for the saves, and for the tasks to hold (default: 30s)",
                                   "TIME"},
                                  {"model", 0, 0, G_OPTION_ARG_STRING, &options->model,
                                   "model that drains (default: all)", "NAME"},
                                  {NULL}};
  if (!muster_cli_parse (argc, argv, "TARGET", summary, entries,
                         MUSTER_CLI_TIMEOUT | MUSTER_CLI_SHORT | MUSTER_CLI_JSON |
                             MUSTER_CLI_SECURITY,
                         options, &rest, error))
    return FALSE;
  if (g_strv_length (rest) != 1)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "drain needs one TARGET, such as grpc://HOST:PORT");
  options->target = g_strdup (rest[0]);
  self->grace_us = GRACE_US;
  if (grace != NULL && !muster_cli_duration (grace, &self->grace_us, error))
    return FALSE;
  return (self->grace_us > 0 && self->grace_us <= MOST_GRACE_US) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --grace '%s' (use 30s or 1m, at most 24h)", grace);
}

int
muster_cli_drain (int argc, char **argv)
{
  g_auto (MusterCliOptions) options = {0};
  g_auto (Drain) self = {.options = &options, .arena = muster_arena_new ()};
  g_autoptr (MusterRpcCredentials) credentials = NULL;
  g_autoptr (GError) error = NULL;
  gboolean tls;
  if (!parse (&self, &options, argc, argv, &error))
    return muster_cli_fail (error);
  const char *address = muster_cli_master_address (options.target, &tls, &error);
  if (address == NULL || !muster_cli_credentials (&options, &credentials, &error))
    return muster_cli_fail (error);
  self.client = muster_rpc_client_new (address, credentials);
  return drain (&self, muster_deadline_after (muster_clock_now_us (muster_system_clock ()),
                                              options.timeout_us));
}
