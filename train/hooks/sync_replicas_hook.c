// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/sync_replicas_hook.h"

#include "train/completion/sync_replicas.h"
#include "train/monitored/queue_runner.h"
#include "train/monitored/run_context.h"

#define MUSTER_TYPE_SYNC_REPLICAS_HOOK (muster_sync_replicas_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterSyncReplicasHook, muster_sync_replicas_hook, MUSTER, SYNC_REPLICAS_HOOK,
                      MusterHook)

struct _MusterSyncReplicasHook {
  MusterHook parent;
  MusterScaffold *scaffold; /* (owned) */
  MusterSyncReplicas sync;  /* (owned) */
  GPtrArray *runners; /* (owned) (element-type MusterQueueRunner) of the update; may be empty */
  gboolean is_chief;
  gint64 local_step;
  guint token_at;
};

G_DEFINE_FINAL_TYPE (MusterSyncReplicasHook, muster_sync_replicas_hook, MUSTER_TYPE_HOOK)

static gboolean
fill_tokens (MusterSyncReplicasHook *self, MusterSession *session, gint64 deadline_us,
             GCancellable *cancellable, GError **error)
{
  return !self->is_chief ||
         muster_session_run_op (session, MUSTER_SYNC_TOKENS, deadline_us, cancellable, error);
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
  if (self->is_chief &&
      !muster_session_run_op (session, MUSTER_SYNC_BEGIN, deadline_us, cancellable, error))
    return FALSE;
  if (!fill_tokens (self, session, deadline_us, cancellable, error))
    return FALSE;
  if (self->is_chief)
    muster_queue_runners_start (self->runners, session, coordinator);
  return TRUE;
}

static gboolean
sync_before_run (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  MusterSyncReplicasHook *self = MUSTER_SYNC_REPLICAS_HOOK (hook);
  g_autoptr (MusterTensor) step = muster_tensor_new_int64 (self->local_step);

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

  if (!muster_tensor_get_double (muster_run_context_value (context, self->token_at), &token, error))
    return FALSE;
  self->local_step = (gint64)token;
  return TRUE;
}

/* Another replica may wait for a token: it is to see the end, too. */
static gboolean
sync_end (MusterHook *hook, MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
          GError **error)
{
  return fill_tokens (MUSTER_SYNC_REPLICAS_HOOK (hook), session, deadline_us, cancellable, error);
}

static void
sync_finalize (GObject *object)
{
  MusterSyncReplicasHook *self = MUSTER_SYNC_REPLICAS_HOOK (object);

  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_pointer (&self->runners, g_ptr_array_unref);
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
  self->runners = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_queue_runner_unref);
}

MusterHook *
muster_sync_replicas_hook_new (MusterScaffold *scaffold, gboolean is_chief)
{
  g_autoptr (MusterSyncReplicasHook) self = g_object_new (MUSTER_TYPE_SYNC_REPLICAS_HOOK, NULL);

  if (!muster_graph_has_node (muster_scaffold_graph (scaffold), MUSTER_SYNC_TOKENS) ||
      !muster_sync_replicas_find (muster_scaffold_meta_graph (scaffold), &self->sync))
    return NULL;
  self->scaffold = muster_scaffold_ref (scaffold);
  self->is_chief = is_chief;
  if (!self->sync.is_run)
    g_ptr_array_add (self->runners, muster_queue_runner_new (self->sync.queue, self->sync.update));
  return MUSTER_HOOK (g_steal_pointer (&self));
}
