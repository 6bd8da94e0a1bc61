// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Takes "HOST:PORT" or "[IPv6]:PORT" apart: the host without brackets goes to *host (transfer
 * full), the port (0 to 65535) to *port. INVALID_ARGUMENT says what is wrong with it. */
gboolean muster_address_parse (const char *address, char **host, guint16 *port, GError **error);

/* TRUE for an address of this machine alone: localhost, 127.0.0.0/8 or ::1. Nothing is looked up:
 * any other name is FALSE, and so is what is no address. */
gboolean muster_address_is_loopback (const char *address);

/* The two put together again, with brackets where the host needs them. */
char *muster_address_format (const char *host, guint16 port);

G_END_DECLS
