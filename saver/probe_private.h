// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/probe.h"

G_BEGIN_DECLS

/* Before a save on a master in another process: muster_saver_probe (), unless this session has been
 * found to see the directory. */
gboolean muster_saver_probe_once (MusterSaver *self, MusterSession *session, const char *directory,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);

G_END_DECLS
