// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

/* TensorFlow's server asks its clients for nothing. So this program defines accept4 () and accept
 * () in place of libc's: a TCP connection from a process of another user is closed before anything
 * is read from it. Its user is that of the other end's socket in /proc/net/tcp. */

/* FALSE if that can't be read: every connection would be refused. */
bool muster_peer_can_check (void);
