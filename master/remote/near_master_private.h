// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote/remote_master.h"

G_BEGIN_DECLS

/* A master that may have a gateway on this machine. Each call asks the
 * gateway's socket, and goes to the gateway if something listens there, else to the master itself;
 * once a gateway was there, always to it, since it may be about to start again. A session stays
 * where it was created. Any thread. */

/* Its target is far's, or the gateway's once one was there. gateway is "unix:/PATH". */
MusterMaster *muster_near_master_new (MusterMaster *far, const char *gateway, GError **error);

/* TRUE if the gateway's folder is this user's, and nobody else can put a socket there. */
gboolean muster_near_master_may_use (const char *gateway);

G_END_DECLS
