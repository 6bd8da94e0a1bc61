// SPDX-License-Identifier: Apache-2.0
/* Writes event files for TensorBoard, as TFRecords of the Event messages. Events are buffered;
 * what can't be written stays in the buffer for the next flush. No training ends for want of
 * them: a write that fails is reported once, and is an error of a flush alone. */
#include "train/hooks/event_writer.h"

#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/files/local_path_private.h"
#include "base/log_private.h"
#include "base/protowire_private.h"
#include "base/require_private.h"
#include "checkpoint/store/storage.h"
#include "checkpoint/store/storage_failure_private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <unistd.h>

#define FLUSH_EVERY_US (120 * MUSTER_SECOND)
#define BUFFER_MAX     (1024 * 1024)
/* A record beside its event: the length, and both checksums. */
#define FRAME (sizeof (guint64) + 2 * sizeof (guint32))

/* tensorflow.Event, Summary, Summary.Value, SessionLog and TaggedRunMetadata */
enum {
  EVENT_WALL_TIME = 1,
  EVENT_STEP = 2,
  EVENT_FILE_VERSION = 3,
  EVENT_GRAPH = 4,
  EVENT_SUMMARY = 5,
  EVENT_SESSION_LOG = 7,
  EVENT_RUN_METADATA = 8,
  EVENT_META_GRAPH = 9,
  SUMMARY_VALUE = 1,
  VALUE_TAG = 1,
  VALUE_SIMPLE = 2,
  LOG_STATUS = 1,
  LOG_PATH = 2,
  TAGGED_TAG = 1,
  TAGGED_METADATA = 2,
};

struct _MusterEventWriter {
  gatomicrefcount refs;
  char *path;         /* (owned) */
  MusterClock *clock; /* (owned) */
  GMutex lock;
  /* guarded by lock */
  int fd;             /* -1: it couldn't be created yet */
  GByteArray *buffer; /* (owned) */
  gsize kept; /* of the buffer, where it is too large: the version, or the rest of a record that is
                 begun in the file */
  gint64 flushed_us;
  gboolean has_warned; /* since it could be written last */
};

static gboolean
fail_write (MusterEventWriter *self, const char *what, GError **error)
{
  int code = errno;
  g_set_error (error, G_FILE_ERROR, (gint)g_file_error_from_errno (code), "'%s': could not %s: %s",
               self->path, what, g_strerror (code));
  return FALSE;
}

static gboolean
open_file (MusterEventWriter *self, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (self->path);
  if (g_mkdir_with_parents (directory, 0777) < 0)
    return fail_write (self, "make its directory", error);
  self->fd = open (self->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  return self->fd >= 0 || fail_write (self, "create it", error);
}

/* What a record lacks in the file after so many bytes of the buffer. */
static gsize
rest_of_record (const MusterEventWriter *self, gsize written)
{
  gsize end = self->kept;
  while (end < written) {
    guint64 length;
    memcpy (&length, self->buffer->data + end, sizeof length);
    end += FRAME + (gsize)GUINT64_FROM_LE (length);
  }
  return end - written;
}

/* Writes the buffer. Data that can't be written stays for the next flush, unless the buffer is
 * full. */
static gboolean
flush (MusterEventWriter *self, GError **error)
{
  gsize written = 0;
  gboolean is_well = self->buffer->len == 0 || self->fd >= 0 || open_file (self, error);
  while (is_well && written < self->buffer->len) {
    ssize_t n = write (self->fd, self->buffer->data + written, self->buffer->len - written);
    if (n >= 0)
      written += (gsize)n;
    else if (errno != EINTR)
      is_well = fail_write (self, "write events", error);
  }
  self->kept = rest_of_record (self, written);
  g_byte_array_remove_range (self->buffer, 0, (guint)written);
  self->flushed_us = muster_clock_now_us (self->clock);
  self->has_warned = self->has_warned && !is_well;
  return is_well;
}

static void
warn (MusterEventWriter *self, const GError *failure)
{
  if (!self->has_warned)
    muster_log (G_LOG_LEVEL_WARNING, "summary", "MESSAGE",
                "%s; events are kept in memory, up to 2 MiB, and tried again every 2 minutes",
                failure->message);
  self->has_warned = TRUE;
}

static void
flush_or_warn (MusterEventWriter *self)
{
  g_autoptr (GError) failure = NULL;
  if (!flush (self, &failure))
    warn (self, failure);
}

static void
put_fixed (GByteArray *out, const void *little_endian, gsize size)
{
  g_byte_array_append (out, little_endian, (guint)size);
}

static void
put_crc (GByteArray *out, const void *data, gsize size)
{
  guint32 crc = GUINT32_TO_LE (muster_crc32c_mask (muster_crc32c_extend (0, data, size)));
  put_fixed (out, &crc, sizeof crc);
}

/* Appends a TFRecord: the length and its checksum, the data and its checksum. */
static void
put_record (GByteArray *out, const GByteArray *event)
{
  guint64 length = GUINT64_TO_LE (event->len);
  put_fixed (out, &length, sizeof length);
  put_crc (out, &length, sizeof length);
  g_byte_array_append (out, event->data, event->len);
  put_crc (out, event->data, event->len);
}

static GByteArray *
event_new (MusterEventWriter *self, gint64 step)
{
  GByteArray *event = g_byte_array_new ();
  double wall = (double)muster_clock_wall_us (self->clock) / (double)MUSTER_SECOND;
  muster_proto_put_double (event, EVENT_WALL_TIME, wall);
  muster_proto_put_uint (event, EVENT_STEP, (guint64)step);
  return event;
}

static gboolean
add (MusterEventWriter *self, guint32 field, const void *data, gsize size, gint64 step,
     GError **error)
{
  g_autoptr (GByteArray) event = event_new (self, step);
  if (size > G_MAXINT32) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "'%s': an event of %" G_GSIZE_FORMAT " bytes is too large for its readers",
                        self->path, size);
  }
  muster_proto_put_bytes (event, field, data, size);
  g_mutex_lock (&self->lock);
  put_record (self->buffer, event);
  if (self->buffer->len > BUFFER_MAX ||
      muster_clock_now_us (self->clock) - self->flushed_us >= FLUSH_EVERY_US)
    flush_or_warn (self);
  if (self->buffer->len > 2 * BUFFER_MAX) /* bounds the memory while the disk is full */
    g_byte_array_set_size (self->buffer, (guint)self->kept);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

/* --- adding events --- */

gboolean
muster_event_writer_add_summary (MusterEventWriter *self, const void *summary, gsize size,
                                 gint64 step, GError **error)
{
  muster_require (error, FALSE, self);
  muster_require_array (error, FALSE, summary, size);
  return add (self, EVENT_SUMMARY, summary, size, step, error);
}

gboolean
muster_event_writer_add_scalar (MusterEventWriter *self, const char *tag, float value, gint64 step,
                                GError **error)
{
  muster_require (error, FALSE, self, tag);

  g_autoptr (GByteArray) one = g_byte_array_new ();
  g_autoptr (GByteArray) summary = g_byte_array_new ();
  muster_proto_put_string (one, VALUE_TAG, tag);
  muster_proto_put_float (one, VALUE_SIMPLE, value);
  muster_proto_put_bytes (summary, SUMMARY_VALUE, one->data, one->len);
  return add (self, EVENT_SUMMARY, summary->data, summary->len, step, error);
}

gboolean
muster_event_writer_add_graph (MusterEventWriter *self, GBytes *graph, GError **error)
{
  muster_require (error, FALSE, self, graph);
  return add (self, EVENT_GRAPH, g_bytes_get_data (graph, NULL), g_bytes_get_size (graph), 0,
              error);
}

gboolean
muster_event_writer_add_meta_graph (MusterEventWriter *self, GBytes *meta_graph, gint64 step,
                                    GError **error)
{
  muster_require (error, FALSE, self, meta_graph);
  return add (self, EVENT_META_GRAPH, g_bytes_get_data (meta_graph, NULL),
              g_bytes_get_size (meta_graph), step, error);
}

gboolean
muster_event_writer_add_session_log (MusterEventWriter *self, MusterSessionLog what,
                                     const char *path, gint64 step, GError **error)
{
  muster_require (error, FALSE, self);

  g_autoptr (GByteArray) log = g_byte_array_new ();
  muster_proto_put_uint (log, LOG_STATUS, (guint64)what);
  muster_proto_put_string (log, LOG_PATH, path);
  return add (self, EVENT_SESSION_LOG, log->data, log->len, step, error);
}

gboolean
muster_event_writer_add_run_metadata (MusterEventWriter *self, const char *tag, GBytes *metadata,
                                      gint64 step, GError **error)
{
  muster_require (error, FALSE, self, tag, metadata);

  g_autoptr (GByteArray) tagged = g_byte_array_new ();
  muster_proto_put_string (tagged, TAGGED_TAG, tag);
  muster_proto_put_bytes (tagged, TAGGED_METADATA, g_bytes_get_data (metadata, NULL),
                          g_bytes_get_size (metadata));
  return add (self, EVENT_RUN_METADATA, tagged->data, tagged->len, step, error);
}

gboolean
muster_event_writer_flush (MusterEventWriter *self, GError **error)
{
  muster_require (error, FALSE, self);

  g_mutex_lock (&self->lock);
  gboolean is_well = flush (self, error);
  g_mutex_unlock (&self->lock);
  return is_well;
}

/* --- creating and closing --- */

static char *
path_in (const char *directory, MusterClock *clock)
{
  g_autofree char *name =
      g_strdup_printf ("events.out.tfevents.%010" G_GINT64_FORMAT ".%s.%d.%08x",
                       muster_clock_wall_us (clock) / MUSTER_SECOND, g_get_host_name (), getpid (),
                       (guint)(muster_clock_random (clock) * G_MAXUINT32));
  return g_build_filename (directory, name, NULL);
}

/* FALSE if it may pass: the disk is full, over its quota or broken. */
static gboolean
is_mistake (const GError *failure)
{
  return !muster_storage_failure_is_full (failure) &&
         !g_error_matches (failure, G_FILE_ERROR, G_FILE_ERROR_IO) &&
         !g_error_matches (failure, G_FILE_ERROR, G_FILE_ERROR_FAILED); /* a quota, for one */
}

G_DEFINE_BOXED_TYPE (MusterEventWriter, muster_event_writer, muster_event_writer_ref,
                     muster_event_writer_unref)

MusterEventWriter *
muster_event_writer_new (const char *directory, MusterClock *clock, GError **error)
{
  muster_require (error, NULL, directory);
  directory = muster_local_path (directory);

  static const char version[] = "brain.Event:2";

  if (!muster_storage_check_path (NULL, "event directory", directory, error))
    return NULL;
  g_autoptr (GError) failure = NULL;
  g_autoptr (MusterEventWriter) self = g_new0 (MusterEventWriter, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->fd = -1;
  self->clock = g_object_ref (clock ? clock : muster_system_clock ());
  self->buffer = g_byte_array_new ();
  self->path = path_in (directory, self->clock);
  self->flushed_us = muster_clock_now_us (self->clock);
  (void)add (self, EVENT_FILE_VERSION, version, strlen (version), 0, NULL);
  self->kept = self->buffer->len;
  if (!flush (self, &failure)) {
    if (is_mistake (failure)) {
      g_byte_array_set_size (self->buffer, 0);
      g_propagate_error (error, g_steal_pointer (&failure));
      return NULL;
    }
    warn (self, failure);
  }
  return g_steal_pointer (&self);
}

MusterEventWriter *
muster_event_writer_ref (MusterEventWriter *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_event_writer_unref (MusterEventWriter *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  flush_or_warn (self);
  if (self->fd >= 0)
    close (self->fd);
  g_byte_array_unref (self->buffer);
  g_object_unref (self->clock);
  g_mutex_clear (&self->lock);
  g_free (self->path);
  g_free (self);
}

const char *
muster_event_writer_path (MusterEventWriter *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->path;
}
