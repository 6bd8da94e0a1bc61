// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* Whether a checkpoint is there, as far as its store says. muster_checkpoint_exists () is FALSE as
 * well where the store doesn't answer: nothing may be dropped, removed or replaced for that. */

/* FALSE with the store's error if it doesn't say. storage may be NULL. */
gboolean muster_checkpoint_look (MusterStorage *storage, const char *prefix, gboolean *is_there,
                                 GError **error);

/* The checkpoint that is there, of which path is a file, as a shell completes it (transfer full)
 * (nullable). */
char *muster_checkpoint_of_file (MusterStorage *storage, const char *path);

/* TRUE only if the store says that PREFIX.index isn't there. */
gboolean muster_checkpoint_is_gone (MusterStorage *storage, const char *prefix);

G_END_DECLS
