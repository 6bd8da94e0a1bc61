// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/training.h"

G_BEGIN_DECLS

/* How muster_train () trains a task of an elastic job: in rounds, each with one role. cancellable
 * is (nullable). */
gboolean muster_train_elastic (const MusterTraining *training, MusterTrained *trained,
                               GCancellable *cancellable, GError **error);

G_END_DECLS
