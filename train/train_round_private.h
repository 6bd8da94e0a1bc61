// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/elastic/elastic_private.h"
#include "train/training.h"

G_BEGIN_DECLS

/* The slots of an elastic job's model. */
guint muster_train_n_slots (const MusterTraining *training);

/* Why a round failed. */
typedef struct {
  gboolean is_replaced; /* another chief has the model */
  gboolean is_cut;      /* all steps were done, but the session was lost before the end was */
} MusterRoundEnd;

/* One round of an elastic job's task, or of a training whose role is given: then elastic is NULL.
 * Its result is added to those of the rounds before, in *trained. *end is set on failure.
 * cancellable is (nullable). */
gboolean muster_train_round (const MusterTraining *training, MusterElastic *elastic,
                             MusterTrained *trained, MusterRoundEnd *end, GCancellable *cancellable,
                             GError **error);

/* TRUE if another round is to do the rest of one that was cut, from what the master has or the last
 * checkpoint; *n_cut counts those in a row. Logs why. */
gboolean muster_train_goes_on (const MusterTraining *training, const MusterRoundEnd *end,
                               guint *n_cut, const GError *why, GCancellable *cancellable);

/* The training has been told to stop: by cancellable or a preemption. */
gboolean muster_train_is_stopped (const MusterTraining *training, GCancellable *cancellable);

G_END_DECLS
