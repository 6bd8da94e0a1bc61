// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/announcement.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* The pages of server/http/http_service.h, as text; (transfer full). Any thread. */

/* FALSE once the server is stopping. */
gboolean muster_pages_serves (MusterServer *server);

/* Why a model isn't ready, static; NULL: it is. */
const char *muster_pages_why_not_ready (const MusterAnnouncement *chief);

/* A line for each announced model that isn't ready, with the reason; *is_ready is TRUE if there is
 * none. */
char *muster_pages_ready (MusterServer *server, gboolean *is_ready);

/* Metrics for Prometheus: OpenMetrics, or the older text format, in which counter families have
 * other names. */
char *muster_pages_metrics (MusterServer *server, gboolean open_metrics);

G_END_DECLS
