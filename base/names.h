// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A copy of n names as a NULL-terminated list in one block, to be freed with one g_free (): ten
 * thousand of them, which each of many waiters lets go when the model is ready, must not hold it
 * up. (transfer full) */
char **muster_names_pack (char *const *names, gsize n);

G_END_DECLS
