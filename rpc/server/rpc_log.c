// SPDX-License-Identifier: Apache-2.0
#include "base/log_private.h"
#include "rpc/server/rpc_server_state_private.h"

void
muster_rpc_log_arrival (MusterRpcCall *self)
{
  if (!muster_log_enabled (G_LOG_LEVEL_DEBUG))
    return;
  muster_log (G_LOG_LEVEL_DEBUG, "call", "MUSTER_METHOD", self->method->path, "MUSTER_PEER",
              muster_rpc_call_peer (self), "MUSTER_X_REQUEST_ID",
              muster_rpc_call_header (self, MUSTER_REQUEST_HEADER), "MESSAGE", "%s came",
              self->method->path);
}

void
muster_rpc_log_end (MusterRpcCall *self, const GError *error)
{
  if (!muster_log_enabled (G_LOG_LEVEL_DEBUG) || self->method->path == NULL)
    return;
  const char *status = muster_error_name (error != NULL ? muster_error_to_wire (error) : 0);
  muster_log (G_LOG_LEVEL_DEBUG, "answer", "MUSTER_METHOD", self->method->path, "MUSTER_PEER",
              muster_rpc_call_peer (self), "MUSTER_X_REQUEST_ID",
              muster_rpc_call_header (self, MUSTER_REQUEST_HEADER), "MUSTER_STATUS", status,
              "MESSAGE", "%s: %s", self->method->path, error != NULL ? error->message : "answered");
}

void
muster_rpc_call_refuse (MusterRpcCall *self, const GError *error)
{
  static MusterLogLimit limit;
  char left_out[MUSTER_LOG_COUNT_SIZE];
  if (muster_log_bounded (G_LOG_LEVEL_INFO, &limit, left_out))
    muster_log (G_LOG_LEVEL_INFO, "refused", "MUSTER_METHOD", self->method->path, "MUSTER_PEER",
                muster_rpc_call_peer (self), "MUSTER_X_REQUEST_ID",
                muster_rpc_call_header (self, MUSTER_REQUEST_HEADER), "MUSTER_LEFT_OUT", left_out,
                "MESSAGE", "a call was refused: %s", error->message);
  muster_rpc_call_finish (self, error);
}
