// SPDX-License-Identifier: Apache-2.0
/* Answers HTTP requests: the pages, then the checks before them (host, token) and the response.
 * A browser's page of somebody else must learn nothing, so names are checked by the Host header
 * unless a token is given. */
#include "server/http/http_answers.h"

#include "base/log_private.h"
#include "server/core/server_private.h"
#include "server/http/http_access.h"
#include "server/http/http_events.h"
#include "server/http/http_guests.h"
#include "server/http/http_hosts.h"
#include "server/http/page.h"
#include "server/http/pages.h"
#include "server/services/status_service.h"
#include "status/status.h"

#include <gio/gio.h>
#include <netinet/in.h>
#include <string.h>

#define PLAIN  "text/plain; charset=utf-8"
#define EVENTS "text/event-stream"
#define PATHS  "/, /api/status, /metrics, /readyz and /healthz"

struct _MusterHttpAnswers {
  MusterServer *server;     /* (not owned) */
  MusterHttpEvents *events; /* (owned) */
  GPtrArray *names;         /* (owned) (element-type utf8) with NULL at the end */
  char *policy;             /* (owned) of the page */
  MusterLogLimit refusals;
};

typedef struct {
  guint status;
  const char *type; /* static */
  char *text;       /* (owned) (nullable) NULL: events */
} Answer;

/* --- the pages --- */

static void
answer_health (MusterHttpAnswers *self, struct MHD_Connection *connection G_GNUC_UNUSED,
               Answer *answer)
{
  gboolean serves = muster_pages_serves (self->server);
  *answer = (Answer){serves ? 200 : 503, PLAIN, g_strdup (serves ? "serving\n" : "stopping\n")};
}

static gboolean
is_own_host (MusterHttpAnswers *self, struct MHD_Connection *connection)
{
  const char *host = MHD_lookup_connection_value (connection, MHD_HEADER_KIND, "Host");
  return muster_http_host_is_own (host, (const char *const *)self->names->pdata);
}

/* A probe by the name of a service or proxy needs only the code. Models' names aren't for
 * somebody else's web page. */
static void
answer_ready (MusterHttpAnswers *self, struct MHD_Connection *connection, Answer *answer)
{
  gboolean is_ready;
  char *text = muster_pages_ready (self->server, &is_ready);
  if (!is_own_host (self, connection)) {
    g_free (text);
    text = g_strdup (is_ready ? "ready\n"
                              : "not ready; for the reasons, use the server's IP address, or start "
                                "it with --http-host=NAME\n");
  }
  *answer = (Answer){is_ready ? 200 : 503, PLAIN, text};
}

static gboolean
wants_open_metrics (struct MHD_Connection *connection)
{
  const char *accepted = MHD_lookup_connection_value (connection, MHD_HEADER_KIND, "Accept");
  return accepted != NULL && strstr (accepted, "application/openmetrics-text") != NULL;
}

static void
answer_metrics (MusterHttpAnswers *self, struct MHD_Connection *connection, Answer *answer)
{
  gboolean open = wants_open_metrics (connection);
  *answer = (Answer){200,
                     open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                          : "text/plain; version=0.0.4; charset=utf-8",
                     muster_pages_metrics (self->server, open)};
}

/* Renders the content of the page at this moment. */
static char *
render (gpointer data)
{
  MusterServer *server = data;
  MusterStepPeriod periods[MUSTER_STEP_PERIODS];
  g_autoptr (MusterServerStatus) status = muster_server_status_new (server);
  muster_step_history_read (muster_step_meter_history (server->steps),
                            muster_clock_now_us (server->clock), periods);
  return muster_page_content (muster_server_status_read (status), periods);
}

static void
answer_page (MusterHttpAnswers *self, struct MHD_Connection *connection G_GNUC_UNUSED,
             Answer *answer)
{
  g_autofree char *content = render (self->server);
  *answer = (Answer){200, "text/html; charset=utf-8", muster_page_whole (content)};
}

static void
answer_status (MusterHttpAnswers *self, struct MHD_Connection *connection G_GNUC_UNUSED,
               Answer *answer)
{
  g_autoptr (MusterServerStatus) status = muster_server_status_new (self->server);
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_status_json (builder, muster_server_status_read (status));
  g_autofree char *line = muster_json_end (builder);
  *answer = (Answer){200, "application/json", g_strconcat (line, "\n", NULL)};
}

static void
answer_events (MusterHttpAnswers *self G_GNUC_UNUSED, struct MHD_Connection *connection,
               Answer *answer)
{
  if (muster_http_guest_stays (muster_http_guest_of (connection)))
    *answer = (Answer){200, EVENTS, NULL};
  else
    *answer = (Answer){503, PLAIN, g_strdup ("too many pages are open\n")};
}

static const struct {
  const char *path;
  void (*answer) (MusterHttpAnswers *self, struct MHD_Connection *connection, Answer *answer);
  gboolean is_open; /* readable without a token and by any name, because somebody else's web page
                       may know it */
} pages[] = {
    {"/", answer_page, FALSE},
    {"/api/status", answer_status, FALSE},
    {"/api/events", answer_events, FALSE},
    {"/metrics", answer_metrics, FALSE},
    {"/readyz", answer_ready, TRUE},
    {"/healthz", answer_health, TRUE},
};

/* --- requests --- */

static gboolean
refuse (Answer *answer, guint status, const char *why)
{
  *answer = (Answer){status, PLAIN, g_strdup (why)};
  return FALSE;
}

static gboolean
check_host (MusterHttpAnswers *self, struct MHD_Connection *connection, Answer *answer)
{
  return is_own_host (self, connection) ||
         refuse (answer, 421,
                 "this server isn't known by that name; use its IP address, or start it with "
                 "--http-host=NAME\n");
}

/* Returns the client's address from its socket; (transfer full) (nullable) */
static char *
peer_of (struct MHD_Connection *connection)
{
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info (connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (info == NULL || info->client_addr == NULL)
    return NULL;
  gsize size = info->client_addr->sa_family == AF_INET6 ? sizeof (struct sockaddr_in6)
                                                        : sizeof (struct sockaddr_in);
  g_autoptr (GSocketAddress) address =
      g_socket_address_new_from_native ((gpointer)info->client_addr, size);
  return address != NULL ? g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (address)) : NULL;
}

static void
log_refusal (MusterHttpAnswers *self, struct MHD_Connection *connection, const char *path,
             const Answer *answer)
{
  char left_out[MUSTER_LOG_COUNT_SIZE];
  if (!muster_log_bounded (G_LOG_LEVEL_INFO, &self->refusals, left_out))
    return;
  g_autofree char *peer = peer_of (connection);
  g_autofree char *why = g_strchomp (g_strdup (answer->text));
  muster_log (G_LOG_LEVEL_INFO, "refused", "MUSTER_METHOD", path, "MUSTER_PEER", peer,
              "MUSTER_LEFT_OUT", left_out, "MESSAGE", "an HTTP request was refused (%u): %s",
              answer->status, why);
}

/* Checks the token. A client that has one isn't somebody else's web page, since a browser keeps
 * it for one name. */
static gboolean
may_read (MusterHttpAnswers *self, struct MHD_Connection *connection, Answer *answer)
{
  switch (muster_http_access (self->server->credentials, connection)) {
  case MUSTER_HTTP_LET_IN:
    return TRUE;
  case MUSTER_HTTP_OPEN:
    return check_host (self, connection, answer);
  case MUSTER_HTTP_STOPPED:
    return refuse (answer, 401,
                   "a token with the role read is needed: as Bearer, or as the password of Basic "
                   "with any user\n");
  case MUSTER_HTTP_NO_WAY:
  default:
    return refuse (answer, 403,
                   "this server asks for client certificates, and HTTP for tokens: start it with "
                   "--token-file\n");
  }
}

/* A client of a proxy names the host in the target, too. */
static const char *
path_of (const char *target)
{
  const char *host = strstr (target, "://");
  if (host == NULL || (!g_str_has_prefix (target, "http:") && !g_str_has_prefix (target, "https:")))
    return target;
  const char *path = strchr (host + strlen ("://"), '/');
  return path != NULL ? path : "/";
}

static void
choose (MusterHttpAnswers *self, struct MHD_Connection *connection, const char *path,
        const char *method, Answer *answer)
{
  for (gsize i = 0; i < G_N_ELEMENTS (pages); i++) {
    if (strcmp (path, pages[i].path) != 0)
      continue;
    if (strcmp (method, "GET") != 0 && strcmp (method, "HEAD") != 0)
      *answer = (Answer){405, PLAIN, g_strdup ("use GET\n")};
    else if (!pages[i].is_open && !may_read (self, connection, answer))
      log_refusal (self, connection, pages[i].path, answer);
    else if (strcmp (method, "HEAD") == 0 && pages[i].answer == answer_events)
      *answer = (Answer){200, EVENTS, g_strdup ("")};
    else
      pages[i].answer (self, connection, answer);
    return;
  }
  *answer = (Answer){404, PLAIN, g_strdup ("not found; use " PATHS "\n")};
}

static struct MHD_Response *
make_response (MusterHttpAnswers *self, struct MHD_Connection *connection, const Answer *answer)
{
  if (answer->text == NULL)
    return muster_http_events_open (self->events, connection);
  struct MHD_Response *response =
      MHD_create_response_from_buffer (strlen (answer->text), answer->text, MHD_RESPMEM_MUST_FREE);
  if (response == NULL)
    g_free (answer->text);
  return response;
}

static enum MHD_Result
send_answer (MusterHttpAnswers *self, struct MHD_Connection *connection, const Answer *answer)
{
  struct MHD_Response *response = make_response (self, connection, answer);
  if (response == NULL)
    return MHD_NO;
  MHD_add_response_header (response, "Content-Type", answer->type);
  MHD_add_response_header (response, "Cache-Control", "no-store");
  MHD_add_response_header (response, "Connection", "close");
  MHD_add_response_header (response, "X-Content-Type-Options", "nosniff");
  if (g_str_has_prefix (answer->type, "text/html"))
    MHD_add_response_header (response, "Content-Security-Policy", self->policy);
  if (answer->status == 401)
    MHD_add_response_header (response, "WWW-Authenticate",
                             "Basic realm=\"muster\", charset=\"UTF-8\"");
  if (answer->status == 405)
    MHD_add_response_header (response, "Allow", "GET, HEAD");
  enum MHD_Result result = MHD_queue_response (connection, answer->status, response);
  MHD_destroy_response (response);
  return result;
}

/* Called after the headers, then for each part of a body, which is discarded, and at the end if
 * there is none. */
enum MHD_Result
muster_http_answer (void *data, struct MHD_Connection *connection, const char *path,
                    const char *method, const char *version G_GNUC_UNUSED,
                    const char *upload G_GNUC_UNUSED, size_t *n_upload, void **request)
{
  static const int begun;
  if (*request == NULL) {
    *request = (gpointer)&begun;
    return MHD_YES;
  }
  if (*n_upload > 0) {
    *n_upload = 0;
    return MHD_YES;
  }
  Answer answer;
  muster_http_guest_asked (muster_http_guest_of (connection));
  choose (data, connection, path_of (path), method, &answer);
  return send_answer (data, connection, &answer);
}

/* --- life --- */

MusterHttpAnswers *
muster_http_answers_new (MusterServer *server, GMainContext *context, const char *const *names)
{
  MusterHttpAnswers *self = g_new0 (MusterHttpAnswers, 1);
  self->server = server;
  self->events = muster_http_events_new (context, render, server);
  self->names = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (self->names, NULL);
  for (gsize i = 0; names != NULL && names[i] != NULL; i++)
    muster_http_answers_add_name (self, names[i]);
  self->policy = muster_page_policy ();
  return self;
}

void
muster_http_answers_add_name (MusterHttpAnswers *self, const char *name)
{
  g_ptr_array_insert (self->names, 0, g_strdup (name));
}

void
muster_http_answers_end (MusterHttpAnswers *self)
{
  muster_http_events_end (self->events);
}

void
muster_http_answers_free (MusterHttpAnswers *self)
{
  if (self == NULL)
    return;
  muster_http_events_free (self->events);
  g_ptr_array_unref (self->names);
  g_free (self->policy);
  g_free (self);
}
