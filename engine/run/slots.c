// SPDX-License-Identifier: Apache-2.0
#include "engine/run/slots.h"

/* Handles: as text, and as elements of tensors, for QueueBase.from_list () and its like. A handle
 * that is an element is its number in the run, so that the kernels that move elements need to know
 * nothing of it; the run holds what is behind it to its end. They count from 1: a kernel fills with
 * zeros where it has no element. */

MusterTensor *
muster_slot_handle_text (const MusterSlot *slot)
{
  const char *const text[] = {muster_resource_container (slot->value),
                              muster_resource_name (slot->value), NULL};
  return muster_tensor_new_strv (text);
}

static void
clear_handle (gpointer slot)
{
  muster_slot_clear (slot);
}

MusterTensor *
muster_run_number_handle (MusterRun *self, const MusterSlot *slot)
{
  const MusterSlot held = {.kind = slot->kind,
                           .value = slot->kind == MUSTER_SLOT_HANDLE
                                        ? (gpointer)muster_resource_ref (slot->value)
                                        : (gpointer)muster_variable_ref (slot->value)};
  if (self->handles == NULL) {
    self->handles = g_array_new (FALSE, FALSE, sizeof held);
    g_array_set_clear_func (self->handles, clear_handle);
  }
  g_array_append_val (self->handles, held);
  return muster_tensor_new_int64 (self->handles->len);
}

const MusterSlot *
muster_kernel_input_handle (const MusterKernel *k, int i)
{
  const MusterSlot *slot = muster_kernel_input_slot (k, i);
  if (slot->kind != MUSTER_SLOT_HANDLES)
    return slot;
  if (muster_tensor_n_elements (slot->value) == 0)
    return NULL;
  const guint64 number = *(const guint64 *)muster_tensor_data (slot->value);
  if (number == 0)
    return NULL;
  g_assert (number <= k->run->handles->len);
  return &g_array_index (k->run->handles, MusterSlot, number - 1);
}
