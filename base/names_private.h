// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Copies n names into a NULL-terminated list in one block, freed by one g_free () (transfer full).
 * When a model becomes ready, each waiter frees its list; with ten thousand names, separate frees
 * would delay it. */
char **muster_names_pack (char *const *names, gsize n);

/* The edit distance of a and b in bytes, or limit + 1 if it exceeds limit. */
guint muster_edit_distance (const char *a, const char *b, guint limit);

G_END_DECLS
