// SPDX-License-Identifier: Apache-2.0
#include "master/remote/background_private.h"

struct _MusterUpkeep {
  gatomicrefcount refs;
  GMutex lock;
  GCond changed; /* of what is below; nothing else is locked while lock is held */
  /* guarded by lock */
  GPtrArray *tasks; /* (owned) (element-type MusterUpkeepTask) */
  GThread *thread;  /* (owned) (nullable) until there is a task */
  gboolean is_over;
};

struct _MusterUpkeepTask {
  MusterUpkeep *upkeep; /* its owner holds it */
  MusterUpkeepWork work;
  gpointer owner;
  /* guarded by the upkeep's lock */
  gint64 due_us;
  GCancellable *running; /* (owned) (nullable) of the run under way */
  gboolean is_poked;
  gboolean is_stopped;
};

MusterUpkeep *
muster_upkeep_new (void)
{
  MusterUpkeep *self = g_new0 (MusterUpkeep, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->tasks = g_ptr_array_new ();
  return self;
}

MusterUpkeep *
muster_upkeep_ref (MusterUpkeep *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_upkeep_unref (MusterUpkeep *self)
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
static MusterUpkeepTask *
first_locked (MusterUpkeep *self)
{
  MusterUpkeepTask *first = NULL;
  for (guint i = 0; i < self->tasks->len; i++) {
    MusterUpkeepTask *task = self->tasks->pdata[i];
    if (!task->is_stopped && (first == NULL || task->due_us < first->due_us))
      first = task;
  }
  return first;
}

static void
wait_locked (MusterUpkeep *self, gint64 until_us)
{
  if (until_us == MUSTER_WAIT_FOREVER)
    g_cond_wait (&self->changed, &self->lock);
  else
    g_cond_wait_until (&self->changed, &self->lock, until_us);
}

static void
run_locked (MusterUpkeep *self, MusterUpkeepTask *task)
{
  task->running = g_cancellable_new ();
  task->is_poked = FALSE;
  g_mutex_unlock (&self->lock);
  gint64 due_us = task->work (task->owner, task->running);
  g_mutex_lock (&self->lock);
  task->due_us = task->is_poked ? 0 : due_us;
  g_clear_object (&task->running);
  g_cond_broadcast (&self->changed); /* who stops it waits */
}

static gpointer
keep_up (gpointer data)
{
  MusterUpkeep *self = data;
  g_mutex_lock (&self->lock);
  while (!self->is_over) {
    MusterUpkeepTask *task = first_locked (self);
    gint64 due_us = task != NULL ? task->due_us : MUSTER_WAIT_FOREVER;
    if (due_us > muster_clock_now_us (muster_system_clock ()))
      wait_locked (self, due_us);
    else
      run_locked (self, task);
  }
  g_mutex_unlock (&self->lock);
  return NULL;
}

MusterUpkeepTask *
muster_upkeep_add (MusterUpkeep *self, MusterUpkeepWork work, gpointer owner, gint64 due_us)
{
  MusterUpkeepTask *task = g_new0 (MusterUpkeepTask, 1);
  task->upkeep = self;
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
muster_upkeep_poke (MusterUpkeepTask *task)
{
  MusterUpkeep *self = task->upkeep;
  g_mutex_lock (&self->lock);
  task->due_us = 0;
  task->is_poked = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
muster_upkeep_stop (MusterUpkeepTask *task)
{
  MusterUpkeep *self = task->upkeep;
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
muster_upkeep_task_free (MusterUpkeepTask *task)
{
  MusterUpkeep *self = task->upkeep;
  muster_upkeep_stop (task);
  g_mutex_lock (&self->lock);
  g_ptr_array_remove_fast (self->tasks, task);
  g_mutex_unlock (&self->lock);
  g_free (task);
}
