// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* How many files and connections this process may hold open. Any thread may ask. */

/* Raises the soft limit to the hard one, as far as the system lets it. Returns the limit that then
 * holds (G_MAXINT: none). */
int muster_open_files_raise (void);

/* TRUE if more than `reserve` descriptors may still be opened, as the lowest free one tells: who is
 * about to take on something that needs descriptors can refuse it while it still can say so. Costs
 * three system calls. */
gboolean muster_open_files_left (guint reserve);

/* gRPC 1.51 never accepts again once accept4 () has failed for want of a descriptor. So
 * open_files.c defines accept4 () in libc's place, for the whole process, whoever calls it: on a
 * listener that doesn't block, a connection for which no descriptor is left is closed at once, and
 * accept4 () says EAGAIN. This sets aside the one descriptor that it takes to do so. A server calls
 * it itself; any number of times is fine. */
void muster_open_files_keep_spare (void);

G_END_DECLS
