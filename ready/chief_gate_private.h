// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* Combines what the two ops report with the chief's announcement. While a chief prepares the model,
 * or after it died doing so, the gate is closed and the model isn't ready, whatever the ops report.
 * The same applies when the job is over. Otherwise the ops decide. */

/* TRUE if the chief's phase alone decides. chief may be NULL. */
gboolean muster_chief_decides (const MusterAnnouncement *chief);

/* FALSE of a chief that trains, and has announced that it lost its session, and why. */
gboolean muster_chief_has_session (const MusterAnnouncement *chief);

/* Sets *readiness to a copy of the ops' result, limited by chief, and to chief (transfer full)
 * (nullable). */
void muster_readiness_apply_chief (MusterReadiness *readiness, const MusterReadiness *ops,
                                   gboolean keeps_announcements, MusterAnnouncement *chief);

/* A job with fewer tasks than it needs stands still, although its model is whole: it isn't ready.
 */
void muster_readiness_hold_for_tasks (MusterReadiness *readiness, guint n_tasks, guint min_tasks);

/* Adds passed time to the ages. */
void muster_readiness_add_age (MusterReadiness *readiness, gint64 passed_us);

/* What counts as a change of readiness, in the hub, in a waiter that polls, and for everything that
 * is notified by them. These count:
 *
 *   - whether the gate is open, whether the model is ready, and the ops' reasons why not;
 *   - the names and the order of the missing variables, even if their number is the same;
 *   - whether there is a chief, its phase, epoch, task, process and detail, whether it is alive and
 *     whether it has prepared the model; its step only at the end of the job;
 *   - the difference between the graphs, and whether the master keeps announcements;
 *   - how many tasks a job that waits for tasks has and needs.
 *
 * These don't: ages, the chief's step and durable step, and its is_ready, which is the result of
 * the server's own run of the ready op. A version counts the changes: two states with the same
 * version, of the same hub key or waiter, agree in everything that counts. Code that is notified
 * compares versions, not texts. */
gboolean muster_chief_changed (const MusterAnnouncement *before, const MusterAnnouncement *now);
gboolean muster_readiness_changed (const MusterReadiness *before, const MusterReadiness *now);

/* Replaces *self by *now (transfer full; *now is empty afterwards). The version is the next one if
 * is_change, else the same. */
void muster_readiness_keep (MusterReadiness *self, MusterReadiness *now, gboolean is_change);

G_END_DECLS
