// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Memory for tensors' elements, aligned to 64 bytes. What is freed is kept for the next tensor of
 * about that size, up to a bound in bytes: pages that the kernel has already given needn't be asked
 * for, and cleared, again when every variable gets a new buffer after a snapshot. Any thread. */

#define MUSTER_BUFFER_ALIGNMENT 64

/* NULL if the memory isn't to be had. */
gpointer muster_buffer_alloc (gsize size);

/* size is what it was allocated with. */
void muster_buffer_free (gpointer buffer, gsize size);

/* How many bytes are kept at most: an eighth of the machine's memory, eight gigabytes at most. A
 * model's worth, where it fits, so that each snapshot but the first finds the pages of the one
 * before. */
gsize muster_buffer_pool_limit (void);

/* Bytes kept for reuse at present. */
gsize muster_buffer_pool_size (void);

G_END_DECLS
