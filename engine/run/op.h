// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* An op and what runs it, as plans and kernels know them; engine/run/kernel.h tells how one is
 * written. */

typedef struct _MusterKernel MusterKernel;

/* Computes. FALSE with an error of TensorFlow's code and words; node, op and position are added by
 * the executor. */
typedef gboolean (*MusterKernelFunc) (MusterKernel *k, GError **error);

typedef enum {
  MUSTER_OP_STATEFUL = 1 << 0, /* has an effect beyond its outputs, or another result each time:
                                  never folded or shared */
  MUSTER_OP_UNINITIALIZED =
      1 << 1, /* takes a reference to a variable without a value (Assign, IsVariableInitialized) */
  MUSTER_OP_FORWARD =
      1 << 2, /* output 0 may take over input 0's memory (muster_kernel_output_like) */
  MUSTER_OP_RESOURCE = 1 << 3, /* makes a MusterResource, or takes the handle of one */
} MusterOpFlags;

typedef struct {
  const char *name;
  const char *signature;
  const char *constraints; /* "" for none */
  MusterKernelFunc compute;
  MusterOpFlags flags;
} MusterOp;

/* What a kernel works out once for its node and finds again in later steps. Steps that run at once
 * may each have one of their own, or none. */
typedef struct {
  GDestroyNotify free; /* of all of it */
} MusterKernelMemo;

/* Of a kernel that waits: muster_kernel_suspend () and muster_kernel_suspend_to_finish (). */
typedef void (*MusterKernelCancel) (MusterKernel *k, gpointer data);
typedef gboolean (*MusterKernelFinish) (MusterKernel *k, gpointer data, gboolean is_wanted,
                                        GError **error);

G_END_DECLS
