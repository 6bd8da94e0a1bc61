// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget_private.h"
#include "base/rope_private.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/* Reads and writes TensorProto, TensorFlow's tensor on the wire and in attributes. Both encodings
 * are read: tensor_content, and the typed fields (float_val, …), where the last value stands for
 * all missing ones and no value means zeros. A large tensor_content becomes a view, not a copy. */

/* Reads size bytes at data, which must be inside owner (nullable: the elements are copied).
 * INVALID_ARGUMENT describes the mistake: an unknown dtype, a bad shape, or too few
 * values; spare ones are ignored. Missing values are filled in up to MUSTER_MAX_EXPANSION bytes,
 * where each string counts as often as it occurs; beyond that it fails with RESOURCE_EXHAUSTED. */
MusterTensor *muster_tensor_proto_read (const void *data, gsize size, GBytes *owner,
                                        GError **error);

/* The same for one of several tensors in a request. Together they may be filled in by *budget
 * bytes, which starts as MUSTER_MAX_EXPANSION and is reduced by each call. */
MusterTensor *muster_tensor_proto_read_within (const void *data, gsize size, GBytes *owner,
                                               gsize *budget, GError **error);

/* The most bytes to which a small message may expand (a zeros((1e9,)) constant in a hostile graph).
 * The fuzzers are built with less. */
#ifndef MUSTER_MAX_EXPANSION
#define MUSTER_MAX_EXPANSION ((gsize)2 << 30)
#endif

/* Appends the tensor as field number of a message; large elements by reference. Strings are written
 * as string_val. */
void muster_tensor_proto_put (MusterRope *out, guint32 number, MusterTensor *tensor);

/* The size of what muster_tensor_proto_put () writes, in bytes. If a string occurs many times, that
 * is far more than the tensor takes in memory. */
gsize muster_tensor_proto_size (const MusterTensor *tensor);

/* How much of it is copied. */
gsize muster_tensor_proto_copied_size (const MusterTensor *tensor);

/* A TensorProto message. */
GBytes *muster_tensor_proto_write (MusterTensor *tensor);

/* The same within a budget; RESOURCE_EXHAUSTED beyond it. */
GBytes *muster_tensor_proto_try_write (const MusterTensor *tensor, MusterBudget *budget,
                                       GError **error);

G_END_DECLS
