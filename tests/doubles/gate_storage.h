// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "checkpoint/store/forwarding_storage.h"

G_BEGIN_DECLS

/* Local files with gates in front of the verbs that a save begins (make_directory) and publishes
 * (sync_directory) with, except for the side file's. A thread that comes to a closed gate waits
 * until it is opened, 30 s at most. All gates are open at first. */

#define MUSTER_TYPE_GATE_STORAGE (muster_gate_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterGateStorage, muster_gate_storage, MUSTER, GATE_STORAGE,
                      MusterForwardingStorage)

typedef enum { MUSTER_GATE_BEGIN, MUSTER_GATE_PUBLISH, MUSTER_N_GATES } MusterGate;

MusterGateStorage *muster_gate_storage_new (void);
void muster_gate_storage_close_gate (MusterGateStorage *self, MusterGate gate);
void muster_gate_storage_open_gate (MusterGateStorage *self, MusterGate gate);
/* The calling thread passes all gates from now on, closed or not. */
void muster_gate_storage_let_through (MusterGateStorage *self);
/* Waits until somebody stands before it; FALSE after 30 s. */
gboolean muster_gate_storage_wait_for_arrival (MusterGateStorage *self, MusterGate gate);
/* The next n_times that a save begins it fails. */
void muster_gate_storage_fail (MusterGateStorage *self, guint n_times, MusterError code,
                               const char *message);

G_END_DECLS
