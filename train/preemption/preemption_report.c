// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "train/preemption/preemption.h"

/* Reports on the heap, for other languages. */

MUSTER_DEFINE_OPTIONS (MusterPreemptionReport, muster_preemption_report)

MusterPreemptionReport *
muster_preemption_get_report (MusterPreemption *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_auto (MusterPreemptionReport) report = {0};
  (void)muster_preemption_report (self, &report);
  return muster_preemption_report_copy (&report);
}
