// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterEventWriter writes an event file for TensorBoard: tensorflow.Event messages in TFRecord
 * frames, DIRECTORY/events.out.tfevents.SECONDS.HOST.PID. Events are buffered, and written by a
 * flush, two minutes after the last one, or at a megabyte. Any thread. */

typedef struct _MusterEventWriter MusterEventWriter;

/* Creates the directory and the file. clock NULL: the machine's. */
MusterEventWriter *muster_event_writer_new (const char *directory, MusterClock *clock,
                                            GError **error);
MusterEventWriter *muster_event_writer_ref (MusterEventWriter *self);
/* The last reference flushes and closes. */
void muster_event_writer_unref (MusterEventWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterEventWriter, muster_event_writer_unref)

/* The file's path; borrowed. */
const char *muster_event_writer_path (MusterEventWriter *self);

/* A serialised tensorflow.Summary, as from a summary op. */
gboolean muster_event_writer_add_summary (MusterEventWriter *self, const void *summary, gsize size,
                                          gint64 step, GError **error);
/* A number with a tag. */
gboolean muster_event_writer_add_scalar (MusterEventWriter *self, const char *tag, float value,
                                         gint64 step, GError **error);
/* A serialised GraphDef and MetaGraphDef. */
gboolean muster_event_writer_add_graph (MusterEventWriter *self, GBytes *graph, GError **error);
gboolean muster_event_writer_add_meta_graph (MusterEventWriter *self, GBytes *meta_graph,
                                             gint64 step, GError **error);

typedef enum {
  MUSTER_SESSION_LOG_START = 1, /* later steps of an earlier run are replaced by what follows */
  MUSTER_SESSION_LOG_STOP = 2,
  MUSTER_SESSION_LOG_CHECKPOINT = 3,
} MusterSessionLog;

/* path (nullable) is the checkpoint's. */
gboolean muster_event_writer_add_session_log (MusterEventWriter *self, MusterSessionLog what,
                                              const char *path, gint64 step, GError **error);

/* A serialised RunMetadata with a tag ("step_100"). */
gboolean muster_event_writer_add_run_metadata (MusterEventWriter *self, const char *tag,
                                               GBytes *metadata, gint64 step, GError **error);

gboolean muster_event_writer_flush (MusterEventWriter *self, GError **error);

G_END_DECLS
