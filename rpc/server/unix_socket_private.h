// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* MusterUnixSocket is a server's claim of a Unix socket's path, as long as it listens there. A path
 * on which another process listens is refused, a socket that a dead one left is replaced, and no
 * other file is touched. PATH.lock decides between servers that start at the same time; it stays.
 */

typedef struct _MusterUnixSocket MusterUnixSocket;

/* Only this process's user and these may connect. UNAVAILABLE, "can't listen on unix:/PATH: …". */
MusterUnixSocket *muster_unix_socket_claim (const char *path, const guint32 *users, gsize n_users,
                                            GError **error);

/* Sets the mode of the socket once it is bound: 0600, or 0666 if other users may connect. */
gboolean muster_unix_socket_open (MusterUnixSocket *self, GError **error);

/* Removes the socket. self may be NULL. */
void muster_unix_socket_free (MusterUnixSocket *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterUnixSocket, muster_unix_socket_free)

G_END_DECLS
