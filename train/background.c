// SPDX-License-Identifier: Apache-2.0
#include "train/background.h"

#include "base/background.h"

/* With what the copy shares with its original. */
static const MusterTraining *
copy_training (const MusterTraining *training)
{
  MusterTraining *copy = muster_training_copy (training);

  if (training->listener != NULL)
    copy->listener = g_memdup2 (training->listener, sizeof *training->listener);
  return copy;
}

static void
free_training (const MusterTraining *training)
{
  g_free ((gpointer)training->listener);
  muster_training_free ((MusterTraining *)training);
}

static void
begin_trained (MusterTrained *trained)
{
  *trained = (MusterTrained){.step = -1, .goodput = MUSTER_GOODPUT_INIT, .report.final_step = -1};
}

#define TRAIN(X)                                                                                   \
  X (KEPT, const MusterTraining *, training, copy_training, free_training)                         \
  X (REPORT, MusterTrained, trained, begin_trained, muster_trained_clear)
MUSTER_ASYNC (muster_train, muster_train, "muster-train", gboolean, MUSTER_PLAIN, TRAIN)
