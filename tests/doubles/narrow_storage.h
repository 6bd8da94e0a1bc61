// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/forwarding_storage.h"

G_BEGIN_DECLS

/* Local files, or another store's, on a disk of which the test says how much is free. Without a
 * free byte no file is begun, however small. */
#define MUSTER_TYPE_NARROW_STORAGE (muster_narrow_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterNarrowStorage, muster_narrow_storage, MUSTER, NARROW_STORAGE,
                      MusterForwardingStorage)

MusterNarrowStorage *muster_narrow_storage_new (void); /* with room for all */
void muster_narrow_storage_set_free (MusterNarrowStorage *self, guint64 bytes);
/* From now on each directory is a disk of its own, of so many bytes; so removing files makes room.
 */
void muster_narrow_storage_set_size (MusterNarrowStorage *self, guint64 bytes);
/* … with so much free beside what now lies in the given one. */
void muster_narrow_storage_fill (MusterNarrowStorage *self, const char *directory, guint64 is_free);
/* The bytes of all files in a directory. */
guint64 muster_narrow_storage_used (MusterStorage *storage, const char *directory);

G_END_DECLS
