// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The memory that this process may use, in bytes: the machine's, or the limit of its control group
 * if that is lower. Any thread. */
guint64 muster_memory_total (void);

/* The lowest limit of a control group and its parents (memory.max and memory.high, or version 1's
 * memory.limit_in_bytes); G_MAXUINT64 if none is set. cgroups is a text like /proc/self/cgroup's,
 * which names the group; root is the folder of the groups' files. */
guint64 muster_memory_group_limit (const char *cgroups, const char *root);

/* Like malloc (). Large sizes request huge pages: otherwise half of the time to read a large graph
 * goes to page faults. Free with free (). */
gpointer muster_memory_alloc (gsize size);

G_END_DECLS
