// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* An op and its kernel, for plans and kernels; engine/run/kernel.h describes how to write one. */

typedef struct _MusterKernel MusterKernel;

/* Computes the outputs. FALSE with TensorFlow's code and text; the executor adds node, op and
 * position. */
typedef gboolean (*MusterKernelFunc) (MusterKernel *k, GError **error);

enum {
  MUSTER_OP_STATEFUL = 1 << 0, /* has a side effect: always computed */
  MUSTER_OP_UNINITIALIZED =
      1
      << 1, /* accepts a reference to a variable without a value (Assign, IsVariableInitialized) */
  MUSTER_OP_FORWARD =
      1 << 2, /* output 0 may take over input 0's memory (muster_kernel_output_like) */
  MUSTER_OP_RESOURCE = 1 << 3, /* creates a MusterResource, or takes the handle of one */
  MUSTER_OP_HANDLES =
      1 << 4, /* moves elements of any type, handles too: these are numbers to the kernel, int64 */
  MUSTER_OP_READER =
      1 << 5, /* always computed too, as its results vary, but leaves nothing behind, or what
                 another try finds: a resource by its name. Not with MUSTER_OP_STATEFUL. */
};

typedef struct {
  const char *name;
  const char *signature;
  const char *attributes; /* "" for none */
  MusterKernelFunc compute;
  guint flags; /* a set of MUSTER_OP_… */
} MusterOp;

/* Whether the op, once it has begun, may have left something behind: a changed variable, a file. */
static inline gboolean
muster_op_acts (const MusterOp *op)
{
  return (op->flags & MUSTER_OP_STATEFUL) != 0;
}

/* What a kernel computes once for its node and reuses in later steps. Concurrent steps may each
 * have their own, or none. */
typedef struct {
  GDestroyNotify free; /* frees all of it */
} MusterKernelMemo;

/* For kernels that wait: muster_kernel_suspend () and muster_kernel_suspend_to_finish (). */
typedef void (*MusterKernelCancel) (MusterKernel *k, gpointer data);
typedef gboolean (*MusterKernelFinish) (MusterKernel *k, gpointer data, gboolean is_wanted,
                                        GError **error);

G_END_DECLS
