// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "saver/async/async_private.h"
#include "saver/async/checkpoint_manager.h"

/* The types that other languages need: options that own what they point to, tickets, metrics. */

G_DEFINE_BOXED_TYPE (MusterSaveTicket, muster_save_ticket, muster_save_ticket_ref,
                     muster_save_ticket_unref)

static const MusterField async_owned[] = {
    MUSTER_TYPED_FIELD (MusterAsyncOptions, finished_owner, g_bytes_get_type),
};
MUSTER_DEFINE_OPTIONS (MusterAsyncOptions, muster_async_options, async_owned)

MusterAsyncOptions *
muster_async_options_new (void)
{
  return g_new0 (MusterAsyncOptions, 1);
}

void
muster_async_options_set_finished (MusterAsyncOptions *self, MusterSaveFinished finished,
                                   gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->finished = finished;
  self->finished_data = user_data;
  muster_fields_own (self, &async_owned[0], user_data, destroy);
}

static const MusterField manager_owned[] = {
    MUSTER_TYPED_FIELD (MusterCheckpointManagerOptions, storage, muster_storage_get_type),
    MUSTER_TYPED_FIELD (MusterCheckpointManagerOptions, clock, muster_clock_get_type),
    MUSTER_TYPED_FIELD (MusterCheckpointManagerOptions, step_owner, g_bytes_get_type),
    MUSTER_TYPED_FIELD (MusterCheckpointManagerOptions, initialize_owner, g_bytes_get_type),
    MUSTER_TYPED_FIELD (MusterCheckpointManagerOptions, wait_owner, g_bytes_get_type),
    MUSTER_TYPED_FIELD (MusterCheckpointManagerOptions, finished_owner, g_bytes_get_type),
    MUSTER_STRING_FIELD (MusterCheckpointManagerOptions, name),
    MUSTER_STRING_FIELD (MusterCheckpointManagerOptions, metric),
};
MUSTER_DEFINE_OPTIONS (MusterCheckpointManagerOptions, muster_checkpoint_manager_options,
                       manager_owned)

MusterCheckpointManagerOptions *
muster_checkpoint_manager_options_new (void)
{
  return g_new0 (MusterCheckpointManagerOptions, 1);
}

void
muster_checkpoint_manager_options_set_read_step (MusterCheckpointManagerOptions *self,
                                                 MusterReadStep read_step, gpointer user_data,
                                                 GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->read_step = read_step;
  self->step_data = user_data;
  muster_fields_own (self, &manager_owned[2], user_data, destroy);
}

void
muster_checkpoint_manager_options_set_initialize (MusterCheckpointManagerOptions *self,
                                                  MusterInitialize initialize, gpointer user_data,
                                                  GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->initialize = initialize;
  self->initialize_data = user_data;
  muster_fields_own (self, &manager_owned[3], user_data, destroy);
}

void
muster_checkpoint_manager_options_set_wait_for_saves (MusterCheckpointManagerOptions *self,
                                                      MusterWaitForSaves wait_for_saves,
                                                      gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->wait_for_saves = wait_for_saves;
  self->wait_data = user_data;
  muster_fields_own (self, &manager_owned[4], user_data, destroy);
}

void
muster_checkpoint_manager_options_set_finished (MusterCheckpointManagerOptions *self,
                                                MusterSaveFinished finished, gpointer user_data,
                                                GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->finished = finished;
  self->finished_data = user_data;
  muster_fields_own (self, &manager_owned[5], user_data, destroy);
}

void
muster_checkpoint_manager_options_set_storage (MusterCheckpointManagerOptions *self,
                                               MusterStorage *storage)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &manager_owned[0], storage);
}

void
muster_checkpoint_manager_options_set_clock (MusterCheckpointManagerOptions *self,
                                             MusterClock *clock)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &manager_owned[1], clock);
}

/* --- metrics --- */

MUSTER_DEFINE_VALUE (MusterSaveMetrics, muster_save_metrics)

MusterSaveMetrics *
muster_save_metrics_new_process (void)
{
  const MusterSaveMetrics metrics = muster_save_metrics_process ();
  return muster_save_metrics_copy (&metrics);
}

MusterSaveMetrics *
muster_async_saver_dup_metrics (MusterAsyncSaver *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  const MusterSaveMetrics metrics = muster_async_saver_metrics (self);
  return muster_save_metrics_copy (&metrics);
}
