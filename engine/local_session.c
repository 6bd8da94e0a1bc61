// SPDX-License-Identifier: Apache-2.0
#include "engine/local_session.h"

#include "base/clock.h"
#include "base/protowire.h"
#include "base/unpack.h"
#include "engine/executor.h"

typedef enum { OPEN, CLOSED, FORGOTTEN } State;

/* Plans used last, by the low bits of their hash: most sessions run a handful of steps. */
#define N_RECENT 16

struct _MusterLocalSession {
  MusterSession parent;
  MusterLocalShared *shared; /* (owned) */
  MusterRandoms *randoms;    /* (owned) */
  MusterResources *own;      /* (owned) queues and the like that no other session has */

  GMutex lock; /* short; guards all below */
  State state;
  MusterProgram *program;       /* (owned) */
  MusterPlan *recent[N_RECENT]; /* (owned) (nullable) */
  GHashTable *callables;        /* (owned) (nullable) number to MusterPlan */
  gint64 last_callable;
  MusterRun *running; /* first of the list */
  GCond idle;         /* nothing runs any more */
};

G_DEFINE_FINAL_TYPE (MusterLocalSession, muster_local_session, MUSTER_TYPE_SESSION)

/* With the lock held: FALSE with ABORTED if the session has ended. */
static gboolean
check_open (MusterLocalSession *self, GError **error)
{
  if (G_LIKELY (self->state == OPEN))
    return TRUE;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED, "Session %s is not found.%s",
               muster_session_handle (MUSTER_SESSION (self)),
               self->state == FORGOTTEN ? " Possibly, this master has restarted." : "");
  return FALSE;
}

/* With the lock held. */
static void
forget_recent (MusterLocalSession *self)
{
  for (int i = 0; i < N_RECENT; i++)
    g_clear_pointer (&self->recent[i], muster_plan_unref);
}

static MusterPlan *
find_plan (MusterLocalSession *self, const MusterStep *step, GError **error)
{
  const guint64 hash = muster_step_hash (step);
  MusterPlan **recent = &self->recent[(hash ^ hash >> 32) % N_RECENT];
  g_mutex_lock (&self->lock);
  if (!check_open (self, error)) {
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
  if (self->program == program && self->state == OPEN) {
    old = *recent;
    *recent = muster_plan_ref (plan);
  }
  g_mutex_unlock (&self->lock);
  return plan;
}

/* Puts a run among those that a close stops. */
static gboolean
add_running (MusterLocalSession *self, MusterRun *run, GError **error)
{
  g_mutex_lock (&self->lock);
  const gboolean is_open = check_open (self, error);
  if (is_open) {
    *muster_run_next (run) = self->running;
    *muster_run_previous (run) = NULL;
    if (self->running != NULL)
      *muster_run_previous (self->running) = run;
    self->running = run;
  }
  g_mutex_unlock (&self->lock);
  return is_open;
}

static void
remove_running (MusterLocalSession *self, MusterRun *run)
{
  g_mutex_lock (&self->lock);
  MusterRun *next = *muster_run_next (run), *previous = *muster_run_previous (run);
  if (next != NULL)
    *muster_run_previous (next) = previous;
  if (previous != NULL)
    *muster_run_next (previous) = next;
  else
    self->running = next;
  if (self->running == NULL)
    g_cond_broadcast (&self->idle);
  g_mutex_unlock (&self->lock);
}

/* The earlier of the step's deadline and the timeout in its RunOptions. */
static gint64
deadline_of (gint64 deadline_us, GBytes *options)
{
  if (deadline_us == 0)
    deadline_us = MUSTER_WAIT_FOREVER;
  if (options == NULL)
    return deadline_us;
  enum { TIMEOUT_IN_MS = 2 };
  gsize size;
  const void *data = g_bytes_get_data (options, &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  gint64 timeout_ms = 0;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == TIMEOUT_IN_MS && field.type == MUSTER_WIRE_VARINT)
      timeout_ms = (gint64)field.value;
  if (timeout_ms <= 0 || timeout_ms > G_MAXINT64 / MUSTER_MILLISECOND)
    return deadline_us;
  return MIN (deadline_us, muster_deadline_after (muster_clock_now_us (muster_system_clock ()),
                                                  timeout_ms * MUSTER_MILLISECOND));
}

/* A step's tensors come with their names or, for a callable, bare. */
typedef struct {
  const MusterFeed *named;
  MusterTensor *const *bare;
} Feeds;

static gboolean
feed (MusterRun *run, guint32 n, const Feeds *feeds, GError **error)
{
  for (guint32 i = 0; i < n; i++) {
    MusterTensor *tensor = feeds->named != NULL ? feeds->named[i].tensor : feeds->bare[i];
    if (!muster_run_feed (run, i, tensor, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
run_plan (MusterLocalSession *self, MusterPlan *plan, const Feeds *feeds, gint64 deadline_us,
          MusterTrace *trace, MusterTensor **fetched, GCancellable *cancellable, GError **error)
{
  const MusterRunContext context = {.resources = self->shared->resources,
                                    .own = self->own,
                                    .randoms = self->randoms,
                                    .storage = self->shared->storage,
                                    .cancellable = cancellable,
                                    .deadline_us = deadline_us,
                                    .trace = trace};
  MusterRun *run = muster_run_new (plan, &context);
  gboolean turned = FALSE, ok = FALSE;
  if (feed (run, plan->n_feeds, feeds, error) && add_running (self, run, error)) {
    ok = muster_run_execute (run, fetched, &turned, error);
    remove_running (self, run);
  }
  muster_run_free (run);
  if (G_UNLIKELY (turned))
    muster_local_shared_tell (self->shared);
  return ok;
}

static gboolean
local_session_run (MusterSession *session, const MusterStep *step, MusterTensor **fetched,
                   GBytes **metadata, GCancellable *cancellable, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  const Feeds feeds = {.named = step->feeds};
  g_autoptr (MusterPlan) plan = find_plan (self, step, error);
  if (plan == NULL)
    return FALSE;
  g_autoptr (MusterTrace) trace = metadata != NULL ? muster_trace_new (step->options) : NULL;
  if (!run_plan (self, plan, &feeds, deadline_of (step->deadline_us, step->options), trace, fetched,
                 cancellable, error))
    return FALSE;
  if (metadata != NULL)
    *metadata = trace != NULL ? muster_trace_end (trace, MUSTER_LOCAL_DEVICE) : NULL;
  return TRUE;
}

/* TensorFlow's words for a node that is there already. */
static gboolean
check_new_nodes (MusterGraph *old, MusterGraph *extra, GError **error)
{
  gsize size;
  const void *data = g_bytes_get_data (muster_graph_bytes (extra), &size);
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__GraphDef *def =
      muster_unpack (&tensorflow__graph_def__descriptor, data, size, arena, "graph", error);
  if (def == NULL)
    return FALSE;
  for (gsize i = 0; i < def->n_node; i++) {
    if (!muster_graph_has_node (old, def->node[i]->name))
      continue;
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "GraphDef argument to Extend includes node '%s', which was created by a previous "
                 "call to Create or Extend in this session.",
                 def->node[i]->name);
    return FALSE;
  }
  return TRUE;
}

static gboolean
local_session_extend (MusterSession *session, MusterGraph *graph, gint64 deadline_us G_GNUC_UNUSED,
                      GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  MusterGraphCache *graphs = self->shared->graphs;
  for (;;) {
    g_mutex_lock (&self->lock);
    const gboolean is_open = check_open (self, error);
    g_autoptr (MusterProgram) old = is_open ? muster_program_ref (self->program) : NULL;
    g_mutex_unlock (&self->lock);
    if (!is_open || !check_new_nodes (muster_program_graph (old), graph, error))
      return FALSE;
    g_autoptr (MusterGraph) extended = muster_graph_extended (muster_program_graph (old), graph);
    MusterProgram *program = muster_graph_cache_take (graphs, extended, error);
    if (program == NULL)
      return FALSE;
    g_mutex_lock (&self->lock);
    const gboolean still = self->state == OPEN && self->program == old;
    if (still) {
      self->program = program;
      forget_recent (self);
    }
    g_mutex_unlock (&self->lock);
    /* The session's own reference goes, or what has come in vain; old's goes with the scope. */
    muster_graph_cache_give (graphs, still ? old : program);
    if (still)
      return TRUE;
    /* Somebody else extended or closed it meanwhile: look again. */
  }
}

/* Ends the session and stops what runs; FALSE if it had ended before. */
static gboolean
end (MusterLocalSession *self, State state, MusterStop why)
{
  g_mutex_lock (&self->lock);
  const gboolean was_open = self->state == OPEN;
  if (was_open) {
    self->state = state;
    forget_recent (self);
    g_clear_pointer (&self->callables, g_hash_table_unref);
    for (MusterRun *run = self->running; run != NULL; run = *muster_run_next (run))
      muster_run_stop (run, why);
  }
  MusterProgram *program = g_steal_pointer (&self->program);
  g_mutex_unlock (&self->lock);
  if (program != NULL)
    muster_graph_cache_give (self->shared->graphs, program);
  if (was_open)
    (void)muster_resources_clear (self->own, NULL);
  return was_open;
}

static void
leave_shared (MusterLocalSession *self)
{
  g_mutex_lock (&self->shared->lock);
  g_ptr_array_remove_fast (self->shared->sessions, self);
  g_mutex_unlock (&self->shared->lock);
}

static void
on_close_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  MusterLocalSession *self = data;
  g_mutex_lock (&self->lock);
  g_cond_broadcast (&self->idle);
  g_mutex_unlock (&self->lock);
}

/* A kernel that computes is not interrupted: it is waited for, as TensorFlow does. */
static gboolean
wait_until_idle (MusterLocalSession *self, gint64 deadline_us, GCancellable *cancellable,
                 GError **error)
{
  gboolean in_time = TRUE;
  const gulong id =
      cancellable != NULL
          ? g_cancellable_connect (cancellable, G_CALLBACK (on_close_cancelled), self, NULL)
          : 0;
  g_mutex_lock (&self->lock);
  while (self->running != NULL && in_time && !g_cancellable_is_cancelled (cancellable)) {
    if (deadline_us == 0 || deadline_us == MUSTER_WAIT_FOREVER)
      g_cond_wait (&self->idle, &self->lock);
    else
      in_time = g_cond_wait_until (&self->idle, &self->lock, deadline_us);
  }
  const gboolean idle = self->running == NULL;
  g_mutex_unlock (&self->lock);
  if (id != 0)
    g_cancellable_disconnect (cancellable, id);
  if (idle || g_cancellable_set_error_if_cancelled (cancellable, error))
    return idle;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
               "Deadline Exceeded: session %s is closed, but a step of it still runs",
               muster_session_handle (MUSTER_SESSION (self)));
  return FALSE;
}

static gboolean
local_session_close (MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
                     GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  if (end (self, CLOSED, MUSTER_STOP_CLOSED))
    leave_shared (self);
  return wait_until_idle (self, deadline_us, cancellable, error);
}

void
muster_local_session_forget (MusterLocalSession *self)
{
  (void)end (self, FORGOTTEN, MUSTER_STOP_RESET);
}

static gint64
local_session_make_callable (MusterSession *session, const MusterStep *step,
                             gint64 deadline_us G_GNUC_UNUSED,
                             GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  g_autoptr (MusterPlan) plan = find_plan (self, step, error);
  if (plan == NULL)
    return 0;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!check_open (self, error))
    return 0;
  if (self->callables == NULL)
    self->callables = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free,
                                             (GDestroyNotify)muster_plan_unref);
  const gint64 number = ++self->last_callable;
  g_hash_table_insert (self->callables, g_memdup2 (&number, sizeof number),
                       g_steal_pointer (&plan));
  return number;
}

static MusterPlan *
find_callable (MusterLocalSession *self, gint64 callable, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!check_open (self, error))
    return NULL;
  MusterPlan *plan =
      self->callables != NULL ? g_hash_table_lookup (self->callables, &callable) : NULL;
  if (plan != NULL)
    return muster_plan_ref (plan);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "No such callable handle: %" G_GINT64_FORMAT, callable);
  return NULL;
}

static gboolean
local_session_run_callable (MusterSession *session, gint64 callable, MusterTensor *const *feeds,
                            gsize n_feeds, gint64 deadline_us, MusterTensor **fetched,
                            GBytes **metadata, GCancellable *cancellable, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  const Feeds bare = {.bare = feeds};
  g_autoptr (MusterPlan) plan = find_callable (self, callable, error);
  if (plan == NULL)
    return FALSE;
  if (n_feeds != plan->n_feeds) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Callable %" G_GINT64_FORMAT " takes %u tensors, %" G_GSIZE_FORMAT " were fed",
                 callable, plan->n_feeds, n_feeds);
    return FALSE;
  }
  if (!run_plan (self, plan, &bare, deadline_of (deadline_us, NULL), NULL, fetched, cancellable,
                 error))
    return FALSE;
  if (metadata != NULL)
    *metadata = NULL;
  return TRUE;
}

static gboolean
local_session_release_callable (MusterSession *session, gint64 callable,
                                gint64 deadline_us G_GNUC_UNUSED,
                                GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  g_autoptr (MusterPlan) plan = find_callable (self, callable, error);
  if (plan == NULL)
    return FALSE;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (self->callables != NULL)
    g_hash_table_remove (self->callables, &callable);
  return TRUE;
}

static void
local_session_dispose (GObject *object)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (object);
  if (self->shared != NULL) {
    leave_shared (self);
    (void)end (self, CLOSED, MUSTER_STOP_CLOSED);
  }
  G_OBJECT_CLASS (muster_local_session_parent_class)->dispose (object);
}

static void
local_session_finalize (GObject *object)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (object);
  g_clear_pointer (&self->shared, muster_local_shared_unref);
  g_clear_pointer (&self->randoms, muster_randoms_free);
  g_clear_pointer (&self->own, muster_resources_unref);
  g_clear_pointer (&self->callables, g_hash_table_unref);
  g_cond_clear (&self->idle);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_local_session_parent_class)->finalize (object);
}

static void
muster_local_session_class_init (MusterLocalSessionClass *klass)
{
  MusterSessionClass *session = MUSTER_SESSION_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = local_session_dispose;
  G_OBJECT_CLASS (klass)->finalize = local_session_finalize;
  session->is_here = TRUE;
  session->run = local_session_run;
  session->extend = local_session_extend;
  session->close = local_session_close;
  session->make_callable = local_session_make_callable;
  session->run_callable = local_session_run_callable;
  session->release_callable = local_session_release_callable;
}

static void
muster_local_session_init (MusterLocalSession *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->idle);
  self->randoms = muster_randoms_new ();
  self->own = muster_resources_new ();
}

static char *
new_handle (void)
{
  MusterClock *clock = muster_system_clock ();
  const guint32 high = (guint32)(muster_clock_random (clock) * 4294967296.0);
  const guint32 low = (guint32)(muster_clock_random (clock) * 4294967296.0);
  return g_strdup_printf ("%08x%08x", high, low);
}

MusterSession *
muster_local_session_new (MusterLocalShared *shared, MusterGraph *graph, GError **error)
{
  MusterProgram *program = muster_graph_cache_take (shared->graphs, graph, error);
  if (program == NULL)
    return NULL;
  MusterLocalSession *self = g_object_new (MUSTER_TYPE_LOCAL_SESSION, NULL);
  g_autofree char *handle = new_handle ();
  self->shared = muster_local_shared_ref (shared);
  self->program = program;
  /* The first graph with these bytes serves all: the others' may go. */
  muster_session_set_identity (MUSTER_SESSION (self), handle, muster_program_graph (program));
  g_mutex_lock (&shared->lock);
  g_ptr_array_add (shared->sessions, self);
  g_mutex_unlock (&shared->lock);
  return MUSTER_SESSION (self);
}
