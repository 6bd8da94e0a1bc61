// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote/remote_master.h"

G_BEGIN_DECLS

/* MusterNearMaster is a remote master that may have a gateway on this machine. Each call asks the
 * gateway's port, and goes to the gateway if something listens there, else to the master itself. A
 * session stays where it was created. Any thread. */

#define MUSTER_TYPE_NEAR_MASTER (muster_near_master_get_type ())
G_DECLARE_FINAL_TYPE (MusterNearMaster, muster_near_master, MUSTER, NEAR_MASTER, GObject)

/* Its target is the master's. gateway is "localhost:PORT", and credentials (nullable) are for it
 * alone: they are those of a `muster serve`. */
MusterMaster *muster_near_master_new (const char *target, const char *gateway,
                                      MusterRpcCredentials *credentials, GError **error);

G_END_DECLS
