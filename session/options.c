// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "graph/step_copy_private.h"
#include "session/session_private.h"

/* Options and reports as other languages make them. */

MUSTER_DEFINE_OPTIONS (MusterSessionManagerOptions, muster_session_manager_options)

/* --- prepare's --- */

MUSTER_DEFINE_FIELDS (MusterPrepareOptions, muster_prepare_options)

MusterPrepareOptions *
muster_prepare_options_new (const char *init_op, MusterSaver *saver, const char *checkpoint_dir)
{
  const MusterPrepareOptions options = {
      .init_op = init_op, .saver = saver, .checkpoint_dir = checkpoint_dir};
  return muster_prepare_options_copy (&options);
}

static MusterPrepareOptions *
muster_prepare_options_copy (const MusterPrepareOptions *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterPrepareOptions *copy = muster_fields_copy (&muster_prepare_options_fields, self);
  copy->init_feeds = muster_feeds_copy (self->init_feeds, self->n_init_feeds);
  return copy;
}

static void
muster_prepare_options_free (MusterPrepareOptions *self)
{
  if (self == NULL)
    return;
  muster_feeds_free (self->init_feeds, self->n_init_feeds);
  muster_fields_free (&muster_prepare_options_fields, self);
}

void
muster_prepare_options_feed (MusterPrepareOptions *self, const char *name, MusterTensor *value)
{
  g_return_if_fail (self != NULL && name != NULL && value != NULL);
  self->init_feeds = muster_feeds_append (self->init_feeds, &self->n_init_feeds, name, value);
}

void
muster_prepare_options_set_init_func (MusterPrepareOptions *self, MusterSessionFunc func,
                                      gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->init_func = func;
  self->init_func_data = user_data;
  muster_own_more (&self->owner, user_data, destroy);
}

void
muster_prepare_options_set_quiesce_func (MusterPrepareOptions *self, MusterSessionFunc func,
                                         gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->quiesce_func = func;
  self->quiesce_func_data = user_data;
  muster_own_more (&self->owner, user_data, destroy);
}

void
muster_prepare_options_set_continue_func (MusterPrepareOptions *self, MusterContinueFunc func,
                                          gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->continue_func = func;
  self->continue_func_data = user_data;
  muster_own_more (&self->owner, user_data, destroy);
}

void
muster_prepare_options_set_device_func (MusterPrepareOptions *self, MusterDeviceFunc func,
                                        gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->device_func = func;
  self->device_func_data = user_data;
  muster_own_more (&self->owner, user_data, destroy);
}

/* --- reports --- */

MusterSessionReport *
muster_session_report_new (void)
{
  return g_memdup2 (&(MusterSessionReport){.final_step = -1}, sizeof (MusterSessionReport));
}

static gpointer
copy_reason (gconstpointer reason, gpointer data G_GNUC_UNUSED)
{
  return muster_reason_copy (reason);
}

static MusterSessionReport *
muster_session_report_copy (const MusterSessionReport *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterSessionReport *copy = g_memdup2 (self, sizeof *self);
  if (self->reasons != NULL) {
    copy->reasons = g_ptr_array_copy (self->reasons, copy_reason, NULL);
    g_ptr_array_set_free_func (copy->reasons, (GDestroyNotify)muster_reason_free);
  }
  copy->timeline = self->timeline != NULL ? g_array_copy (self->timeline) : NULL;
  copy->phases = self->phases != NULL ? g_array_copy (self->phases) : NULL;
  copy->restored_from = g_strdup (self->restored_from);
  copy->passed_over = g_strdup (self->passed_over);
  copy->restore_warning = g_strdup (self->restore_warning);
  copy->reason = g_strdup (self->reason);
  copy->goodput = muster_goodput_copy (self->goodput);
  return copy;
}

static void
muster_session_report_free (MusterSessionReport *self)
{
  if (self == NULL)
    return;
  muster_session_report_clear (self);
  g_free (self);
}

G_DEFINE_BOXED_TYPE (MusterSessionReport, muster_session_report, muster_session_report_copy,
                     muster_session_report_free)

const MusterSpan *
muster_session_report_list_phases (const MusterSessionReport *self, gsize *n)
{
  g_return_val_if_fail (self != NULL && n != NULL, NULL);
  *n = self->phases != NULL ? self->phases->len : 0;
  return *n > 0 ? (const MusterSpan *)(gpointer)self->phases->data : NULL;
}

const MusterSpan *
muster_session_report_list_spans (const MusterSessionReport *self, gsize *n)
{
  g_return_val_if_fail (self != NULL && n != NULL, NULL);
  *n = self->timeline != NULL ? self->timeline->len : 0;
  return *n > 0 ? (const MusterSpan *)(gpointer)self->timeline->data : NULL;
}

MUSTER_DEFINE_VALUE (MusterSpan, muster_span)
