// SPDX-License-Identifier: Apache-2.0
#include "train/train.h"

#include "base/require.h"
#include "train/train_elastic.h"
#include "train/train_round.h"

gboolean
muster_train (const MusterTraining *training, MusterTrained *trained, GCancellable *cancellable,
              GError **error)
{
  muster_require (error, FALSE, training);
  muster_require (error, FALSE, training->scaffold, training->master);
  muster_require_array (error, FALSE, training->feeds, training->n_feeds);

  g_auto (MusterTrained) own = {0};
  MusterTraining with = *training;
  gboolean is_replaced = FALSE;

  if (with.listener == NULL && with.observer != NULL)
    with.listener = muster_training_observer_listener (with.observer);
  if (trained == NULL)
    trained = &own;
  *trained = (MusterTrained){.step = -1, .goodput = MUSTER_GOODPUT_INIT, .report.final_step = -1};
  if (cancellable == NULL && training->preemption != NULL)
    cancellable = muster_preemption_cancellable (training->preemption);
  return training->is_elastic
             ? muster_train_elastic (&with, trained, cancellable, error)
             : muster_train_round (&with, NULL, trained, &is_replaced, cancellable, error);
}
