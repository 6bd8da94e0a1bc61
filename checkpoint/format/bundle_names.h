// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterBundleNames is the names of a checkpoint's tensors, checked and sorted as in an index. Code
 * that writes the same tensors repeatedly creates it once. Immutable, reference-counted. */
typedef struct _MusterBundleNames MusterBundleNames;

/* From a vector of strings. NULL if one isn't a valid name or occurs twice. */
MusterBundleNames *muster_bundle_names_new (MusterTensor *names);
MusterBundleNames *muster_bundle_names_ref (MusterBundleNames *self);
void muster_bundle_names_unref (MusterBundleNames *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBundleNames, muster_bundle_names_unref)

gsize muster_bundle_names_n (const MusterBundleNames *self);

/* The i-th name in order, NUL-terminated, its size, and its index in the vector. */
const char *muster_bundle_names_get (const MusterBundleNames *self, gsize i, gsize *size,
                                     gsize *index);

G_END_DECLS
