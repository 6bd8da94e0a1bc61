// SPDX-License-Identifier: Apache-2.0
/* Runs with a suspended kernel, and runs in parts. Their nodes run as they become ready, always on
 * the thread of the step's caller: the thread that resumes a kernel may hold locks, and mustn't be
 * delayed by the rest of the step. */
#include "base/error.h"
#include "base/memory_account_private.h"
#include "base/wait_private.h"
#include "engine/resources/variable_private.h"
#include "engine/run/denormals.h"
#include "engine/run/executor.h"
#include "engine/run/plan.h"
#include "engine/run/slots.h"
#include "engine/run/trace.h"

#include <string.h>

/* Of the nodes that still run. Over the limit of memory, none does: many nodes may wait, each with
 * room for the most inputs of any. */
static MusterKernel *
next_kernel (MusterRun *self)
{
  const guint32 max_inputs = self->plan->max_inputs;
  GError *refused = NULL;
  if (muster_memory_take (MUSTER_MEMORY_GRAPHS, muster_kernel_size (max_inputs), &refused)) {
    self->n_suspended += muster_kernel_size (max_inputs);
    return muster_kernel_new (self, max_inputs);
  }
  if (self->error == NULL)
    self->error = g_steal_pointer (&refused);
  g_clear_error (&refused);
  return NULL;
}

void
muster_run_suspend (MusterRun *self, MusterKernel *k)
{
  if (self->done == NULL) {
    self->done = g_malloc0 (self->plan->n_nodes);
    memset (self->done, MUSTER_NODE_DONE, k->position);
  }
  self->done[k->position] = MUSTER_NODE_WAITS;
  g_mutex_lock (&self->lock);
  if (self->suspended == NULL)
    self->suspended = g_ptr_array_new ();
  g_ptr_array_add (self->suspended, k);
  g_mutex_unlock (&self->lock);
  self->n_waiting++;
  self->kernel = next_kernel (self);
}

void
muster_run_drop_suspended (MusterRun *self)
{
  for (guint i = 0; self->suspended != NULL && i < self->suspended->len; i++)
    g_free (g_ptr_array_index (self->suspended, i));
  muster_memory_release (MUSTER_MEMORY_GRAPHS, self->n_suspended);
  self->n_suspended = 0;
  g_clear_pointer (&self->suspended, g_ptr_array_unref);
  g_clear_pointer (&self->done, g_free);
  self->n_waiting = 0;
}

static gboolean
is_ready (const MusterRun *self, const MusterPlanNode *node)
{
  const MusterPlan *plan = self->plan;
  for (guint32 i = 0; i < node->n_inputs; i++) {
    const guint32 slot = plan->inputs[node->first_input + i].slot;
    const guint32 source = plan->slot_nodes[slot];
    if (source != MUSTER_NO_NODE ? self->done[source] != MUSTER_NODE_DONE
                                 : self->slots[slot].kind == MUSTER_SLOT_EMPTY)
      return FALSE; /* in a run in parts, its feed hasn't come yet */
  }
  for (guint32 i = 0; i < node->n_controls; i++)
    if (self->done[plan->controls[node->first_control + i]] != MUSTER_NODE_DONE)
      return FALSE;
  return TRUE;
}

/* Makes one pass over the remaining nodes in order, and runs those that don't depend on a suspended
 * kernel. */
static void
run_ready (MusterRun *self)
{
  for (guint32 i = self->next; i < self->plan->n_nodes; i++) {
    if (self->done[i] != MUSTER_NODE_LEFT || !is_ready (self, &self->plan->nodes[i]))
      continue;
    if (muster_run_is_stopped (self) || !muster_run_node (self, i))
      return;
  }
}

/* A resumed kernel that hasn't been completed, or NULL. */
static MusterKernel *
next_resumed (MusterRun *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  for (guint i = 0; i < self->suspended->len; i++) {
    MusterKernel *k = g_ptr_array_index (self->suspended, i);
    if (!k->is_suspended || !k->is_resumed)
      continue;
    k->is_suspended = FALSE;
    return k;
  }
  return NULL;
}

/* A suspended kernel that wasn't cancelled yet, or NULL. */
static MusterKernel *
next_to_cancel (MusterRun *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  for (guint i = 0; i < self->suspended->len; i++) {
    MusterKernel *k = g_ptr_array_index (self->suspended, i);
    if (!k->is_suspended || k->is_resumed || k->cancel_called)
      continue;
    k->cancel_called = TRUE;
    return k;
  }
  return NULL;
}

/* Waits until a kernel is resumed, the run is stopped or its deadline has passed. */
static void
wait_for_change (MusterRun *self, gboolean stopped)
{
  const gint64 deadline_us = stopped ? MUSTER_WAIT_FOREVER : self->context.deadline_us;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  while (!self->has_changed && muster_wait_change (&self->changed, &self->lock, deadline_us)) {
  }
  self->has_changed = FALSE;
}

static void
end_resumed (MusterRun *self, MusterKernel *k)
{
  GError *error = g_steal_pointer (&k->resume_error);
  if (error != NULL) /* the cause of the stop is more informative than a cancelled kernel's error */
    (void)muster_run_was_stopped (self);
  gboolean ok = error == NULL && self->error == NULL;
  self->n_waiting--;
  if (k->finish != NULL)
    ok = k->finish (k, k->cancel_data, ok, ok ? &error : NULL) && ok;
  (void)muster_kernel_finish (k, ok, error);
  if (self->context.trace != NULL)
    muster_trace_add (self->context.trace, self, k->position, k->started_us);
}

/* Runs the nodes that are ready. Then ends one resumed kernel, or cancels one that must stop, or
 * waits. A stop fails the run only if a kernel is cancelled or a node hasn't run yet: a kernel that
 * was resumed before it could be cancelled has succeeded, and the other side relies on that. FALSE
 * once nothing is left. */
static gboolean
advance (MusterRun *self)
{
  if (self->error == NULL)
    run_ready (self);
  MusterKernel *k = next_resumed (self);
  if (k != NULL) {
    end_resumed (self, k);
    return TRUE;
  }
  if (self->n_waiting == 0)
    return FALSE;
  const gboolean stopped = self->error != NULL || muster_run_stop_reason (self) != MUSTER_STOP_NONE;
  k = stopped ? next_to_cancel (self) : NULL;
  if (k == NULL)
    wait_for_change (self, stopped);
  else if (k->cancel != NULL)
    k->cancel (k, k->cancel_data);
  return TRUE;
}

void
muster_run_stop (MusterRun *self, MusterStop why)
{
  gint none = MUSTER_STOP_NONE;
  g_autoptr (GCancellable) own = NULL;
  g_mutex_lock (&self->lock);
  muster_run_begin_end (self);
  __atomic_compare_exchange_n (&self->stop, &none, (gint)why, FALSE, __ATOMIC_ACQ_REL,
                               __ATOMIC_RELAXED);
  if (self->own_cancellable != NULL)
    own = g_object_ref (self->own_cancellable);
  muster_run_notify (self);
  g_mutex_unlock (&self->lock);
  if (own != NULL)
    g_cancellable_cancel (own);
}

static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer self)
{
  muster_run_stop (self, MUSTER_STOP_CANCELLABLE);
}

void
muster_run_finish_suspended (MusterRun *self)
{
  const guint64 version = muster_variable_version ();
  GCancellable *cancellable = self->context.cancellable;
  const gulong id = cancellable != NULL
                        ? g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), self, NULL)
                        : 0;
  const guint64 mode = muster_flush_denormals ();
  while (advance (self))
    ;
  muster_restore_denormals (mode);
  if (id != 0)
    g_cancellable_disconnect (cancellable, id);
  self->values_changed = self->values_changed || muster_variable_version () != version;
}

void
muster_run_notify (MusterRun *self)
{
  self->has_changed = TRUE;
  g_cond_signal (&self->changed);
}

/* --- a run in parts --- */

/* A run in parts records from the start which nodes are done, like a run with a suspended kernel.
 */
MusterRun *
muster_run_new_in_parts (MusterPlan *plan, const MusterRunContext *context, GError **error)
{
  MusterRun *self = muster_run_new (plan, NULL, context, error);
  if (self == NULL)
    return NULL;
  self->done = g_malloc0 (plan->n_nodes + 1);
  self->suspended = g_ptr_array_new ();
  return self;
}

/* The part's cancellable is only valid during the part. */
static void
clear_cancellable (MusterRun *self)
{
  if (self->forward_id != 0)
    g_cancellable_disconnect (self->context.cancellable, self->forward_id);
  self->forward_id = 0;
  self->context.cancellable = NULL;
  g_mutex_lock (&self->lock);
  g_autoptr (GCancellable) own = g_steal_pointer (&self->own_cancellable);
  g_mutex_unlock (&self->lock);
}

gboolean
muster_run_continue (MusterRun *self, gint64 deadline_us, GCancellable *cancellable,
                     MusterTrace *trace, gboolean *values_changed, GError **error)
{
  g_mutex_lock (&self->lock);
  self->context.deadline_us = deadline_us;
  self->context.cancellable = cancellable;
  self->context.trace = trace;
  g_mutex_unlock (&self->lock);
  self->values_changed = FALSE;
  muster_run_finish_suspended (self);
  clear_cancellable (self);
  *values_changed = self->values_changed;
  if (self->error == NULL)
    return TRUE;
  g_propagate_error (error, g_error_copy (self->error));
  return FALSE;
}

gboolean
muster_run_has_failed (MusterRun *self)
{
  return self->error != NULL;
}

void
muster_run_fail (MusterRun *self, const GError *error)
{
  if (self->error == NULL)
    self->error = g_error_copy (error);
}
