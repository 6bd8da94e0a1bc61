// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterBundleNames is the names of a checkpoint's tensors, checked and put in the order of an
 * index: made once by who writes the same tensors again and again. Immutable; counted. */
typedef struct _MusterBundleNames MusterBundleNames;

/* From a vector of strings. NULL where one is no name, or two are the same. */
MusterBundleNames *muster_bundle_names_new (MusterTensor *names);
MusterBundleNames *muster_bundle_names_ref (MusterBundleNames *self);
void muster_bundle_names_unref (MusterBundleNames *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBundleNames, muster_bundle_names_unref)

gsize muster_bundle_names_n (const MusterBundleNames *self);

/* The i-th by order: its text, ended by a NUL, its size, and which of the vector's it is. */
const char *muster_bundle_names_get (const MusterBundleNames *self, gsize i, gsize *size,
                                     gsize *index);

G_END_DECLS
