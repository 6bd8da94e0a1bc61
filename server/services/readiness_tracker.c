// SPDX-License-Identifier: Apache-2.0
/* Tracks whether a prepared model is ready: it asks the hub for the chief's ready op, in a
 * session of the server's own, and reports changes to the chief registry. */
#include "server/services/readiness_tracker.h"

#include "base/log_private.h"

#define PATIENCE (60 * MUSTER_SECOND) /* the time limit for creating the session */

struct _MusterReadinessTracker {
  gatomicrefcount refs; /* the owner's, and one for each job of the pool */
  const MusterReadinessTracking *tracking;
  char *model; /* (owned) */
  gint64 epoch;
  MusterGraph *graph; /* (owned) */
  char *ready_op;     /* (owned) (nullable) */
  GCancellable *stop; /* (owned) cancels the creation of the session */
  gint has_failed;    /* atomic */

  GMutex lock;
  gboolean is_stopped;          /* guarded by lock */
  MusterSession *session;       /* (owned) (nullable) guarded by lock */
  MusterSubscriber *subscriber; /* (not owned) (nullable) guarded by lock */
};

static MusterReadinessTracker *
tracker_ref (MusterReadinessTracker *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
tracker_unref (MusterReadinessTracker *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_free (self->model);
  muster_graph_unref (self->graph);
  g_free (self->ready_op);
  g_object_unref (self->stop);
  g_clear_object (&self->session);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
fail (MusterReadinessTracker *self, const GError *error)
{
  muster_log (G_LOG_LEVEL_INFO, "readiness", "MESSAGE", "following whether '%s' is ready: %s",
              self->model, error->message);
  muster_chief_registry_set_ready (self->tracking->registry, self->model, self->epoch, FALSE);
  g_atomic_int_set (&self->has_failed, TRUE);
}

/* The hub's callback. */
static void
on_readiness (const MusterReadiness *readiness, guint64 round G_GNUC_UNUSED, const GError *error,
              gpointer data)
{
  MusterReadinessTracker *self = data;
  if (readiness != NULL)
    muster_chief_registry_set_ready (self->tracking->registry, self->model, self->epoch,
                                     readiness->is_ready);
  else
    fail (self, error);
}

/* The subscriber borrows the tracker, so it is unsubscribed before the tracker is released. */
static void
open_session (MusterReadinessTracker *self)
{
  g_autoptr (GError) error = NULL;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  g_autoptr (MusterSession) session =
      muster_master_create_session (self->tracking->master, self->graph, NULL,
                                    muster_deadline_after (now_us, PATIENCE), self->stop, &error);
  if (session == NULL) {
    fail (self, error);
    return;
  }
  g_mutex_lock (&self->lock);
  self->session = g_object_ref (session);
  if (!self->is_stopped)
    self->subscriber = muster_readiness_hub_subscribe (
        self->tracking->hub, session, &(MusterWatchFor){.ready_op = self->ready_op}, on_readiness,
        self);
  g_mutex_unlock (&self->lock);
}

/* Opens or closes the session: one job is queued when the tracker is created and one when it is
 * stopped, and they may run in any order. */
void
muster_readiness_tracker_work (gpointer follower, gpointer following G_GNUC_UNUSED)
{
  MusterReadinessTracker *self = follower;
  g_mutex_lock (&self->lock);
  gboolean is_to_open = !self->is_stopped;
  g_mutex_unlock (&self->lock);
  if (is_to_open)
    open_session (self);

  g_mutex_lock (&self->lock);
  g_autoptr (MusterSession) session = self->is_stopped ? g_steal_pointer (&self->session) : NULL;
  g_mutex_unlock (&self->lock);
  if (session != NULL)
    muster_session_close_quietly (session);
  tracker_unref (self);
}

static void
push (MusterReadinessTracker *self)
{
  /* The push can only fail to start a thread now; the job is queued. */
  (void)g_thread_pool_push (self->tracking->pool, tracker_ref (self), NULL);
}

MusterReadinessTracker *
muster_readiness_tracker_new (const MusterReadinessTracking *tracking, const char *model,
                              gint64 epoch, MusterGraph *graph, const char *ready_op)
{
  MusterReadinessTracker *self = g_new0 (MusterReadinessTracker, 1);
  g_atomic_ref_count_init (&self->refs);
  self->tracking = tracking;
  self->model = g_strdup (model);
  self->epoch = epoch;
  self->graph = muster_graph_ref (graph);
  self->ready_op = g_strdup (ready_op);
  self->stop = g_cancellable_new ();
  g_mutex_init (&self->lock);
  push (self);
  return self;
}

void
muster_readiness_tracker_stop (MusterReadinessTracker *self)
{
  if (self == NULL)
    return;
  g_mutex_lock (&self->lock);
  self->is_stopped = TRUE;
  MusterSubscriber *subscriber = g_steal_pointer (&self->subscriber);
  g_mutex_unlock (&self->lock);
  g_cancellable_cancel (self->stop);
  if (subscriber != NULL)
    muster_readiness_hub_unsubscribe (self->tracking->hub, subscriber);
  push (self);
  tracker_unref (self);
}

gboolean
muster_readiness_tracker_has_failed (MusterReadinessTracker *self)
{
  return g_atomic_int_get (&self->has_failed);
}
