// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A fast tier: a checkpoint directory in front of the one that a job saves to, such as one in
 * memory or on a local disk. It has a state file, a side file and a retention of its own. It must
 * be shared by the chief and the master, as the other directory is. */
typedef struct {
  const char *directory;
  gint64 save_steps; /* the interval of its checkpoints: at most one of the two; */
  gint64 save_us;    /* neither: every 10 s */
  int max_to_keep;   /* 0: 2; MUSTER_KEEP_ALL: all */
} MusterTier;

/* A set of tiers: bit i is the i-th fast tier, the bit after the last of them the directory of the
 * save, the durable tier. */
typedef guint32 MusterTierSet;

#define MUSTER_MAX_FAST_TIERS 8
#define MUSTER_TIER_BIT(i)    ((MusterTierSet)1 << (i))

/* The end of a copy from a fast tier to a lower one. A plain struct; clear it. */
typedef struct {
  guint tier;   /* the one that has it now */
  char *prefix; /* (owned) there */
  gint64 step;
  guint64 bytes;
  gint64 took_us;
  char *why; /* (owned) (nullable) why it was skipped, for lack of space */
} MusterTierCopied;

/**
 * muster_tier_copied_clear: (skip)
 */
void muster_tier_copied_clear (MusterTierCopied *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTierCopied, muster_tier_copied_clear)

G_END_DECLS
