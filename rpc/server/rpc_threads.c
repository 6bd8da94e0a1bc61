// SPDX-License-Identifier: Apache-2.0
/* The threads that take calls from gRPC's queue. A keeper watches how many are needed: more
 * where handlers take long, few where they are short. */
#include "rpc/server/rpc_threads_private.h"

#include "base/blocking_private.h"
#include "base/wait_private.h"

#include <grpc/support/time.h>
#include <sys/resource.h>

#define TICK_US (2 * MUSTER_MILLISECOND)
/* All busy at this many ticks, while events are handled: more threads are needed. */
#define LOADED_TICKS 8
/* The interval in ticks: if sometimes two threads were free, and either one always was or events
 * were small, one is too many. */
#define WINDOW_TICKS 25
/* Of processor time: handing a smaller event to another thread costs more than it gains. */
#define SMALL_EVENT_US 15

struct _MusterRpcThreads {
  grpc_completion_queue *queue; /* (not owned) */
  struct _Worker *workers;      /* (owned) n_max */
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
typedef struct _Worker {
  MusterRpcThreads *all; /* (not owned) */
  GThread *thread;       /* (owned) */
  gboolean is_polling;   /* this thread counts in n_polling; only it looks */

  GMutex lock;
  void (*notice) (gpointer data); /* guarded by lock: to be called, or NULL */
  gpointer data;                  /* guarded by lock */
  guint n_ticks;                  /* guarded by lock: since the work began */
} Worker;

static _Thread_local Worker *here; /* (nullable) where this isn't one of them */

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

/* --- work that takes long --- */

void
muster_rpc_threads_begin_work (void (*notice) (gpointer data), gpointer data)
{
  Worker *self = here;
  g_return_if_fail (self != NULL);
  g_mutex_lock (&self->lock);
  self->notice = notice;
  self->data = data;
  self->n_ticks = 0;
  g_mutex_unlock (&self->lock);
}

void
muster_rpc_threads_end_work (void)
{
  g_mutex_lock (&here->lock);
  here->notice = NULL;
  g_mutex_unlock (&here->lock);
}

/* Gives notice under the lock, so that the work doesn't end meanwhile. */
static void
look_at_work (Worker *self)
{
  g_mutex_lock (&self->lock);
  if (self->notice != NULL && self->n_ticks++ > 0) {
    self->notice (self->data);
    self->notice = NULL;
  }
  g_mutex_unlock (&self->lock);
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

/* TRUE if it completed another on the spot: that is the next. */
static gboolean
handle_one (MusterRpcThreads *all, MusterRpcTag **tag, int *ok)
{
  if (!(*tag)->is_brief) {
    (*tag)->done ((*tag)->owner, *ok);
    return FALSE;
  }
  gpointer next;
  grpc_completion_queue_thread_local_cache_init (all->queue);
  (*tag)->done ((*tag)->owner, *ok);
  if (!grpc_completion_queue_thread_local_cache_flush (all->queue, &next, ok))
    return FALSE;
  *tag = next;
  return TRUE;
}

static void
handle (Worker *self, MusterRpcTag *tag, int ok)
{
  MusterRpcThreads *all = self->all;
  g_atomic_int_inc (&all->n_busy);
  g_atomic_int_inc (&all->n_events);
  if (g_atomic_int_get (&all->is_keeper_asleep))
    wake_keeper (all);
  while (handle_one (all, &tag, &ok))
    g_atomic_int_inc (&all->n_events);
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
  Worker *self = here = data;
  muster_blocking_set_hook (on_about_to_block, self);
  while (take_place (self)) {
    while (self->is_polling) {
      grpc_event event =
          grpc_completion_queue_next (self->all->queue, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL);
      if (event.type == GRPC_QUEUE_SHUTDOWN) {
        end_all (self);
        return NULL;
      }
      handle (self, event.tag, event.success);
      if (self->is_polling && leave_if_too_many (self))
        break;
    }
  }
  return NULL;
}

/* What the keeper remembers from tick to tick. */
typedef struct {
  int last_events;
  gint64 last_cpu_us;
  int n_busy_ticks; /* since a thread was free */
  /* since the last turn of the window */
  int n_ticks;
  int n_idle_ticks; /* without an event */
  int least_free, most_free;
  gint64 n_events, cpu_us;
} Watch;

static void
start_window (Watch *watch)
{
  watch->n_ticks = 0;
  watch->n_idle_ticks = 0;
  watch->least_free = G_MAXINT;
  watch->most_free = 0;
  watch->n_events = 0;
  watch->cpu_us = 0;
}

/* The whole process's: an event takes no more than its share. */
static gint64
find_cpu_us (void)
{
  struct rusage usage;
  if (getrusage (RUSAGE_SELF, &usage) != 0)
    return 0;
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * MUSTER_SECOND + usage.ru_utime.tv_usec +
         usage.ru_stime.tv_usec;
}

static gboolean
are_small (gint64 n_events, gint64 cpu_us)
{
  return cpu_us < n_events * SMALL_EVENT_US;
}

/* One check, with the lock held. TRUE if nothing has happened for a whole window. */
static gboolean
look (MusterRpcThreads *self, Watch *watch)
{
  int n_events = g_atomic_int_get (&self->n_events);
  int n_free = (int)self->n_polling - g_atomic_int_get (&self->n_busy);
  const int n_new = (int)((guint)n_events - (guint)watch->last_events); /* it wraps */
  const gint64 cpu_us = find_cpu_us (), new_us = cpu_us - watch->last_cpu_us;
  gboolean is_idle = n_new == 0;
  watch->last_events = n_events;
  watch->last_cpu_us = cpu_us;
  watch->n_events += n_new;
  watch->cpu_us += new_us;
  watch->n_idle_ticks += is_idle;
  watch->least_free = MIN (watch->least_free, n_free);
  watch->most_free = MAX (watch->most_free, n_free);
  watch->n_busy_ticks = n_free > 0 || are_small (n_new, new_us) ? 0 : watch->n_busy_ticks + 1;

  gboolean is_stuck = is_idle && watch->n_busy_ticks > 1;
  if ((is_stuck || watch->n_busy_ticks >= LOADED_TICKS) && self->n_wanted < self->n_max) {
    self->n_wanted++;
    watch->n_busy_ticks = 0;
    g_cond_signal (&self->vacant);
  }
  if (++watch->n_ticks < WINDOW_TICKS)
    return FALSE;
  const gboolean has_spare = watch->least_free > 0 || are_small (watch->n_events, watch->cpu_us);
  gboolean is_one_too_many = self->n_wanted > 1 && has_spare && watch->most_free > 1;
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
    g_mutex_unlock (&self->lock);
    for (guint i = 0; i < self->n_max; i++)
      look_at_work (&self->workers[i]);
    g_mutex_lock (&self->lock);
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
  self->workers = g_new0 (Worker, n_max);
  for (guint i = 0; i < n_max; i++) {
    Worker *worker = &self->workers[i];
    worker->all = self;
    g_mutex_init (&worker->lock);
    worker->thread = g_thread_new ("muster-rpc", work, worker);
  }
  self->keeper = g_thread_new ("muster-keeper", keep, self);
  return self;
}

void
muster_rpc_threads_join (MusterRpcThreads *self)
{
  for (guint i = 0; i < self->n_max; i++)
    g_thread_join (self->workers[i].thread);
  g_thread_join (self->keeper);
  for (guint i = 0; i < self->n_max; i++)
    g_mutex_clear (&self->workers[i].lock);
  g_free (self->workers);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->vacant);
  g_cond_clear (&self->wake);
  g_free (self);
}
