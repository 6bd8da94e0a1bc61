// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/**
 * MusterBundleNames:
 *
 * The names of a checkpoint's tensors, checked and sorted as in an index. Code that writes the same
 * tensors repeatedly creates it once. Immutable, reference-counted; any thread.
 */
typedef struct _MusterBundleNames MusterBundleNames;

#define MUSTER_TYPE_BUNDLE_NAMES (muster_bundle_names_get_type ())
GType muster_bundle_names_get_type (void);

/**
 * muster_bundle_names_new:
 * @names: a vector of strings
 *
 * Checks and sorts names.
 *
 * Returns: (transfer full) (nullable): the names; `NULL` if one isn't a valid name or occurs twice
 */
MusterBundleNames *muster_bundle_names_new (MusterTensor *names);

/**
 * muster_bundle_names_ref:
 * @self: names
 *
 * Takes another reference.
 *
 * Returns: (transfer full): the same names
 */
MusterBundleNames *muster_bundle_names_ref (MusterBundleNames *self);

/**
 * muster_bundle_names_unref:
 * @self: (transfer full) (nullable): names
 *
 * Drops a reference.
 */
void muster_bundle_names_unref (MusterBundleNames *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBundleNames, muster_bundle_names_unref)

/**
 * muster_bundle_names_n:
 * @self: names
 *
 * The number of names.
 *
 * Returns: their number
 */
gsize muster_bundle_names_n (const MusterBundleNames *self);

/**
 * muster_bundle_names_get:
 * @self: names
 * @i: below [method@BundleNames.n]
 * @size: (out): the name's size in bytes
 * @index: (out): its index in the vector that the names were created from
 *
 * A name by its place in the order of the index.
 *
 * Returns: (transfer none): the name, NUL-terminated
 */
const char *muster_bundle_names_get (const MusterBundleNames *self, gsize i, gsize *size,
                                     gsize *index);

G_END_DECLS
