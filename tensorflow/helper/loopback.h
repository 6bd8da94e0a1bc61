// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TensorFlow's server listens on every interface and has no option for that. So this program
 * defines bind () in place of libc's: every TCP socket is bound to 127.0.0.1, whatever the
 * argument. */

/* The port that the parent process holds with a socket that doesn't listen, so that no other
 * process takes it; the server's socket shares it. Call before the first bind. */
void muster_loopback_share (uint16_t port);

/* Checks all listening sockets of this process: true if one is on port and none is reachable from
 * another machine. Otherwise false, with the cause in text. */
bool muster_loopback_check (uint16_t port, char *text, size_t n_text);
