// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "train/monitored_training.h"

/* Options on the heap, for other languages. */

MUSTER_DEFINE_OPTIONS (MusterMonitoredTrainingOptions, muster_monitored_training_options)

MusterMonitoredTrainingOptions *
muster_monitored_training_options_new (MusterScaffold *scaffold, MusterMaster *master)
{
  g_return_val_if_fail (scaffold != NULL && master != NULL, NULL);

  const MusterMonitoredTrainingOptions options = {.scaffold = scaffold, .master = master};
  return muster_monitored_training_options_copy (&options);
}
