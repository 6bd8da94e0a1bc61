// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"
#include "master/lease.h"

G_BEGIN_DECLS

/* MusterBoard is where chiefs announce what they prepare: for each model who its chief is, in which
 * phase, under which epoch, and whether its lease is held (decision 16). The rules of claiming
 * stand here and nowhere else:
 *
 *   - a living chief keeps its model against all who don't bring a higher epoch;
 *   - who brings an epoch below the highest ever seen is refused, whether anybody lives or not;
 *   - epoch 0 asks for the one after the highest;
 *   - a job that is over isn't claimed again, unless by take_over.
 *
 * It reads time only from its clock and starts no thread: a lease that has run out counts as lost
 * at the next look, or when muster_board_expire () is called. Any thread. */

typedef struct _MusterBoard MusterBoard;

/* Called after each change of a model, without the board's lock held, on the thread that changed
 * it. */
typedef void (*MusterBoardChanged) (const char *model, gpointer user_data);

MusterBoard *muster_board_new (MusterClock *clock, gint64 lease_us, MusterBoardChanged changed,
                               gpointer user_data);
void muster_board_free (MusterBoard *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBoard, muster_board_free)

gint64 muster_board_lease_us (MusterBoard *self);

/* Claims; returns the epoch, or 0 with FAILED_PRECONDITION or OUT_OF_RANGE. graph (nullable) is the
 * chief's. *before (nullable out) as in muster_session_claim (). */
gint64 muster_board_claim (MusterBoard *self, const MusterClaim *claim, const char *who,
                           MusterGraph *graph, MusterAnnouncement **before, GError **error);

/* Takes an announcement in and renews the lease; FAILED_PRECONDITION names the chief that has it
 * now. */
gboolean muster_board_announce (MusterBoard *self, const MusterAnnouncement *announcement,
                                GError **error);

/* The chief of that epoch is gone: its process has ended, or it let go. */
void muster_board_leave (MusterBoard *self, const char *model, gint64 epoch);

/* The model's ready op says yes or no now. */
void muster_board_set_ready (MusterBoard *self, const char *model, gboolean is_ready);

/* All variables are gone (a reset of the master): nothing is prepared any more. */
void muster_board_reset (MusterBoard *self);

/* What is announced of a model; NULL: no chief has ever registered. (transfer full) */
MusterAnnouncement *muster_board_look (MusterBoard *self, const char *model);
/* The graph of its last chief, (transfer full) (nullable). */
MusterGraph *muster_board_graph (MusterBoard *self, const char *model);
/* (transfer full) (element-type MusterAnnouncement) */
GPtrArray *muster_board_all (MusterBoard *self);

/* Takes note of leases that have run out, and returns when the next may: MUSTER_WAIT_FOREVER where
 * none is held. */
gint64 muster_board_expire (MusterBoard *self);

G_END_DECLS
