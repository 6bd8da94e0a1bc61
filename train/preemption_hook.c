// SPDX-License-Identifier: Apache-2.0
/* The hook that stops a session for a preemption. */
#include "train/preemption_private.h"

#define PREEMPTION_TYPE_HOOK (preemption_hook_get_type ())
G_DECLARE_FINAL_TYPE (PreemptionHook, preemption_hook, PREEMPTION, HOOK, MusterHook)

struct _PreemptionHook {
  MusterHook parent;
  MusterPreemption *preemption; /* (owned) */
};

G_DEFINE_FINAL_TYPE (PreemptionHook, preemption_hook, MUSTER_TYPE_HOOK)

static gboolean
preemption_hook_after_create (MusterHook *hook, G_GNUC_UNUSED MusterSession *session,
                              MusterCoordinator *coordinator, G_GNUC_UNUSED GError **error)
{
  muster_preemption_begin (PREEMPTION_HOOK (hook)->preemption, coordinator);

  return TRUE;
}

static gboolean
preemption_hook_after_run (MusterHook *hook, MusterRunContext *context,
                           G_GNUC_UNUSED GError **error)
{
  if (muster_preemption_is_requested (PREEMPTION_HOOK (hook)->preemption))
    muster_run_context_request_stop (context);

  return TRUE;
}

static gboolean
preemption_hook_end (MusterHook *hook, G_GNUC_UNUSED MusterSession *session,
                     G_GNUC_UNUSED GError **error)
{
  muster_preemption_end (PREEMPTION_HOOK (hook)->preemption, NULL);

  return TRUE;
}

static void
preemption_hook_on_error (MusterHook *hook, const GError *error)
{
  muster_preemption_end (PREEMPTION_HOOK (hook)->preemption, error);
}

static void
preemption_hook_finalize (GObject *object)
{
  g_clear_object (&PREEMPTION_HOOK (object)->preemption);
  G_OBJECT_CLASS (preemption_hook_parent_class)->finalize (object);
}

static void
preemption_hook_class_init (PreemptionHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = preemption_hook_finalize;
  MUSTER_HOOK_CLASS (klass)->after_create_session = preemption_hook_after_create;
  MUSTER_HOOK_CLASS (klass)->after_run = preemption_hook_after_run;
  MUSTER_HOOK_CLASS (klass)->end = preemption_hook_end;
  MUSTER_HOOK_CLASS (klass)->on_error = preemption_hook_on_error;
}

static void
preemption_hook_init (G_GNUC_UNUSED PreemptionHook *self)
{
}

MusterHook *
muster_preemption_hook_new (MusterPreemption *self)
{
  PreemptionHook *hook = g_object_new (PREEMPTION_TYPE_HOOK, NULL);

  hook->preemption = g_object_ref (self);

  return MUSTER_HOOK (hook);
}
