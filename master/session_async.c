// SPDX-License-Identifier: Apache-2.0
#include "base/background_private.h"
#include "graph/step_copy_private.h"
#include "master/session.h"

typedef struct {
  MusterBackground parent;
  MusterSession *self;
  const MusterStep *step; /* (owned) (nullable) */
  MusterTensor **fetched; /* (owned) (nullable) the step's n_fetches, each (nullable) */
  GBytes *metadata;       /* (owned) (nullable) */
} Run;

static gsize
n_fetches (const Run *call)
{
  return call->step != NULL ? call->step->n_fetches : 0;
}

static void
run (gpointer data, GCancellable *cancellable, GError **error)
{
  Run *call = data;
  call->fetched = g_try_new0 (MusterTensor *, n_fetches (call));
  (void)muster_session_run (call->self, call->step, call->fetched, &call->metadata, cancellable,
                            error);
}

static void
clear_run (gpointer data)
{
  Run *call = data;
  for (gsize i = 0; call->fetched != NULL && i < n_fetches (call); i++)
    g_clear_pointer (&call->fetched[i], muster_tensor_unref);
  g_free (call->fetched);
  g_clear_pointer (&call->metadata, g_bytes_unref);
  g_clear_pointer (&call->step, muster_step_free);
}

static const MusterVerb running = {"muster-run", run, clear_run};

void
muster_session_run_async (MusterSession *self, const MusterStep *step, GCancellable *cancellable,
                          GAsyncReadyCallback callback, gpointer user_data)
{
  Run *call = g_new0 (Run, 1);
  call->self = self;
  call->step = step != NULL ? muster_step_copy (step) : NULL;
  muster_background_start (&running, self, call, cancellable, callback, user_data);
}

gboolean
muster_session_run_finish (MusterSession *self, GAsyncResult *result, MusterTensor **fetched,
                           GBytes **metadata, GError **error)
{
  muster_require (error, FALSE, self, result);
  Run *call = muster_background_call (&running, self, result, error);
  if (call == NULL || !muster_background_finish (call, result, error))
    return FALSE;

  for (gsize i = 0; fetched != NULL && i < n_fetches (call); i++)
    fetched[i] = g_steal_pointer (&call->fetched[i]);
  if (metadata != NULL)
    *metadata = g_steal_pointer (&call->metadata);
  return TRUE;
}
