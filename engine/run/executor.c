// SPDX-License-Identifier: Apache-2.0
#include "engine/run/executor.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory_account_private.h"
#include "engine/resources/variable_private.h"
#include "engine/run/core_ops.h"
#include "engine/run/denormals.h"
#include "engine/run/parallel.h"
#include "engine/run/plan.h"
#include "engine/run/slots.h"
#include "engine/run/trace.h"

#include <string.h>

/* Runs with more slots aren't kept for reuse: those of init ops run once. */
#define MAX_SPARE_SLOTS 8192

/* How long a step that has changed a variable may go on after its client is gone, less than a close
 * waits for it (master/session.c) and other tasks do (train/position): whoever prepares the model
 * after that doesn't have the rest of the step written over it. */
#define MAY_END_US (4 * MUSTER_SECOND)

/* --- slots --- */

void
muster_slot_clear (MusterSlot *slot)
{
  if (slot->kind == MUSTER_SLOT_TENSOR || slot->kind == MUSTER_SLOT_HANDLES)
    muster_tensor_unref (slot->value);
  else if (slot->kind == MUSTER_SLOT_HANDLE)
    muster_resource_unref (slot->value);
  else if (slot->kind != MUSTER_SLOT_EMPTY)
    muster_variable_unref (slot->value);
  slot->kind = MUSTER_SLOT_EMPTY;
  slot->value = NULL;
}

/* --- creating and freeing a run --- */

gsize
muster_kernel_size (guint32 max_inputs)
{
  return sizeof (MusterKernel) + 2 * max_inputs * sizeof (MusterTensor *);
}

MusterKernel *
muster_kernel_new (MusterRun *run, guint32 max_inputs)
{
  MusterKernel *k = g_malloc0 (muster_kernel_size (max_inputs));
  k->run = run;
  k->inputs = (MusterTensor **)(k + 1);
  k->held = k->inputs + max_inputs;
  return k;
}

/* With what it needs once a kernel is suspended, beside the kernel. */
static gsize
scratch_size (const MusterPlan *plan)
{
  return sizeof (MusterRun) + (plan->n_slots + 1) * sizeof (MusterSlot) +
         muster_kernel_size (plan->max_inputs) + plan->n_nodes * (plan->has_switch ? 2 : 1);
}

static MusterRun *
scratch_new (const MusterPlan *plan, GError **error)
{
  const gsize n_counted = scratch_size (plan);
  if (!muster_memory_take (MUSTER_MEMORY_GRAPHS, n_counted, error))
    return NULL;
  MusterRun *self = g_new0 (MusterRun, 1);
  self->n_counted = n_counted;
  self->slots = g_new0 (MusterSlot, plan->n_slots + 1);
  self->kernel = muster_kernel_new (self, plan->max_inputs);
  if (plan->has_switch)
    self->dead = g_malloc0 (plan->n_nodes);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  return self;
}

void
muster_run_free_scratch (MusterRun *self)
{
  if (self == NULL)
    return;
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self->kernel);
  g_free (self->dead);
  g_free (self->slots);
  muster_memory_release (MUSTER_MEMORY_GRAPHS, self->n_counted);
  g_free (self);
}

/* The memory of a run that has ended, or new memory. */
static MusterRun *
take_scratch (MusterPlan *plan, const MusterRunContext *context, GError **error)
{
  MusterRun *self = NULL;
  for (int i = 0; i < MUSTER_N_SPARES && self == NULL; i++)
    if (__atomic_load_n (&plan->spares[i], __ATOMIC_RELAXED) != NULL)
      self = __atomic_exchange_n (&plan->spares[i], NULL, __ATOMIC_ACQ_REL);
  if (self == NULL && (self = scratch_new (plan, error)) == NULL)
    return NULL;
  self->plan = muster_plan_ref (plan);
  self->context = *context;
  return self;
}

void
muster_run_free (MusterRun *self)
{
  if (self == NULL)
    return;
  MusterPlan *plan = g_steal_pointer (&self->plan);
  for (guint32 i = 0; i < plan->n_slots; i++)
    if (self->slots[i].kind != MUSTER_SLOT_EMPTY)
      muster_slot_clear (&self->slots[i]);
  g_clear_pointer (&self->handles, g_array_unref);
  if (self->forward_id != 0)
    g_cancellable_disconnect (self->context.cancellable, self->forward_id);
  self->forward_id = 0;
  g_clear_object (&self->own_cancellable);
  g_clear_error (&self->error);
  if (self->done != NULL)
    muster_run_drop_suspended (self);
  if (self->dead != NULL)
    memset (self->dead, FALSE, plan->n_nodes);
  self->next = 0;
  self->values_changed = self->has_changed = self->has_written = FALSE;
  self->end_by_us = 0;
  self->wait = (MusterMemoryWait){0};
  self->stop = MUSTER_STOP_NONE;
  const gboolean is_spare = plan->n_slots <= MAX_SPARE_SLOTS && self->kernel != NULL;
  for (int i = 0; i < MUSTER_N_SPARES && self != NULL && is_spare; i++) {
    MusterRun *empty = NULL;
    if (__atomic_compare_exchange_n (&plan->spares[i], &empty, self, FALSE, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      self = NULL;
  }
  muster_run_free_scratch (self);
  muster_plan_unref (plan);
}

/* The name of feed i, for errors. */
static const char *
feed_name (const MusterPlan *plan, guint32 i)
{
  const char *name = g_bytes_get_data (plan->key, NULL);
  for (; i > 0; i--)
    name += strlen (name) + 1;
  return name;
}

static gboolean
fits (const MusterPlanFeed *feed, MusterTensor *tensor)
{
  if (feed->n_dims < 0)
    return TRUE;
  if (muster_tensor_n_dims (tensor) != feed->n_dims)
    return FALSE;
  const gint64 *dims = muster_tensor_dims (tensor);
  for (int i = 0; i < feed->n_dims; i++)
    if (feed->dims[i] >= 0 && feed->dims[i] != dims[i])
      return FALSE;
  return TRUE;
}

gboolean
muster_run_feed (MusterRun *self, guint32 i, MusterTensor *tensor, GError **error)
{
  const MusterPlanFeed *feed = &self->plan->feeds[i];
  if (feed->dtype != MUSTER_INVALID && muster_tensor_dtype (tensor) != feed->dtype) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Cannot feed value of type %s for Tensor '%s', which has type %s",
                        muster_dtype_name (muster_tensor_dtype (tensor)), feed_name (self->plan, i),
                        muster_dtype_name (feed->dtype));
  }
  if (!fits (feed, tensor)) {
    g_autofree char *got =
        muster_shape_to_string (muster_tensor_n_dims (tensor), muster_tensor_dims (tensor));
    g_autofree char *wanted = muster_shape_to_string (feed->n_dims, feed->dims);
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Cannot feed value of shape %s for Tensor '%s', which has shape %s", got,
                        feed_name (self->plan, i), wanted);
  }
  self->slots[feed->slot] =
      (MusterSlot){.kind = MUSTER_SLOT_TENSOR, .value = muster_tensor_ref (tensor)};
  return TRUE;
}

/* Feeds a step's named tensors or a callable's unnamed ones. */
static gboolean
feed_all (MusterRun *self, const MusterRunFeeds *feeds, GError **error)
{
  for (guint32 i = 0; i < self->plan->n_feeds; i++) {
    MusterTensor *tensor = feeds->named != NULL ? feeds->named[i].tensor : feeds->bare[i];
    if (!muster_run_feed (self, i, tensor, error))
      return FALSE;
  }
  return TRUE;
}

MusterRun *
muster_run_new (MusterPlan *plan, const MusterRunFeeds *feeds, const MusterRunContext *context,
                GError **error)
{
  MusterRun *self = take_scratch (plan, context, error);
  if (self == NULL || feeds == NULL || feed_all (self, feeds, error))
    return self;
  muster_run_free (self);
  return NULL;
}

/* --- stopping a run --- */

static void
set_stop_error (MusterRun *self, MusterStop why)
{
  switch (why) {
  case MUSTER_STOP_DEADLINE:
    muster_fail (&self->error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                 "Deadline Exceeded: the step was stopped at its deadline");
    return;
  case MUSTER_STOP_CANCELLABLE:
    if (!g_cancellable_set_error_if_cancelled (self->context.cancellable, &self->error))
      g_set_error (&self->error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "Operation was cancelled");
    return;
  case MUSTER_STOP_RESET:
    muster_fail (&self->error, MUSTER_ERROR_ABORTED, "Step was cancelled by a reset of the master");
    return;
  default:
    muster_fail (&self->error, MUSTER_ERROR_CANCELLED,
                 "Step was cancelled by an explicit call to `Session::Close()`.");
  }
}

MusterStop
muster_run_stop_reason (MusterRun *self)
{
  gint why = g_atomic_int_get (&self->stop);
  if (why == MUSTER_STOP_NONE && self->context.cancellable != NULL &&
      g_cancellable_is_cancelled (self->context.cancellable))
    why = MUSTER_STOP_CANCELLABLE;
  if (why == MUSTER_STOP_NONE && self->context.deadline_us != MUSTER_WAIT_FOREVER &&
      muster_clock_now_us (muster_system_clock ()) >= self->context.deadline_us)
    why = MUSTER_STOP_DEADLINE;
  return (MusterStop)why;
}

static gboolean
has_written (MusterRun *self)
{
  const MusterPlan *plan = self->plan;
  for (guint32 i = 0; i < plan->n_nodes && !self->has_written; i++) {
    const gboolean is_done =
        self->done != NULL ? self->done[i] == MUSTER_NODE_DONE : i < self->next;
    self->has_written = is_done && muster_op_acts (plan->nodes[i].op);
  }
  return self->has_written;
}

void
muster_run_begin_end (MusterRun *self)
{
  gint64 none = 0;
  const gint64 end_by_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), MAY_END_US);
  __atomic_compare_exchange_n (&self->end_by_us, &none, end_by_us, FALSE, __ATOMIC_ACQ_REL,
                               __ATOMIC_RELAXED);
}

/* A step that has changed something, such as a variable, isn't cut off between two of its updates
 * because its client has died: nothing could undo the half of it. It may end, unless it waits for
 * others. Apart from its caller, which most steps call without. */
static __attribute__ ((noinline)) gboolean
may_end (MusterRun *self, MusterStop why)
{
  if ((why != MUSTER_STOP_CANCELLABLE && why != MUSTER_STOP_CLOSED) || !has_written (self))
    return FALSE;
  muster_run_begin_end (self); /* if only the cancellable says so */
  const gint64 end_by_us = __atomic_load_n (&self->end_by_us, __ATOMIC_ACQUIRE);
  return muster_clock_now_us (muster_system_clock ()) < MIN (end_by_us, self->context.deadline_us);
}

gboolean
muster_run_is_stopped (MusterRun *self)
{
  if (self->error != NULL)
    return TRUE;
  const MusterStop why = muster_run_stop_reason (self);
  if (G_LIKELY (why == MUSTER_STOP_NONE) || may_end (self, why))
    return FALSE;
  set_stop_error (self, why);
  return TRUE;
}

gboolean
muster_run_was_stopped (MusterRun *self)
{
  const MusterStop why = muster_run_stop_reason (self);
  if (self->error == NULL && why != MUSTER_STOP_NONE)
    set_stop_error (self, why);
  return self->error != NULL;
}

/* --- one node --- */

/* Adds the node to an error, as TensorFlow's runtime does, and the op. */
static void
add_node (GError *error, const MusterNode *def)
{
  char *text = g_strdup_printf ("%s\n\t [[{{node %s}}]] (op '%s')", error->message, def->name,
                                def->kind->op);
  g_free (error->message);
  error->message = text;
}

static gboolean
missing_value (const MusterKernel *k, int i, MusterVariable *variable, GError **error)
{
  if (muster_variable_is_resource (variable))
    muster_variable_set_uninitialized (variable, error);
  if (muster_variable_is_resource (variable))
    return FALSE;
  /* TensorFlow names the edge, not the variable. */
  g_autofree char *input = muster_kernel_input_name (k, i);
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "Attempting to use uninitialized value %s", input);
}

static gboolean
check_handle (const MusterKernel *k, MusterVariable *variable, GError **error)
{
  const MusterDType wanted = k->node->value_dtype;
  if (wanted == MUSTER_INVALID || muster_variable_dtype (variable) == wanted)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Trying to use variable %s with wrong dtype. Expected %s got %s",
                      muster_variable_name (variable), muster_dtype_name (wanted),
                      muster_dtype_name (muster_variable_dtype (variable)));
}

/* Reads the value of a reference for a kernel that takes values. */
static gboolean
read_reference (MusterKernel *k, guint32 i, const MusterPlanInput *input, GError **error)
{
  MusterVariable *variable = k->run->slots[input->slot].value;
  const guint flags = (guint)k->node->op->flags;
  if (input->wants_ref && (flags & MUSTER_OP_UNINITIALIZED) != 0)
    return TRUE;
  if (input->wants_ref || (flags & MUSTER_OP_PASSES_REF) != 0)
    return muster_variable_is_initialized (variable) || missing_value (k, (int)i, variable, error);
  MusterTensor *value = muster_variable_read (variable);
  if (value == NULL)
    return missing_value (k, (int)i, variable, error);
  k->inputs[i] = k->held[k->n_held++] = value;
  return TRUE;
}

/* Ops that use resources or forward their input take a handle as it is. For other ops, a handle of
 * TensorFlow's first version (dtype string) is read as a tensor of two strings. */
static gboolean
take_handle (MusterKernel *k, guint32 i, const MusterPlanInput *input, const MusterSlot *slot,
             GError **error)
{
  if (((guint)k->node->op->flags & (MUSTER_OP_RESOURCE | MUSTER_OP_PASSES_REF)) != 0)
    return TRUE;
  if (!input->wants_ref && k->run->plan->slot_dtypes[input->slot] % MUSTER_REF == MUSTER_STRING) {
    k->inputs[i] = k->held[k->n_held++] = muster_slot_handle_text (slot);
    return TRUE;
  }
  return muster_fail (
      error, MUSTER_ERROR_INVALID_ARGUMENT,
      "Trying to access a handle's resource using the wrong type. The handle points to a "
      "resource (name '%s') of type '%s', which op '%s' doesn't take",
      muster_resource_name (slot->value), muster_resource_type (slot->value)->kind,
      k->node->op->name);
}

static gboolean take_other (MusterKernel *k, guint32 i, const MusterPlanInput *input,
                            const MusterSlot *slot, GError **error);

static gboolean
take_elements (MusterKernel *k, guint32 i, const MusterPlanInput *input, const MusterSlot *slot,
               GError **error)
{
  const guint flags = (guint)k->node->op->flags;
  if ((flags & MUSTER_OP_HANDLES) != 0)
    k->inputs[i] = slot->value;
  if ((flags & (MUSTER_OP_HANDLES | MUSTER_OP_PASSES_REF)) != 0)
    return TRUE;
  const MusterSlot *first = muster_kernel_input_handle (k, (int)i);
  if (first != NULL)
    return take_other (k, i, input, first, error);
  g_autofree char *name = muster_kernel_input_name (k, (int)i);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Input '%s' has no handle of a resource: it is empty, or was gathered from "
                      "outside; check its indices",
                      name);
}

/* Takes an input that isn't a tensor. Not inlined, as most ops take only tensors. */
static __attribute__ ((noinline)) gboolean
take_other (MusterKernel *k, guint32 i, const MusterPlanInput *input, const MusterSlot *slot,
            GError **error)
{
  const gboolean is_element = ((guint)k->node->op->flags & MUSTER_OP_HANDLES) != 0 &&
                              k->run->plan->slot_dtypes[input->slot] == MUSTER_RESOURCE;
  k->inputs[i] = NULL;
  if (is_element && (slot->kind == MUSTER_SLOT_RESOURCE || slot->kind == MUSTER_SLOT_HANDLE)) {
    k->inputs[i] = k->held[k->n_held++] = muster_run_number_handle (k->run, slot);
    return TRUE;
  }
  switch (slot->kind) {
  case MUSTER_SLOT_REF:
    return read_reference (k, i, input, error);
  case MUSTER_SLOT_RESOURCE:
    return check_handle (k, slot->value, error);
  case MUSTER_SLOT_HANDLE:
    return take_handle (k, i, input, slot, error);
  case MUSTER_SLOT_HANDLES:
    return take_elements (k, i, input, slot, error);
  default:
    return TRUE;
  }
}

static gboolean
prepare (MusterKernel *k, GError **error)
{
  const MusterPlanNode *node = k->node;
  const MusterPlanInput *inputs = &k->run->plan->inputs[node->first_input];
  for (guint32 i = 0; i < node->n_inputs; i++) {
    const MusterSlot *slot = &k->run->slots[inputs[i].slot];
    if (G_LIKELY (slot->kind == MUSTER_SLOT_TENSOR))
      k->inputs[i] = slot->value;
    else if (!take_other (k, i, &inputs[i], slot, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
check_output (const MusterKernel *k, guint32 i, GError **error)
{
  MusterSlot *slot = muster_kernel_output_slot (k, (int)i);
  const MusterDType declared = k->run->plan->slot_dtypes[k->node->first_output + i];
  MusterDType dtype = MUSTER_RESOURCE;
  if (slot->kind == MUSTER_SLOT_TENSOR)
    dtype = muster_tensor_dtype (slot->value);
  else if (slot->kind == MUSTER_SLOT_REF)
    dtype = muster_variable_dtype (slot->value);
  else if (slot->kind == MUSTER_SLOT_DEAD || slot->kind == MUSTER_SLOT_HANDLE ||
           slot->kind == MUSTER_SLOT_HANDLES)
    return TRUE;
  else if (slot->kind == MUSTER_SLOT_EMPTY)
    dtype = MUSTER_INVALID;
  if (G_LIKELY (dtype == declared % MUSTER_REF))
    return TRUE;
  if (declared == MUSTER_RESOURCE && dtype == MUSTER_INT64 &&
      ((guint)k->node->op->flags & MUSTER_OP_HANDLES) != 0) {
    slot->kind = MUSTER_SLOT_HANDLES;
    return TRUE;
  }
  return muster_fail (
      error, MUSTER_ERROR_INTERNAL,
      "Output %u of type %s does not match declared output type %s for node {{node %s}}", i,
      slot->kind == MUSTER_SLOT_EMPTY ? "nothing" : muster_dtype_name (dtype),
      muster_dtype_name (declared), k->node->def->name);
}

static gboolean
check_outputs (const MusterKernel *k, GError **error)
{
  for (guint32 i = 0; i < k->node->n_outputs; i++)
    if (!check_output (k, i, error))
      return FALSE;
  return TRUE;
}

static void
release_held (MusterKernel *k)
{
  for (; k->n_held > 0; k->n_held--)
    muster_tensor_unref (k->held[k->n_held - 1]);
}

/* Releases inputs that no later node reads. Not called once a kernel was suspended: nodes then run
 * in another order. */
static inline void
release_inputs (MusterKernel *k)
{
  const MusterPlanInput *inputs = &k->run->plan->inputs[k->node->first_input];
  for (guint32 i = 0; i < k->node->n_inputs; i++)
    if (inputs[i].is_last)
      muster_slot_clear (&k->run->slots[inputs[i].slot]);
}

static inline void
set_done (MusterKernel *k)
{
  if (k->run->done == NULL)
    release_inputs (k);
  else
    k->run->done[k->position] = MUSTER_NODE_DONE;
}

gboolean
muster_kernel_finish (MusterKernel *k, gboolean ok, GError *error)
{
  MusterRun *run = k->run;
  k->has_random = FALSE;
  release_held (k);
  if (G_UNLIKELY (k->budget.counted > 0))
    muster_budget_clear (&k->budget);
  if (ok && check_outputs (k, &error)) {
    set_done (k);
    return TRUE;
  }
  if (error == NULL)
    error = g_error_new (MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "The kernel failed without an error");
  /* The kernel was cancelled; the run's own error says why. */
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED) && muster_run_was_stopped (run)) {
    g_error_free (error);
    return FALSE;
  }
  add_node (error, k->node->def);
  if (run->error == NULL)
    run->error = g_steal_pointer (&error);
  g_clear_error (&error);
  return FALSE;
}

/* TRUE if a node is in the branch that a Switch didn't take. A Merge waits for its control inputs,
 * but only its data inputs decide whether it is dead. */
static gboolean
is_dead (const MusterRun *self, const MusterPlanNode *node)
{
  const MusterPlan *plan = self->plan;
  guint32 n_dead = 0;
  for (guint32 i = 0; i < node->n_inputs; i++)
    n_dead += self->slots[plan->inputs[node->first_input + i].slot].kind == MUSTER_SLOT_DEAD;
  if ((node->op->flags & MUSTER_OP_MERGES) != 0)
    return n_dead == node->n_inputs;
  for (guint32 i = 0; i < node->n_controls; i++)
    n_dead += self->dead[plan->controls[node->first_control + i]];
  return n_dead > 0;
}

/* A dead node doesn't run. It counts as done, and its outputs are dead, which makes the nodes that
 * need them dead. Not inlined, as most steps have no Switch. */
static __attribute__ ((noinline)) gboolean
skip_if_dead (MusterKernel *k)
{
  if (!is_dead (k->run, k->node))
    return FALSE;
  k->run->dead[k->position] = TRUE;
  for (guint32 i = 0; i < k->node->n_outputs; i++)
    muster_kernel_output_slot (k, (int)i)->kind = MUSTER_SLOT_DEAD;
  set_done (k);
  return TRUE;
}

static __attribute__ ((noinline)) gboolean
compute_again (MusterKernel *k, GError **error)
{
  gboolean ok = FALSE;
  while (!ok && muster_run_await_memory (k, error))
    ok = k->node->op->compute (k, error);
  return ok;
}

/* Runs a node: TRUE if it is done or waits. */
static inline gboolean
run_node (MusterRun *self, guint32 position)
{
  MusterKernel *k = self->kernel;
  GError *error = NULL;
  k->node = &self->plan->nodes[position];
  k->position = position;
  k->budget = (MusterBudget){.limit = self->context.max_op_bytes};
  if (G_UNLIKELY (self->dead != NULL) && skip_if_dead (k))
    return TRUE;
  if (!prepare (k, &error))
    return muster_kernel_finish (k, FALSE, error);
  gboolean ok = k->node->op->compute (k, &error);
  if (G_UNLIKELY (!ok))
    ok = compute_again (k, &error);
  /* Only compute () sets it, on this thread. */
  if (G_UNLIKELY (k->is_suspended)) {
    muster_run_suspend (self, k);
    if (ok)
      return TRUE;
    g_clear_error (&error);
    g_error ("op %s was suspended and failed at once", k->node->op->name);
  }
  return muster_kernel_finish (k, ok, error);
}

static __attribute__ ((noinline)) gboolean
run_traced (MusterRun *self, guint32 position)
{
  MusterKernel *k = self->kernel;
  k->started_us = muster_clock_now_us (muster_system_clock ());
  const gboolean ok = run_node (self, position);
  if (self->kernel == k) /* else it was suspended and is added when it ends */
    muster_trace_add (self->context.trace, self, position, k->started_us);
  return ok;
}

/* A node that computes nothing counts as done, and passes on that it is dead. */
static __attribute__ ((noinline)) gboolean
skip (MusterRun *self, guint32 position)
{
  MusterKernel *k = self->kernel;
  k->node = &self->plan->nodes[position];
  k->position = position;
  if (self->dead == NULL || !skip_if_dead (k))
    set_done (k);
  return TRUE;
}

gboolean
muster_run_node (MusterRun *self, guint32 position)
{
  if (G_UNLIKELY (self->plan->nodes[position].is_skipped))
    return skip (self, position);
  if (G_UNLIKELY (self->context.trace != NULL))
    return run_traced (self, position);
  return run_node (self, position);
}

/* Runs nodes in order until a kernel is suspended (FALSE), the end of the plan or an error
 * (TRUE). */
static gboolean
run_in_order (MusterRun *self)
{
  const guint64 version = muster_variable_version ();
  const guint64 mode = muster_flush_denormals ();
  muster_parallel_enter ();
  while (self->next < self->plan->n_nodes && self->done == NULL)
    if (muster_run_is_stopped (self) || !muster_run_node (self, self->next++))
      break;
  muster_parallel_leave ();
  muster_restore_denormals (mode);
  self->values_changed = muster_variable_version () != version;
  return self->done == NULL;
}

gboolean
muster_run_fetch (MusterRun *self, guint32 i, MusterTensor **fetched, GError **error)
{
  const MusterPlanFetch *wanted = &self->plan->fetches[i];
  const MusterSlot *slot = &self->slots[wanted->slot];
  if (G_UNLIKELY (slot->kind == MUSTER_SLOT_DEAD)) {
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Retval[%u] does not have value: '%s' (op '%s') is in the branch of a conditional "
        "that wasn't taken",
        i, wanted->def->name, wanted->def->kind->op);
  }
  if (slot->kind == MUSTER_SLOT_TENSOR)
    *fetched = muster_tensor_keep (slot->value);
  else if (slot->kind == MUSTER_SLOT_HANDLE)
    *fetched = muster_slot_handle_text (slot);
  else
    *fetched = muster_variable_read (slot->value);
  if (*fetched != NULL)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "Attempting to use uninitialized value %s\n\t [[{{node %s}}]] (op '%s')",
                      wanted->def->name, wanted->def->name, wanted->def->kind->op);
}

static gboolean
fetch_all (MusterRun *self, MusterTensor **fetched, GError **error)
{
  MusterTensor *few[16];
  g_autofree MusterTensor **many = self->plan->n_fetches > G_N_ELEMENTS (few)
                                       ? g_new (MusterTensor *, self->plan->n_fetches)
                                       : NULL;
  MusterTensor **values = many != NULL ? many : few;
  for (guint32 i = 0; i < self->plan->n_fetches; i++) {
    if (muster_run_fetch (self, i, &values[i], error))
      continue;
    while (i > 0)
      muster_tensor_unref (values[--i]);
    return FALSE;
  }
  memcpy (fetched, values, self->plan->n_fetches * sizeof *values);
  return TRUE;
}

gboolean
muster_run_execute (MusterRun *self, MusterTensor **fetched, gboolean *values_changed,
                    GError **error)
{
  if (G_UNLIKELY (!run_in_order (self)))
    muster_run_finish_suspended (self);
  *values_changed = self->values_changed;
  if (self->error != NULL) {
    muster_run_note_refusal (self);
    g_propagate_error (error, g_steal_pointer (&self->error));
    return FALSE;
  }
  return self->plan->n_fetches == 0 || fetch_all (self, fetched, error);
}
