// SPDX-License-Identifier: Apache-2.0
/* Hooks that report training: to the log, to TensorBoard and as traces. */
#include "base/log_private.h"
#include "base/require_private.h"
#include "graph/tensor.h"
#include "train/hooks/hooks_private.h"

#include <math.h>

/* --- step counter --- */

#define POLLS_WITHOUT_STEP 20 /* consecutive polls before the warning */

#define MUSTER_TYPE_STEP_COUNTER_HOOK (muster_step_counter_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterStepCounterHook, muster_step_counter_hook, MUSTER, STEP_COUNTER_HOOK,
                      MusterHook)

struct _MusterStepCounterHook {
  MusterHook parent;
  MusterStepTimer timer;
  MusterClock *clock;        /* (owned) the timer's */
  MusterEventWriter *writer; /* (owned) (nullable) */
  MusterScaffold *scaffold;  /* (owned) from begin on */
  char *tag;                 /* (owned) from begin on */
  gint64 last_step;
  guint n_same;
};

G_DEFINE_FINAL_TYPE (MusterStepCounterHook, muster_step_counter_hook, MUSTER_TYPE_HOOK)

static gboolean
counter_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  MusterStepCounterHook *self = MUSTER_STEP_COUNTER_HOOK (hook);
  g_autofree char *name = NULL;

  if (!muster_hook_need_global_step (scaffold, "StepCounterHook", error))
    return FALSE;
  self->scaffold = muster_scaffold_ref (scaffold);
  muster_graph_split_input (muster_scaffold_global_step (scaffold), &name);
  /* A resource variable is read by "global_step/Read/ReadVariableOp". */
  char *slash = strchr (name, '/');
  if (slash != NULL)
    *slash = '\0';
  self->tag = g_strconcat (name, "/sec", NULL);
  return TRUE;
}

/* If no time has passed there is no rate (DMON.15). */
static gboolean
count (MusterStepCounterHook *self, gint64 elapsed_us, gint64 elapsed_steps, gint64 step,
       GError **error)
{
  if (elapsed_us <= 0)
    return TRUE;
  double speed = (double)elapsed_steps * (double)MUSTER_SECOND / (double)elapsed_us;
  muster_log (G_LOG_LEVEL_INFO, "summary", "MESSAGE", "%s: %g", self->tag, speed);
  return self->writer == NULL ||
         muster_event_writer_add_scalar (self->writer, self->tag, (float)speed, step, error);
}

static void
watch_progress (MusterStepCounterHook *self, gint64 step)
{
  self->n_same = step == self->last_step ? self->n_same + 1 : 0;
  self->last_step = step;
  if (self->n_same < POLLS_WITHOUT_STEP)
    return;
  muster_log (G_LOG_LEVEL_WARNING, "step", "MESSAGE",
              "It seems that global step has not been increased: it is %" G_GINT64_FORMAT
              " as it was %d runs ago. Does the train op advance it?",
              step, POLLS_WITHOUT_STEP);
  self->n_same = 0;
}

static gboolean
counter_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterStepCounterHook *self = MUSTER_STEP_COUNTER_HOOK (hook);
  gint64 stale = muster_run_context_global_step (context);
  gint64 elapsed_us;
  gint64 elapsed_steps;
  watch_progress (self, stale);
  if (!muster_step_timer_is_due (&self->timer, stale + 1))
    return TRUE;
  gint64 step = muster_run_context_step_now (context, error);
  if (step < 0)
    return FALSE;
  if (!muster_step_timer_is_due (&self->timer, step))
    return TRUE;
  return !muster_step_timer_trigger (&self->timer, step, &elapsed_us, &elapsed_steps) ||
         count (self, elapsed_us, elapsed_steps, step, error);
}

static void
counter_finalize (GObject *object)
{
  MusterStepCounterHook *self = MUSTER_STEP_COUNTER_HOOK (object);
  g_clear_object (&self->clock);
  g_clear_pointer (&self->writer, muster_event_writer_unref);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_free (self->tag);
  G_OBJECT_CLASS (muster_step_counter_hook_parent_class)->finalize (object);
}

static void
muster_step_counter_hook_class_init (MusterStepCounterHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = counter_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = counter_begin;
  MUSTER_HOOK_CLASS (klass)->after_run = counter_after_run;
}

static void
muster_step_counter_hook_init (MusterStepCounterHook *self)
{
  self->last_step = -1;
}

MusterHook *
muster_step_counter_hook_new (gint64 every_steps, gint64 every_us, MusterEventWriter *writer,
                              MusterClock *clock, GError **error)
{
  g_autoptr (MusterStepCounterHook) self = g_object_new (MUSTER_TYPE_STEP_COUNTER_HOOK, NULL);
  if ((every_steps > 0) == (every_us > 0)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "exactly one of every_n_steps and every_n_secs should be provided.");
    return NULL;
  }
  self->clock = g_object_ref (clock ? clock : muster_system_clock ());
  self->writer = writer != NULL ? muster_event_writer_ref (writer) : NULL;
  if (!muster_step_timer_init (&self->timer, every_us, every_steps, self->clock, error))
    return NULL;
  return MUSTER_HOOK (g_steal_pointer (&self));
}

/* --- logging --- */

struct _MusterLoggingHook {
  MusterHook parent;
  char **tensors; /* (owned) */
  guint *fetched; /* (owned) */
  gboolean has_timer;
  MusterStepTimer timer;
  MusterClock *clock; /* (owned) the timer's */
  gboolean at_end;
  gint64 n_runs; /* in this session */
  gboolean is_due;
};

G_DEFINE_FINAL_TYPE (MusterLoggingHook, muster_logging_hook, MUSTER_TYPE_HOOK)

static guint line_signal;

static void
say (MusterLoggingHook *self, const char *text)
{
  if (g_signal_has_handler_pending (self, line_signal, 0, FALSE))
    g_signal_emit (self, line_signal, 0, text);
  else /* its hook asks for it, whatever the level of the log is */
    g_log_structured (MUSTER_LOG_DOMAIN, G_LOG_LEVEL_MESSAGE, "MUSTER_EVENT", "tensors", "MESSAGE",
                      "%s", text);
}

static gboolean
logging_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  for (char **tensor = MUSTER_LOGGING_HOOK (hook)->tensors; *tensor; tensor++)
    if (!muster_hook_need_node (scaffold, *tensor, error))
      return FALSE;
  return TRUE;
}

static gboolean
logging_before_run (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  MusterLoggingHook *self = MUSTER_LOGGING_HOOK (hook);
  self->is_due = self->has_timer && muster_step_timer_is_due (&self->timer, self->n_runs);
  for (guint i = 0; self->is_due && self->tensors[i] != NULL; i++)
    self->fetched[i] = muster_run_context_fetch (context, self->tensors[i]);
  return TRUE;
}

static void
append_value (GString *line, const char *name, const MusterTensor *value)
{
  g_autofree char *text = muster_tensor_to_string (value, 3);

  g_string_append_printf (line, "%s%s = %s", line->len > 0 ? ", " : "", name, text);
}

static gboolean
logging_after_run (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  MusterLoggingHook *self = MUSTER_LOGGING_HOOK (hook);
  gint64 elapsed_us;
  if (self->is_due) {
    g_autoptr (GString) line = g_string_new (NULL);
    for (guint i = 0; self->tensors[i]; i++)
      append_value (line, self->tensors[i], muster_run_context_value (context, self->fetched[i]));
    if (muster_step_timer_trigger (&self->timer, self->n_runs, &elapsed_us, NULL))
      g_string_append_printf (line, " (%.3f sec)", (double)elapsed_us / (double)MUSTER_SECOND);
    say (self, line->str);
  }
  self->n_runs++;
  return TRUE;
}

static gboolean
logging_end (MusterHook *hook, MusterSession *session, gint64 deadline_us,
             GCancellable *cancellable, GError **error)
{
  MusterLoggingHook *self = MUSTER_LOGGING_HOOK (hook);
  guint n = g_strv_length (self->tensors);
  g_autofree MusterTensor **values = g_new0 (MusterTensor *, n + 1);
  g_autoptr (GString) line = g_string_new (NULL);
  MusterStep step = {
      .fetches = (const char *const *)self->tensors, .n_fetches = n, .deadline_us = deadline_us};

  if (!self->at_end)
    return TRUE;
  if (!muster_session_run (session, &step, values, NULL, cancellable, error))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    append_value (line, self->tensors[i], values[i]);
    muster_tensor_unref (values[i]);
  }
  say (self, line->str);
  return TRUE;
}

static void
logging_finalize (GObject *object)
{
  MusterLoggingHook *self = MUSTER_LOGGING_HOOK (object);
  g_strfreev (self->tensors);
  g_free (self->fetched);
  g_clear_object (&self->clock);
  G_OBJECT_CLASS (muster_logging_hook_parent_class)->finalize (object);
}

static void
muster_logging_hook_class_init (MusterLoggingHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = logging_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = logging_begin;
  MUSTER_HOOK_CLASS (klass)->before_run = logging_before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = logging_after_run;
  MUSTER_HOOK_CLASS (klass)->end = logging_end;
  line_signal = g_signal_new ("line", MUSTER_TYPE_LOGGING_HOOK, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                              NULL, G_TYPE_NONE, 1, G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE);
}

static void
muster_logging_hook_init (MusterLoggingHook *self G_GNUC_UNUSED)
{
}

static const char *
logging_mistake (gint64 every_n_iter, gint64 every_us, gboolean at_end)
{
  if (every_n_iter < 0 || every_us < 0)
    return "invalid every_n_iter or every_n_secs: it must be above 0.";
  if (every_n_iter > 0 && every_us > 0)
    return "Can not provide both every_n_iter and every_n_secs.";
  if (every_n_iter == 0 && every_us == 0 && !at_end)
    return "either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.";
  return NULL;
}

MusterHook *
muster_logging_hook_new (const char *const *tensors, gint64 every_n_iter, gint64 every_us,
                         gboolean at_end, MusterClock *clock, GError **error)
{
  muster_require (error, NULL, tensors);

  g_autoptr (MusterLoggingHook) self = g_object_new (MUSTER_TYPE_LOGGING_HOOK, NULL);
  const char *mistake = logging_mistake (every_n_iter, every_us, at_end);
  if (mistake != NULL) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", mistake);
    return NULL;
  }
  self->tensors = g_strdupv ((char **)tensors);
  self->fetched = g_new0 (guint, g_strv_length (self->tensors) + 1);
  self->at_end = at_end;
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  self->has_timer = every_n_iter > 0 || every_us > 0;
  if (self->has_timer &&
      !muster_step_timer_init (&self->timer, every_us, every_n_iter, self->clock, error))
    return NULL;
  return MUSTER_HOOK (g_steal_pointer (&self));
}

/* --- summary saver --- */

#define MUSTER_TYPE_SUMMARY_SAVER_HOOK (muster_summary_saver_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterSummarySaverHook, muster_summary_saver_hook, MUSTER, SUMMARY_SAVER_HOOK,
                      MusterHook)

struct _MusterSummarySaverHook {
  MusterHook parent;
  char *op; /* (owned) (nullable) the tensor */
  MusterStepTimer timer;
  MusterClock *clock;        /* (owned) the timer's */
  MusterEventWriter *writer; /* (owned) (nullable) */
  MusterScaffold *scaffold;  /* (owned) from begin on */
  gint64 next_step;          /* estimate before a run; -1 at first */
  gint64 behind;             /* how far the step fetched by a run is behind: 0 or 1 */
  guint fetched;
  gboolean is_due;
};

G_DEFINE_FINAL_TYPE (MusterSummarySaverHook, muster_summary_saver_hook, MUSTER_TYPE_HOOK)

static gboolean
summary_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  MusterSummarySaverHook *self = MUSTER_SUMMARY_SAVER_HOOK (hook);
  if (!muster_hook_need_global_step (scaffold, "SummarySaverHook", error))
    return FALSE;
  self->scaffold = muster_scaffold_ref (scaffold);
  if (self->op == NULL)
    self->op = g_strdup (muster_scaffold_summary_op (scaffold));
  return self->op == NULL || muster_hook_need_node (scaffold, self->op, error);
}

static gboolean
summary_before_run (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  MusterSummarySaverHook *self = MUSTER_SUMMARY_SAVER_HOOK (hook);
  self->is_due = self->op != NULL && self->writer != NULL &&
                 (self->next_step < 0 || muster_step_timer_is_due (&self->timer, self->next_step));
  if (self->is_due)
    self->fetched = muster_run_context_fetch (context, self->op);
  return TRUE;
}

static gboolean
write_summaries (MusterSummarySaverHook *self, const MusterTensor *value, gint64 step,
                 GError **error)
{
  for (gint64 i = 0;
       muster_tensor_dtype (value) == MUSTER_STRING && i < muster_tensor_n_elements (value); i++) {
    MusterString summary = muster_tensor_string (value, i);
    if (!muster_event_writer_add_summary (self->writer, summary.data, summary.size, step, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
summary_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterSummarySaverHook *self = MUSTER_SUMMARY_SAVER_HOOK (hook);
  gint64 beside = muster_run_context_global_step (context);
  gint64 step = beside + self->behind;
  if (self->op == NULL || self->writer == NULL)
    return TRUE;
  if (self->next_step < 0 || self->is_due) {
    step = muster_run_context_step_now (context, error);
    if (step < 0)
      return FALSE;
    self->behind = step > beside;
  }
  if (self->next_step < 0 && !muster_event_writer_add_session_log (
                                 self->writer, MUSTER_SESSION_LOG_START, NULL, step, error))
    return FALSE;
  self->next_step = step + 1;
  if (!self->is_due)
    return TRUE;
  (void)muster_step_timer_trigger (&self->timer, step, NULL, NULL);
  return write_summaries (self, muster_run_context_value (context, self->fetched), step, error);
}

static gboolean
summary_end (MusterHook *hook, MusterSession *session G_GNUC_UNUSED,
             gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
             GError **error G_GNUC_UNUSED)
{
  MusterSummarySaverHook *self = MUSTER_SUMMARY_SAVER_HOOK (hook);
  if (self->writer != NULL)
    (void)muster_event_writer_flush (self->writer, NULL); /* what stays is reported at the end */
  return TRUE;
}

static void
summary_finalize (GObject *object)
{
  MusterSummarySaverHook *self = MUSTER_SUMMARY_SAVER_HOOK (object);
  g_free (self->op);
  g_clear_object (&self->clock);
  g_clear_pointer (&self->writer, muster_event_writer_unref);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  G_OBJECT_CLASS (muster_summary_saver_hook_parent_class)->finalize (object);
}

static void
muster_summary_saver_hook_class_init (MusterSummarySaverHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = summary_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = summary_begin;
  MUSTER_HOOK_CLASS (klass)->before_run = summary_before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = summary_after_run;
  MUSTER_HOOK_CLASS (klass)->end = summary_end;
}

static void
muster_summary_saver_hook_init (MusterSummarySaverHook *self)
{
  self->next_step = -1;
}

MusterHook *
muster_summary_saver_hook_new (const char *summary_op, gint64 save_steps, gint64 save_us,
                               MusterEventWriter *writer, MusterClock *clock, GError **error)
{
  g_autoptr (MusterSummarySaverHook) self = g_object_new (MUSTER_TYPE_SUMMARY_SAVER_HOOK, NULL);
  self->op = g_strdup (summary_op);
  self->clock = g_object_ref (clock ? clock : muster_system_clock ());
  self->writer = writer != NULL ? muster_event_writer_ref (writer) : NULL;
  if (!muster_step_timer_init (&self->timer, save_us, save_steps, self->clock, error))
    return NULL;
  return MUSTER_HOOK (g_steal_pointer (&self));
}
