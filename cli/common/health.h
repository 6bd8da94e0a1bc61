// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/client/rpc_client_private.h"

G_BEGIN_DECLS

/* The health of a master, or of a model on it (grpc.health.v1). It needs no token, no session and
 * no meta graph. */

typedef enum {
  MUSTER_HEALTH_READY,
  MUSTER_HEALTH_NOT_READY,
  MUSTER_HEALTH_UNREGISTERED, /* no chief has announced the model */
} MusterHealth;

/* Asks once; the model "" is the master as a whole. UNIMPLEMENTED: the server has no health
 * service, such as TensorFlow's. */
gboolean muster_cli_health_check (MusterRpcClient *client, const char *model, MusterHealth *health,
                                  gint64 deadline_us, GError **error);

/* Opens a stream of the model's health: its present one, then each change. */
MusterRpcStream *muster_cli_health_watch (MusterRpcClient *client, const char *model,
                                          GError **error);
/* The next one, until deadline_us (DEADLINE_EXCEEDED; the stream continues). */
gboolean muster_cli_health_next (MusterRpcStream *stream, MusterHealth *health, gint64 deadline_us,
                                 GError **error);

G_END_DECLS
