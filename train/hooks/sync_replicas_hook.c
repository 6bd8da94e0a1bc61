// SPDX-License-Identifier: Apache-2.0
/* The hook of a model with a SyncReplicasOptimizer. The chief fills the queue of tokens and runs
 * the update; each replica's step takes a token, so that no replica is ahead. What an earlier run
 * left in accumulators and queues is discarded first. */
#include "train/hooks/hooks_private.h"

#include "base/error.h"
#include "graph/graph_nodes_private.h"
#include "session/manager.h"
#include "train/completion/sync_replicas_private.h"
#include "train/monitored/queue_runner_private.h"
#include "train/monitored/run_context.h"

#define DISCARD_US (5 * MUSTER_SECOND)

#define MUSTER_TYPE_SYNC_REPLICAS_HOOK (muster_sync_replicas_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterSyncReplicasHook, muster_sync_replicas_hook, MUSTER, SYNC_REPLICAS_HOOK,
                      MusterHook)

struct _MusterSyncReplicasHook {
  MusterHook parent;
  MusterScaffold *scaffold; /* (owned) */
  MusterSyncReplicas sync;  /* (owned) */
  GPtrArray *runners; /* (owned) (element-type MusterQueueRunner) of the update; may be empty */
  GHashTable *takes_token; /* (owned) a fetch's or target's name -> whether it does */
  gboolean is_chief;
  guint n_tasks;
  gint64 local_step;
  gboolean is_step; /* the run is a step: it takes a token, */
  guint token_at;   /* which it fetches */
};

G_DEFINE_FINAL_TYPE (MusterSyncReplicasHook, muster_sync_replicas_hook, MUSTER_TYPE_HOOK)

/* Adds up to n tokens. */
static gboolean
fill_tokens (MusterSession *session, gint64 n, gint64 deadline_us, GCancellable *cancellable,
             GError **error)
{
  static const char *const targets[] = {MUSTER_SYNC_TOKENS};
  g_autoptr (MusterTensor) level = muster_tensor_new_int32 ((gint32)n);
  const MusterFeed feed = {MUSTER_SYNC_LEVEL, level};
  const MusterStep step = {
      .feeds = &feed, .n_feeds = 1, .targets = targets, .n_targets = 1, .deadline_us = deadline_us};
  return n == 0 || muster_session_run (session, &step, NULL, NULL, cancellable, error);
}

/* --- what an earlier run has left --- */

static gboolean
is_empty (MusterSession *session, MusterGraph *graph, guint i, gint64 deadline_us,
          GCancellable *cancellable, gboolean *empty, GError **error)
{
  g_autofree char *op = g_strdup_printf (MUSTER_SYNC_COUNT "_%u", i);
  g_autofree char *name = g_strconcat (op, ":0", NULL);
  const char *const fetches[] = {name};
  const MusterStep step = {.fetches = fetches, .n_fetches = 1, .deadline_us = deadline_us};
  g_autoptr (MusterTensor) value = NULL;
  double n;

  *empty = TRUE;
  if (!muster_graph_has_node (graph, op)) /* of a take without an accumulator */
    return TRUE;
  if (!muster_session_run (session, &step, &value, NULL, cancellable, error) ||
      !muster_tensor_get_double (value, &n, error))
    return FALSE;
  *empty = n == 0;
  return TRUE;
}

/* Takes all gradients of an accumulator that has some. A step of the earlier run that ends late
 * may take them first; then nothing is left. */
static gboolean
take_gradients (MusterSession *session, const MusterNode *take, MusterGraph *graph,
                gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  int output;
  const gsize from = muster_node_input (take, 1, &output);
  g_autofree char *required =
      g_strdup_printf ("%s:%d", muster_graph_node (graph, from)->name, MAX (output, 0));
  g_autoptr (MusterTensor) one = muster_tensor_new_int32 (1);
  const MusterFeed feed = {required, one};
  const char *const targets[] = {take->name};
  const gint64 limit_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), DISCARD_US);
  const MusterStep step = {.feeds = &feed,
                           .n_feeds = 1,
                           .targets = targets,
                           .n_targets = 1,
                           .deadline_us = MIN (deadline_us, limit_us)};
  g_autoptr (GError) failure = NULL;

  if (muster_session_run (session, &step, NULL, NULL, cancellable, &failure) ||
      (muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) && limit_us < deadline_us))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static gboolean
discard_gradients (MusterSyncReplicasHook *self, MusterSession *session, gint64 deadline_us,
                   GCancellable *cancellable, GError **error)
{
  MusterGraph *graph = muster_scaffold_graph (self->scaffold);
  for (guint i = 0; i < self->sync.takes->len; i++) {
    const MusterNode *take = muster_graph_node (graph, g_array_index (self->sync.takes, gsize, i));
    gboolean empty;
    if (take->n_input < 2)
      continue;
    if (!is_empty (session, graph, i, deadline_us, cancellable, &empty, error) ||
        (!empty && !take_gradients (session, take, graph, deadline_us, cancellable, error)))
      return FALSE;
  }
  return TRUE;
}

/* --- the hook --- */

/* Discards the gradients of an earlier run only if this is the only task. The master of several
 * tasks was reset, and their replicas may have begun already, since the model is prepared. */
static gboolean
begin_as_chief (MusterSyncReplicasHook *self, MusterSession *session, gint64 deadline_us,
                GCancellable *cancellable, GError **error)
{
  const gboolean is_anew = self->n_tasks > 0 && muster_session_manager_continued_step (session) < 0;
  const gint64 n = is_anew ? MAX (self->sync.n_tokens - self->n_tasks, 0) : self->sync.n_tokens;
  if (is_anew && self->n_tasks == 1 &&
      !discard_gradients (self, session, deadline_us, cancellable, error))
    return FALSE;
  return muster_session_run_op (session, MUSTER_SYNC_BEGIN, deadline_us, cancellable, error) &&
         fill_tokens (session, n, deadline_us, cancellable, error);
}

static gboolean
sync_after_create (MusterHook *hook, MusterSession *session, MusterCoordinator *coordinator,
                   gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterSyncReplicasHook *self = MUSTER_SYNC_REPLICAS_HOOK (hook);
  self->local_step =
      muster_read_global_step (session, self->scaffold, deadline_us, cancellable, error);
  if (self->local_step < 0)
    return FALSE;
  if (!self->is_chief)
    return TRUE;
  if (!begin_as_chief (self, session, deadline_us, cancellable, error))
    return FALSE;
  muster_queue_runners_start (self->runners, session, coordinator);
  return TRUE;
}

static gboolean
takes_token (MusterSyncReplicasHook *self, const char *name)
{
  gpointer takes;
  if (!g_hash_table_lookup_extended (self->takes_token, name, NULL, &takes)) {
    takes = GINT_TO_POINTER (muster_sync_replicas_takes_token (
        &self->sync, muster_scaffold_graph (self->scaffold), name));
    g_hash_table_insert (self->takes_token, g_strdup (name), takes);
  }
  return GPOINTER_TO_INT (takes);
}

/* Returns TRUE for a run that is a step. Any other run, as of a loss alone, would take a token
 * without adding a gradient, and replicas would wait for one another. */
static gboolean
is_step (MusterSyncReplicasHook *self, const MusterStep *step)
{
  for (gsize i = 0; i < step->n_targets; i++)
    if (takes_token (self, step->targets[i]))
      return TRUE;
  for (gsize i = 0; i < step->n_fetches; i++)
    if (takes_token (self, step->fetches[i]))
      return TRUE;
  return FALSE;
}

static gboolean
sync_before_run (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  MusterSyncReplicasHook *self = MUSTER_SYNC_REPLICAS_HOOK (hook);
  g_autoptr (MusterTensor) step = muster_tensor_new_int64 (self->local_step);
  self->is_step = is_step (self, muster_run_context_step (context));
  if (!self->is_step)
    return TRUE;
  for (guint i = 0; i < self->sync.local->len; i++)
    muster_run_context_feed (context, self->sync.local->pdata[i], step);
  self->token_at = muster_run_context_fetch (context, self->sync.token);
  return TRUE;
}

static gboolean
sync_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterSyncReplicasHook *self = MUSTER_SYNC_REPLICAS_HOOK (hook);
  double token;
  if (!self->is_step)
    return TRUE;
  if (!muster_tensor_get_double (muster_run_context_value (context, self->token_at), &token, error))
    return FALSE;
  self->local_step = (gint64)token;
  return TRUE;
}

/* Adds a token, because another replica may wait for one and must see the end, too. */
static gboolean
sync_end (MusterHook *hook, MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
          GError **error)
{
  MusterSyncReplicasHook *self = MUSTER_SYNC_REPLICAS_HOOK (hook);
  return !self->is_chief ||
         fill_tokens (session, self->sync.n_tokens, deadline_us, cancellable, error);
}

static void
sync_finalize (GObject *object)
{
  MusterSyncReplicasHook *self = MUSTER_SYNC_REPLICAS_HOOK (object);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_pointer (&self->runners, g_ptr_array_unref);
  g_clear_pointer (&self->takes_token, g_hash_table_unref);
  muster_sync_replicas_clear (&self->sync);
  G_OBJECT_CLASS (muster_sync_replicas_hook_parent_class)->finalize (object);
}

static void
muster_sync_replicas_hook_class_init (MusterSyncReplicasHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = sync_finalize;
  MUSTER_HOOK_CLASS (klass)->after_create_session = sync_after_create;
  MUSTER_HOOK_CLASS (klass)->before_run = sync_before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = sync_after_run;
  MUSTER_HOOK_CLASS (klass)->end = sync_end;
}

static void
muster_sync_replicas_hook_init (MusterSyncReplicasHook *self)
{
  self->takes_token = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->runners = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_queue_runner_unref);
}

MusterHook *
muster_sync_replicas_hook_new (MusterScaffold *scaffold, gboolean is_chief, guint n_tasks)
{
  g_autoptr (MusterSyncReplicasHook) self = g_object_new (MUSTER_TYPE_SYNC_REPLICAS_HOOK, NULL);
  if (!muster_graph_has_node (muster_scaffold_graph (scaffold), MUSTER_SYNC_TOKENS) ||
      !muster_sync_replicas_find (muster_scaffold_meta_graph (scaffold), &self->sync))
    return NULL;
  self->scaffold = muster_scaffold_ref (scaffold);
  self->is_chief = is_chief;
  self->n_tasks = n_tasks;
  if (!self->sync.is_run)
    g_ptr_array_add (self->runners, muster_queue_runner_new (self->sync.queue, self->sync.update));
  return MUSTER_HOOK (g_steal_pointer (&self));
}
