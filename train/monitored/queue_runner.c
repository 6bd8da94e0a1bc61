// SPDX-License-Identifier: Apache-2.0
#include "train/monitored/queue_runner_private.h"

#include "base/log_private.h"

/* The time limit for the op that closes a queue. */
#define END_US (10 * MUSTER_SECOND)

/* The state that a runner's threads share in one session. Reference counted. */
typedef struct {
  gatomicrefcount refs;
  MusterQueueRunner *runner; /* (owned) */
  MusterSession *session;    /* (owned) */
  gint n_filling;            /* atomic */
} Shared;

/* The state of one thread. */
typedef struct {
  Shared *shared; /* (owned) */
  const char *op; /* of the runner */
} Filler;

static void
shared_unref (Shared *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  muster_queue_runner_unref (self->runner);
  g_object_unref (self->session);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Shared, shared_unref)

static Filler *
filler_new (Shared *shared, const char *op)
{
  Filler *self = g_new0 (Filler, 1);
  g_atomic_ref_count_inc (&shared->refs);
  self->shared = shared;
  self->op = op;
  return self;
}

static void
filler_free (Filler *self)
{
  shared_unref (self->shared);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Filler, filler_free)

/* Later operations on the queue can only fail. */
static void
run_last (Shared *self, const char *op)
{
  g_autoptr (GError) failure = NULL;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (op != NULL && *op &&
      !muster_session_run_op (self->session, op, now_us + END_US, NULL, &failure))
    muster_log (G_LOG_LEVEL_INFO, "queue", "MESSAGE", "Queue '%s': %s",
                self->runner->queue ? self->runner->queue : "", failure->message);
}

static gboolean
says_closed (const MusterQueueRunner *self, const GError *failure)
{
  return failure != NULL && failure->domain == MUSTER_ERROR && failure->code >= 0 &&
         failure->code < 32 && (self->closed_by & 1u << failure->code) != 0;
}

static gboolean
fill (MusterCoordinator *coordinator, gpointer user_data, GError **error)
{
  g_autoptr (Filler) self = user_data;
  Shared *shared = self->shared;
  g_autoptr (GCancellable) stop = g_object_ref (muster_coordinator_cancellable (coordinator));
  g_autoptr (GError) failure = NULL;
  while (!g_cancellable_is_cancelled (stop) &&
         muster_session_run_op (shared->session, self->op, MUSTER_WAIT_FOREVER, stop, &failure))
    ;
  gboolean is_last = g_atomic_int_dec_and_test (&shared->n_filling);
  if (says_closed (shared->runner, failure)) {
    if (is_last)
      run_last (shared, shared->runner->close);
    return TRUE;
  }
  if (failure == NULL || g_cancellable_is_cancelled (stop))
    return TRUE;
  g_propagate_prefixed_error (error, g_steal_pointer (&failure), "Filling the queue '%s': ",
                              shared->runner->queue != NULL ? shared->runner->queue : "");
  return FALSE;
}

static gboolean
cancel_at_stop (MusterCoordinator *coordinator, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  g_autoptr (Shared) self = user_data;
  (void)muster_coordinator_wait_for_stop (coordinator, MUSTER_WAIT_FOREVER, NULL);
  run_last (self, self->runner->cancel);
  return TRUE;
}

static void
start (MusterQueueRunner *runner, MusterSession *session, MusterCoordinator *coordinator)
{
  g_autoptr (Shared) shared = g_new0 (Shared, 1);
  g_autofree char *name = g_strdup_printf ("queue %s", runner->queue != NULL ? runner->queue : "");

  g_atomic_ref_count_init (&shared->refs);
  g_atomic_ref_count_inc (&runner->refs);
  shared->runner = runner;
  shared->session = g_object_ref (session);
  shared->n_filling = (gint)runner->enqueues->len;
  for (guint i = 0; i < runner->enqueues->len; i++)
    muster_coordinator_start (coordinator, name, fill,
                              filler_new (shared, runner->enqueues->pdata[i]), NULL);
  if (runner->cancel != NULL && *runner->cancel) {
    g_atomic_ref_count_inc (&shared->refs);
    muster_coordinator_start (coordinator, name, cancel_at_stop, shared, NULL);
  }
}

void
muster_queue_runners_start (GPtrArray *runners, MusterSession *session,
                            MusterCoordinator *coordinator)
{
  g_return_if_fail (runners != NULL && session != NULL && coordinator != NULL);
  for (guint i = 0; i < runners->len; i++)
    start (runners->pdata[i], session, coordinator);
}
