// SPDX-License-Identifier: Apache-2.0
/* Queue ops, in both versions that TensorFlow has. */
#include "engine/kernels/data_flow/data_flow_op_tables.h"
#include "engine/kernels/data_flow/queue.h"

#include "engine/kernels/common/dispatch.h"

#include <string.h>

static gpointer
make_queue (const char *name, gpointer k, GError **error)
{
  g_auto (MusterQueueSpec) spec = {0};
  if (!muster_queue_spec_read (&spec, muster_kernel_node (k), error))
    return NULL;
  if (spec.kind == MUSTER_QUEUE_PRIORITY && spec.shapes == NULL) {
    muster_invalid (error,
                    "Shared queue '%s' has component shapes [] but requested component shapes were "
                    "[[]]",
                    name);
    return NULL;
  }
  return muster_queue_new (name, &spec);
}

static gboolean
compute_queue (MusterKernel *k, GError **error)
{
  return muster_kernel_output_resource (k, 0, &muster_queue_type, make_queue, error);
}

static MusterQueue *
queue_of (MusterKernel *k, GError **error)
{
  if (muster_kernel_attr_int (k, "timeout_ms", -1) != -1) {
    muster_invalid (error, "Timeout not supported yet.");
    return NULL;
  }
  return muster_kernel_resource (k, 0, &muster_queue_type, error);
}

static void
add_types (GString *text, const guint8 *dtypes, guint n)
{
  for (guint i = 0; i < n; i++)
    g_string_append_printf (text, "%s%s", text->len > 0 ? ", " : "",
                            muster_dtype_name ((MusterDType)dtypes[i]));
}

static char *
signature_text (const char *handle, const char *n, const guint8 *in, guint n_in, const guint8 *out,
                guint n_out)
{
  g_autoptr (GString) inputs = g_string_new (handle);
  g_autoptr (GString) outputs = g_string_new (NULL);
  g_string_append (inputs, n);
  add_types (inputs, in, n_in);
  add_types (outputs, out, n_out);
  return g_strdup_printf ("%s->%s", inputs->str, outputs->str);
}

/* TRUE if the node's components are the queue's: its inputs after the handle, or its outputs. */
static gboolean
check_components (MusterKernel *k, const MusterQueueSpec *spec, gboolean are_outputs,
                  GError **error)
{
  const int first = are_outputs ? 0 : 1;
  const guint n = (guint)(are_outputs ? muster_kernel_n_outputs (k) : muster_kernel_n_inputs (k)) -
                  (guint)first;
  g_autofree guint8 *have = g_new (guint8, n + 1);
  for (guint c = 0; c < n; c++)
    have[c] = (guint8)(are_outputs ? muster_kernel_output_dtype (k, (int)c)
                                   : muster_tensor_dtype (muster_kernel_input (k, (int)c + first)));
  if (n == spec->n_components && memcmp (have, spec->dtypes, n) == 0)
    return TRUE;
  const char *handle =
      g_str_has_suffix (muster_kernel_node (k)->kind->op, "V2") ? "resource" : "string_ref";
  const char *count = are_outputs && muster_kernel_n_inputs (k) > 1 ? ", int32" : "";
  const guint n_in = are_outputs ? 0 : n, n_out = are_outputs ? n : 0;
  const guint wanted_in = are_outputs ? 0 : spec->n_components;
  g_autofree char *got = signature_text (handle, count, have, n_in, have, n_out);
  g_autofree char *wanted = signature_text (handle, count, spec->dtypes, wanted_in, spec->dtypes,
                                            spec->n_components - wanted_in);
  return muster_invalid (error, "Signature mismatch, have: %s expected: %s", got, wanted);
}

static gboolean
enqueue (MusterKernel *k, gboolean many, GError **error)
{
  MusterTensor *few[8];
  MusterQueue *queue = queue_of (k, error);
  if (queue == NULL)
    return FALSE;
  const MusterQueueSpec *spec = muster_queue_spec (queue);
  if (!check_components (k, spec, FALSE, error))
    return FALSE;
  g_autofree MusterTensor **more =
      spec->n_components > G_N_ELEMENTS (few) ? g_new (MusterTensor *, spec->n_components) : NULL;
  MusterTensor **tuple = more != NULL ? more : few;
  for (guint c = 0; c < spec->n_components; c++)
    tuple[c] = muster_kernel_input (k, (int)c + 1);
  if (many)
    return muster_queue_spec_check_many (spec, tuple, error) &&
           muster_queue_enqueue_many (queue, k, tuple, error);
  return muster_queue_spec_check (spec, tuple, error) &&
         muster_queue_enqueue (queue, k, tuple, error);
}

static gboolean
compute_enqueue (MusterKernel *k, GError **error)
{
  return enqueue (k, FALSE, error);
}

static gboolean
compute_enqueue_many (MusterKernel *k, GError **error)
{
  return enqueue (k, TRUE, error);
}

static gboolean
compute_dequeue (MusterKernel *k, GError **error)
{
  MusterQueue *queue = queue_of (k, error);
  return queue != NULL && check_components (k, muster_queue_spec (queue), TRUE, error) &&
         muster_queue_dequeue (queue, k, error);
}

static gboolean
dequeue_many (MusterKernel *k, gboolean up_to, GError **error)
{
  MusterQueue *queue = queue_of (k, error);
  if (queue == NULL)
    return FALSE;
  const MusterQueueSpec *spec = muster_queue_spec (queue);
  if (muster_tensor_n_elements (muster_kernel_input (k, 1)) < 1)
    return muster_invalid (error, "The number of elements to dequeue must be a scalar");
  const gint32 n = (gint32)muster_kernel_input_int (k, 1);
  if (n < 0)
    return muster_invalid (error, "%s requested %d < 0 elements",
                           up_to ? "DequeueUpToOp" : "DequeueManyOp", n);
  if (!check_components (k, spec, TRUE, error))
    return FALSE;
  if (spec->shapes == NULL)
    return muster_invalid (error,
                           "%s's DequeueMany and DequeueUpTo require the components to have "
                           "specified shapes.",
                           muster_queue_kind_name (spec->kind));
  return muster_queue_dequeue_many (queue, k, n, up_to, error);
}

static gboolean
compute_dequeue_many (MusterKernel *k, GError **error)
{
  return dequeue_many (k, FALSE, error);
}

static gboolean
compute_dequeue_up_to (MusterKernel *k, GError **error)
{
  return dequeue_many (k, TRUE, error);
}

static gboolean
compute_close (MusterKernel *k, GError **error)
{
  MusterQueue *queue = queue_of (k, error);
  return queue != NULL &&
         muster_queue_close (queue, k,
                             muster_kernel_attr_bool (k, "cancel_pending_enqueues", FALSE), error);
}

static gboolean
compute_size (MusterKernel *k, GError **error)
{
  MusterQueue *queue = queue_of (k, error);
  if (queue == NULL)
    return FALSE;
  muster_kernel_set_output (k, 0, muster_tensor_new_int32 (muster_queue_size (queue)));
  return TRUE;
}

static gboolean
compute_is_closed (MusterKernel *k, GError **error)
{
  MusterQueue *queue = queue_of (k, error);
  if (queue == NULL)
    return FALSE;
  muster_kernel_set_output (k, 0, muster_tensor_new_bool (muster_queue_is_closed (queue)));
  return TRUE;
}

#define F (MUSTER_OP_STATEFUL | MUSTER_OP_RESOURCE)
#define R (MUSTER_OP_READER | MUSTER_OP_RESOURCE)

#define KIND     "component_types shapes capacity container shared_name"
#define SHUFFLED KIND " min_after_dequeue seed seed2"

#define BOTH(name, inputs, outputs, attrs, compute, flags)                                         \
  {name, "handle:&string" inputs " -> " outputs, attrs, compute, flags},                           \
  {                                                                                                \
    name "V2", "handle:resource" inputs " -> " outputs, attrs, compute, flags                      \
  }

const MusterOp muster_queue_ops[] = {
    {"FIFOQueue", " -> handle:&string", KIND, compute_queue, R},
    {"FIFOQueueV2", " -> handle:resource", KIND, compute_queue, R},
    {"PaddingFIFOQueue", " -> handle:&string", KIND, compute_queue, R},
    {"PaddingFIFOQueueV2", " -> handle:resource", KIND, compute_queue, R},
    {"PriorityQueue", " -> handle:&string", KIND, compute_queue, R},
    {"PriorityQueueV2", " -> handle:resource", KIND, compute_queue, R},
    {"RandomShuffleQueue", " -> handle:&string", SHUFFLED, compute_queue, R},
    {"RandomShuffleQueueV2", " -> handle:resource", SHUFFLED, compute_queue, R},
    BOTH ("QueueEnqueue", ", components:*Tcomponents", "", "timeout_ms", compute_enqueue, F),
    BOTH ("QueueEnqueueMany", ", components:*Tcomponents", "", "timeout_ms", compute_enqueue_many,
          F),
    BOTH ("QueueDequeue", "", "components:*component_types", "timeout_ms", compute_dequeue, F),
    BOTH ("QueueDequeueMany", ", n:int32", "components:*component_types", "timeout_ms",
          compute_dequeue_many, F),
    BOTH ("QueueDequeueUpTo", ", n:int32", "components:*component_types", "timeout_ms",
          compute_dequeue_up_to, F),
    BOTH ("QueueClose", "", "", "cancel_pending_enqueues", compute_close, F),
    BOTH ("QueueSize", "", "size:int32", "", compute_size, R),
    BOTH ("QueueIsClosed", "", "is_closed:bool", "", compute_is_closed, R),
    {NULL, NULL, NULL, NULL, 0},
};
