// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* A MusterStorage whose files are in memory: fast enough to change every bit of a checkpoint in
 * turn. There are no directories; a path's directory lists it. Any thread, but for the test's own
 * verbs. */
#define MUSTER_TYPE_MEMORY_STORAGE (muster_memory_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterMemoryStorage, muster_memory_storage, MUSTER, MEMORY_STORAGE, GObject)

MusterMemoryStorage *memory_storage_new (void);

/* Puts a file there, or in the place of another. Who has that one open sees it change. */
void memory_storage_put (MusterMemoryStorage *self, const char *path, const void *data, gsize size);

/* A file's bytes, to be looked at and changed; NULL where there is none. Borrowed until it is
 * written again. */
GByteArray *memory_storage_file (MusterMemoryStorage *self, const char *path);

G_END_DECLS
