// SPDX-License-Identifier: Apache-2.0
#include "cli/output/log_queue.h"

#include "base/log_private.h"
#include "base/wait_private.h"

#include <signal.h>

struct _MusterLogQueue {
  gsize max_bytes;
  MusterLogWrite write;
  gpointer user_data;
  GThread *thread; /* (owned) */

  GMutex lock; /* no other lock is taken while it is held */
  GCond changed;
  /* guarded by lock */
  GQueue waiting;  /* (owned) (element-type MusterLogMessage) */
  gsize n_bytes;   /* of those */
  guint n_dropped; /* after those */
  gboolean is_writing;
  gboolean is_over;
};

static void
write_dropped (MusterLogQueue *self, guint n_dropped)
{
  char count[24];
  const GLogField fields[] = {
      {"GLIB_DOMAIN", MUSTER_LOG_DOMAIN, -1},
      {"MUSTER_EVENT", "dropped", -1},
      {"MUSTER_COUNT", muster_log_int (count, n_dropped), -1},
      {"MESSAGE", "the log was written too slowly; lines were dropped", -1}};
  const MusterLogMessage message = {G_LOG_LEVEL_WARNING,
                                    muster_clock_wall_us (muster_system_clock ()), fields,
                                    G_N_ELEMENTS (fields)};
  self->write (&message, self->user_data);
}

/* Takes all queued messages, and writes them without the lock. */
static void
write_waiting_locked (MusterLogQueue *self)
{
  GQueue batch = self->waiting;
  const guint n_dropped = self->n_dropped;
  g_queue_init (&self->waiting);
  self->n_bytes = self->n_dropped = 0;
  self->is_writing = TRUE;
  g_mutex_unlock (&self->lock);
  for (MusterLogMessage *message; (message = g_queue_pop_head (&batch)) != NULL; g_free (message))
    self->write (message, self->user_data);
  if (n_dropped > 0)
    write_dropped (self, n_dropped);
  g_mutex_lock (&self->lock);
  self->is_writing = FALSE;
  g_cond_broadcast (&self->changed);
}

static gboolean
has_work_locked (const MusterLogQueue *self)
{
  return self->waiting.length > 0 || self->n_dropped > 0;
}

static gpointer
write_all (gpointer data)
{
  MusterLogQueue *self = data;
  g_mutex_lock (&self->lock);
  while (!self->is_over || has_work_locked (self))
    if (has_work_locked (self))
      write_waiting_locked (self);
    else
      g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
  return NULL;
}

/* The thread blocks signals: other threads wait for them. */
MusterLogQueue *
muster_log_queue_new (gsize max_bytes, MusterLogWrite write, gpointer user_data)
{
  sigset_t all, before;
  MusterLogQueue *self = g_new0 (MusterLogQueue, 1);
  self->max_bytes = max_bytes;
  self->write = write;
  self->user_data = user_data;
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  sigfillset (&all);
  pthread_sigmask (SIG_BLOCK, &all, &before);
  self->thread = g_thread_new ("muster-log", write_all, self);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  return self;
}

void
muster_log_queue_free (MusterLogQueue *self)
{
  if (self == NULL)
    return;
  g_mutex_lock (&self->lock);
  self->is_over = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  g_thread_join (self->thread);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* After a dropped message, further ones are dropped until the thread takes the queue's. So the
 * event "dropped" is at their place. */
void
muster_log_queue_add (MusterLogQueue *self, const MusterLogMessage *message)
{
  gsize size;
  g_autofree MusterLogMessage *copy = muster_log_message_copy (message, &size);
  g_mutex_lock (&self->lock);
  if (self->n_dropped > 0 || self->n_bytes + size > self->max_bytes) {
    self->n_dropped++;
  } else {
    self->n_bytes += size;
    g_queue_push_tail (&self->waiting, g_steal_pointer (&copy));
  }
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

gboolean
muster_log_queue_flush (MusterLogQueue *self, gint64 deadline_us)
{
  gboolean has_time = TRUE;
  g_mutex_lock (&self->lock);
  while ((has_work_locked (self) || self->is_writing) && has_time)
    has_time = muster_wait_change (&self->changed, &self->lock, deadline_us);
  const gboolean is_done = !has_work_locked (self) && !self->is_writing;
  g_mutex_unlock (&self->lock);
  return is_done;
}
