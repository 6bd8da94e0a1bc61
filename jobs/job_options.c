// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "jobs/job_runner.h"

/* Options on the heap, for other languages. */

MUSTER_DEFINE_OPTIONS (MusterJobStat, muster_job_stat)

MUSTER_DEFINE_OPTIONS (MusterJobPath, muster_job_path)

MusterJobPath *
muster_job_path_new (const char *prefix, MusterStorage *storage)
{
  const MusterJobPath path = {.prefix = prefix, .storage = storage};
  return muster_job_path_copy (&path);
}

MUSTER_DEFINE_OPTIONS (MusterJobRunnerOptions, muster_job_runner_options)

GArray *
muster_job_runner_list_failed_epochs (MusterJobRunner *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return muster_job_runner_failed_epochs (self, NULL);
}

GError *
muster_job_runner_last_failure (MusterJobRunner *self)
{
  const GError *last = NULL;
  g_return_val_if_fail (self != NULL, NULL);
  (void)muster_job_runner_failed_epochs (self, &last);
  return last != NULL ? g_error_copy (last) : NULL;
}
