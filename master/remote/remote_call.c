// SPDX-License-Identifier: Apache-2.0
#include "master/remote/remote_call_private.h"

void
muster_remote_pack (MusterRope *out, const ProtobufCMessage *message)
{
  g_autoptr (GBytes) packed = muster_pack (message);
  muster_rope_append (out, packed);
}

MusterRpcStream *
muster_remote_open (MusterRpcClient *client, const char *method, const ProtobufCMessage *message,
                    MusterRpcStreamNotify notify, gpointer data, GError **error)
{
  const MusterRpcOptions options = {.deadline_us = MUSTER_WAIT_FOREVER};
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_remote_pack (&request, message);
  MusterRpcStream *stream = muster_rpc_client_open (client, method, &request, &options, error);
  if (stream != NULL)
    muster_rpc_stream_set_notify (stream, notify, data);
  return stream;
}

gpointer
muster_remote_call (MusterRpcClient *client, const char *method, MusterRope *request,
                    const ProtobufCMessageDescriptor *answer, MusterArena *arena,
                    const MusterRpcOptions *options, GCancellable *cancellable, GError **error)
{
  g_autoptr (GBytes) bytes =
      muster_rpc_client_call (client, method, request, options, cancellable, error);
  if (bytes == NULL)
    return NULL;
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  g_autoptr (GError) malformed = NULL;
  gpointer message = muster_unpack (answer, data, size, arena, answer->short_name, &malformed);
  if (message == NULL)
    muster_fail (error, MUSTER_ERROR_INTERNAL, "'%s' answered nonsense: %s",
                 muster_rpc_client_address (client), malformed->message);
  return message;
}
