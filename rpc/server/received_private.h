// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Follows what the connections of this process's servers receive (rpc/server/frames_private.h), and
 * ends those that ask for too much, before gRPC has read it. gRPC has no hook for that. So
 * received.c defines recvmsg () in libc's place and SSL_read () and SSL_write () in OpenSSL's,
 * **for the whole process that links the server's half of `rpc/`**. They do the same as those, and
 * look at what was received. */

/* Follows a connection that was accepted, until its descriptor is closed. TLS connections are found
 * by themselves. */
void muster_received_follow (int fd);

/* How many connections were ended. */
guint64 muster_received_n_ended (void);

G_END_DECLS
