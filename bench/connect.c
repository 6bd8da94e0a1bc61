// SPDX-License-Identifier: Apache-2.0
#include "bench/connect.h"

#include <grpc/grpc_security.h>

grpc_channel *
bench_connect (const char *address, const char *ca)
{
  grpc_arg args[] = {
      {.type = GRPC_ARG_INTEGER,
       .key = (char *)GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
       .value = {NULL}},
      {.type = GRPC_ARG_INTEGER, .key = (char *)GRPC_ARG_ENABLE_RETRIES, .value = {NULL}},
      {.type = GRPC_ARG_INTEGER, .key = (char *)GRPC_ARG_ENABLE_HTTP_PROXY, .value = {NULL}},
  };
  args[0].value.integer = 1;
  const grpc_channel_args given = {G_N_ELEMENTS (args), args};
  g_autofree char *target = g_strconcat ("ipv4:", address, NULL);
  grpc_channel_credentials *credentials = ca != NULL
                                              ? grpc_ssl_credentials_create (ca, NULL, NULL, NULL)
                                              : grpc_insecure_credentials_create ();
  grpc_channel *channel = grpc_channel_create (target, credentials, &given);
  grpc_channel_credentials_release (credentials);
  return channel;
}
