// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/check_access.h"

G_BEGIN_DECLS

/* Calls muster_saver_check_access () before a save, unless this session is known to see the
 * directory or the master is in this process. */
gboolean muster_saver_probe_once (MusterSaver *self, MusterSession *session, const char *directory,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);

G_END_DECLS
