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

/**
 * muster_saver_n_fast_tiers:
 * @self: a saver
 *
 * The number of its fast tiers.
 *
 * Returns: their number
 */
guint muster_saver_n_fast_tiers (MusterSaver *self);

/**
 * muster_saver_fast_tier:
 * @self: a saver
 * @tier: below [method@Saver.n_fast_tiers]
 *
 * One of its fast tiers; 0 is the fastest.
 *
 * Returns: (transfer none) (nullable): the tier, valid as long as the saver; `NULL` if there is no
 *   such tier
 */
const MusterTier *muster_saver_fast_tier (MusterSaver *self, guint tier);

/**
 * muster_saver_tiers_in_use:
 * @self: a saver
 *
 * The tiers in use, with the durable one. A fast tier that is full or fails isn't used until the
 * next run begins ([method@Saver.begin_run]).
 *
 * Returns: the set of them
 */
MusterTierSet muster_saver_tiers_in_use (MusterSaver *self);

/**
 * muster_saver_check_tiers:
 * @self: a saver
 * @directory: the directory of a job
 * @error: return location for an error
 *
 * `INVALID_ARGUMENT` if the directory of a job is one of the saver's fast tiers, or no store
 * supports it. Symbolic links are followed.
 *
 * Returns: `TRUE` if the job can save there
 */
gboolean muster_saver_check_tiers (MusterSaver *self, const char *directory, GError **error);

/**
 * muster_saver_tier_of:
 * @self: a saver
 * @prefix: a checkpoint
 *
 * The tier in whose directory a checkpoint lies.
 *
 * Returns: its number; the number of fast tiers if in none of them
 */
guint muster_saver_tier_of (MusterSaver *self, const char *prefix);

/**
 * muster_saver_open_tiers:
 * @self: a saver
 * @session: a session of the master
 * @directory: the durable tier
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Uses all tiers again, and checks with a small file which of them the devices that save see; the
 * chief writes the others itself. Does nothing without fast tiers.
 *
 * Returns: `TRUE` if all can be used
 */
gboolean muster_saver_open_tiers (MusterSaver *self, MusterSession *session, const char *directory,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_saver_copy_down:
 * @self: a saver
 * @directory: the durable tier
 * @prefix: a checkpoint that was restored
 *
 * Starts copies of a restored checkpoint to the lower tiers that lack it.
 *
 * A copy is made by a thread of the saver, at low priority. It is read back and compared with its
 * checksums, then published like any checkpoint. Until then the original isn't removed. One copy
 * runs and one waits; a newer one replaces the waiting one.
 */
void muster_saver_copy_down (MusterSaver *self, const char *directory, const char *prefix);

/**
 * muster_saver_take_copied:
 * @self: a saver
 * @copied: set to the result; clear it
 *
 * Takes the result of a copy, if one has ended since. Never blocks.
 *
 * Returns: `TRUE` if @copied was set
 */
gboolean muster_saver_take_copied (MusterSaver *self, MusterTierCopied *copied);

/**
 * muster_saver_take_copy_failure:
 * @self: a saver
 * @step: (out) (optional): the copy's step
 *
 * Takes the error of a copy to the durable tier. Never blocks. Each error is reported once, here or
 * by [method@Saver.sync_copies].
 *
 * Returns: (transfer full) (nullable): the error; `NULL` if there is none
 */
GError *muster_saver_take_copy_failure (MusterSaver *self, gint64 *step);

/**
 * muster_saver_sync_copies:
 * @self: a saver
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops the waiting
 * @error: return location for an error
 *
 * Waits until no copy runs or waits. Returns the error that wasn't reported yet.
 *
 * Returns: `TRUE` if no copy has failed
 */
gboolean muster_saver_sync_copies (MusterSaver *self, gint64 deadline_us, GCancellable *cancellable,
                                   GError **error);

/**
 * muster_saver_cancel_copies:
 * @self: a saver
 *
 * Gives up the copies; they end soon, without an error.
 */
void muster_saver_cancel_copies (MusterSaver *self);

G_END_DECLS
