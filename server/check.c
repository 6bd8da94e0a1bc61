// SPDX-License-Identifier: Apache-2.0
/* Questions that a server's owner asks it from within its process. */
#include "base/unpack_private.h"
#include "rpc/proto/health.pb-c.h"
#include "server/core/server_private.h"
#include "server/core/service.h"
#include "server/http/pages.h"
#include "server/server.h"
#include "server/services/readiness_service.h"

#define SERVING GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING

static gboolean
says_serving (MusterServer *self, GBytes *answer, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Grpc__Health__V1__HealthCheckResponse *response = muster_unpack (
      &grpc__health__v1__health_check_response__descriptor, g_bytes_get_data (answer, NULL),
      g_bytes_get_size (answer), arena, "HealthCheckResponse", error);
  if (response == NULL)
    return FALSE;
  const gboolean is_gateway = /* it answers, whatever its master does */
      self->gateway != NULL && !g_atomic_int_get (&self->is_stopping);
  return response->status == SERVING || is_gateway ||
         muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "the server isn't serving");
}

gboolean
muster_server_check (MusterServer *self, gint64 timeout_us, GError **error)
{
  if (self->itself == NULL)
    self->itself = muster_rpc_server_connect (self->rpc, error);
  if (self->itself == NULL)
    return FALSE;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const MusterRpcOptions options = {.deadline_us = muster_deadline_after (now_us, timeout_us)};
  g_auto (MusterRope) request = MUSTER_ROPE_INIT; /* the empty name means the server as a whole */
  g_autoptr (GBytes) answer = muster_rpc_client_call (self->itself, "/grpc.health.v1.Health/Check",
                                                      &request, &options, NULL, error);
  return answer != NULL && says_serving (self, answer, error);
}

void
muster_server_count (MusterServer *self, MusterServerCounts *counts)
{
  g_autoptr (GPtrArray) chiefs = muster_chief_registry_list (self->registry);
  *counts = (MusterServerCounts){
      .sessions = muster_sessions_size (self->sessions),
      .watchers = muster_readiness_service_n_watchers (self->readiness),
      .models = chiefs->len,
  };
  for (guint i = 0; i < chiefs->len; i++)
    counts->ready += muster_pages_why_not_ready (chiefs->pdata[i]) == NULL;
}
