// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterStorage is a store for checkpoints: the operations that publishing and reading need
 * (docs/decisions/0009). muster has one implementation, local files; another needs its own
 * interface struct. Paths are the caller's, separated by '/'. Errors are G_IO_ERROR or G_FILE_ERROR
 * with the path in front. Any thread; a file being written belongs to one thread, one being read to
 * any. */

#define MUSTER_TYPE_STORAGE (muster_storage_get_type ())
G_DECLARE_INTERFACE (MusterStorage, muster_storage, MUSTER, STORAGE, GObject)

/* A file being written; a file being read; a held lock. */
typedef struct _MusterStorageFile MusterStorageFile;
typedef struct _MusterStorageInput MusterStorageInput;
typedef struct _MusterStorageLock MusterStorageLock;

typedef enum {
  MUSTER_LOCK_SHARED,    /* an existing file, which is being read */
  MUSTER_LOCK_EXCLUSIVE, /* no other lock; creates the file if necessary */
  MUSTER_LOCK_UNUSED,    /* like EXCLUSIVE, for an existing file */
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
                     GError **error); /* frees it even on failure */
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

/* Checks whether the store supports a path (nullable). self may be NULL: local files.
 * INVALID_ARGUMENT for NULL and "", and for a scheme such as "s3://bucket/run" that the store
 * doesn't support. what names the path in the error: "checkpoint directory". No I/O. Every function
 * with a directory or a checkpoint checks it first, and so does every operation below. */
gboolean muster_storage_check_path (MusterStorage *self, const char *what, const char *path,
                                    GError **error);

MusterStorageFile *muster_storage_create (MusterStorage *self, const char *path, GError **error);
/* Reserves size bytes in total before writing, so that a full store fails at once
 * (G_FILE_ERROR_NOSPC). Succeeds if the store can't reserve. The file's length doesn't change. */
gboolean muster_storage_reserve (MusterStorage *self, MusterStorageFile *file, guint64 size,
                                 GError **error);
gboolean muster_storage_append (MusterStorage *self, MusterStorageFile *file, const void *data,
                                gsize size, GError **error);
gboolean muster_storage_sync (MusterStorage *self, MusterStorageFile *file, GError **error);
gboolean muster_storage_close (MusterStorage *self, MusterStorageFile *file, GError **error);

/* Opens a file; *size is its current length. Files aren't mapped: if another process truncates one,
 * reads are short, and no signal is raised. */
MusterStorageInput *muster_storage_open (MusterStorage *self, const char *path, guint64 *size,
                                         GError **error);
/* Reads size bytes, or fewer at the end of the file. -1 with an error. */
gssize muster_storage_read_at (MusterStorage *self, MusterStorageInput *input, guint64 offset,
                               void *buffer, gsize size, GError **error);
/* input may be NULL. */
void muster_storage_close_input (MusterStorage *self, MusterStorageInput *input);
/* Reads a whole file. */
GBytes *muster_storage_read (MusterStorage *self, const char *path, GError **error);

gboolean muster_storage_rename (MusterStorage *self, const char *from, const char *to,
                                GError **error);
gboolean
muster_storage_remove (MusterStorage *self, const char *path,
                       GError **error); /* or an empty directory; a missing one is no error */
/* The names in a directory, sorted. A missing directory is G_FILE_ERROR_NOENT. */
char **muster_storage_list (MusterStorage *self, const char *directory, GError **error);
/* A file's size and modification time. */
gboolean muster_storage_stat (MusterStorage *self, const char *path, MusterStorageInfo *info,
                              GError **error);
/* Syncs the names in a directory; for a file that another program wrote, its bytes. */
gboolean muster_storage_sync_directory (MusterStorage *self, const char *directory, GError **error);
/* Creates a directory and its parents, durably. An existing one is no error. Does nothing in a
 * store without directories. */
gboolean muster_storage_make_directory (MusterStorage *self, const char *directory, GError **error);
/* The free bytes in a directory; G_MAXUINT64 if unknown. */
gboolean muster_storage_free_space (MusterStorage *self, const char *directory, guint64 *bytes,
                                    GError **error);

/* Locks a file against other processes and other locks of this process, without waiting:
 * G_IO_ERROR_BUSY if it is locked. The lock ends with its process. A store without locks always
 * succeeds; there only the chief's lease and epoch exclude other writers. */
MusterStorageLock *muster_storage_lock (MusterStorage *self, const char *path, MusterLockMode mode,
                                        GError **error);
/* lock may be NULL. */
void muster_storage_unlock (MusterStorage *self, MusterStorageLock *lock);

/* Writes a small file atomically: writes and syncs a temporary file, renames it, and syncs the
 * directory. A reader sees the old or the new content. */
gboolean muster_storage_publish (MusterStorage *self, const char *path, const void *data,
                                 gsize size, GError **error);

G_END_DECLS
