// SPDX-License-Identifier: Apache-2.0
/* Hooks that act at the end. */
#include "base/log_private.h"
#include "master/step_check_private.h"
#include "train/hooks/hooks_private.h"

#define MUSTER_TYPE_FINAL_OPS_HOOK (muster_final_ops_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterFinalOpsHook, muster_final_ops_hook, MUSTER, FINAL_OPS_HOOK, MusterHook)

struct _MusterFinalOpsHook {
  MusterHook parent;
  char **fetches;    /* (owned) */
  char **targets;    /* (owned) */
  GArray *feeds;     /* (owned) (element-type MusterFeed) names and tensors owned */
  GPtrArray *values; /* (owned) (element-type MusterTensor) empty until the end */
};

G_DEFINE_FINAL_TYPE (MusterFinalOpsHook, muster_final_ops_hook, MUSTER_TYPE_HOOK)

static gboolean
need_nodes (char **names, MusterScaffold *scaffold, GError **error)
{
  for (char **name = names; *name; name++)
    if (!muster_hook_need_node (scaffold, *name, error))
      return FALSE;
  return TRUE;
}

static gboolean
final_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  MusterFinalOpsHook *self = MUSTER_FINAL_OPS_HOOK (hook);
  return need_nodes (self->fetches, scaffold, error) && need_nodes (self->targets, scaffold, error);
}

static gboolean
final_end (MusterHook *hook, MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
           GError **error)
{
  MusterFinalOpsHook *self = MUSTER_FINAL_OPS_HOOK (hook);
  MusterStep step = {.feeds = (const MusterFeed *)(gpointer)self->feeds->data,
                     .n_feeds = self->feeds->len,
                     .fetches = (const char *const *)self->fetches,
                     .n_fetches = g_strv_length (self->fetches),
                     .targets = (const char *const *)self->targets,
                     .n_targets = g_strv_length (self->targets),
                     .deadline_us = deadline_us};
  g_autoptr (GError) failure = NULL;
  g_ptr_array_set_size (self->values, (gint)step.n_fetches);
  if (muster_session_run (session, &step, (MusterTensor **)self->values->pdata, NULL, cancellable,
                          &failure))
    return TRUE;
  g_ptr_array_set_size (self->values, 0);
  if (muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE))
    muster_log (G_LOG_LEVEL_MESSAGE, "final-ops", "MESSAGE",
                "An OutOfRangeError in the final ops: they depend on the input, which has ended.");
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static void
feed_clear (gpointer data)
{
  MusterFeed *feed = data;
  g_free ((char *)feed->name);
  muster_tensor_unref (feed->tensor);
}

static void
final_finalize (GObject *object)
{
  MusterFinalOpsHook *self = MUSTER_FINAL_OPS_HOOK (object);
  g_strfreev (self->fetches);
  g_strfreev (self->targets);
  g_array_unref (self->feeds);
  g_ptr_array_unref (self->values);
  G_OBJECT_CLASS (muster_final_ops_hook_parent_class)->finalize (object);
}

static void
muster_final_ops_hook_class_init (MusterFinalOpsHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = final_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = final_begin;
  MUSTER_HOOK_CLASS (klass)->end = final_end;
}

static void
muster_final_ops_hook_init (MusterFinalOpsHook *self)
{
  self->feeds = g_array_new (FALSE, FALSE, sizeof (MusterFeed));
  g_array_set_clear_func (self->feeds, feed_clear);
  self->values = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
}

static char **
copy_names (const char *const *names, gsize n)
{
  char **copy = g_new0 (char *, n + 1);
  for (gsize i = 0; i < n; i++)
    copy[i] = g_strdup (names[i]);
  return copy;
}

MusterHook *
muster_final_ops_hook_new (const MusterStep *step)
{
  g_return_val_if_fail (step != NULL && muster_step_check (G_STRFUNC, step, TRUE, NULL), NULL);

  MusterFinalOpsHook *self = g_object_new (MUSTER_TYPE_FINAL_OPS_HOOK, NULL);
  self->fetches = copy_names (step->fetches, step->n_fetches);
  self->targets = copy_names (step->targets, step->n_targets);
  for (gsize i = 0; i < step->n_feeds; i++) {
    MusterFeed feed = {g_strdup (step->feeds[i].name), muster_tensor_ref (step->feeds[i].tensor)};
    g_array_append_val (self->feeds, feed);
  }
  return MUSTER_HOOK (self);
}

MusterTensor *
muster_final_ops_hook_value (MusterHook *hook, gsize fetched)
{
  g_return_val_if_fail (MUSTER_IS_FINAL_OPS_HOOK (hook), NULL);

  MusterFinalOpsHook *self = MUSTER_FINAL_OPS_HOOK (hook);
  return fetched < self->values->len ? self->values->pdata[fetched] : NULL;
}

/* --- finish barrier --- */

#define POLL_EVERY_US (MUSTER_SECOND / 10)

#define MUSTER_TYPE_FINISH_BARRIER_HOOK (muster_finish_barrier_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterFinishBarrierHook, muster_finish_barrier_hook, MUSTER,
                      FINISH_BARRIER_HOOK, MusterHook)

struct _MusterFinishBarrierHook {
  MusterHook parent;
  MusterScaffold *scaffold; /* (owned) from begin on */
  MusterClock *clock;       /* (owned) */
  gint64 quiet_us;
  gint64 timeout_us;
};

G_DEFINE_FINAL_TYPE (MusterFinishBarrierHook, muster_finish_barrier_hook, MUSTER_TYPE_HOOK)

static gboolean
barrier_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  MUSTER_FINISH_BARRIER_HOOK (hook)->scaffold = muster_scaffold_ref (scaffold);
  return muster_hook_need_global_step (scaffold, "the finish barrier", error);
}

static gboolean
barrier_end (MusterHook *hook, MusterSession *session, gint64 deadline_us,
             GCancellable *cancellable, GError **error)
{
  MusterFinishBarrierHook *self = MUSTER_FINISH_BARRIER_HOOK (hook);
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 until_us = MIN (muster_deadline_after (now_us, self->timeout_us), deadline_us);
  gint64 moved_us = now_us;
  gint64 last = -1;
  for (;;) {
    gint64 step =
        muster_read_global_step (session, self->scaffold, deadline_us, cancellable, error);
    if (step < 0)
      return FALSE;
    now_us = muster_clock_now_us (self->clock);
    if (step != last)
      moved_us = now_us;
    last = step;
    if (now_us - moved_us >= self->quiet_us)
      return TRUE;
    if (now_us >= until_us) {
      muster_log (G_LOG_LEVEL_MESSAGE, "waiting", "MESSAGE",
                  "other tasks still train, at step %" G_GINT64_FORMAT
                  "; no longer waiting for them",
                  step);
      return TRUE;
    }
    gint64 wake_us = MIN (muster_deadline_after (now_us, POLL_EVERY_US), until_us);
    if (!muster_clock_wait_until (self->clock, wake_us, cancellable, error))
      return FALSE;
  }
}

static void
barrier_finalize (GObject *object)
{
  MusterFinishBarrierHook *self = MUSTER_FINISH_BARRIER_HOOK (object);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_object (&self->clock);
  G_OBJECT_CLASS (muster_finish_barrier_hook_parent_class)->finalize (object);
}

static void
muster_finish_barrier_hook_class_init (MusterFinishBarrierHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = barrier_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = barrier_begin;
  MUSTER_HOOK_CLASS (klass)->end = barrier_end;
}

static void
muster_finish_barrier_hook_init (MusterFinishBarrierHook *self G_GNUC_UNUSED)
{
}

MusterHook *
muster_finish_barrier_hook_new (gint64 quiet_us, gint64 timeout_us, MusterClock *clock)
{
  MusterFinishBarrierHook *self = g_object_new (MUSTER_TYPE_FINISH_BARRIER_HOOK, NULL);
  self->quiet_us = quiet_us;
  self->timeout_us = timeout_us;
  self->clock = g_object_ref (clock ? clock : muster_system_clock ());
  return MUSTER_HOOK (self);
}
