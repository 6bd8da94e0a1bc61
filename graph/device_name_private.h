// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A device name as TensorFlow writes it: "/job:ps/replica:0/task:1/device:CPU:0" or "/cpu:0". Each
 * part may be absent or "*". */

typedef struct {
  const char *job; /* job_size bytes of the text; NULL: any */
  gsize job_size;
  int replica, task; /* -1: any */
  char type[32];     /* "CPU"; "": any */
  int id;            /* -1: any */
} MusterDeviceName;

/* Returns FALSE if text isn't a device name. text must outlive name. */
gboolean muster_device_name_parse (const char *text, MusterDeviceName *name);

/* The canonical form, which TensorFlow prints and compares: "/job:ps/task:0/device:CPU:0" for
 * "/job:ps/task:0/cpu:0". Text that isn't a device name is returned unchanged. */
char *muster_device_canonical (const char *text);

/* The CPU of the same task: "/job:ps/task:0/device:CPU:0"; for "": "/device:CPU:0". */
char *muster_device_cpu (const char *text);

/* The same device of any task: "/device:CPU:0" for "/job:ps/task:0/cpu:0"; "" for "/job:ps". */
char *muster_device_of_any_task (const char *text);

/* The device's task: "ps:1" for "/job:ps/replica:0/task:1/device:CPU:0", "ps" for "/job:ps"; NULL
 * if the name has none. */
char *muster_device_task (const char *text);

G_END_DECLS
