// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "saver/async/async_private.h"
#include "saver/async/checkpoint_manager.h"

/* The types that other languages need: options that own what they point to, tickets, metrics. */

G_DEFINE_BOXED_TYPE (MusterSaveTicket, muster_save_ticket, muster_save_ticket_ref,
                     muster_save_ticket_unref)

MUSTER_DEFINE_OPTIONS (MusterCheckpointManagerOptions, muster_checkpoint_manager_options)

void
muster_checkpoint_manager_options_set_finished (MusterCheckpointManagerOptions *self,
                                                MusterSaveFinished finished, gpointer user_data,
                                                GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->finished = finished;
  self->finished_data = user_data;
  muster_own_more (&self->owner, user_data, destroy);
}

void
muster_checkpoint_manager_options_set_read_step (MusterCheckpointManagerOptions *self,
                                                 MusterReadStep read_step, gpointer user_data,
                                                 GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->read_step = read_step;
  self->step_data = user_data;
  muster_own_more (&self->owner, user_data, destroy);
}

void
muster_checkpoint_manager_options_set_initialize (MusterCheckpointManagerOptions *self,
                                                  MusterSessionFunc initialize, gpointer user_data,
                                                  GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->initialize = initialize;
  self->initialize_data = user_data;
  muster_own_more (&self->owner, user_data, destroy);
}

void
muster_checkpoint_manager_options_set_wait_for_saves (MusterCheckpointManagerOptions *self,
                                                      MusterWaitForSaves wait_for_saves,
                                                      gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->wait_for_saves = wait_for_saves;
  self->wait_data = user_data;
  muster_own_more (&self->owner, user_data, destroy);
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
