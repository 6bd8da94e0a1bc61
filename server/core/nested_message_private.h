// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Finds a field in a serialised message without unpacking it, so that a graph isn't copied. Any
 * thread. */

/* The field with that number, which contains bytes or a message. Several occurrences are
 * concatenated, as protobuf merges messages. *found (transfer full) is NULL if there is none.
 * INVALID_ARGUMENT for a malformed message. */
gboolean muster_server_nested_message (GBytes *message, guint32 number, GBytes **found,
                                       GError **error);

/* The same for a graph; an empty one if there is none. (transfer full) */
GBytes *muster_server_nested_graph (GBytes *message, guint32 number, GError **error);

G_END_DECLS
