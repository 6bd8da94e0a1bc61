// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * MusterStorageFile:
 *
 * A file being written, of the store that created it. It belongs to one thread, and to
 * [method@Storage.close], which frees it.
 */
typedef struct _MusterStorageFile MusterStorageFile;

/**
 * MusterStorageInput:
 *
 * A file being read, of the store that opened it. Any thread may read it, until
 * [method@Storage.close_input] frees it.
 */
typedef struct _MusterStorageInput MusterStorageInput;

/**
 * MusterStorageLock:
 *
 * A held lock, of the store that took it. [method@Storage.unlock] frees it.
 */
typedef struct _MusterStorageLock MusterStorageLock;

/**
 * MusterLockMode:
 * @MUSTER_LOCK_SHARED: of an existing file, which is being read
 * @MUSTER_LOCK_EXCLUSIVE: no other lock; creates the file if necessary
 * @MUSTER_LOCK_UNUSED: like %MUSTER_LOCK_EXCLUSIVE, for an existing file
 * @MUSTER_LOCK_PROCESS: against other processes only; a child that the process forks doesn't hold
 *   it; creates the file if necessary. `G_IO_ERROR_NOT_SUPPORTED` where there are no such locks
 * @MUSTER_LOCK_PROCESS_SHARED: the same, beside others that are shared
 *
 * How [method@Storage.lock] locks a file.
 */
typedef enum {
  MUSTER_LOCK_SHARED,
  MUSTER_LOCK_EXCLUSIVE,
  MUSTER_LOCK_UNUSED,
  MUSTER_LOCK_PROCESS,
  MUSTER_LOCK_PROCESS_SHARED,
} MusterLockMode;

/**
 * MusterStorageInfo:
 * @size: the file's length in bytes
 * @mtime_us: when it was last changed, in microseconds since 1970
 *
 * What [method@Storage.stat] says of a file.
 */
typedef struct {
  guint64 size;
  gint64 mtime_us;
} MusterStorageInfo;

/**
 * MusterStorage:
 *
 * A store for checkpoints: the operations that publishing and reading need (docs/decisions/0009).
 *
 * There are two kinds. In a file system ([func@local_storage]) a file is there while it is written,
 * and becomes another's replacement by [method@Storage.rename]. In an object store
 * ([method@Storage.can_rename] is `FALSE`) a file appears under its own name, complete, when it is
 * closed. A store of one's own needs its own interface struct, or a subclass of
 * [class@ForwardingStorage] that overrides some operations.
 * Paths are the caller's, separated by '/'. Errors are `G_IO_ERROR` or `G_FILE_ERROR` with the path
 * in front. A store that can't be reached for now is `G_IO_ERROR_HOST_UNREACHABLE`: operations that
 * fail with `UNAVAILABLE`, which from a master says that a session is lost, are reported so.
 * Any thread; a file being written belongs to one thread, one being read to any.
 *
 * Every operation first checks its path by [method@Storage.check_path].
 */
#define MUSTER_TYPE_STORAGE (muster_storage_get_type ())
G_DECLARE_INTERFACE (MusterStorage, muster_storage, MUSTER, STORAGE, GObject)

/**
 * MusterStorageInterface:
 * @parent: the parent interface
 * @create: see [method@Storage.create]
 * @reserve: (nullable): optional; see [method@Storage.reserve]
 * @append: see [method@Storage.append]
 * @sync: see [method@Storage.sync]
 * @close: see [method@Storage.close]: frees the file even on failure
 * @open: see [method@Storage.open]
 * @read_at: see [method@Storage.read_at]
 * @close_input: see [method@Storage.close_input]
 * @rename: see [method@Storage.rename]
 * @remove: see [method@Storage.remove]
 * @list: see [method@Storage.list]
 * @stat: see [method@Storage.stat]
 * @sync_directory: see [method@Storage.sync_directory]
 * @make_directory: (nullable): optional; see [method@Storage.make_directory]
 * @free_space: (nullable): optional; see [method@Storage.free_space]
 * @lock: (nullable): optional; see [method@Storage.lock]
 * @unlock: see [method@Storage.unlock]; needed with @lock
 * @takes: (nullable): optional: whether the store supports a path; if `NULL`, any path
 * @can_rename: (nullable): optional; see [method@Storage.can_rename]
 * @abandon: (nullable): optional; see [method@Storage.abandon]
 * @copy: (nullable): optional; see [method@Storage.copy]
 * @read_versioned: see [method@Storage.read_versioned]
 * @replace: see [method@Storage.replace]; needed with @can_rename, as is @read_versioned
 * @sweep: (nullable): optional; see [method@Storage.sweep]
 * @bound: (nullable): optional; see [method@Storage.bound]
 *
 * The operations of a store: writing, reading, names and locks, and those of object stores.
 */
struct _MusterStorageInterface {
  GTypeInterface parent;
  /* writing */
  MusterStorageFile *(*create) (MusterStorage *self, const char *path, GError **error);
  gboolean (*reserve) (MusterStorage *self, MusterStorageFile *file, guint64 size, GError **error);
  gboolean (*append) (MusterStorage *self, MusterStorageFile *file, const void *data, gsize size,
                      GError **error);
  gboolean (*sync) (MusterStorage *self, MusterStorageFile *file, GError **error);
  gboolean (*close) (MusterStorage *self, MusterStorageFile *file, GError **error);
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
  gboolean (*make_directory) (MusterStorage *self, const char *directory, GError **error);
  gboolean (*free_space) (MusterStorage *self, const char *directory, guint64 *bytes,
                          GError **error);
  MusterStorageLock *(*lock) (MusterStorage *self, const char *path, MusterLockMode mode,
                              GError **error);
  void (*unlock) (MusterStorage *self, MusterStorageLock *lock);
  gboolean (*takes) (MusterStorage *self, const char *path);
  /* object stores; without them the store is a file system */
  gboolean (*can_rename) (MusterStorage *self, const char *path);
  void (*abandon) (MusterStorage *self, MusterStorageFile *file);
  gboolean (*copy) (MusterStorage *self, const char *from, const char *to, GError **error);
  GBytes *(*read_versioned) (MusterStorage *self, const char *path, char **version, GError **error);
  gboolean (*replace) (MusterStorage *self, const char *path, const void *data, gsize size,
                       const char *version, char **new_version, GError **error);
  gboolean (*sweep) (MusterStorage *self, const char *directory, gint64 before_us, GError **error);
  MusterStorage *(*bound) (MusterStorage *self, gint64 deadline_us, MusterClock *clock,
                           GCancellable *cancellable);
};

/**
 * MusterStorageInterface::takes:
 * @self: a store
 * @path: a path with a scheme, such as `s3://bucket/run`
 *
 * Whether the store supports a path; [method@Storage.check_path] asks it.
 *
 * Returns: `TRUE` if it does
 */

/**
 * muster_local_storage:
 *
 * The store of local files. It lives as long as the process.
 *
 * Returns: (transfer none): the store
 */
MusterStorage *muster_local_storage (void);

/**
 * muster_local_storage_new_within:
 * @directories: (array zero-terminated=1): the directories, which must exist
 * @error: return location for an error
 *
 * Local files within these directories only. Any other path is `PERMISSION_DENIED`, also one that
 * leads out of them by `..` or a symbolic link. A directory that doesn't exist is
 * `INVALID_ARGUMENT`; a Linux before 5.6 is `UNIMPLEMENTED`.
 *
 * Returns: (transfer full): the store
 */
MusterStorage *muster_local_storage_new_within (const char *const *directories, GError **error);

/**
 * muster_storage_check_path:
 * @self: (nullable): a store; `NULL`: local files
 * @what: names the path in the error: "checkpoint directory"
 * @path: (nullable): a path
 * @error: return location for an error
 *
 * Checks whether the store supports a path. `INVALID_ARGUMENT` for `NULL` and an empty path, and
 * for a scheme such as `s3://bucket/run` that the store doesn't support. No I/O. Every function
 * with a directory or a checkpoint checks it first.
 *
 * Returns: `TRUE` if the path can be used
 */
gboolean muster_storage_check_path (MusterStorage *self, const char *what, const char *path,
                                    GError **error);

/**
 * muster_storage_create:
 * @self: a store
 * @path: the file; an existing one is emptied
 * @error: return location for an error
 *
 * Creates a file to write it. In an object store it must be a new one: others see it once it is
 * closed, and if there is one of that name by then, closing fails with `ABORTED`.
 *
 * Returns: (transfer none): the file, until [method@Storage.close] or [method@Storage.abandon],
 *   one of which must follow
 */
MusterStorageFile *muster_storage_create (MusterStorage *self, const char *path, GError **error);

/**
 * muster_storage_reserve:
 * @self: a store
 * @file: a file being written
 * @size: bytes in total
 * @error: return location for an error
 *
 * Reserves space before writing, so that a full store fails at once (`G_FILE_ERROR_NOSPC`).
 * Succeeds if the store can't reserve. The file's length doesn't change.
 *
 * Returns: `TRUE` if there is enough space, as far as known
 */
gboolean muster_storage_reserve (MusterStorage *self, MusterStorageFile *file, guint64 size,
                                 GError **error);

/**
 * muster_storage_append:
 * @self: a store
 * @file: a file being written
 * @data: (array length=size) (element-type guint8): bytes
 * @size: their number
 * @error: return location for an error
 *
 * Appends bytes to a file.
 *
 * Returns: `TRUE` if all were written
 */
gboolean muster_storage_append (MusterStorage *self, MusterStorageFile *file, const void *data,
                                gsize size, GError **error);

/**
 * muster_storage_sync:
 * @self: a store
 * @file: a file being written
 * @error: return location for an error
 *
 * Makes the bytes written so far durable.
 *
 * Returns: `TRUE` if they are
 */
gboolean muster_storage_sync (MusterStorage *self, MusterStorageFile *file, GError **error);

/**
 * muster_storage_close:
 * @self: a store
 * @file: a file being written; freed even on failure
 * @error: return location for an error
 *
 * Closes a file. It doesn't sync it. In an object store the file is durable and there for all from
 * now on.
 *
 * Returns: `TRUE` if everything was written
 */
gboolean muster_storage_close (MusterStorage *self, MusterStorageFile *file, GError **error);

/**
 * muster_storage_abandon:
 * @self: a store
 * @file: a file being written; freed
 *
 * Gives up a file: in an object store nobody ever sees it. In a file system it is closed, and its
 * writer removes it.
 */
void muster_storage_abandon (MusterStorage *self, MusterStorageFile *file);

/**
 * muster_storage_open:
 * @self: a store
 * @path: a file
 * @size: (out): its current length in bytes
 * @error: return location for an error
 *
 * Opens a file to read it. Files aren't mapped: if another process truncates one, reads are short,
 * and no signal is raised.
 *
 * Returns: (transfer none): the input, until [method@Storage.close_input], which must follow
 */
MusterStorageInput *muster_storage_open (MusterStorage *self, const char *path, guint64 *size,
                                         GError **error);

/**
 * muster_storage_read_at: (skip)
 * @self: a store
 * @input: a file being read
 * @offset: where, in bytes
 * @buffer: room for @size bytes
 * @size: how many bytes
 * @error: return location for an error
 *
 * Reads bytes, or fewer at the end of the file. In other languages [method@Storage.read_bytes_at].
 *
 * Returns: the number of bytes; -1 with an error
 */
gssize muster_storage_read_at (MusterStorage *self, MusterStorageInput *input, guint64 offset,
                               void *buffer, gsize size, GError **error);

/**
 * muster_storage_read_bytes_at:
 * @self: a store
 * @input: a file being read
 * @offset: where, in bytes
 * @size: how many bytes at most; `RESOURCE_EXHAUSTED` if there isn't as much memory
 * @error: return location for an error
 *
 * [method@Storage.read_at] for languages that can't lend a buffer.
 *
 * Returns: (transfer full): the bytes, fewer at the end of the file
 */
GBytes *muster_storage_read_bytes_at (MusterStorage *self, MusterStorageInput *input,
                                      guint64 offset, gsize size, GError **error);

/**
 * muster_storage_close_input:
 * @self: a store
 * @input: (nullable): a file being read; freed
 *
 * Closes a file that was read.
 */
void muster_storage_close_input (MusterStorage *self, MusterStorageInput *input);

/**
 * muster_storage_read:
 * @self: a store
 * @path: a file
 * @error: return location for an error
 *
 * Reads a whole file.
 *
 * Returns: (transfer full): its content
 */
GBytes *muster_storage_read (MusterStorage *self, const char *path, GError **error);

/**
 * muster_storage_can_rename:
 * @self: a store
 * @path: a path in it
 *
 * Whether [method@Storage.rename] works there: not in an object store, where a file appears,
 * complete and under its own name, when it is closed.
 *
 * Returns: `TRUE` for a file system
 */
gboolean muster_storage_can_rename (MusterStorage *self, const char *path);

/**
 * muster_storage_rename:
 * @self: a store
 * @from: a file
 * @to: its new path; replaced if it exists
 * @error: return location for an error
 *
 * Renames a file atomically. [method@Storage.sync_directory] makes it durable.
 *
 * Returns: `TRUE` if it was renamed
 */
gboolean muster_storage_rename (MusterStorage *self, const char *from, const char *to,
                                GError **error);

/**
 * muster_storage_remove:
 * @self: a store
 * @path: a file or an empty directory
 * @error: return location for an error
 *
 * Removes a file or an empty directory. A missing one is no error.
 *
 * Returns: `TRUE` if it is gone
 */
gboolean muster_storage_remove (MusterStorage *self, const char *path, GError **error);

/**
 * muster_storage_list:
 * @self: a store
 * @directory: a directory
 * @error: return location for an error
 *
 * The names in a directory, sorted. A missing directory is `G_FILE_ERROR_NOENT`.
 *
 * Returns: (array zero-terminated=1) (transfer full): the names
 */
char **muster_storage_list (MusterStorage *self, const char *directory, GError **error);

/**
 * muster_storage_stat:
 * @self: a store
 * @path: a file
 * @info: (out caller-allocates): its size and modification time
 * @error: return location for an error
 *
 * A file's size and modification time.
 *
 * Returns: `TRUE` if it exists
 */
gboolean muster_storage_stat (MusterStorage *self, const char *path, MusterStorageInfo *info,
                              GError **error);

/**
 * muster_storage_sync_directory:
 * @self: a store
 * @directory: a directory, or a file that another program wrote
 * @error: return location for an error
 *
 * Makes the names in a directory durable; of a file, its bytes.
 *
 * Returns: `TRUE` if they are
 */
gboolean muster_storage_sync_directory (MusterStorage *self, const char *directory, GError **error);

/**
 * muster_storage_make_directory:
 * @self: a store
 * @directory: a directory
 * @error: return location for an error
 *
 * Creates a directory and its parents, durably. An existing one is no error. Does nothing in a
 * store without directories.
 *
 * Returns: `TRUE` if it exists
 */
gboolean muster_storage_make_directory (MusterStorage *self, const char *directory, GError **error);

/**
 * muster_storage_free_space:
 * @self: a store
 * @directory: a directory
 * @bytes: (out): the free bytes; `G_MAXUINT64` if unknown
 * @error: return location for an error
 *
 * The free space in a directory.
 *
 * Returns: `TRUE` unless the store failed
 */
gboolean muster_storage_free_space (MusterStorage *self, const char *directory, guint64 *bytes,
                                    GError **error);

/**
 * muster_storage_lock:
 * @self: a store
 * @path: a file
 * @mode: how
 * @error: return location for an error
 *
 * Locks a file against other processes and other locks of this process, without waiting:
 * `G_IO_ERROR_BUSY` if it is locked. The lock ends with its process. A store without locks always
 * succeeds, except with a lock of the process; there only the chief's lease and epoch exclude other
 * writers.
 *
 * Returns: (transfer none): the lock, until [method@Storage.unlock], which must follow
 */
MusterStorageLock *muster_storage_lock (MusterStorage *self, const char *path, MusterLockMode mode,
                                        GError **error);

/**
 * muster_storage_unlock:
 * @self: a store
 * @lock: (nullable): a held lock; freed
 *
 * Releases a lock.
 */
void muster_storage_unlock (MusterStorage *self, MusterStorageLock *lock);

/**
 * muster_storage_publish:
 * @self: a store
 * @path: a file
 * @data: (array length=size) (element-type guint8): its new content
 * @size: the number of bytes
 * @error: return location for an error
 *
 * Writes a small file atomically: writes and syncs a temporary file, renames it, and syncs the
 * directory; in an object store it is [method@Storage.replace]. A reader sees the old or the new
 * content.
 *
 * Returns: `TRUE` if the new content is durable
 */
gboolean muster_storage_publish (MusterStorage *self, const char *path, const void *data,
                                 gsize size, GError **error);

/**
 * muster_storage_copy:
 * @self: a store
 * @from: a file
 * @to: the new file, as for [method@Storage.create]; both are in this store
 * @error: return location for an error
 *
 * Copies a file, durably. A store that can copy by itself does so; else the bytes go through this
 * process, some at a time.
 *
 * Returns: `TRUE` if the copy is intact
 */
gboolean muster_storage_copy (MusterStorage *self, const char *from, const char *to,
                              GError **error);

/**
 * muster_storage_read_versioned:
 * @self: a store
 * @path: a small file
 * @version: (out) (nullable): what [method@Storage.replace] compares; the empty string if there is
 *   no such file, which is an error as well; `NULL` in a file system, which has no versions
 * @error: return location for an error
 *
 * Reads a whole file and which of its versions that is.
 *
 * Returns: (transfer full): its content
 */
GBytes *muster_storage_read_versioned (MusterStorage *self, const char *path, char **version,
                                       GError **error);

/**
 * muster_storage_replace:
 * @self: a store
 * @path: a small file
 * @data: (array length=size) (element-type guint8): its new content
 * @size: the number of bytes
 * @version: (nullable): the version to be replaced; the empty string: there must be no such file;
 *   `NULL`: whatever is there
 * @new_version: (out) (optional) (nullable): the version of the new content
 * @error: return location for an error
 *
 * Replaces a file atomically if nobody else has since it was read. `ABORTED` if another writer
 * did. In a file system it is [method@Storage.publish], and the directory's lock excludes others.
 *
 * Returns: `TRUE` if the new content is durable
 */
gboolean muster_storage_replace (MusterStorage *self, const char *path, const void *data,
                                 gsize size, const char *version, char **new_version,
                                 GError **error);

/**
 * muster_storage_sweep:
 * @self: a store
 * @directory: a directory
 * @before_us: only what was begun before this time, in microseconds since 1970; `G_MAXINT64`: all,
 *   if no other process may be writing there
 * @error: return location for an error
 *
 * Abandons the files that other processes began in a directory and have neither closed nor
 * abandoned. They occupy space, and no list names them. Does nothing in a file system.
 *
 * Returns: `TRUE` if none is left
 */
gboolean muster_storage_sweep (MusterStorage *self, const char *directory, gint64 before_us,
                               GError **error);

/**
 * muster_storage_bound:
 * @self: a store
 * @deadline_us: when its operations end at the latest
 * @clock: (nullable): the deadline's clock; `NULL`: the machine's
 * @cancellable: (nullable): what ends them before
 *
 * The same store with a deadline for what takes long in it. Its files may be used in either. Local
 * files have none: the system ends their operations.
 *
 * Returns: (transfer full): the store with the deadline
 */
MusterStorage *muster_storage_bound (MusterStorage *self, gint64 deadline_us, MusterClock *clock,
                                     GCancellable *cancellable);

G_END_DECLS
