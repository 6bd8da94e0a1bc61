// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The limit of open files and connections of this process. Any thread. */

/* Raises the soft limit to the hard limit, if the system allows it. Returns the limit then in force
 * (G_MAXINT: none). */
int muster_open_files_raise (void);

/* TRUE if more than `reserve` descriptors are free, estimated from the lowest free one. Code that
 * needs descriptors checks this first and refuses the request while it can still answer. Takes
 * three system calls. */
gboolean muster_open_files_left (guint reserve);

/* gRPC 1.51 stops accepting for good once accept4 () has failed for lack of a descriptor. So
 * open_files.c defines accept4 () in place of libc's, for the whole process: if no descriptor is
 * left and the listener doesn't block, the connection is closed at once and accept4 () returns
 * EAGAIN. For that it needs one descriptor, which this function reserves. Servers call it; repeated
 * calls do nothing. */
void muster_open_files_keep_spare (void);

G_END_DECLS
