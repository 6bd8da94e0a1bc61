// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Which users of the machine may connect to the Unix sockets of this process. The kernel tells the
 * user of a connection (SO_PEERCRED); that of another user is closed when it is accepted, before
 * anything is read from it (open_files.c). Any thread. */

/* Before the path is listened on. */
void muster_local_peers_allow (const char *path, const guint32 *users, gsize n_users);
/* Allows everybody again. */
void muster_local_peers_forget (const char *path);

/* FALSE for a connection to such a path by another user; TRUE for any other connection. */
gboolean muster_local_peers_are_allowed (int listener, int connection);

G_END_DECLS
