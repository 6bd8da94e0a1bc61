// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* MusterSignature is a MusterOp's line, read once: what it takes and gives, and which dtypes its
 * type attributes may have. A node is resolved against it when a plan is made. A type attribute
 * that a node lacks (a graph stripped of defaults) is the dtype of the first input that has it, or
 * else the first dtype that its constraint lists by name. */

typedef struct _MusterSignature MusterSignature;

/* A line that can't be read is the programmer's error and ends the process. */
MusterSignature *muster_signature_new (const MusterOp *op);
void muster_signature_free (MusterSignature *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSignature, muster_signature_free)

/* The dtypes of a node's inputs (as they are wanted) and outputs, one byte each; a reference is its
 * dtype + MUSTER_REF. Kept between nodes to save allocations. */
typedef struct {
  GByteArray *inputs;  /* (owned) */
  GByteArray *outputs; /* (owned) */
  MusterDType value; /* of attribute "dtype", else "T": what a resource input must hold; INVALID if
                        it has neither, or that says it takes the handle itself */
} MusterResolved;

void muster_resolved_init (MusterResolved *self);
void muster_resolved_clear (MusterResolved *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterResolved, muster_resolved_clear)

/* Resolves a node whose n data inputs come with these dtypes. INVALID_ARGUMENT says which input or
 * attribute doesn't fit. */
gboolean muster_signature_resolve (const MusterSignature *self, const Tensorflow__NodeDef *node,
                                   const guint8 *given, gsize n, MusterResolved *resolved,
                                   GError **error);

/* The dtypes of a node's outputs on their own, INVALID where that depends on what comes in; dtypes
 * is filled anew. FALSE where their number can't be told. */
gboolean muster_signature_outputs (const MusterSignature *self, const Tensorflow__NodeDef *node,
                                   GByteArray *dtypes);
/* Those of its inputs, likewise. */
gboolean muster_signature_inputs (const MusterSignature *self, const Tensorflow__NodeDef *node,
                                  GByteArray *dtypes);

G_END_DECLS
