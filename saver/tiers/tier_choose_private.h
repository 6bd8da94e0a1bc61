// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/checkpoint_record_private.h"

G_BEGIN_DECLS

/* Which checkpoints of a job's tiers count, and in which order a restore tries them. */

/* What a directory holds. */
typedef struct {
  char *directory;     /* (owned) */
  GPtrArray *prefixes; /* (owned) (nullable) (element-type utf8) as a restore tries them */
  MusterCheckpointRecord *record; /* (owned) (nullable) NULL: damaged or unreadable */
  GError *error;                  /* (owned) (nullable) why there are no prefixes */
  char *warning;                  /* (owned) (nullable) what was wrong with the state file */
} MusterTierListing;

void muster_tier_listing_free (MusterTierListing *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterTierListing, muster_tier_listing_free)

typedef struct {
  MusterStorage *storage;
  const char *base_name;       /* (nullable) of the saver's checkpoints; NULL: any */
  const char *latest_filename; /* (nullable) */
  gboolean from_files; /* search the files if the state file is missing, unreadable or names only
                          missing checkpoints */
} MusterTierLook;

/* Lists one directory. A missing one is empty. */
MusterTierListing *muster_tier_list (const MusterTierLook *self, const char *directory);

/* Lists several directories at the same time: (transfer full) (element-type MusterTierListing). One
 * that doesn't answer within limit_us has an error: DEADLINE_EXCEEDED. */
GPtrArray *muster_tier_list_all (const MusterTierLook *self, const char *const *directories,
                                 gsize n, gint64 limit_us);

/* A checkpoint that doesn't count. */
typedef struct {
  char *prefix; /* (owned) */
  gint64 step;
  char *why; /* (owned) */
} MusterTierRefused;

/* The result of a choice. A plain struct; clear it. */
typedef struct {
  GPtrArray *prefixes; /* (owned) (element-type utf8) the newest first; of two with the same step
                          the one in the faster tier */
  GPtrArray *refused;  /* (owned) (element-type MusterTierRefused) */
} MusterTierChoice;

void muster_tier_choice_clear (MusterTierChoice *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTierChoice, muster_tier_choice_clear)

/* Chooses from listings, fastest first; the last is the durable tier. durable_path is its absolute
 * path. All of the durable tier's checkpoints count. One in a fast tier counts if it was saved by
 * the run that the durable tier's side file names, or is that run's past: saved by the run it
 * started from, up to that step. If the durable tier has neither a run nor a checkpoint (it is
 * away, or nothing was saved there yet), the fast tiers of that path decide by their own. */
void muster_tier_choose (const GPtrArray *listings, const char *durable_path,
                         MusterTierChoice *choice);

G_END_DECLS
