// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/fields_private.h"
#include "base/require_private.h"
#include "graph/step_copy_private.h"
#include "train/monitored/monitored_session_private.h"

/* What other languages need in place of the structs of muster_monitored_session_new () and _run ().
 */

enum { SCAFFOLD, MASTER, MANAGER, PREPARE, HOOKS, OBSERVER, CLOCK };

static const MusterField owned[] = {
    [SCAFFOLD] =
        MUSTER_TYPED_FIELD (MusterMonitoredSessionOptions, scaffold, muster_scaffold_get_type),
    [MASTER] = MUSTER_TYPED_FIELD (MusterMonitoredSessionOptions, master, muster_master_get_type),
    [MANAGER] = MUSTER_TYPED_FIELD (MusterMonitoredSessionOptions, manager,
                                    muster_session_manager_get_type),
    [PREPARE] = MUSTER_TYPED_FIELD (MusterMonitoredSessionOptions, prepare,
                                    muster_prepare_options_get_type),
    [HOOKS] =
        MUSTER_OBJECTS_FIELD (MusterMonitoredSessionOptions, hooks, n_hooks, muster_hook_get_type),
    [OBSERVER] = MUSTER_TYPED_FIELD (MusterMonitoredSessionOptions, observer,
                                     muster_session_observer_get_type),
    [CLOCK] = MUSTER_TYPED_FIELD (MusterMonitoredSessionOptions, clock, muster_clock_get_type),
};
MUSTER_DEFINE_OPTIONS (MusterMonitoredSessionOptions, muster_monitored_session_options, owned)

MusterMonitoredSessionOptions *
muster_monitored_session_options_new (MusterScaffold *scaffold, MusterMaster *master)
{
  g_return_val_if_fail (scaffold != NULL && master != NULL, NULL);

  const MusterMonitoredSessionOptions options = {.scaffold = scaffold, .master = master};
  return muster_monitored_session_options_copy (&options);
}

void
muster_monitored_session_options_set_manager (MusterMonitoredSessionOptions *self,
                                              MusterSessionManager *manager)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[MANAGER], manager);
}

void
muster_monitored_session_options_set_prepare (MusterMonitoredSessionOptions *self,
                                              const MusterPrepareOptions *prepare)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[PREPARE], prepare);
}

void
muster_monitored_session_options_add_hook (MusterMonitoredSessionOptions *self, MusterHook *hook)
{
  g_return_if_fail (self != NULL && hook != NULL);
  muster_fields_append (self, &owned[HOOKS], hook);
}

void
muster_monitored_session_options_set_observer (MusterMonitoredSessionOptions *self,
                                               MusterSessionObserver *observer)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[OBSERVER], observer);
}

void
muster_monitored_session_options_set_clock (MusterMonitoredSessionOptions *self, MusterClock *clock)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[CLOCK], clock);
}

GPtrArray *
muster_monitored_session_run_builder (MusterMonitoredSession *self, MusterStepBuilder *step,
                                      gboolean with_hooks, gint64 timeout_us, GError **error)
{
  muster_require (error, NULL, self, step);

  MusterStep built = muster_step_builder_step (step);
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, built.n_fetches + 1);

  built.deadline_us = muster_deadline_after (muster_clock_now_us (self->clock), timeout_us);
  if (!(with_hooks
            ? muster_monitored_session_run (self, &built, fetched, NULL, error)
            : muster_monitored_session_run_without_hooks (self, &built, fetched, NULL, error)))
    return NULL;
  return muster_tensors_take (fetched, built.n_fetches);
}

gboolean
muster_monitored_session_end (MusterMonitoredSession *self, gint64 deadline_us, GError **error)
{
  muster_require (error, FALSE, self);
  return muster_monitored_session_finish (self, NULL, deadline_us, error);
}
