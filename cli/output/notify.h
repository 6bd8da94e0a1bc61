// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What a service tells its manager (systemd) by the protocol of sd_notify (3): one datagram to the
 * socket that $NOTIFY_SOCKET names, by path or as an abstract one ("@name"). Where no such socket
 * is named, or nobody listens there, nothing happens. Never blocks. Any thread. */

/* Assignments, one a line: "READY=1\nSTATUS=serving 3 sessions". */
void muster_notify (const char *format, ...) G_GNUC_PRINTF (1, 2);

/* "STATUS=text", for a text that came from elsewhere: a line break in it would be an assignment of
 * its own, so it is told as a space. */
void muster_notify_status (const char *text);

/* By when the manager wants to hear WATCHDOG=1, each time anew; 0: not at all, or not from this
 * process. */
gint64 muster_notify_watchdog_us (void);

G_END_DECLS
