// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rope.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/* TensorProto, TensorFlow's tensor on the wire and inside attributes, read and written by hand.
 * Both of its encodings are read: tensor_content, and the typed fields (float_val, …) with fewer
 * values than elements, where the last value is repeated and none means zeros. A large
 * tensor_content becomes a view, not a copy. */

/* Reads size bytes at data, which lie within owner (nullable: then the elements are copied).
 * INVALID_ARGUMENT says what is wrong: an unknown dtype, a bad shape, too many or too few values. A
 * claimed shape of more elements than there are values is believed only up to MUSTER_MAX_EXPANSION
 * bytes, each string counted as often as it stands there; more is RESOURCE_EXHAUSTED. */
MusterTensor *muster_tensor_proto_read (const void *data, gsize size, GBytes *owner,
                                        GError **error);

/* The same for one of several tensors that came together: together they may expand by *budget
 * bytes, which begins as MUSTER_MAX_EXPANSION and is drawn on. */
MusterTensor *muster_tensor_proto_read_within (const void *data, gsize size, GBytes *owner,
                                               gsize *budget, GError **error);

/* How large few bytes may expand to (a zeros((1e9,)) constant in a hostile graph). The fuzzers are
 * built with less. */
#ifndef MUSTER_MAX_EXPANSION
#define MUSTER_MAX_EXPANSION ((gsize)2 << 30)
#endif

/* Appends the tensor as field number of the message being written; large elements by reference. A
 * string tensor is written as string_val. */
void muster_tensor_proto_put (MusterRope *out, guint32 number, MusterTensor *tensor);

/* What muster_tensor_proto_put () would write, in bytes: for strings far more than the tensor may
 * take in memory, where one stands there many times. */
gsize muster_tensor_proto_size (const MusterTensor *tensor);

/* The TensorProto alone. */
GBytes *muster_tensor_proto_write (MusterTensor *tensor);

/* The same within a budget: RESOURCE_EXHAUSTED over it. */
GBytes *muster_tensor_proto_try_write (const MusterTensor *tensor, MusterBudget *budget,
                                       GError **error);

G_END_DECLS
