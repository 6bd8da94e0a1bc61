// SPDX-License-Identifier: Apache-2.0
#include "base/background_private.h"

static void
free_call (gpointer data)
{
  MusterBackground *call = data;
  call->verb->clear (call);
  g_free (call);
}

static gpointer
run (gpointer data)
{
  g_autoptr (GTask) task = data;
  MusterBackground *call = g_task_get_task_data (task);
  GError *error = NULL;
  call->verb->run (call, g_task_get_cancellable (task), &error);
  if (error != NULL)
    g_task_return_error (task, error);
  else
    g_task_return_boolean (task, TRUE);
  return NULL;
}

void
muster_background_start (const MusterVerb *verb, gpointer source, gpointer call,
                         GCancellable *cancellable, GAsyncReadyCallback callback,
                         gpointer user_data)
{
  GTask *task = g_task_new (source, cancellable, callback, user_data);
  GError *failure = NULL;
  ((MusterBackground *)call)->verb = verb;
  ((MusterBackground *)call)->source = source;
  g_task_set_source_tag (task, (gpointer)verb);
  g_task_set_task_data (task, call, free_call);
  /* What was made before the cancellation is returned. */
  g_task_set_check_cancellable (task, FALSE);

  GThread *thread = g_thread_try_new (verb->thread, run, task, &failure);
  if (thread != NULL) {
    g_thread_unref (thread);
    return;
  }
  g_task_return_new_error (task, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                           "can't start a thread: %s", failure->message);
  g_error_free (failure);
  g_object_unref (task);
}

gpointer
muster_background_call (const MusterVerb *verb, gpointer source, GAsyncResult *result,
                        GError **error)
{
  if (!G_IS_TASK (result) || g_task_get_source_tag (G_TASK (result)) != (gconstpointer)verb) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the result belongs to a different call");
    return NULL;
  }
  MusterBackground *call = g_task_get_task_data (G_TASK (result));
  if (call->source != source) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the result belongs to another object");
    return NULL;
  }
  if (call->is_finished) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the result was already finished");
    return NULL;
  }
  return call;
}

gboolean
muster_background_finish (gpointer call, GAsyncResult *result, GError **error)
{
  ((MusterBackground *)call)->is_finished = TRUE;
  return g_task_propagate_boolean (G_TASK (result), error);
}
