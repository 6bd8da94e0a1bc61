// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Notifies a service manager (systemd) by the protocol of sd_notify (3): one datagram to the socket
 * in $NOTIFY_SOCKET, a path or an abstract name ("@name"). Does nothing if the variable is unset or
 * nothing listens there. A manager that doesn't read holds up READY=1 and STOPPING=1 for five
 * seconds, and nothing else. Any thread. */

/* Sends assignments, one a line: "READY=1\nSTATUS=serving 3 sessions". */
void muster_notify (const char *format, ...) G_GNUC_PRINTF (1, 2);

/* Sends "STATUS=text". A line break in text, which would start another assignment, is replaced by a
 * space. */
void muster_notify_status (const char *text);

/* The interval in which the manager expects WATCHDOG=1; 0: none, or not from this process. */
gint64 muster_notify_watchdog_us (void);

G_END_DECLS
