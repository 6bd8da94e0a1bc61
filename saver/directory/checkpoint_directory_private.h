// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "checkpoint/state/checkpoint_record.h"
#include "checkpoint/store/storage.h"
#include "master/lease.h"
#include "saver/builder/keep.h"

G_BEGIN_DECLS

/* What a probe puts into a directory, for as long as it takes: ".probe-KEY.index" and its data. */
#define MUSTER_PROBE_PREFIX  ".probe-"
#define MUSTER_PROBE_KEY_LEN 32 /* hexadecimal digits */

typedef struct {
  char *prefix; /* (owned) */
  double time;  /* seconds since 1970; INFINITY: it is never deleted */
} MusterKept;

MusterKept *muster_kept_new (const char *prefix, double time);
void muster_kept_free (gpointer kept);

/* What of a directory is this chief's. */
typedef struct {
  char *directory; /* (owned) */
  gint64 epoch;    /* in its side file */
} MusterClaimed;

void muster_claimed_clear (gpointer claimed);

/* What a saver keeps of the directories that it saves in: whose they are, which checkpoints are
 * listed, and which are to go. It lies in its saver. */
typedef struct {
  /* constant, from muster_checkpoint_directory_open () on */
  MusterStorage *storage; /* (owned) */
  MusterClock *clock;     /* (owned) */
  char *base_name;        /* (owned) */
  char *latest_filename;  /* (owned) (nullable) */
  int max_to_keep;        /* 0: all */
  double keep_seconds;    /* 0: none is kept for good */
  MusterKeepRule keep_rule;
  GBytes *meta_graph; /* (owned) (nullable) written beside each checkpoint, as PREFIX.meta */
  gboolean absolute_paths;
  gboolean unlisted;
  gboolean adopt_unknown;
  GHashTable *swept; /* (owned) (element-type utf8) directories; whoever has the saver's turn's */
  GMutex lock;
  /* guarded by lock */
  MusterLease *lease; /* (owned) (nullable) */
  GArray *claimed;    /* (owned) (element-type MusterClaimed) under that lease */
  double mark;        /* what is kept for good goes by it: seconds since 1970 */
  guint64 last_bytes; /* the last checkpoint's */
  GPtrArray *kept;    /* (owned) (element-type MusterKept) oldest first */
  GPtrArray
      *pending_deletes; /* (owned) (element-type utf8) prefixes that could not be removed yet */
} MusterCheckpointDirectory;

void muster_checkpoint_directory_init (MusterCheckpointDirectory *self);
void muster_checkpoint_directory_clear (MusterCheckpointDirectory *self);
/* Begins: the rules stand, and nothing has been kept yet. */
void muster_checkpoint_directory_open (MusterCheckpointDirectory *self, MusterStorage *storage,
                                       MusterClock *clock);
/* What it claims directories with: (nullable). */
void muster_checkpoint_directory_set_lease (MusterCheckpointDirectory *self, MusterLease *lease);
/* (transfer full) (nullable) */
MusterLease *muster_checkpoint_directory_lease (MusterCheckpointDirectory *self);
/* Seconds since 1970. */
double muster_checkpoint_directory_now (MusterCheckpointDirectory *self);

/* A path as the master is to be told of it: another process has another working directory. */
char *muster_path_for_master (MusterStorage *storage, const char *path);

/* Takes the directory for the lease's chief, or finds that it has it still; under the
 * directory's lock, with its record. *changed: the record is to be written. No lease: TRUE. */
gboolean muster_checkpoint_directory_check_claim (MusterCheckpointDirectory *self,
                                                  MusterLease *lease, const char *directory,
                                                  MusterCheckpointRecord *record, gboolean *changed,
                                                  GError **error);
gboolean muster_checkpoint_directory_claim (MusterCheckpointDirectory *self, MusterLease *lease,
                                            const char *directory, gint64 deadline_us,
                                            GCancellable *cancellable, GError **error);
/* The lease's epoch in the directory; 0 without one. */
gint64 muster_checkpoint_directory_claimed_epoch (MusterCheckpointDirectory *self,
                                                  const char *directory);

/* adopt.c: in the turn, before the saver's saves there, takes away what dead savers left in a
 * directory, under its lock, until it has been done once. */
void muster_checkpoint_directory_sweep_once (MusterCheckpointDirectory *self,
                                             const char *directory);
/* What tells that the files of a save are a living saver's (transfer full); NULL: it couldn't be
 * had, and they are young until a day has passed. */
MusterStorageLock *muster_checkpoint_directory_mark_alive (MusterCheckpointDirectory *self,
                                                           const char *temporary);
void muster_checkpoint_directory_unmark_alive (MusterCheckpointDirectory *self,
                                               const char *temporary, MusterStorageLock *lock);

/* adopt.c: takes the list from a directory, as a new process finds it. */
gboolean muster_checkpoint_directory_adopt (MusterCheckpointDirectory *self, const char *directory,
                                            GError **error);

/* A checkpoint on its way to its name. */
typedef struct {
  char *directory;
  char *prefix;
  char *temporary;
  gint64 step;
  gboolean is_here;     /* the writer is this process's, which has synced what it wrote */
  gboolean is_unlisted; /* no state file, no list */
  /* filled by muster_checkpoint_directory_publish () */
  gboolean is_published;
  guint64 bytes;
  char *trouble; /* (owned) (nullable) what went wrong with the record: the save is well */
} MusterNewCheckpoint;

/* retention.c: under the directory's lock, turns temporary into the checkpoint prefix, makes it the
 * latest, in the state file, the list and the record, and removes what leaves the list. After a
 * failure another call goes on where this one has come to. */
gboolean muster_checkpoint_directory_publish (MusterCheckpointDirectory *self, MusterLease *lease,
                                              MusterNewCheckpoint *checkpoint, gint64 deadline_us,
                                              GCancellable *cancellable, GError **error);
/* PREFIX.meta, where the directory has a meta graph. */
gboolean muster_checkpoint_directory_write_meta_graph (MusterCheckpointDirectory *self,
                                                       const char *prefix, GError **error);
/* The list: muster_saver_last_checkpoints () and its like. */
char **muster_checkpoint_directory_list (MusterCheckpointDirectory *self);
void muster_checkpoint_directory_set_list (MusterCheckpointDirectory *self,
                                           const char *const *prefixes, const double *times);
void muster_checkpoint_directory_recover_list (MusterCheckpointDirectory *self,
                                               const char *const *prefixes);

G_END_DECLS
