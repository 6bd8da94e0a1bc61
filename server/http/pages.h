// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/announcement.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* What a server says of itself over HTTP (server/http/http_service.h), as text; (transfer full).
 * Any thread. */

/* FALSE once it is being stopped. */
gboolean muster_pages_serves (MusterServer *server);

/* Why a model isn't ready, static; NULL: it is. */
const char *muster_pages_why_not_ready (const MusterAnnouncement *chief);

/* A line for each announced model that isn't ready, and why; *is_ready: there is none. */
char *muster_pages_ready (MusterServer *server, gboolean *is_ready);

/* Numbers for Prometheus: OpenMetrics, or the text format from before it, which names the family of
 * a counter otherwise. */
char *muster_pages_metrics (MusterServer *server, gboolean open_metrics);

G_END_DECLS
