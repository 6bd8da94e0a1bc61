// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget.h"
#include "base/error.h"
#include "checkpoint/store/storage.h"
#include "engine/resources/resource.h"
#include "engine/resources/variable.h"
#include "engine/run/op.h"
#include "engine/run/philox.h"
#include "graph/graph_nodes.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/* A kernel computes one op: a short function, and one line in its file's table.
 *
 *   static gboolean
 *   negate (MusterKernel *k, GError **error)
 *   {
 *     const MusterTensor *x = muster_kernel_input (k, 0);
 *     MusterTensor *y = muster_kernel_output_like (k, 0, x, error);
 *     if (y == NULL)
 *       return FALSE;
 *     ...
 *     return TRUE;
 *   }
 *
 *   const MusterOp muster_math_ops[] = {
 *     { "Neg", "x:T -> y:T", "T:number", negate },
 *     ...
 *
 * The signature is TensorFlow's, in short: inputs, "->", outputs, separated by commas, each
 * NAME:TYPE. TYPE is a dtype
 * ("float", "int32", "string", "bool", "resource"), a type attribute ("T"), "N*T" for as many as
 * the int attribute N says,
 * "*Tlist" for one for each type in a list attribute, or "&T" for a reference to a variable. The
 * constraints say which dtypes a type attribute may have: "T:float" a set (any, number, real,
 * float, integer, or dtypes joined by "|"; "all" is any and handles, for what only passes them on),
 * more than one separated by a space. Before a step first
 * runs, every node is checked against its op's line: the number of inputs, their dtypes, the
 * attributes; a kernel therefore never checks a dtype, only shapes and values. */

/* The node being run; borrowed. */
const Tensorflow__NodeDef *muster_kernel_node (const MusterKernel *k);

/* Inputs, in order, "N*T" spread out. */
int muster_kernel_n_inputs (const MusterKernel *k);
/* An input's value; a reference gives its variable's present value (never NULL: the executor has
 * checked that it has one, and holds it until the kernel ends). */
MusterTensor *muster_kernel_input (const MusterKernel *k, int i);
/* The variable behind a reference or a resource handle; the executor has checked that there is one,
 * but for an op of MUSTER_OP_RESOURCE. */
MusterVariable *muster_kernel_variable (const MusterKernel *k, int i);
/* Element 0 of a small integer or float input, whatever its integer or float dtype. */
gint64 muster_kernel_input_int (const MusterKernel *k, int i);
double muster_kernel_input_double (const MusterKernel *k, int i);
/* Copies an int32 or int64 vector (a shape, a list of axes): n values; -1 with an error if it has
 * more than max. */
int muster_kernel_input_ints (const MusterKernel *k, int i, gint64 *values, int max,
                              GError **error);

/* Outputs. An output that is a reference is passed on with muster_kernel_forward_ref (). */
int muster_kernel_n_outputs (const MusterKernel *k);
MusterDType muster_kernel_output_dtype (const MusterKernel *k, int i);
/* A new output to fill, of the dtype that the signature says; NULL with RESOURCE_EXHAUSTED for a
 * shape that can't be had. Not once it was suspended. */
MusterTensor *muster_kernel_output (MusterKernel *k, int i, int n_dims, const gint64 *dims,
                                    GError **error);
/* As input like: it takes over like's memory where the op allows it (MUSTER_OP_FORWARD, the same
 * dtype, nobody else holds it). */
MusterTensor *muster_kernel_output_like (MusterKernel *k, int i, const MusterTensor *like,
                                         GError **error);
void muster_kernel_set_output (MusterKernel *k, int i, MusterTensor *tensor); /* (transfer full) */
/* A string output, each string copied; as above. */
gboolean muster_kernel_output_strings (MusterKernel *k, int i, int n_dims, const gint64 *dims,
                                       const MusterString *strings, GError **error);
void muster_kernel_forward_ref (MusterKernel *k, int i, int input);

/* What this run of the op may allocate, for outputs and on the way: the functions above take from
 * it. Whatever else grows with a shape, a value or an attribute is taken from it, too, before it is
 * allocated: nothing that a request decides goes to g_new () or a GString, which abort. */
MusterBudget *muster_kernel_budget (MusterKernel *k);
/* A tensor for the kernel's own use. */
MusterTensor *muster_kernel_temporary (MusterKernel *k, MusterDType dtype, int n_dims,
                                       const gint64 *dims, GError **error);
/* Room for n items of size bytes (g_free); NULL with RESOURCE_EXHAUSTED, and only then. */
gpointer muster_kernel_alloc (MusterKernel *k, gint64 n, gsize size, GError **error);
gpointer muster_kernel_alloc0 (MusterKernel *k, gint64 n, gsize size, GError **error);

/* Resources (engine/resources/resource.h), of ops with MUSTER_OP_RESOURCE. A handle is of dtype
 * "resource" or, of TensorFlow's first generation of ops, "&string"; both are the same here.
 *
 * What is behind a handle (borrowed until the kernel ends, however long it waits);
 * INVALID_ARGUMENT if that is of another type, or a variable. */
gpointer muster_kernel_resource (const MusterKernel *k, int i, const MusterResourceType *type,
                                 GError **error);
/* Makes output i the handle of the resource that the node's attributes container and shared_name
 * say; make (user_data: k) is called if there is none yet. */
gboolean muster_kernel_output_resource (MusterKernel *k, int i, const MusterResourceType *type,
                                        MusterResourceMake make, GError **error);
/* What the node itself keeps from step to step, as long as its session lasts: found, or made as
 * above (transfer full). For any op. */
MusterResource *muster_kernel_own_resource (MusterKernel *k, const MusterResourceType *type,
                                            MusterResourceMake make, GError **error);

/* TRUE if that handle is of a resource, FALSE if it is a variable's. */
gboolean muster_kernel_has_resource (const MusterKernel *k, int i);
/* Destroys the resource behind input i: whoever asks for it by name gets a new one, who holds it
 * keeps it. NOT_FOUND, with must_exist, if that has been done before. */
gboolean muster_kernel_destroy_resource (const MusterKernel *k, int i, gboolean must_exist,
                                         GError **error);

/* Attributes of the node. */
gint64 muster_kernel_attr_int (const MusterKernel *k, const char *name, gint64 fallback);
gboolean muster_kernel_attr_bool (const MusterKernel *k, const char *name, gboolean fallback);
float muster_kernel_attr_float (const MusterKernel *k, const char *name, float fallback);
MusterDType muster_kernel_attr_dtype (const MusterKernel *k, const char *name);
const Tensorflow__AttrValue *muster_kernel_attr (const MusterKernel *k, const char *name);

/* The step's cancellation: a kernel that loops for long looks at it. */
GCancellable *muster_kernel_cancellable (const MusterKernel *k);

/* What take gives is (transfer full) (nullable): what was kept last; keep hands it over (transfer
 * full). */
MusterKernelMemo *muster_kernel_take_memo (MusterKernel *k);
void muster_kernel_keep_memo (MusterKernel *k, MusterKernelMemo *memo);

/* Where the master keeps checkpoints; borrowed. */
MusterStorage *muster_kernel_storage (const MusterKernel *k);

/* How a kernel waits (docs/decisions/0013). A kernel that must wait calls muster_kernel_suspend ()
 * and returns TRUE without outputs; nodes that don't need it still run. Whoever ends the wait sets
 * the outputs and calls muster_kernel_resume () once, from any thread, holding any lock of the
 * kernels' own, with an error or NULL (transfer full); the step goes on on its caller's thread.
 * cancel is called at most once, on that thread, when the step is cancelled by its deadline, its
 * caller or a close: it must see to it that resume is called, if it wasn't meanwhile. */
void muster_kernel_suspend (MusterKernel *k, MusterKernelCancel cancel, gpointer data);
void muster_kernel_resume (MusterKernel *k, GError *error);

/* As muster_kernel_suspend (), for who has something left to do or to free: finish is called once,
 * on the step's thread, after resume, in place of outputs that were set before. is_wanted: the wait
 * ended well and the step is to go on, so it makes the outputs, or fails; else it undoes what it
 * can. */
void muster_kernel_suspend_to_finish (MusterKernel *k, MusterKernelCancel cancel,
                                      MusterKernelFinish finish, gpointer data);

/* A random generator of the node's own, seeded from attributes seed and seed2 (both 0: from
 * chance), that goes on from step to step, as it stands when the kernel begins. Philox, as
 * TensorFlow's. Output 0 has been made: its size says how far the generator moves on. */
MusterPhilox muster_kernel_philox (MusterKernel *k);
/* The same for an op of which TensorFlow says how much it draws: so many times four words. */
MusterPhilox muster_kernel_philox_blocks (MusterKernel *k, guint64 n_blocks);

/* Sets FAILED_PRECONDITION in TensorFlow's words: the variable behind input i has no value. Always
 * FALSE. */
gboolean muster_kernel_fail_uninitialized (const MusterKernel *k, int i, GError **error);

G_END_DECLS
