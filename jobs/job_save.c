// SPDX-License-Identifier: Apache-2.0
#include "jobs/job_save_private.h"

#include "base/cancel_link_private.h"
#include "base/error.h"
#include "jobs/job_checkpoint_private.h"

/* Time for a save after the training was cancelled: most are nearly done then. */
#define CANCELLED_US (2 * MUSTER_SECOND)

struct _MusterJobSave {
  MusterJobSaveOptions options; /* its checkpoint is owned */
  GCancellable *cancellable;    /* (owned) its own */
  GCancellable *ended;          /* (owned) cancelled when the thread is done */
  GThread *thread;              /* (owned) */
  GError *failure;              /* (owned) (nullable) the thread's, until it is joined */
};

gint64
muster_job_stage_deadline (gint64 timeout_us, gint64 deadline_us)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return timeout_us > 0 ? MIN (deadline_us, muster_deadline_after (now_us, timeout_us))
                        : deadline_us;
}

/* A save that failed has no metadata and no report (B003.70). */
gboolean
muster_job_save_complete (const MusterJobSaveOptions *options, GCancellable *cancellable,
                          GError **error)
{
  MusterJobCheckpoint *checkpoint = options->checkpoint;
  const gint64 stage_us = options->stage_timeout_us, deadline_us = options->deadline_us;
  return muster_job_checkpoint_finish (
             checkpoint, muster_job_stage_deadline (stage_us, deadline_us), cancellable, error) &&
         muster_job_checkpoint_write_metadata (checkpoint, options->epoch, options->finished,
                                               muster_job_stage_deadline (stage_us, deadline_us),
                                               cancellable, error) &&
         muster_job_checkpoint_report (checkpoint, "checkpoint_save",
                                       muster_job_stage_deadline (stage_us, deadline_us),
                                       cancellable, error);
}

static gpointer
complete (gpointer data)
{
  MusterJobSave *self = data;
  (void)muster_job_save_complete (&self->options, self->cancellable, &self->failure);
  g_cancellable_cancel (self->ended);
  return NULL;
}

MusterJobSave *
muster_job_save_start (const MusterJobSaveOptions *options)
{
  MusterJobSave *self = g_new0 (MusterJobSave, 1);
  self->options = *options;
  g_object_ref (self->options.checkpoint);
  self->cancellable = g_cancellable_new ();
  self->ended = g_cancellable_new ();
  self->thread = g_thread_new ("job-save", complete, self);
  return self;
}

gint64
muster_job_save_epoch (MusterJobSave *self)
{
  return self->options.epoch;
}

static void
wait_for_end (MusterJobSave *self, gint64 deadline_us, GCancellable *cancellable)
{
  g_auto (MusterCancelLink) either = muster_cancel_link (self->ended, cancellable);
  (void)muster_clock_wait_until (muster_system_clock (), deadline_us, either.cancellable, NULL);
}

gboolean
muster_job_save_end (MusterJobSave *self, GCancellable *cancellable, GError **error)
{
  wait_for_end (self, MUSTER_WAIT_FOREVER, cancellable); /* its stages have deadlines */
  if (!g_cancellable_is_cancelled (self->ended))
    wait_for_end (self, muster_job_stage_deadline (CANCELLED_US, MUSTER_WAIT_FOREVER), NULL);
  g_cancellable_cancel (self->cancellable);
  g_thread_join (self->thread);
  g_autoptr (GError) failure = self->failure;
  g_object_unref (self->options.checkpoint);
  g_object_unref (self->cancellable);
  g_object_unref (self->ended);
  g_free (self);
  if (failure == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}
