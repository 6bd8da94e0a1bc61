// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "jobs/job_runner.h"

/* Options on the heap, for other languages. */

MUSTER_DEFINE_OPTIONS (MusterJobOptions, muster_job_options)

MusterJobOptions *
muster_job_options_new (MusterJobGroup *init, MusterJobGroup *epoch, MusterJobGroup *download,
                        MusterJobGroup *exit, const char *const *nodes_to_checkpoint)
{
  const MusterJobOptions options = {.init = init,
                                    .epoch = epoch,
                                    .download = download,
                                    .exit = exit,
                                    .nodes_to_checkpoint = nodes_to_checkpoint};
  return muster_job_options_copy (&options);
}

MUSTER_DEFINE_OPTIONS (MusterJobCheckpointOptions, muster_job_checkpoint_options)

MusterJobCheckpointOptions *
muster_job_checkpoint_options_new (MusterStorage *storage, MusterJobMetadata *metadata)
{
  const MusterJobCheckpointOptions options = {.storage = storage, .metadata = metadata};
  return muster_job_checkpoint_options_copy (&options);
}

MUSTER_DEFINE_OPTIONS (MusterJobStat, muster_job_stat)

MUSTER_DEFINE_OPTIONS (MusterJobPath, muster_job_path)

MusterJobPath *
muster_job_path_new (const char *prefix, MusterStorage *storage)
{
  const MusterJobPath path = {.prefix = prefix, .storage = storage};
  return muster_job_path_copy (&path);
}

MUSTER_DEFINE_OPTIONS (MusterJobRunnerOptions, muster_job_runner_options)

void
muster_job_runner_options_set_epoch_done (MusterJobRunnerOptions *self,
                                          MusterJobEpochDone epoch_done, gpointer user_data,
                                          GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);

  muster_own_data (&self->epoch_done_owner, user_data, destroy);
  self->epoch_done = epoch_done;
  self->user_data = user_data;
}

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
