// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/**
 * MusterSaveTicket:
 *
 * Tracks one background save of a [class@AsyncSaver]. Reference-counted; any thread.
 */
typedef struct _MusterSaveTicket MusterSaveTicket;

#define MUSTER_TYPE_SAVE_TICKET (muster_save_ticket_get_type ())
GType muster_save_ticket_get_type (void);

/**
 * muster_save_ticket_ref:
 * @self: a ticket
 *
 * Takes another reference.
 *
 * Returns: (transfer full): the same ticket
 */
MusterSaveTicket *muster_save_ticket_ref (MusterSaveTicket *self);

/**
 * muster_save_ticket_unref:
 * @self: (transfer full) (nullable): a ticket
 *
 * Drops a reference. The save goes on.
 */
void muster_save_ticket_unref (MusterSaveTicket *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSaveTicket, muster_save_ticket_unref)

/**
 * muster_save_ticket_path:
 * @self: a ticket
 *
 * The checkpoint that is being saved.
 *
 * Returns: (transfer none): its prefix
 */
const char *muster_save_ticket_path (MusterSaveTicket *self);

/**
 * muster_save_ticket_step:
 * @self: a ticket
 *
 * The number in the prefix.
 *
 * Returns: the number, or -1
 */
gint64 muster_save_ticket_step (MusterSaveTicket *self);

/**
 * muster_save_ticket_state:
 * @self: a ticket
 *
 * How far the save has come.
 *
 * Returns: its state
 */
MusterSaveState muster_save_ticket_state (MusterSaveTicket *self);

/**
 * muster_save_ticket_why:
 * @self: a ticket
 *
 * Why it was skipped or replaced, or saved synchronously. [method@SaveTicket.wait] returns the
 * error of a save that has failed.
 *
 * Returns: (transfer full) (nullable): the reason; `NULL` if there is none
 */
char *muster_save_ticket_why (MusterSaveTicket *self);

/**
 * muster_save_ticket_saved:
 * @self: a ticket
 *
 * What became of the save, once it is durable or was skipped for want of free space.
 *
 * Returns: (transfer none) (nullable): the result, valid as long as the ticket; `NULL` before, and
 *   where the save failed or the policy skipped or replaced it
 */
const MusterSaved *muster_save_ticket_saved (MusterSaveTicket *self);

/**
 * muster_save_ticket_left_out:
 * @self: a ticket
 *
 * The saveables that couldn't be copied.
 *
 * Returns: (transfer none) (nullable) (array zero-terminated=1): their names; `NULL`: none
 */
const char *const *muster_save_ticket_left_out (MusterSaveTicket *self);

/**
 * muster_save_ticket_wait:
 * @self: a ticket
 * @state: from %MUSTER_SAVE_STAGED to %MUSTER_SAVE_DURABLE (`INVALID_ARGUMENT` for others)
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops the waiting
 * @error: return location for an error
 *
 * Waits for a state. It fails with the save's error, each time it is called: `UNAVAILABLE` for a
 * skipped save, `CANCELLED` for a replaced one.
 *
 * Returns: `TRUE` if the save has reached the state
 */
gboolean muster_save_ticket_wait (MusterSaveTicket *self, MusterSaveState state, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/**
 * MusterSaveFinished:
 * @ticket: the save
 * @user_data: the caller's
 *
 * Called once when a save has ended: it is durable, has failed, or was skipped or replaced. For the
 * error of one that has failed, wait: that returns at once.
 *
 * ```c
 * muster_save_ticket_wait (ticket, MUSTER_SAVE_DURABLE, MUSTER_WAIT_FOREVER, NULL, &error);
 * ```
 */
typedef void (*MusterSaveFinished) (MusterSaveTicket *ticket, gpointer user_data);

/**
 * muster_save_ticket_when_ended:
 * @self: a ticket
 * @func: (scope notified) (closure user_data) (destroy destroy): called once
 * @user_data: for @func
 * @destroy: called with @user_data after @func, even if the save never ends
 *
 * Calls @func when this save has ended, before sync returns: on the saver's thread, or on that of
 * the save that replaced it. If it has ended already, @func is called at once.
 */
void muster_save_ticket_when_ended (MusterSaveTicket *self, MusterSaveFinished func,
                                    gpointer user_data, GDestroyNotify destroy);

/**
 * muster_save_ticket_cancel:
 * @self: a ticket
 *
 * Cancels the save unless it is durable. It ends with `G_IO_ERROR_CANCELLED`, which the saver
 * doesn't report as a failure.
 */
void muster_save_ticket_cancel (MusterSaveTicket *self);

G_END_DECLS
