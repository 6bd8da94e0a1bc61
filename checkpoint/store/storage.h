// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterStorage is where checkpoints live: the few verbs that publishing and reading one need
 * (docs/decisions/0009). Local files are the store that ships; another is one file with another
 * interface struct. Paths are the caller's, '/'-separated. Errors are G_IO_ERROR or G_FILE_ERROR
 * with the path in front. Any thread; a file that is written is one thread's, one that is read
 * everyone's.
 */

#define MUSTER_TYPE_STORAGE (muster_storage_get_type ())
G_DECLARE_INTERFACE (MusterStorage, muster_storage, MUSTER, STORAGE, GObject)

/* A file being written; a file being read; a lock that is held. */
typedef struct _MusterStorageFile MusterStorageFile;
typedef struct _MusterStorageInput MusterStorageInput;
typedef struct _MusterStorageLock MusterStorageLock;

typedef enum {
  MUSTER_LOCK_SHARED,    /* of a file that is there: it is being read */
  MUSTER_LOCK_EXCLUSIVE, /* nobody else holds it; the file is made where it isn't there */
  MUSTER_LOCK_UNUSED,    /* as EXCLUSIVE, of a file that is there */
} MusterLockMode;

typedef struct {
  guint64 size;    /* bytes */
  gint64 mtime_us; /* since 1970 */
} MusterStorageInfo;

struct _MusterStorageInterface {
  GTypeInterface parent;
  /* writing */
  MusterStorageFile *(*create) (MusterStorage *self, const char *path, GError **error);
  gboolean (*reserve) (MusterStorage *self, MusterStorageFile *file, guint64 size,
                       GError **error); /* optional */
  gboolean (*append) (MusterStorage *self, MusterStorageFile *file, const void *data, gsize size,
                      GError **error);
  gboolean (*sync) (MusterStorage *self, MusterStorageFile *file, GError **error);
  gboolean (*close) (MusterStorage *self, MusterStorageFile *file,
                     GError **error); /* frees it in any case */
  /* reading */
  MusterStorageInput *(*open) (MusterStorage *self, const char *path, guint64 *size,
                               GError **error);
  gssize (*read_at) (MusterStorage *self, MusterStorageInput *input, guint64 offset, void *buffer,
                     gsize size, GError **error);
  void (*close_input) (MusterStorage *self, MusterStorageInput *input);
  /* names */
  gboolean (*rename) (MusterStorage *self, const char *from, const char *to, GError **error);
  gboolean (*remove) (MusterStorage *self, const char *path, GError **error);
  char **(*list) (MusterStorage *self, const char *directory, GError **error);
  gboolean (*stat) (MusterStorage *self, const char *path, MusterStorageInfo *info, GError **error);
  gboolean (*sync_directory) (MusterStorage *self, const char *directory, GError **error);
  gboolean (*make_directory) (MusterStorage *self, const char *directory,
                              GError **error); /* optional */
  gboolean (*free_space) (MusterStorage *self, const char *directory, guint64 *bytes,
                          GError **error); /* optional */
  MusterStorageLock *(*lock) (MusterStorage *self, const char *path, MusterLockMode mode,
                              GError **error); /* optional */
  void (*unlock) (MusterStorage *self, MusterStorageLock *lock);
  gboolean (*takes) (MusterStorage *self, const char *path); /* optional: any path */
};

MusterStorage *muster_local_storage (void); /* (transfer none) */

/* Whether the store (self may be NULL: local files) takes a path (nullable): INVALID_ARGUMENT for
 * NULL and "", and for one with a scheme, "s3://bucket/run", that the store isn't for. what names
 * it in the error, as "checkpoint directory". Touches nothing. Every verb that is given a directory
 * or a checkpoint asks this before it begins; each verb below refuses such a path as well. */
gboolean muster_storage_check_path (MusterStorage *self, const char *what, const char *path,
                                    GError **error);

MusterStorageFile *muster_storage_create (MusterStorage *self, const char *path, GError **error);
/* Takes room for size bytes in all, before any is written: a full store says so now
 * (G_FILE_ERROR_NOSPC). Success where the store can't. The file's length stays what was written. */
gboolean muster_storage_reserve (MusterStorage *self, MusterStorageFile *file, guint64 size,
                                 GError **error);
gboolean muster_storage_append (MusterStorage *self, MusterStorageFile *file, const void *data,
                                gsize size, GError **error);
gboolean muster_storage_sync (MusterStorage *self, MusterStorageFile *file, GError **error);
gboolean muster_storage_close (MusterStorage *self, MusterStorageFile *file, GError **error);

/* Opens a file; *size is how long it is now. Another's truncation shows as a short read, never as a
 * signal: nothing is mapped. */
MusterStorageInput *muster_storage_open (MusterStorage *self, const char *path, guint64 *size,
                                         GError **error);
/* Reads size bytes; fewer only where the file ends before. -1 with an error. */
gssize muster_storage_read_at (MusterStorage *self, MusterStorageInput *input, guint64 offset,
                               void *buffer, gsize size, GError **error);
/* input may be NULL. */
void muster_storage_close_input (MusterStorage *self, MusterStorageInput *input);
/* A whole file. */
GBytes *muster_storage_read (MusterStorage *self, const char *path, GError **error);

gboolean muster_storage_rename (MusterStorage *self, const char *from, const char *to,
                                GError **error);
gboolean muster_storage_remove (MusterStorage *self, const char *path,
                                GError **error); /* or an empty directory; absent is no error */
/* The names in a directory, sorted; an absent one is G_FILE_ERROR_NOENT. */
char **muster_storage_list (MusterStorage *self, const char *directory, GError **error);
/* How large a file is, and when it was last written. */
gboolean muster_storage_stat (MusterStorage *self, const char *path, MusterStorageInfo *info,
                              GError **error);
/* Makes the names in a directory durable; given a file that another program wrote, its bytes. */
gboolean muster_storage_sync_directory (MusterStorage *self, const char *directory, GError **error);
/* Makes a directory and those above it, durably; one that is there is fine. A store without
 * directories has nothing to do. */
gboolean muster_storage_make_directory (MusterStorage *self, const char *directory, GError **error);
/* How many bytes may still be written there; G_MAXUINT64 where nobody knows. */
gboolean muster_storage_free_space (MusterStorage *self, const char *directory, guint64 *bytes,
                                    GError **error);

/* Locks a file against other processes, and against other locks of this one; never waits:
 * G_IO_ERROR_BUSY where another holds it. The lock ends with its process. A store without locks
 * always grants them: there, two writers are held apart by the chief's lease and epoch alone. */
MusterStorageLock *muster_storage_lock (MusterStorage *self, const char *path, MusterLockMode mode,
                                        GError **error);
/* lock may be NULL. */
void muster_storage_unlock (MusterStorage *self, MusterStorageLock *lock);

/* Writes a small file whole: beside it, synced, renamed, its directory synced. A reader sees the
 * old or the new one. */
gboolean muster_storage_publish (MusterStorage *self, const char *path, const void *data,
                                 gsize size, GError **error);

G_END_DECLS
