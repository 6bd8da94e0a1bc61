// SPDX-License-Identifier: Apache-2.0
#include "cli/common/master_status.h"

#include "rpc/address_private.h"

#include <string.h>

#define METHOD "/muster.Readiness/Status"

const char *
muster_cli_master_address (const char *target, gboolean *tls, GError **error)
{
  const char *address = muster_address_in_target (target, tls);
  if (address == NULL && strstr (target, "://") != NULL) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "invalid master '%s' (use grpc://HOST:PORT or unix:/PATH)", target);
    return NULL;
  }
  if (address == NULL)
    address = target;
  return muster_address_check (address, error) ? address : NULL;
}

Muster__StatusResponse *
muster_cli_master_status (MusterRpcClient *client, gint64 after, gint64 wait_us, gint64 deadline_us,
                          MusterArena *arena, GError **error)
{
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  const MusterRpcOptions options = {.deadline_us = deadline_us};
  Muster__StatusRequest message = MUSTER__STATUS_REQUEST__INIT;
  message.after = after;
  message.wait_us = wait_us;
  g_autoptr (GBytes) packed = muster_pack (&message.base);
  muster_rope_append (&request, packed);
  g_autoptr (GBytes) bytes =
      muster_rpc_client_call (client, METHOD, &request, &options, NULL, error);
  if (bytes == NULL)
    return NULL;
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  return muster_unpack (&muster__status_response__descriptor, data, size, arena, "master's status",
                        error);
}

gboolean
muster_cli_is_unanswered (const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_UNAVAILABLE) ||
         muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

char *
muster_cli_no_answer_hint (const char *address, gboolean tls, MusterReach stage,
                           const char *command)
{
  switch (stage) {
  case MUSTER_REACH_REFUSED:
    return muster_address_unix_path (address) != NULL
               ? g_strdup_printf (
                     "`muster serve --listen=%s` starts a master, if the path is right", address)
               : g_strdup ("`muster serve --listen=HOST:PORT` starts a master");
  case MUSTER_REACH_TLS_FAILED:
    return g_strdup_printf ("`muster %s %s://%s`", command, tls ? "grpc" : "grpcs", address);
  default:
    return g_strdup ("check the address, and that the port is a master's");
  }
}
