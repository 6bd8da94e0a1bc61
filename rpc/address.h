// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Parses "HOST:PORT" or "[IPv6]:PORT". *host becomes the host without brackets (transfer full),
 * *port the port (0 to 65535). INVALID_ARGUMENT describes the mistake. */
gboolean muster_address_parse (const char *address, char **host, guint16 *port, GError **error);

/* TRUE for a loopback address: localhost, 127.0.0.0/8 or ::1. FALSE for any other name, without
 * looking it up, and for an invalid address. */
gboolean muster_address_is_loopback (const char *address);

/* Formats HOST:PORT, with brackets if the host needs them. */
char *muster_address_format (const char *host, guint16 port);

G_END_DECLS
