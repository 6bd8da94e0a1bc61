// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* How much memory this process holds for its clients, by use, and the limit of all of it together.
 * Code that allocates what a client asked for takes the bytes first, and gets RESOURCE_EXHAUSTED
 * over the limit. One account for the process: memory is the process's, whichever server, master or
 * session it is for. Any thread; no locks. Small amounts are collected by each thread, so that a
 * figure may be off by 16 KiB for each. */

typedef enum {
  MUSTER_MEMORY_TENSORS,    /* elements, and the buffers kept for the next ones */
  MUSTER_MEMORY_GRAPHS,     /* graphs and compiled steps; what sessions share counts once */
  MUSTER_MEMORY_RESOURCES,  /* lookup tables, queues */
  MUSTER_MEMORY_MESSAGES,   /* requests, and the tensors that still refer to their bytes */
  MUSTER_MEMORY_OPERATIONS, /* working space of the operations that run (base/budget_private.h) */
  MUSTER_N_MEMORY_USES,
} MusterMemoryUse;

/* "tensors", "graphs", … */
const char *muster_memory_use_name (MusterMemoryUse use);

/* 0: none, the default. With a limit, freed memory goes back to the system sooner. */
void muster_memory_set_limit (guint64 n_bytes);
guint64 muster_memory_limit (void);

/* Counts the bytes, unless they would exceed the limit: then RESOURCE_EXHAUSTED. */
gboolean muster_memory_take (MusterMemoryUse use, gsize n_bytes, GError **error);
/* Counts bytes that can't be refused, such as a few for a request that frees memory. */
void muster_memory_add (MusterMemoryUse use, gsize n_bytes);
void muster_memory_release (MusterMemoryUse use, gsize n_bytes);

guint64 muster_memory_used (MusterMemoryUse use);
guint64 muster_memory_used_in_all (void);
/* The bytes below the limit; G_MAXSIZE without one. */
gsize muster_memory_left (void);
/* How often bytes were refused. */
guint64 muster_memory_n_refused (void);

/* The bytes of this thread's last refusal, which others may release for another try; 0 if there was
 * none, or if so many never fit. To be forgotten once a request is answered, or once it has done
 * something that another try would do again. */
gsize muster_memory_refused_here (void);
void muster_memory_forget_refused (void);

/* Called without a lock before bytes are refused: frees what is kept only to be faster. One for the
 * process. */
void muster_memory_set_reserve (void (*free_reserve) (void));

G_END_DECLS
