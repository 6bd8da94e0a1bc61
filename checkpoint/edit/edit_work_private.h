// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/edit/edit.h"
#include "checkpoint/format/bundle_index_private.h"

G_BEGIN_DECLS

/* What every edit shares: where, until when, how far it is. Memory doesn't grow with a tensor's
 * size: bytes pass in blocks of MUSTER_EDIT_BLOCK. One thread. */

#define MUSTER_EDIT_BLOCK ((gsize)1 << 20)

typedef struct {
  MusterStorage *storage; /* (owned) its operations end at the deadline */
  MusterStorage *plain;   /* (owned) the same without a deadline, to clear up in */
  MusterClock *clock;     /* (owned) */
  gint64 began_us;
  gint64 deadline_us;
  GCancellable *cancellable;     /* (not owned) (nullable) */
  MusterBundleProgress progress; /* (nullable) */
  gpointer user_data;
  guint64 done, total; /* bytes, for progress */
} MusterEditWork;

/* Where the paths lead. */
MusterStorage *muster_edit_storage (const MusterEditOptions *options);

/* options is (nullable). FALSE for a deadline that is none. */
gboolean muster_edit_work_begin (MusterEditWork *self, const MusterEditOptions *options,
                                 MusterBundleProgress progress, gpointer user_data,
                                 gint64 deadline_us, GCancellable *cancellable, GError **error);
void muster_edit_work_clear (MusterEditWork *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterEditWork, muster_edit_work_clear)

/* So many more bytes are done. FALSE if it was cancelled, or its time is over. */
gboolean muster_edit_work_advance (MusterEditWork *self, guint64 bytes, GError **error);

/* Reads a checkpoint as a whole and checks all its sums: the part of the progress that is left. */
gboolean muster_edit_work_verify (MusterEditWork *self, const char *prefix, GError **error);

/* Keeps retention from removing a checkpoint while it is read: (transfer full) (nullable), for the
 * plain store; NULL in a read-only directory. */
MusterStorageLock *muster_edit_lock_source (MusterEditWork *self, const char *prefix);

/* TRUE if what was written is read back: in a file system always, since nothing else tells of a
 * disk that lies; an object store checks what it is given. */
gboolean muster_edit_reads_back (const MusterEditWork *self, const MusterEditOptions *options,
                                 const char *path);

/* --- one file that is written --- */

typedef struct {
  MusterEditWork *work;    /* (not owned) */
  char *path;              /* (owned) */
  MusterStorageFile *file; /* (owned) (nullable) while it is open */
} MusterEditFile;

/* Begins a new file of that size (0: unknown). Cleared before it has
 * ended, it is removed. */
gboolean muster_edit_file_begin (MusterEditFile *self, MusterEditWork *work, const char *path,
                                 guint64 size, GError **error);
gboolean muster_edit_file_append (MusterEditFile *self, const void *data, gsize size,
                                  GError **error);
/* Durably. */
gboolean muster_edit_file_end (MusterEditFile *self, GError **error);
void muster_edit_file_clear (MusterEditFile *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterEditFile, muster_edit_file_clear)

/* A file of these bytes. */
gboolean muster_edit_write (MusterEditWork *work, const char *path, GBytes *bytes, GError **error);

/* --- the checkpoint that is made --- */

/* Its files lie under a hidden prefix until they are published. That name is made from the target's
 * and from what the work is (id): the same work finds it again. */
typedef struct {
  MusterEditWork *work;     /* (not owned) */
  const char *prefix;       /* (not owned) the target */
  char *directory;          /* (owned) of the target */
  char *temporary;          /* (owned) the hidden prefix */
  MusterStorageLock *alive; /* (owned) (nullable) */
  gboolean has_begun, is_published;
  gboolean is_unsure; /* the store's answer was lost: it may be published, and its files stay */
  gboolean keeps;     /* whole files stay after a failure, but not if it was cancelled */
} MusterEditTarget;

/* ALREADY_EXISTS unless replaces; FAILED_PRECONDITION while another process does the same. Creates
 * the directory. keeps: files of an interrupted work are kept, too. */
gboolean muster_edit_target_begin (MusterEditTarget *self, MusterEditWork *work, const char *prefix,
                                   guint32 id, gboolean replaces, gboolean keeps, GError **error);
/* Makes the hidden checkpoint, which is complete and synced, the target. Under the directory's
 * lock. */
gboolean muster_edit_target_publish (MusterEditTarget *self, gboolean replaces, GError **error);
/* What isn't published is removed. */
void muster_edit_target_clear (MusterEditTarget *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterEditTarget, muster_edit_target_clear)

/* Takes the target's directory's lock, publishes and reads back if that is due: for what no state
 * file names. */
gboolean muster_edit_target_finish (MusterEditTarget *self, const MusterEditOptions *options,
                                    GError **error);

/* The end of a report. */
void muster_edit_report (const MusterEditWork *work, const MusterEditReport *made,
                         MusterEditReport *report);

G_END_DECLS
