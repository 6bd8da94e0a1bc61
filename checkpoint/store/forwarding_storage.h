// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/**
 * MusterForwardingStorage:
 *
 * A store that passes each operation to another store.
 *
 * A derived class that implements [iface@Storage] again overrides the operations that it sets and
 * keeps the others. So a store that counts, delays or fails is one function. In C it is set in the
 * interface's init function; in Python it is a method `do_append ()`. It calls the same operation
 * of [method@ForwardingStorage.inner].
 *
 * Files, inputs and locks belong to the other store. A deadline ([method@Storage.bound]) isn't
 * passed on: the bound store would lack what the class overrides. Any thread.
 */

#define MUSTER_TYPE_FORWARDING_STORAGE (muster_forwarding_storage_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterForwardingStorage, muster_forwarding_storage, MUSTER,
                          FORWARDING_STORAGE, GObject)

/**
 * MusterForwardingStorageClass:
 * @parent_class: the parent class
 *
 * The class of [class@ForwardingStorage]; it adds no functions.
 */
struct _MusterForwardingStorageClass {
  GObjectClass parent_class;
};

/**
 * muster_forwarding_storage_inner:
 * @self: a store
 *
 * The other store: local files unless set.
 *
 * Returns: (transfer none): the other store
 */
MusterStorage *muster_forwarding_storage_inner (MusterForwardingStorage *self);

/**
 * muster_forwarding_storage_set_inner:
 * @self: a store
 * @inner: the other store
 *
 * Sets the other store, before the first operation.
 */
void muster_forwarding_storage_set_inner (MusterForwardingStorage *self, MusterStorage *inner);

G_END_DECLS
