// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/output/log_message.h"

G_BEGIN_DECLS

/* MusterLogQueue writes messages on a thread of its own, in their order. Whoever logs doesn't wait:
 * a write to a file may take seconds on a busy disk, and one to a pipe until its reader reads. What
 * doesn't fit into the queue is dropped; the next message reports how many were ("dropped"). Any
 * thread. */
typedef struct _MusterLogQueue MusterLogQueue;

/* May block. */
typedef void (*MusterLogWrite) (const MusterLogMessage *message, gpointer user_data);

/* max_bytes: of messages that wait, without those that are being written. */
MusterLogQueue *muster_log_queue_new (gsize max_bytes, MusterLogWrite write, gpointer user_data);
/* Writes what waits. */
void muster_log_queue_free (MusterLogQueue *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterLogQueue, muster_log_queue_free)

void muster_log_queue_add (MusterLogQueue *self, const MusterLogMessage *message);

/* Waits until all is written; FALSE if it isn't by deadline_us. */
gboolean muster_log_queue_flush (MusterLogQueue *self, gint64 deadline_us);

G_END_DECLS
