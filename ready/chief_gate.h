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

/* TRUE if a waiter who has heard the one should hear the other. How far a chief has trained is no
 * news, nor is how old anything is. */
gboolean muster_chief_changed (const MusterAnnouncement *before, const MusterAnnouncement *now);
gboolean muster_readiness_changed (const MusterReadiness *before, const MusterReadiness *now);

G_END_DECLS
