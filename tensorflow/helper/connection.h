// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

/* A machine that vanishes leaves connections that are retransmitted on with doubling pauses, so
 * that they are found dead long after it is back, and gRPC has no limit for that which a TensorFlow
 * program could set. So this program defines connect () in place of libc's. */

/* From now on a connection that this process makes over a network ends when the other machine has
 * been silent for about three seconds: what was sent is unacknowledged for so long, or the probes
 * are, one a second, whatever is sent meanwhile. It also ends when the other process takes nothing
 * for so long while what was sent fills its buffers: these are requests, which are small. Tensors
 * go the other way, on accepted connections, for which gRPC has a limit of 20 s. FALSE: a thread
 * that is needed for it can't be made. */
bool muster_connection_limit_silence (void);
