// SPDX-License-Identifier: Apache-2.0
/* The hook that stops a session for a preemption. */
#include "train/preemption/preemption_private.h"

#define MUSTER_TYPE_PREEMPTION_HOOK (muster_preemption_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterPreemptionHook, muster_preemption_hook, MUSTER, PREEMPTION_HOOK,
                      MusterHook)

struct _MusterPreemptionHook {
  MusterHook parent;
  MusterPreemption *preemption; /* (owned) */
};

G_DEFINE_FINAL_TYPE (MusterPreemptionHook, muster_preemption_hook, MUSTER_TYPE_HOOK)

static gboolean
preemption_hook_after_create (MusterHook *hook, MusterSession *session G_GNUC_UNUSED,
                              MusterCoordinator *coordinator, gint64 deadline_us G_GNUC_UNUSED,
                              GCancellable *cancellable G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  muster_preemption_begin (MUSTER_PREEMPTION_HOOK (hook)->preemption, coordinator);
  return TRUE;
}

static void
preemption_hook_session_lost (MusterHook *hook)
{
  muster_preemption_note_lost (MUSTER_PREEMPTION_HOOK (hook)->preemption);
}

static gboolean
preemption_hook_after_run (MusterHook *hook, MusterRunContext *context,
                           GError **error G_GNUC_UNUSED)
{
  if (muster_preemption_is_requested (MUSTER_PREEMPTION_HOOK (hook)->preemption))
    muster_run_context_request_stop (context);
  return TRUE;
}

static gboolean
preemption_hook_end (MusterHook *hook, MusterSession *session G_GNUC_UNUSED,
                     gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
                     GError **error G_GNUC_UNUSED)
{
  muster_preemption_end (MUSTER_PREEMPTION_HOOK (hook)->preemption, NULL);
  return TRUE;
}

static void
preemption_hook_on_error (MusterHook *hook, const GError *error)
{
  muster_preemption_end (MUSTER_PREEMPTION_HOOK (hook)->preemption, error);
}

static void
preemption_hook_finalize (GObject *object)
{
  g_clear_object (&MUSTER_PREEMPTION_HOOK (object)->preemption);
  G_OBJECT_CLASS (muster_preemption_hook_parent_class)->finalize (object);
}

static void
muster_preemption_hook_class_init (MusterPreemptionHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = preemption_hook_finalize;
  MUSTER_HOOK_CLASS (klass)->after_create_session = preemption_hook_after_create;
  MUSTER_HOOK_CLASS (klass)->session_lost = preemption_hook_session_lost;
  MUSTER_HOOK_CLASS (klass)->after_run = preemption_hook_after_run;
  MUSTER_HOOK_CLASS (klass)->end = preemption_hook_end;
  MUSTER_HOOK_CLASS (klass)->on_error = preemption_hook_on_error;
}

static void
muster_preemption_hook_init (MusterPreemptionHook *self G_GNUC_UNUSED)
{
}

MusterHook *
muster_preemption_hook_new (MusterPreemption *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  MusterPreemptionHook *hook = g_object_new (MUSTER_TYPE_PREEMPTION_HOOK, NULL);
  hook->preemption = g_object_ref (self);
  return MUSTER_HOOK (hook);
}
