// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A thread that serves others may run work that blocks: a dequeue that waits for an enqueue, a call
 * to another server. Who is about to block says so, and the one who lent the thread has another
 * take its place. Saying so costs nothing where nobody listens. Each is about the calling thread.
 */

typedef void (*MusterBlockingHook) (gpointer user_data);

/* NULL: nobody listens any more. */
void muster_blocking_set_hook (MusterBlockingHook hook, gpointer user_data);

/* Call before a wait of unknown length. */
void muster_about_to_block (void);

G_END_DECLS
