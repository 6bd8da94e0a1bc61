// SPDX-License-Identifier: Apache-2.0
#include "engine/run/kernel.h"

#include "base/error.h"
#include "engine/run/randoms.h"
#include "engine/run/slots.h"
#include "graph/graph_nodes_private.h"
#include "graph/tensor_private.h"

#include <string.h>

const MusterNode *
muster_kernel_node (const MusterKernel *k)
{
  return k->node->def;
}

int
muster_kernel_n_inputs (const MusterKernel *k)
{
  return (int)k->node->n_inputs;
}

MusterTensor *
muster_kernel_input (const MusterKernel *k, int i)
{
  g_assert (i >= 0 && (guint32)i < k->node->n_inputs);
  if (G_LIKELY (k->inputs[i] != NULL))
    return k->inputs[i];
  const MusterSlot *slot = muster_kernel_input_slot (k, i);
  if (slot->kind != MUSTER_SLOT_REF)
    return NULL;
  /* The kernel takes this input as a reference and now reads its value. */
  MusterTensor *value = muster_variable_read (slot->value);
  if (value != NULL)
    k->inputs[i] = k->held[((MusterKernel *)k)->n_held++] = value;
  return value;
}

MusterVariable *
muster_kernel_variable (const MusterKernel *k, int i)
{
  g_assert (i >= 0 && (guint32)i < k->node->n_inputs);
  const MusterSlot *slot = muster_kernel_input_handle (k, i);
  g_assert (slot->kind == MUSTER_SLOT_REF || slot->kind == MUSTER_SLOT_RESOURCE);
  return slot->value;
}

gboolean
muster_kernel_fail_uninitialized (const MusterKernel *k, int i, GError **error)
{
  muster_variable_set_uninitialized (muster_kernel_variable (k, i), error);
  return FALSE;
}

double
muster_kernel_input_double (const MusterKernel *k, int i)
{
  const MusterTensor *tensor = muster_kernel_input (k, i);
  if (tensor == NULL || muster_tensor_n_elements (tensor) == 0)
    return 0;
  const void *data = muster_tensor_data (tensor);
  switch (muster_tensor_dtype (tensor)) {
  case MUSTER_FLOAT:
    return *(const float *)data;
  case MUSTER_DOUBLE:
    return *(const double *)data;
  case MUSTER_HALF:
    return muster_half_to_float (*(const guint16 *)data);
  case MUSTER_BFLOAT16:
    return muster_bfloat16_to_float (*(const guint16 *)data);
  default:
    return (double)muster_kernel_input_int (k, i);
  }
}

gint64
muster_kernel_input_int (const MusterKernel *k, int i)
{
  const MusterTensor *tensor = muster_kernel_input (k, i);
  if (tensor == NULL || muster_tensor_n_elements (tensor) == 0)
    return 0;
  const void *data = muster_tensor_data (tensor);
  switch (muster_tensor_dtype (tensor)) {
  case MUSTER_INT8:
    return *(const gint8 *)data;
  case MUSTER_UINT8:
  case MUSTER_BOOL:
    return *(const guint8 *)data;
  case MUSTER_INT16:
    return *(const gint16 *)data;
  case MUSTER_UINT16:
    return *(const guint16 *)data;
  case MUSTER_INT32:
    return *(const gint32 *)data;
  case MUSTER_UINT32:
    return *(const guint32 *)data;
  case MUSTER_INT64:
  case MUSTER_UINT64:
    return *(const gint64 *)data;
  case MUSTER_FLOAT:
  case MUSTER_DOUBLE:
  case MUSTER_HALF:
  case MUSTER_BFLOAT16: {
    const double value = muster_kernel_input_double (k, i);
    if (!(value > -9.2e18))
      return G_MININT64;
    return value < 9.2e18 ? (gint64)value : G_MAXINT64;
  }
  default:
    return 0;
  }
}

char *
muster_kernel_input_name (const MusterKernel *k, int i)
{
  return muster_graph_input_text (k->run->plan->graph, k->node->def, (gsize)i);
}

#define INTS(dtype, type)                                                                          \
  case dtype:                                                                                      \
    for (gint64 j = 0; j < n; j++)                                                                 \
      values[j] = ((const type *)data)[j];                                                         \
    return (int)n;

int
muster_kernel_input_ints (const MusterKernel *k, int i, gint64 *values, int max, GError **error)
{
  const MusterTensor *tensor = muster_kernel_input (k, i);
  const gint64 n = muster_tensor_n_elements (tensor);
  if (n > max || muster_tensor_n_dims (tensor) > 1) {
    g_autofree char *input = muster_kernel_input_name (k, i);
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Input %d ('%s') has rank %d and %" G_GINT64_FORMAT
                 " elements; it must be a scalar or a vector, with %d at most",
                 i, input, muster_tensor_n_dims (tensor), n, max);
    return -1;
  }
  const void *data = muster_tensor_data (tensor);
  switch (muster_tensor_dtype (tensor)) {
    INTS (MUSTER_INT8, gint8)
    INTS (MUSTER_INT16, gint16)
    INTS (MUSTER_INT32, gint32)
    INTS (MUSTER_INT64, gint64)
  default: {
    g_autofree char *input = muster_kernel_input_name (k, i);
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Input %d ('%s') has dtype %s (use int8, int16, int32 or int64)", i, input,
                 muster_dtype_name (muster_tensor_dtype (tensor)));
    return -1;
  }
  }
}

int
muster_kernel_n_outputs (const MusterKernel *k)
{
  return (int)k->node->n_outputs;
}

MusterDType
muster_kernel_output_dtype (const MusterKernel *k, int i)
{
  g_assert (i >= 0 && (guint32)i < k->node->n_outputs);
  return k->run->plan->slot_dtypes[k->node->first_output + (guint32)i] % MUSTER_REF;
}

/* With TensorFlow's error message. A shape that can't be is no question of memory. */
static __attribute__ ((noinline)) void
fail_output (MusterDType dtype, int n_dims, const gint64 *dims, const GError *refused,
             GError **error)
{
  g_autofree char *shape = muster_shape_to_string (MIN (n_dims, 16), dims);
  const gboolean is_shape =
      n_dims <= MUSTER_MAX_DIMS && muster_shape_n_elements (n_dims, dims) >= 0;
  muster_fail (error, is_shape ? MUSTER_ERROR_RESOURCE_EXHAUSTED : MUSTER_ERROR_INVALID_ARGUMENT,
               "OOM when allocating tensor with shape%s and type %s: %s", shape,
               muster_dtype_name (dtype), refused->message);
}

MusterTensor *
muster_kernel_output (MusterKernel *k, int i, int n_dims, const gint64 *dims, GError **error)
{
  const MusterDType dtype = muster_kernel_output_dtype (k, i);
  g_autoptr (GError) refused = NULL;
  MusterTensor *tensor = muster_tensor_try_new_within (&k->budget, dtype, n_dims, dims, &refused);
  if (G_LIKELY (tensor != NULL))
    muster_kernel_set_output (k, i, tensor);
  else
    fail_output (dtype, n_dims, dims, refused, error);
  return tensor;
}

gboolean
muster_kernel_output_strings (MusterKernel *k, int i, int n_dims, const gint64 *dims,
                              const MusterString *strings, GError **error)
{
  g_autoptr (GError) refused = NULL;
  MusterTensor *tensor =
      muster_tensor_try_new_strings (&k->budget, n_dims, dims, strings, &refused);
  if (tensor != NULL)
    muster_kernel_set_output (k, i, tensor);
  else
    fail_output (MUSTER_STRING, n_dims, dims, refused, error);
  return tensor != NULL;
}

MusterBudget *
muster_kernel_budget (MusterKernel *k)
{
  return &k->budget;
}

MusterTensor *
muster_kernel_temporary (MusterKernel *k, MusterDType dtype, int n_dims, const gint64 *dims,
                         GError **error)
{
  g_autoptr (GError) refused = NULL;
  MusterTensor *tensor = muster_tensor_try_new_within (&k->budget, dtype, n_dims, dims, &refused);
  if (G_UNLIKELY (tensor == NULL))
    fail_output (dtype, n_dims, dims, refused, error);
  return tensor;
}

gpointer
muster_kernel_alloc (MusterKernel *k, gint64 n, gsize size, GError **error)
{
  return muster_budget_alloc (&k->budget, (gsize)n, size, error);
}

gpointer
muster_kernel_alloc0 (MusterKernel *k, gint64 n, gsize size, GError **error)
{
  return muster_budget_alloc0 (&k->budget, (gsize)n, size, error);
}

MusterTensor *
muster_kernel_output_like (MusterKernel *k, int i, const MusterTensor *like, GError **error)
{
  const MusterPlanInput *input = &k->run->plan->inputs[k->node->first_input];
  if (i == 0 && (k->node->op->flags & MUSTER_OP_FORWARD) != 0 && k->node->n_inputs > 0 &&
      like == k->inputs[0] && input->is_last && k->run->done == NULL) {
    MusterSlot *slot = &k->run->slots[input->slot];
    if (slot->kind == MUSTER_SLOT_TENSOR &&
        muster_tensor_dtype (like) == muster_kernel_output_dtype (k, 0) &&
        muster_tensor_is_exclusive (like)) {
      MusterTensor *taken = slot->value;
      *slot = (MusterSlot){.kind = MUSTER_SLOT_EMPTY};
      muster_kernel_set_output (k, 0, taken);
      return taken;
    }
  }
  return muster_kernel_output (k, i, muster_tensor_n_dims (like), muster_tensor_dims (like), error);
}

void
muster_kernel_set_output (MusterKernel *k, int i, MusterTensor *tensor)
{
  g_assert (i >= 0 && (guint32)i < k->node->n_outputs);
  MusterSlot *slot = muster_kernel_output_slot (k, i);
  muster_slot_clear (slot);
  if (tensor != NULL)
    *slot = (MusterSlot){.kind = MUSTER_SLOT_TENSOR, .value = tensor};
}

void
muster_kernel_forward_ref (MusterKernel *k, int i, int input)
{
  const MusterSlot *from = muster_kernel_input_slot (k, input);
  MusterSlot *to = muster_kernel_output_slot (k, i);
  g_assert (from->kind == MUSTER_SLOT_REF || from->kind == MUSTER_SLOT_RESOURCE ||
            from->kind == MUSTER_SLOT_HANDLE || from->kind == MUSTER_SLOT_HANDLES);
  muster_slot_clear (to);
  to->kind = from->kind;
  if (from->kind == MUSTER_SLOT_HANDLES)
    to->value = muster_tensor_ref (from->value);
  else if (from->kind == MUSTER_SLOT_HANDLE)
    to->value = muster_resource_ref (from->value);
  else
    to->value = muster_variable_ref (from->value);
}

/* With TensorFlow's error message. */
static void
set_wrong_type (const char *name, const char *got, const char *wanted, GError **error)
{
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "Trying to access a handle's resource using the wrong type. The handle points to a "
               "resource (name '%s') of type '%s' but you are trying to access the resource as "
               "type '%s'",
               name, got, wanted);
}

gpointer
muster_kernel_resource (const MusterKernel *k, int i, const MusterResourceType *type,
                        GError **error)
{
  g_assert (i >= 0 && (guint32)i < k->node->n_inputs);
  const MusterSlot *slot = muster_kernel_input_handle (k, i);
  if (slot->kind == MUSTER_SLOT_HANDLE && muster_resource_type (slot->value) == type)
    return muster_resource_data (slot->value);
  if (slot->kind == MUSTER_SLOT_HANDLE)
    set_wrong_type (muster_resource_name (slot->value), muster_resource_type (slot->value)->kind,
                    type->kind, error);
  else
    set_wrong_type (muster_variable_name (slot->value), "tensorflow::Var", type->kind, error);
  return NULL;
}

/* TensorFlow's rules for the attributes container and shared_name. */
static gboolean
check_names (const char *container, const char *name, GError **error)
{
  gboolean valid = g_ascii_isalnum (container[0]) || container[0] == '.';
  for (const char *c = container; *c != '\0'; c++)
    valid = valid && (g_ascii_isalnum (*c) || strchr ("-./", *c) != NULL);
  if (!valid)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "container contains invalid characters: %s",
                 container);
  else if (name != NULL && name[0] == '_')
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "shared_name cannot start with '_':%s",
                 name);
  else
    return TRUE;
  return FALSE;
}

MusterResource *
muster_kernel_named_resource (MusterKernel *k, const MusterResourceType *type,
                              MusterResourceMake make, GError **error)
{
  const MusterPlanNode *node = k->node;
  MusterPlanResource *resource = node->resource;
  const gboolean is_private = resource->name == NULL && !type->named_by_node &&
                              !muster_node_bool (node->def, "use_node_name_sharing", FALSE);
  const MusterResourceRequest wanted = {.type = type,
                                        .container = resource->container,
                                        .name = resource->name != NULL ? resource->name
                                                                       : node->def->name,
                                        .is_private = is_private,
                                        .def = node->def,
                                        .make = make,
                                        .data = k,
                                        .cache = is_private ? NULL : &resource->cache};
  if (!check_names (resource->container, resource->name, error))
    return NULL;
  return muster_resources_get (is_private ? k->run->context.own : k->run->context.resources,
                               &wanted, error);
}

gboolean
muster_kernel_output_resource (MusterKernel *k, int i, const MusterResourceType *type,
                               MusterResourceMake make, GError **error)
{
  MusterResource *found = muster_kernel_named_resource (k, type, make, error);
  if (found == NULL)
    return FALSE;
  MusterSlot *slot = muster_kernel_output_slot (k, i);
  muster_slot_clear (slot);
  *slot = (MusterSlot){.kind = MUSTER_SLOT_HANDLE, .value = found};
  return TRUE;
}

gboolean
muster_kernel_has_resource (const MusterKernel *k, int i)
{
  return muster_kernel_input_handle (k, i)->kind == MUSTER_SLOT_HANDLE;
}

gboolean
muster_kernel_destroy_resource (const MusterKernel *k, int i, gboolean must_exist, GError **error)
{
  const MusterSlot *slot = muster_kernel_input_handle (k, i);
  const MusterRunContext *context = &k->run->context;
  g_assert (slot->kind == MUSTER_SLOT_HANDLE);
  if (muster_resources_remove (context->resources, slot->value) ||
      muster_resources_remove (context->own, slot->value) || !must_exist)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_NOT_FOUND, "Resource %s/%s/<unknown> does not exist.",
                      muster_resource_container (slot->value), muster_resource_name (slot->value));
}

MusterResource *
muster_kernel_own_resource (MusterKernel *k, const MusterResourceType *type,
                            MusterResourceMake make, GError **error)
{
  const MusterResourceRequest wanted = {.type = type,
                                        .container = MUSTER_DEFAULT_CONTAINER,
                                        .name = k->node->def->name,
                                        .is_private = TRUE,
                                        .def = k->node->def,
                                        .make = make,
                                        .data = k};
  return muster_resources_get (k->run->context.own, &wanted, error);
}

gint64
muster_kernel_attr_int (const MusterKernel *k, const char *name, gint64 fallback)
{
  return muster_node_int (k->node->def, name, fallback);
}

gboolean
muster_kernel_attr_bool (const MusterKernel *k, const char *name, gboolean fallback)
{
  return muster_node_bool (k->node->def, name, fallback);
}

float
muster_kernel_attr_float (const MusterKernel *k, const char *name, float fallback)
{
  return muster_node_float (k->node->def, name, fallback);
}

MusterDType
muster_kernel_attr_dtype (const MusterKernel *k, const char *name)
{
  return muster_node_dtype (k->node->def, name, MUSTER_INVALID);
}

const Tensorflow__AttrValue *
muster_kernel_attr (const MusterKernel *k, const char *name)
{
  return muster_node_attr (k->node->def, name);
}

static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer own)
{
  g_cancellable_cancel (own);
}

/* Cancelled by the caller's cancellable and when the run is stopped. Created on first use. */
GCancellable *
muster_kernel_cancellable (const MusterKernel *k)
{
  MusterRun *run = k->run;
  g_mutex_lock (&run->lock);
  const gboolean is_new = run->own_cancellable == NULL;
  if (is_new)
    run->own_cancellable = g_cancellable_new ();
  GCancellable *own = run->own_cancellable;
  g_mutex_unlock (&run->lock);
  if (is_new && run->context.cancellable != NULL)
    run->forward_id = g_cancellable_connect (run->context.cancellable, G_CALLBACK (on_cancelled),
                                             g_object_ref (own), g_object_unref);
  if (muster_run_stop_reason (run) != MUSTER_STOP_NONE) /* also at its deadline */
    g_cancellable_cancel (own);
  return own;
}

static MusterKernelMemo **
memo_of (MusterKernel *k)
{
  return &k->run->plan->nodes[k->position].memo;
}

MusterKernelMemo *
muster_kernel_take_memo (MusterKernel *k)
{
  return __atomic_exchange_n (memo_of (k), NULL, __ATOMIC_ACQ_REL);
}

void
muster_kernel_keep_memo (MusterKernel *k, MusterKernelMemo *memo)
{
  MusterKernelMemo *other = __atomic_exchange_n (memo_of (k), memo, __ATOMIC_ACQ_REL);
  if (other != NULL)
    other->free (other);
}

MusterStorage *
muster_kernel_storage (const MusterKernel *k)
{
  return k->run->context.storage;
}

/* The generator of this kernel, taken on first use. */
static void
take_random (MusterKernel *k)
{
  guint64 n = 0;
  if (k->node->n_outputs > 0 && muster_kernel_output_slot (k, 0)->kind == MUSTER_SLOT_TENSOR)
    n = (guint64)muster_tensor_n_elements (muster_kernel_output_slot (k, 0)->value);
  k->random = muster_randoms_take (k->run->context.randoms, k->node, n);
  k->has_random = TRUE;
}

MusterPhilox
muster_kernel_philox_blocks (MusterKernel *k, guint64 n_blocks)
{
  if (!k->has_random)
    k->random = muster_randoms_take_blocks (k->run->context.randoms, k->node, n_blocks);
  k->has_random = TRUE;
  return k->random;
}

MusterPhilox
muster_kernel_philox (MusterKernel *k)
{
  if (!k->has_random)
    take_random (k);
  return k->random;
}

void
muster_kernel_suspend (MusterKernel *k, MusterKernelCancel cancel, gpointer data)
{
  k->cancel = cancel;
  k->cancel_data = data;
  k->is_suspended = TRUE;
}

void
muster_kernel_suspend_to_finish (MusterKernel *k, MusterKernelCancel cancel,
                                 MusterKernelFinish finish, gpointer data)
{
  muster_kernel_suspend (k, cancel, data);
  k->finish = finish;
}

void
muster_kernel_resume (MusterKernel *k, GError *error)
{
  MusterRun *run = k->run;
  g_mutex_lock (&run->lock);
  k->resume_error = error;
  k->is_resumed = TRUE;
  muster_run_notify (run);
  g_mutex_unlock (&run->lock);
}
