// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Memory for tensors' elements, aligned to 64 bytes. Freed buffers are kept for later tensors of
 * about the same size, up to a limit in bytes. After a snapshot every variable gets a new buffer;
 * reuse saves the kernel from providing and clearing the pages again. Any thread. */

#define MUSTER_BUFFER_ALIGNMENT 64

/* NULL if there isn't enough memory. It counts, but isn't refused because of the limit of memory
 * (base/memory_account_private.h). */
gpointer muster_buffer_alloc (gsize size);
/* The same; NULL with RESOURCE_EXHAUSTED over that limit too. */
gpointer muster_buffer_try_alloc (gsize size, GError **error);

/* size is the allocated size. */
void muster_buffer_free (gpointer buffer, gsize size);

/* The most bytes that are kept: an eighth of the machine's memory, at most 8 GB. That holds most
 * models, so each snapshot but the first reuses the pages of the one before. */
gsize muster_buffer_pool_limit (void);

/* Bytes kept now. */
gsize muster_buffer_pool_size (void);
/* Frees what is kept. */
void muster_buffer_pool_empty (void);

G_END_DECLS
