// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/goodput.h"
#include "checkpoint/state/keep_rules_private.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterCheckpointRecord is DIRECTORY/checkpoint.muster, the side file: what muster records about a
 * directory's checkpoints. TensorFlow's state file has no place for it (TensorFlow rejects unknown
 * fields). A restore doesn't need it. Plain structs. To change it, hold the directory's lock
 * (directory_lock.h) from reading to writing; in a store without locks, read and change it again
 * where another writer was faster (muster_directory_try_again ()). */

#define MUSTER_RECORD_FILE "checkpoint.muster"

/* A file of a checkpoint, as it was published. */
typedef struct {
  char *name;   /* (owned) the part after the prefix: ".index", ".data-00000-of-00001" */
  guint64 size; /* bytes */
  gboolean has_crc;
  guint32 crc32c; /* of the whole file, not masked */
} MusterSideFile;

/* Of one checkpoint; and state files with rules. */
#define MUSTER_MOST_METRICS 64

/* A value of a checkpoint, from its training or from an evaluator. */
typedef struct {
  char *name; /* (owned) as muster_keep_metric_name () has it */
  double value;
} MusterSideMetric;

typedef struct {
  char *name;              /* (owned) base name of the prefix; never a path */
  gint64 step;             /* -1: unknown */
  gint64 epoch;            /* of the chief that saved it; 0: unknown */
  char *run;               /* (owned) (nullable) the run that saved it; NULL: unknown */
  double time;             /* when it was saved, seconds since 1970; 0: unknown */
  guint64 bytes;           /* all its files; 0: unknown */
  gboolean verified;       /* read back and found whole after it was written */
  gboolean preserved;      /* never removed by retention, since a rule kept it for good */
  char *preserved_for;     /* (owned) (nullable) that rule, "every 6 h" */
  gboolean copied;         /* by muster_checkpoint_copy (), not saved here */
  gboolean pinned;         /* never removed by retention or prune, by a person's wish */
  char *pinned_for;        /* (owned) (nullable) its reason */
  GArray *holds;           /* (owned) (element-type gdouble) retention keeps it until then for an
                              evaluator, each for another; seconds since 1970 */
  gboolean pending_delete; /* removed from the list; its files couldn't be removed yet */
  guint deaths;            /* consecutive runs that started from it and died */
  char *bad;               /* (owned) (nullable) why it was quarantined */
  char *state_file;        /* (owned) (nullable) the state file that lists it; NULL: "checkpoint" */
  GArray *metrics;         /* (owned) (element-type MusterSideMetric) one of each name */
  GArray *files; /* (owned) (element-type MusterSideFile) none: it wasn't published by muster */
} MusterSideCheckpoint;

/* How the last saver kept the checkpoints of a state file. */
typedef struct {
  char *state_file; /* (owned) (nullable) NULL: "checkpoint" */
  MusterKeepRules rules;
} MusterSideRules;

typedef struct {
  gint64 epoch; /* of the chief that may write here; a lower one is refused. 0: none set */
  char *chief;  /* (owned) (nullable) that chief's name, for messages */
  gboolean over;
  gint64 final_step;     /* the job's last step; -1: unknown */
  double last_preserved; /* seconds since 1970; 0: never */
  char *life; /* (owned) (nullable) base name of the checkpoint that the current run was restored
                 from, until the run saves */
  char *run;  /* (owned) (nullable) a UUID of the run that writes here, new with each chief that
                 takes the model; NULL: none has begun */
  char *resumed_run;     /* (owned) (nullable) the run that saved the checkpoint it started from */
  gint64 resumed_step;   /* … and that checkpoint's step; -1: it was initialised */
  char *durable_dir;     /* (owned) (nullable) in a fast tier: the absolute path of the last tier */
  MusterGoodput goodput; /* of the job that writes here; without its age */
  double goodput_time;   /* when that was measured, seconds since 1970 */
  char *version; /* (owned) (nullable) of the file, which it replaces: see storage.h. Not written */
  GPtrArray *checkpoints; /* (owned) (element-type MusterSideCheckpoint) oldest first */
  GPtrArray *rules;       /* (owned) (element-type MusterSideRules) one for each state file */
  GHashTable *by_name;    /* (owned) the same by name; change both with the functions below */
} MusterCheckpointRecord;

MusterCheckpointRecord *muster_checkpoint_record_new (void);
void muster_checkpoint_record_free (MusterCheckpointRecord *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterCheckpointRecord, muster_checkpoint_record_free)

/* The entry of a checkpoint, by its prefix or base name; borrowed. find returns NULL if there is
 * none; ensure adds an empty one. */
MusterSideCheckpoint *muster_checkpoint_record_find (const MusterCheckpointRecord *self,
                                                     const char *prefix);
MusterSideCheckpoint *muster_checkpoint_record_ensure (MusterCheckpointRecord *self,
                                                       const char *prefix);
void muster_checkpoint_record_forget (MusterCheckpointRecord *self, const char *prefix);
/* Renames an entry. An entry that had the new name is removed. */
void muster_checkpoint_record_rename (MusterCheckpointRecord *self, const char *from,
                                      const char *to);
/* crc32c (nullable) is the sum of the whole file. */
void muster_side_checkpoint_add_file (MusterSideCheckpoint *self, const char *name, guint64 size,
                                      const guint32 *crc32c);

/* Describes the files of a published checkpoint, and their size in all. */
gboolean muster_side_checkpoint_describe (MusterSideCheckpoint *self, MusterStorage *storage,
                                          const char *prefix, gboolean has_meta_graph,
                                          GError **error);

/* Adds a value, or replaces the one of that name. */
void muster_side_checkpoint_set_metric (MusterSideCheckpoint *self, const char *name, double value);
/* NULL if it has none; borrowed. A metric's value may be NAN. */
MusterSideMetric *muster_side_checkpoint_find_metric (const MusterSideCheckpoint *self,
                                                      const char *name);
/* NAN if it has none; self and name are (nullable). */
double muster_side_checkpoint_metric (const MusterSideCheckpoint *self, const char *name);

/* The time of a clock as the record's times are: seconds since 1970. */
double muster_checkpoint_record_now (MusterClock *clock);
/* TRUE if an evaluator holds it; self is (nullable). */
gboolean muster_side_checkpoint_is_held (const MusterSideCheckpoint *self, double now);

/* TRUE for a copy (checkpoint/edit) that no known run of the directory's job saved. one is
 * (nullable). */
gboolean muster_side_checkpoint_is_foreign (const MusterSideCheckpoint *one,
                                            const MusterCheckpointRecord *record);
/* TRUE if it is known to be of a branch that the job has left: another run's, beyond the step that
 * the current run started from. one is (nullable). */
gboolean muster_side_checkpoint_is_left (const MusterSideCheckpoint *one,
                                         const MusterCheckpointRecord *record);

/* The rules of a state file (nullable), borrowed; NULL: none are known. set copies them. */
const MusterKeepRules *muster_checkpoint_record_rules (const MusterCheckpointRecord *self,
                                                       const char *state_file);
void muster_checkpoint_record_set_rules (MusterCheckpointRecord *self, const char *state_file,
                                         const MusterKeepRules *rules);

/* Reads the side file. A missing one is empty; a damaged one is DATA_LOSS, one of a newer muster
 * UNIMPLEMENTED. */
MusterCheckpointRecord *muster_checkpoint_record_read (MusterStorage *storage,
                                                       const char *directory, GError **error);
/* The same, in order to write it: a damaged one is kept as checkpoint.muster.bad, with a warning,
 * and replaced by what is whole in it, with all checkpoints pinned. */
MusterCheckpointRecord *muster_checkpoint_record_read_to_write (MusterStorage *storage,
                                                                const char *directory,
                                                                GError **error);
/* Publishes the file atomically. ABORTED if the store has versions, and another writer was faster.
 */
gboolean muster_checkpoint_record_write (MusterStorage *storage, const char *directory,
                                         MusterCheckpointRecord *self, GError **error);

/* The file's text: a line with the checksum of the rest, then a GKeyFile whose groups have sums. */
MusterCheckpointRecord *muster_checkpoint_record_parse (const char *text, gsize size,
                                                        GError **error);
char *muster_checkpoint_record_print (const MusterCheckpointRecord *self);
/* What is whole in a damaged text. */
MusterCheckpointRecord *muster_checkpoint_record_salvage (const char *text, gsize size);

G_END_DECLS
