// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/output/log_message.h"

G_BEGIN_DECLS

/* MusterLogQueue writes messages in order on a separate thread, so that logging doesn't block: a
 * write to a file may take seconds on a busy disk, and a write to a pipe may wait for its reader.
 * Messages that don't fit in the queue are dropped; the event "dropped" reports their number at the
 * same place. Any thread. */
typedef struct _MusterLogQueue MusterLogQueue;

/* Writes a message. May block. */
typedef void (*MusterLogWrite) (const MusterLogMessage *message, gpointer user_data);

/* max_bytes: limit of the queued messages, without those that are being written. */
MusterLogQueue *muster_log_queue_new (gsize max_bytes, MusterLogWrite write, gpointer user_data);
/* Writes the queued messages. */
void muster_log_queue_free (MusterLogQueue *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterLogQueue, muster_log_queue_free)

void muster_log_queue_add (MusterLogQueue *self, const MusterLogMessage *message);

/* Waits until all messages are written. FALSE if some aren't by deadline_us. */
gboolean muster_log_queue_flush (MusterLogQueue *self, gint64 deadline_us);

G_END_DECLS
