// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Whether HOST:PORT can be listened on: at each address that the host's name has, since a server
 * that gets only some of them (localhost's [::1] alone) would be taken for the one that has the
 * others. An address that this machine lacks is passed over, as long as there is another. FALSE
 * with UNAVAILABLE, "can't listen on HOST:PORT: address already in use; …", or INVALID_ARGUMENT.
 * Looks the name up. Any thread may call. */
gboolean muster_listen_check (const char *address, GError **error);

/* Sets UNAVAILABLE for an address that couldn't be listened on; why is (nullable). */
void muster_listen_fail (const char *address, const GError *why, GError **error);

G_END_DECLS
