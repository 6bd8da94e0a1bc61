// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/reasons.h"

G_BEGIN_DECLS

/* One reason for the variables: how many are missing, whose they are, and their names. The caller
 * sets since_us. (transfer full) */
MusterReason *muster_reason_for_variables (const MusterSituation *situation);

/* Whose a device is: "/job:ps/replica:0/task:1/device:CPU:0" is "ps:1", "/job:ps" is "ps". NULL
 * where it names no job. (transfer full) */
char *muster_reason_owner_of_device (const char *device);

G_END_DECLS
