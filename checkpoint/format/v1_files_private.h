// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* The files of a V1 checkpoint (v1_table.h). PREFIX is the only one, or names all of them:
 * "model.ckpt-7-?????-of-00002". */

/* For a prefix of which the store says that there is no PREFIX.index: TRUE if PREFIX is a table,
 * but not the index of a V2 checkpoint, or a file, damaged maybe, with a meta graph. Any failure is
 * FALSE. */
gboolean muster_v1_is_there (MusterStorage *storage, const char *prefix);

/* The prefixes of those in a directory, sorted: of files that have a step's number at their end, or
 * a meta graph beside them. (transfer full) */
char **muster_v1_list (MusterStorage *storage, const char *directory, GError **error);

/* The prefix of which this may be one of several files (transfer full); NULL for another name. */
char *muster_v1_of_part (const char *path);

int muster_v1_count_files (const char *prefix);

/* The name of its i-th file (transfer full). */
char *muster_v1_file (const char *prefix, int i);

G_END_DECLS
