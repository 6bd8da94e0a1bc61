// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/edit/edit.h"
#include "tests/checkpoint/bundle_fixture.h"

G_BEGIN_DECLS

/* Checkpoints from which others are made. */

/* n floats from first on. */
MusterTensor *edit_floats (gint64 n, float first);

/* "a" has n floats from first on, "b/step" a number, "words" strings, "w" two slices. */
void edit_write_model (MusterStorage *storage, const char *prefix, gint64 n, float first);
/* A store in memory with one of 2,000 floats. */
MusterStorage *edit_store_with (const char *prefix, float first);

gboolean edit_copy (MusterStorage *storage, const char *from, const char *to,
                    MusterCopyLatest latest, MusterEditReport *report, GError **error);

/* The first element of a tensor is this number. */
void edit_expect_first (MusterStorage *storage, const char *prefix, const char *name,
                        const char *value);

/* The names of a directory's files; and its state file: the latest checkpoint, then all. */
char *edit_files_in (MusterStorage *storage, const char *directory);
char *edit_list_of (MusterStorage *storage, const char *directory);
/* The state file of the directory "to". */
void edit_expect_list (MusterStorage *storage, const char *list);

G_END_DECLS
