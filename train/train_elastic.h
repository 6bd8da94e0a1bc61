// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/elastic/elastic.h"
#include "train/train.h"

G_BEGIN_DECLS

/* How muster_train () trains a task of an elastic job: in rounds, each with one role. */

/* The slots of an elastic job's model. */
guint muster_train_n_slots (const MusterTraining *training);

/* cancellable is (nullable). */
gboolean muster_train_elastic (const MusterTraining *training, MusterTrained *trained,
                               GCancellable *cancellable, GError **error);

/* train.c: one round, or the whole of a training whose role is given (elastic is (nullable)).
 * *is_replaced is set on failure: another chief has the model. */
gboolean muster_train_round (const MusterTraining *training, MusterElastic *elastic,
                             MusterTrained *trained, gboolean *is_replaced,
                             GCancellable *cancellable, GError **error);

G_END_DECLS
