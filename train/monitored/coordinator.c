// SPDX-License-Identifier: Apache-2.0
/* The common end of a session's threads: any of them may request a stop, with or without an
 * error, and the join waits for all. The first error counts; a stop cancels the coordinator's
 * cancellable. */
#include "train/monitored/coordinator.h"

#include "base/cancel_link_private.h"
#include "base/log_private.h"
#include "base/require_private.h"

/* A coordinated thread. Reference counted, as it may outlive a join that timed out. */
typedef struct {
  gatomicrefcount refs;
  MusterCoordinator *coordinator; /* (owned) by the thread while it runs */
  char *name;                     /* (owned) */
  MusterCoordinated work;
  gpointer user_data;
  GDestroyNotify destroy; /* (nullable) of user_data, when the thread has ended */
  gint64 interval_us;     /* the interval of a looper; below 0: work runs once */
  GThread *thread;        /* (owned) (nullable) until joined */
  gboolean has_ended;     /* guarded by the coordinator's lock */
} Worker;

struct _MusterCoordinator {
  GObject parent;
  MusterClock *clock; /* (owned) */
  gboolean end_of_input_is_clean;
  GMutex lock;
  /* guarded by lock */
  GCancellable *stop; /* (owned) */
  GPtrArray
      *stopped; /* (owned) (element-type GCancellable) earlier ones, which callers may still use */
  GCancellable *quiet; /* (owned) cancelled when the last thread has ended */
  GError *error;       /* (owned) (nullable) */
  gboolean is_joined;
  guint n_running;
  GPtrArray *workers; /* (owned) (element-type Worker) */
};

G_DEFINE_FINAL_TYPE (MusterCoordinator, muster_coordinator, G_TYPE_OBJECT)

static void
worker_unref (gpointer data)
{
  Worker *self = data;
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->thread != NULL)
    g_thread_unref (self->thread);
  g_free (self->name);
  g_free (self);
}

MusterCoordinator *
muster_coordinator_new (MusterClock *clock, gboolean end_of_input_is_clean)
{
  MusterCoordinator *self = g_object_new (MUSTER_TYPE_COORDINATOR, NULL);
  self->clock = g_object_ref (clock ? clock : muster_system_clock ());
  self->end_of_input_is_clean = end_of_input_is_clean;
  return self;
}

static gboolean
is_plain (const MusterCoordinator *self, const GError *reason)
{
  return reason == NULL ||
         (self->end_of_input_is_clean && muster_error_is (reason, MUSTER_ERROR_OUT_OF_RANGE));
}

gboolean
muster_coordinator_request_stop (MusterCoordinator *self, const GError *reason, GError **failure)
{
  muster_require (failure, FALSE, self);

  g_autoptr (GCancellable) stop = NULL;
  g_mutex_lock (&self->lock);
  if (self->is_joined && !is_plain (self, reason)) {
    g_mutex_unlock (&self->lock);
    if (failure != NULL)
      *failure = g_error_copy (reason);
    return FALSE;
  }
  gboolean is_first = !g_cancellable_is_cancelled (self->stop);
  if (is_first && !is_plain (self, reason)) {
    self->error = g_error_copy (reason);
    muster_log (G_LOG_LEVEL_INFO, "coordinator", "MESSAGE", "Error reported to Coordinator: %s",
                reason->message);
  } else if (!is_plain (self, reason))
    muster_log (G_LOG_LEVEL_INFO, "coordinator", "MESSAGE",
                "ignored, because a stop was already requested: %s", reason->message);
  stop = g_object_ref (self->stop);
  g_mutex_unlock (&self->lock);
  g_cancellable_cancel (stop); /* runs callbacks, so without the lock */
  return TRUE;
}

void
muster_coordinator_stop (MusterCoordinator *self)
{
  g_return_if_fail (self != NULL);
  (void)muster_coordinator_request_stop (self, NULL, NULL);
}

gboolean
muster_coordinator_should_stop (MusterCoordinator *self)
{
  g_return_val_if_fail (self != NULL, FALSE);
  return g_cancellable_is_cancelled (muster_coordinator_cancellable (self));
}

gboolean
muster_coordinator_wait_for_stop (MusterCoordinator *self, gint64 timeout_us,
                                  GCancellable *cancellable)
{
  g_return_val_if_fail (self != NULL, FALSE);

  gint64 wake_us = muster_deadline_after (muster_clock_now_us (self->clock), timeout_us);
  g_auto (MusterCancelLink) either =
      muster_cancel_link (muster_coordinator_cancellable (self), cancellable);

  (void)muster_clock_wait_until (self->clock, wake_us, either.cancellable, NULL);
  return muster_coordinator_should_stop (self);
}

GCancellable *
muster_coordinator_cancellable (MusterCoordinator *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_mutex_lock (&self->lock);
  GCancellable *stop = self->stop;
  g_mutex_unlock (&self->lock);
  return stop;
}

GError *
muster_coordinator_error (MusterCoordinator *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_mutex_lock (&self->lock);
  GError *error = self->error != NULL ? g_error_copy (self->error) : NULL;
  g_mutex_unlock (&self->lock);
  return error;
}

void
muster_coordinator_clear_stop (MusterCoordinator *self)
{
  g_return_if_fail (self != NULL);
  g_mutex_lock (&self->lock);
  g_clear_error (&self->error);
  self->is_joined = FALSE;
  g_ptr_array_add (self->stopped, self->stop);
  self->stop = g_cancellable_new ();
  g_mutex_unlock (&self->lock);
}

/* --- threads --- */

static gboolean
run_once (Worker *self)
{
  g_autoptr (GError) error = NULL;
  if (self->work (self->coordinator, self->user_data, &error))
    return TRUE;
  if (error != NULL)
    muster_coordinator_request_stop (self->coordinator, error, NULL);
  return FALSE;
}

static void
run_loop (Worker *self)
{
  MusterClock *clock = self->coordinator->clock;
  gint64 due_us = muster_clock_now_us (clock);
  while (!muster_coordinator_should_stop (self->coordinator) && run_once (self)) {
    due_us = muster_deadline_after (due_us, self->interval_us);
    if (self->interval_us > 0)
      (void)muster_clock_wait_until (clock, due_us,
                                     muster_coordinator_cancellable (self->coordinator), NULL);
  }
}

static gpointer
run_worker (gpointer data)
{
  Worker *self = data;
  MusterCoordinator *coordinator = self->coordinator;
  g_autoptr (GCancellable) quiet = NULL;
  if (self->interval_us < 0)
    (void)run_once (self);
  else
    run_loop (self);
  if (self->destroy != NULL)
    self->destroy (self->user_data);

  g_mutex_lock (&coordinator->lock);
  self->has_ended = TRUE;
  if (--coordinator->n_running == 0)
    quiet = g_object_ref (coordinator->quiet);
  g_mutex_unlock (&coordinator->lock);
  if (quiet != NULL)
    g_cancellable_cancel (quiet);
  worker_unref (self);
  g_object_unref (coordinator);
  return NULL;
}

/* interval_us below 0: work runs once. */
static void
start (MusterCoordinator *self, const char *name, gint64 interval_us, MusterCoordinated work,
       gpointer user_data, GDestroyNotify destroy)
{
  Worker *worker = g_new0 (Worker, 1);
  g_atomic_ref_count_init (&worker->refs);
  g_atomic_ref_count_inc (&worker->refs); /* the thread's reference */
  worker->coordinator = g_object_ref (self);
  worker->name = g_strdup (name);
  worker->work = work;
  worker->user_data = user_data;
  worker->destroy = destroy;
  worker->interval_us = interval_us;
  g_mutex_lock (&self->lock);
  if (self->n_running++ == 0) {
    g_object_unref (self->quiet);
    self->quiet = g_cancellable_new ();
  }
  g_ptr_array_add (self->workers, worker);
  worker->thread = g_thread_new (name, run_worker, worker);
  g_mutex_unlock (&self->lock);
}

void
muster_coordinator_start_looper (MusterCoordinator *self, const char *name, gint64 interval_us,
                                 MusterCoordinated work, gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL && name != NULL && work != NULL && interval_us >= 0);
  start (self, name, interval_us, work, user_data, destroy);
}

void
muster_coordinator_start (MusterCoordinator *self, const char *name, MusterCoordinated work,
                          gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL && name != NULL && work != NULL);
  start (self, name, -1, work, user_data, destroy);
}

/* --- join --- */

/* Returns TRUE once no thread runs or, outside the grace, a stop is requested. */
static gboolean
wait_for_threads (MusterCoordinator *self, gboolean is_grace, gint64 deadline_us,
                  GCancellable *cancellable)
{
  g_mutex_lock (&self->lock);
  g_autoptr (GCancellable) quiet = g_object_ref (self->quiet);
  g_autoptr (GCancellable) stop = is_grace ? NULL : g_object_ref (self->stop);
  gboolean is_over = self->n_running == 0 || (stop != NULL && g_cancellable_is_cancelled (stop));
  g_mutex_unlock (&self->lock);
  if (is_over)
    return TRUE;
  g_auto (MusterCancelLink) ended = muster_cancel_link (quiet, stop);
  g_auto (MusterCancelLink) any = muster_cancel_link (ended.cancellable, cancellable);

  (void)muster_clock_wait_until (self->clock, deadline_us, any.cancellable, NULL);
  return g_cancellable_is_cancelled (ended.cancellable);
}

static gboolean
fail_waiting (GCancellable *cancellable, GError **error)
{
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  return muster_fail (
      error, MUSTER_ERROR_DEADLINE_EXCEEDED,
      "joining threads timed out: some are still running, and no stop was requested");
}

static GPtrArray *
take_workers (MusterCoordinator *self)
{
  g_mutex_lock (&self->lock);
  GPtrArray *workers = self->workers;
  self->workers = g_ptr_array_new_with_free_func (worker_unref);
  g_mutex_unlock (&self->lock);
  return workers;
}

/* Joins the threads that have ended; returns the names of the others. */
static char *
collect (MusterCoordinator *self, GPtrArray *workers)
{
  g_autoptr (GString) live = g_string_new (NULL);
  for (guint i = 0; i < workers->len; i++) {
    Worker *worker = workers->pdata[i];
    g_mutex_lock (&self->lock);
    gboolean has_ended = worker->has_ended;
    g_mutex_unlock (&self->lock);
    if (has_ended)
      g_thread_join (g_steal_pointer (&worker->thread));
    else
      g_string_append_printf (live, "%s%s", live->len > 0 ? ", " : "", worker->name);
  }
  return live->len > 0 ? g_strdup (live->str) : NULL;
}

gboolean
muster_coordinator_join (MusterCoordinator *self, gint64 grace_us, gboolean ignore_live,
                         gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);

  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  if (!wait_for_threads (self, FALSE, deadline_us, cancellable))
    return fail_waiting (cancellable, error);
  gint64 grace_end_us = muster_deadline_after (muster_clock_now_us (self->clock), grace_us);
  (void)wait_for_threads (self, TRUE, MIN (grace_end_us, deadline_us), cancellable);

  g_autoptr (GPtrArray) workers = take_workers (self);
  g_autofree char *live = collect (self, workers);
  g_mutex_lock (&self->lock);
  self->is_joined = TRUE;
  g_autoptr (GError) failure = self->error != NULL ? g_error_copy (self->error) : NULL;
  g_mutex_unlock (&self->lock);
  if (failure == NULL && live != NULL && !ignore_live)
    failure = g_error_new (MUSTER_ERROR, MUSTER_ERROR_ABORTED,
                           "Coordinator stopped with threads still running: %s", live);
  else if (live != NULL)
    muster_log (G_LOG_LEVEL_INFO, "coordinator", "MESSAGE",
                "Coordinator stopped with threads still running: %s", live);
  if (failure == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

gboolean
muster_coordinator_is_joined (MusterCoordinator *self)
{
  g_return_val_if_fail (self != NULL, FALSE);

  g_mutex_lock (&self->lock);
  gboolean is_joined = self->is_joined;
  g_mutex_unlock (&self->lock);
  return is_joined;
}

static void
muster_coordinator_finalize (GObject *object)
{
  MusterCoordinator *self = MUSTER_COORDINATOR (object);
  g_ptr_array_unref (self->workers);
  g_ptr_array_unref (self->stopped);
  g_clear_error (&self->error);
  g_clear_object (&self->stop);
  g_clear_object (&self->quiet);
  g_clear_object (&self->clock);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_coordinator_parent_class)->finalize (object);
}

static void
muster_coordinator_class_init (MusterCoordinatorClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_coordinator_finalize;
}

static void
muster_coordinator_init (MusterCoordinator *self)
{
  g_mutex_init (&self->lock);
  self->stop = g_cancellable_new ();
  self->quiet = g_cancellable_new ();
  self->workers = g_ptr_array_new_with_free_func (worker_unref);
  self->stopped = g_ptr_array_new_with_free_func (g_object_unref);
}
