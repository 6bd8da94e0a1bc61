// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterForwardingStorage hands every verb on to another store. A class derived from it that
 * implements MusterStorage again overrides the verbs that it sets there and keeps the others: a
 * store that counts, delays or refuses is one function.
 *
 *     static void
 *     slow_storage_iface_init (MusterStorageInterface *iface)
 *     {
 *       iface->append = slow_append;   // ends in muster_storage_append (…_inner (self), …)
 *     }
 *
 * Files, inputs and locks are the other store's own. Any thread. */

#define MUSTER_TYPE_FORWARDING_STORAGE (muster_forwarding_storage_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterForwardingStorage, muster_forwarding_storage, MUSTER,
                          FORWARDING_STORAGE, GObject)

struct _MusterForwardingStorageClass {
  GObjectClass parent_class;
};

/* Where a store's verbs go; borrowed. Local files, unless another was set. */
MusterStorage *muster_forwarding_storage_inner (MusterForwardingStorage *self);

/* Before the first verb. */
void muster_forwarding_storage_set_inner (MusterForwardingStorage *self, MusterStorage *inner);

G_END_DECLS
