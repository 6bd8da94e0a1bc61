// SPDX-License-Identifier: Apache-2.0
/* Writes event files for TensorBoard, as TFRecords of the Event messages. Events are buffered;
 * what can't be written stays in the buffer for the next flush. */
#include "train/hooks/event_writer.h"

#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/files/local_path_private.h"
#include "base/log_private.h"
#include "base/protowire_private.h"
#include "base/require_private.h"
#include "checkpoint/store/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <unistd.h>

#define FLUSH_EVERY_US (120 * MUSTER_SECOND)
#define BUFFER_MAX     (1024 * 1024)

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
  int fd;
  GByteArray *buffer; /* (owned) */
  gint64 flushed_us;
};

static gboolean
fail_write (MusterEventWriter *self, const char *what, GError **error)
{
  int code = errno;
  g_set_error (error, G_FILE_ERROR, (gint)g_file_error_from_errno (code), "'%s': could not %s: %s",
               self->path, what, g_strerror (code));
  return FALSE;
}

/* Writes the buffer. Data that can't be written stays for the next flush, unless the buffer is
 * full. */
static gboolean
flush (MusterEventWriter *self, GError **error)
{
  gsize written = 0;
  gboolean is_well = TRUE;
  while (is_well && written < self->buffer->len) {
    ssize_t n = write (self->fd, self->buffer->data + written, self->buffer->len - written);
    if (n >= 0)
      written += (gsize)n;
    else if (errno != EINTR)
      is_well = fail_write (self, "write events", error);
  }
  g_byte_array_remove_range (self->buffer, 0, (guint)written);
  self->flushed_us = muster_clock_now_us (self->clock);
  return is_well;
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
  gboolean is_due = self->buffer->len > BUFFER_MAX ||
                    muster_clock_now_us (self->clock) - self->flushed_us >= FLUSH_EVERY_US;
  gboolean is_well = !is_due || flush (self, error);
  if (self->buffer->len > 2 * BUFFER_MAX) /* bounds the memory while the disk is full */
    g_byte_array_set_size (self->buffer, 0);
  g_mutex_unlock (&self->lock);
  return is_well;
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
  g_autoptr (MusterEventWriter) self = g_new0 (MusterEventWriter, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->fd = -1;
  self->clock = g_object_ref (clock ? clock : muster_system_clock ());
  self->buffer = g_byte_array_new ();
  self->path = path_in (directory, self->clock);
  if (g_mkdir_with_parents (directory, 0777) < 0) {
    fail_write (self, "make its directory", error);
    return NULL;
  }
  self->fd = open (self->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (self->fd < 0) {
    fail_write (self, "create it", error);
    return NULL;
  }
  self->flushed_us = muster_clock_now_us (self->clock);
  if (!add (self, EVENT_FILE_VERSION, version, strlen (version), 0, error) ||
      !muster_event_writer_flush (self, error))
    return NULL;
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
  if (self->fd >= 0) {
    g_autoptr (GError) failure = NULL;
    if (!flush (self, &failure))
      muster_log (G_LOG_LEVEL_INFO, "summary", "MESSAGE", "%s", failure->message);
    close (self->fd);
  }
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
