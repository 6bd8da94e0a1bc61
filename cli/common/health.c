// SPDX-License-Identifier: Apache-2.0
#include "cli/common/health.h"

#include "base/unpack_private.h"
#include "rpc/proto/health.pb-c.h"

#define METHOD(name)    "/grpc.health.v1.Health/" name
#define SERVING         GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
#define SERVICE_UNKNOWN GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN

static void
pack_request (MusterRope *rope, const char *model)
{
  Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
  request.service = (char *)model;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (rope, packed);
}

static gboolean
read_health (GBytes *bytes, MusterHealth *health, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  const Grpc__Health__V1__HealthCheckResponse *response = muster_unpack (
      &grpc__health__v1__health_check_response__descriptor, data, size, arena, "health", error);
  if (response == NULL)
    return FALSE;
  *health = response->status == SERVING           ? MUSTER_HEALTH_READY
            : response->status == SERVICE_UNKNOWN ? MUSTER_HEALTH_UNREGISTERED
                                                  : MUSTER_HEALTH_NOT_READY;
  return TRUE;
}

gboolean
muster_cli_health_check (MusterRpcClient *client, const char *model, MusterHealth *health,
                         gint64 deadline_us, GError **error)
{
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  const MusterRpcOptions options = {.deadline_us = deadline_us};
  g_autoptr (GError) failure = NULL;
  pack_request (&request, model);
  g_autoptr (GBytes) bytes =
      muster_rpc_client_call (client, METHOD ("Check"), &request, &options, NULL, &failure);
  if (bytes != NULL)
    return read_health (bytes, health, error);
  if (!muster_error_is (failure, MUSTER_ERROR_NOT_FOUND)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  *health = MUSTER_HEALTH_UNREGISTERED;
  return TRUE;
}

MusterRpcStream *
muster_cli_health_watch (MusterRpcClient *client, const char *model, GError **error)
{
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  const MusterRpcOptions options = {.deadline_us = MUSTER_WAIT_FOREVER};
  pack_request (&request, model);
  return muster_rpc_client_open (client, METHOD ("Watch"), &request, &options, error);
}

gboolean
muster_cli_health_next (MusterRpcStream *stream, MusterHealth *health, gint64 deadline_us,
                        GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autoptr (GBytes) bytes = muster_rpc_stream_next_until (stream, deadline_us, NULL, &failure);
  if (bytes != NULL)
    return read_health (bytes, health, error);
  if (failure == NULL)
    return muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "the master ended the watch");
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}
