// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/directory_lock_private.h"

#include "base/error.h"
#include "base/require_private.h"

#include <string.h>
#include <unistd.h>

#define FIRST_WAIT (5 * MUSTER_MILLISECOND)
#define LAST_WAIT  (200 * MUSTER_MILLISECOND)
/* Maximum number of lost races in a row. */
#define MOST_TRIES 100

struct _MusterDirectoryLock {
  MusterStorage *storage;  /* (owned) bound like the lock */
  MusterStorageLock *lock; /* NULL in a store without locks */
};

/* Writes the holder's name for the error of waiting processes. It isn't the lock itself: writing
 * it may fail on a full disk. */
static void
write_holder (MusterStorage *storage, const char *path)
{
  g_autofree char *who = g_strdup_printf ("%s:%d\n", g_get_host_name (), (int)getpid ());
  MusterStorageFile *file = muster_storage_create (storage, path, NULL);
  if (file == NULL)
    return;
  (void)muster_storage_append (storage, file, who, strlen (who), NULL);
  (void)muster_storage_close (storage, file, NULL);
}

static char *
read_holder (MusterStorage *storage, const char *path)
{
  g_autoptr (GBytes) bytes = muster_storage_read (storage, path, NULL);
  gsize size = 0;
  const char *data = bytes != NULL ? g_bytes_get_data (bytes, &size) : NULL;
  if (size == 0)
    return g_strdup ("another process");
  g_autofree char *who = g_strndup (data, MIN (size, 256));
  return g_utf8_make_valid (g_strchomp (who), -1);
}

/* Retries until it is locked, the deadline passes, or another error occurs. */
static MusterStorageLock *
wait_for (MusterStorage *storage, const char *path, gint64 deadline_us, MusterClock *clock,
          GCancellable *cancellable, GError **error)
{
  gint64 wait_us = FIRST_WAIT;
  for (;;) {
    g_autoptr (GError) why = NULL;
    MusterStorageLock *lock = muster_storage_lock (storage, path, MUSTER_LOCK_EXCLUSIVE, &why);
    if (lock != NULL)
      return lock;
    if (!g_error_matches (why, G_IO_ERROR, G_IO_ERROR_BUSY)) {
      g_propagate_error (error, g_steal_pointer (&why));
      return NULL;
    }
    const gint64 now_us = muster_clock_now_us (clock);
    if (now_us >= deadline_us) {
      g_autofree char *who = read_holder (storage, path);
      muster_fail (
          error, MUSTER_ERROR_DEADLINE_EXCEEDED,
          "Locking '%s' failed: %s holds the lock; if that process is stopped, continue or "
          "end it",
          path, who);
      return NULL;
    }
    const gint64 wake_us = MIN (muster_deadline_after (now_us, wait_us), deadline_us);
    if (!muster_clock_wait_until (clock, wake_us, cancellable, error))
      return NULL;
    wait_us = MIN (wait_us * 2, LAST_WAIT);
  }
}

MusterDirectoryLock *
muster_directory_lock (MusterStorage *storage, const char *directory, gint64 deadline_us,
                       MusterClock *clock, GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, directory);
  g_autoptr (MusterStorage) bound = muster_storage_bound (
      storage != NULL ? storage : muster_local_storage (), deadline_us, clock, cancellable);
  g_autofree char *path = g_build_filename (directory, MUSTER_LOCK_FILE, NULL);
  MusterStorageLock *lock = NULL;
  if (muster_storage_can_rename (bound, directory)) {
    clock = clock != NULL ? clock : muster_system_clock ();
    lock = wait_for (bound, path, deadline_us, clock, cancellable, error);
    if (lock == NULL)
      return NULL;
    write_holder (bound, path);
  }
  MusterDirectoryLock *self = g_new (MusterDirectoryLock, 1);
  self->storage = g_steal_pointer (&bound);
  self->lock = lock;
  return self;
}

MusterStorage *
muster_directory_lock_storage (const MusterDirectoryLock *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->storage;
}

gboolean
muster_directory_try_again (guint *n_tries, gint64 deadline_us, MusterClock *clock,
                            GCancellable *cancellable, GError *why, GError **error)
{
  g_autoptr (GError) own = why;
  if (!muster_error_is (why, MUSTER_ERROR_ABORTED)) {
    g_propagate_error (error, g_steal_pointer (&own));
    return FALSE;
  }
  clock = clock != NULL ? clock : muster_system_clock ();
  const gint64 now_us = muster_clock_now_us (clock);
  if (now_us >= deadline_us || ++*n_tries >= MOST_TRIES)
    return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                        "other writers were faster %u times: %s", *n_tries, why->message);
  const gint64 most_us = MIN (FIRST_WAIT << MIN (*n_tries, 10), LAST_WAIT);
  const gint64 wait_us = (gint64)(muster_clock_random (clock) * (double)most_us);
  const gint64 wake_us = MIN (muster_deadline_after (now_us, wait_us), deadline_us);
  return muster_clock_wait_until (clock, wake_us, cancellable, error);
}

void
muster_directory_unlock (MusterDirectoryLock *self)
{
  if (self == NULL)
    return;
  muster_storage_unlock (self->storage, self->lock);
  g_object_unref (self->storage);
  g_free (self);
}
