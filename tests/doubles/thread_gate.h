// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/coordinator.h"

G_BEGIN_DECLS

/* What a coordinator's thread waits at until it is opened. A static one needs no beginning; it must
 * outlive the threads that it keeps. */
typedef struct {
  GMutex lock;
  GCond cond;
  gboolean is_open; /* guarded by lock */
} MusterThreadGate;

/* For muster_coordinator_start (): a thread that ends well once the gate is open. */
gboolean muster_thread_gate_wait (MusterCoordinator *coordinator, gpointer gate, GError **error);
void muster_thread_gate_open (MusterThreadGate *self);

G_END_DECLS
