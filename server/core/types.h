// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/fields_private.h"

G_BEGIN_DECLS

typedef struct _MusterServer MusterServer;

/**
 * MusterServerLimits:
 * @sessions: (attributes flag=max-sessions max=2147483647): maximum number of sessions; 0: 20000
 * @graph_bytes: (attributes flag=max-graph-bytes max=9223372036854775807): maximum size of a graph;
 *   0: 1 GiB
 * @steps: (attributes flag=max-steps max=2147483647): maximum number of steps at once; 0: 1000
 * @watchers: (attributes flag=max-watchers max=2147483647): maximum number of waiting clients; 0:
 *   50000
 * @request_bytes: (attributes flag=max-request-bytes max=2147483647): maximum size of a request; 0:
 *   2 GiB
 * @spare_files: file descriptors kept free for the master's own files; 0: 64
 * @memory_bytes: of the whole process (tensors, graphs, resources, messages), for all of its
 * servers and masters; the last server's; 0: no limit
 * @op_bytes: (attributes flag=max-op-bytes max=9223372036854775807): maximum memory that one
 *   operation allocates; 0: half of the machine's memory, or of the control group's limit. The
 *   engine enforces it, not the server
 *
 * Limits. Beyond one, requests are refused with RESOURCE_EXHAUSTED and the limit's name, and the
 * server continues.
 */
typedef struct {
  guint sessions;
  guint64 graph_bytes;
  guint steps;
  guint watchers;
  guint64 request_bytes;
  guint spare_files;
  guint64 memory_bytes;
  guint64 op_bytes;
} MusterServerLimits;

extern const MusterFields muster_server_limits_fields;

G_END_DECLS
