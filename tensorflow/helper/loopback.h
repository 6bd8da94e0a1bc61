// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TensorFlow's server listens on every interface and has no option for that. So this program
 * defines bind () in place of libc's: every TCP socket is bound to 127.0.0.1, whatever the
 * argument; but for the port of a cluster's task, which other machines are to reach. */

/* The server's port, which the parent holds with a socket that doesn't listen, so that no other
 * process takes it; the server's socket shares it. Call before the first bind. */
void muster_loopback_share (uint16_t port, bool is_open);

/* Checks all listening sockets of this process: true if one is on that port and no other is
 * reachable from another machine. Otherwise false, with the cause in text. */
bool muster_loopback_check (char *text, size_t n_text);
