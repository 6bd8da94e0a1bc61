// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TensorFlow's server listens on every interface, and there is no switch for that. So this program
 * defines bind () itself, in libc's place: every TCP socket is bound to 127.0.0.1, whatever was
 * asked for. */

/* The port that this program's parent holds, not listening, so that nobody else takes it: the
 * socket that is bound to it shares it. Call before the first bind. */
void muster_loopback_share (uint16_t port);

/* Looks at all of this process's listening sockets: true if port is among them and none is open to
 * another machine. Else false, and what is wrong with them is in text. */
bool muster_loopback_check (uint16_t port, char *text, size_t n_text);
