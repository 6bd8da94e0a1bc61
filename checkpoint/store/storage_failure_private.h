// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Classifies a store's error. */

/* Makes an error that is UNAVAILABLE or ABORTED, which from a master say that a session is lost,
 * one of a store that can't be reached for now: G_IO_ERROR_HOST_UNREACHABLE. */
void muster_storage_failure_set_outage (GError *failure);

/* TRUE if the file doesn't exist. */
gboolean muster_storage_failure_is_absent (const GError *failure);

/* TRUE if the store is full. */
gboolean muster_storage_failure_is_full (const GError *failure);

/* TRUE if the file is known to be unreadable, damaged or not there, so that an older one may be
 * used instead. FALSE for any other error: it says nothing about the file. */
gboolean muster_storage_failure_is_damage (const GError *failure);

G_END_DECLS
