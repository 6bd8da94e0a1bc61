// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* HOST:PORT with a port that is free at every address of the host (transfer full): a server with
 * only some of them (localhost's [::1]) would be confused with another that has the rest. Port 0
 * picks one for a host of several addresses, and stays for a host of one. Addresses that this
 * machine lacks are skipped if there is another. NULL with UNAVAILABLE, "can't listen on HOST:PORT:
 * address already in use; …", or INVALID_ARGUMENT. Resolves the name. Any thread. */
char *muster_listen_pick (const char *address, GError **error);

/* Sets UNAVAILABLE for an address that couldn't be listened on. why is (nullable). */
void muster_listen_fail (const char *address, const GError *why, GError **error);

G_END_DECLS
