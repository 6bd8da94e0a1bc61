// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "graph/step_copy_private.h"
#include "session/session_private.h"

/* Options and reports as other languages make them. */

enum {
  LOCAL_INIT_OPS,
  CLUSTER,
  WILL_RUN,
  WILL_FEED,
  LOCAL_INIT_RUN_OPTIONS,
  CONFIG,
  CLOCK,
  META_GRAPH,
  WAITING,
  PREPARING
};

static const MusterField fields[] = {
    [LOCAL_INIT_OPS] =
        MUSTER_TYPED_FIELD (MusterSessionManagerOptions, local_init_ops, g_strv_get_type),
    [CLUSTER] = MUSTER_TYPED_FIELD (MusterSessionManagerOptions, cluster, g_strv_get_type),
    [WILL_RUN] = MUSTER_TYPED_FIELD (MusterSessionManagerOptions, will_run, g_strv_get_type),
    [WILL_FEED] = MUSTER_TYPED_FIELD (MusterSessionManagerOptions, will_feed, g_strv_get_type),
    [LOCAL_INIT_RUN_OPTIONS] =
        MUSTER_TYPED_FIELD (MusterSessionManagerOptions, local_init_run_options, g_bytes_get_type),
    [CONFIG] = MUSTER_TYPED_FIELD (MusterSessionManagerOptions, config, g_bytes_get_type),
    [CLOCK] = MUSTER_TYPED_FIELD (MusterSessionManagerOptions, clock, muster_clock_get_type),
    [META_GRAPH] =
        MUSTER_TYPED_FIELD (MusterSessionManagerOptions, meta_graph, muster_meta_graph_get_type),
    [WAITING] =
        MUSTER_TYPED_FIELD (MusterSessionManagerOptions, waiting, muster_retry_policy_get_type),
    [PREPARING] =
        MUSTER_TYPED_FIELD (MusterSessionManagerOptions, preparing, muster_retry_policy_get_type),
    MUSTER_STRING_FIELD (MusterSessionManagerOptions, local_init_op),
    MUSTER_STRING_FIELD (MusterSessionManagerOptions, ready_op),
    MUSTER_STRING_FIELD (MusterSessionManagerOptions, ready_for_local_init_op),
    MUSTER_STRING_FIELD (MusterSessionManagerOptions, model),
    MUSTER_STRING_FIELD (MusterSessionManagerOptions, task),
    MUSTER_STRING_FIELD (MusterSessionManagerOptions, chief),
};
MUSTER_DEFINE_OPTIONS (MusterSessionManagerOptions, muster_session_manager_options, fields)

MusterSessionManagerOptions *
muster_session_manager_options_new (void)
{
  return g_new0 (MusterSessionManagerOptions, 1);
}

void
muster_session_manager_options_set_local_init_ops (MusterSessionManagerOptions *self,
                                                   const char *const *ops)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &fields[LOCAL_INIT_OPS], ops);
}

void
muster_session_manager_options_set_cluster (MusterSessionManagerOptions *self,
                                            const char *const *tasks)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &fields[CLUSTER], tasks);
}

void
muster_session_manager_options_set_will_run (MusterSessionManagerOptions *self,
                                             const char *const *names, const char *const *feeds)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &fields[WILL_RUN], names);
  muster_fields_set (self, &fields[WILL_FEED], feeds);
}

void
muster_session_manager_options_set_local_init_run_options (MusterSessionManagerOptions *self,
                                                           GBytes *run_options)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &fields[LOCAL_INIT_RUN_OPTIONS], run_options);
}

void
muster_session_manager_options_set_config (MusterSessionManagerOptions *self, GBytes *config)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &fields[CONFIG], config);
}

void
muster_session_manager_options_set_clock (MusterSessionManagerOptions *self, MusterClock *clock)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &fields[CLOCK], clock);
}

void
muster_session_manager_options_set_meta_graph (MusterSessionManagerOptions *self,
                                               MusterMetaGraph *meta_graph)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &fields[META_GRAPH], meta_graph);
}

void
muster_session_manager_options_set_waiting (MusterSessionManagerOptions *self,
                                            const MusterRetryPolicy *policy)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &fields[WAITING], policy);
}

void
muster_session_manager_options_set_preparing (MusterSessionManagerOptions *self,
                                              const MusterRetryPolicy *policy)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &fields[PREPARING], policy);
}

/* --- prepare's --- */

void
muster_prepare_options_feed (MusterPrepareOptions *self, const char *name, MusterTensor *value)
{
  g_return_if_fail (self != NULL && name != NULL && value != NULL);
  self->init_feeds = muster_feeds_append (self->init_feeds, &self->n_init_feeds, name, value);
}

void
muster_prepare_options_set_init_ops (MusterPrepareOptions *self, const char *const *ops)
{
  g_return_if_fail (self != NULL);
  char **copy = g_strdupv ((char **)ops);
  g_strfreev ((char **)self->init_ops);
  self->init_ops = (const char *const *)copy;
}

void
muster_prepare_options_set_saver (MusterPrepareOptions *self, MusterSaver *saver)
{
  g_return_if_fail (self != NULL);
  g_set_object (&self->saver, saver);
}

void
muster_prepare_options_set_taken_by (MusterPrepareOptions *self, MusterSaver *saver)
{
  g_return_if_fail (self != NULL);
  g_set_object (&self->taken_by, saver);
}

void
muster_prepare_options_set_restore (MusterPrepareOptions *self, const MusterRestoreOptions *restore)
{
  g_return_if_fail (self != NULL);
  MusterRestoreOptions *copy = restore != NULL ? muster_restore_options_copy (restore) : NULL;
  muster_restore_options_free ((MusterRestoreOptions *)self->restore);
  self->restore = copy;
}

enum { INIT_FUNC, QUIESCE_FUNC, CONTINUE_FUNC, DEVICE_FUNC };

static void
own_data (MusterPrepareOptions *self, int func, gpointer user_data, GDestroyNotify destroy)
{
  g_clear_pointer (&self->owners[func], g_bytes_unref);
  self->owners[func] = muster_data_owner (user_data, destroy);
}

void
muster_prepare_options_set_init_func (MusterPrepareOptions *self, MusterInitFunc func,
                                      gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->init_func = func;
  self->init_func_data = user_data;
  own_data (self, INIT_FUNC, user_data, destroy);
}

void
muster_prepare_options_set_quiesce_func (MusterPrepareOptions *self, MusterQuiesceFunc func,
                                         gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->quiesce_func = func;
  self->quiesce_func_data = user_data;
  own_data (self, QUIESCE_FUNC, user_data, destroy);
}

void
muster_prepare_options_set_continue_func (MusterPrepareOptions *self, MusterContinueFunc func,
                                          gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->continue_func = func;
  self->continue_func_data = user_data;
  own_data (self, CONTINUE_FUNC, user_data, destroy);
}

void
muster_prepare_options_set_device_func (MusterPrepareOptions *self, MusterDeviceFunc func,
                                        gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->device_func = func;
  self->device_func_data = user_data;
  own_data (self, DEVICE_FUNC, user_data, destroy);
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

MusterSessionReport *
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

void
muster_session_report_free (MusterSessionReport *self)
{
  if (self == NULL)
    return;
  muster_session_report_clear (self);
  g_free (self);
}

G_DEFINE_BOXED_TYPE (MusterSessionReport, muster_session_report, muster_session_report_copy,
                     muster_session_report_free)

const MusterPhase *
muster_session_report_list_phases (const MusterSessionReport *self, gsize *n)
{
  g_return_val_if_fail (self != NULL && n != NULL, NULL);
  *n = self->phases != NULL ? self->phases->len : 0;
  return *n > 0 ? (const MusterPhase *)(gpointer)self->phases->data : NULL;
}

const MusterSpan *
muster_session_report_list_spans (const MusterSessionReport *self, gsize *n)
{
  g_return_val_if_fail (self != NULL && n != NULL, NULL);
  *n = self->timeline != NULL ? self->timeline->len : 0;
  return *n > 0 ? (const MusterSpan *)(gpointer)self->timeline->data : NULL;
}

MUSTER_DEFINE_VALUE (MusterPhase, muster_phase)
MUSTER_DEFINE_VALUE (MusterSpan, muster_span)
