// SPDX-License-Identifier: Apache-2.0
#include "train/monitored/background.h"

#include "base/background.h"
#include "graph/step_copy.h"
#include "master/step_builder_copy.h"

/* A call in the background has a cancellable, where the blocking verbs heed GLib's current one. */
#define CALL_WITH(cancellable, call)                                                               \
  do {                                                                                             \
    if ((cancellable) == NULL)                                                                     \
      return call;                                                                                 \
    g_cancellable_push_current (cancellable);                                                      \
    const __typeof__ (call) result_ = call;                                                        \
    g_cancellable_pop_current (cancellable);                                                       \
    return result_;                                                                                \
  } while (0)

static gboolean
run (MusterMonitoredSession *self, const MusterStep *step, MusterTensor **fetched,
     GBytes **metadata, GCancellable *cancellable, GError **error)
{
  CALL_WITH (cancellable, muster_monitored_session_run (self, step, fetched, metadata, error));
}

static gboolean
run_without_hooks (MusterMonitoredSession *self, const MusterStep *step, MusterTensor **fetched,
                   GBytes **metadata, GCancellable *cancellable, GError **error)
{
  CALL_WITH (cancellable,
             muster_monitored_session_run_without_hooks (self, step, fetched, metadata, error));
}

static GPtrArray *
run_builder (MusterMonitoredSession *self, MusterStepBuilder *step, gboolean with_hooks,
             gint64 timeout_us, GCancellable *cancellable, GError **error)
{
  CALL_WITH (cancellable,
             muster_monitored_session_run_builder (self, step, with_hooks, timeout_us, error));
}

static gboolean
end (MusterMonitoredSession *self, const GError *failure, gint64 deadline_us,
     GCancellable *cancellable, GError **error)
{
  CALL_WITH (cancellable, muster_monitored_session_finish (self, failure, deadline_us, error));
}

static gboolean
end_well (MusterMonitoredSession *self, gint64 deadline_us, GCancellable *cancellable,
          GError **error)
{
  CALL_WITH (cancellable, muster_monitored_session_end (self, deadline_us, error));
}

static void
clear_bytes (GBytes **bytes)
{
  g_clear_pointer (bytes, g_bytes_unref);
}

static void
clear_array (GPtrArray **array)
{
  g_clear_pointer (array, g_ptr_array_unref);
}

/* With what muster_monitored_session_new () copies of them. */
static const MusterMonitoredSessionOptions *
copy_options (const MusterMonitoredSessionOptions *options)
{
  MusterMonitoredSessionOptions *copy = muster_monitored_session_options_copy (options);

  if (options->recovery != NULL)
    copy->recovery = g_memdup2 (options->recovery, sizeof *options->recovery);
  if (options->listener != NULL)
    copy->listener = g_memdup2 (options->listener, sizeof *options->listener);
  return copy;
}

static void
free_options (const MusterMonitoredSessionOptions *options)
{
  g_free ((gpointer)options->recovery);
  g_free ((gpointer)options->listener);
  muster_monitored_session_options_free ((MusterMonitoredSessionOptions *)options);
}

static void
begin_report (MusterSessionReport *report)
{
  *report = (MusterSessionReport){.final_step = -1};
}

static void
free_failure (const GError *failure)
{
  g_error_free ((GError *)failure);
}

#define SELF(X) X (OBJECT, MusterMonitoredSession)

#define NEW(X)                                                                                     \
  X (KEPT, const MusterMonitoredSessionOptions *, options, copy_options, free_options)             \
  X (REPORT, MusterSessionReport, report, begin_report, muster_session_report_clear)
MUSTER_ASYNC (muster_monitored_session_new, muster_monitored_session_new, "muster-prepare",
              MusterMonitoredSession *, g_clear_object, NEW)

#define RUN(X)                                                                                     \
  SELF (X)                                                                                         \
  X (KEPT, const MusterStep *, step, muster_step_copy, muster_step_free)                           \
  X (OUTS, MusterTensor *, fetched, CALL->step != NULL ? CALL->step->n_fetches : 0,                \
     muster_tensor_unref)                                                                          \
  X (OUT, GBytes *, metadata, clear_bytes)
MUSTER_ASYNC (muster_monitored_session_run, run, "muster-run", gboolean, MUSTER_PLAIN, RUN)
MUSTER_ASYNC (muster_monitored_session_run_without_hooks, run_without_hooks, "muster-run", gboolean,
              MUSTER_PLAIN, RUN)

#define RUN_BUILT(X)                                                                               \
  SELF (X)                                                                                         \
  X (KEPT, MusterStepBuilder *, step, muster_step_builder_copy, muster_step_builder_unref)         \
  X (VALUE, gboolean, with_hooks)                                                                  \
  X (VALUE, gint64, timeout_us)
MUSTER_ASYNC (muster_monitored_session_run_builder, run_builder, "muster-run", GPtrArray *,
              clear_array, RUN_BUILT)

#define FINISH(X)                                                                                  \
  SELF (X)                                                                                         \
  X (KEPT, const GError *, failure, g_error_copy, free_failure)                                    \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_monitored_session_finish, end, "muster-finish", gboolean, MUSTER_PLAIN, FINISH)

#define END(X) SELF (X) X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_monitored_session_end, end_well, "muster-finish", gboolean, MUSTER_PLAIN, END)
