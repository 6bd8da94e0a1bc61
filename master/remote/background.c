// SPDX-License-Identifier: Apache-2.0
#include "master/remote/background_private.h"

#include "base/wait_private.h"
#include "rpc/fork_private.h"

struct _MusterBackgroundTask {
  MusterBackgroundWork work;
  gpointer owner;            /* (not owned) */
  GCancellable *cancellable; /* (owned) cancelled by the stop */
  GThread *thread;           /* (owned) (nullable) NULL after the stop */

  GMutex lock; /* no other lock is taken while it is held */
  GCond changed;
  gint64 due_us;       /* guarded by lock */
  gboolean is_stopped; /* guarded by lock */
};

static void
run_locked (MusterBackgroundTask *self)
{
  self->due_us = MUSTER_WAIT_FOREVER; /* unless it is woken in the meantime */
  g_mutex_unlock (&self->lock);
  const gint64 due_us = self->work (self->owner, self->cancellable);
  g_mutex_lock (&self->lock);
  self->due_us = MIN (self->due_us, due_us);
}

static gpointer
keep_up (gpointer data)
{
  MusterBackgroundTask *self = data;
  g_mutex_lock (&self->lock);
  while (!self->is_stopped)
    if (self->due_us > muster_clock_now_us (muster_system_clock ()))
      (void)muster_wait_change (&self->changed, &self->lock, self->due_us);
    else
      run_locked (self);
  g_mutex_unlock (&self->lock);
  return NULL;
}

MusterBackgroundTask *
muster_background_task_new (const char *name, MusterBackgroundWork work, gpointer owner,
                            gint64 due_us)
{
  MusterBackgroundTask *self = g_new0 (MusterBackgroundTask, 1);
  self->work = work;
  self->owner = owner;
  self->due_us = due_us;
  self->cancellable = g_cancellable_new ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->thread = g_thread_new (name, keep_up, self);
  return self;
}

void
muster_background_task_wake (MusterBackgroundTask *self)
{
  if (muster_rpc_is_forked ())
    return;
  g_mutex_lock (&self->lock);
  self->due_us = 0;
  g_cond_signal (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
muster_background_task_stop (MusterBackgroundTask *self)
{
  if (muster_rpc_is_forked ())
    return;
  g_mutex_lock (&self->lock);
  self->is_stopped = TRUE;
  g_cond_signal (&self->changed);
  g_mutex_unlock (&self->lock);
  g_cancellable_cancel (self->cancellable);
  g_clear_pointer (&self->thread, g_thread_join);
}

void
muster_background_task_free (MusterBackgroundTask *self)
{
  if (muster_rpc_is_forked ())
    return;
  muster_background_task_stop (self);
  g_object_unref (self->cancellable);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  g_free (self);
}
