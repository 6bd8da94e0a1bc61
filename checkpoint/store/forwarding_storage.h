// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterForwardingStorage passes each operation to another store. A derived class that implements
 * MusterStorage again overrides the operations that it sets and keeps the others. So a store that
 * counts, delays or fails is one function.
 *
 *     static void
 *     slow_storage_iface_init (MusterStorageInterface *iface)
 *     {
 *       iface->append = slow_append;   // calls muster_storage_append (…_inner (self), …)
 *     }
 *
 * Files, inputs and locks belong to the other store. Any thread. */

#define MUSTER_TYPE_FORWARDING_STORAGE (muster_forwarding_storage_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterForwardingStorage, muster_forwarding_storage, MUSTER,
                          FORWARDING_STORAGE, GObject)

struct _MusterForwardingStorageClass {
  GObjectClass parent_class;
};

/* The other store; borrowed. Local files unless set. */
MusterStorage *muster_forwarding_storage_inner (MusterForwardingStorage *self);

/* Sets the other store, before the first operation. */
void muster_forwarding_storage_set_inner (MusterForwardingStorage *self, MusterStorage *inner);

G_END_DECLS
