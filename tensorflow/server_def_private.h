// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/cluster/cluster_spec.h"

G_BEGIN_DECLS

/* The ServerDef of a server of its own, "/job:localhost/task:0", on a port of this machine.
 * (transfer full) */
GBytes *muster_server_def_alone (guint16 port);

/* That of a cluster's own task, which has an address. (transfer full) */
GBytes *muster_server_def_of_task (const MusterClusterSpec *cluster);

G_END_DECLS
