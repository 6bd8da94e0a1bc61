// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "rpc/credentials.h"

G_BEGIN_DECLS

/* MusterRemoteMaster is a master behind gRPC: muster's or TensorFlow's MasterService. It connects
 * with the first call. Its sessions can be watched if the server offers /muster.Readiness. */

#define MUSTER_TYPE_REMOTE_MASTER (muster_remote_master_get_type ())
G_DECLARE_FINAL_TYPE (MusterRemoteMaster, muster_remote_master, MUSTER, REMOTE_MASTER, GObject)

/* target is "grpc://HOST:PORT", "HOST:PORT" or, with TLS, "grpcs://HOST:PORT"; INVALID_ARGUMENT for
 * anything else. */
MusterMaster *muster_remote_master_new (const char *target, GError **error);
/* The same with credentials (nullable); see muster_master_new_secured (). */
MusterMaster *muster_remote_master_new_secured (const char *target,
                                                MusterRpcCredentials *credentials, GError **error);

/**
 * muster_remote_master_await: (skip)
 * Waits until the server answers. For code that knows that the server is back: gRPC pauses before
 * it reconnects, and until then calls are UNAVAILABLE at once.
 */
gboolean muster_remote_master_await (MusterRemoteMaster *self, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);

G_END_DECLS
