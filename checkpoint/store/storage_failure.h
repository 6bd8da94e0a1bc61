// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* What an error of a store says of the file that couldn't be had. */

/* TRUE if the file isn't there. */
gboolean muster_storage_failure_is_absent (const GError *failure);

/* TRUE for what can't be read, or isn't whole; anything else is no reason to go back to an older
 * file: also what passes, such as too many open files. */
gboolean muster_storage_failure_is_damage (const GError *failure);

G_END_DECLS
