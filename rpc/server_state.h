// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What is known of a server between two calls. */
typedef enum {
  MUSTER_SERVER_UP,      /* nothing is known to be wrong: a call will tell */
  MUSTER_SERVER_DOWN,    /* a call would fail as the last one did */
  MUSTER_SERVER_CHANGED, /* it was down and is up, or is down for another reason; said once */
} MusterServerState;

G_END_DECLS
