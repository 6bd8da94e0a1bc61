// SPDX-License-Identifier: Apache-2.0
#include "wire/grpc_private.h"

/* The one place where a gRPC credential is made. Nothing makes a MusterRpcCredentials yet, so plain
 * text is all there is; TLS and tokens come in here. */

grpc_channel_credentials *
muster_rpc_credentials_for_channel (MusterRpcCredentials *self)
{
  g_assert (self == NULL); /* nothing makes one yet */
  return grpc_insecure_credentials_create ();
}

grpc_server_credentials *
muster_rpc_credentials_for_server (MusterRpcCredentials *self)
{
  g_assert (self == NULL);
  return grpc_insecure_server_credentials_create ();
}
