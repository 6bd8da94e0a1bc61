// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"

G_BEGIN_DECLS

/* Fails with UNIMPLEMENTED, or as a session does, unless two sessions with this ConfigProto share a
 * variable on device; address is the master's, for the error. Nothing is left there. */
gboolean muster_remote_probe_shared (MusterMaster *master, const char *address, const char *device,
                                     GBytes *config, gint64 deadline_us, GCancellable *cancellable,
                                     GError **error);

G_END_DECLS
