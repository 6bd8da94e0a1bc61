// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/rpc_threads_private.h"

#include "base/blocking.h"
#include "base/wait.h"

#include <grpc/support/time.h>

#define TICK_US (2 * MUSTER_MILLISECOND)
/* All busy at this many ticks, while events are handled: more threads are needed. */
#define LOADED_TICKS 8
/* The interval in ticks: if a thread was always free, and sometimes two were, one is too many. */
#define WINDOW_TICKS 25

struct _MusterRpcThreads {
  grpc_completion_queue *queue; /* (not owned) */
  GPtrArray *threads;           /* (owned) (element-type GThread) */
  GThread *keeper;              /* (owned) */
  guint n_max;

  gint n_events;             /* atomic, wraps: events taken */
  gint n_busy;               /* atomic: of those that poll, how many handle an event */
  gboolean is_keeper_asleep; /* atomic */

  GMutex lock;
  GCond vacant;     /* a thread may start to poll */
  GCond wake;       /* the keeper's */
  guint n_wanted;   /* guarded by lock: threads that should poll, 1 or more */
  guint n_polling;  /* guarded by lock: that do, or handle an event between two polls */
  gboolean is_over; /* guarded by lock: the queue has been shut down */
};

/* One thread of them. */
typedef struct {
  MusterRpcThreads *all;
  gboolean is_polling; /* this thread counts in n_polling */
} Worker;

/* Waits until there is need of one more; FALSE when all is over. */
static gboolean
take_place (Worker *self)
{
  MusterRpcThreads *all = self->all;
  g_mutex_lock (&all->lock);
  while (all->n_polling >= all->n_wanted && !all->is_over)
    g_cond_wait (&all->vacant, &all->lock);
  self->is_polling = !all->is_over;
  all->n_polling += self->is_polling;
  g_mutex_unlock (&all->lock);
  return self->is_polling;
}

static void
leave_place (Worker *self)
{
  MusterRpcThreads *all = self->all;
  g_mutex_lock (&all->lock);
  all->n_polling--;
  self->is_polling = FALSE;
  g_cond_signal (&all->vacant);
  g_mutex_unlock (&all->lock);
}

/* Called by the handler on this thread before it blocks. */
static void
on_about_to_block (gpointer data)
{
  Worker *self = data;
  if (!self->is_polling)
    return;
  g_atomic_int_add (&self->all->n_busy, -1);
  leave_place (self);
}

static void
wake_keeper (MusterRpcThreads *all)
{
  g_mutex_lock (&all->lock);
  g_atomic_int_set (&all->is_keeper_asleep, FALSE);
  g_cond_signal (&all->wake);
  g_mutex_unlock (&all->lock);
}

static void
handle (Worker *self, MusterRpcTag *tag, gboolean ok)
{
  MusterRpcThreads *all = self->all;
  g_atomic_int_inc (&all->n_busy);
  g_atomic_int_inc (&all->n_events);
  if (g_atomic_int_get (&all->is_keeper_asleep))
    wake_keeper (all);
  tag->done (tag->owner, ok);
  if (self->is_polling)
    g_atomic_int_add (&all->n_busy, -1);
}

/* TRUE if fewer threads are wanted than there are: then this one has left. */
static gboolean
leave_if_too_many (Worker *self)
{
  MusterRpcThreads *all = self->all;
  g_mutex_lock (&all->lock);
  gboolean is_one_too_many = all->n_polling > all->n_wanted;
  if (is_one_too_many) {
    all->n_polling--;
    self->is_polling = FALSE;
  }
  g_mutex_unlock (&all->lock);
  return is_one_too_many;
}

static void
end_all (Worker *self)
{
  MusterRpcThreads *all = self->all;
  g_mutex_lock (&all->lock);
  all->is_over = TRUE;
  g_cond_broadcast (&all->vacant);
  g_cond_signal (&all->wake);
  g_mutex_unlock (&all->lock);
}

static gpointer
work (gpointer data)
{
  Worker self = {.all = data};
  muster_blocking_set_hook (on_about_to_block, &self);
  while (take_place (&self)) {
    while (self.is_polling) {
      grpc_event event =
          grpc_completion_queue_next (self.all->queue, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL);
      if (event.type == GRPC_QUEUE_SHUTDOWN) {
        end_all (&self);
        return NULL;
      }
      handle (&self, event.tag, event.success);
      if (self.is_polling && leave_if_too_many (&self))
        break;
    }
  }
  return NULL;
}

/* What the keeper remembers from tick to tick. */
typedef struct {
  int last_events;
  int n_busy_ticks; /* since a thread was free */
  /* since the last turn of the window */
  int n_ticks;
  int n_idle_ticks; /* without an event */
  int least_free, most_free;
} Watch;

static void
start_window (Watch *watch)
{
  watch->n_ticks = 0;
  watch->n_idle_ticks = 0;
  watch->least_free = G_MAXINT;
  watch->most_free = 0;
}

/* One check, with the lock held. TRUE if nothing has happened for a whole window. */
static gboolean
look (MusterRpcThreads *self, Watch *watch)
{
  int n_events = g_atomic_int_get (&self->n_events);
  int n_free = (int)self->n_polling - g_atomic_int_get (&self->n_busy);
  gboolean is_idle = n_events == watch->last_events;
  watch->last_events = n_events;
  watch->n_idle_ticks += is_idle;
  watch->least_free = MIN (watch->least_free, n_free);
  watch->most_free = MAX (watch->most_free, n_free);
  watch->n_busy_ticks = n_free > 0 ? 0 : watch->n_busy_ticks + 1;

  gboolean is_stuck = is_idle && watch->n_busy_ticks > 1;
  if ((is_stuck || watch->n_busy_ticks >= LOADED_TICKS) && self->n_wanted < self->n_max) {
    self->n_wanted++;
    watch->n_busy_ticks = 0;
    g_cond_signal (&self->vacant);
  }
  if (++watch->n_ticks < WINDOW_TICKS)
    return FALSE;
  gboolean is_one_too_many = self->n_wanted > 1 && watch->least_free > 0 && watch->most_free > 1;
  self->n_wanted -= is_one_too_many;
  gboolean is_asleep =
      watch->n_idle_ticks == WINDOW_TICKS && watch->least_free > 0 && !is_one_too_many;
  start_window (watch);
  return is_asleep;
}

/* Sleeps until there is an event. To miss none, it sets is_keeper_asleep before it checks for
 * events, and the threads count an event before they check is_keeper_asleep. */
static void
sleep_until_event (MusterRpcThreads *self, const Watch *watch)
{
  g_atomic_int_set (&self->is_keeper_asleep, TRUE);
  while (g_atomic_int_get (&self->is_keeper_asleep) && !self->is_over &&
         g_atomic_int_get (&self->n_events) == watch->last_events)
    g_cond_wait (&self->wake, &self->lock);
  g_atomic_int_set (&self->is_keeper_asleep, FALSE);
}

static gpointer
keep (gpointer data)
{
  MusterRpcThreads *self = data;
  Watch watch = {0};
  start_window (&watch);
  g_mutex_lock (&self->lock);
  while (!self->is_over) {
    if (look (self, &watch))
      sleep_until_event (self, &watch);
    (void)muster_wait_change (&self->wake, &self->lock,
                              muster_clock_now_us (muster_system_clock ()) + TICK_US);
  }
  g_mutex_unlock (&self->lock);
  return NULL;
}

MusterRpcThreads *
muster_rpc_threads_new (grpc_completion_queue *queue, guint n_max)
{
  MusterRpcThreads *self = g_new0 (MusterRpcThreads, 1);
  self->queue = queue;
  self->n_max = n_max;
  self->n_wanted = 1;
  g_mutex_init (&self->lock);
  g_cond_init (&self->vacant);
  g_cond_init (&self->wake);
  self->threads = g_ptr_array_new ();
  for (guint i = 0; i < n_max; i++)
    g_ptr_array_add (self->threads, g_thread_new ("muster-rpc", work, self));
  self->keeper = g_thread_new ("muster-keeper", keep, self);
  return self;
}

void
muster_rpc_threads_join (MusterRpcThreads *self)
{
  for (guint i = 0; i < self->threads->len; i++)
    g_thread_join (self->threads->pdata[i]);
  g_thread_join (self->keeper);
  g_ptr_array_unref (self->threads);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->vacant);
  g_cond_clear (&self->wake);
  g_free (self);
}
