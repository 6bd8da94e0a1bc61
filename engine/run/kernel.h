// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget_private.h"
#include "base/error.h"
#include "checkpoint/store/storage.h"
#include "engine/resources/resource.h"
#include "engine/resources/variable.h"
#include "engine/run/op.h"
#include "engine/run/philox.h"
#include "graph/graph_nodes_private.h"
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
 * The signature is a short form of TensorFlow's: inputs, "->", outputs, separated by commas, each
 * NAME:TYPE. TYPE is a dtype ("float", "int32", "string", "bool", "resource"), a type attribute
 * ("T"), "N*T" for the number in the int attribute N, "*Tlist" for one for each type in a list
 * attribute, or "&T" for a reference to a variable.
 *
 * The attributes are all that the op has, separated by spaces, but for those that have no effect
 * here (engine/run/signature.c) and those in the signature that may be anything. A type attribute
 * has its dtypes: a set (any, number, real, float, integer; "all" is any plus handles, for ops that
 * only pass them on), or dtypes and sets joined by "|", such as "T:number|bool", where "float" is
 * the dtype. Any other is its name ("keep_dims"), or NAME=false where the kernel can't do with
 * true. "N>=2" says how many tensors "N*T" or "*Tlist" has at least, where that isn't 1.
 *
 * Before a step first runs, every node is checked against its op's signature: the number of inputs,
 * their dtypes, the attributes, of which it may have no others. So a kernel never checks dtypes,
 * only shapes and values; and it reads each attribute that it lists. */

/* The node; borrowed. */
const MusterNode *muster_kernel_node (const MusterKernel *k);

/* The number of inputs, with "N*T" expanded. */
int muster_kernel_n_inputs (const MusterKernel *k);
/* An input's value. For a reference, the variable's value (never NULL: the executor has checked it,
 * and keeps it until the kernel ends). */
MusterTensor *muster_kernel_input (const MusterKernel *k, int i);
/* The variable behind a reference or a resource handle. The executor has checked that there is one,
 * except for ops with MUSTER_OP_RESOURCE. */
MusterVariable *muster_kernel_variable (const MusterKernel *k, int i);
/* Element 0 of an integer or floating input, converted. */
gint64 muster_kernel_input_int (const MusterKernel *k, int i);
double muster_kernel_input_double (const MusterKernel *k, int i);
/* The input as the graph has it, such as "x:1", for messages. */
char *muster_kernel_input_name (const MusterKernel *k, int i);
/* Copies a vector of signed integers (a shape, a list of axes). Returns the number of values; -1
 * with an error if there are more than max. */
int muster_kernel_input_ints (const MusterKernel *k, int i, gint64 *values, int max,
                              GError **error);

/* Outputs. For an output that is a reference use muster_kernel_forward_ref (). */
int muster_kernel_n_outputs (const MusterKernel *k);
MusterDType muster_kernel_output_dtype (const MusterKernel *k, int i);
/* A new output to fill, with the signature's dtype; NULL with RESOURCE_EXHAUSTED if the shape is
 * too large. Not after a suspend. */
MusterTensor *muster_kernel_output (MusterKernel *k, int i, int n_dims, const gint64 *dims,
                                    GError **error);
/* An output with like's shape. It takes over like's memory if possible (MUSTER_OP_FORWARD, same
 * dtype, no other reference). */
MusterTensor *muster_kernel_output_like (MusterKernel *k, int i, const MusterTensor *like,
                                         GError **error);
void muster_kernel_set_output (MusterKernel *k, int i, MusterTensor *tensor); /* (transfer full) */
/* A string output; the strings are copied. Errors as above. */
gboolean muster_kernel_output_strings (MusterKernel *k, int i, int n_dims, const gint64 *dims,
                                       const MusterString *strings, GError **error);
void muster_kernel_forward_ref (MusterKernel *k, int i, int input);

/* The memory budget of this run, for outputs and temporary data; the functions above take from it.
 * Everything else whose size depends on a shape, a value or an attribute must be taken from it too,
 * before it is allocated; never use g_new () or a GString for it, which abort. */
MusterBudget *muster_kernel_budget (MusterKernel *k);
/* A tensor for temporary data. */
MusterTensor *muster_kernel_temporary (MusterKernel *k, MusterDType dtype, int n_dims,
                                       const gint64 *dims, GError **error);
/* n items of size bytes (free with g_free ()); NULL only with RESOURCE_EXHAUSTED. */
gpointer muster_kernel_alloc (MusterKernel *k, gint64 n, gsize size, GError **error);
gpointer muster_kernel_alloc0 (MusterKernel *k, gint64 n, gsize size, GError **error);

/* Resources (engine/resources/resource.h), for ops with MUSTER_OP_RESOURCE. A handle has dtype
 * "resource" or, in TensorFlow's first generation of ops, "&string"; both are equivalent here.
 *
 * Returns the resource's data (borrowed until the kernel ends, also while it waits).
 * INVALID_ARGUMENT if it has another type or is a variable. */
gpointer muster_kernel_resource (const MusterKernel *k, int i, const MusterResourceType *type,
                                 GError **error);
/* Sets output i to the handle of the resource named by the node's attributes container and
 * shared_name. make (user_data: k) creates it if there is none. */
gboolean muster_kernel_output_resource (MusterKernel *k, int i, const MusterResourceType *type,
                                        MusterResourceMake make, GError **error);
/* The same resource, for an op that uses it without an output for its handle (transfer full). */
MusterResource *muster_kernel_named_resource (MusterKernel *k, const MusterResourceType *type,
                                              MusterResourceMake make, GError **error);
/* A resource of the node, kept from step to step during its session: found, or created as above
 * (transfer full). For any op. */
MusterResource *muster_kernel_own_resource (MusterKernel *k, const MusterResourceType *type,
                                            MusterResourceMake make, GError **error);

/* TRUE if the handle is a resource's, FALSE if it is a variable's. */
gboolean muster_kernel_has_resource (const MusterKernel *k, int i);
/* Destroys the resource behind input i: later requests by name create a new one; existing
 * references stay valid. NOT_FOUND, with must_exist, if it was destroyed before. */
gboolean muster_kernel_destroy_resource (const MusterKernel *k, int i, gboolean must_exist,
                                         GError **error);

/* Attributes of the node. */
gint64 muster_kernel_attr_int (const MusterKernel *k, const char *name, gint64 fallback);
gboolean muster_kernel_attr_bool (const MusterKernel *k, const char *name, gboolean fallback);
float muster_kernel_attr_float (const MusterKernel *k, const char *name, float fallback);
MusterDType muster_kernel_attr_dtype (const MusterKernel *k, const char *name);
const Tensorflow__AttrValue *muster_kernel_attr (const MusterKernel *k, const char *name);

/* The step's cancellable; kernels with long loops check it. */
GCancellable *muster_kernel_cancellable (const MusterKernel *k);

/* take returns the last memo stored by keep, both (transfer full); NULL if there is none. */
MusterKernelMemo *muster_kernel_take_memo (MusterKernel *k);
void muster_kernel_keep_memo (MusterKernel *k, MusterKernelMemo *memo);

/* The master's store for checkpoints; borrowed. */
MusterStorage *muster_kernel_storage (const MusterKernel *k);

/* How a kernel waits (docs/decisions/0013). It calls muster_kernel_suspend () and returns TRUE
 * without outputs; nodes that don't need it still run. The code that ends the wait sets the outputs
 * and calls muster_kernel_resume () once, from any thread, with any lock of the kernels held, with
 * an error or NULL (transfer full); the step continues on its caller's thread. cancel is called at
 * most once, on that thread, when the step is cancelled by its deadline, its caller or a close: it
 * must ensure that resume is called, unless it already was. */
void muster_kernel_suspend (MusterKernel *k, MusterKernelCancel cancel, gpointer data);
void muster_kernel_resume (MusterKernel *k, GError *error);

/* Like muster_kernel_suspend (), with a function for remaining work. finish is called once, on the
 * step's thread, after resume; it sets the outputs. is_wanted TRUE: the wait succeeded and the step
 * continues, so it sets the outputs or fails. FALSE: it undoes what it can. */
void muster_kernel_suspend_to_finish (MusterKernel *k, MusterKernelCancel cancel,
                                      MusterKernelFinish finish, gpointer data);

/* The node's random generator in its current state, seeded from the attributes seed and seed2 (both
 * 0: random), which continues from step to step. Philox, like TensorFlow's. Output 0 must exist:
 * its size determines how far the generator advances. */
MusterPhilox muster_kernel_philox (MusterKernel *k);
/* The same, advanced by n_blocks of four words, for ops where TensorFlow specifies that. */
MusterPhilox muster_kernel_philox_blocks (MusterKernel *k, guint64 n_blocks);

/* Sets FAILED_PRECONDITION, in TensorFlow's words: the variable behind input i has no value. Always
 * returns FALSE. */
gboolean muster_kernel_fail_uninitialized (const MusterKernel *k, int i, GError **error);

G_END_DECLS
