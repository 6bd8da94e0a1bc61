// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/store/storage.h"
#include "master/lease.h"

G_BEGIN_DECLS

/* A probe's temporary files in a directory: ".probe-KEY.index" and its data. */
#define MUSTER_PROBE_PREFIX  ".probe-"
#define MUSTER_PROBE_KEY_LEN 32 /* hexadecimal digits */

/* The file that the process of a directory's job holds: hold.c. */
#define MUSTER_HOLD_FILE ".muster.chief"

/* A checkpoint that a saver manages: one of its list, or one that is kept beside it. */
typedef struct {
  char *prefix;       /* (owned) */
  double time;        /* seconds since 1970; INFINITY: never deleted */
  gboolean is_beside; /* not in the list, but kept for its value or by a pin */
} MusterKept;

MusterKept *muster_kept_new (const char *prefix, double time);
void muster_kept_free (gpointer kept);

/* What a saver knows about the directories that it saves to: the claims, the checkpoints that it
 * manages, and those to be deleted. A member of its saver.
 *
 * An operation that takes a store uses that one: its store, bound by muster_storage_bound () like
 * the call that it serves. One that takes a deadline binds the store itself. */
typedef struct {
  /* constant after muster_checkpoint_directory_open () */
  MusterStorage *storage; /* (owned) */
  MusterClock *clock;     /* (owned) */
  char *base_name;        /* (owned) */
  char *latest_filename;  /* (owned) (nullable) */
  MusterKeepRules rules;  /* as given: 0 is the directory's own, for steps and the best */
  GBytes *meta_graph;     /* (owned) (nullable) written beside each checkpoint, as PREFIX.meta */
  gboolean absolute_paths;
  gboolean unlisted;
  gboolean adopt_unknown;
  char *id;              /* (owned) of a job without a lease */
  gboolean needs_record; /* a checkpoint that the side file doesn't tell of doesn't count here */
  GMutex publishing;     /* held while one checkpoint is published */
  GMutex lock;
  /* guarded by lock */
  GHashTable *swept;     /* (owned) (element-type utf8) directories */
  GHashTable *strangers; /* (owned) (element-type utf8) prefixes with this saver's names that aren't
                            its own: a save of that name sets them aside */
  GHashTable *left; /* (owned) (element-type utf8) prefixes that a save left that was cut off */
  char *run;        /* (owned) (nullable) the run that saves: see MusterRun */
  MusterGoodput goodput; /* for the side file; began_us 0: none */
  double goodput_time;
  gboolean is_job;    /* it claims without a lease, too */
  GHashTable *held;   /* (owned) (element-type utf8 MusterStorageLock) by directory: hold.c */
  gint64 least_epoch; /* a claim takes this one or a higher one */
  MusterLease *lease; /* (owned) (nullable) */
  GArray *claimed;    /* (owned) the directories claimed under that lease */
  double mark;        /* time of the last preserved checkpoint: seconds since 1970 */
  guint64 last_bytes; /* size of the last checkpoint */
  GPtrArray *kept;    /* (owned) (element-type MusterKept) oldest first */
  GPtrArray
      *pending_deletes; /* (owned) (element-type utf8) prefixes that couldn't be removed yet */
  GHashTable *causes;   /* (owned) (element-type utf8) why; each was reported */
} MusterCheckpointDirectory;

void muster_checkpoint_directory_init (MusterCheckpointDirectory *self);
void muster_checkpoint_directory_clear (MusterCheckpointDirectory *self);
/* Sets the store and clock; the options above must be set. */
void muster_checkpoint_directory_open (MusterCheckpointDirectory *self, MusterStorage *storage,
                                       MusterClock *clock);
/* Sets the lease for claiming directories: (nullable). */
void muster_checkpoint_directory_set_lease (MusterCheckpointDirectory *self, MusterLease *lease);
/* (transfer full) (nullable) */
MusterLease *muster_checkpoint_directory_lease (MusterCheckpointDirectory *self);
/* owned.c: TRUE for "model.ckpt" and "model.ckpt-STEP", by its base name. */
gboolean muster_checkpoint_directory_names (const MusterCheckpointDirectory *self,
                                            const char *prefix);
/* TRUE if the side file says that the saver with that base name (NULL: any) and state file
 * published it, and not that it is damaged. */
gboolean muster_checkpoint_is_published_by (const MusterSideCheckpoint *one, const char *base_name,
                                            const char *state_file);
/* TRUE for files that have the name of one of this saver's saves, which the side file doesn't
 * know. */
gboolean muster_checkpoint_directory_is_stranger (const MusterCheckpointDirectory *self,
                                                  const MusterCheckpointRecord *record,
                                                  const char *prefix);
/* The checkpoints of a directory without a state file that its side file doesn't know, newest
 * first (transfer full), and a text that names them (transfer full). */
char **muster_checkpoint_directory_nobodys (MusterStorage *storage, const char *directory);
char *muster_checkpoint_directory_describe_nobodys (const char *directory,
                                                    const char *const *prefixes);
/* Seconds since 1970. */
double muster_checkpoint_directory_now (MusterCheckpointDirectory *self);

/* A path in a form for the master, which has another working directory. */
char *muster_path_for_master (MusterStorage *storage, const char *path);
/* A prefix's directory has none at its end. */
char *muster_path_without_slash (const char *path);

/* In the error of a chief whose directory another one has claimed. It is in the text because the
 * status is only FAILED_PRECONDITION. */
#define MUSTER_TAKEN_OVER " was taken over by "

/* The record of a directory that is claimed, or still held, in order to write it: (transfer full).
 * NULL with an error, or without one if lock is NULL, since locking has failed with it. */
MusterCheckpointRecord *
muster_checkpoint_directory_read_claimed (MusterCheckpointDirectory *self, MusterLease *lease,
                                          const MusterDirectoryLock *lock, const char *directory,
                                          gboolean *changed, GError **error);
/* Takes back a claim that check_claim () has noted, where the record couldn't be written because
 * another writer was faster. */
void muster_checkpoint_directory_forget_claim (MusterCheckpointDirectory *self,
                                               const char *directory);

/* Changes a directory's record under its lock, after the claim was checked: change is called again
 * if another writer was faster. *changed says whether it must be written. */
typedef gboolean (*MusterRecordChange) (MusterCheckpointDirectory *self,
                                        MusterCheckpointRecord *record, gboolean *changed,
                                        gpointer data, GError **error);
gboolean muster_checkpoint_directory_change (MusterCheckpointDirectory *self, MusterLease *lease,
                                             const char *directory, MusterRecordChange change,
                                             gpointer data, gint64 deadline_us,
                                             GCancellable *cancellable, GError **error);

/* From now on it is a job's, which claims directories also without a lease. */
void muster_checkpoint_directory_begin_job (MusterCheckpointDirectory *self);
/* hold.c: takes the directory for this process and keeps it, against jobs of other processes that
 * live: FAILED_PRECONDITION names the one. A job's claim does it first. */
gboolean muster_checkpoint_directory_hold (MusterCheckpointDirectory *self, MusterStorage *storage,
                                           MusterLease *lease, const char *directory,
                                           GError **error);
gboolean muster_checkpoint_directory_is_held (MusterCheckpointDirectory *self,
                                              const char *directory);
/* Gives it back at a job's end. deadline_us is that of telling it in a store without locks; 0: it
 * isn't told there. */
void muster_checkpoint_directory_release (MusterCheckpointDirectory *self, const char *directory,
                                          gint64 deadline_us, GCancellable *cancellable);
gboolean muster_checkpoint_directory_claim (MusterCheckpointDirectory *self, MusterLease *lease,
                                            const char *directory, gint64 deadline_us,
                                            GCancellable *cancellable, GError **error);
/* How a chief, as a directory's record names it, is announced to hold that directory (transfer
 * full): MusterAnnouncement's holder. */
char *muster_checkpoint_directory_holding (MusterCheckpointDirectory *self, const char *chief,
                                           const char *directory);
/* Announces it for the chief with the lease, which has claimed the directory. If the master doesn't
 * hear of it, the next chief restores. */
void muster_checkpoint_directory_announce (MusterCheckpointDirectory *self, MusterLease *lease,
                                           const char *directory, gint64 deadline_us,
                                           GCancellable *cancellable);
/* The lease's epoch in the directory; 0 without one. */
gint64 muster_checkpoint_directory_claimed_epoch (MusterCheckpointDirectory *self,
                                                  const char *directory);

/* The epoch that a claim of the directory would take now; 0 without a lease, or if the side file
 * can't be read. */
gint64 muster_checkpoint_directory_next_epoch (MusterCheckpointDirectory *self,
                                               MusterStorage *storage, MusterLease *lease,
                                               const char *directory);
/* Makes later claims take this epoch at least, so that the directories of one run have the same. */
void muster_checkpoint_directory_raise_epoch (MusterCheckpointDirectory *self, gint64 epoch);

/* What the side file says of the run that writes to a directory. */
typedef struct {
  const char *run;         /* a UUID */
  const char *resumed_run; /* (nullable) the run that saved the checkpoint it starts from */
  gint64 resumed_step;     /* … and its step; -1: it was initialised */
  const char *durable_dir; /* (nullable) in a fast tier: the absolute path of the last tier */
} MusterRun;

/* run.c: claims the directory and writes the run to its side file; later checkpoints are recorded
 * as this run's. */
gboolean muster_checkpoint_directory_begin_run (MusterCheckpointDirectory *self, MusterLease *lease,
                                                const char *directory, const MusterRun *run,
                                                gint64 deadline_us, GCancellable *cancellable,
                                                GError **error);
/* … and that its job is over, at that step. */
gboolean muster_checkpoint_directory_end_run (MusterCheckpointDirectory *self, MusterLease *lease,
                                              const char *directory, gint64 step,
                                              gint64 deadline_us, GCancellable *cancellable,
                                              GError **error);
/* goodput.c: what is written to the side file with each later checkpoint, … */
void muster_checkpoint_directory_set_goodput (MusterCheckpointDirectory *self,
                                              const MusterGoodput *goodput);
void muster_checkpoint_directory_put_goodput (MusterCheckpointDirectory *self,
                                              MusterCheckpointRecord *record);
/* … and at once. */
gboolean muster_checkpoint_directory_write_goodput (MusterCheckpointDirectory *self,
                                                    MusterLease *lease, const char *directory,
                                                    gint64 deadline_us, GCancellable *cancellable,
                                                    GError **error);

/* The run that saved a checkpoint, by its directory's side file: (transfer full) (nullable) */
char *muster_checkpoint_run (MusterStorage *storage, const char *prefix);
/* When it was saved, seconds since 1970; 0: unknown. */
double muster_checkpoint_time (MusterStorage *storage, const char *prefix);
/* A checkpoint's values, by its directory's side file: (transfer full) (nullable) (element-type
 * MusterSideMetric) */
GArray *muster_checkpoint_metrics (MusterStorage *storage, const char *prefix);
/* The run that writes to a directory, by its side file: (transfer full) (nullable) */
char *muster_directory_run (MusterStorage *storage, const char *directory);

/* adopt.c: once for each directory, before the first save there, removes what savers that died left
 * in it, under its lock. */
void muster_checkpoint_directory_sweep_once (MusterCheckpointDirectory *self,
                                             MusterStorage *storage, const char *directory);
/* TRUE for the name of a file that is to be removed or published under another name. */
gboolean muster_checkpoint_directory_is_temporary (const char *name);
/* sweep_objects.c: the same in a store that can't rename. FALSE: it couldn't be read. */
gboolean muster_checkpoint_directory_sweep_objects (MusterCheckpointDirectory *self,
                                                    MusterStorage *storage, const char *directory);

/* retention_decide.c: the rules in force: what the options leave open is the directory's. *rules
 * must be zero. */
void muster_checkpoint_directory_rules (const MusterCheckpointDirectory *self,
                                        const MusterCheckpointRecord *record,
                                        MusterKeepRules *rules);
/* adopt.c: reads the list from a directory, as in a new process. */
typedef enum {
  MUSTER_ADOPT_FOR_JOB = 1 << 0,    /* fails if a job would start anew beside checkpoints with this
                                       saver's names that nothing names */
  MUSTER_ADOPT_FROM_FILES = 1 << 1, /* the files stand in for a state that can't be read */
} MusterAdoptFlags;
gboolean muster_checkpoint_directory_adopt (MusterCheckpointDirectory *self, MusterStorage *storage,
                                            const char *directory, MusterAdoptFlags flags,
                                            GError **error);
/* A checkpoint that was restored may be replaced by one of the same name. */
void muster_checkpoint_directory_take_in (MusterCheckpointDirectory *self, const char *prefix);

/* A checkpoint that is being published. */
typedef struct {
  char *directory;
  char *prefix;
  char *temporary;
  gint64 step;
  gboolean is_here;      /* written and synced by this process */
  gboolean is_unlisted;  /* no state file, no list */
  gboolean is_verified;  /* it was read back */
  gboolean is_copy;      /* of another tier's: not published if the run has a newer one here */
  const char *run;       /* (nullable) the run that saved it, if another than the directory's */
  const GArray *metrics; /* (nullable) (element-type MusterSideMetric) its values */
  /* set by muster_checkpoint_directory_publish () */
  gboolean is_published;
  gboolean is_unsure; /* it may be published: its files must stay */
  gboolean is_stale;  /* a copy that came too late */
  guint64 bytes;
  char *trouble; /* (owned) (nullable) a failure with the record; the save has succeeded */
} MusterNewCheckpoint;

/* retention.c: under the directory's lock, publishes temporary as the checkpoint prefix, makes it
 * the latest in the state file, the list and the record, and removes what leaves the list. After a
 * failure another call continues. */
gboolean muster_checkpoint_directory_publish (MusterCheckpointDirectory *self, MusterLease *lease,
                                              MusterNewCheckpoint *checkpoint, gint64 deadline_us,
                                              GCancellable *cancellable, GError **error);
/* Writes PREFIX.meta, if the directory has a meta graph. */
gboolean muster_checkpoint_directory_write_meta_graph (MusterCheckpointDirectory *self,
                                                       MusterStorage *storage, const char *prefix,
                                                       GError **error);
/* The list: see muster_saver_last_checkpoints () and the functions after it. */
char **muster_checkpoint_directory_list (MusterCheckpointDirectory *self);
void muster_checkpoint_directory_set_list (MusterCheckpointDirectory *self,
                                           const char *const *prefixes, const double *times);
void muster_checkpoint_directory_recover_list (MusterCheckpointDirectory *self,
                                               MusterStorage *storage, const char *const *prefixes);

G_END_DECLS
