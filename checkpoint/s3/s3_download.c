// SPDX-License-Identifier: Apache-2.0
/* Reads an object. Opening it reads its beginning, which is all of a small one. The rest is read
 * by ranges of the version that was opened; a large read consists of several ranges at the same
 * time. */
#include "base/error.h"
#include "base/wait_private.h"
#include "checkpoint/s3/s3_pool_private.h"
#include "checkpoint/s3/s3_private.h"

#include <string.h>

/* Number of bytes that opening reads. */
#define HEAD_SIZE ((gsize)64 << 10)

/* Size of one range of a large read. */
#define PIECE_SIZE ((gsize)8 << 20)

struct _MusterStorageInput {
  char *path; /* (owned) */
  MusterS3Uri uri;
  char *etag; /* (owned) */
  guint64 size;
  guint8 *head; /* (owned) (nullable) */
  gsize n_head;
};

static MusterStorageInput *
new_input (const char *path, MusterS3Uri *uri, MusterS3Answer *answer)
{
  MusterStorageInput *input = g_new0 (MusterStorageInput, 1);
  input->path = g_strdup (path);
  input->uri = *uri;
  *uri = (MusterS3Uri){0};
  input->etag = g_steal_pointer (&answer->etag);
  input->size = answer->size;
  return input;
}

/* An empty object has no ranges. */
static MusterStorageInput *
open_empty (MusterS3Storage *self, const char *path, MusterS3Uri *uri, GError **error)
{
  g_auto (MusterS3Answer) answer = {0};
  return muster_s3_head (self, path, uri, &answer, error) ? new_input (path, uri, &answer) : NULL;
}

MusterStorageInput *
muster_s3_open (MusterS3Storage *self, const char *path, guint64 *size, GError **error)
{
  g_auto (MusterS3Uri) uri = {0};
  if (!muster_s3_object_uri (path, &uri, error))
    return NULL;
  g_autofree guint8 *head = g_malloc (HEAD_SIZE);
  g_autoptr (GError) why = NULL;
  g_auto (MusterS3Answer) answer = {0};
  const MusterS3Request request = {.operation = "GetObject",
                                   .path = path,
                                   .method = "GET",
                                   .uri = &uri,
                                   .sink = head,
                                   .sink_size = HEAD_SIZE};
  MusterStorageInput *input = NULL;
  if (muster_s3_request (self->client, &request, &self->bound, &answer, &why)) {
    input = new_input (path, &uri, &answer);
    input->head = g_realloc (g_steal_pointer (&head), MAX (1, answer.n_read));
    input->n_head = answer.n_read;
  } else if (g_strcmp0 (answer.code, "InvalidRange") == 0)
    input = open_empty (self, path, &uri, error);
  else
    g_propagate_error (error, g_steal_pointer (&why));
  if (input != NULL)
    *size = input->size;
  return input;
}

const char *
muster_s3_input_etag (const MusterStorageInput *input)
{
  return input->etag;
}

void
muster_s3_close_input (MusterStorageInput *input)
{
  g_free (input->path);
  muster_s3_uri_clear (&input->uri);
  g_free (input->etag);
  g_free (input->head);
  g_free (input);
}

static gboolean
read_range (MusterS3Storage *self, MusterStorageInput *input, guint64 offset, guint8 *buffer,
            gsize size, GError **error)
{
  g_autofree char *condition =
      input->etag != NULL ? g_strconcat ("if-match:", input->etag, NULL) : NULL;
  g_auto (MusterS3Answer) answer = {0};
  const MusterS3Request request = {.operation = "GetObject",
                                   .path = input->path,
                                   .method = "GET",
                                   .uri = &input->uri,
                                   .headers = {condition},
                                   .sink = buffer,
                                   .offset = offset,
                                   .sink_size = size,
                                   .is_pinned = condition != NULL};
  if (!muster_s3_request (self->client, &request, &self->bound, &answer, error))
    return FALSE;
  return answer.n_read == size ||
         muster_fail (error, MUSTER_ERROR_UNAVAILABLE,
                      "'%s': the store returned %" G_GSIZE_FORMAT " bytes of %" G_GSIZE_FORMAT,
                      input->path, answer.n_read, size);
}

/* A read in pieces. */
typedef struct {
  MusterS3Storage *storage;
  MusterStorageInput *input;
  GMutex lock;
  GCond changed;
  guint n_left;    /* guarded by lock */
  GError *failure; /* (owned) (nullable) the first one; guarded by lock */
} Reading;

typedef struct {
  Reading *reading;
  guint64 offset;
  guint8 *buffer;
  gsize size;
} Piece;

static gboolean
has_failed (Reading *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->failure != NULL;
}

static void
read_piece (gpointer data)
{
  g_autofree Piece *piece = data;
  Reading *self = piece->reading;
  GError *why = NULL;
  if (!has_failed (self))
    (void)read_range (self->storage, self->input, piece->offset, piece->buffer, piece->size, &why);
  g_mutex_lock (&self->lock);
  if (self->failure == NULL)
    self->failure = g_steal_pointer (&why);
  g_clear_error (&why);
  self->n_left--;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

/* No wait is unbounded: each piece ends by the deadline, or when it is cancelled. */
static void
wait_for_pieces (Reading *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  while (self->n_left > 0)
    muster_wait_change (&self->changed, &self->lock, MUSTER_WAIT_FOREVER);
}

static gboolean
read_pieces (MusterS3Storage *storage, MusterStorageInput *input, guint64 offset, guint8 *buffer,
             gsize size, GError **error)
{
  Reading self = {.storage = storage, .input = input};
  self.n_left = (guint)((size + PIECE_SIZE - 1) / PIECE_SIZE);
  g_mutex_init (&self.lock);
  g_cond_init (&self.changed);
  for (gsize at = 0; at < size; at += PIECE_SIZE) {
    Piece *piece = g_new (Piece, 1);
    *piece = (Piece){&self, offset + at, buffer + at, MIN (PIECE_SIZE, size - at)};
    muster_s3_pool_push (read_piece, piece);
  }
  wait_for_pieces (&self);
  g_cond_clear (&self.changed);
  g_mutex_clear (&self.lock);
  if (self.failure != NULL)
    g_propagate_error (error, self.failure);
  return self.failure == NULL;
}

gssize
muster_s3_read_at (MusterS3Storage *self, MusterStorageInput *input, guint64 offset, void *buffer,
                   gsize size, GError **error)
{
  if (offset >= input->size)
    return 0;
  size = (gsize)MIN (size, input->size - offset);
  gsize n = 0;
  if (offset < input->n_head) {
    n = (gsize)MIN (size, input->n_head - offset);
    memcpy (buffer, input->head + offset, n);
  }
  guint8 *rest = (guint8 *)buffer + n;
  if (n == size)
    return (gssize)size;
  const gboolean is_read = size - n > PIECE_SIZE
                               ? read_pieces (self, input, offset + n, rest, size - n, error)
                               : read_range (self, input, offset + n, rest, size - n, error);
  return is_read ? (gssize)size : -1;
}
