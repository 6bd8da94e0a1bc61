// SPDX-License-Identifier: Apache-2.0
#pragma once

/* A machine that vanishes leaves connections that are retransmitted on with doubling pauses, so
 * that they are found dead long after it is back, and gRPC has no limit for that which a TensorFlow
 * program could set. So this program defines connect () in place of libc's. */

/* From now on a connection over a network ends when the other machine has been silent for about
 * three seconds: what was sent is unacknowledged for so long, or three probes are, one a second. */
void muster_connection_limit_silence (void);

/* Does so for a connection that was accepted; gRPC then waits 20 s for what it has sent. */
void muster_connection_accepted (int fd);
