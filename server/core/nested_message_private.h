// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What lies within a serialised message, without unpacking it: a graph isn't copied. Any thread. */

/* The field of that number, which holds bytes or a message. One that comes in parts is those in a
 * row, as protobuf merges messages. *found (transfer full) is NULL where there is none.
 * INVALID_ARGUMENT for a malformed message. */
gboolean muster_server_nested_message (GBytes *message, guint32 number, GBytes **found,
                                       GError **error);

/* The same of a graph: where there is none, it is an empty one. (transfer full) */
GBytes *muster_server_nested_graph (GBytes *message, guint32 number, GError **error);

G_END_DECLS
