// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/reasons.h"

G_BEGIN_DECLS

/* Whose a device is: "/job:ps/replica:0/task:1/device:CPU:0" is "ps:1", "/job:ps" is "ps". NULL
 * where it names no job. (transfer full) */
char *muster_reason_owner_of_device (const char *device);

G_END_DECLS
