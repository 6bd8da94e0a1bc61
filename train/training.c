// SPDX-License-Identifier: Apache-2.0
#include "train/training.h"
#include "base/fields_private.h"

/* Trainings and their results on the heap, for other languages. */

MUSTER_DEFINE_OPTIONS (MusterTraining, muster_training)

MusterTraining *
muster_training_new (MusterScaffold *scaffold, MusterMaster *master)
{
  g_return_val_if_fail (scaffold != NULL && master != NULL, NULL);

  const MusterTraining training = {.session = {.scaffold = scaffold, .master = master}};
  return muster_training_copy (&training);
}

/* --- the result --- */

MUSTER_DEFINE_OPTIONS (MusterTrained, muster_trained)

void
muster_trained_clear (MusterTrained *self)
{
  g_return_if_fail (self != NULL);
  muster_session_report_clear (&self->report);
}
