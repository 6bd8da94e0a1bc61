// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/cluster/cluster_spec.h"

G_BEGIN_DECLS

/* MusterAdmission: from which machines the runtime of a cluster's task takes connections. They are
 * those that the names in the cluster resolve to, which a thread looks up again every ten seconds,
 * each second while a name isn't known, and after a refused connection. A name that can't be looked
 * up keeps the addresses that it had. Any thread. */

typedef struct _MusterAdmission MusterAdmission;

/* Starts the thread. */
MusterAdmission *muster_admission_new (const MusterClusterSpec *cluster);
void muster_admission_free (MusterAdmission *self); /* accepts NULL */

/* The helper's socket (not owned; -1: none), which is told each change: "+ADDRESS" and "-ADDRESS",
 * a line each. A socket that is set begins with all. */
void muster_admission_set_socket (MusterAdmission *self, int socket);

/* Somebody was refused: looks the names up again, at most once a second. */
void muster_admission_look_again (MusterAdmission *self);

G_END_DECLS
