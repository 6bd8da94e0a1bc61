// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/elastic/elastic.h"
#include "train/training.h"

G_BEGIN_DECLS

/* The slots of an elastic job's model. */
guint muster_train_n_slots (const MusterTraining *training);

/* One round of an elastic job's task, or the whole of a training whose role is given: then elastic
 * is NULL. *is_replaced is set on failure: another chief has the model. cancellable is (nullable).
 */
gboolean muster_train_round (const MusterTraining *training, MusterElastic *elastic,
                             MusterTrained *trained, gboolean *is_replaced,
                             GCancellable *cancellable, GError **error);

G_END_DECLS
