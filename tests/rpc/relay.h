// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A relay on loopback before a server of this process, as a router or a load balancer. Any
 * thread. */
typedef struct _Relay Relay;

/* to is HOST:PORT. */
Relay *relay_new (const char *to);
void relay_free (Relay *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Relay, relay_free)
/* "127.0.0.1:PORT" */
const char *relay_address (Relay *self);

/* Forgets its connections without a word to either side: it swallows what comes on them. */
void relay_forget (Relay *self);
/* Holds back what comes, until it goes on. New connections are accepted. */
void relay_pause (Relay *self);
void relay_go_on (Relay *self);
/* Waits until so many connections were accepted; FALSE after half a minute. */
gboolean relay_wait (Relay *self, guint n_accepted);

G_END_DECLS
