// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/manager.h"

G_BEGIN_DECLS

/* Preparing fails (DEADLINE_EXCEEDED) if the model isn't claimed by this instant of the manager's
 * clock, whatever its timeout: another task may lead meanwhile. What follows the claim has the
 * whole timeout. 0: no such limit. */
void muster_session_manager_set_claim_by (MusterSessionManager *self, gint64 claim_by_us);

G_END_DECLS
