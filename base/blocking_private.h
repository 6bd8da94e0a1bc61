// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A thread that serves requests may run work that blocks: a dequeue that waits for an enqueue, a
 * call to another server. Code that is about to block calls muster_about_to_block (); the hook that
 * the thread's pool has set can then start another thread. Without a hook the call does nothing.
 * Both functions apply to the calling thread. */

typedef void (*MusterBlockingHook) (gpointer user_data);

/* hook NULL removes the hook. */
void muster_blocking_set_hook (MusterBlockingHook hook, gpointer user_data);

/* Call before a wait of unknown length. */
void muster_about_to_block (void);

G_END_DECLS
