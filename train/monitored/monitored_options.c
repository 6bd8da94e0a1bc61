// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/fields_private.h"
#include "base/require_private.h"
#include "graph/step_copy_private.h"
#include "train/monitored/monitored_session_private.h"

/* What other languages need in place of the structs of muster_monitored_session_new () and _run ().
 */

MUSTER_DEFINE_OPTIONS (MusterMonitoredSessionOptions, muster_monitored_session_options)

MusterMonitoredSessionOptions *
muster_monitored_session_options_new (MusterScaffold *scaffold, MusterMaster *master)
{
  g_return_val_if_fail (scaffold != NULL && master != NULL, NULL);

  const MusterMonitoredSessionOptions options = {.scaffold = scaffold, .master = master};
  return muster_monitored_session_options_copy (&options);
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
