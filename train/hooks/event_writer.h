// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterEventWriter writes an event file that TensorBoard reads: tensorflow.Event messages in
 * TFRecord frames, DIRECTORY/events.out.tfevents.SECONDS.HOST.PID. What is added is buffered, and
 * written at a flush, when two minutes have passed since the last one, or at a megabyte. Any
 * thread. */

typedef struct _MusterEventWriter MusterEventWriter;

/* Makes the directory and the file. clock NULL: the machine's. */
MusterEventWriter *muster_event_writer_new (const char *directory, MusterClock *clock,
                                            GError **error);
MusterEventWriter *muster_event_writer_ref (MusterEventWriter *self);
/* The last reference flushes and closes. */
void muster_event_writer_unref (MusterEventWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterEventWriter, muster_event_writer_unref)

/* Where it writes; borrowed. */
const char *muster_event_writer_path (MusterEventWriter *self);

/* A serialised tensorflow.Summary, as a summary op yields it. */
gboolean muster_event_writer_add_summary (MusterEventWriter *self, const void *summary, gsize size,
                                          gint64 step, GError **error);
/* One number under a tag. */
gboolean muster_event_writer_add_scalar (MusterEventWriter *self, const char *tag, float value,
                                         gint64 step, GError **error);
/* A serialised GraphDef and MetaGraphDef. */
gboolean muster_event_writer_add_graph (MusterEventWriter *self, GBytes *graph, GError **error);
gboolean muster_event_writer_add_meta_graph (MusterEventWriter *self, GBytes *meta_graph,
                                             gint64 step, GError **error);

typedef enum {
  MUSTER_SESSION_LOG_START = 1, /* what follows replaces later steps of a run before */
  MUSTER_SESSION_LOG_STOP = 2,
  MUSTER_SESSION_LOG_CHECKPOINT = 3,
} MusterSessionLog;

/* path (nullable) is the checkpoint's. */
gboolean muster_event_writer_add_session_log (MusterEventWriter *self, MusterSessionLog what,
                                              const char *path, gint64 step, GError **error);

/* A serialised RunMetadata under a tag ("step_100"). */
gboolean muster_event_writer_add_run_metadata (MusterEventWriter *self, const char *tag,
                                               GBytes *metadata, gint64 step, GError **error);

gboolean muster_event_writer_flush (MusterEventWriter *self, GError **error);

G_END_DECLS
