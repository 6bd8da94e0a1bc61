// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/session/local_shared.h"
#include "engine/session/session_config.h"
#include "master/session.h"

G_BEGIN_DECLS

/* A session of the local master. It runs steps on their callers' threads; a step that waits blocks
 * its caller, not the engine. */

#define MUSTER_TYPE_LOCAL_SESSION (muster_local_session_get_type ())
G_DECLARE_FINAL_TYPE (MusterLocalSession, muster_local_session, MUSTER, LOCAL_SESSION,
                      MusterSession)

MusterSession *muster_local_session_new (MusterLocalShared *shared, MusterGraph *graph,
                                         const MusterSessionConfig *config, GError **error);

/* Ends the session after a reset: its steps and later calls fail with ABORTED. */
void muster_local_session_reset (MusterLocalSession *self);

G_END_DECLS
