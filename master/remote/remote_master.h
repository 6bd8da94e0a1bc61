// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "rpc/credentials.h"

G_BEGIN_DECLS

/**
 * MusterRemoteMaster:
 *
 * A master behind gRPC: muster's or TensorFlow's MasterService. It connects with the first call.
 * Its sessions can be watched if the server offers /muster.Readiness. Any thread.
 */

#define MUSTER_TYPE_REMOTE_MASTER (muster_remote_master_get_type ())
G_DECLARE_FINAL_TYPE (MusterRemoteMaster, muster_remote_master, MUSTER, REMOTE_MASTER, GObject)

/**
 * muster_remote_master_new:
 * @target: "grpc://HOST:PORT", "HOST:PORT", "unix:/PATH" or, with TLS, "grpcs://HOST:PORT"
 *
 * Creates a master. INVALID_ARGUMENT for any other target.
 *
 * Returns: (transfer full): the master
 */
MusterMaster *muster_remote_master_new (const char *target, GError **error);

/**
 * muster_remote_master_new_secured:
 * @target: "grpc://HOST:PORT", "HOST:PORT", "unix:/PATH" or, with TLS, "grpcs://HOST:PORT"
 * @credentials: (nullable): how the server is trusted and the client known
 *
 * Creates a master with credentials: see [func@Master.new_secured].
 *
 * Returns: (transfer full): the master
 */
MusterMaster *muster_remote_master_new_secured (const char *target,
                                                MusterRpcCredentials *credentials, GError **error);

/**
 * muster_remote_master_await:
 * @self: a remote master
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Waits until the server answers. For code that knows that the server is back: gRPC pauses before
 * it reconnects, and until then calls are UNAVAILABLE at once.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_remote_master_await (MusterRemoteMaster *self, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);

G_END_DECLS
