// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/hook_scalar_private.h"

#include "graph/graph.h"
#include "graph/tensor.h"
#include "train/hooks/step_timer_private.h"
#include "train/monitored/run_context.h"

#define MUSTER_TYPE_SCALAR_HOOK (muster_scalar_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterScalarHook, muster_scalar_hook, MUSTER, SCALAR_HOOK, MusterHook)

struct _MusterScalarHook {
  MusterHook parent;
  char *tensor;              /* (owned) */
  char *tag;                 /* (owned) */
  MusterEventWriter *writer; /* (owned) (nullable) */
  MusterClock *clock;        /* (owned) (nullable) the timer's */
  MusterStepTimer timer;
  guint fetched;
};

G_DEFINE_FINAL_TYPE (MusterScalarHook, muster_scalar_hook, MUSTER_TYPE_HOOK)

static gboolean
scalar_before_run (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  MusterScalarHook *self = MUSTER_SCALAR_HOOK (hook);
  if (self->writer != NULL)
    self->fetched = muster_run_context_fetch (context, self->tensor);
  return TRUE;
}

static gboolean
scalar_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterScalarHook *self = MUSTER_SCALAR_HOOK (hook);
  const gint64 step = muster_run_context_global_step (context);
  double value;
  if (self->writer == NULL || !muster_step_timer_is_due (&self->timer, step))
    return TRUE;
  (void)muster_step_timer_trigger (&self->timer, step, NULL, NULL);
  /* A value of another shape trains as well; it has no curve. */
  return !muster_tensor_get_double (muster_run_context_value (context, self->fetched), &value,
                                    NULL) ||
         muster_event_writer_add_scalar (self->writer, self->tag, (float)value, step, error);
}

static void
scalar_finalize (GObject *object)
{
  MusterScalarHook *self = MUSTER_SCALAR_HOOK (object);
  g_free (self->tensor);
  g_free (self->tag);
  g_clear_pointer (&self->writer, muster_event_writer_unref);
  g_clear_object (&self->clock);
  G_OBJECT_CLASS (muster_scalar_hook_parent_class)->finalize (object);
}

static void
muster_scalar_hook_class_init (MusterScalarHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = scalar_finalize;
  MUSTER_HOOK_CLASS (klass)->before_run = scalar_before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = scalar_after_run;
}

static void
muster_scalar_hook_init (MusterScalarHook *self G_GNUC_UNUSED)
{
}

MusterHook *
muster_scalar_hook_new (const char *tensor)
{
  MusterScalarHook *self = g_object_new (MUSTER_TYPE_SCALAR_HOOK, NULL);
  self->tensor = g_strdup (tensor);
  muster_graph_split_input (tensor, &self->tag);
  return MUSTER_HOOK (self);
}

gboolean
muster_scalar_hook_set_writer (MusterHook *hook, MusterEventWriter *writer, gint64 every_us,
                               gint64 every_steps, MusterClock *clock, GError **error)
{
  if (!MUSTER_IS_SCALAR_HOOK (hook))
    return TRUE;
  MusterScalarHook *self = MUSTER_SCALAR_HOOK (hook);
  g_clear_pointer (&self->writer, muster_event_writer_unref);
  self->writer = muster_event_writer_ref (writer);
  g_clear_object (&self->clock);
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  return muster_step_timer_init (&self->timer, every_us, every_steps, self->clock, error);
}
