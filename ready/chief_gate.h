// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* Combines what the two ops report with the chief's announcement. While a chief prepares the model,
 * or after it died doing so, the gate is closed and the model isn't ready, whatever the ops report.
 * The same applies when the job is over. Otherwise the ops decide. */

/* TRUE if the chief's phase alone decides. chief may be NULL. */
gboolean muster_chief_decides (const MusterAnnouncement *chief);

/* Sets *readiness to a copy of the ops' result, limited by chief, and to chief (transfer full)
 * (nullable). */
void muster_readiness_apply_chief (MusterReadiness *readiness, const MusterReadiness *ops,
                                   gboolean keeps_announcements, MusterAnnouncement *chief);

/* Adds passed time to the ages. */
void muster_readiness_add_age (MusterReadiness *readiness, gint64 passed_us);

/* TRUE if a waiter must be notified of the difference. The chief's step and all ages are ignored.
 */
gboolean muster_chief_changed (const MusterAnnouncement *before, const MusterAnnouncement *now);
gboolean muster_readiness_changed (const MusterReadiness *before, const MusterReadiness *now);

/* Keeps what is known now (transfer full: *now is empty after it) in the place of what was, with
 * the next version where that is a change. */
void muster_readiness_keep (MusterReadiness *self, MusterReadiness *now, gboolean is_change);

G_END_DECLS
