// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/directory/checkpoint_directory_private.h"
#include "saver/directory/free_space_private.h"
#include "saver/tiers/tier.h"

G_BEGIN_DECLS

/* MusterTiers are a saver's fast tiers, fastest first. The durable tier is the directory that each
 * call names. A tier without space, or that fails, is dropped until the next run begins; training
 * goes on with the others. Any thread. */

typedef struct _MusterCopier MusterCopier;

typedef struct {
  MusterTier rule; /* its directory is owned */
  MusterCheckpointDirectory checkpoints;
  /* guarded by the tiers' lock */
  gboolean is_dropped;
  gboolean is_silent; /* a look at it didn't end in time: whoever touches it may be stuck */
} MusterFastTier;

typedef struct {
  MusterStorage *storage; /* (owned) */
  MusterClock *clock;     /* (owned) */
  guint n;
  MusterFastTier *fast;       /* (owned) (array length=n) */
  MusterCopier *copier;       /* (owned) */
  MusterFreeSpace free_space; /* of the fast tiers: constant */
  GMutex lock;
  /* guarded by lock */
  char *doubtful; /* (owned) (nullable) see muster_tiers_note_restored () */
} MusterTiers;

/* Checks the rules. The directories get the durable one's options, except for the number of
 * checkpoints. tiers (nullable) if n is 0. INVALID_ARGUMENT. */
MusterTiers *muster_tiers_new (const MusterTier *tiers, gsize n,
                               const MusterCheckpointDirectory *durable, GError **error);
/* TRUE if both name one directory; in local files also by symbolic links. */
gboolean muster_tiers_are_same (MusterStorage *storage, const char *a, const char *b);
/* self may be NULL. */
void muster_tiers_free (MusterTiers *self);

/* Those in use; the durable tier always is. */
MusterTierSet muster_tiers_alive (MusterTiers *self);
/* The fastest in use; n for the durable tier. */
guint muster_tiers_fastest (MusterTiers *self);
/* The tier in whose directory a prefix lies; n if in none of the fast ones. */
guint muster_tiers_of (MusterTiers *self, const char *prefix);
/* Stops using a fast tier, and logs what that means, once. durable is the last tier's path. */
void muster_tiers_drop (MusterTiers *self, guint tier, const char *why, const char *durable);
/* Uses all again that answer. */
void muster_tiers_revive (MusterTiers *self);
/* Notes whether a fast tier answers. One that doesn't isn't used. */
void muster_tiers_note_silent (MusterTiers *self, guint tier, gboolean is_silent);

/* Notes what was restored from a directory and its fast tiers. is_doubtful: the directory couldn't
 * be read, so it may hold a newer one. */
void muster_tiers_note_restored (MusterTiers *self, const char *prefix, gboolean is_doubtful);
/* TRUE if prefix was noted as doubtful, by the last restore. */
gboolean muster_tiers_is_doubtful (MusterTiers *self, const char *prefix);

/* TRUE if a failure to save in a tier is the tier's: it isn't a lost master, a lost lease or a
 * cancelled call. A master says RESOURCE_EXHAUSTED for a full disk or a used-up quota as for lack
 * of memory: then the next tier tells which it was. */
gboolean muster_tier_is_at_fault (const GError *failure);

/* --- tier_copy.c: copies checkpoints to lower tiers, on a thread of its own --- */

/* One checkpoint to copy. */
typedef struct {
  GObject *owner; /* (owned) keeps the rest */
  MusterTiers *tiers;
  MusterCheckpointDirectory *durable;
  const MusterFreeSpace *free_space; /* of the durable tier */
  char *durable_directory;           /* (owned) */
  char *prefix;                      /* (owned) */
  gint64 step;
  guint from;              /* the tier of prefix */
  MusterTierSet to;        /* the tiers that get a copy */
  char *run;               /* (owned) (nullable) the run that saved it */
  GArray *metrics;         /* (owned) (nullable) its values */
  MusterStorageLock *lock; /* (owned) (nullable) holds prefix; of the tiers' storage */
} MusterCopyRequest;

MusterCopier *muster_copier_new (MusterStorage *storage, MusterClock *clock);
/* A running copy is cancelled; the thread ends by itself. self may be NULL. */
void muster_copier_free (MusterCopier *self);
/* Takes request. One copy runs and one waits: a newer one replaces the waiting one, and goes to its
 * tiers as well. */
void muster_copier_queue (MusterCopier *self, MusterCopyRequest *request);
/* Waits until no copy runs or waits. Returns the error that wasn't reported yet. */
gboolean muster_copier_sync (MusterCopier *self, gint64 deadline_us, GCancellable *cancellable,
                             GError **error);
/* Cancels running and waiting copies; they report nothing. */
void muster_copier_cancel (MusterCopier *self);
/* Takes the result of a copy that has ended: TRUE if there is one. */
gboolean muster_copier_take (MusterCopier *self, MusterTierCopied *copied);
/* Takes the error that wasn't reported yet: (nullable). *step (nullable out) is the copy's. */
GError *muster_copier_take_failure (MusterCopier *self, gint64 *step);

/* tier_file.c: copies the files of a checkpoint to another prefix in the store, syncs them, reads
 * them back and checks every checksum. *is_source is set if the source is what failed. */
gboolean muster_tier_copy_files (MusterStorage *storage, const char *from, const char *to,
                                 gboolean *is_source, GCancellable *cancellable, GError **error);
/* The size of a checkpoint's files. */
gboolean muster_tier_measure (MusterStorage *storage, const char *prefix, guint64 *bytes,
                              GError **error);

G_END_DECLS
