// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bundle/storage.h"

G_BEGIN_DECLS

/* A MusterStorage whose files are in memory: fast enough to change every bit of a checkpoint in
 * turn. There are no directories; a path's directory lists it. Any thread, but for the test's own
 * verbs. */
#define TEST_TYPE_MEMORY_STORAGE (memory_storage_get_type ())
G_DECLARE_FINAL_TYPE (MemoryStorage, memory_storage, TEST, MEMORY_STORAGE, GObject)

MemoryStorage *memory_storage_new (void);

/* Puts a file there, or in the place of another. Who has that one open sees it change. */
void memory_storage_put (MemoryStorage *self, const char *path, const void *data, gsize size);

/* A file's bytes, to be looked at and changed; NULL where there is none. Borrowed until it is
 * written again. */
GByteArray *memory_storage_file (MemoryStorage *self, const char *path);

G_END_DECLS
