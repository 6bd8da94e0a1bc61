// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

/* TensorFlow's server asks its clients for nothing. So this program defines accept4 () and accept
 * () in place of libc's: a TCP connection that isn't admitted is closed before anything is read
 * from it. From this machine, those of this user's processes are: a process's user is that of the
 * other end's socket in /proc/net/tcp. From other machines, those of the cluster's are, whose
 * addresses the parent sends. */

/* FALSE if that can't be read: every connection would be refused. */
bool muster_peer_can_check (void);

/* Admits the machine with an address in text form, or no longer. */
void muster_peer_admit (const char *address, bool is_admitted);

/* Is told the address of who was refused, at most once a second; any thread. */
void muster_peer_report (void (*refused) (const char *address));
