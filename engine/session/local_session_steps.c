// SPDX-License-Identifier: Apache-2.0
/* A local session's steps: whole ones, steps in parts, and callables. */
#include "engine/session/local_session_private.h"

#include "base/clock.h"
#include "base/memory_account_private.h"
#include "engine/run/partial.h"
#include "engine/run/trace.h"
#include "graph/run_options_private.h"

/* Limited because each keeps its feeds in memory until it ends. */
#define MAX_PARTIAL_RUNS 1000
/* Clients make one for each function that they call. */
#define MAX_CALLABLES 10000

static MusterPlan *
find_plan (MusterLocalSession *self, const MusterStep *step, GError **error)
{
  const guint64 hash = muster_step_hash (step);
  MusterPlan **recent = &self->recent[(hash ^ hash >> 32) % MUSTER_N_RECENT];
  g_mutex_lock (&self->lock);
  if (G_UNLIKELY (self->state != MUSTER_LOCAL_OPEN)) {
    muster_local_session_refuse (self, error);
    g_mutex_unlock (&self->lock);
    return NULL;
  }
  if (*recent != NULL && (*recent)->hash == hash && muster_plan_is_for (*recent, step)) {
    MusterPlan *plan = muster_plan_ref (*recent);
    g_mutex_unlock (&self->lock);
    return plan;
  }
  g_autoptr (MusterProgram) program = muster_program_ref (self->program);
  g_mutex_unlock (&self->lock);

  MusterPlan *plan = muster_program_plan (program, step, hash, error);
  if (plan == NULL)
    return NULL;
  g_autoptr (MusterPlan) old = NULL;
  g_mutex_lock (&self->lock);
  if (plan->is_kept && self->program == program && self->state == MUSTER_LOCAL_OPEN) {
    old = *recent;
    *recent = muster_plan_ref (plan);
  }
  g_mutex_unlock (&self->lock);
  return plan;
}

/* Registers a run, the data of link, so that closing the session stops it. */
static gboolean
start_run (MusterLocalSession *self, GList *link, GError **error)
{
  g_mutex_lock (&self->lock);
  const gboolean is_open = self->state == MUSTER_LOCAL_OPEN;
  if (G_LIKELY (is_open))
    g_queue_push_head_link (&self->running, link);
  else
    muster_local_session_refuse (self, error);
  g_mutex_unlock (&self->lock);
  return is_open;
}

static void
end_run (MusterLocalSession *self, GList *link)
{
  g_mutex_lock (&self->lock);
  g_queue_unlink (&self->running, link);
  if (self->running.length == 0 && self->state != MUSTER_LOCAL_OPEN) /* else nobody waits */
    g_cond_broadcast (&self->idle);
  g_mutex_unlock (&self->lock);
}

static MusterRunContext
run_context (MusterLocalSession *self)
{
  return (MusterRunContext){.resources = self->resources,
                            .own = self->own,
                            .randoms = self->randoms,
                            .storage = self->shared->storage,
                            .max_op_bytes = self->shared->max_op_bytes,
                            .deadline_us = MUSTER_WAIT_FOREVER};
}

/* Runs a whole plan. Only the options and the deadline of step are used. */
static gboolean
run_plan (MusterLocalSession *self, MusterPlan *plan, const MusterRunFeeds *feeds,
          const MusterStep *step, MusterTensor **fetched, GBytes **metadata,
          GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterTrace) trace =
      metadata != NULL && step->options != NULL ? muster_trace_new (step->options) : NULL;
  MusterRunContext context = run_context (self);
  context.cancellable = cancellable;
  context.deadline_us = step->deadline_us;
  context.trace = trace;
  MusterRun *run = muster_run_new (plan, feeds, &context, error);
  if (run == NULL)
    return FALSE;
  GList link = {.data = run};
  gboolean values_changed = FALSE, ok = FALSE;
  if (start_run (self, &link, error)) {
    ok = muster_run_execute (run, fetched, &values_changed, error);
    end_run (self, &link);
  }
  muster_run_free (run);
  if (G_UNLIKELY (values_changed))
    muster_local_shared_notify (self->shared);
  if (ok && metadata != NULL)
    *metadata = trace != NULL ? muster_trace_end (trace, plan, MUSTER_LOCAL_DEVICE) : NULL;
  return ok;
}

gboolean
muster_local_session_run (MusterSession *session, const MusterStep *step, MusterTensor **fetched,
                          GBytes **metadata, GCancellable *cancellable, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  const MusterRunFeeds feeds = {.named = step->feeds};
  g_autoptr (MusterPlan) plan = find_plan (self, step, error);
  return plan != NULL && run_plan (self, plan, &feeds, step, fetched, metadata, cancellable, error);
}

/* With the lock held. */
static gboolean
check_open (MusterLocalSession *self, GError **error)
{
  return self->state == MUSTER_LOCAL_OPEN || muster_local_session_refuse (self, error);
}

/* --- a step in parts --- */

static MusterPartial *
find_partial (MusterLocalSession *self, const char *handle, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!check_open (self, error))
    return NULL;
  MusterPartial *found =
      self->partials != NULL ? g_hash_table_lookup (self->partials, handle) : NULL;
  if (found != NULL)
    return muster_partial_ref (found);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "Must run PartialRunSetup before performing partial runs");
  return NULL;
}

static void
drop_partial (MusterLocalSession *self, const char *handle)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (self->partials != NULL)
    g_hash_table_remove (self->partials, handle);
}

/* With the lock held. */
static gboolean
check_partial_limit (MusterLocalSession *self, GError **error)
{
  if (self->partials == NULL)
    self->partials = g_hash_table_new_full (g_str_hash, g_str_equal, g_free,
                                            (GDestroyNotify)muster_partial_unref);
  if (g_hash_table_size (self->partials) < MAX_PARTIAL_RUNS)
    return TRUE;
  return muster_fail (
      error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
      "The session has %d partial runs that haven't ended; fetch everything that they were set "
      "up for, or close the session",
      MAX_PARTIAL_RUNS);
}

char *
muster_local_session_set_up_partial_run (MusterSession *session, const MusterStep *step,
                                         gint64 deadline_us G_GNUC_UNUSED,
                                         GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  const MusterRunContext context = run_context (self);
  g_autoptr (MusterPlan) plan = find_plan (self, step, error);
  if (plan == NULL)
    return NULL;
  g_autoptr (MusterPartial) partial = muster_partial_new (plan, step, &context, error);
  if (partial == NULL)
    return NULL;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!check_open (self, error) || !check_partial_limit (self, error))
    return NULL;
  char *handle = g_strdup_printf ("%" G_GINT64_FORMAT, self->n_partials++);
  g_hash_table_insert (self->partials, g_strdup (handle), g_steal_pointer (&partial));
  return handle;
}

gboolean
muster_local_session_run_part (MusterSession *session, const char *partial_run,
                               const MusterStep *part, MusterTensor **fetched, GBytes **metadata,
                               GCancellable *cancellable, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  const gint64 deadline_us = part->deadline_us;
  g_autoptr (MusterPartial) partial = find_partial (self, partial_run, error);
  GList link = {.data =
                    partial != NULL ? muster_partial_begin (partial, deadline_us, error) : NULL};
  if (link.data == NULL)
    return FALSE;
  gboolean values_changed = FALSE, ok = FALSE;
  if (start_run (self, &link, error)) {
    ok = muster_partial_run (partial, part, deadline_us, cancellable, fetched, &values_changed,
                             error);
    end_run (self, &link);
  }
  const gboolean has_ended = muster_partial_end (partial);
  if (has_ended)
    drop_partial (self, partial_run);
  if (values_changed)
    muster_local_shared_notify (self->shared);
  if (ok && metadata != NULL)
    *metadata = has_ended ? muster_partial_metadata (partial, MUSTER_LOCAL_DEVICE) : NULL;
  return ok;
}

/* --- callables --- */

typedef struct {
  MusterPlan *plan; /* (owned) */
  GBytes *options;  /* (owned) (nullable) RunOptions; counted in memory */
} Callable;

static gsize
options_size (GBytes *options)
{
  return options != NULL ? g_bytes_get_size (options) : 0;
}

static void
callable_free (gpointer data)
{
  Callable *self = data;
  muster_plan_unref (self->plan);
  muster_memory_release (MUSTER_MEMORY_GRAPHS, options_size (self->options));
  g_clear_pointer (&self->options, g_bytes_unref);
  g_free (self);
}

/* With the lock held. */
static gboolean
check_callable_limit (MusterLocalSession *self, GError **error)
{
  if (self->callables == NULL)
    self->callables = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, callable_free);
  return g_hash_table_size (self->callables) < MAX_CALLABLES ||
         muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "The session has %d callables; release some, or close the session",
                      MAX_CALLABLES);
}

gint64
muster_local_session_make_callable (MusterSession *session, const MusterStep *step,
                                    gint64 deadline_us G_GNUC_UNUSED,
                                    GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  g_autoptr (MusterPlan) plan = find_plan (self, step, error);
  if (plan == NULL)
    return 0;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!check_open (self, error) || !check_callable_limit (self, error) ||
      !muster_memory_take (MUSTER_MEMORY_GRAPHS, options_size (step->options), error))
    return 0;
  const gint64 number = ++self->last_callable;
  Callable *callable = g_new (Callable, 1);
  *callable = (Callable){.plan = g_steal_pointer (&plan),
                         .options = step->options != NULL ? g_bytes_ref (step->options) : NULL};
  g_hash_table_insert (self->callables, g_memdup2 (&number, sizeof number), callable);
  return number;
}

/* *options (out) (nullable) receives the callable's RunOptions (transfer full) (nullable). */
static MusterPlan *
find_callable (MusterLocalSession *self, gint64 callable, GBytes **options, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!check_open (self, error))
    return NULL;
  const Callable *found =
      self->callables != NULL ? g_hash_table_lookup (self->callables, &callable) : NULL;
  if (found != NULL && options != NULL && found->options != NULL)
    *options = g_bytes_ref (found->options);
  if (found != NULL)
    return muster_plan_ref (found->plan);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "No such callable handle: %" G_GINT64_FORMAT,
               callable);
  return NULL;
}

gboolean
muster_local_session_run_callable (MusterSession *session, gint64 callable,
                                   MusterTensor *const *feeds, gsize n_feeds, gint64 deadline_us,
                                   MusterTensor **fetched, GBytes **metadata,
                                   GCancellable *cancellable, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  const MusterRunFeeds bare = {.bare = feeds};
  g_autoptr (GBytes) options = NULL;
  g_autoptr (MusterPlan) plan = find_callable (self, callable, &options, error);
  if (plan == NULL)
    return FALSE;
  if (n_feeds != plan->n_feeds) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Callable %" G_GINT64_FORMAT " takes %u tensors, %" G_GSIZE_FORMAT
                        " were fed",
                        callable, plan->n_feeds, n_feeds);
  }
  if (fetched == NULL && plan->n_fetches > 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "muster_session_run_callable: 'fetched' is NULL");
  if (!muster_run_options_bound (options, &deadline_us, error))
    return FALSE;
  const MusterStep step = {.options = options, .deadline_us = deadline_us};
  return run_plan (self, plan, &bare, &step, fetched, metadata, cancellable, error);
}

gboolean
muster_local_session_release_callable (MusterSession *session, gint64 callable,
                                       gint64 deadline_us G_GNUC_UNUSED,
                                       GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  g_autoptr (MusterPlan) plan = find_callable (self, callable, NULL, error);
  if (plan == NULL)
    return FALSE;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (self->callables != NULL)
    g_hash_table_remove (self->callables, &callable);
  return TRUE;
}
