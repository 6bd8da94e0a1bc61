// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A device as TensorFlow's programs name it: "/job:ps/replica:0/task:1/device:CPU:0", "/cpu:0",
 * each part of which may be absent or "*". */

typedef struct {
  const char *job; /* job_size bytes of the text; NULL: any */
  gsize job_size;
  int replica, task; /* -1: any */
  char type[32];     /* "CPU"; "": any */
  int id;            /* -1: any */
} MusterDeviceName;

/* FALSE for what is no device's name. text must outlive name. */
gboolean muster_device_name_parse (const char *text, MusterDeviceName *name);

/* As TensorFlow prints it when it compares devices: "/job:ps/task:0/device:CPU:0" for
 * "/job:ps/task:0/cpu:0"; what isn't a device's name stays as it is. */
char *muster_device_canonical (const char *text);

/* The CPU beside it: "/job:ps/task:0/device:CPU:0"; of "": "/device:CPU:0". */
char *muster_device_cpu (const char *text);

/* The task that has it: "ps:1" of "/job:ps/replica:0/task:1/device:CPU:0", "ps" of "/job:ps"; NULL
 * for none. */
char *muster_device_task (const char *text);

G_END_DECLS
