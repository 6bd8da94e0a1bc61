// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* MusterSignature is the parsed signature of a MusterOp: its inputs, its outputs, the allowed
 * dtypes of its type attributes and its other attributes. A node is resolved against it when a
 * plan is made. A type attribute that a node lacks (in a graph stripped of defaults) is the dtype
 * of the first input that has it, or else the first dtype that it is listed with. */

typedef struct _MusterSignature MusterSignature;

/* A malformed signature is a programming error and ends the process. */
MusterSignature *muster_signature_new (const MusterOp *op);
void muster_signature_free (MusterSignature *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSignature, muster_signature_free)

/* The dtypes of a node's inputs (as required) and outputs, one byte each; a reference is its dtype
 * + MUSTER_REF. Reused for the next node to save allocations. */
typedef struct {
  GByteArray *inputs;  /* (owned) */
  GByteArray *outputs; /* (owned) */
  MusterDType value; /* of attribute "dtype", else "T": what a resource input must contain; INVALID
                        if it has neither, or takes the handle itself */
} MusterResolved;

void muster_resolved_init (MusterResolved *self);
void muster_resolved_clear (MusterResolved *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterResolved, muster_resolved_clear)

/* Resolves a node of a graph whose data inputs have the given dtypes. INVALID_ARGUMENT names the
 * input or attribute that doesn't fit. */
gboolean muster_signature_resolve (const MusterSignature *self, MusterGraph *graph,
                                   const MusterNode *node, const GByteArray *given,
                                   MusterResolved *resolved, GError **error);

/* TRUE if a node may have the attribute: the signature or the op's attributes list it, or it has no
 * effect here. */
gboolean muster_signature_has (const MusterSignature *self, const char *name);

/* The dtypes of a node's outputs without its inputs, INVALID where they depend on them; dtypes is
 * overwritten. FALSE if their number is unknown. */
gboolean muster_signature_outputs (const MusterSignature *self, const MusterNode *node,
                                   GByteArray *dtypes);
/* The same for its inputs. */
gboolean muster_signature_inputs (const MusterSignature *self, const MusterNode *node,
                                  GByteArray *dtypes);

G_END_DECLS
