// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Classifies a store's error. */

/* TRUE if the file doesn't exist. */
gboolean muster_storage_failure_is_absent (const GError *failure);

/* TRUE if the file is known to be unreadable, damaged or not there, so that an older one may be
 * used instead. FALSE for any other error: it says nothing about the file. */
gboolean muster_storage_failure_is_damage (const GError *failure);

G_END_DECLS
