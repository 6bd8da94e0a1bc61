// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct _MusterServer MusterServer;

/* Limits. Beyond one, requests are refused with RESOURCE_EXHAUSTED and the limit's name, and the
 * server continues. 0 is the default, given beside each. */
typedef struct {
  guint sessions;      /* 20,000 */
  gsize graph_bytes;   /* 1 GiB: of one session's graph */
  guint steps;         /* 1,000: running at once */
  guint watchers;      /* 50,000 */
  gsize request_bytes; /* 2 GiB - 1: of one message */
  guint spare_files;   /* 64: file descriptors kept free for the master's own files */
  gsize memory_bytes;  /* none: of the whole process (tensors, graphs, resources, messages), for all
                          of its servers and masters; the last server's */
} MusterServerLimits;

G_END_DECLS
