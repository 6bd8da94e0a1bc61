// SPDX-License-Identifier: Apache-2.0
#include "rpc/client/rpc_call_private.h"
#include "rpc/server/rpc_server_state_private.h"

#include <errno.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <sys/socket.h>

MusterRpcClient *
muster_rpc_server_connect (MusterRpcServer *self, GError **error)
{
  g_return_val_if_fail (self->is_started, NULL);
  int ends[2];
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "can't connect to this server from within: %s", g_strerror (errno));
    return NULL;
  }
  /* gRPC supports only insecure ones here; no other process can reach them. */
  grpc_server_credentials *of_server = grpc_insecure_server_credentials_create ();
  grpc_server_add_channel_from_fd (self->server, ends[0], of_server);
  grpc_server_credentials_release (of_server);
  grpc_channel_credentials *of_client = grpc_insecure_credentials_create ();
  grpc_channel *channel = grpc_channel_create_from_fd ("itself", ends[1], of_client, NULL);
  grpc_channel_credentials_release (of_client);
  return muster_rpc_client_new_over (channel, "itself");
}
