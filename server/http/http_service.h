// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/types.h"

G_BEGIN_DECLS

/* MusterHttpService answers GET and HEAD of /healthz, /readyz and /metrics for operators: plain
 * HTTP on its own thread, one request for each connection, few connections at once, each for a
 * short time (http_guests.h). The pages contain no secrets, but names of models and tasks. One
 * thread, apart from its own. */

typedef struct _MusterHttpService MusterHttpService;

/* server is borrowed; names (nullable) are the server's own (http_hosts.h). */
MusterHttpService *muster_http_service_new (MusterServer *server, const char *const *names);
void muster_http_service_free (MusterHttpService *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterHttpService, muster_http_service_free)

/* Before start. Returns the port, or 0 with UNAVAILABLE or INVALID_ARGUMENT. */
int muster_http_service_listen (MusterHttpService *self, const char *address, GError **error);
void muster_http_service_start (MusterHttpService *self);
/* Closes all connections. Idempotent. */
void muster_http_service_stop (MusterHttpService *self);

G_END_DECLS
