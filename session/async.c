// SPDX-License-Identifier: Apache-2.0
#include "base/background_private.h"
#include "session/manager.h"
#include "session/session_private.h"

/* Preparing and waiting, which both end with a session and a report. */
typedef struct {
  MusterBackground parent;
  MusterSessionManager *self;
  MusterMaster *master;          /* (owned) (nullable) */
  MusterPrepareOptions *options; /* (owned) (nullable) of prepare */
  gint64 timeout_us;             /* of wait */
  MusterSession *session;        /* (owned) (nullable) */
  MusterSessionReport report;
} Call;

static Call *
call_new (MusterSessionManager *self, MusterMaster *master)
{
  Call *call = g_new0 (Call, 1);
  call->self = self;
  g_set_object (&call->master, master);
  muster_session_report_begin (&call->report);
  return call;
}

static void
prepare (gpointer data, GCancellable *cancellable, GError **error)
{
  Call *call = data;
  call->session = muster_session_manager_prepare_session (call->self, call->master, call->options,
                                                          &call->report, cancellable, error);
}

static void
wait_for (gpointer data, GCancellable *cancellable, GError **error)
{
  Call *call = data;
  call->session = muster_session_manager_wait_for_session (
      call->self, call->master, call->timeout_us, &call->report, cancellable, error);
}

static void
clear (gpointer data)
{
  Call *call = data;
  g_clear_object (&call->master);
  if (call->options != NULL)
    g_boxed_free (MUSTER_TYPE_PREPARE_OPTIONS, call->options);
  g_clear_object (&call->session);
  muster_session_report_clear (&call->report);
}

static const MusterVerb preparing = {"muster-prepare", prepare, clear};
static const MusterVerb waiting = {"muster-wait", wait_for, clear};

static MusterSession *
finish (const MusterVerb *verb, MusterSessionManager *self, GAsyncResult *result,
        MusterSessionReport *report, GError **error)
{
  Call *call = muster_background_call (verb, self, result, error);
  if (call == NULL)
    return NULL;

  if (report != NULL) {
    *report = call->report;
    muster_session_report_begin (&call->report);
  }
  if (!muster_background_finish (call, result, error))
    return NULL;
  return g_steal_pointer (&call->session);
}

void
muster_session_manager_prepare_session_async (MusterSessionManager *self, MusterMaster *master,
                                              const MusterPrepareOptions *options,
                                              GCancellable *cancellable,
                                              GAsyncReadyCallback callback, gpointer user_data)
{
  Call *call = call_new (self, master);
  call->options = options != NULL ? g_boxed_copy (MUSTER_TYPE_PREPARE_OPTIONS, options) : NULL;
  muster_background_start (&preparing, self, call, cancellable, callback, user_data);
}

MusterSession *
muster_session_manager_prepare_session_finish (MusterSessionManager *self, GAsyncResult *result,
                                               MusterSessionReport *report, GError **error)
{
  muster_session_report_begin (report);
  muster_require (error, NULL, self, result);
  return finish (&preparing, self, result, report, error);
}

void
muster_session_manager_wait_for_session_async (MusterSessionManager *self, MusterMaster *master,
                                               gint64 timeout_us, GCancellable *cancellable,
                                               GAsyncReadyCallback callback, gpointer user_data)
{
  Call *call = call_new (self, master);
  call->timeout_us = timeout_us;
  muster_background_start (&waiting, self, call, cancellable, callback, user_data);
}

MusterSession *
muster_session_manager_wait_for_session_finish (MusterSessionManager *self, GAsyncResult *result,
                                                MusterSessionReport *report, GError **error)
{
  muster_session_report_begin (report);
  muster_require (error, NULL, self, result);
  return finish (&waiting, self, result, report, error);
}
