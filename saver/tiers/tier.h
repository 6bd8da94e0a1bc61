// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/**
 * MusterTier:
 * @directory: the tier's directory
 * @save_steps: the interval of its checkpoints in steps; at most one of the two intervals
 * @save_us: the interval in microseconds; with neither: every 10 s
 * @max_to_keep: the number of checkpoints to keep; 0: 2; %MUSTER_KEEP_ALL: all
 *
 * A fast tier: a checkpoint directory in front of the one that a job saves to, such as one in
 * memory or on a local disk. It has a state file, a side file and a retention of its own. It must
 * be shared by the chief and the master, as the other directory is.
 */
typedef struct {
  const char *directory;
  gint64 save_steps;
  gint64 save_us;
  int max_to_keep;
} MusterTier;

#define MUSTER_TYPE_TIER (muster_tier_get_type ())
GType muster_tier_get_type (void);

/**
 * muster_tier_new:
 * @directory: the tier's directory
 *
 * A tier with the defaults.
 *
 * Returns: (transfer full): the tier
 */
MusterTier *muster_tier_new (const char *directory);

/**
 * MusterTierSet:
 *
 * A set of tiers: bit i is the i-th fast tier, the bit after the last of them the directory of the
 * save, the durable tier.
 */
typedef guint32 MusterTierSet;

/**
 * MUSTER_MAX_FAST_TIERS:
 *
 * The largest number of fast tiers.
 */
#define MUSTER_MAX_FAST_TIERS 8

/**
 * MUSTER_TIER_BIT:
 * @i: a tier's number
 *
 * The set of one tier.
 *
 * Returns: a [alias@TierSet]
 */
#define MUSTER_TIER_BIT(i) ((MusterTierSet)1 << (i))

/**
 * MusterTierCopied:
 * @tier: the tier that has the checkpoint now
 * @prefix: its prefix there
 * @step: its step
 * @bytes: of its files
 * @took_us: how long the copy took, in microseconds
 * @why: (nullable): why it was skipped, for lack of space
 *
 * The end of a copy from a fast tier to a lower one. The struct owns its texts.
 */
typedef struct {
  guint tier;
  char *prefix;
  gint64 step;
  guint64 bytes;
  gint64 took_us;
  char *why;
} MusterTierCopied;

#define MUSTER_TYPE_TIER_COPIED (muster_tier_copied_get_type ())
GType muster_tier_copied_get_type (void);

/**
 * muster_tier_copied_clear:
 * @self: a result
 *
 * Frees what the fields point to.
 */
void muster_tier_copied_clear (MusterTierCopied *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTierCopied, muster_tier_copied_clear)

G_END_DECLS
