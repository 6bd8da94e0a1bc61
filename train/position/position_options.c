// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/fields_private.h"
#include "base/require_private.h"
#include "graph/step_copy_private.h"
#include "master/master.h"
#include "train/position/position.h"

/* Options on the heap, and steps of a builder, for other languages. */

MUSTER_DEFINE_OPTIONS (MusterPositionGuard, muster_position_guard)

MUSTER_DEFINE_OPTIONS (MusterPositionOptions, muster_position_options)

MusterPositionOptions *
muster_position_options_new (MusterMaster *master, MusterBatches *batches, const char *const *feeds)
{
  const MusterPositionOptions options = {.master = master,
                                         .batches = batches,
                                         .feeds = feeds,
                                         .n_feeds =
                                             feeds != NULL ? g_strv_length ((char **)feeds) : 0};
  return muster_position_options_copy (&options);
}

GPtrArray *
muster_position_run_builder (MusterHook *self, MusterMonitoredSession *session,
                             MusterStepBuilder *step, gint64 timeout_us, GError **error)
{
  muster_require (error, NULL, self, session, step);

  MusterStep built = muster_step_builder_step (step);
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, built.n_fetches + 1);
  gboolean trained = FALSE;

  built.deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), timeout_us);
  if (!muster_position_run (self, session, &built, fetched, &trained, error))
    return NULL;
  return muster_tensors_take (fetched, trained ? built.n_fetches : 0);
}
