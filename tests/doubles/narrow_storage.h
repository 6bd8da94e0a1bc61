// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/forwarding_storage.h"

G_BEGIN_DECLS

/* Local files on a disk of which the test says how much is free. */
#define MUSTER_TYPE_NARROW_STORAGE (muster_narrow_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterNarrowStorage, muster_narrow_storage, MUSTER, NARROW_STORAGE,
                      MusterForwardingStorage)

MusterNarrowStorage *muster_narrow_storage_new (void); /* with room for all */
void muster_narrow_storage_set_free (MusterNarrowStorage *self, guint64 bytes);

G_END_DECLS
