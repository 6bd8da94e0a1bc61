// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* What a waiter may do, of what the two ops say and what the model's chief announces. While a chief
 * prepares the model, or has died over it, the gate is closed and the model isn't ready, whatever
 * the ops say; the same once the job is over. Else the ops decide. */

/* TRUE where the chief's phase decides alone, and the ops don't. chief may be NULL. */
gboolean muster_chief_decides (const MusterAnnouncement *chief);

/* Fills *readiness with a copy of what the ops said, as far as chief lets it, and with chief
 * (transfer full) (nullable). */
void muster_readiness_apply_chief (MusterReadiness *readiness, const MusterReadiness *ops,
                                   gboolean keeps_announcements, MusterAnnouncement *chief);

/* Time has passed since the turn was made. */
void muster_readiness_add_age (MusterReadiness *readiness, gint64 passed_us);

/* What counts as a change of readiness, for the hub, whoever polls and all whom they tell:
 *
 *   - whether the gate is open, whether the model is ready, and why not, in the ops' words;
 *   - which variables are missing, by name and order, also where their number stays;
 *   - of the chief: that there is one, its phase, epoch, task, process and detail, whether it is
 *     alive and whether it has prepared the model; of its step only the final one;
 *   - how the graph differs from the chief's, and whether the master keeps announcements at all.
 *
 * What doesn't count: ages, how far a chief has trained and saved, and what the server's own run of
 * its ready op says (MusterAnnouncement's is_ready). Versions count changes: equal versions of one
 * keeper are equal in all of the above, and whoever is told compares those alone. */
gboolean muster_chief_changed (const MusterAnnouncement *before, const MusterAnnouncement *now);
gboolean muster_readiness_changed (const MusterReadiness *before, const MusterReadiness *now);

/* Keeps what is known now (transfer full: *now is empty after it) in the place of what was, with
 * the next version where that is a change. */
void muster_readiness_keep (MusterReadiness *self, MusterReadiness *now, gboolean is_change);

G_END_DECLS
