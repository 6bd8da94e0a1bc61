// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/server.h"

G_BEGIN_DECLS

/* Where `muster serve` listens: the addresses of --listen, and --allow-user. */

/* Listens on each address; waits for one that is in use, at most so long. Adds a line for each to
 * text: "serving grpc://HOST:PORT". */
gboolean muster_serve_listen (MusterServer *server, char **addresses, gboolean has_tls,
                              gint64 patience_us, GString *text, GError **error);

/* Lets SIGINT and SIGTERM come to this thread, or not. They end the process at once. */
void muster_serve_set_signals_end (gboolean do_end);

/* A line for an address: "WHAT SCHEME://HOST:PORT" with the port in use, or "WHAT unix:/PATH". */
void muster_serve_append_port (GString *text, const char *what, const char *scheme,
                               const char *address, int port);

/* What it checks before it binds them. */
gboolean muster_serve_may_listen (const MusterServerOptions *server, char **addresses,
                                  GError **error);

/* TRUE if a client of that address would reach one of the addresses. */
gboolean muster_serve_is_own (char **addresses, const char *address);

/* TRUE if other machines reach one of the addresses. */
gboolean muster_serve_is_exposed (char **addresses);

/* The users (element-type guint32) (transfer full) that --allow-user names (nullable).
 * INVALID_ARGUMENT for one that doesn't exist, and without a Unix socket. */
GArray *muster_serve_users (char **names, char **addresses, GError **error);

G_END_DECLS
