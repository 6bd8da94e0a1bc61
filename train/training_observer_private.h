// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/training_observer.h"

G_BEGIN_DECLS

/* Emit its signals; self (nullable). Those of saves: train/hooks/saver_observer_private.h. */

/* A MusterSessionProgress; self is the observer. */
void muster_training_observer_waiting (const char *message, const MusterReadiness *readiness,
                                       GPtrArray *reasons, gpointer self);
void muster_training_observer_ready (MusterTrainingObserver *self,
                                     const MusterSessionReport *report, gint64 step);
void muster_training_observer_lost (MusterTrainingObserver *self, const GError *why, guint n,
                                    gint64 pause_us);
void muster_training_observer_role (MusterTrainingObserver *self, gboolean is_chief, guint slot);
/* TRUE if somebody is told of the progress. */
gboolean muster_training_observer_has_listener (MusterTrainingObserver *self);
/* TRUE if a handler ends the training. */
gboolean muster_training_observer_progress (MusterTrainingObserver *self,
                                            const MusterTrainingState *state);
void muster_training_observer_evaluated (MusterTrainingObserver *self,
                                         const MusterEvaluated *evaluated);

G_END_DECLS
