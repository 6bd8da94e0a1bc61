// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Parses "HOST:PORT" or "[IPv6]:PORT". *host becomes the host without brackets (transfer full),
 * *port the port (0 to 65535). INVALID_ARGUMENT describes the mistake. */
gboolean muster_address_parse (const char *address, char **host, guint16 *port, GError **error);

/* The path of "unix:/PATH", a Unix socket; NULL for any other address. Borrowed. */
const char *muster_address_unix_path (const char *address);

/* The same address as gRPC reads it: a URI, with the path's special characters escaped. NULL for
 * any other address. */
char *muster_address_unix_uri (const char *address);

/* INVALID_ARGUMENT unless it is HOST:PORT or unix:/PATH. */
gboolean muster_address_check (const char *address, GError **error);

/* The address in a master's target: what follows "grpc://" or "grpcs://", or all of "unix:/PATH".
 * NULL for any other. Borrowed. *tls (nullable) is set. */
const char *muster_address_in_target (const char *target, gboolean *tls);

/* TRUE for a loopback address: localhost, 127.0.0.0/8, ::1 or a Unix socket. FALSE for any other
 * name, without looking it up, and for an invalid address. */
gboolean muster_address_is_loopback (const char *address);

/* Formats HOST:PORT, with brackets if the host needs them. */
char *muster_address_format (const char *host, guint16 port);

G_END_DECLS
