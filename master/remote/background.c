// SPDX-License-Identifier: Apache-2.0
#include "master/remote/background_private.h"

#include "base/wait.h"

struct _MusterBackground {
  gatomicrefcount refs;
  GMutex lock;
  GCond changed; /* for what follows; no other lock is taken while lock is held */
  /* guarded by lock */
  GPtrArray *tasks; /* (owned) (element-type MusterBackgroundTask) */
  GThread *thread;  /* (owned) (nullable) until there is a task */
  gboolean is_over;
};

struct _MusterBackgroundTask {
  MusterBackground *background; /* its owner holds it */
  MusterBackgroundWork work;
  gpointer owner;
  /* guarded by the background's lock */
  gint64 due_us;
  GCancellable *running; /* (owned) (nullable) of the current run */
  gboolean is_woken;
  gboolean is_stopped;
};

MusterBackground *
muster_background_new (void)
{
  MusterBackground *self = g_new0 (MusterBackground, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->tasks = g_ptr_array_new ();
  return self;
}

MusterBackground *
muster_background_ref (MusterBackground *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_background_unref (MusterBackground *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_mutex_lock (&self->lock);
  self->is_over = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&self->thread, g_thread_join);
  g_assert (self->tasks->len == 0);
  g_ptr_array_unref (self->tasks);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* The task that is due first, or NULL. */
static MusterBackgroundTask *
first_locked (MusterBackground *self)
{
  MusterBackgroundTask *first = NULL;
  for (guint i = 0; i < self->tasks->len; i++) {
    MusterBackgroundTask *task = self->tasks->pdata[i];
    if (!task->is_stopped && (first == NULL || task->due_us < first->due_us))
      first = task;
  }
  return first;
}

static void
run_locked (MusterBackground *self, MusterBackgroundTask *task)
{
  task->running = g_cancellable_new ();
  task->is_woken = FALSE;
  g_mutex_unlock (&self->lock);
  gint64 due_us = task->work (task->owner, task->running);
  g_mutex_lock (&self->lock);
  task->due_us = task->is_woken ? 0 : due_us;
  g_clear_object (&task->running);
  g_cond_broadcast (&self->changed); /* muster_background_stop () waits for it */
}

static gpointer
keep_up (gpointer data)
{
  MusterBackground *self = data;
  g_mutex_lock (&self->lock);
  while (!self->is_over) {
    MusterBackgroundTask *task = first_locked (self);
    gint64 due_us = task != NULL ? task->due_us : MUSTER_WAIT_FOREVER;
    if (due_us > muster_clock_now_us (muster_system_clock ()))
      (void)muster_wait_change (&self->changed, &self->lock, due_us);
    else
      run_locked (self, task);
  }
  g_mutex_unlock (&self->lock);
  return NULL;
}

MusterBackgroundTask *
muster_background_add (MusterBackground *self, MusterBackgroundWork work, gpointer owner,
                       gint64 due_us)
{
  MusterBackgroundTask *task = g_new0 (MusterBackgroundTask, 1);
  task->background = self;
  task->work = work;
  task->owner = owner;
  task->due_us = due_us;
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->tasks, task);
  if (self->thread == NULL)
    self->thread = g_thread_new ("muster-upkeep", keep_up, self);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  return task;
}

void
muster_background_wake (MusterBackgroundTask *task)
{
  MusterBackground *self = task->background;
  g_mutex_lock (&self->lock);
  task->due_us = 0;
  task->is_woken = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
muster_background_stop (MusterBackgroundTask *task)
{
  MusterBackground *self = task->background;
  g_mutex_lock (&self->lock);
  task->is_stopped = TRUE;
  g_autoptr (GCancellable) running = task->running != NULL ? g_object_ref (task->running) : NULL;
  g_mutex_unlock (&self->lock);
  if (running != NULL)
    g_cancellable_cancel (running);
  g_mutex_lock (&self->lock);
  while (task->running != NULL)
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
}

void
muster_background_task_free (MusterBackgroundTask *task)
{
  MusterBackground *self = task->background;
  muster_background_stop (task);
  g_mutex_lock (&self->lock);
  g_ptr_array_remove_fast (self->tasks, task);
  g_mutex_unlock (&self->lock);
  g_free (task);
}
