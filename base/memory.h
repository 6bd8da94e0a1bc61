// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* How much memory this process may have, in bytes: the machine's, or what its control group
 * (version 2) allows where that is less. Any thread. */
guint64 muster_memory_total (void);

/* The least memory.max of the group that cgroups names, a text as of /proc/self/cgroup, and of
 * those it is in, whose files are under root; G_MAXUINT64 where none is told. */
guint64 muster_memory_group_limit (const char *cgroups, const char *root);

/* As malloc (), for what may be large: large sizes ask for huge pages, since half of the time that
 * a large graph takes is page faults otherwise. Freed with free (). */
gpointer muster_memory_alloc (gsize size);

G_END_DECLS
