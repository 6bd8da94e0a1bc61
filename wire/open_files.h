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

/* Has the process refuse a connection for which it has no descriptor left, instead of failing to
 * accept it: gRPC 1.51 never accepts again after that. One descriptor is kept for it from now on;
 * every accept4 () of the process goes through it. A server does so itself. */
void muster_open_files_keep_spare (void);

G_END_DECLS
