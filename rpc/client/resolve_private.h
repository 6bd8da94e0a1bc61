// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* A host's addresses (element-type GInetAddress) (transfer full), or NULL with the reason (transfer
 * full). Returns by deadline_us, or soon after a cancellation, even if the name service hangs. */
GList *muster_resolve_host (const char *host, gint64 deadline_us, GCancellable *cancellable,
                            char **reason);

G_END_DECLS
