// SPDX-License-Identifier: Apache-2.0
/* Writes a file. A small one becomes one request when it is closed. Of a larger one, parts are
 * sent while it grows, several at the same time, and closing it completes the upload. */
#include "base/cancel_link_private.h"
#include "base/error.h"
#include "base/wait_private.h"
#include "checkpoint/s3/s3_pool_private.h"
#include "checkpoint/s3/s3_private.h"

#include <string.h>

/* All parts of an upload except the last have the same size, as some stores require. */
#define PART_SIZE  MUSTER_S3_BUFFER_SIZE
#define PARTS_MAX  10000
#define LARGEST    (MUSTER_S3_BUFFERS_MAX / 2)
#define FIRST_SIZE ((gsize)256 << 10)

struct _MusterStorageFile {
  char *path; /* (owned) */
  MusterS3Uri uri;
  char *mark;            /* (owned) */
  MusterS3Upload upload; /* begun once a part was filled */
  guint8 *buffer;        /* (owned) (nullable) the part that is being filled */
  gsize n_buffered;      /* bytes in it */
  gsize buffer_size;     /* what it holds; taken from the memory for uploads */
  gsize part_size;
  GMutex lock;
  GCond changed;
  GPtrArray *parts;   /* (owned) the description of each, NULL while it is sent; guarded by lock */
  guint n_running;    /* guarded by lock */
  GError *failure;    /* (owned) (nullable) the first, guarded by lock */
  GCancellable *stop; /* (owned) cancelled when one part has failed, or the file is abandoned */
};

MusterStorageFile *
muster_s3_create (MusterS3Storage *self G_GNUC_UNUSED, const char *path, GError **error)
{
  g_auto (MusterS3Uri) uri = {0};
  if (!muster_s3_object_uri (path, &uri, error))
    return NULL;
  MusterStorageFile *file = g_new0 (MusterStorageFile, 1);
  file->path = g_strdup (path);
  file->uri = uri;
  uri = (MusterS3Uri){0};
  file->mark = g_uuid_string_random ();
  file->stop = g_cancellable_new ();
  file->part_size = PART_SIZE;
  g_mutex_init (&file->lock);
  g_cond_init (&file->changed);
  file->parts = g_ptr_array_new_with_free_func (g_free);
  return file;
}

static void
drop_buffer (MusterStorageFile *file)
{
  muster_s3_buffers_give (g_steal_pointer (&file->buffer), file->buffer_size);
  file->buffer_size = file->n_buffered = 0;
}

static void
free_file (MusterStorageFile *file)
{
  drop_buffer (file);
  g_free (file->path);
  muster_s3_uri_clear (&file->uri);
  g_free (file->mark);
  g_free (file->upload.id);
  g_ptr_array_unref (file->parts);
  g_clear_error (&file->failure);
  g_object_unref (file->stop);
  g_cond_clear (&file->changed);
  g_mutex_clear (&file->lock);
  g_free (file);
}

/* The size determines the size of the parts, since their number is limited. */
gboolean
muster_s3_reserve (MusterS3Storage *self G_GNUC_UNUSED, MusterStorageFile *file, guint64 size,
                   GError **error)
{
  const guint64 needed = size / PARTS_MAX + 1;
  if (needed > LARGEST)
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "'%s': %" G_GUINT64_FORMAT " bytes are more than an object can have; write "
                        "more shards",
                        file->path, size);
  if (file->upload.id == NULL && file->n_buffered == 0)
    file->part_size = MAX (PART_SIZE, (gsize)needed);
  return TRUE;
}

/* A filled part on its way. */
typedef struct {
  MusterS3Storage *storage; /* (owned) */
  MusterStorageFile *file;
  guint8 *data; /* (owned) */
  gsize size;
  gsize buffer_size;
  guint number; /* from 1 */
} Part;

static char *
send_stoppable (Part *self, GError **error)
{
  const MusterS3Bound *bound = &self->storage->bound;
  const MusterStorageFile *file = self->file;
  g_auto (MusterCancelLink) link = muster_cancel_link (bound->cancellable, file->stop);
  g_autoptr (MusterStorage) storage = muster_storage_bound (
      MUSTER_STORAGE (self->storage), bound->deadline_us, bound->clock, link.cancellable);
  return muster_s3_upload_part (MUSTER_S3_STORAGE (storage), file->path, &file->uri, &file->upload,
                                self->number, self->data, self->size, error);
}

/* Notes the first failure, which is the file's, and stops the other parts. */
static void
fail (MusterStorageFile *file, GError *why)
{
  g_mutex_lock (&file->lock);
  if (file->failure == NULL)
    file->failure = g_steal_pointer (&why);
  g_mutex_unlock (&file->lock);
  g_clear_error (&why);
  g_cancellable_cancel (file->stop);
}

/* Ends a part, which doesn't use the file after this. */
static void
end_part (MusterStorageFile *file, guint number, char *part)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&file->lock);
  file->parts->pdata[number - 1] = part;
  file->n_running--;
  g_cond_broadcast (&file->changed);
}

static void
send_part (gpointer data)
{
  g_autofree Part *self = data;
  GError *why = NULL;
  char *part = send_stoppable (self, &why);
  if (part == NULL)
    fail (self->file, why);
  g_object_unref (self->storage);
  muster_s3_buffers_give (self->data, self->buffer_size);
  muster_s3_buffers_end_sending ();
  end_part (self->file, self->number, part);
}

/* Sends the buffer as the next part. */
static gboolean
flush (MusterS3Storage *self, MusterStorageFile *file, GError **error)
{
  if (file->upload.id == NULL && !muster_s3_upload_begin (self, file->path, &file->uri, file->mark,
                                                          TRUE, &file->upload, error))
    return FALSE;
  if (file->parts->len == PARTS_MAX)
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "'%s': it has more than %d parts; reserve its size before writing, or "
                        "write more shards",
                        file->path, PARTS_MAX);
  Part *part = g_new (Part, 1);
  g_mutex_lock (&file->lock);
  g_ptr_array_add (file->parts, NULL);
  *part = (Part){g_object_ref (self), file, file->buffer, file->n_buffered, file->buffer_size,
                 file->parts->len};
  file->n_running++;
  g_mutex_unlock (&file->lock);
  file->buffer = NULL;
  file->buffer_size = file->n_buffered = 0;
  muster_s3_buffers_begin_sending ();
  muster_s3_pool_push (send_part, part);
  return TRUE;
}

/* Makes space in the buffer, which grows: a small file doesn't take a whole part's memory. */
static gboolean
make_space (MusterS3Storage *self, MusterStorageFile *file, gsize wanted, GError **error)
{
  const gsize size = file->n_buffered + wanted <= FIRST_SIZE && file->upload.id == NULL
                         ? FIRST_SIZE
                         : file->part_size;
  if (size <= file->buffer_size)
    return TRUE;
  guint8 *buffer = muster_s3_buffers_take (size, &self->bound, error);
  if (buffer == NULL) {
    g_prefix_error (error, "'%s': ", file->path);
    return FALSE;
  }
  if (file->n_buffered > 0)
    memcpy (buffer, file->buffer, file->n_buffered);
  muster_s3_buffers_give (file->buffer, file->buffer_size);
  file->buffer = buffer;
  file->buffer_size = size;
  return TRUE;
}

/* Returns the failure of a part that was sent in the background. */
static gboolean
check_parts (MusterStorageFile *file, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&file->lock);
  if (file->failure == NULL)
    return TRUE;
  g_propagate_error (error, g_error_copy (file->failure));
  return FALSE;
}

gboolean
muster_s3_append (MusterS3Storage *self, MusterStorageFile *file, const void *data, gsize size,
                  GError **error)
{
  for (const guint8 *at = data; size > 0;) {
    if (!check_parts (file, error))
      return FALSE;
    if (file->n_buffered == file->part_size && !flush (self, file, error))
      return FALSE;
    if (!make_space (self, file, size, error))
      return FALSE;
    const gsize n = MIN (size, MIN (file->buffer_size, file->part_size) - file->n_buffered);
    memcpy (file->buffer + file->n_buffered, at, n);
    file->n_buffered += n;
    at += n;
    size -= n;
  }
  return TRUE;
}

/* No wait is unbounded: each part ends by the store's deadline, or when it is cancelled. */
static void
wait_for_parts (MusterStorageFile *file)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&file->lock);
  while (file->n_running > 0)
    muster_wait_change (&file->changed, &file->lock, MUSTER_WAIT_FOREVER);
}

static gboolean
put_whole (MusterS3Storage *self, MusterStorageFile *file, GError **error)
{
  g_autofree char *etag =
      muster_s3_put (self, file->path, &file->uri, file->buffer, file->n_buffered, "", error);
  return etag != NULL;
}

gboolean
muster_s3_close (MusterS3Storage *self, MusterStorageFile *file, GError **error)
{
  gboolean is_written;
  if (file->upload.id == NULL && file->n_buffered <= file->part_size)
    is_written = put_whole (self, file, error);
  else {
    is_written = file->n_buffered == 0 || flush (self, file, error);
    wait_for_parts (file);
    is_written = is_written && check_parts (file, error) &&
                 muster_s3_upload_complete (self, file->path, &file->uri, &file->upload, file->mark,
                                            file->parts, error);
    if (!is_written && file->upload.id != NULL)
      muster_s3_upload_abort_quietly (self, file->path, &file->uri, &file->upload);
  }
  free_file (file);
  return is_written;
}

void
muster_s3_abandon (MusterS3Storage *self, MusterStorageFile *file)
{
  g_cancellable_cancel (file->stop);
  wait_for_parts (file);
  if (file->upload.id != NULL)
    muster_s3_upload_abort_quietly (self, file->path, &file->uri, &file->upload);
  free_file (file);
}
