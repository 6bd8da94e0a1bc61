// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/forwarding_storage.h"
#include "tests/doubles/fake_clock.h"

G_BEGIN_DECLS

/* Local files on a disk that writes so many bytes a second, by a fake clock. */
#define MUSTER_TYPE_SLOW_STORAGE (muster_slow_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterSlowStorage, muster_slow_storage, MUSTER, SLOW_STORAGE,
                      MusterForwardingStorage)

MusterSlowStorage *muster_slow_storage_new (MusterFakeClock *clock, guint64 bytes_per_second);

G_END_DECLS
