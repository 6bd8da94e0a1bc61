// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/session_observer.h"

G_BEGIN_DECLS

/* A MusterSessionProgress: self is the observer. */
void muster_session_observer_waiting (const char *message, const MusterReadiness *readiness,
                                      GPtrArray *reasons, gpointer self);
/* Emit its signals; self (nullable). */
void muster_session_observer_made (MusterSessionObserver *self, MusterSessionReport *report,
                                   const GError *failure);
void muster_session_observer_lost (MusterSessionObserver *self, const GError *why, guint n,
                                   gint64 pause_us);

G_END_DECLS
