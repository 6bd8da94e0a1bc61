// SPDX-License-Identifier: Apache-2.0
/* The default store: it sends each path to the store of its scheme, local files or one that was
 * offered (`s3://`). A server's is confined to data directories and prefixes; is_within () decides,
 * before a store is asked. */
#include "checkpoint/stores/default_storage.h"

#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/s3/s3_storage.h"
#include "checkpoint/store/storage_private.h"

#include <string.h>

/* --- the stores that there are --- */

typedef struct {
  char *scheme; /* (owned) */
  MusterStorageFactory factory;
  MusterStorage *storage; /* (owned) (nullable) created when it is first needed */
} Offer;

static GMutex offers_lock;
static GArray *offers; /* guarded by offers_lock: (element-type Offer), never freed */

static MusterStorage *
make_s3 (GError **error)
{
  return muster_s3_storage_new (NULL, error);
}

static void
add_offer (const char *scheme, MusterStorageFactory factory)
{
  const Offer offer = {.scheme = g_strdup (scheme), .factory = factory};
  g_array_append_val (offers, offer);
}

/* With the lock. */
static Offer *
find_offer (const char *scheme, gsize size)
{
  if (offers == NULL) {
    offers = g_array_new (FALSE, FALSE, sizeof (Offer));
    add_offer ("s3", make_s3);
  }
  for (guint i = 0; i < offers->len; i++) {
    Offer *offer = &g_array_index (offers, Offer, i);
    if (strlen (offer->scheme) == size && g_ascii_strncasecmp (offer->scheme, scheme, size) == 0)
      return offer;
  }
  return NULL;
}

void
muster_storage_offer (const char *scheme, MusterStorageFactory factory)
{
  g_return_if_fail (scheme != NULL && factory != NULL);
  g_mutex_lock (&offers_lock);
  Offer *known = find_offer (scheme, strlen (scheme));
  if (known != NULL)
    known->factory = factory;
  else
    add_offer (scheme, factory);
  g_mutex_unlock (&offers_lock);
}

static gboolean
is_offered (const char *path)
{
  g_mutex_lock (&offers_lock);
  const gboolean is_known = find_offer (path, strcspn (path, ":")) != NULL;
  g_mutex_unlock (&offers_lock);
  return is_known;
}

/* Returns the store of a path with a scheme. It belongs to the process. */
static MusterStorage *
storage_of_scheme (const char *path, GError **error)
{
  g_mutex_lock (&offers_lock);
  Offer *offer = find_offer (path, strcspn (path, ":"));
  if (offer != NULL && offer->storage == NULL)
    offer->storage = offer->factory (error);
  MusterStorage *storage = offer != NULL ? offer->storage : NULL;
  const gboolean is_unknown = offer == NULL;
  g_mutex_unlock (&offers_lock);
  if (is_unknown)
    muster_storage_check_path (muster_local_storage (), "path", path, error);
  return storage;
}

/* --- the store that sends each path to its own --- */

#define MUSTER_TYPE_DEFAULT_STORAGE (muster_default_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterDefaultStorage, muster_default_storage, MUSTER, DEFAULT_STORAGE,
                      GObject)

struct _MusterDefaultStorage {
  GObject parent;
  MusterStorage *local; /* (owned) (nullable) NULL: no local path */
  char **prefixes;      /* (owned) (nullable) those of other stores; NULL: all */
  char *described;      /* (owned) (nullable) what paths must be within */
  /* see muster_storage_bound () */
  gboolean is_bound;
  gint64 deadline_us;
  MusterClock *clock;        /* (owned) (nullable) */
  GCancellable *cancellable; /* (owned) (nullable) */
};

/* What another store made, and that store. */
struct _MusterStorageFile {
  MusterStorage *storage; /* (owned) */
  MusterStorageFile *its;
};

struct _MusterStorageInput {
  MusterStorage *storage; /* (owned) */
  MusterStorageInput *its;
};

struct _MusterStorageLock {
  MusterStorage *storage; /* (owned) */
  MusterStorageLock *its;
};

static void default_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterDefaultStorage, muster_default_storage, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      default_storage_iface_init))

MusterStorage *
muster_default_storage (void)
{
  static gsize storage;
  if (g_once_init_enter (&storage)) {
    MusterDefaultStorage *self = g_object_new (MUSTER_TYPE_DEFAULT_STORAGE, NULL);
    self->local = g_object_ref (muster_local_storage ());
    g_once_init_leave (&storage, (gsize)self);
  }
  return MUSTER_STORAGE ((gpointer)storage);
}

gboolean
muster_storage_is_local (MusterStorage *self, const char *path)
{
  g_return_val_if_fail (path != NULL, FALSE);
  return (self == NULL || self == muster_local_storage () || MUSTER_IS_DEFAULT_STORAGE (self)) &&
         muster_storage_is_file_path (path);
}

/* Refuses "." and "..", which could lead out of a prefix in a store that resolves them. */
static gboolean
is_plain (const char *path)
{
  g_auto (GStrv) names = g_strsplit (strstr (path, "://") + 3, "/", -1);
  for (char **name = names; *name != NULL; name++)
    if (strcmp (*name, ".") == 0 || strcmp (*name, "..") == 0)
      return FALSE;
  return TRUE;
}

static gboolean
is_within (const MusterDefaultStorage *self, const char *path)
{
  if (self->prefixes == NULL)
    return TRUE;
  for (char **prefix = self->prefixes; *prefix != NULL; prefix++) {
    const gsize n = strlen (*prefix);
    if (strncmp (path, *prefix, n) == 0 && (path[n] == '/' || path[n] == '\0'))
      return is_plain (path);
  }
  return FALSE;
}

/* A path's store (transfer full), bound like this one. */
static MusterStorage *
find (MusterStorage *storage, const char *path, GError **error)
{
  MusterDefaultStorage *self = MUSTER_DEFAULT_STORAGE (storage);
  const gboolean is_file = muster_storage_is_file_path (path);
  if (is_file ? self->local == NULL : !is_within (self, path)) {
    muster_fail (error, MUSTER_ERROR_PERMISSION_DENIED,
                 "'%s' is outside the server's data directories (%s); use a path in them", path,
                 self->described);
    return NULL;
  }
  MusterStorage *its = is_file ? self->local : storage_of_scheme (path, error);
  if (its == NULL)
    return NULL;
  return self->is_bound
             ? muster_storage_bound (its, self->deadline_us, self->clock, self->cancellable)
             : g_object_ref (its);
}

static MusterStorageFile *
default_create (MusterStorage *self, const char *path, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, path, error);
  MusterStorageFile *its = storage != NULL ? muster_storage_create (storage, path, error) : NULL;
  if (its == NULL)
    return NULL;
  MusterStorageFile *file = g_new (MusterStorageFile, 1);
  *file = (MusterStorageFile){g_steal_pointer (&storage), its};
  return file;
}

static gboolean
default_reserve (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file, guint64 size,
                 GError **error)
{
  return muster_storage_reserve (file->storage, file->its, size, error);
}

static gboolean
default_append (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file, const void *data,
                gsize size, GError **error)
{
  return muster_storage_append (file->storage, file->its, data, size, error);
}

static gboolean
default_sync (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file, GError **error)
{
  return muster_storage_sync (file->storage, file->its, error);
}

static void
file_free (MusterStorageFile *file)
{
  g_object_unref (file->storage);
  g_free (file);
}

static gboolean
default_close (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file, GError **error)
{
  const gboolean is_closed = muster_storage_close (file->storage, file->its, error);
  file_free (file);
  return is_closed;
}

static void
default_abandon (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file)
{
  muster_storage_abandon (file->storage, file->its);
  file_free (file);
}

static MusterStorageInput *
default_open (MusterStorage *self, const char *path, guint64 *size, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, path, error);
  MusterStorageInput *its =
      storage != NULL ? muster_storage_open (storage, path, size, error) : NULL;
  if (its == NULL)
    return NULL;
  MusterStorageInput *input = g_new (MusterStorageInput, 1);
  *input = (MusterStorageInput){g_steal_pointer (&storage), its};
  return input;
}

static gssize
default_read_at (MusterStorage *self G_GNUC_UNUSED, MusterStorageInput *input, guint64 offset,
                 void *buffer, gsize size, GError **error)
{
  return muster_storage_read_at (input->storage, input->its, offset, buffer, size, error);
}

static void
default_close_input (MusterStorage *self G_GNUC_UNUSED, MusterStorageInput *input)
{
  muster_storage_close_input (input->storage, input->its);
  g_object_unref (input->storage);
  g_free (input);
}

/* Returns the store of both paths; NULL with an error if they are in two stores. */
static MusterStorage *
find_both (MusterStorage *self, const char *from, const char *to, GError **error)
{
  g_autoptr (MusterStorage) target = find (self, to, error);
  g_autoptr (MusterStorage) source = target != NULL ? find (self, from, error) : NULL;
  if (source == NULL)
    return NULL;
  const gsize n = strcspn (from, ":") + 1;
  const gboolean are_files = muster_storage_is_file_path (from) && muster_storage_is_file_path (to);
  if (are_files || (!muster_storage_is_file_path (from) && !muster_storage_is_file_path (to) &&
                    g_ascii_strncasecmp (from, to, n) == 0))
    return g_steal_pointer (&target);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "'%s' and '%s' are in different stores",
               from, to);
  return NULL;
}

static gboolean
default_rename (MusterStorage *self, const char *from, const char *to, GError **error)
{
  g_autoptr (MusterStorage) storage = find_both (self, from, to, error);
  return storage != NULL && muster_storage_rename (storage, from, to, error);
}

static gboolean
default_copy (MusterStorage *self, const char *from, const char *to, GError **error)
{
  g_autoptr (MusterStorage) storage = find_both (self, from, to, error);
  return storage != NULL && muster_storage_copy (storage, from, to, error);
}

static gboolean
default_remove (MusterStorage *self, const char *path, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, path, error);
  return storage != NULL && muster_storage_remove (storage, path, error);
}

static char **
default_list (MusterStorage *self, const char *directory, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, directory, error);
  return storage != NULL ? muster_storage_list (storage, directory, error) : NULL;
}

static gboolean
default_stat (MusterStorage *self, const char *path, MusterStorageInfo *info, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, path, error);
  return storage != NULL && muster_storage_stat (storage, path, info, error);
}

static gboolean
default_sync_directory (MusterStorage *self, const char *directory, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, directory, error);
  return storage != NULL && muster_storage_sync_directory (storage, directory, error);
}

static gboolean
default_make_directory (MusterStorage *self, const char *directory, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, directory, error);
  return storage != NULL && muster_storage_make_directory (storage, directory, error);
}

static gboolean
default_free_space (MusterStorage *self, const char *directory, guint64 *bytes, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, directory, error);
  return storage != NULL && muster_storage_free_space (storage, directory, bytes, error);
}

static MusterStorageLock *
default_lock (MusterStorage *self, const char *path, MusterLockMode mode, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, path, error);
  MusterStorageLock *its =
      storage != NULL ? muster_storage_lock (storage, path, mode, error) : NULL;
  if (its == NULL)
    return NULL;
  MusterStorageLock *lock = g_new (MusterStorageLock, 1);
  *lock = (MusterStorageLock){g_steal_pointer (&storage), its};
  return lock;
}

static void
default_unlock (MusterStorage *self G_GNUC_UNUSED, MusterStorageLock *lock)
{
  muster_storage_unlock (lock->storage, lock->its);
  g_object_unref (lock->storage);
  g_free (lock);
}

/* Only the scheme counts here: the operation itself checks the directories and whether the
 * bucket exists. */
static gboolean
default_takes (MusterStorage *self G_GNUC_UNUSED, const char *path)
{
  return muster_storage_is_file_path (path) || is_offered (path);
}

/* If the store can't be determined, TRUE: the operation then reports why. */
static gboolean
default_can_rename (MusterStorage *self, const char *path)
{
  if (muster_storage_is_file_path (path))
    return TRUE;
  g_autoptr (MusterStorage) storage = find (self, path, NULL);
  return storage == NULL || muster_storage_can_rename (storage, path);
}

static GBytes *
default_read_versioned (MusterStorage *self, const char *path, char **version, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, path, error);
  return storage != NULL ? muster_storage_read_versioned (storage, path, version, error) : NULL;
}

static gboolean
default_replace (MusterStorage *self, const char *path, const void *data, gsize size,
                 const char *version, char **new_version, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, path, error);
  return storage != NULL &&
         muster_storage_replace (storage, path, data, size, version, new_version, error);
}

static gboolean
default_sweep (MusterStorage *self, const char *directory, gint64 before_us, GError **error)
{
  g_autoptr (MusterStorage) storage = find (self, directory, error);
  return storage != NULL && muster_storage_sweep (storage, directory, before_us, error);
}

static MusterStorage *
default_bound (MusterStorage *storage, gint64 deadline_us, MusterClock *clock,
               GCancellable *cancellable)
{
  const MusterDefaultStorage *self = MUSTER_DEFAULT_STORAGE (storage);
  MusterDefaultStorage *bound = g_object_new (MUSTER_TYPE_DEFAULT_STORAGE, NULL);
  bound->local = self->local != NULL ? g_object_ref (self->local) : NULL;
  bound->prefixes = g_strdupv (self->prefixes);
  bound->described = g_strdup (self->described);
  bound->is_bound = TRUE;
  bound->deadline_us = deadline_us;
  bound->clock = clock != NULL ? g_object_ref (clock) : NULL;
  bound->cancellable = cancellable != NULL ? g_object_ref (cancellable) : NULL;
  return MUSTER_STORAGE (bound);
}

static void
default_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = default_create;
  iface->reserve = default_reserve;
  iface->append = default_append;
  iface->sync = default_sync;
  iface->close = default_close;
  iface->open = default_open;
  iface->read_at = default_read_at;
  iface->close_input = default_close_input;
  iface->rename = default_rename;
  iface->remove = default_remove;
  iface->list = default_list;
  iface->stat = default_stat;
  iface->sync_directory = default_sync_directory;
  iface->make_directory = default_make_directory;
  iface->free_space = default_free_space;
  iface->lock = default_lock;
  iface->unlock = default_unlock;
  iface->takes = default_takes;
  iface->can_rename = default_can_rename;
  iface->abandon = default_abandon;
  iface->copy = default_copy;
  iface->read_versioned = default_read_versioned;
  iface->replace = default_replace;
  iface->sweep = default_sweep;
  iface->bound = default_bound;
}

static void
muster_default_storage_finalize (GObject *object)
{
  MusterDefaultStorage *self = MUSTER_DEFAULT_STORAGE (object);
  g_clear_object (&self->local);
  g_strfreev (self->prefixes);
  g_free (self->described);
  g_clear_object (&self->clock);
  g_clear_object (&self->cancellable);
  G_OBJECT_CLASS (muster_default_storage_parent_class)->finalize (object);
}

static void
muster_default_storage_class_init (MusterDefaultStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_default_storage_finalize;
}

static void
muster_default_storage_init (MusterDefaultStorage *self G_GNUC_UNUSED)
{
}

/* --- within some directories --- */

static gboolean
add_prefix (GStrvBuilder *prefixes, const char *directory, GError **error)
{
  if (!muster_storage_check_path (muster_default_storage (), "data directory", directory, error))
    return FALSE;
  g_autofree char *prefix = g_strdup (directory);
  for (gsize n = strlen (prefix); n > 0 && prefix[n - 1] == '/'; n--)
    prefix[n - 1] = '\0';
  if (strstr (prefix, "://") == NULL || !is_plain (prefix))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid data directory '%s': name a bucket, or a prefix in one without "
                        "'.' and '..'",
                        directory);
  g_strv_builder_add (prefixes, prefix);
  return TRUE;
}

MusterStorage *
muster_default_storage_new_within (const char *const *directories, GError **error)
{
  muster_require (error, NULL, directories);
  g_autoptr (GStrvBuilder) prefixes = g_strv_builder_new ();
  g_autoptr (GPtrArray) local = g_ptr_array_new ();
  for (const char *const *at = directories; *at != NULL; at++) {
    if (muster_storage_is_file_path (*at))
      g_ptr_array_add (local, (gpointer)*at);
    else if (!add_prefix (prefixes, *at, error))
      return NULL;
  }
  const gboolean has_local = local->len > 0;
  g_ptr_array_add (local, NULL);
  g_autoptr (MusterStorage) within =
      has_local ? muster_local_storage_new_within ((const char *const *)local->pdata, error) : NULL;
  if (has_local && within == NULL)
    return NULL;
  MusterDefaultStorage *self = g_object_new (MUSTER_TYPE_DEFAULT_STORAGE, NULL);
  g_autofree char *joined = g_strjoinv ("', '", (char **)directories);
  self->local = g_steal_pointer (&within);
  self->prefixes = g_strv_builder_end (prefixes);
  self->described = g_strdup_printf ("'%s'", joined);
  return MUSTER_STORAGE (self);
}
