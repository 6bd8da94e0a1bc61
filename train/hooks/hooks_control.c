// SPDX-License-Identifier: Apache-2.0
/* Hooks that stop training, delay it and feed it. */
#include "base/log_private.h"
#include "graph/graph_nodes_private.h"
#include "train/hooks/hooks_private.h"

#include <math.h>

gboolean
muster_hook_need_global_step (MusterScaffold *scaffold, const char *what, GError **error)
{
  if (muster_scaffold_global_step (scaffold) != NULL)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Global step should be created to use %s.", what);
}

gboolean
muster_hook_need_node (MusterScaffold *scaffold, const char *name, GError **error)
{
  g_autofree char *node = NULL;

  muster_graph_split_input (name, &node);
  if (muster_graph_has_node (muster_scaffold_graph (scaffold), node))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "the graph has no node '%s', which the hook needs", node);
}

/* --- stop at step --- */

#define MUSTER_TYPE_STOP_AT_STEP_HOOK (muster_stop_at_step_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterStopAtStepHook, muster_stop_at_step_hook, MUSTER, STOP_AT_STEP_HOOK,
                      MusterHook)

struct _MusterStopAtStepHook {
  MusterHook parent;
  MusterScaffold *scaffold; /* (owned) from begin on */
  gint64 num_steps;         /* 0: last_step was given */
  gint64 last_step;         /* 0: not known yet */
};

G_DEFINE_FINAL_TYPE (MusterStopAtStepHook, muster_stop_at_step_hook, MUSTER_TYPE_HOOK)

static gboolean
stop_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  MUSTER_STOP_AT_STEP_HOOK (hook)->scaffold = muster_scaffold_ref (scaffold);
  return muster_hook_need_global_step (scaffold, "StopAtStepHook", error);
}

/* The steps count from the first session's start (MON.67). */
static gboolean
stop_after_create (MusterHook *hook, MusterSession *session,
                   MusterCoordinator *coordinator G_GNUC_UNUSED, gint64 deadline_us,
                   GCancellable *cancellable, GError **error)
{
  MusterStopAtStepHook *self = MUSTER_STOP_AT_STEP_HOOK (hook);
  if (self->last_step > 0)
    return TRUE;
  gint64 step = muster_read_global_step (session, self->scaffold, deadline_us, cancellable, error);
  if (step < 0)
    return FALSE;
  self->last_step = step + self->num_steps;
  return TRUE;
}

/* The fetched step may be the one before the update: close to the end it is read again (MON.68). */
static gboolean
stop_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterStopAtStepHook *self = MUSTER_STOP_AT_STEP_HOOK (hook);
  if (muster_run_context_global_step (context) + 1 < self->last_step)
    return TRUE;
  gint64 step = muster_run_context_step_now (context, error);
  if (step < 0)
    return FALSE;
  if (step >= self->last_step)
    muster_run_context_request_stop (context);
  return TRUE;
}

static void
stop_finalize (GObject *object)
{
  g_clear_pointer (&MUSTER_STOP_AT_STEP_HOOK (object)->scaffold, muster_scaffold_unref);
  G_OBJECT_CLASS (muster_stop_at_step_hook_parent_class)->finalize (object);
}

static void
muster_stop_at_step_hook_class_init (MusterStopAtStepHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = stop_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = stop_begin;
  MUSTER_HOOK_CLASS (klass)->after_create_session = stop_after_create;
  MUSTER_HOOK_CLASS (klass)->after_run = stop_after_run;
}

static void
muster_stop_at_step_hook_init (MusterStopAtStepHook *self G_GNUC_UNUSED)
{
}

MusterHook *
muster_stop_at_step_hook_new (gint64 num_steps, gint64 last_step, GError **error)
{
  const char *wrong = NULL;
  if (num_steps <= 0 && last_step <= 0)
    wrong = "One of num_steps or last_step must be specified.";
  else if (num_steps > 0 && last_step > 0)
    wrong = "Only one of num_steps or last_step can be specified.";
  if (wrong != NULL) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", wrong);
    return NULL;
  }
  MusterStopAtStepHook *self = g_object_new (MUSTER_TYPE_STOP_AT_STEP_HOOK, NULL);
  self->num_steps = MAX (num_steps, 0);
  self->last_step = MAX (last_step, 0);
  return MUSTER_HOOK (self);
}

/* --- NaN --- */

#define MUSTER_TYPE_NAN_HOOK (muster_nan_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterNanHook, muster_nan_hook, MUSTER, NAN_HOOK, MusterHook)

struct _MusterNanHook {
  MusterHook parent;
  char *loss; /* (owned) */
  gboolean fails;
  guint fetched;
};

G_DEFINE_FINAL_TYPE (MusterNanHook, muster_nan_hook, MUSTER_TYPE_HOOK)

static gboolean
has_nan (const MusterTensor *tensor)
{
  gint64 n = muster_tensor_n_elements (tensor);
  const void *data = muster_tensor_data (tensor);
  for (gint64 i = 0; i < n; i++)
    switch (muster_tensor_dtype (tensor)) {
    case MUSTER_FLOAT:
      if (isnan (((const float *)data)[i]))
        return TRUE;
      break;
    case MUSTER_DOUBLE:
      if (isnan (((const double *)data)[i]))
        return TRUE;
      break;
    default:
      return FALSE;
    }
  return FALSE;
}

static gboolean
nan_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  return muster_hook_need_node (scaffold, MUSTER_NAN_HOOK (hook)->loss, error);
}

static gboolean
nan_before_run (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  MusterNanHook *self = MUSTER_NAN_HOOK (hook);
  self->fetched = muster_run_context_fetch (context, self->loss);
  return TRUE;
}

static gboolean
nan_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterNanHook *self = MUSTER_NAN_HOOK (hook);
  if (!has_nan (muster_run_context_value (context, self->fetched)))
    return TRUE;
  if (self->fails)
    return muster_fail (error, MUSTER_ERROR_INTERNAL,
                        "NaN loss during training. '%s' is NaN at step %" G_GINT64_FORMAT
                        ": the model diverged; use a lower learning rate, or fix its input",
                        self->loss, muster_run_context_global_step (context));
  muster_log (G_LOG_LEVEL_WARNING, "nan", "MESSAGE", "Model diverged with loss = NaN.");
  muster_run_context_request_stop (context);
  return TRUE;
}

static void
nan_finalize (GObject *object)
{
  g_free (MUSTER_NAN_HOOK (object)->loss);
  G_OBJECT_CLASS (muster_nan_hook_parent_class)->finalize (object);
}

static void
muster_nan_hook_class_init (MusterNanHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = nan_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = nan_begin;
  MUSTER_HOOK_CLASS (klass)->before_run = nan_before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = nan_after_run;
}

static void
muster_nan_hook_init (MusterNanHook *self G_GNUC_UNUSED)
{
}

MusterHook *
muster_nan_hook_new (const char *loss, gboolean fails)
{
  g_return_val_if_fail (loss != NULL, NULL);

  MusterNanHook *self = g_object_new (MUSTER_TYPE_NAN_HOOK, NULL);
  self->loss = g_strdup (loss);
  self->fails = fails;
  return MUSTER_HOOK (self);
}

/* --- global step waiter --- */

#define POLL_EVERY_US      (MUSTER_SECOND / 2)
#define REPORT_EVERY_STEPS 1000 /* steps */

#define MUSTER_TYPE_GLOBAL_STEP_WAITER_HOOK (muster_global_step_waiter_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterGlobalStepWaiterHook, muster_global_step_waiter_hook, MUSTER,
                      GLOBAL_STEP_WAITER_HOOK, MusterHook)

struct _MusterGlobalStepWaiterHook {
  MusterHook parent;
  MusterScaffold *scaffold; /* (owned) from begin on */
  MusterClock *clock;       /* (owned) */
  GCancellable *stop;       /* (owned) (nullable) the coordinator's, also the run's */
  gint64 until_step;
  gboolean has_waited;
};

G_DEFINE_FINAL_TYPE (MusterGlobalStepWaiterHook, muster_global_step_waiter_hook, MUSTER_TYPE_HOOK)

static gboolean
waiter_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  MUSTER_GLOBAL_STEP_WAITER_HOOK (hook)->scaffold = muster_scaffold_ref (scaffold);
  return muster_hook_need_global_step (scaffold, "_GlobalStepWaiterHook", error);
}

static gboolean
waiter_after_create (MusterHook *hook, MusterSession *session G_GNUC_UNUSED,
                     MusterCoordinator *coordinator, gint64 deadline_us G_GNUC_UNUSED,
                     GCancellable *cancellable G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  g_set_object (&MUSTER_GLOBAL_STEP_WAITER_HOOK (hook)->stop,
                muster_coordinator_cancellable (coordinator));
  return TRUE;
}

static gboolean
waiter_is_late (MusterGlobalStepWaiterHook *self, gint64 deadline_us, gint64 step, GError **error)
{
  if (muster_clock_now_us (self->clock) < deadline_us)
    return FALSE;
  (void)muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                     "Waiting for global step %" G_GINT64_FORMAT ": it is %" G_GINT64_FORMAT,
                     self->until_step, step);
  return TRUE;
}

/* Waits until the step is reached, the run's deadline has passed, a stop is requested or the run is
 * cancelled. */
static gboolean
wait_for_step (MusterGlobalStepWaiterHook *self, MusterRunContext *context, GError **error)
{
  gint64 deadline_us = muster_run_context_deadline_us (context);
  gint64 told = -1;
  for (;;) {
    gint64 step = muster_read_global_step (muster_run_context_session (context), self->scaffold,
                                           deadline_us, self->stop, error);
    if (step >= self->until_step)
      return TRUE;
    if (step < 0 || waiter_is_late (self, deadline_us, step, error))
      return FALSE;
    if (told < 0 || step - told > REPORT_EVERY_STEPS) {
      told = step;
      muster_log (G_LOG_LEVEL_INFO, "waiting", "MESSAGE",
                  "Waiting for global step %" G_GINT64_FORMAT ", now at %" G_GINT64_FORMAT ".",
                  self->until_step, step);
    }
    gint64 wake_us = muster_clock_now_us (self->clock) + POLL_EVERY_US;
    if (!muster_clock_wait_until (self->clock, MIN (wake_us, deadline_us), self->stop, error))
      return FALSE;
  }
}

static gboolean
waiter_before_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterGlobalStepWaiterHook *self = MUSTER_GLOBAL_STEP_WAITER_HOOK (hook);
  if (self->has_waited)
    return TRUE;
  if (self->until_step > 0) {
    muster_log (G_LOG_LEVEL_INFO, "waiting", "MESSAGE",
                "Waiting for global step %" G_GINT64_FORMAT " before starting training.",
                self->until_step);
    if (!wait_for_step (self, context, error))
      return FALSE;
  }
  self->has_waited = TRUE;
  return TRUE;
}

static void
waiter_finalize (GObject *object)
{
  MusterGlobalStepWaiterHook *self = MUSTER_GLOBAL_STEP_WAITER_HOOK (object);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_object (&self->clock);
  g_clear_object (&self->stop);
  G_OBJECT_CLASS (muster_global_step_waiter_hook_parent_class)->finalize (object);
}

static void
muster_global_step_waiter_hook_class_init (MusterGlobalStepWaiterHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = waiter_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = waiter_begin;
  MUSTER_HOOK_CLASS (klass)->after_create_session = waiter_after_create;
  MUSTER_HOOK_CLASS (klass)->before_run = waiter_before_run;
}

static void
muster_global_step_waiter_hook_init (MusterGlobalStepWaiterHook *self G_GNUC_UNUSED)
{
}

MusterHook *
muster_global_step_waiter_hook_new (gint64 wait_until_step, MusterClock *clock)
{
  MusterGlobalStepWaiterHook *self = g_object_new (MUSTER_TYPE_GLOBAL_STEP_WAITER_HOOK, NULL);
  self->until_step = wait_until_step;
  self->clock = g_object_ref (clock ? clock : muster_system_clock ());
  return MUSTER_HOOK (self);
}

/* --- feed function --- */

#define MUSTER_TYPE_FEED_FUNC_HOOK (muster_feed_func_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterFeedFuncHook, muster_feed_func_hook, MUSTER, FEED_FUNC_HOOK, MusterHook)

struct _MusterFeedFuncHook {
  MusterHook parent;
  char **tensors;        /* (owned) */
  MusterTensor **values; /* (owned) room for one each; empty between runs */
  MusterFeedFunc func;
  gpointer user_data;
  GDestroyNotify destroy; /* (nullable) */
};

G_DEFINE_FINAL_TYPE (MusterFeedFuncHook, muster_feed_func_hook, MUSTER_TYPE_HOOK)

static gboolean
feed_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  for (char **tensor = MUSTER_FEED_FUNC_HOOK (hook)->tensors; *tensor; tensor++)
    if (!muster_hook_need_node (scaffold, *tensor, error))
      return FALSE;
  return TRUE;
}

static gboolean
feed_values (MusterFeedFuncHook *self, MusterRunContext *context, GError **error)
{
  for (guint i = 0; self->tensors[i]; i++) {
    if (self->values[i] == NULL)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "the feed function returned no tensor for '%s'", self->tensors[i]);
    muster_run_context_feed (context, self->tensors[i], self->values[i]);
  }
  return TRUE;
}

static gboolean
feed_before_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterFeedFuncHook *self = MUSTER_FEED_FUNC_HOOK (hook);
  const gboolean is_fed =
      self->func (self->values, muster_run_context_deadline_us (context),
                  muster_run_context_cancellable (context), self->user_data, error) &&
      feed_values (self, context, error);
  for (guint i = 0; self->tensors[i]; i++)
    g_clear_pointer (&self->values[i], muster_tensor_unref);
  return is_fed;
}

static char **
feed_claims (MusterHook *hook)
{
  char **claims = g_strdupv (MUSTER_FEED_FUNC_HOOK (hook)->tensors);
  for (char **claim = claims; *claim; claim++) {
    g_autofree char *tensor = *claim;
    *claim = muster_hook_claim_of_feed (tensor);
  }
  return claims;
}

static void
feed_finalize (GObject *object)
{
  MusterFeedFuncHook *self = MUSTER_FEED_FUNC_HOOK (object);
  if (self->destroy != NULL)
    self->destroy (self->user_data);
  g_strfreev (self->tensors);
  g_free (self->values);
  G_OBJECT_CLASS (muster_feed_func_hook_parent_class)->finalize (object);
}

static void
muster_feed_func_hook_class_init (MusterFeedFuncHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = feed_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = feed_begin;
  MUSTER_HOOK_CLASS (klass)->claims = feed_claims;
  MUSTER_HOOK_CLASS (klass)->before_run = feed_before_run;
}

static void
muster_feed_func_hook_init (MusterFeedFuncHook *self G_GNUC_UNUSED)
{
}

MusterHook *
muster_feed_func_hook_new (const char *const *tensors, MusterFeedFunc func, gpointer user_data,
                           GDestroyNotify destroy)
{
  g_return_val_if_fail (tensors != NULL && func != NULL, NULL);

  MusterFeedFuncHook *self = g_object_new (MUSTER_TYPE_FEED_FUNC_HOOK, NULL);
  self->tensors = g_strdupv ((char **)tensors);
  self->values = g_new0 (MusterTensor *, g_strv_length (self->tensors) + 1);
  self->func = func;
  self->user_data = user_data;
  self->destroy = destroy;
  return MUSTER_HOOK (self);
}
