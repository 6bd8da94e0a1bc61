// SPDX-License-Identifier: Apache-2.0
#include "jobs/job_private.h"
#include "train/monitored/check_time_private.h"

#include "base/require.h"

G_DEFINE_FINAL_TYPE (MusterJobOutput, muster_job_output, G_TYPE_OBJECT)

static void
tensor_unref (gpointer tensor)
{
  muster_tensor_unref (tensor);
}

GPtrArray *
muster_job_output_get_list (MusterJobOutput *self, GError **error)
{
  muster_require (error, NULL, self);

  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);

  if (self->values)
    return g_ptr_array_ref (self->values);
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                       "Output value not set yet.");

  return NULL;
}

MusterTensor *
muster_job_output_get (MusterJobOutput *self, GError **error)
{
  muster_require (error, NULL, self);

  g_autoptr (GPtrArray) values = muster_job_output_get_list (self, error);

  if (!values)
    return NULL;
  if (values->len == 1)
    return muster_tensor_ref (values->pdata[0]);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "The output is a list of %u tensors: get it as one", values->len);

  return NULL;
}

void
muster_job_output_take (MusterJobOutput *self, MusterSession *session, GPtrArray *values)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);

  g_clear_pointer (&self->values, g_ptr_array_unref);
  self->values = values;
  g_set_object (&self->session, session);
}

gboolean
muster_job_output_set (MusterJobOutput *self, MusterTensor *const *values, gsize n, GError **error)
{
  muster_require (error, FALSE, self);
  muster_require_array (error, FALSE, values, n);

  if (n != self->n) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Wrong number of output values. (%" G_GSIZE_FORMAT " for %" G_GSIZE_FORMAT ")", n,
                 self->n);
    return FALSE;
  }
  GPtrArray *taken = g_ptr_array_new_with_free_func (tensor_unref);
  for (gsize i = 0; i < n; i++)
    g_ptr_array_add (taken, muster_tensor_ref (values[i]));
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_clear_pointer (&self->values, g_ptr_array_unref);
  self->values = taken;

  return TRUE;
}

gboolean
muster_job_output_fetch (MusterJobOutput *self, gint64 deadline_us, GCancellable *cancellable,
                         GError **error)
{
  muster_require (error, FALSE, self);

  g_mutex_lock (&self->lock);
  g_autoptr (MusterSession) session = self->session ? g_object_ref (self->session) : NULL;
  const gboolean is_set = !self->tensors && self->values;
  g_mutex_unlock (&self->lock);

  if (is_set)
    return TRUE;
  if (!session) {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                         "Cannot fetch value for this output.");
    return FALSE;
  }
  if (!muster_check_time ("Fetching an output", deadline_us, cancellable, error))
    return FALSE;
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, self->n);
  MusterStep step = {.fetches = (const char *const *)self->tensors,
                     .n_fetches = self->n,
                     .deadline_us = deadline_us};
  if (!muster_session_run (session, &step, fetched, NULL, cancellable, error))
    return FALSE;
  GPtrArray *values = g_ptr_array_new_with_free_func (tensor_unref);
  for (gsize i = 0; i < self->n; i++)
    g_ptr_array_add (values, fetched[i]);
  muster_job_output_take (self, session, values);

  return TRUE;
}

static void
muster_job_output_finalize (GObject *object)
{
  MusterJobOutput *self = MUSTER_JOB_OUTPUT (object);

  g_clear_pointer (&self->values, g_ptr_array_unref);
  g_clear_object (&self->session);
  g_strfreev (self->tensors);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_job_output_parent_class)->finalize (object);
}

static void
muster_job_output_init (MusterJobOutput *self)
{
  g_mutex_init (&self->lock);
}

static void
muster_job_output_class_init (MusterJobOutputClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_job_output_finalize;
}
