// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Sockets (element-type GSocket, transfer full) bound to one port at every address of HOST:PORT,
 * not listening yet: a server with only some of them (localhost's [::1]) would be confused with
 * another that has the rest. Port 0 picks one that is free at all. Addresses that this machine
 * lacks are skipped if there is another. *host is the host (transfer full), *port the port. NULL
 * with UNAVAILABLE, "can't listen on HOST:PORT: address already in use; …", or INVALID_ARGUMENT.
 * Resolves the name. Any thread. */
GPtrArray *muster_listen_bind (const char *address, char **host, int *port, GError **error);

/* HOST:PORT with such a port (transfer full), for who binds it himself: another process may take it
 * until then. Port 0 stays for a host of one address. */
char *muster_listen_pick (const char *address, GError **error);

/* Sets UNAVAILABLE for an address that couldn't be listened on. why is (nullable). */
void muster_listen_fail (const char *address, const GError *why, GError **error);

G_END_DECLS
