// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A device as TensorFlow's programs name it: "/job:ps/replica:0/task:1/device:CPU:0", "/cpu:0",
 * each part of which may be absent or "*". */

typedef struct {
  char type[32]; /* "CPU"; "": any */
  int id;        /* -1: any */
} MusterDeviceName;

/* The one device of a master in this process. */
#define MUSTER_LOCAL_DEVICE "/job:localhost/replica:0/task:0/device:CPU:0"

/* What of a name says which device of a task is meant; FALSE for what is no device's name. */
gboolean muster_device_name_parse (const char *text, MusterDeviceName *name);

G_END_DECLS
