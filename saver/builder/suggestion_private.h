// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_entry.h"

G_BEGIN_DECLS

/* Returns the name closest to `name` among n entries of a checkpoint, for "did you mean", except
 * those in the set `taken`. NULL if none is close: more than a third of it differs. Borrowed from
 * the entry. */
const char *muster_suggest_name (const MusterBundleEntry *const *entries, gsize n,
                                 GHashTable *taken, const char *name);

/* The edit distance of a and b in bytes, or limit + 1 if it exceeds limit. */
guint muster_edit_distance (const char *a, const char *b, guint limit);

G_END_DECLS
