// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* The fast tiers of a saver (MusterSaverOptions.fast), for a program that decides itself when to
 * save. muster's checkpoint hook does all of this.
 *
 * A copy to a lower tier is made by a thread of the saver, at low priority. It is read back and
 * compared with its checksums, then published like any checkpoint. Until then the original isn't
 * removed. One copy runs and one waits; a newer one replaces the waiting one. */

guint muster_saver_n_fast_tiers (MusterSaver *self);
/* Borrowed; NULL if there is no such tier. */
const MusterTier *muster_saver_fast_tier (MusterSaver *self, guint tier);
/* Those in use, and the durable one. A fast tier that is full or fails isn't used until the next
 * run begins (muster_saver_begin_run ()). */
MusterTierSet muster_saver_tiers_in_use (MusterSaver *self);

/* INVALID_ARGUMENT if the directory of a job is one of its fast tiers, or no store supports it.
 * Symbolic links are followed. */
gboolean muster_saver_check_tiers (MusterSaver *self, const char *directory, GError **error);
/* The tier in whose directory a checkpoint lies: the number of fast tiers if in none of them. */
guint muster_saver_tier_of (MusterSaver *self, const char *prefix);

/* Uses all tiers again, and checks that the devices that save see each of them
 * (muster_saver_probe ()). FAILED_PRECONDITION if one isn't shared with the master. Does nothing
 * without fast tiers. */
gboolean muster_saver_open_tiers (MusterSaver *self, MusterSession *session, const char *directory,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);

/* Starts copies of a restored checkpoint to the lower tiers that lack it. directory is the durable
 * tier. */
void muster_saver_copy_down (MusterSaver *self, const char *directory, const char *prefix);

/* Takes the result of a copy: TRUE if one has ended since. Never blocks. */
gboolean muster_saver_take_copied (MusterSaver *self, MusterTierCopied *copied);
/* Takes the error of a copy to the durable tier: (nullable) (transfer full). *step (nullable out)
 * is the copy's. Never blocks. Each error is reported once, here or by muster_saver_sync_copies ().
 */
GError *muster_saver_take_copy_failure (MusterSaver *self, gint64 *step);
/* Waits until no copy runs or waits. Returns the error that wasn't reported yet. */
gboolean muster_saver_sync_copies (MusterSaver *self, gint64 deadline_us, GCancellable *cancellable,
                                   GError **error);
/* Gives up the copies; they end soon, without an error. */
void muster_saver_cancel_copies (MusterSaver *self);

G_END_DECLS
