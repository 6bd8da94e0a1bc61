// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterCheckpointRecord is DIRECTORY/checkpoint.muster, the side file: what muster knows of a
 * directory's checkpoints and TensorFlow has no place for (TensorFlow drops a state file with a
 * field it doesn't know). Nothing in it is needed to restore. Plain structs; whoever changes it
 * holds the directory's lock (directory_lock.h) from the reading to the writing. */

#define MUSTER_RECORD_FILE "checkpoint.muster"

/* One file of a checkpoint, as it was published. */
typedef struct {
  char *name;   /* (owned) what stands behind the prefix: ".index", ".data-00000-of-00001" */
  guint64 size; /* bytes */
  gboolean has_crc;
  guint32 crc32c; /* of the whole file, not masked */
} MusterSideFile;

typedef struct {
  char *name;              /* (owned) base name of the prefix; never a path */
  gint64 step;             /* -1: unknown */
  gint64 epoch;            /* of the chief that saved it; 0: unknown */
  double time;             /* when it was saved, seconds since 1970; 0: unknown */
  guint64 bytes;           /* all its files; 0: unknown */
  gboolean verified;       /* read back and found whole since it was written */
  gboolean preserved;      /* kept for good: retention never takes it */
  gboolean pending_delete; /* has left the list, and couldn't be removed yet */
  guint deaths;            /* lives that began with it and ended without a word, running */
  char *bad;               /* (owned) (nullable) why it was set aside */
  char *state_file;        /* (owned) (nullable) the state file that lists it; NULL: "checkpoint" */
  GArray *files;           /* (owned) (element-type MusterSideFile) */
} MusterSideCheckpoint;

typedef struct {
  gint64 epoch; /* of the chief that may write here; a lower one may not. 0: nobody said */
  char *chief;  /* (owned) (nullable) who that is, for people */
  gboolean over;
  gint64 final_step;      /* where the job ended; -1: unknown */
  double last_preserved;  /* seconds since 1970; 0: never */
  char *life;             /* (owned) (nullable) base name of the checkpoint that a job was restored
                             from, which hasn't outlived it yet */
  GPtrArray *checkpoints; /* (owned) (element-type MusterSideCheckpoint) oldest first */
  GHashTable *by_name;    /* (owned) the same, by name: change both by the functions below */
} MusterCheckpointRecord;

MusterCheckpointRecord *muster_checkpoint_record_new (void);
void muster_checkpoint_record_free (MusterCheckpointRecord *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterCheckpointRecord, muster_checkpoint_record_free)

/* The entry of a checkpoint, by its prefix or base name; borrowed. find: NULL where there is none;
 * ensure: a new one, with nothing known. */
MusterSideCheckpoint *muster_checkpoint_record_find (const MusterCheckpointRecord *self,
                                                     const char *prefix);
MusterSideCheckpoint *muster_checkpoint_record_ensure (MusterCheckpointRecord *self,
                                                       const char *prefix);
void muster_checkpoint_record_forget (MusterCheckpointRecord *self, const char *prefix);
/* Gives an entry another name; what stood under that one is forgotten. */
void muster_checkpoint_record_rename (MusterCheckpointRecord *self, const char *from,
                                      const char *to);
/* crc32c (nullable) is that of the whole file. */
void muster_side_checkpoint_add_file (MusterSideCheckpoint *self, const char *name, guint64 size,
                                      const guint32 *crc32c);

/* Reads it. Absent is an empty one; damaged is DATA_LOSS; by a newer muster, UNIMPLEMENTED. */
MusterCheckpointRecord *muster_checkpoint_record_read (MusterStorage *storage,
                                                       const char *directory, GError **error);
/* The same for who will write it: a damaged one is renamed to checkpoint.muster.bad with a warning,
 * and an empty one stands in. */
MusterCheckpointRecord *muster_checkpoint_record_read_to_write (MusterStorage *storage,
                                                                const char *directory,
                                                                GError **error);
/* Publishes it whole. */
gboolean muster_checkpoint_record_write (MusterStorage *storage, const char *directory,
                                         const MusterCheckpointRecord *self, GError **error);

/* The file's text: a GKeyFile behind a first line with the checksum of what follows. */
MusterCheckpointRecord *muster_checkpoint_record_parse (const char *text, gsize size,
                                                        GError **error);
char *muster_checkpoint_record_print (const MusterCheckpointRecord *self);

G_END_DECLS
