// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_entry.h"

G_BEGIN_DECLS

/* Returns the name closest to `name` among n entries of a checkpoint, for "did you mean", except
 * those in the set `taken`; or the only one that differs in its scope alone. NULL if none is close:
 * more than a third of it differs. Borrowed from the entry. */
const char *muster_suggest_name (const MusterBundleEntry *const *entries, gsize n,
                                 GHashTable *taken, const char *name);

/* The number of bytes at the end that both names have, in whole components with the '/' before
 * them: of "a/b/c" and "d/b/c", 4. */
gsize muster_name_common_tail (const char *a, const char *b);

G_END_DECLS
