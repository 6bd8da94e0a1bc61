// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* What the rooms' own writers share: all over the interface's verbs. */

/* Writes and syncs a file under its own name, and takes it away again where that fails. */
gboolean muster_storage_write_synced (MusterStorage *self, const char *path, const void *data,
                                      gsize size, GError **error);

/* Removes a temporary file after a failure that is the one to report. */
void muster_storage_remove_quietly (MusterStorage *self, const char *path);

/* A name beside path that nobody else has. */
char *muster_storage_temporary_name (const char *path);

/* TRUE unless it has a scheme. */
gboolean muster_storage_is_file_path (const char *path);

G_END_DECLS
