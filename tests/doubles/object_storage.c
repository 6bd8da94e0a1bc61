// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/object_storage.h"

#include "base/error.h"

#include <string.h>

typedef struct {
  GBytes *bytes; /* (owned) */
  guint64 version;
  gint64 mtime_us;
} Object;

/* What the processes share. */
typedef struct {
  gatomicrefcount refs;
  GMutex lock;
  /* guarded by lock */
  GHashTable *objects; /* (owned) (element-type utf8 Object) */
  GPtrArray *uploads;  /* (owned) (element-type Upload) */
  guint64 last_version;
  gint64 now_us;
  guint64 copied, sent;
} Bucket;

/* One process; guarded by the bucket's lock. */
typedef struct {
  gatomicrefcount refs;
  Bucket *bucket; /* (owned) */
  guint calls_to_stop, calls_to_failure;
  gboolean has_effect, has_stopped, has_failed;
  gboolean loses; /* what fails is done */
  guint n_calls, stalls_from, misses;
  gint64 latest_us;
  char *unbound; /* (owned) (nullable) */
  char *awaited; /* (owned) (nullable) */
  void (*act) (gpointer data);
  gpointer act_data;
} Process;

typedef struct {
  gatomicrefcount refs;
  Process *process; /* (not owned) as a mark */
  char *path;       /* (owned) */
  gint64 begun_us;
  GByteArray *bytes;
} Upload;

struct _MusterObjectStorage {
  GObject parent;
  Process *process; /* (owned) */
  gint64 deadline_us;
  MusterClock *clock;        /* (owned) (nullable) */
  GCancellable *cancellable; /* (owned) (nullable) */
};

struct _MusterStorageFile {
  Upload *upload; /* (owned) */
};

struct _MusterStorageInput {
  GBytes *bytes; /* (owned) */
};

static void object_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterObjectStorage, muster_object_storage, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      object_storage_iface_init))

/* --- bucket and process --- */

static void
object_free (gpointer data)
{
  g_bytes_unref (((Object *)data)->bytes);
  g_free (data);
}

static void
upload_unref (gpointer data)
{
  Upload *self = data;
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_free (self->path);
  g_byte_array_unref (self->bytes);
  g_free (self);
}

static Bucket *
bucket_new (void)
{
  Bucket *self = g_new0 (Bucket, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->objects = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, object_free);
  self->uploads = g_ptr_array_new_with_free_func (upload_unref);
  self->now_us = g_get_real_time ();
  return self;
}

static void
bucket_unref (Bucket *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_hash_table_unref (self->objects);
  g_ptr_array_unref (self->uploads);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
process_unref (Process *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_free (self->awaited);
  g_free (self->unbound);
  bucket_unref (self->bucket);
  g_free (self);
}

/* Takes bucket. */
static MusterObjectStorage *
process_with (Bucket *bucket)
{
  MusterObjectStorage *self = g_object_new (MUSTER_TYPE_OBJECT_STORAGE, NULL);
  self->process = g_new0 (Process, 1);
  g_atomic_ref_count_init (&self->process->refs);
  self->process->bucket = bucket;
  return self;
}

MusterObjectStorage *
object_storage_new (void)
{
  return process_with (bucket_new ());
}

MusterObjectStorage *
object_storage_process (MusterObjectStorage *self)
{
  g_atomic_ref_count_inc (&self->process->bucket->refs);
  return process_with (self->process->bucket);
}

static GMutexLocker *
lock (gpointer self)
{
  return g_mutex_locker_new (&MUSTER_OBJECT_STORAGE (self)->process->bucket->lock);
}

static void
put (Bucket *self, const char *path, GBytes *bytes)
{
  Object *object = g_new (Object, 1);
  self->now_us += MUSTER_SECOND;
  *object = (Object){g_bytes_ref (bytes), ++self->last_version, self->now_us};
  g_hash_table_replace (self->objects, g_strdup (path), object);
}

MusterObjectStorage *
object_storage_copy (MusterObjectStorage *self)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  const Bucket *from = self->process->bucket;
  Bucket *bucket = bucket_new ();
  GHashTableIter iter;
  gpointer path, object;
  g_hash_table_iter_init (&iter, from->objects);
  while (g_hash_table_iter_next (&iter, &path, &object)) {
    Object *copy = g_memdup2 (object, sizeof *copy);
    g_bytes_ref (copy->bytes);
    g_hash_table_insert (bucket->objects, g_strdup (path), copy);
  }
  for (guint i = 0; i < from->uploads->len; i++) {
    Upload *upload = from->uploads->pdata[i];
    g_atomic_ref_count_inc (&upload->refs);
    g_ptr_array_add (bucket->uploads, upload);
  }
  bucket->last_version = from->last_version;
  bucket->now_us = from->now_us;
  return process_with (bucket);
}

void
object_storage_stop_at (MusterObjectStorage *self, guint n, gboolean has_effect)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  self->process->calls_to_stop = n;
  self->process->has_effect = has_effect;
}

gboolean
object_storage_has_stopped (MusterObjectStorage *self)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  return self->process->has_stopped;
}

void
object_storage_fail_at (MusterObjectStorage *self, guint n)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  self->process->calls_to_failure = n;
}

void
object_storage_lose_at (MusterObjectStorage *self, guint n)
{
  object_storage_fail_at (self, n);
  g_autoptr (GMutexLocker) locker = lock (self);
  self->process->loses = TRUE;
}

void
object_storage_miss_at (MusterObjectStorage *self, guint n)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  self->process->misses = self->process->n_calls + n;
}

gboolean
object_storage_has_failed (MusterObjectStorage *self)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  return self->process->has_failed;
}

void
object_storage_stall_at (MusterObjectStorage *self, guint n, gint64 latest_us)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  self->process->stalls_from = n > 0 ? self->process->n_calls + n : 0;
  self->process->latest_us = latest_us;
}

char *
object_storage_unbound (MusterObjectStorage *self)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  return g_strdup (self->process->unbound);
}

guint
object_storage_n_calls (MusterObjectStorage *self)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  return self->process->n_calls;
}

void
object_storage_before_replace (MusterObjectStorage *self, const char *name,
                               void (*act) (gpointer data), gpointer data)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  g_free (self->process->awaited);
  self->process->awaited = g_strdup (name);
  self->process->act = act;
  self->process->act_data = data;
}

guint
object_storage_n_uploads (MusterObjectStorage *self)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  return self->process->bucket->uploads->len;
}

guint
object_storage_n_files (MusterObjectStorage *self)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  return g_hash_table_size (self->process->bucket->objects);
}

guint64
object_storage_copied (MusterObjectStorage *self)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  return self->process->bucket->copied;
}

guint64
object_storage_sent (MusterObjectStorage *self)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  return self->process->bucket->sent;
}

void
object_storage_pass (MusterObjectStorage *self, gint64 time_us)
{
  g_autoptr (GMutexLocker) locker = lock (self);
  self->process->bucket->now_us += time_us;
}

/* --- calls --- */

static gboolean
fail (GError **error, const char *path, const char *what)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "'%s': %s", path, what);
  return FALSE;
}

static gboolean
absent (GError **error, const char *path)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "'%s': there is no such object", path);
  return FALSE;
}

/* Waits for the answer that doesn't come, as far as a caller can tell. */
static gboolean
stall (MusterObjectStorage *self, const char *path, GError **error)
{
  Process *process = self->process;
  const gboolean is_soon = self->deadline_us <= g_get_monotonic_time () + 61 * MUSTER_SECOND;
  if (process->unbound == NULL &&
      (self->deadline_us > process->latest_us || (self->cancellable == NULL && !is_soon)))
    process->unbound = g_strdup_printf (
        "'%s' (%s, %s)", path, self->deadline_us == MUSTER_WAIT_FOREVER ? "forever" : "a deadline",
        self->cancellable != NULL ? "a cancellable" : "no cancellable");
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "'%s': no answer", path);
}

/* A call that changes nothing. */
static gboolean
begin (MusterObjectStorage *self, const char *path, GError **error)
{
  self->process->n_calls++;
  if (self->process->stalls_from > 0 && self->process->n_calls >= self->process->stalls_from)
    return stall (self, path, error);
  if (self->process->has_stopped)
    return fail (error, path, "this process has ended");
  if (self->process->n_calls == self->process->misses) {
    self->process->has_failed = TRUE;
    return muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "'%s': no connection", path);
  }
  if (g_cancellable_set_error_if_cancelled (self->cancellable, error))
    return FALSE;
  return self->deadline_us == MUSTER_WAIT_FOREVER ||
         muster_clock_now_us (self->clock) < self->deadline_us ||
         muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "'%s': the time is up", path);
}

/* One that does. *is_lost: it is done, but fails. */
static gboolean
begin_change (MusterObjectStorage *self, const char *path, gboolean *is_lost, GError **error)
{
  Process *process = self->process;
  *is_lost = FALSE;
  if (!begin (self, path, error))
    return FALSE;
  if (process->calls_to_stop > 0 && --process->calls_to_stop == 0) {
    process->has_stopped = TRUE;
    *is_lost = process->has_effect;
    return *is_lost || fail (error, path, "this process ends here");
  }
  if (process->calls_to_failure == 0 || --process->calls_to_failure > 0)
    return TRUE;
  process->has_failed = TRUE;
  *is_lost = process->loses;
  return *is_lost || fail (error, path, "the store has failed");
}

static gboolean
end_change (gboolean is_lost, const char *path, GError **error)
{
  return !is_lost || fail (error, path, "this process ends before the answer");
}

static MusterStorageFile *
object_create (MusterStorage *storage, const char *path, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  gboolean is_lost;
  if (!begin_change (self, path, &is_lost, error))
    return NULL;
  Upload *upload = g_new (Upload, 1);
  *upload = (Upload){.process = self->process,
                     .path = g_strdup (path),
                     .begun_us = self->process->bucket->now_us,
                     .bytes = g_byte_array_new ()};
  g_atomic_ref_count_init (&upload->refs);
  g_ptr_array_add (self->process->bucket->uploads, upload);
  if (!end_change (is_lost, path, error))
    return NULL;
  MusterStorageFile *file = g_new (MusterStorageFile, 1);
  g_atomic_ref_count_inc (&upload->refs);
  file->upload = upload;
  return file;
}

static gboolean
object_append (MusterStorage *storage, MusterStorageFile *file, const void *data, gsize size,
               GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  gboolean is_lost;
  if (!begin_change (self, file->upload->path, &is_lost, error))
    return FALSE;
  g_byte_array_append (file->upload->bytes, data, (guint)size);
  self->process->bucket->sent += size;
  return end_change (is_lost, file->upload->path, error);
}

static gboolean
object_sync (MusterStorage *storage, MusterStorageFile *file, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  return begin (self, file->upload->path, error);
}

static gboolean
complete (Bucket *bucket, Upload *upload, GError **error)
{
  if (!g_ptr_array_find (bucket->uploads, upload, NULL))
    return muster_fail (error, MUSTER_ERROR_ABORTED, "'%s': another process has given it up",
                        upload->path);
  if (g_hash_table_contains (bucket->objects, upload->path))
    return muster_fail (error, MUSTER_ERROR_ABORTED, "'%s': another writer has made it",
                        upload->path);
  g_autoptr (GBytes) bytes = g_bytes_new (upload->bytes->data, upload->bytes->len);
  put (bucket, upload->path, bytes);
  return TRUE;
}

static void
file_free (MusterStorageFile *file)
{
  upload_unref (file->upload);
  g_free (file);
}

static gboolean
object_close (MusterStorage *storage, MusterStorageFile *file, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  Bucket *bucket = self->process->bucket;
  gboolean is_lost;
  const gboolean is_closed = begin_change (self, file->upload->path, &is_lost, error) &&
                             complete (bucket, file->upload, error) &&
                             end_change (is_lost, file->upload->path, error);
  if (!self->process->has_stopped || is_closed)
    g_ptr_array_remove (bucket->uploads, file->upload);
  file_free (file);
  return is_closed;
}

static void
object_abandon (MusterStorage *storage, MusterStorageFile *file)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  if (!self->process->has_stopped)
    g_ptr_array_remove (self->process->bucket->uploads, file->upload);
  file_free (file);
}

static GBytes *
find (MusterObjectStorage *self, const char *path, const Object **found, GError **error)
{
  const Object *object =
      begin (self, path, error) ? g_hash_table_lookup (self->process->bucket->objects, path) : NULL;

  if (object == NULL && error != NULL && *error == NULL)
    absent (error, path);
  *found = object;
  return object != NULL ? g_bytes_ref (object->bytes) : NULL;
}

static MusterStorageInput *
object_open (MusterStorage *storage, const char *path, guint64 *size, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  g_autoptr (GError) why = NULL;
  const Object *object;
  GBytes *bytes = find (self, path, &object, &why);
  if (bytes == NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return NULL;
  }
  MusterStorageInput *input = g_new (MusterStorageInput, 1);
  input->bytes = bytes;
  *size = g_bytes_get_size (bytes);
  return input;
}

static gssize
object_read_at (MusterStorage *storage, MusterStorageInput *input, guint64 offset, void *buffer,
                gsize size, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  const guint64 length = g_bytes_get_size (input->bytes);
  if (!begin (self, "a file that is open", error))
    return -1;
  const gsize n = offset < length ? MIN (size, length - offset) : 0;
  if (n > 0)
    memcpy (buffer, (const guint8 *)g_bytes_get_data (input->bytes, NULL) + offset, n);
  return (gssize)n;
}

static void
object_close_input (MusterStorage *storage G_GNUC_UNUSED, MusterStorageInput *input)
{
  g_bytes_unref (input->bytes);
  g_free (input);
}

static gboolean
object_rename (MusterStorage *storage G_GNUC_UNUSED, const char *from, const char *to G_GNUC_UNUSED,
               GError **error)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "'%s': nothing is renamed here", from);
  return FALSE;
}

static gboolean
object_remove (MusterStorage *storage, const char *path, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  gboolean is_lost;
  if (!begin_change (self, path, &is_lost, error))
    return FALSE;
  g_hash_table_remove (self->process->bucket->objects, path);
  return end_change (is_lost, path, error);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Files, and what lies deeper by its first name: as a file system lists. */
static char **
object_list (MusterStorage *storage, const char *directory, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autofree char *below =
      g_str_has_suffix (directory, "/") ? g_strdup (directory) : g_strconcat (directory, "/", NULL);
  GHashTableIter iter;
  gpointer path;

  if (!begin (self, directory, error))
    return NULL;
  g_hash_table_iter_init (&iter, self->process->bucket->objects);
  while (g_hash_table_iter_next (&iter, &path, NULL))
    if (g_str_has_prefix (path, below)) {
      const char *name = (const char *)path + strlen (below);
      g_hash_table_add (seen, g_strndup (name, strcspn (name, "/")));
    }
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_hash_table_iter_init (&iter, seen);
  while (g_hash_table_iter_next (&iter, &path, NULL))
    g_ptr_array_add (names, g_strdup (path));
  g_ptr_array_sort (names, compare_names);
  g_ptr_array_add (names, NULL);
  return (char **)g_ptr_array_free (g_steal_pointer (&names), FALSE);
}

static gboolean
object_stat (MusterStorage *storage, const char *path, MusterStorageInfo *info, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  g_autoptr (GError) why = NULL;
  const Object *object;
  g_autoptr (GBytes) bytes = find (self, path, &object, &why);
  if (bytes != NULL)
    *info = (MusterStorageInfo){g_bytes_get_size (bytes), object->mtime_us};
  else
    g_propagate_error (error, g_steal_pointer (&why));
  return bytes != NULL;
}

static gboolean
object_sync_directory (MusterStorage *storage, const char *directory, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  return begin (self, directory, error);
}

static gboolean
object_can_rename (MusterStorage *storage G_GNUC_UNUSED, const char *path G_GNUC_UNUSED)
{
  return FALSE;
}

static gboolean
object_copy (MusterStorage *storage, const char *from, const char *to, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  Bucket *bucket = self->process->bucket;
  gboolean is_lost;
  if (!begin_change (self, to, &is_lost, error))
    return FALSE;
  const Object *object = g_hash_table_lookup (bucket->objects, from);
  if (object == NULL)
    return absent (error, from);
  if (g_hash_table_contains (bucket->objects, to))
    return muster_fail (error, MUSTER_ERROR_ABORTED, "'%s': another writer has made it", to);
  bucket->copied += g_bytes_get_size (object->bytes);
  put (bucket, to, object->bytes);
  return end_change (is_lost, to, error);
}

static char *
version_of (const Object *object)
{
  return object != NULL ? g_strdup_printf ("\"%" G_GUINT64_FORMAT "\"", object->version)
                        : g_strdup ("");
}

static GBytes *
object_read_versioned (MusterStorage *storage, const char *path, char **version, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  g_autoptr (GError) why = NULL;
  const Object *object;
  GBytes *bytes = find (self, path, &object, &why);
  if (bytes != NULL)
    *version = version_of (object);
  else
    g_propagate_error (error, g_steal_pointer (&why));
  return bytes;
}

/* Another writer comes first. */
static void
come_between (MusterObjectStorage *self, const char *path)
{
  void (*act) (gpointer data) = NULL;
  gpointer data = NULL;
  g_autofree char *name = g_path_get_basename (path);

  g_mutex_lock (&self->process->bucket->lock);
  if (g_strcmp0 (self->process->awaited, name) == 0) {
    act = self->process->act;
    data = self->process->act_data;
    g_clear_pointer (&self->process->awaited, g_free);
  }
  g_mutex_unlock (&self->process->bucket->lock);
  if (act != NULL)
    act (data);
}

static gboolean
object_replace (MusterStorage *storage, const char *path, const void *data, gsize size,
                const char *version, char **new_version, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  gboolean is_lost;
  come_between (self, path);
  g_autoptr (GMutexLocker) locker = lock (self);
  Bucket *bucket = self->process->bucket;
  if (!begin_change (self, path, &is_lost, error))
    return FALSE;
  g_autofree char *now = version_of (g_hash_table_lookup (bucket->objects, path));
  if (version != NULL && strcmp (version, now) != 0)
    return muster_fail (error, MUSTER_ERROR_ABORTED, "'%s': another writer has changed it", path);
  g_autoptr (GBytes) bytes = g_bytes_new (data, size);
  put (bucket, path, bytes);
  if (!end_change (is_lost, path, error))
    return FALSE;
  *new_version = version_of (g_hash_table_lookup (bucket->objects, path));
  return TRUE;
}

static gboolean
object_sweep (MusterStorage *storage, const char *directory, gint64 before_us, GError **error)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = lock (self);
  GPtrArray *uploads = self->process->bucket->uploads;
  gboolean is_lost;
  if (!begin_change (self, directory, &is_lost, error))
    return FALSE;
  for (guint i = uploads->len; i-- > 0;) {
    const Upload *upload = uploads->pdata[i];
    if (upload->process != self->process && g_str_has_prefix (upload->path, directory) &&
        upload->begun_us < before_us)
      g_ptr_array_remove_index (uploads, i);
  }
  return end_change (is_lost, directory, error);
}

static MusterStorage *
object_bound (MusterStorage *storage, gint64 deadline_us, MusterClock *clock,
              GCancellable *cancellable)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (storage);
  MusterObjectStorage *bound = g_object_new (MUSTER_TYPE_OBJECT_STORAGE, NULL);
  g_atomic_ref_count_inc (&self->process->refs);
  bound->process = self->process;
  bound->deadline_us = deadline_us;
  bound->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  bound->cancellable = cancellable != NULL ? g_object_ref (cancellable) : NULL;
  return MUSTER_STORAGE (bound);
}

static void
object_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = object_create;
  iface->append = object_append;
  iface->sync = object_sync;
  iface->close = object_close;
  iface->open = object_open;
  iface->read_at = object_read_at;
  iface->close_input = object_close_input;
  iface->rename = object_rename;
  iface->remove = object_remove;
  iface->list = object_list;
  iface->stat = object_stat;
  iface->sync_directory = object_sync_directory;
  iface->can_rename = object_can_rename;
  iface->abandon = object_abandon;
  iface->copy = object_copy;
  iface->read_versioned = object_read_versioned;
  iface->replace = object_replace;
  iface->sweep = object_sweep;
  iface->bound = object_bound;
}

static void
object_storage_finalize (GObject *object)
{
  MusterObjectStorage *self = MUSTER_OBJECT_STORAGE (object);
  process_unref (self->process);
  g_clear_object (&self->clock);
  g_clear_object (&self->cancellable);
  G_OBJECT_CLASS (muster_object_storage_parent_class)->finalize (object);
}

static void
muster_object_storage_class_init (MusterObjectStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = object_storage_finalize;
}

static void
muster_object_storage_init (MusterObjectStorage *self)
{
  self->deadline_us = MUSTER_WAIT_FOREVER;
}
