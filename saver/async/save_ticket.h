// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterSaveTicket tracks one background save. Reference-counted; any thread. */

typedef struct _MusterSaveTicket MusterSaveTicket;

MusterSaveTicket *muster_save_ticket_ref (MusterSaveTicket *self);
void muster_save_ticket_unref (MusterSaveTicket *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSaveTicket, muster_save_ticket_unref)

const char *muster_save_ticket_path (MusterSaveTicket *self); /* the prefix; borrowed */
gint64 muster_save_ticket_step (MusterSaveTicket *self);      /* the number in the prefix, or -1 */
MusterSaveState muster_save_ticket_state (MusterSaveTicket *self);
/* Why it was skipped or replaced, or saved synchronously: (nullable) (transfer full). */
char *muster_save_ticket_why (MusterSaveTicket *self);
/* What became of it, once it is durable or was skipped for want of free space: (nullable), borrowed
 * from the ticket. NULL before, and where it failed or the policy skipped or replaced it. */
const MusterSaved *muster_save_ticket_saved (MusterSaveTicket *self);
/* The saveables that couldn't be copied: (nullable), NULL-terminated, borrowed. */
const char *const *muster_save_ticket_left_out (MusterSaveTicket *self);

/* Waits for a state from STAGED to DURABLE (INVALID_ARGUMENT for others). FALSE with the save's
 * error, each time it is called: UNAVAILABLE for a skipped save, CANCELLED for a replaced one. */
gboolean muster_save_ticket_wait (MusterSaveTicket *self, MusterSaveState state, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/* Called once when a save has ended: it is durable, has failed, or was skipped or replaced. */
typedef void (*MusterSaveFinished) (MusterSaveTicket *ticket, gpointer user_data);

/* Calls func when this save has ended, before sync returns: on the saver's thread, or on that of
 * the save that replaced it. If it has ended already, func is called at once. destroy (nullable) is
 * called after func, also if the save never ends. */
void muster_save_ticket_when_ended (MusterSaveTicket *self, MusterSaveFinished func,
                                    gpointer user_data, GDestroyNotify destroy);

/* Cancels the save unless it is durable. It ends with G_IO_ERROR_CANCELLED, which the saver doesn't
 * report as a failure. */
void muster_save_ticket_cancel (MusterSaveTicket *self);

G_END_DECLS
