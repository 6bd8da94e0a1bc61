// SPDX-License-Identifier: Apache-2.0
#include "base/require.h"
#include "session/manager.h"
#include "session/session_private.h"

G_DEFINE_BOXED_TYPE (MusterPrepareOptions, muster_prepare_options, muster_prepare_options_copy,
                     muster_prepare_options_free)

static void
copy_feeds (MusterPrepareOptions *options)
{
  MusterFeed *feeds = g_new0 (MusterFeed, options->n_init_feeds);

  for (gsize i = 0; i < options->n_init_feeds; i++)
    feeds[i] = (MusterFeed){g_strdup (options->init_feeds[i].name),
                            muster_tensor_ref (options->init_feeds[i].tensor)};
  options->init_feeds = feeds;
}

void
muster_prepare_options_own (MusterPrepareOptions *options)
{
  g_return_if_fail (options != NULL);
  options->init_op = g_strdup (options->init_op);
  options->init_ops = (const char *const *)g_strdupv ((char **)options->init_ops);
  options->checkpoint_dir = g_strdup (options->checkpoint_dir);
  options->checkpoint_filename = g_strdup (options->checkpoint_filename);
  if (options->saver != NULL)
    g_object_ref (options->saver);
  if (options->restore != NULL)
    options->restore = muster_restore_options_copy (options->restore);
  copy_feeds (options);
}

void
muster_prepare_options_clear (MusterPrepareOptions *options)
{
  g_return_if_fail (options != NULL);
  for (gsize i = 0; i < options->n_init_feeds; i++) {
    g_free ((char *)options->init_feeds[i].name);
    muster_tensor_unref (options->init_feeds[i].tensor);
  }
  g_free ((MusterFeed *)options->init_feeds);
  g_free ((char *)options->init_op);
  g_strfreev ((char **)options->init_ops);
  g_free ((char *)options->checkpoint_dir);
  g_free ((char *)options->checkpoint_filename);
  g_clear_object (&options->saver);
  muster_restore_options_free ((MusterRestoreOptions *)options->restore);
}

MusterPrepareOptions *
muster_prepare_options_new (const char *init_op, MusterSaver *saver, const char *checkpoint_dir)
{
  MusterPrepareOptions options = {
      .init_op = init_op, .saver = saver, .checkpoint_dir = checkpoint_dir};
  return muster_prepare_options_copy (&options);
}

MusterPrepareOptions *
muster_prepare_options_copy (const MusterPrepareOptions *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  MusterPrepareOptions *copy = g_memdup2 (self, sizeof *self);

  muster_prepare_options_own (copy);
  return copy;
}

void
muster_prepare_options_free (MusterPrepareOptions *self)
{
  if (self == NULL)
    return;
  muster_prepare_options_clear (self);
  g_free (self);
}

/* Each operation has its own thread: in a pool, some could wait for others that wait for them. */

typedef struct {
  MusterMaster *master;         /* (owned) */
  gint64 timeout_us;            /* wait's */
  MusterPrepareOptions options; /* its contents are owned, except init_func_data */
  gboolean recovered;
  MusterSessionReport report; /* (owned) until finish has taken it */
} Call;

typedef MusterSession *(*Operation) (MusterSessionManager *manager, Call *call,
                                     GCancellable *cancellable, GError **error);

static void
call_free (gpointer data)
{
  Call *call = data;

  muster_prepare_options_clear (&call->options);
  muster_session_report_clear (&call->report);
  g_object_unref (call->master);
  g_free (call);
}

static MusterSession *
prepare (MusterSessionManager *manager, Call *call, GCancellable *cancellable, GError **error)
{
  return muster_session_manager_prepare_session (manager, call->master, &call->options,
                                                 &call->report, cancellable, error);
}

static MusterSession *
recover (MusterSessionManager *manager, Call *call, GCancellable *cancellable, GError **error)
{
  return muster_session_manager_recover_session (
      manager, call->master, &call->options, &call->recovered, &call->report, cancellable, error);
}

static MusterSession *
wait_for (MusterSessionManager *manager, Call *call, GCancellable *cancellable, GError **error)
{
  return muster_session_manager_wait_for_session (manager, call->master, call->timeout_us,
                                                  &call->report, cancellable, error);
}

/* The tag of a task is its operation. */
static gpointer
run (gpointer data)
{
  g_autoptr (GTask) task = data;
  Operation operation = (Operation)g_task_get_source_tag (task);
  GError *error = NULL;
  MusterSession *session = operation (g_task_get_source_object (task), g_task_get_task_data (task),
                                      g_task_get_cancellable (task), &error);

  if (session != NULL)
    g_task_return_pointer (task, session, g_object_unref);
  else
    g_task_return_error (task, error);
  return NULL;
}

static void
start (MusterSessionManager *self, Operation operation, const char *name, MusterMaster *master,
       const MusterPrepareOptions *options, gint64 timeout_us, GCancellable *cancellable,
       GAsyncReadyCallback callback, gpointer user_data)
{
  Call *call = g_new0 (Call, 1);
  GTask *task = g_task_new (self, cancellable, callback, user_data);
  GError *failure = NULL;

  call->master = g_object_ref (master);
  call->timeout_us = timeout_us;
  if (options != NULL)
    call->options = *options;
  muster_prepare_options_own (&call->options);
  g_task_set_source_tag (task, (gpointer)operation);
  g_task_set_task_data (task, call, call_free);
  /* The operation's result counts: a session that was created before the cancellation is returned.
   */
  g_task_set_check_cancellable (task, FALSE);

  GThread *thread = g_thread_try_new (name, run, task, &failure);
  if (thread != NULL) {
    g_thread_unref (thread);
    return;
  }
  g_task_return_new_error (task, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                           "can't start a thread: %s", failure->message);
  g_error_free (failure);
  g_object_unref (task);
}

static MusterSession *
finish (MusterSessionManager *self, GAsyncResult *result, Operation operation, gboolean *recovered,
        MusterSessionReport *report, GError **error)
{
  if (!g_task_is_valid (result, self) ||
      g_task_get_source_tag (G_TASK (result)) != (gpointer)operation) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the result belongs to a different call");
    return NULL;
  }
  GTask *task = G_TASK (result);
  Call *call = g_task_get_task_data (task);

  if (report != NULL) {
    *report = call->report;
    call->report = (MusterSessionReport){0};
  }
  MusterSession *session = g_task_propagate_pointer (task, error);
  if (session != NULL && recovered != NULL)
    *recovered = call->recovered;
  return session;
}

void
muster_session_manager_prepare_session_async (MusterSessionManager *self, MusterMaster *master,
                                              const MusterPrepareOptions *options,
                                              GCancellable *cancellable,
                                              GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (MUSTER_IS_SESSION_MANAGER (self) && MUSTER_IS_MASTER (master));

  start (self, prepare, "muster-prepare", master, options, 0, cancellable, callback, user_data);
}

MusterSession *
muster_session_manager_prepare_session_finish (MusterSessionManager *self, GAsyncResult *result,
                                               MusterSessionReport *report, GError **error)
{
  muster_session_report_begin (report);
  muster_require (error, NULL, self, result);
  return finish (self, result, prepare, NULL, report, error);
}

void
muster_session_manager_recover_session_async (MusterSessionManager *self, MusterMaster *master,
                                              const MusterPrepareOptions *options,
                                              GCancellable *cancellable,
                                              GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (MUSTER_IS_SESSION_MANAGER (self) && MUSTER_IS_MASTER (master));

  start (self, recover, "muster-recover", master, options, 0, cancellable, callback, user_data);
}

MusterSession *
muster_session_manager_recover_session_finish (MusterSessionManager *self, GAsyncResult *result,
                                               gboolean *recovered, MusterSessionReport *report,
                                               GError **error)
{
  muster_session_report_begin (report);
  muster_require (error, NULL, self, result);
  return finish (self, result, recover, recovered, report, error);
}

void
muster_session_manager_wait_for_session_async (MusterSessionManager *self, MusterMaster *master,
                                               gint64 timeout_us, GCancellable *cancellable,
                                               GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (MUSTER_IS_SESSION_MANAGER (self) && MUSTER_IS_MASTER (master));

  start (self, wait_for, "muster-wait", master, NULL, timeout_us, cancellable, callback, user_data);
}

MusterSession *
muster_session_manager_wait_for_session_finish (MusterSessionManager *self, GAsyncResult *result,
                                                MusterSessionReport *report, GError **error)
{
  muster_session_report_begin (report);
  muster_require (error, NULL, self, result);
  return finish (self, result, wait_for, NULL, report, error);
}
