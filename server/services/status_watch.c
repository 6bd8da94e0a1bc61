// SPDX-License-Identifier: Apache-2.0
/* Calls of Status that wait for a change. An alarm answers those that are due: at a change, or
 * before their deadline. */
#include "server/services/status_watch.h"

#include "server/core/alarm.h"
#include "server/core/server_private.h"

#define MAX_WAITING 64
#define MAX_WAIT_US (60 * MUSTER_SECOND)

struct _MusterStatusWatch {
  MusterServer *server; /* (not owned) */
  MusterStatusAnswer answer;
  MusterAlarm *alarm; /* (owned) */
  gint64 n_changes;   /* atomic */

  GMutex lock;
  GPtrArray *waiting; /* (owned) (element-type Waiting) guarded by lock */
  gboolean stopped;   /* guarded by lock */
};

typedef struct {
  MusterRpcCall *call; /* (owned) */
  gint64 after;
  gint64 until_us;
} Waiting;

static void
waiting_free (gpointer data)
{
  Waiting *self = data;
  muster_rpc_call_unref (self->call);
  g_free (self);
}

gint64
muster_status_watch_n_changes (MusterStatusWatch *self)
{
  return __atomic_load_n (&self->n_changes, __ATOMIC_SEQ_CST);
}

/* A caller that is gone is answered, too, which ends its call. */
static gboolean
is_due (MusterStatusWatch *self, const Waiting *waiting, gint64 now_us)
{
  return self->stopped || waiting->after != muster_status_watch_n_changes (self) ||
         waiting->until_us <= now_us ||
         g_cancellable_is_cancelled (muster_rpc_call_cancellable (waiting->call));
}

/* Takes out the calls that are due; returns when the next one is. */
static gint64
take_due (MusterStatusWatch *self, GPtrArray *due)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  gint64 next_us = MUSTER_WAIT_FOREVER;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  for (guint i = self->waiting->len; i-- > 0;) {
    Waiting *waiting = self->waiting->pdata[i];
    if (is_due (self, waiting, now_us))
      g_ptr_array_add (due, g_ptr_array_steal_index_fast (self->waiting, i));
    else
      next_us = MIN (next_us, waiting->until_us);
  }
  return next_us;
}

static gint64
answer_due (gpointer data)
{
  MusterStatusWatch *self = data;
  g_autoptr (GPtrArray) due = g_ptr_array_new_with_free_func (waiting_free);
  const gint64 next_us = take_due (self, due);
  for (guint i = 0; i < due->len; i++)
    self->answer (((Waiting *)due->pdata[i])->call, self->server);
  return next_us;
}

static void
on_caller_gone (GCancellable *cancellable G_GNUC_UNUSED, gpointer alarm)
{
  muster_alarm_set (alarm, 0);
}

static gboolean
may_wait (MusterStatusWatch *self, MusterRpcCall *call, gint64 after, gint64 until_us)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (self->stopped || self->waiting->len >= MAX_WAITING)
    return FALSE;
  Waiting *waiting = g_new (Waiting, 1);
  *waiting = (Waiting){muster_rpc_call_ref (call), after, until_us};
  g_ptr_array_add (self->waiting, waiting);
  return TRUE;
}

void
muster_status_watch_add (MusterStatusWatch *self, MusterRpcCall *call, gint64 after, gint64 wait_us)
{
  g_autoptr (MusterRpcCall) held = muster_rpc_call_ref (call);
  const gint64 now_us = muster_clock_now_us (
      muster_system_clock ()); /* the machine's clock, as for gRPC's deadlines */
  const gint64 until_us = muster_deadline_after (now_us, CLAMP (wait_us, 0, MAX_WAIT_US));
  if (after != muster_status_watch_n_changes (self) || !may_wait (self, call, after, until_us)) {
    self->answer (call, self->server);
    return;
  }
  muster_alarm_set (self->alarm, after == muster_status_watch_n_changes (self) ? until_us : 0);
  g_cancellable_connect (muster_rpc_call_cancellable (held), G_CALLBACK (on_caller_gone),
                         self->alarm, NULL);
}

void
muster_status_watch_note (MusterStatusWatch *self)
{
  __atomic_fetch_add (&self->n_changes, 1, __ATOMIC_SEQ_CST);
  g_mutex_lock (&self->lock);
  const gboolean is_watched = self->waiting->len > 0;
  g_mutex_unlock (&self->lock);
  if (is_watched)
    muster_alarm_set (self->alarm, 0);
}

static void
on_model_changed (const char *model G_GNUC_UNUSED, gpointer data)
{
  muster_status_watch_note (data);
}

MusterStatusWatch *
muster_status_watch_new (MusterServer *server, MusterStatusAnswer answer)
{
  MusterStatusWatch *self = g_new0 (MusterStatusWatch, 1);
  self->server = server;
  self->answer = answer;
  self->n_changes = 1;
  g_mutex_init (&self->lock);
  self->waiting = g_ptr_array_new_with_free_func (waiting_free);
  self->alarm = muster_alarm_new (muster_system_clock (), "status", answer_due, self);
  muster_readiness_hub_watch_models (server->hub, on_model_changed, self);
  return self;
}

void
muster_status_watch_free (MusterStatusWatch *self)
{
  if (self == NULL)
    return;
  muster_status_watch_stop (self);
  muster_alarm_free (self->alarm);
  g_ptr_array_unref (self->waiting);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
muster_status_watch_stop (MusterStatusWatch *self)
{
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_mutex_unlock (&self->lock);
  muster_alarm_stop (self->alarm);
  (void)answer_due (self); /* answers all that are left */
}
