// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* MusterSaveTicket follows one save in the background. Counted; any thread. */

typedef struct _MusterSaveTicket MusterSaveTicket;

/* In this order; from FAILED on, how it ended otherwise. */
typedef enum {
  MUSTER_SAVE_REQUESTED,
  MUSTER_SAVE_STAGED,  /* what is saved has been set apart: training may go on */
  MUSTER_SAVE_WRITTEN, /* the files are there, under another name */
  MUSTER_SAVE_DURABLE, /* synced, and (but for write) "latest" */
  MUSTER_SAVE_FAILED,
  MUSTER_SAVE_SKIPPED,  /* the policy: the save before wasn't done */
  MUSTER_SAVE_REPLACED, /* the policy: a newer one took its place before it was written */
} MusterSaveState;

MusterSaveTicket *muster_save_ticket_ref (MusterSaveTicket *self);
void muster_save_ticket_unref (MusterSaveTicket *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSaveTicket, muster_save_ticket_unref)

const char *muster_save_ticket_path (MusterSaveTicket *self); /* the prefix; borrowed */
gint64 muster_save_ticket_step (MusterSaveTicket *self);      /* the number in it, or -1 */
MusterSaveState muster_save_ticket_state (MusterSaveTicket *self);
/* Why it was skipped, replaced, or saved at once in place of in the background: (nullable)
 * (transfer full). */
char *muster_save_ticket_why (MusterSaveTicket *self);
/* The saveables that couldn't be copied: (nullable), NULL-terminated, borrowed. */
const char *const *muster_save_ticket_left_out (MusterSaveTicket *self);

/* Waits until it has come to state, STAGED to DURABLE (INVALID_ARGUMENT for another). FALSE with
 * the save's own error, however often it is asked: one that was skipped is UNAVAILABLE, one that
 * was replaced CANCELLED. */
gboolean muster_save_ticket_wait (MusterSaveTicket *self, MusterSaveState state, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/* Gives the save up, unless it is durable; it ends with G_IO_ERROR_CANCELLED, and the saver doesn't
 * report that as a failure. */
void muster_save_ticket_cancel (MusterSaveTicket *self);

G_END_DECLS
