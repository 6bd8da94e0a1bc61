// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterCancelLink combines two cancellables: its own is cancelled when either of the two is. It
 * lives on the stack for the length of a wait and belongs to one thread; any thread may cancel the
 * two. */

typedef struct {
  GCancellable *cancellable; /* (owned) cancelled when one of the two is */
  GCancellable *of[2];       /* (owned) (nullable) */
  gulong ids[2];
} MusterCancelLink;

/* Both are (nullable). */
MusterCancelLink muster_cancel_link (GCancellable *a, GCancellable *b);
void muster_cancel_link_clear (MusterCancelLink *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCancelLink, muster_cancel_link_clear)

G_END_DECLS
