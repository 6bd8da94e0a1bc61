// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/wait_private.h"
#include "saver/async/save_ticket.h"

G_BEGIN_DECLS

MusterSaveTicket *muster_save_ticket_new (const char *path, gint64 step);
GCancellable *muster_save_ticket_cancellable (MusterSaveTicket *self);       /* borrowed */
void muster_save_ticket_set_left_out (MusterSaveTicket *self, char **names); /* (transfer full) */
/* Before anybody else has the ticket: its checkpoint is called otherwise. */
void muster_save_ticket_rename (MusterSaveTicket *self, const char *path, gint64 step);
/* Before the state that ends it; saved is taken, and zeroed. */
void muster_save_ticket_take_saved (MusterSaveTicket *self, MusterSaved *saved);
void muster_save_ticket_set_why (MusterSaveTicket *self, const char *why);
void muster_save_ticket_advance (MusterSaveTicket *self, MusterSaveState state);
/* Ends the save in a final state; error is copied. */
void muster_save_ticket_end (MusterSaveTicket *self, MusterSaveState state, const GError *error);

/* Calls the functions of a ticket that has ended; without a lock that they may need. */
void muster_save_ticket_notify (MusterSaveTicket *self);

/* As muster_wait_for (), with an error. DEADLINE_EXCEEDED names `what`. */
gboolean muster_wait_until_done (GMutex *lock, GCond *changed, MusterIsDone is_done, gpointer data,
                                 const char *what, gint64 deadline_us, GCancellable *cancellable,
                                 GError **error);

G_END_DECLS
