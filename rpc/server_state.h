// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * MusterServerState:
 * @MUSTER_SERVER_UP: no failure is known
 * @MUSTER_SERVER_DOWN: a call would fail like the last one
 * @MUSTER_SERVER_CHANGED: it was down and is up, or is down for another reason; reported once
 *
 * What is known about a server between two calls.
 */
typedef enum {
  MUSTER_SERVER_UP,
  MUSTER_SERVER_DOWN,
  MUSTER_SERVER_CHANGED,
} MusterServerState;

G_END_DECLS
