// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/http_private.h"

G_BEGIN_DECLS

/* What all transfers of the process share: threads, and the memory of uploads. */

/* How many transfers run at the same time. */
#define MUSTER_S3_THREADS 6

/* The most that uploads hold, whatever is written. With the connections' own buffers it stays below
 * 64 MiB. */
#define MUSTER_S3_BUFFERS_MAX ((gsize)48 << 20)

typedef void (*MusterS3Task) (gpointer data);

/* Runs task (data) on a thread soon. A task may wait for the network, never for another task. */
void muster_s3_pool_push (MusterS3Task task, gpointer data);

/* The usual size of a buffer. Those of this size are used again while there are others: new memory
 * costs the system as much time as sending it. */
#define MUSTER_S3_BUFFER_SIZE ((gsize)8 << 20)

/* A buffer of the memory for uploads, as soon as others are sent. A writer goes over the limit
 * where nothing is being sent, since waiting wouldn't help: where one thread fills many files at
 * the same time. NULL with an error. */
guint8 *muster_s3_buffers_take (gsize size, const MusterS3Bound *bound, GError **error);
void muster_s3_buffers_give (guint8 *buffer, gsize size); /* accepts NULL */

/* A buffer is being sent, or has been. */
void muster_s3_buffers_begin_sending (void);
void muster_s3_buffers_end_sending (void);

G_END_DECLS
