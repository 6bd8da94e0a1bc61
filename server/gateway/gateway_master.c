// SPDX-License-Identifier: Apache-2.0
/* Looks whether the master can be used, so that a gateway reports that it can't before a client
 * finds out. */
#include "server/gateway/gateway_private.h"

#include "base/log_bounded_private.h"
#include "base/safe_text_private.h"
#include "base/unpack_private.h"
#include "rpc/proto/master.pb-c.h"
#include "server/core/service.h"
#include "server/services/health_service.h"
#include "server/services/status_watch.h"

/* Between two looks, and while the master can't be used. */
#define LOOK_US  (5 * MUSTER_SECOND)
#define RETRY_US MUSTER_SECOND
/* Of the master's answer. */
#define ANSWER_US (5 * MUSTER_SECOND)
/* The same at the start, which waits for it. */
#define FIRST_ANSWER_US MUSTER_SECOND

#define MAX_FAILURE 1024

/* A session that doesn't exist: any master answers at once. */
#define NO_SESSION "muster-looks"

static GError *
call (MusterRpcClient *client, const char *method, const ProtobufCMessage *message,
      gint64 deadline_us, GCancellable *cancellable)
{
  const MusterRpcOptions options = {.deadline_us = deadline_us};
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (message);
  GError *error = NULL;
  muster_rope_append (&request, packed);
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (client, method, &request, &options, cancellable, &error);
  return error;
}

/* Whether that answer, or none, says that the master can't be used. */
static gboolean
is_failure (const GError *error)
{
  static const MusterError codes[] = {
      MUSTER_ERROR_UNAVAILABLE,         MUSTER_ERROR_DEADLINE_EXCEEDED,
      MUSTER_ERROR_UNAUTHENTICATED,     MUSTER_ERROR_PERMISSION_DENIED,
      MUSTER_ERROR_FAILED_PRECONDITION, MUSTER_ERROR_UNIMPLEMENTED};
  for (gsize i = 0; i < G_N_ELEMENTS (codes); i++)
    if (muster_error_is (error, codes[i]))
      return TRUE;
  return FALSE;
}

/* A gateway passes ListDevices on; CloseSession needs the role that sessions need. */
static GError *
ask (MusterRpcClient *client, gint64 deadline_us, GCancellable *cancellable)
{
  Tensorflow__ListDevicesRequest list = TENSORFLOW__LIST_DEVICES_REQUEST__INIT;
  Tensorflow__CloseSessionRequest close = TENSORFLOW__CLOSE_SESSION_REQUEST__INIT;
  list.session_handle = (char *)NO_SESSION;
  close.session_handle = (char *)NO_SESSION;
  /* Before the first call, a thread that makes the channel connect would poll beside those of the
   * steps for ever: each took a seventh longer. If the master isn't reached, the call says why. */
  if (muster_rpc_client_has_channel (client))
    (void)muster_rpc_client_reach (client, deadline_us, cancellable);
  GError *error =
      call (client, MUSTER_MASTER_SERVICE ("ListDevices"), &list.base, deadline_us, cancellable);
  if (is_failure (error))
    return error;
  g_clear_error (&error);
  return call (client, MUSTER_MASTER_SERVICE ("CloseSession"), &close.base, deadline_us,
               cancellable);
}

/* Without times, which would make each look another failure. (transfer full) */
static char *
describe (const GError *error, MusterRpcClient *client)
{
  if (muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED))
    return g_strdup ("it gave no answer in time");
  g_autoptr (GError) refusal =
      client != NULL ? muster_rpc_proxy_refusal (error, muster_rpc_client_address (client)) : NULL;
  return muster_safe_text (refusal != NULL ? refusal->message : error->message, -1, MAX_FAILURE);
}

/* What is wrong with the master; NULL: nothing. (transfer full) */
static char *
find_failure (MusterServer *server, gint64 limit_us, GCancellable *cancellable)
{
  g_autoptr (GError) error = NULL;
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const gint64 deadline_us = muster_deadline_after (now_us, limit_us);
  g_autoptr (MusterMaster) remote =
      muster_master_remote (server->master, deadline_us, cancellable, &error);
  if (remote == NULL)
    return describe (error, NULL);
  MusterRpcClient *client = muster_remote_master_client (MUSTER_REMOTE_MASTER (remote));
  error = ask (client, deadline_us, cancellable);
  return is_failure (error) ? describe (error, client) : NULL;
}

static void
tell (MusterServer *server, const char *failure)
{
  const char *target = muster_master_target (server->master);
  if (failure != NULL)
    muster_log_at_most (MUSTER_LOG_EVENTS, G_LOG_LEVEL_WARNING, "master-lost", "MUSTER_MASTER",
                        target, "MESSAGE", "the master '%s' can't be used: %s", target, failure);
  else
    muster_log_at_most (MUSTER_LOG_EVENTS, G_LOG_LEVEL_MESSAGE, "master-found", "MUSTER_MASTER",
                        target, "MESSAGE", "the master '%s' can be used", target);
}

/* FALSE: it was cancelled, or all is as before. */
static gboolean
find_news (MusterServer *server, gint64 limit_us, GCancellable *cancellable, char **failure)
{
  *failure = find_failure (server, limit_us, cancellable);
  if (g_cancellable_is_cancelled (cancellable) ||
      !muster_server_set_master_failure (server, *failure))
    return FALSE;
  muster_health_service_set_cut_off (server->health, *failure != NULL);
  muster_status_watch_note (server->status_watch);
  return TRUE;
}

static gint64
look (gpointer data, GCancellable *cancellable)
{
  MusterServer *server = data;
  g_autofree char *failure = NULL;
  if (find_news (server, ANSWER_US, cancellable, &failure))
    tell (server, failure);
  return muster_deadline_after (muster_clock_now_us (muster_system_clock ()),
                                failure != NULL ? RETRY_US : LOOK_US);
}

void
muster_gateway_start (MusterGateway *self)
{
  g_autofree char *failure = NULL;
  if (self == NULL)
    return;
  if (find_news (self->server, FIRST_ANSWER_US, NULL, &failure) && failure != NULL)
    tell (self->server, failure);
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  self->look = muster_background_task_new ("muster-master", look, self->server,
                                           muster_deadline_after (now_us, RETRY_US));
}
