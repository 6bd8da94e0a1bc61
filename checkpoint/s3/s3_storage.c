// SPDX-License-Identifier: Apache-2.0
/* The store `s3://` as a MusterStorage: each function resolves the bucket's settings and passes
 * the operation to the file that implements it. */
#include "checkpoint/s3/s3_storage.h"

#include "base/error.h"
#include "checkpoint/s3/s3_private.h"

static void muster_s3_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterS3Storage, muster_s3_storage, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      muster_s3_storage_iface_init))

static MusterStorage *
new_storage (MusterS3Client *client, gint64 deadline_us, MusterClock *clock,
             GCancellable *cancellable)
{
  MusterS3Storage *self = g_object_new (MUSTER_TYPE_S3_STORAGE, NULL);
  self->client = client;
  self->bound = (MusterS3Bound){deadline_us, g_object_ref (clock),
                                cancellable != NULL ? g_object_ref (cancellable) : NULL};
  return MUSTER_STORAGE (self);
}

MusterStorage *
muster_s3_storage_new (const MusterS3Options *options, GError **error)
{
  MusterS3Client *client = muster_s3_client_new (options, error);
  return client != NULL ? new_storage (client, MUSTER_WAIT_FOREVER, client->clock, NULL) : NULL;
}

static MusterStorageFile *
s3_create (MusterStorage *self, const char *path, GError **error)
{
  return muster_s3_create (MUSTER_S3_STORAGE (self), path, error);
}

static gboolean
s3_reserve (MusterStorage *self, MusterStorageFile *file, guint64 size, GError **error)
{
  return muster_s3_reserve (MUSTER_S3_STORAGE (self), file, size, error);
}

static gboolean
s3_append (MusterStorage *self, MusterStorageFile *file, const void *data, gsize size,
           GError **error)
{
  return muster_s3_append (MUSTER_S3_STORAGE (self), file, data, size, error);
}

/* An object is durable once it is closed; before that it doesn't exist. */
static gboolean
s3_sync (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file G_GNUC_UNUSED,
         GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static gboolean
s3_close (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  return muster_s3_close (MUSTER_S3_STORAGE (self), file, error);
}

static void
s3_abandon (MusterStorage *self, MusterStorageFile *file)
{
  muster_s3_abandon (MUSTER_S3_STORAGE (self), file);
}

static MusterStorageInput *
s3_open (MusterStorage *self, const char *path, guint64 *size, GError **error)
{
  return muster_s3_open (MUSTER_S3_STORAGE (self), path, size, error);
}

static gssize
s3_read_at (MusterStorage *self, MusterStorageInput *input, guint64 offset, void *buffer,
            gsize size, GError **error)
{
  return muster_s3_read_at (MUSTER_S3_STORAGE (self), input, offset, buffer, size, error);
}

static void
s3_close_input (MusterStorage *self G_GNUC_UNUSED, MusterStorageInput *input)
{
  muster_s3_close_input (input);
}

static gboolean
s3_rename (MusterStorage *self G_GNUC_UNUSED, const char *from, const char *to, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "'%s': an object store can't rename it to '%s'; copy it", from, to);
}

static gboolean
s3_remove (MusterStorage *self, const char *path, GError **error)
{
  return muster_s3_remove (MUSTER_S3_STORAGE (self), path, error);
}

static char **
s3_list (MusterStorage *self, const char *directory, GError **error)
{
  return muster_s3_list (MUSTER_S3_STORAGE (self), directory, error);
}

static gboolean
s3_stat (MusterStorage *self, const char *path, MusterStorageInfo *info, GError **error)
{
  g_auto (MusterS3Uri) uri = {0};
  g_auto (MusterS3Answer) answer = {0};
  if (!muster_s3_object_uri (path, &uri, error) ||
      !muster_s3_head (MUSTER_S3_STORAGE (self), path, &uri, &answer, error))
    return FALSE;
  *info = (MusterStorageInfo){answer.size, answer.mtime_us};
  return TRUE;
}

static gboolean
s3_sync_directory (MusterStorage *self G_GNUC_UNUSED, const char *directory G_GNUC_UNUSED,
                   GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static gboolean
s3_takes (MusterStorage *self G_GNUC_UNUSED, const char *path)
{
  return g_str_has_prefix (path, MUSTER_S3_SCHEME);
}

static gboolean
s3_can_rename (MusterStorage *self G_GNUC_UNUSED, const char *path G_GNUC_UNUSED)
{
  return FALSE;
}

static gboolean
s3_copy (MusterStorage *self, const char *from, const char *to, GError **error)
{
  return muster_s3_copy (MUSTER_S3_STORAGE (self), from, to, error);
}

static GBytes *
s3_read_versioned (MusterStorage *self, const char *path, char **version, GError **error)
{
  guint64 size;
  MusterStorageInput *input = s3_open (self, path, &size, error);
  if (input == NULL)
    return NULL;
  GBytes *bytes = muster_storage_read_bytes_at (self, input, 0, size, error);
  if (bytes != NULL)
    *version = g_strdup (muster_s3_input_etag (input));
  muster_s3_close_input (input);
  return bytes;
}

static gboolean
s3_replace (MusterStorage *self, const char *path, const void *data, gsize size,
            const char *version, char **new_version, GError **error)
{
  g_auto (MusterS3Uri) uri = {0};
  if (!muster_s3_object_uri (path, &uri, error))
    return FALSE;
  char *etag = muster_s3_put (MUSTER_S3_STORAGE (self), path, &uri, data, size, version, error);
  *new_version = etag;
  return etag != NULL;
}

static gboolean
s3_sweep (MusterStorage *self, const char *directory, gint64 before_us, GError **error)
{
  return muster_s3_sweep (MUSTER_S3_STORAGE (self), directory, before_us, error);
}

static MusterStorage *
s3_bound (MusterStorage *self, gint64 deadline_us, MusterClock *clock, GCancellable *cancellable)
{
  MusterS3Client *client = MUSTER_S3_STORAGE (self)->client;
  return new_storage (muster_s3_client_ref (client), deadline_us,
                      clock != NULL ? clock : muster_system_clock (), cancellable);
}

static void
muster_s3_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = s3_create;
  iface->reserve = s3_reserve;
  iface->append = s3_append;
  iface->sync = s3_sync;
  iface->close = s3_close;
  iface->abandon = s3_abandon;
  iface->open = s3_open;
  iface->read_at = s3_read_at;
  iface->close_input = s3_close_input;
  iface->rename = s3_rename;
  iface->remove = s3_remove;
  iface->list = s3_list;
  iface->stat = s3_stat;
  iface->sync_directory = s3_sync_directory;
  iface->takes = s3_takes;
  iface->can_rename = s3_can_rename;
  iface->copy = s3_copy;
  iface->read_versioned = s3_read_versioned;
  iface->replace = s3_replace;
  iface->sweep = s3_sweep;
  iface->bound = s3_bound;
}

static void
muster_s3_storage_finalize (GObject *object)
{
  MusterS3Storage *self = MUSTER_S3_STORAGE (object);
  muster_s3_client_unref (self->client);
  g_object_unref (self->bound.clock);
  g_clear_object (&self->bound.cancellable);
  G_OBJECT_CLASS (muster_s3_storage_parent_class)->finalize (object);
}

static void
muster_s3_storage_class_init (MusterS3StorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_s3_storage_finalize;
}

static void
muster_s3_storage_init (MusterS3Storage *self G_GNUC_UNUSED)
{
}
