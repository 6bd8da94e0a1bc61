// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* A server that is about to stop drains: it creates no sessions and grants no claims, while its
 * chiefs save and the steps of existing sessions run. Any thread. */

/* until_us, on the system clock, is when it stops at the latest. The first call counts: FALSE if it
 * is draining already. */
gboolean muster_server_begin_drain (MusterServer *self, gint64 until_us);

/* The time left, at least 1; 0: it isn't draining. */
gint64 muster_server_drain_left_us (MusterServer *self);

/* UNAVAILABLE while it is draining: clients retry that until the next server is up. */
gboolean muster_server_admits (MusterServer *self, GError **error);

G_END_DECLS
