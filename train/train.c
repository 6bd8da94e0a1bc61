// SPDX-License-Identifier: Apache-2.0
#include "train/train.h"

#include "base/require_private.h"
#include "train/preemption/preemption_private.h"
#include "train/train_elastic_private.h"
#include "train/train_round_private.h"

/* The whole of a training whose role is given. */
static gboolean
train (const MusterTraining *training, MusterTrained *trained, GCancellable *cancellable,
       GError **error)
{
  guint n_cut = 0;
  for (;;) {
    MusterRoundEnd end = {0};
    GError *failure = NULL;
    if (muster_train_round (training, NULL, trained, &end, cancellable, &failure))
      return TRUE;
    if (!muster_train_goes_on (training, &end, &n_cut, failure, cancellable)) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    g_error_free (failure);
    trained->is_reached = FALSE;
    if (training->preemption != NULL)
      muster_preemption_begin_again (training->preemption);
  }
}

gboolean
muster_train (const MusterTraining *training, MusterTrained *trained, GCancellable *cancellable,
              GError **error)
{
  muster_require (error, FALSE, training);
  muster_require (error, FALSE, training->scaffold, training->master);
  muster_require_array (error, FALSE, training->feeds, training->n_feeds);

  g_auto (MusterTrained) own = {0};
  MusterTraining with = *training;

  g_autoptr (MusterScaffold) scaffold = muster_scaffold_complete (training->scaffold, error);
  if (scaffold == NULL)
    return FALSE;
  with.scaffold = scaffold;
  if (with.listener == NULL && with.observer != NULL)
    with.listener = muster_training_observer_listener (with.observer);
  if (trained == NULL)
    trained = &own;
  *trained = (MusterTrained){.step = -1, .goodput = MUSTER_GOODPUT_INIT, .report.final_step = -1};
  if (cancellable == NULL && training->preemption != NULL)
    cancellable = muster_preemption_cancellable (training->preemption);
  return training->is_elastic ? muster_train_elastic (&with, trained, cancellable, error)
                              : train (&with, trained, cancellable, error);
}
