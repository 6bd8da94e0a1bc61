// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "jobs/job_runner.h"

/* Options on the heap, for other languages. */

static const MusterField job_owned[] = {
    MUSTER_TYPED_FIELD (MusterJobOptions, init, muster_job_group_get_type),
    MUSTER_TYPED_FIELD (MusterJobOptions, epoch, muster_job_group_get_type),
    MUSTER_TYPED_FIELD (MusterJobOptions, download, muster_job_group_get_type),
    MUSTER_TYPED_FIELD (MusterJobOptions, exit, muster_job_group_get_type),
    MUSTER_TYPED_FIELD (MusterJobOptions, stop_conditions, g_ptr_array_get_type),
    MUSTER_TYPED_FIELD (MusterJobOptions, nodes_to_checkpoint, g_strv_get_type),
};
MUSTER_DEFINE_OPTIONS (MusterJobOptions, muster_job_options, job_owned)

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

static const MusterField checkpoint_owned[] = {
    MUSTER_TYPED_FIELD (MusterJobCheckpointOptions, storage, muster_storage_get_type),
    MUSTER_TYPED_FIELD (MusterJobCheckpointOptions, metadata, muster_job_metadata_get_type),
    MUSTER_TYPED_FIELD (MusterJobCheckpointOptions, clock, muster_clock_get_type),
};
MUSTER_DEFINE_OPTIONS (MusterJobCheckpointOptions, muster_job_checkpoint_options, checkpoint_owned)

MusterJobCheckpointOptions *
muster_job_checkpoint_options_new (MusterStorage *storage, MusterJobMetadata *metadata)
{
  const MusterJobCheckpointOptions options = {.storage = storage, .metadata = metadata};
  return muster_job_checkpoint_options_copy (&options);
}

static const MusterField stat_owned[] = {
    MUSTER_STRING_FIELD (MusterJobStat, path),
    MUSTER_STRING_FIELD (MusterJobStat, node),
};
MUSTER_DEFINE_OPTIONS (MusterJobStat, muster_job_stat, stat_owned)

static const MusterField path_owned[] = {
    MUSTER_STRING_FIELD (MusterJobPath, prefix),
    MUSTER_TYPED_FIELD (MusterJobPath, storage, muster_storage_get_type),
};
MUSTER_DEFINE_OPTIONS (MusterJobPath, muster_job_path, path_owned)

MusterJobPath *
muster_job_path_new (const char *prefix, MusterStorage *storage)
{
  const MusterJobPath path = {.prefix = prefix, .storage = storage};
  return muster_job_path_copy (&path);
}

enum { UPLOAD, OWNER };

static const MusterField runner_owned[] = {
    [UPLOAD] =
        MUSTER_TYPED_FIELD (MusterJobRunnerOptions, upload, muster_job_upload_builder_get_type),
    [OWNER] = MUSTER_TYPED_FIELD (MusterJobRunnerOptions, epoch_done_owner, g_bytes_get_type),
};
MUSTER_DEFINE_OPTIONS (MusterJobRunnerOptions, muster_job_runner_options, runner_owned)

MusterJobRunnerOptions *
muster_job_runner_options_new (void)
{
  return g_new0 (MusterJobRunnerOptions, 1);
}

void
muster_job_runner_options_set_upload (MusterJobRunnerOptions *self, MusterJobUploadBuilder *upload)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &runner_owned[UPLOAD], upload);
}

void
muster_job_runner_options_set_epoch_done (MusterJobRunnerOptions *self,
                                          MusterJobEpochDone epoch_done, gpointer user_data,
                                          GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);

  muster_fields_own (self, &runner_owned[OWNER], user_data, destroy);
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
