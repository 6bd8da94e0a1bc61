// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/forwarding_storage.h"

G_BEGIN_DECLS

/* Local files, of which the bytes of checkpoints' data files that are read are counted. */
#define MUSTER_TYPE_COUNTING_STORAGE (muster_counting_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterCountingStorage, muster_counting_storage, MUSTER, COUNTING_STORAGE,
                      MusterForwardingStorage)

MusterCountingStorage *muster_counting_storage_new (void);

/* The bytes that were read since the last call, and the most often that one byte was. */
guint64 muster_counting_storage_take (MusterCountingStorage *self, guint *most_often);

G_END_DECLS
