// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "callbacks/worker_training_state.h"

/* Options on the heap, for other languages. */

MUSTER_DEFINE_OPTIONS (MusterWorkerTrainingStateOptions, muster_worker_training_state_options)

MusterWorkerTrainingStateOptions *
muster_worker_training_state_options_new (const char *directory)
{
  g_return_val_if_fail (directory != NULL, NULL);

  const MusterWorkerTrainingStateOptions options = {.directory = directory};
  return muster_worker_training_state_options_copy (&options);
}

void
muster_worker_training_state_options_set_save_freq (MusterWorkerTrainingStateOptions *self,
                                                    const MusterSaveFreq *save_freq)
{
  g_return_if_fail (self != NULL && save_freq != NULL);
  self->save_freq = *save_freq;
}

void
muster_worker_training_state_start (MusterWorkerTrainingState *self, MusterTrainingMode mode,
                                    gint64 n_batches, MusterFitPosition *position)
{
  g_return_if_fail (self != NULL && position != NULL);
  *position = muster_worker_training_state_initial (self, mode, *position, n_batches);
}

void
muster_worker_training_state_add_to (MusterWorkerTrainingState *self, MusterFit *fit)
{
  g_return_if_fail (self != NULL && fit != NULL);

  const MusterFitCallback callback = muster_worker_training_state_callback (self);
  (void)muster_worker_training_state_ref (self);
  muster_fit_add_callback (fit, &callback, (GDestroyNotify)muster_worker_training_state_free);
}
