// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/**
 * MusterEventWriter:
 *
 * Writes an event file for TensorBoard, like TensorFlow's `FileWriter`: `tensorflow.Event` messages
 * in TFRecord frames, DIRECTORY/events.out.tfevents.SECONDS.HOST.PID. Events are buffered, and
 * written by a flush, two minutes after the last one, or at a megabyte. Those that can't be
 * written, because the disk is full, are logged once and kept for the next time, as long as they
 * take no more than two megabytes. Reference-counted. Any thread.
 */
typedef struct _MusterEventWriter MusterEventWriter;

#define MUSTER_TYPE_EVENT_WRITER (muster_event_writer_get_type ())
GType muster_event_writer_get_type (void);

/**
 * muster_event_writer_new:
 * @directory: where to write; created if it doesn't exist
 * @clock: (nullable): NULL: the machine's
 *
 * Creates the directory and the file; on a full disk later, as soon as there is space.
 *
 * Returns: (transfer full): the writer
 */
MusterEventWriter *muster_event_writer_new (const char *directory, MusterClock *clock,
                                            GError **error);

/**
 * muster_event_writer_ref:
 * @self: the writer
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self
 */
MusterEventWriter *muster_event_writer_ref (MusterEventWriter *self);

/**
 * muster_event_writer_unref:
 * @self: (transfer full) (nullable): the writer
 *
 * Drops a reference. The last one flushes and closes.
 */
void muster_event_writer_unref (MusterEventWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterEventWriter, muster_event_writer_unref)

/**
 * muster_event_writer_path:
 * @self: the writer
 *
 * The file.
 *
 * Returns: its path, borrowed
 */
const char *muster_event_writer_path (MusterEventWriter *self);

/**
 * muster_event_writer_add_summary:
 * @self: the writer
 * @summary: (array length=size) (element-type guint8): a serialised `tensorflow.Summary`, as from a
 *   summary op
 * @size: its bytes
 * @step: the global step
 *
 * Writes a summary.
 *
 * Returns: FALSE with an error if it is larger than 2 GiB
 */
gboolean muster_event_writer_add_summary (MusterEventWriter *self, const void *summary, gsize size,
                                          gint64 step, GError **error);

/**
 * muster_event_writer_add_scalar:
 * @self: the writer
 * @tag: the name of its curve
 * @value: the number
 * @step: the global step
 *
 * Writes a number with a tag.
 *
 * Returns: FALSE with an error if it is larger than 2 GiB
 */
gboolean muster_event_writer_add_scalar (MusterEventWriter *self, const char *tag, float value,
                                         gint64 step, GError **error);

/**
 * muster_event_writer_add_graph:
 * @self: the writer
 * @graph: a serialised `GraphDef`
 *
 * Writes the graph.
 *
 * Returns: FALSE with an error if it is larger than 2 GiB
 */
gboolean muster_event_writer_add_graph (MusterEventWriter *self, GBytes *graph, GError **error);

/**
 * muster_event_writer_add_meta_graph:
 * @self: the writer
 * @meta_graph: a serialised `MetaGraphDef`
 * @step: the global step
 *
 * Writes the meta graph.
 *
 * Returns: FALSE with an error if it is larger than 2 GiB
 */
gboolean muster_event_writer_add_meta_graph (MusterEventWriter *self, GBytes *meta_graph,
                                             gint64 step, GError **error);

/**
 * MusterSessionLog:
 * @MUSTER_SESSION_LOG_START: a run starts: later steps of an earlier run are replaced by what
 *   follows
 * @MUSTER_SESSION_LOG_STOP: a run stops
 * @MUSTER_SESSION_LOG_CHECKPOINT: a checkpoint was saved
 *
 * What a session log says, with the numbers of TensorFlow's `SessionLog`.
 */
typedef enum {
  MUSTER_SESSION_LOG_START = 1,
  MUSTER_SESSION_LOG_STOP = 2,
  MUSTER_SESSION_LOG_CHECKPOINT = 3,
} MusterSessionLog;

/**
 * muster_event_writer_add_session_log:
 * @self: the writer
 * @what: what has happened
 * @path: (nullable): the checkpoint's
 * @step: the global step
 *
 * Writes a session log.
 *
 * Returns: FALSE with an error if it is larger than 2 GiB
 */
gboolean muster_event_writer_add_session_log (MusterEventWriter *self, MusterSessionLog what,
                                              const char *path, gint64 step, GError **error);

/**
 * muster_event_writer_add_run_metadata:
 * @self: the writer
 * @tag: its name: "step_100"
 * @metadata: a serialised `RunMetadata`
 * @step: the global step
 *
 * Writes a run's metadata.
 *
 * Returns: FALSE with an error if it is larger than 2 GiB
 */
gboolean muster_event_writer_add_run_metadata (MusterEventWriter *self, const char *tag,
                                               GBytes *metadata, gint64 step, GError **error);

/**
 * muster_event_writer_flush:
 * @self: the writer
 *
 * Writes what is buffered.
 *
 * Returns: FALSE with an error if the file can't be written
 */
gboolean muster_event_writer_flush (MusterEventWriter *self, GError **error);

G_END_DECLS
