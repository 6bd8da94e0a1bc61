// SPDX-License-Identifier: Apache-2.0
/* The public functions of a store. Each checks its arguments and its path, and calls the
 * implementation. UNAVAILABLE becomes a store's outage, since from a master that code means a lost
 * session. Helpers that any store can use are below: reading a file, publishing, copying. */
#include "checkpoint/store/storage.h"

#include "base/error.h"
#include "base/files/local_path_private.h"
#include "base/require_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"

#include <string.h>

/* Timeout for removing a file after a failure. */
#define QUIETLY_US (10 * MUSTER_SECOND)

/* Timeout of an operation that takes none. */
#define DEFAULT_US (60 * MUSTER_SECOND)

/* Size of a copy's buffer. */
#define COPY_SIZE ((gsize)1 << 20)

G_DEFINE_INTERFACE (MusterStorage, muster_storage, G_TYPE_OBJECT)

/* Returns the length of a scheme with its "://", as TensorFlow's file systems parse it; 0: there
 * is none. */
static gsize
scheme_length (const char *path)
{
  gsize n = 0;
  while (g_ascii_isalnum (path[n]) || (n > 0 && strchr ("+-.", path[n]) != NULL && path[n] != '\0'))
    n++;
  return n > 0 && g_ascii_isalpha (path[0]) && g_str_has_prefix (path + n, "://")
             ? n + strlen ("://")
             : 0;
}

static gboolean
refuse_path (const char *what, const char *path, GError **error)
{
  const gsize n = scheme_length (path);
  if (n == 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid %s '%s': the store doesn't accept this path", what, path);
  if (g_str_has_prefix (path, "grpc://") || g_str_has_prefix (path, "grpcs://"))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid %s '%s': another server's memory has to be offered; call "
                        "muster_peer_storage_offer ()",
                        what, path);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid %s '%s': no store supports '%.*s'; use a local or mounted "
                      "directory",
                      what, path, (int)n, path);
}

gboolean
muster_storage_check_path (MusterStorage *self, const char *what, const char *path, GError **error)
{
  muster_require (error, FALSE, what);
  self = self != NULL ? self : muster_local_storage ();
  if (path == NULL || *path == '\0')
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid %s: none was given; use '.' for the working directory", what);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  return iface->takes == NULL || iface->takes (self, muster_local_path (path)) ||
         refuse_path (what, path, error);
}

gboolean
muster_storage_is_file_path (const char *path)
{
  return scheme_length (muster_local_path (path)) == 0;
}

static gboolean
done (MusterStorage *self, const char *function, gboolean is_done, GError **error)
{
  muster_require_error (error, is_done, G_OBJECT_TYPE_NAME (self), function);
  if (!is_done && error != NULL && muster_error_is (*error, MUSTER_ERROR_UNAVAILABLE))
    muster_storage_failure_set_outage (*error);
  return is_done;
}

static gpointer
got (MusterStorage *self, const char *function, gpointer result, GError **error)
{
  return done (self, function, result != NULL, error) ? result : NULL;
}

/* Removes the scheme of a local path before a store gets it. */
static gboolean
check (MusterStorage *self, const char **path, GError **error)
{
  *path = muster_local_path (*path);
  return muster_storage_check_path (self, "path", *path, error);
}

MusterStorageFile *
muster_storage_create (MusterStorage *self, const char *path, GError **error)
{
  muster_require (error, NULL, self, path);
  return check (self, &path, error)
             ? got (self, "create", MUSTER_STORAGE_GET_IFACE (self)->create (self, path, error),
                    error)
             : NULL;
}

gboolean
muster_storage_reserve (MusterStorage *self, MusterStorageFile *file, guint64 size, GError **error)
{
  muster_require (error, FALSE, self, file);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  return iface->reserve == NULL || size == 0 ||
         done (self, "reserve", iface->reserve (self, file, size, error), error);
}

gboolean
muster_storage_append (MusterStorage *self, MusterStorageFile *file, const void *data, gsize size,
                       GError **error)
{
  muster_require (error, FALSE, self, file);
  muster_require_array (error, FALSE, data, size);
  return size == 0 ||
         done (self, "append",
               MUSTER_STORAGE_GET_IFACE (self)->append (self, file, data, size, error), error);
}

gboolean
muster_storage_sync (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  muster_require (error, FALSE, self, file);
  return done (self, "sync", MUSTER_STORAGE_GET_IFACE (self)->sync (self, file, error), error);
}

gboolean
muster_storage_close (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  muster_require (error, FALSE, self, file);
  return done (self, "close", MUSTER_STORAGE_GET_IFACE (self)->close (self, file, error), error);
}

void
muster_storage_abandon (MusterStorage *self, MusterStorageFile *file)
{
  g_return_if_fail (MUSTER_IS_STORAGE (self) && file != NULL);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  if (iface->abandon != NULL)
    iface->abandon (self, file);
  else
    (void)iface->close (self, file, NULL);
}

MusterStorageInput *
muster_storage_open (MusterStorage *self, const char *path, guint64 *size, GError **error)
{
  muster_require (error, NULL, self, path, size);
  return check (self, &path, error)
             ? got (self, "open", MUSTER_STORAGE_GET_IFACE (self)->open (self, path, size, error),
                    error)
             : NULL;
}

gssize
muster_storage_read_at (MusterStorage *self, MusterStorageInput *input, guint64 offset,
                        void *buffer, gsize size, GError **error)
{
  muster_require (error, -1, self, input, buffer);
  const gssize n =
      MUSTER_STORAGE_GET_IFACE (self)->read_at (self, input, offset, buffer, size, error);
  if (n <= (gssize)MIN (size, G_MAXSSIZE))
    return done (self, "read_at", n >= 0, error) ? n : -1;
  muster_fail (error, MUSTER_ERROR_INTERNAL,
               "%s: read_at () returned %" G_GSSIZE_FORMAT " bytes, %" G_GSIZE_FORMAT
               " were asked for",
               G_OBJECT_TYPE_NAME (self), n, size);
  return -1;
}

GBytes *
muster_storage_read_bytes_at (MusterStorage *self, MusterStorageInput *input, guint64 offset,
                              gsize size, GError **error)
{
  muster_require (error, NULL, self, input);
  g_autofree guint8 *data = size < G_MAXSSIZE ? g_try_malloc (MAX (size, 1)) : NULL;
  if (data == NULL) {
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "not enough memory to read %" G_GSIZE_FORMAT " bytes", size);
    return NULL;
  }
  const gssize n = muster_storage_read_at (self, input, offset, data, size, error);
  return n < 0 ? NULL : g_bytes_new_take (g_steal_pointer (&data), (gsize)n);
}

void
muster_storage_close_input (MusterStorage *self, MusterStorageInput *input)
{
  g_return_if_fail (MUSTER_IS_STORAGE (self));
  if (input != NULL)
    MUSTER_STORAGE_GET_IFACE (self)->close_input (self, input);
}

static GBytes *
read_all (MusterStorage *self, MusterStorageInput *input, const char *path, guint64 size,
          GError **error)
{
  g_autofree guint8 *data = size < G_MAXSSIZE ? g_try_malloc (MAX (size, 1)) : NULL;
  if (data == NULL) {
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOMEM,
                 "'%s': not enough memory for its %" G_GUINT64_FORMAT " bytes", path, size);
    return NULL;
  }
  const gssize n = muster_storage_read_at (self, input, 0, data, size, error);
  /* If the file became shorter, the rest is returned. */
  return n < 0 ? NULL : g_bytes_new_take (g_steal_pointer (&data), (gsize)n);
}

GBytes *
muster_storage_read (MusterStorage *self, const char *path, GError **error)
{
  muster_require (error, NULL, self, path);
  guint64 size;
  MusterStorageInput *input = muster_storage_open (self, path, &size, error);
  if (input == NULL)
    return NULL;
  GBytes *bytes = read_all (self, input, path, size, error);
  muster_storage_close_input (self, input);
  return bytes;
}

gboolean
muster_storage_can_rename (MusterStorage *self, const char *path)
{
  g_return_val_if_fail (MUSTER_IS_STORAGE (self) && path != NULL, FALSE);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  return iface->can_rename == NULL || iface->can_rename (self, muster_local_path (path));
}

gboolean
muster_storage_rename (MusterStorage *self, const char *from, const char *to, GError **error)
{
  muster_require (error, FALSE, self, from, to);
  return check (self, &from, error) && check (self, &to, error) &&
         done (self, "rename", MUSTER_STORAGE_GET_IFACE (self)->rename (self, from, to, error),
               error);
}

gboolean
muster_storage_remove (MusterStorage *self, const char *path, GError **error)
{
  muster_require (error, FALSE, self, path);
  return check (self, &path, error) &&
         done (self, "remove", MUSTER_STORAGE_GET_IFACE (self)->remove (self, path, error), error);
}

char **
muster_storage_list (MusterStorage *self, const char *directory, GError **error)
{
  muster_require (error, NULL, self, directory);
  return check (self, &directory, error)
             ? got (self, "list", MUSTER_STORAGE_GET_IFACE (self)->list (self, directory, error),
                    error)
             : NULL;
}

gboolean
muster_storage_sync_directory (MusterStorage *self, const char *directory, GError **error)
{
  muster_require (error, FALSE, self, directory);
  return check (self, &directory, error) &&
         done (self, "sync_directory",
               MUSTER_STORAGE_GET_IFACE (self)->sync_directory (self, directory, error), error);
}

gboolean
muster_storage_stat (MusterStorage *self, const char *path, MusterStorageInfo *info, GError **error)
{
  muster_require (error, FALSE, self, path, info);
  return check (self, &path, error) &&
         done (self, "stat", MUSTER_STORAGE_GET_IFACE (self)->stat (self, path, info, error),
               error);
}

gboolean
muster_storage_make_directory (MusterStorage *self, const char *directory, GError **error)
{
  muster_require (error, FALSE, self, directory);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  return check (self, &directory, error) &&
         (iface->make_directory == NULL ||
          done (self, "make_directory", iface->make_directory (self, directory, error), error));
}

gboolean
muster_storage_free_space (MusterStorage *self, const char *directory, guint64 *bytes,
                           GError **error)
{
  muster_require (error, FALSE, self, directory, bytes);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  *bytes = G_MAXUINT64;
  return check (self, &directory, error) &&
         (iface->free_space == NULL ||
          done (self, "free_space", iface->free_space (self, directory, bytes, error), error));
}

/* The lock in a store without locks. */
static char no_lock;

MusterStorageLock *
muster_storage_lock (MusterStorage *self, const char *path, MusterLockMode mode, GError **error)
{
  muster_require (error, NULL, self, path);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  if (!check (self, &path, error))
    return NULL;
  if (iface->lock != NULL)
    return got (self, "lock", iface->lock (self, path, mode, error), error);
  if (mode != MUSTER_LOCK_PROCESS && mode != MUSTER_LOCK_PROCESS_SHARED)
    return (MusterStorageLock *)&no_lock;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "'%s': the store has no locks", path);
  return NULL;
}

void
muster_storage_unlock (MusterStorage *self, MusterStorageLock *lock)
{
  g_return_if_fail (MUSTER_IS_STORAGE (self));
  if (lock != NULL && lock != (MusterStorageLock *)&no_lock)
    MUSTER_STORAGE_GET_IFACE (self)->unlock (self, lock);
}

gboolean
muster_storage_publish (MusterStorage *self, const char *path, const void *data, gsize size,
                        GError **error)
{
  muster_require (error, FALSE, self, path);
  muster_require_array (error, FALSE, data, size);
  if (!check (self, &path, error))
    return FALSE;
  if (!muster_storage_can_rename (self, path))
    return muster_storage_replace (self, path, data, size, NULL, NULL, error);
  g_autofree char *temporary = muster_storage_temporary_name (path);
  g_autofree char *directory = g_path_get_dirname (path);
  if (!muster_storage_write_synced (self, temporary, data, size, error))
    return FALSE;
  if (!muster_storage_rename (self, temporary, path, error)) {
    muster_storage_remove_quietly (self, temporary);
    return FALSE;
  }
  return muster_storage_sync_directory (self, directory, error);
}

/* In an object store, files are durable once they are closed. */
static gboolean
finish_file (MusterStorage *self, MusterStorageFile *file, const char *path, gboolean is_written,
             GError **error)
{
  if (is_written && muster_storage_close (self, file, error))
    return TRUE;
  if (!is_written)
    muster_storage_abandon (self, file);
  if (muster_storage_can_rename (self, path))
    muster_storage_remove_quietly (self, path);
  return FALSE;
}

gboolean
muster_storage_write_synced (MusterStorage *self, const char *path, const void *data, gsize size,
                             GError **error)
{
  MusterStorageFile *file = muster_storage_create (self, path, error);
  if (file == NULL)
    return FALSE;
  const gboolean is_written = muster_storage_append (self, file, data, size, error) &&
                              muster_storage_sync (self, file, error);
  return finish_file (self, file, path, is_written, error);
}

static gboolean
copy_bytes (MusterStorage *self, MusterStorageInput *from, MusterStorageFile *to, guint64 size,
            GError **error)
{
  g_autofree guint8 *buffer = g_malloc (COPY_SIZE);
  for (guint64 at = 0; at < size;) {
    const gssize n =
        muster_storage_read_at (self, from, at, buffer, MIN (COPY_SIZE, size - at), error);
    if (n < 0 || !muster_storage_append (self, to, buffer, (gsize)n, error))
      return FALSE;
    if (n == 0)
      return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "the file became shorter");
    at += (guint64)n;
  }
  return muster_storage_sync (self, to, error);
}

static gboolean
copy_through_here (MusterStorage *self, const char *from, const char *to, GError **error)
{
  guint64 size;
  MusterStorageInput *input = muster_storage_open (self, from, &size, error);
  MusterStorageFile *file = input != NULL ? muster_storage_create (self, to, error) : NULL;
  const gboolean is_copied =
      file != NULL &&
      finish_file (self, file, to, copy_bytes (self, input, file, size, error), error);
  muster_storage_close_input (self, input);
  return is_copied;
}

gboolean
muster_storage_copy (MusterStorage *self, const char *from, const char *to, GError **error)
{
  muster_require (error, FALSE, self, from, to);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  if (!check (self, &from, error) || !check (self, &to, error))
    return FALSE;
  const gboolean copies = iface->copy != NULL && !muster_storage_can_rename (self, to);
  if (copies ? done (self, "copy", iface->copy (self, from, to, error), error)
             : copy_through_here (self, from, to, error))
    return TRUE;
  g_prefix_error (error, "Copying '%s' to '%s': ", from, to);
  return FALSE;
}

GBytes *
muster_storage_read_versioned (MusterStorage *self, const char *path, char **version,
                               GError **error)
{
  muster_require (error, NULL, self, path, version);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  g_autoptr (GError) why = NULL;
  *version = NULL;
  if (iface->read_versioned == NULL || muster_storage_can_rename (self, path))
    return muster_storage_read (self, path, error);
  if (!check (self, &path, error))
    return NULL;
  GBytes *bytes = iface->read_versioned (self, path, version, &why);
  if (got (self, "read_versioned", bytes, &why) != NULL)
    return bytes;
  g_free (*version);
  *version = muster_storage_failure_is_absent (why) ? g_strdup ("") : NULL;
  g_propagate_error (error, g_steal_pointer (&why));
  return NULL;
}

gboolean
muster_storage_replace (MusterStorage *self, const char *path, const void *data, gsize size,
                        const char *version, char **new_version, GError **error)
{
  muster_require (error, FALSE, self, path);
  muster_require_array (error, FALSE, data, size);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  char *unused = NULL;
  new_version = new_version != NULL ? new_version : &unused;
  *new_version = NULL;
  if (!check (self, &path, error))
    return FALSE;
  const gboolean is_replaced =
      muster_storage_can_rename (self, path)
          ? muster_storage_publish (self, path, data, size, error)
          : done (self, "replace",
                  iface->replace (self, path, data, size, version, new_version, error), error);
  if (!is_replaced)
    g_clear_pointer (new_version, g_free);
  g_free (unused);
  return is_replaced;
}

gboolean
muster_storage_sweep (MusterStorage *self, const char *directory, gint64 before_us, GError **error)
{
  muster_require (error, FALSE, self, directory);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  return check (self, &directory, error) &&
         (iface->sweep == NULL ||
          done (self, "sweep", iface->sweep (self, directory, before_us, error), error));
}

MusterStorage *
muster_storage_bound (MusterStorage *self, gint64 deadline_us, MusterClock *clock,
                      GCancellable *cancellable)
{
  g_return_val_if_fail (MUSTER_IS_STORAGE (self), NULL);
  const MusterStorageInterface *iface = MUSTER_STORAGE_GET_IFACE (self);
  return iface->bound != NULL ? iface->bound (self, deadline_us, clock, cancellable)
                              : g_object_ref (self);
}

static MusterStorage *
bound_for (MusterStorage *self, gint64 time_us, MusterClock *clock, GCancellable *cancellable)
{
  return muster_storage_bound (self, muster_deadline_after (muster_clock_now_us (clock), time_us),
                               clock, cancellable);
}

MusterStorage *
muster_storage_bound_to_default (MusterStorage *self, MusterClock *clock)
{
  return bound_for (self, DEFAULT_US, clock != NULL ? clock : muster_system_clock (),
                    g_cancellable_get_current ());
}

MusterStorage *
muster_storage_for_cleanup (MusterStorage *self)
{
  return bound_for (self, QUIETLY_US, muster_system_clock (), NULL);
}

void
muster_storage_remove_quietly (MusterStorage *self, const char *path)
{
  g_autoptr (MusterStorage) own = muster_storage_for_cleanup (self);
  (void)muster_storage_remove (own, path, NULL); /* the caller reports the earlier error */
}

gboolean
muster_storage_move (MusterStorage *self, const char *from, const char *to, GError **error)
{
  if (muster_storage_can_rename (self, from))
    return muster_storage_rename (self, from, to, error);
  return muster_storage_remove (self, to, error) && muster_storage_copy (self, from, to, error) &&
         muster_storage_remove (self, from, error);
}

char *
muster_storage_temporary_name (const char *path)
{
  g_autofree char *unique = g_uuid_string_random ();
  return g_strconcat (path, ".tempstate", unique, NULL);
}

static void
muster_storage_default_init (MusterStorageInterface *iface G_GNUC_UNUSED)
{
}
