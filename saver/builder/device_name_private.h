// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* "/job:ps/task:0/cpu:0" as TensorFlow prints it when it compares devices,
 * "/job:ps/task:0/device:CPU:0"; what isn't such a name stays as it is. */
char *muster_device_canonical (const char *device);

/* The CPU beside it: "/job:ps/task:0/device:CPU:0"; of "": "/device:CPU:0". */
char *muster_device_cpu (const char *device);

/* The task that has it: "ps:0" of "/job:ps/replica:0/task:0/device:CPU:0"; "" for none. */
char *muster_device_task (const char *device);

G_END_DECLS
